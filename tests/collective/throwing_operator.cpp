// SPDX-License-Identifier: Apache-2.0
// An operator that throws ends the process, in every form of a call: nobody could say afterwards which ranks
// have which part of the result.
// thread sanitizer: no, ranks are processes of one thread
#include <functional>
#include <vector>

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "collx/collx.hpp"
#include "watched.hpp"

namespace {

using communicator = collx::communicator<collx::transport::shm>;

struct throws {
  int operator()(int, int) const { throw 1; }
};

constexpr int caught = 7;

void check_that_it_ends(std::function<void(communicator&)> const& call) {
  auto const codes = watched::on_processes(2, [&](communicator& comm) {
    signal(SIGABRT, SIG_DFL);  // doctest's handler would report a crash of this test
    std::set_terminate([] { abort(); });
    try {
      call(comm);
    } catch (collx::error const&) {
      return 0;  // the other one has ended
    } catch (...) {
      return caught;
    }
    return caught;
  });
  bool some = false;
  for (int const code : codes) {
    CHECK(code != caught);
    some = some || code == 128 + SIGABRT;
  }
  CHECK(some);
}

}  // namespace

TEST_CASE("an operator that throws ends the process: blocking calls, short and long") {
  for (std::size_t const count : {std::size_t{1}, std::size_t{300}, std::size_t{100'000}}) {
    std::vector<int> v(count, 1);
    check_that_it_ends([&](communicator& comm) { collx::all_reduce(comm, v, throws{}); });
    check_that_it_ends([&](communicator& comm) { (void)collx::try_all_reduce(comm, v, throws{}); });
  }
}

TEST_CASE("an operator that throws ends the process: started and persistent calls") {
  std::vector<int> v(1000, 1);
  check_that_it_ends([&](communicator& comm) { collx::start::all_reduce(comm, v, throws{}).wait(); });
  check_that_it_ends([&](communicator& comm) {
    auto kept = collx::persistent::all_reduce(comm, v, throws{});
    kept.start();
    kept.wait();
  });
}
