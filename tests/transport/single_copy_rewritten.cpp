// SPDX-License-Identifier: Apache-2.0
// What a program writes before each call is staged; the same buffer is left to its readers while it is not
// written. Whether it is, each rank finds for itself.
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::algo::direct_one_shot;
using collx::algo::direct_two_shot;
using communicator = collx::communicator<fetching>;

// Payloads that are fetched wherever that is possible, of a call whose inputs may be rewritten.
constexpr std::size_t fetched_bytes_min = 4096;

// What a rank that writes has in its input in the i-th of a dozen calls: it writes before some in the middle.
bool is_written_before(int i) { return i >= 4 && i < 8; }
int value(collx::rank_t rank, bool writes, int i) {
  return 100 * rank + (writes && i >= 4 ? std::min(i, 7) : 0);
}

// Makes those calls. Which of them fetched or posted, a letter each.
template <class Call>
std::string copies(communicator& comm, std::vector<int>& input, bool writes, Call const& call) {
  auto& endpoint = comm.engine().endpoint();
  std::string found;
  std::fill(input.begin(), input.end(), value(comm.rank(), writes, 0));
  for (int i = 0; i < 12; ++i) {
    if (writes && is_written_before(i)) std::fill(input.begin(), input.end(), value(comm.rank(), true, i));
    endpoint.fetched = endpoint.posted = 0;
    call(i);
    found += endpoint.fetched + endpoint.posted > 0 ? 'f' : '-';
    collx::barrier(comm);
  }
  return found;
}

void require(std::string const& found, std::string const& expected, char const* what) {
  if (found != expected) throw std::runtime_error(std::string(what) + ": " + found + ", not " + expected);
}

void require_all(std::span<int const> elements, int expected) {
  for (int const each : elements)
    if (each != expected) throw std::runtime_error("wrong element");
}

// Of two ranks, of which all write or only the first.
void walk(communicator& comm, bool all_write) {
  std::size_t const bytes = std::max(collx::device::remembered_bytes_min(), fetched_bytes_min);
  std::size_t const count = bytes / sizeof(int);
  bool const writing[] = {true, all_write};
  bool const writes = writing[comm.rank()];
  // One for each collective, so that none is known from the one before.
  std::vector<std::vector<int>> inputs(4, std::vector<int>(2 * count));
  std::vector<int> out(2 * count);
  auto const half = [&](std::vector<int>& of, std::size_t which) {
    return std::span(of).subspan(which * count, count);
  };
  auto const require_halves = [&](int i) {
    for (std::size_t r : {0u, 1u})
      require_all(half(out, r), value(static_cast<collx::rank_t>(r), writing[r], i));
  };
  auto const require_sum = [&](std::span<int const> result, int i) {
    require_all(result, value(0, true, i) + value(1, all_write, i));
  };

  // Who fetches is the peer of who lends.
  std::string const expected = writing[1 - comm.rank()] ? "ffff----ffff" : "ffffffffffff";
  auto const gather = [&](int i) {
    collx::all_gather<direct_one_shot>(comm, half(inputs[0], 0), out);
    require_halves(i);
  };
  require(copies(comm, inputs[0], writes, gather), expected, "all_gather");
  auto const transpose = [&](int i) {
    collx::all_to_all<direct_one_shot>(comm, inputs[1], out);
    require_halves(i);
  };
  require(copies(comm, inputs[1], writes, transpose), expected, "all_to_all");
  auto const scatter = [&](int i) {
    collx::reduce_scatter<direct_one_shot>(comm, inputs[2], half(out, 0), collx::sum);
    require_sum(half(out, 0), i);
  };
  require(copies(comm, inputs[2], writes, scatter), expected, "reduce_scatter");
  auto const reduce = [&](int i) {
    collx::all_reduce<direct_two_shot>(comm, inputs[3], out, collx::sum);
    require_sum(out, i);
  };
  std::string const found = copies(comm, inputs[3], writes, reduce);
  if (all_write) require(found, expected, "all_reduce");  // else one of them posts what it lends the other
}

}  // namespace

TEST_CASE("single copy: what is written before each call is staged, by whoever writes it") {
  system_copies::say_if_refused();
  for (bool const all_write : {true, false}) {
    CAPTURE(all_write);
    auto const codes =
        watched::on_processes<fetching>(2,
                                        [&](communicator& comm) {
                                          collx::barrier(comm);
                                          if (!permitted(comm) || comm.engine().endpoint().space().crowded())
                                            return 0;
                                          walk(comm, all_write);
                                          return 0;
                                        },
                                        {.single_copy_bytes = fetched_bytes_min});
    for (int const code : codes) CHECK(code == 0);
  }
}
