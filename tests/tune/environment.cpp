// SPDX-License-Identifier: Apache-2.0
// `selected` by the variables of a program: read once, so each case is a process of its own.
// thread sanitizer: no, each rank is a process of one thread
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/explain.hpp"
#include "collx/collective/group.hpp"
#include "collx/tune/best_chain.hpp"
#include "watched.hpp"

namespace tune = collx::tune;
using collx::contract::all_reduce;
using world_type = collx::communicator<collx::transport::shm>;

namespace {

// A failure ends the process with another code than 0, after it has said what it saw.
void require(std::string const& text, std::string const& words) {
  if (text.find(words) != std::string::npos) return;
  std::fprintf(stderr, "says '%s', and not '%s'\n", text.c_str(), words.c_str());
  std::_Exit(3);
}

// Runs f(world) on two processes that see one more variable.
template <class F>
void with_variable(char const* name, std::string const& value, F const& f) {
  auto const codes = watched::on_processes(2, [&](world_type& world) {
    setenv(name, value.c_str(), 1);
    f(world);
  });
  for (int const code : codes) CHECK(code == 0);
}

std::string explained(world_type& world) {
  return tune::explain<all_reduce, collx::selected>(world, 4096).text();
}

}  // namespace

TEST_CASE("a variable names the algorithm, and the call obeys") {
  with_variable("COLLX_ALGORITHM", "broadcast=chain,all_reduce=ring", [](world_type& world) {
    require(explained(world), "over shm, private memory: ring, by environment variable COLLX_ALGORITHM");
    std::vector<int> values(100, 1);
    collx::all_reduce<collx::selected>(world, values);
    if (values[99] != 2) std::_Exit(4);
    tune::settings said;  // code goes before it
    said.use("all_reduce", "recursive_doubling");
    world.tuning(&said);
    require(explained(world), "recursive_doubling, by the code");
    world.tuning(nullptr);
  });
}

TEST_CASE("a variable that makes no sense is told by the first call, in every form") {
  with_variable("COLLX_ALGORITHM", "all_redoce=ring", [](world_type& world) {
    std::vector<int> values(100, 1);
    if (collx::try_all_reduce<collx::selected>(world, values) != collx::status::bad_argument) std::_Exit(4);
    try {
      collx::all_reduce<collx::selected>(world, values);
      std::_Exit(5);
    } catch (collx::error const& problem) {
      require(problem.what(),
              "collx: environment variable COLLX_ALGORITHM names the collective 'all_redoce', and there is "
              "none; say one of: all_reduce");
    }
    collx::group<collx::transport::shm, collx::selected> list(world);
    for (bool const started : {false, true}) {
      list.all_reduce(values);
      if (!started && list.try_run() != collx::status::bad_argument) std::_Exit(6);
      if (!started) list.all_reduce(values);
      try {
        if (started) (void)list.start();
        else list.run();
        std::_Exit(7);
      } catch (collx::error const& problem) {
        if (problem.code() != collx::status::bad_argument) std::_Exit(8);
        require(problem.what(), "collx: environment variable COLLX_ALGORITHM names the collective");
      }
      if (list.size() != 0) std::_Exit(9);
    }
    collx::all_reduce(world, values);  // who does not ask is not concerned
  });
}

TEST_CASE("best_chain, which asks for no names, is refused too: its peers might go by another table") {
  with_variable("COLLX_TUNING", "no_such_table.json", [](world_type& world) {
    std::vector<int> values(100, world.rank() == 1 ? 7 : 0);
    if (collx::try_broadcast<collx::best_chain>(world, values, 1) != collx::status::bad_argument)
      std::_Exit(4);
    auto const why = tune::explain<collx::contract::broadcast, collx::best_chain>(world, 400);
    if (std::string(why.algorithm) != "") std::_Exit(5);  // as for every call that is refused
    require(why.text(), "no_such_table.json");
    for (auto const& call : {+[](world_type& w, std::vector<int>& v) {
                               collx::broadcast<collx::best_chain>(w, v, 1);
                             },
                             +[](world_type& w, std::vector<int>& v) {
                               (void)collx::persistent::broadcast<collx::best_chain>(w, v, 1);
                             }}) {
      try {
        call(world, values);
        std::_Exit(6);
      } catch (collx::error const& problem) {
        if (problem.code() != collx::status::bad_argument) std::_Exit(7);
        require(problem.what(), "no_such_table.json");
      }
    }
    collx::broadcast(world, values, 1);  // the communicator is as it was
    if (values[99] != 7) std::_Exit(8);
  });
}

TEST_CASE("a name that cannot be obeyed is refused by its variable's name") {
  with_variable("COLLX_ALL_REDUCE_ALGORITHM", "rnig", [](world_type& world) {
    require(explained(world), "environment variable COLLX_ALL_REDUCE_ALGORITHM names 'rnig', which");
  });
}

TEST_CASE("COLLX_TUNING names a table, which a communicator's own goes before") {
  std::string const path = "environment_test_table_" + std::to_string(getpid()) + ".json";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  std::fputs(R"({"rules": [{"collective": "all_reduce", "algorithm": "ring", "transport": "shm"}]})", file);
  std::fclose(file);
  with_variable("COLLX_TUNING", path, [&](world_type& world) {
    require(explained(world), "ring, by rule 1 of " + path);
    tune::settings said;
    said.table(tune::parse(R"({"rules": [{"collective": "all_reduce", "algorithm": "direct_two_shot"}]})",
                           "own.json"));
    world.tuning(&said);
    require(explained(world), "direct_two_shot, by rule 1 of own.json");
    world.tuning(nullptr);
  });
  std::remove(path.c_str());
}
