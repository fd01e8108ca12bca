// SPDX-License-Identifier: Apache-2.0
// What users say, in code and in variables. Variables are set here for the whole program: cases that need
// them read the environment anew.
#include "collx/tune/settings.hpp"

#include <doctest/doctest.h>

#include <string>

#include "collx/algo/ring.hpp"

namespace tune = collx::tune;

namespace {

struct variable {
  char const* name;
  variable(char const* n, char const* value) : name(n) { setenv(n, value, 1); }
  variable(variable const&) = delete;
  variable& operator=(variable const&) = delete;
  ~variable() { unsetenv(name); }
};

std::string said_for(tune::settings const& said, char const* collective) {
  auto const* const found = said.find(tune::word(collective));
  return found == nullptr ? "" : std::string(found->algorithm.text) + "/" + found->variable;
}

}  // namespace

TEST_CASE("names are kept per collective, and the last one counts") {
  tune::settings said;
  CHECK(said_for(said, "all_reduce").empty());
  said.use("all_reduce=ring,broadcast=chain");
  CHECK(said_for(said, "all_reduce") == "ring/");
  CHECK(said_for(said, "broadcast") == "chain/");
  said.use("all_reduce", "direct_one_shot");
  CHECK(said_for(said, "all_reduce") == "direct_one_shot/");
  said.use<collx::contract::all_gather, collx::algo::ring>();
  CHECK(said_for(said, "all_gather") == "ring/");
}

TEST_CASE("a collective that does not exist is refused with those that do") {
  tune::settings said;
  CHECK_THROWS_WITH_AS(said.use("all_redoce", "ring"),
                       doctest::Contains("names the collective 'all_redoce', and there is none; say one of: "
                                         "all_reduce reduce_scatter"),
                       collx::error);
  for (char const* const wrong : {"all_reduce", "=ring", "all_reduce=", "all_reduce=ring,,"})
    CHECK_THROWS_WITH_AS(said.use(wrong), doctest::Contains("write collective=algorithm"), collx::error);
}

TEST_CASE("variables: a list, one per collective, which goes before the list, and a table") {
  variable const list("COLLX_ALGORITHM", "all_reduce=ring,barrier=ring");
  variable const one("COLLX_ALL_REDUCE_ALGORITHM", "direct_two_shot");
  tune::settings const said = tune::settings::from_environment();
  CHECK(said.fault() == nullptr);
  CHECK(said_for(said, "all_reduce") == "direct_two_shot/COLLX_ALL_REDUCE_ALGORITHM");
  CHECK(said_for(said, "barrier") == "ring/COLLX_ALGORITHM");
}

TEST_CASE("a variable that makes no sense is kept as a sentence, until a call can say it") {
  {
    variable const list("COLLX_ALGORITHM", "all_redoce=ring");
    tune::settings const said = tune::settings::from_environment();
    REQUIRE(said.fault() != nullptr);
    CHECK(std::string(said.fault()).find("environment variable COLLX_ALGORITHM names the collective "
                                         "'all_redoce'") == 0);
  }
  variable const table("COLLX_TUNING", "nowhere.json");
  tune::settings const said = tune::settings::from_environment();
  REQUIRE(said.fault() != nullptr);
  CHECK(std::string(said.fault()).find("the tuning table nowhere.json cannot be read") == 0);
}
