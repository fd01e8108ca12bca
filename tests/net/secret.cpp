// SPDX-License-Identifier: Apache-2.0
// Where secrets come from, which are refused, and that none is ever printed.
#include "collx/net/secret.hpp"

#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <grp.h>
#include <sys/wait.h>

namespace {

using collx::net::secret;

constexpr char const* good = "0123456789abcdef-a-good-one";

// A file of this test's own, with the mode given.
class file {
 public:
  explicit file(std::string const& content, mode_t mode = 0600) {
    char name[] = "/tmp/collx_secret_XXXXXX";
    int const fd = mkstemp(name);
    REQUIRE(fd >= 0);
    close(fd);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << content;
    chmod(name, mode);
  }
  file(file const&) = delete;
  ~file() { unlink(path_.c_str()); }
  [[nodiscard]] char const* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

std::string text(secret const& of) { return {of.bytes().data(), of.bytes().size()}; }

std::string refusal(char const* path) {
  try {
    (void)secret::from_file(path);
  } catch (collx::error const& failure) {
    if (failure.code() != collx::status::bad_argument) std::abort();  // in a child, too
    return failure.what();
  }
  return "";
}

// Whether a process of that user, in that group alone, takes the file.
bool is_taken_by(uid_t user, gid_t group, char const* path) {
  pid_t const child = fork();
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0)
      _exit(9);
    _exit(refusal(path).empty() ? 0 : 1);
  }
  int how = -1;
  REQUIRE(waitpid(child, &how, 0) == child);
  REQUIRE((WIFEXITED(how) && WEXITSTATUS(how) <= 1));
  return WEXITSTATUS(how) == 0;
}

bool holds(std::string const& all, std::string const& part) { return all.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a secret comes from a file, without the white space at its end") {
  CHECK(text(secret::from_file(file(good).path())) == good);
  CHECK(text(secret::from_file(file(std::string(good) + " \r\n\n").path())) == good);
  CHECK(text(secret::from_file(file(good, 0400).path())) == good);
  std::string const binary("\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7", 16);
  CHECK(text(secret::from_file(file(binary).path())) == binary);
  CHECK(text(secret::from_file(file(std::string(1024, 'x') + "\n").path())).size() == 1024);
}

TEST_CASE("a file that others may read or write is refused") {
  for (mode_t const mode : {0604u, 0620u, 0602u, 0644u, 0660u, 0666u, 0610u}) {
    std::string const said = refusal(file(good, mode).path());
    CHECK_MESSAGE(holds(said, "chmod 600"), said);
    CHECK_FALSE(holds(said, good));
  }
}

TEST_CASE("its group may read a file of root, as one that is mounted, but no file of a user") {
  if (geteuid() != 0) {
    MESSAGE("not root: files of root are left out");
    CHECK(holds(refusal(file(good, 0640).path()), "chmod 600"));
    return;
  }
  constexpr uid_t user = 65534;
  constexpr gid_t group = 4711, another = 4712;
  for (mode_t const mode : {0440u, 0640u}) {
    file const mounted(good, mode);
    REQUIRE(chown(mounted.path(), 0, group) == 0);
    CHECK(is_taken_by(user, group, mounted.path()));
    CHECK_FALSE(is_taken_by(user, another, mounted.path()));
    CHECK(text(secret::from_file(mounted.path())) == good);
    // As in a volume of Kubernetes, where names are links to files of the current version.
    std::string const name = std::string(mounted.path()) + ".link";
    REQUIRE(symlink(mounted.path(), name.c_str()) == 0);
    CHECK(is_taken_by(user, group, name.c_str()));
    unlink(name.c_str());
    REQUIRE(chown(mounted.path(), user, group) == 0);
    CHECK_FALSE(is_taken_by(user, group, mounted.path()));
    REQUIRE(chmod(mounted.path(), 0400) == 0);
    CHECK(is_taken_by(user, group, mounted.path()));
  }
  file const open_to_write(good, 0660);
  REQUIRE(chown(open_to_write.path(), 0, group) == 0);
  CHECK_FALSE(is_taken_by(user, group, open_to_write.path()));
}

TEST_CASE("what is no file, or has no secret in it, is refused") {
  CHECK(holds(refusal("/no/such/file"), "COLLX_SECRET_FILE is \"/no/such/file\""));
  // As base64 gives it: a secret in the wrong variable is not shown to everybody.
  std::string const mistaken = refusal("c2VjcmV0IHRoYXQgaXMgbm90IHNob3duIHRvIGFueW9uZQ==");
  CHECK(holds(mistaken, "COLLX_SECRET_FILE, 48 characters that are not shown here"));
  CHECK(holds(mistaken, "set COLLX_SECRET"));
  CHECK_FALSE(holds(mistaken, "c2Vj"));
  CHECK(holds(refusal("/tmp"), "no plain file"));
  CHECK(holds(refusal("/dev/zero"), "no plain file"));
  CHECK(holds(refusal(file("").path()), "fewer"));
  CHECK(holds(refusal(file("too short 12345\n").path()), "fewer"));
  std::string const said = refusal(file(std::string(1025, 'q')).path());
  CHECK(holds(said, "more"));
  CHECK_FALSE(holds(said, "qqq"));
}

TEST_CASE("the file goes before the variable, and without both there is none") {
  unsetenv("COLLX_SECRET_FILE");
  unsetenv("COLLX_SECRET");
  CHECK(secret::from_environment().empty());
  setenv("COLLX_SECRET", "from the variable 1234\n", 1);
  CHECK(text(secret::from_environment()) == "from the variable 1234");
  file const its(good);
  setenv("COLLX_SECRET_FILE", its.path(), 1);
  CHECK(text(secret::from_environment()) == good);
  unsetenv("COLLX_SECRET_FILE");
  setenv("COLLX_SECRET", "short", 1);
  try {
    (void)secret::from_environment();
    FAIL("a short secret was taken");
  } catch (collx::error const& failure) {
    CHECK(holds(failure.what(), "COLLX_SECRET"));
    CHECK_FALSE(holds(failure.what(), "short\""));
  }
  unsetenv("COLLX_SECRET");
}

TEST_CASE("a secret that was moved from is empty, and its bytes are gone") {
  secret first = secret::of(std::span(good, std::strlen(good)));
  secret const second = std::move(first);
  CHECK(text(second) == good);
  CHECK(first.empty());  // NOLINT: that is what is tested
  char const* const bytes = reinterpret_cast<char const*>(&first);
  CHECK_FALSE(holds(std::string(bytes, sizeof first), "0123456789"));
}
