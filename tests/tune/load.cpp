// SPDX-License-Identifier: Apache-2.0
// Reading tables: what they say, and how mistakes in them are told.
// thread sanitizer: no, there is one thread
#include "collx/tune/load.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

namespace tune = collx::tune;

namespace {

std::string refusal_of(std::string const& text) {
  try {
    (void)tune::parse(text.c_str(), "table.json");
  } catch (collx::error const& problem) {
    CHECK(problem.code() == collx::status::bad_argument);
    return problem.what();
  }
  return "accepted";
}

bool has(std::string const& text, char const* words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

std::string with_rule(std::string const& members) {
  return "{\"format\": \"collx tuning 1\",\n \"rules\": [\n  {" + members + "}\n]}";
}

}  // namespace

TEST_CASE("a table is read as it was written") {
  tune::tuning const table = tune::parse(R"({
    "format": "collx tuning 1", "written_by": "hand", "machine": "a \"fast\" one",
    "models": [{"transport": "shm", "memory": "private", "round_us": 0.5, "gap_us": 0.25,
                "gap_us_per_byte": 1e-4, "gamma_us_per_byte": 2.5e-5}],
    "rules": [
      {"collective": "all_reduce", "algorithm": "ring", "transport": "shm", "memory": "symmetric",
       "bytes_max": 4096, "ranks_max": 8, "ranks_per_group_max": 2},
      {"collective": "broadcast", "algorithm": "chain"}
    ]})", "table.json");
  CHECK(std::string(table.origin()) == "table.json");
  REQUIRE(table.models.size() == 1);
  CHECK(table.models[0].parameters.gap_us_per_byte == doctest::Approx(1e-4));
  REQUIRE(table.rules.size() == 2);
  tune::rule const& first = table.rules[0];
  CHECK(first.collective == tune::word("all_reduce"));
  CHECK(std::string(first.algorithm.text) == "ring");
  CHECK(first.when.bytes_max == 4096);
  CHECK(first.when.ranks_max == 8);
  CHECK(first.when.ranks_per_group_max == 2);
  CHECK(first.when.memory == tune::memory_kind::symmetric);
  CHECK(first.when.transport == tune::word("shm"));
  CHECK(table.rules[1].when.bytes_max == tune::any_bytes);
  CHECK(table.rules[1].when.transport.empty());
}

TEST_CASE("every bound of a condition counts") {
  tune::word const shm("shm"), tcp("tcp");
  tune::question const q{4096, {8, 2}, &shm, tune::memory_kind::symmetric};
  CHECK(tune::condition{}.holds(q));
  CHECK(tune::condition{4096, 8, 2, tune::memory_kind::symmetric, "shm"}.holds(q));
  CHECK_FALSE(tune::condition{.bytes_max = 4095}.holds(q));
  CHECK_FALSE(tune::condition{.ranks_max = 7}.holds(q));
  CHECK_FALSE(tune::condition{.ranks_per_group_max = 1}.holds(q));
  CHECK_FALSE(tune::condition{.memory = tune::memory_kind::unshared}.holds(q));
  CHECK_FALSE(tune::condition{.transport = tcp}.holds(q));
}

TEST_CASE("a mistake in a table is told with its line and what should stand there") {
  CHECK(has(refusal_of("{\n \"format\": \"other 2\"}"), "table.json, line 2: the format should be"));
  CHECK(has(refusal_of(with_rule("\"collective\": \"barrier\", \"algo\": \"ring\"")),
            "line 3: 'algo' is not known here; say one of: collective algorithm"));
  CHECK(has(refusal_of(with_rule("\"collective\": \"barrier\"")), "a rule needs a \"collective\" and an"));
  CHECK(has(refusal_of(with_rule("\"bytes_max\": 1.5")), "a whole number from 0 to"));
  CHECK(has(refusal_of(with_rule("\"ranks_max\": 0")), "a whole number from 1 to"));
  for (char const* const number : {"nan", "-inf", "1e999", "x"})
    CHECK(has(refusal_of("{\"models\": [{\"round_us\": " + std::string(number) + "}]}"),
              "line 1: a number should"));
  CHECK(has(refusal_of("{\"models\": [{\"gap_us\": -1}]}"), "line 1: a time should stand here, 0 or more"));
  CHECK(has(refusal_of(with_rule("\"memory\": \"pinned\"")), "\"any\", \"private\" or \"symmetric\""));
  CHECK(has(refusal_of("{\"rules\": [}"), "'{' should stand here"));
  CHECK(has(refusal_of("{\"machine\": \"endless"), "a string does not end"));
  CHECK(has(refusal_of("{\"machine\": \"a\\n\"}"), "only \\\" and \\\\ may stand after"));
  CHECK(has(refusal_of("{} {}"), "something follows the end"));
  CHECK(has(refusal_of("{\"machine\": \"" + std::string(300, 'x') + "\"}"), "a string is too long"));
  CHECK(has(refusal_of(""), "'{' should stand here"));
}

TEST_CASE("an empty table is one") { CHECK(tune::parse("{}", "none").rules.size() == 0); }

TEST_CASE("a table comes from a file, and a missing one is named") {
  std::string const path = "load_test_" + std::to_string(getpid()) + ".json";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  std::fputs(with_rule("\"collective\": \"scan\", \"algorithm\": \"direct_one_shot\"").c_str(), file);
  std::fclose(file);
  tune::tuning const table = tune::load(path.c_str());
  CHECK(table.rules.size() == 1);
  CHECK(std::string(table.origin()) == path);
  std::FILE* const longer = std::fopen(path.c_str(), "a");
  REQUIRE(longer != nullptr);
  std::fwrite("\0{}", 1, 3, longer);
  std::fclose(longer);
  CHECK_THROWS_WITH_AS((void)tune::load(path.c_str()), doctest::Contains("it is no such file"), collx::error);
  std::remove(path.c_str());
  CHECK_THROWS_WITH_AS((void)tune::load(path.c_str()), doctest::Contains("cannot be read (No such file"),
                       collx::error);
  CHECK_THROWS_WITH_AS((void)tune::load("."), doctest::Contains("cannot be read"), collx::error);
}
