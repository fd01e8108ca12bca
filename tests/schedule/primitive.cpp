// SPDX-License-Identifier: Apache-2.0
// The words of the schedule language: which chunks a region names.
#include "collx/schedule/primitive.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/contract.hpp"
#include "collx/schedule/embed.hpp"
#include "collx/schedule/render/flow.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;

// In a vector of twelve chunks.
std::vector<std::int32_t> chunks(region const& r, std::int32_t k = 0) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < r.count; ++i) all.push_back(r.chunk(r.first_for(k, 12), i, 12));
  return all;
}

using list = std::vector<std::int32_t>;

// Three ranks, which take the whole vector from rank 0 beginning at chunk `First`; chunk by chunk, or not.
template <std::int32_t First, std::int32_t Pitch, std::int32_t TargetFirst = First>
struct rotated_broadcast {
  using contract = contract::broadcast;
  static constexpr bool supports(rank_t) { return true; }
  static constexpr std::int32_t chunk_count(rank_t) { return 5; }
  static constexpr std::int32_t step_count(problem) { return 1; }
  static constexpr primitive step(problem p, std::int32_t) {
    region operand{.first = First, .count = 5, .pitch = Pitch, .wraps = true};
    operand.run = Pitch == 0 ? 0 : 1;
    region target = operand;
    target.where = place::output;
    target.first = TargetFirst;
    peer_set const from = p.rank == p.root ? nobody() : only(p.root);
    peer_set const to = p.rank == p.root ? everybody(p.size) : nobody();
    return {.from = from, .to = to, .operand = operand, .target = target, .store = true};
  }
  static constexpr cost documented_cost(rank_t n) { return {n > 1, n - 1, 5 * (n - 1)}; }
};

}  // namespace

TEST_CASE("region: one run, several, and one per peer") {
  CHECK(chunks({place::input, 3, 4}) == list{3, 4, 5, 6});
  CHECK(chunks({.first = 1, .count = 5, .run = 2, .pitch = 4}) == list{1, 2, 5, 6, 9});
  CHECK(chunks({.first = 10, .count = 1, .per_peer = 3}, 2) == list{4});
  CHECK(chunks({.first = 1, .count = 2, .per_peer = 1, .run = 1, .pitch = 4, .base = 4, .modulus = 4}, 3) ==
        list{4, 8});
}

TEST_CASE("region: what wraps comes back to the begin of the vector, or of a part of it") {
  CHECK(chunks({.first = 10, .count = 4, .wraps = true}) == list{10, 11, 0, 1});
  CHECK(chunks({.first = 2, .count = 3, .base = 4, .modulus = 4, .wraps = true}) == list{6, 7, 4});
  CHECK(chunks({.first = 1, .count = 4, .run = 1, .pitch = -4, .wraps = true}) == list{1, 9, 5, 1});
  CHECK(chunks({.first = 9, .count = 4, .run = 2, .pitch = 5, .wraps = true}) == list{9, 10, 2, 3});
  CHECK(chunks({.first = 9, .count = 2, .per_peer = 2, .wraps = true}, 1) == list{11, 0});
  CHECK(round_the_end(place::output, 4, 2, 6).is_one_run());
  CHECK(chunks(round_the_end(place::output, 5, 2, 6)) == list{5, 0});
  CHECK(!round_the_end(place::output, 5, 2, 6).is_one_run());
  CHECK(region{.first = 5, .count = 1, .wraps = true}.is_one_run());
}

TEST_CASE("region: the verifier follows it round the end") {
  CHECK(verify<rotated_broadcast<3, 0>>(3).ok());
  CHECK(verify<rotated_broadcast<3, -2>>(3).ok());
  CHECK(verify<rotated_broadcast<4, 7>>(3).ok());
  CHECK(verify<rotated_broadcast<3, 5>>(3).what == fault::overlap);
  CHECK(verify<rotated_broadcast<5, 0>>(3).what == fault::region_out_of_range);
  CHECK(verify<rotated_broadcast<-1, 0>>(3).what == fault::region_out_of_range);
  CHECK(verify<rotated_broadcast<3, 0, 2>>(3).what == fault::wrong_size);
}

TEST_CASE("region: drawn run by run") {
  CHECK(detail::chunk_label({.first = 10, .count = 4, .wraps = true}, 0, 12) == "10-11, 0-1");
  CHECK(detail::chunk_label({.first = 1, .count = 3, .run = 1, .pitch = -4, .wraps = true}, 0, 12) ==
        "1, 9, 5");
  CHECK(detail::chunk_label({.first = 0, .count = 6, .run = 1, .pitch = 2}, 0, 12) == "0, 2, 4, 6, ...");
}

TEST_CASE("region: embedded in a larger vector") {
  region const wrapped{.first = 2, .count = 2, .modulus = 3, .wraps = true};
  // Each chunk is two of the larger one's, next to each other, or six apart.
  CHECK(chunks(embed(wrapped, placed(place::output, 3, 2, 4))) == list{8, 9, 4, 5});
  placement const apart{.where = place::output, .chunks = 3, .unit = 2, .spacing = 4};
  CHECK(chunks(embed(wrapped, apart)) == list{8, 9, 0, 1});
  region const strided{.first = 2, .count = 3, .run = 1, .pitch = -1, .wraps = true};
  CHECK(chunks(embed(strided, apart)) == list{8, 9, 4, 5, 0, 1});
}
