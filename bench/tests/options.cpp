// SPDX-License-Identifier: Apache-2.0
// What collx_perf asks of its build: types and operators that were not compiled are refused, whether the user
// named them or they are what it takes otherwise. Here double, a type of two bytes, max and min were; over
// TCP float and sum.
#include "../perf/options.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using names = std::vector<std::string>;

perf::options parsed(names words) {
  words.insert(words.begin(), "collx_perf");
  std::vector<char const*> argv;
  for (std::string const& word : words) argv.push_back(word.c_str());
  return perf::parse(static_cast<int>(argv.size()), argv.data());
}

std::string refusal_of(names const& words) {
  try {
    static_cast<void>(parsed(words));
  } catch (perf::usage_error const& problem) {
    return problem.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a default that is not compiled is refused") {
  CHECK(refusal_of({"all_reduce", "-o", "max"}) ==
        "--datatype does not know 'float', its default; say one of: double, int16, or build with more "
        "(cmake -DCOLLX_PERF_TYPES=...)");
  CHECK(refusal_of({"scan", "-d", "double"}) ==
        "--op does not know 'sum', its default; say one of: max, min, or build with more "
        "(cmake -DCOLLX_PERF_OPERATORS=...)");
}

TEST_CASE("what is named and not compiled is refused, whether it matters or not") {
  CHECK(refusal_of({"all_reduce", "-d", "half", "-o", "max"})
            .starts_with("--datatype does not know 'half'; say"));
  CHECK(refusal_of({"barrier", "-d", "half"}).starts_with("--datatype does not know 'half'; say"));
  CHECK(
      refusal_of({"all_gather", "-d", "double", "-o", "mean"}).starts_with("--op does not know 'mean'; say"));
  CHECK(refusal_of({"all_reduce", "--transport", "tcp", "-d", "double"}) ==
        "--datatype does not know 'double' over TCP; say one of: float, or build with more "
        "(cmake -DCOLLX_PERF_TCP_TYPES=...)");
  CHECK(refusal_of({"all_reduce", "--transport", "tcp", "-o", "max"})
            .starts_with("--op does not know 'max' over TCP"));
}

TEST_CASE("what is compiled is taken, and of all only that") {
  perf::options const over_shm = parsed({"all_reduce", "-d", "all", "-o", "all"});
  CHECK(over_shm.types == names{"double", "int16"});
  CHECK(over_shm.operators == names{"max", "min"});
  CHECK(parsed({"all_gather", "-d", "int16"}).types ==
        names{"int16"});  // no reduction: no operator is asked for
  perf::options const over_tcp = parsed({"all_reduce", "--transport", "tcp"});
  CHECK(over_tcp.types == names{"float"});
  CHECK(over_tcp.operators == names{"sum"});
  CHECK(parsed({"all_reduce", "--transport", "tcp", "-d", "all", "-o", "all"}).types == names{"float"});
}

TEST_CASE("a barrier is measured with the one type that it is compiled with") {
  CHECK(parsed({"barrier"}).types == names{"double"});
  CHECK(parsed({"barrier", "-d", "all"}).types == names{"double"});
  CHECK(parsed({"barrier", "--transport", "tcp"}).types == names{"float"});
}
