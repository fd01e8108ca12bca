// SPDX-License-Identifier: Apache-2.0
// A program that defines COLLX_CHOOSE_AT_RUN_TIME: variables reach the calls that name no algorithm.
// thread sanitizer: no, each rank is a process of one thread
#define COLLX_CHOOSE_AT_RUN_TIME
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/explain.hpp"
#include "collx/collective/split.hpp"
#include "watched.hpp"

using collx::contract::all_reduce;
using world_type = collx::communicator<collx::transport::shm>;
static_assert(std::is_same_v<collx::default_algorithm, collx::selected>);

namespace {

void require(std::string const& text, std::string const& words) {
  if (text.find(words) != std::string::npos) return;
  std::fprintf(stderr, "says '%s', and not '%s'\n", text.c_str(), words.c_str());
  std::_Exit(3);
}

// Runs f(world) on two processes that see one more variable.
template <class F>
void with_variable(char const* name, char const* value, F const& f) {
  auto const codes = watched::on_processes(2, [&](world_type& world) {
    setenv(name, value, 1);
    f(world);
  });
  for (int const code : codes) CHECK(code == 0);
}

}  // namespace

TEST_CASE("a variable reaches a call that names no algorithm, in every form") {
  with_variable("COLLX_ALL_REDUCE_ALGORITHM", "ring", [](world_type& world) {
    require(collx::tune::explain<all_reduce>(world, 400).text(),
            "memory: ring, by environment variable COLLX_ALL");
    std::vector<int> values(100, 1);
    collx::all_reduce(world, values);
    collx::start::all_reduce(world, values).wait();
    if (values[99] != 4) std::_Exit(4);
    auto part = world.split(world.rank(), 0);  // what the library calls itself names none either
    if (part.size() != 1) std::_Exit(5);
  });
}

TEST_CASE("a name that does not exist is refused by such a call, with those that do") {
  with_variable("COLLX_ALGORITHM", "all_reduce=rnig", [](world_type& world) {
    std::vector<int> values(100, 1);
    try {
      collx::all_reduce(world, values);
      std::_Exit(4);
    } catch (collx::error const& problem) {
      require(problem.what(),
              "all_reduce: environment variable COLLX_ALGORITHM names 'rnig', which is no algorithm of this "
              "collective here; say one of: direct_one_shot direct_two_shot bidirectional_ring");
    }
    collx::all_reduce<collx::automatic>(world, values);  // who asks for the built-in table has it
    if (values[99] != 2) std::_Exit(5);
  });
}
