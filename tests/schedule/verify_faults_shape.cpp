// SPDX-License-Identifier: Apache-2.0
// Every fault that the verifier finds in steps as such, in their matching, in values and in costs,
// provoked by a schedule that is wrong in one place.
// compiled: apart, it adds to a namespace of its headers
#include <string>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"
#include "schedule/exchange.hpp"

namespace wrong {

static_assert(verify<exchange>(2).ok());
static_assert(verify<halve>(2).ok());
static_assert(verify<swap>(2).ok());
static_assert(verify<push_halves>(2).ok());

// A schedule that differs from `Base` in what `change` does to every step.
#define WRONG(name, Base)                                                                   \
  struct name : Base {                                                                      \
    static constexpr primitive step(problem p, std::int32_t s) {                            \
      primitive changed = Base::step(p, s);                                                 \
      change(changed, p, s);                                                                \
      return changed;                                                                       \
    }                                                                                       \
    static constexpr void change(primitive&, problem, std::int32_t);                        \
  };                                                                                        \
  constexpr void name::change([[maybe_unused]] primitive& step, [[maybe_unused]] problem p, \
                              [[maybe_unused]] std::int32_t s)

// ---- shape ---------------------------------------------------------------------------------------

struct no_chunks : exchange {
  static constexpr std::int32_t chunk_count(rank_t) { return 0; }
};
struct three_chunks : halve {
  static constexpr std::int32_t chunk_count(rank_t) { return 3; }
};
struct negative_steps : exchange {
  static constexpr std::int32_t step_count(problem) { return -1; }
};

struct more_steps_than_it_says : exchange {
  static constexpr std::int32_t steps_max = 1;
};

WRONG(sends_to_nobody, exchange) {
  if (s == 0) step.to.first = 2;
}
WRONG(sends_twice_to_one, exchange) {
  if (s == 0) step.to = {other(p), 2, 2};
}
WRONG(forgets_itself, exchange) {
  if (s == 1) step.from = only(other(p));
}
WRONG(reduces_nothing, exchange) {
  if (s == 0) step.reduce = true;
}
WRONG(passes_on_several, swap) {
  if (s == 1) step.to = only(other(p));
}
WRONG(runs_per_peer_of_nobody, exchange) {
  if (s == 1) step.target.per_peer = 1;
}
WRONG(reads_past_the_end, exchange) {
  if (s == 0) step.operand.first = 1;
}
WRONG(reads_scratch_it_does_not_have, exchange) {
  if (s == 0) step.operand.where = place::scratch;
}
WRONG(reads_before_the_begin, swap) {
  if (s == 0) step.operand.first = -1;
}
WRONG(operand_longer_than_target, halve) {
  if (s == 1) step.operand = {place::input, 0, 2};
}
WRONG(message_longer_than_expected, halve) {
  if (s == 0) step.operand = {place::input, 0, 2};
}
WRONG(writes_the_input, exchange) {
  if (s == 1) step.target.where = place::input;
}
WRONG(writes_the_others_block, halve) {
  if (s == 1) step.target.first = other(p);
}

// ---- matching ------------------------------------------------------------------------------------

WRONG(one_forgets_to_send, exchange) {
  if (s == 0 && p.rank == 1) step.to = nobody();
}
WRONG(one_forgets_to_take, exchange) {
  if (s == 1 && p.rank == 1) step = {.operand = step.operand, .target = step.target, .store = true};
}
WRONG(both_take_first, exchange) { step = exchange::step(p, 1 - s); }

// The whole exchange in one step: it cannot start before its own message has arrived.
struct waits_for_itself : exchange {
  static constexpr std::int32_t step_count(problem) { return 1; }
  static constexpr primitive step(problem p, std::int32_t) {
    primitive both = exchange::step(p, 1);
    both.to = only(other(p));
    return both;
  }
};

// Broadcast to two, in which rank 1 takes three messages of rank 0 only after rank 2's, and rank 2
// sends that one only after rank 0 has sent all of its.
struct takes_late {
  using contract = contract::broadcast;
  static constexpr bool supports(rank_t n) { return n == 3; }
  static constexpr std::int32_t chunk_count(rank_t) { return 3; }
  static constexpr std::int32_t depth(rank_t) { return 3; }
  static constexpr std::int32_t step_count(problem p) { return p.rank == 2 ? 1 : 4; }
  static constexpr cost documented_cost(rank_t) { return {2, 4, 6}; }

  static constexpr primitive step(problem p, std::int32_t s) {
    region const whole{place::output, 0, 3};
    if (p.rank == 0 && s < 3) return {.to = only(1), .operand = {place::input, s, 1}};
    if (p.rank == 0) return {.to = only(2), .operand = {place::input, 0, 3}, .target = whole, .store = true};
    if (p.rank == 2) return {.from = only(0), .to = only(1), .target = whole, .store = true};
    if (s == 0) return {.from = only(2), .target = whole, .store = true};
    return {.from = only(0), .target = {place::output, s - 1, 1}, .store = true};
  }
};
struct promises_depth_2 : takes_late {
  static constexpr std::int32_t depth(rank_t) { return 2; }
};

// ---- values --------------------------------------------------------------------------------------

WRONG(combines_other_chunks, halve) {
  if (s == 0) step.operand.first = p.rank;
}
WRONG(wrong_order, exchange) {
  if (s == 1) step.from = {1, 1, 2};
}
WRONG(completes_silently, exchange) { step.complete = false; }

// Stores the first half where the second belongs, which may be shorter.
struct misplaced : push_halves {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = push_halves::step(p, s);
    step.push = false;
    if (s == 2) step.target.first = p.rank;
    return step;
  }
};

// Combines the sum with one of its parts again.
struct twice : exchange {
  static constexpr std::int32_t step_count(problem) { return 3; }
  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 0) return {.to = only(other(p)), .operand = {place::input, 0, 1}, .copy = true};
    primitive step = exchange::step(p, 1);
    if (s == 1) step.to = only(other(p));
    else step.complete = false;
    return step;
  }
};

struct early_complete : exchange {
  static constexpr bool supports(rank_t n) { return n == 3; }
  static constexpr std::int32_t step_count(problem p) { return p.rank == 2 ? 0 : 2; }
};

// ---- uneven blocks -------------------------------------------------------------------------------

// A ring passes on blocks whose counts only their owner and their receiver would know.
struct relays_others_blocks : collx::algo::ring::all_gather {
  static constexpr known_counts counts = known_counts::pairwise;
};

struct keeps_blocks_in_scratch : collx::algo::ring::all_gather {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 1; }
};
struct keeps_equal_blocks : keeps_blocks_in_scratch {
  static constexpr collx::known_counts counts = collx::known_counts::equal;
};

// One that passes blocks on, and one that stores its own beforehand.
struct blocks_that_go_round : collx::algo::ring::all_gather {
  static constexpr bool moves_blocks = true;
};
struct blocks_stored_twice : collx::algo::direct_one_shot::all_gather {
  static constexpr std::int32_t steps_max = 3;
  static constexpr std::int32_t step_count(problem) { return 3; }
  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 0)
      return {.operand = {place::input, p.rank, 1}, .target = {place::output, p.rank, 1}, .store = true};
    return collx::algo::direct_one_shot::all_gather::step(p, s - 1);
  }
};

// One that does everything twice, one whose peers are counted on an axis, and one that stores what it sends.
struct blocks_sent_again : collx::algo::direct_one_shot::all_gather {
  static constexpr std::int32_t steps_max = 4;
  static constexpr std::int32_t step_count(problem) { return 4; }
  static constexpr primitive step(problem p, std::int32_t s) {
    return collx::algo::direct_one_shot::all_gather::step(p, s % 2);
  }
};
struct blocks_along_an_axis : collx::algo::direct_one_shot::gather {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive each = collx::algo::direct_one_shot::gather::step(p, s);
    (each.from.empty() ? each.to : each.from).along = {0, 1, p.size};
    return each;
  }
};
struct blocks_stored_as_sent : collx::algo::direct_one_shot::broadcast {
  static constexpr bool moves_blocks = true;
};

// ---- costs ---------------------------------------------------------------------------------------

struct more_rounds : exchange {
  static constexpr cost documented_cost(rank_t) { return {2, 1, 1}; }
};
struct more_messages : exchange {
  static constexpr cost documented_cost(rank_t) { return {1, 2, 1}; }
};
struct more_chunks : exchange {
  static constexpr cost documented_cost(rank_t) { return {1, 1, 2}; }
};

// Right for each root, and too little for them all.
struct little_for_any_root : collx::algo::direct_one_shot::broadcast {
  static constexpr cost documented_cost(rank_t n) { return {n > 1, 1, 1}; }
  static constexpr cost documented_cost(rank_t n, rank_t) {
    return collx::algo::direct_one_shot::broadcast::documented_cost(n);
  }
};

// One that sends everything again, and says what it would send once.
struct more_staged : collx::algo::direct_one_shot::all_gather {
  static constexpr bool moves_blocks = false;
  static constexpr std::int32_t steps_max = 4;
  static constexpr std::int32_t step_count(problem) { return 4; }
  static constexpr primitive step(problem p, std::int32_t s) {
    return collx::algo::direct_one_shot::all_gather::step(p, s % 2);
  }
  static constexpr cost documented_cost(rank_t n) { return {2, 2 * (n - 1), 2 * (n - 1)}; }
};

namespace {

template <class S>
void refuse(fault expected, rank_t size = 2) {
  verdict const found = verify<S>(size);
  CAPTURE(std::string(name(found.what)));
  CAPTURE(std::string(name(expected)));
  CHECK(found.what == expected);
  CHECK(found.size == size);
}

}  // namespace

TEST_CASE("verify: blocks with counts of their own") {
  CHECK(verify<collx::algo::ring::all_gather>(3, 0, {.uneven = 1}).ok());
  // Everybody knows everybody's block of an all_gather, so only messages of several blocks are refused.
  CHECK(verify<relays_others_blocks>(3, 0, {.uneven = 1}).what == fault::not_pairwise);
  CHECK(verify<keeps_blocks_in_scratch>(3, 0, {.uneven = 1}).what == fault::uneven_scratch);
  // A proof asks so for those that state it.
  CHECK(collx::detail::prove_case<keeps_blocks_in_scratch>({3, 1}, 0).what == fault::uneven_scratch);
  CHECK(collx::detail::prove_case<keeps_equal_blocks>({3, 1}, 0).ok());
}

TEST_CASE("verify: what is said of schedules that move blocks holds") {
  auto const holds = []<class S>(S) {
    static_assert(S::moves_blocks);
    for (rank_t size = 1; size <= 6; ++size)
      for (std::uint32_t const uneven : {0u, 1u}) CHECK(verify<S>(size, size / 2, {.uneven = uneven}).ok());
  };
  holds(collx::algo::direct_one_shot::all_gather{});
  holds(collx::algo::direct_one_shot::all_to_all{});
  holds(collx::algo::direct_one_shot::gather{});
  holds(collx::algo::direct_one_shot::scatter{});
  holds(collx::algo::pairwise::all_to_all{});
  CHECK(verify<blocks_sent_again>(3, 0, {.cost = false}).what == fault::more_than_blocks);
  CHECK(verify<blocks_along_an_axis>(3).what == fault::more_than_blocks);
  CHECK(verify<blocks_stored_as_sent>(3).what == fault::more_than_blocks);
  CHECK(verify<blocks_that_go_round>(3).what == fault::more_than_blocks);
  CHECK(verify<blocks_stored_twice>(3).what == fault::more_than_blocks);
}

TEST_CASE("verify: steps that are wrong as such") {
  refuse<exchange>(fault::size_not_supported, 3);
  refuse<no_chunks>(fault::bad_chunk_count);
  refuse<three_chunks>(fault::bad_chunk_count);
  refuse<negative_steps>(fault::bad_step_count);
  refuse<more_steps_than_it_says>(fault::bad_step_count);
  refuse<sends_to_nobody>(fault::peer_out_of_range);
  refuse<sends_twice_to_one>(fault::duplicate_peer);
  refuse<forgets_itself>(fault::reduces_nothing);
  refuse<wrong::reduces_nothing>(fault::reduces_nothing);
  refuse<passes_on_several>(fault::fan_in_sends);
  refuse<runs_per_peer_of_nobody>(fault::per_peer_misused);
  refuse<reads_past_the_end>(fault::region_out_of_range);
  refuse<reads_scratch_it_does_not_have>(fault::region_out_of_range);
  refuse<reads_before_the_begin>(fault::region_out_of_range);
  refuse<operand_longer_than_target>(fault::count_mismatch);
  refuse<message_longer_than_expected>(fault::count_mismatch);
  refuse<writes_the_input>(fault::stores_to_input);
  refuse<writes_the_others_block>(fault::stores_outside_output);
}

TEST_CASE("verify: messages that do not match") {
  refuse<one_forgets_to_send>(fault::unmatched_receive);
  CHECK(verify<one_forgets_to_send>(2).rank == 0);
  CHECK(verify<one_forgets_to_send>(2).peer == 1);
  refuse<one_forgets_to_take>(fault::leftover_message);
  CHECK(verify<one_forgets_to_take>(2).rank == 0);
  refuse<both_take_first>(fault::deadlock);
  refuse<waits_for_itself>(fault::deadlock);
}

TEST_CASE("verify: the depth decides whether a schedule finishes") {
  CHECK(minimal_depth<exchange>(2) == 1);
  CHECK(verify<takes_late>(3).ok());
  CHECK(minimal_depth<takes_late>(3) == 3);
  refuse<promises_depth_2>(fault::deadlock, 3);
  verdict const blocked = verify<promises_depth_2>(3);
  CHECK(blocked.rank == 0);
  CHECK(blocked.step == 2);
  CHECK(blocked.peer == 1);
  CHECK(blocked.peer_step == 0);
  CHECK(minimal_depth<both_take_first>(2) == 0);
}

TEST_CASE("verify: values that may not be combined or stored") {
  refuse<combines_other_chunks>(fault::different_chunks);
  refuse<wrong::wrong_order>(fault::wrong_order);
  refuse<misplaced>(fault::wrong_size);
  refuse<twice>(fault::combined_twice);
  refuse<completes_silently>(fault::incomplete);
  refuse<early_complete>(fault::incomplete, 3);
}

TEST_CASE("verify: more chunks than can be numbered") {
  // n blocks for each of n ranks: n^3 is above 2^30.
  refuse<collx::algo::pairwise::all_to_all>(fault::too_large, 1025);
}

TEST_CASE("verify: costs that differ from the documented ones") {
  refuse<more_rounds>(fault::wrong_rounds);
  refuse<more_messages>(fault::wrong_messages);
  refuse<more_chunks>(fault::wrong_chunks);
  refuse<wrong::more_staged>(fault::more_staged, 3);
  refuse<little_for_any_root>(fault::above_worst_root, 3);
  CHECK(verify<more_rounds>(2).counted == cost{1, 1, 1});
  CHECK(verify<more_rounds>(2, 0, {.cost = false}).ok());
}

TEST_CASE("verify: every fault has a name and a sentence") {
  for (int f = 0; f <= static_cast<int>(fault::above_worst_root); ++f) {
    CHECK(std::string(name(static_cast<fault>(f))) != "unknown");
    CHECK(std::string(explain(static_cast<fault>(f))) != "unknown fault");
  }
}

}  // namespace wrong
