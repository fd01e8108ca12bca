// SPDX-License-Identifier: Apache-2.0
// Which processes take each other for neighbours: what they must have in common, and what they need not.
// thread sanitizer: no, it looks at processes of one thread
#include "collx/bootstrap/host_identity.hpp"

#include <string>

#include <doctest/doctest.h>

#include "bootstrap/folder.hpp"
#include "contained.hpp"

namespace {

using collx::bootstrap::host_identity;
using collx::bootstrap::machine_identity;
using collx::bootstrap::sharing_identity;

// TMPDIR is `value` while it lives.
class temporary_folder {
 public:
  explicit temporary_folder(std::string const& value) { setenv("TMPDIR", value.c_str(), 1); }
  temporary_folder(temporary_folder const&) = delete;
  ~temporary_folder() {
    if (had_one_) setenv("TMPDIR", before_.c_str(), 1);
    else unsetenv("TMPDIR");
  }

 private:
  bool had_one_ = std::getenv("TMPDIR") != nullptr;
  std::string before_ = had_one_ ? std::getenv("TMPDIR") : "";
};

}  // namespace

TEST_CASE("host_identity: processes of one host have the same, also in mount namespaces of their own") {
  std::uint64_t const host = host_identity(), sharing = sharing_identity();
  CHECK(host == host_identity());
  CHECK(sharing == sharing_identity());
  auto const same = [&] { return host_identity() == host && sharing_identity() == sharing ? 0 : 1; };
  CHECK(contained(0, same).ended() == 0);
  check_contained(contained(CLONE_NEWNS, same).ended());
}

TEST_CASE("host_identity: another network namespace is another host, on the same machine") {
  std::uint64_t const machine = machine_identity(), host = host_identity(), sharing = sharing_identity();
  auto const other = [&] {
    return machine_identity() == machine && host_identity() != host && sharing_identity() != sharing ? 0 : 1;
  };
  check_contained(contained(CLONE_NEWNET, other).ended());
}

TEST_CASE("host_identity: processes with numbers of their own share no memory, and are on one host") {
  std::uint64_t const host = host_identity(), sharing = sharing_identity();
  auto const apart = [&] { return host_identity() == host && sharing_identity() != sharing ? 0 : 1; };
  check_contained(contained(CLONE_NEWPID, apart).ended());
}

TEST_CASE("host_identity: ranks that would meet in different folders share no memory") {
  folder const one, other;
  auto const in = [](std::string const& path) {
    temporary_folder const chosen(path);
    return sharing_identity();
  };
  std::uint64_t const host = host_identity();
  CHECK(in(one.path()) == in(one.path() + "/../" + one.path().substr(5) + "/."));
  CHECK(in(one.path()) != in(other.path()));
  CHECK(in("") == in("/tmp"));
  // One that is missing is named when somebody is to be met there, if anybody is.
  CHECK(in(one.at("missing")) != in(one.path()));
  temporary_folder const chosen(one.path());
  CHECK(host_identity() == host);
}
