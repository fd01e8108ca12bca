// SPDX-License-Identifier: Apache-2.0
// Every fault that the verifier finds in accesses to memory and in what the outputs hold at the
// end, provoked by a schedule that is wrong in one place.
// compiled: apart, it adds to a namespace of its headers
#include <string>

#include <doctest/doctest.h>

#include "collx/schedule/verify.hpp"
#include "schedule/exchange.hpp"

namespace wrong {

// ---- within one rank -----------------------------------------------------------------------------

struct reads_the_output : exchange {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = exchange::step(p, s);
    if (s == 0) step.operand.where = place::output;
    return step;
  }
};

struct stores_both_at_one_place : swap {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = swap::step(p, s);
    if (s == 1) step.target.per_peer = 0;
    return step;
  }
};

// Keeps its contribution in the output, which in place is the input, and combines it from there or from here.
struct combines_what_it_kept : exchange {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = exchange::step(p, s);
    if (s == 0) step.target = {place::output, 0, 1}, step.store = true;
    else step.operand.where = place::output;
    return step;
  }
};
struct prepares_again : combines_what_it_kept {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = combines_what_it_kept::step(p, s);
    step.operand.where = place::input;
    return step;
  }
};

// The own vector comes back from scratch to the output, which in place is the input that is read once more.
struct prepares_what_came_back : exchange {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 1; }
  static constexpr std::int32_t step_count(problem) { return 3; }
  static constexpr primitive step(problem p, std::int32_t s) {
    region const own{place::scratch, 0, 1};
    if (s == 0) return {.operand = {place::input, 0, 1}, .target = own, .store = true};
    if (s == 2) return exchange::step(p, 1);
    primitive step = exchange::step(p, 0);
    step.operand = own;
    step.target = {place::output, 0, 1};
    step.store = true;
    return step;
  }
};

// Moves three chunks two places on, over the last of the three.
struct shifts_over_itself : halve {
  static constexpr std::int32_t chunk_count(rank_t) { return 4; }
  static constexpr std::int32_t scratch_chunks(rank_t) { return 5; }
  static constexpr primitive step(problem, std::int32_t s) {
    region const low{place::scratch, 0, 3}, high{place::scratch, 2, 3};
    if (s == 0) return {.operand = {place::input, 0, 3}, .target = low, .store = true};
    return {.operand = low, .target = high, .store = true};
  }
};

// ---- in flight -----------------------------------------------------------------------------------

// Right with separate buffers; in place, the result may overwrite what the other still reads.
struct forgets_to_copy : exchange {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = exchange::step(p, s);
    step.copy = false;
    return step;
  }
};

// Copies the operand into scratch, sends it from there, and uses the scratch again.
struct reuses_scratch : exchange {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 1; }
  static constexpr std::int32_t step_count(problem) { return 3; }
  static constexpr primitive step(problem p, std::int32_t s) {
    region const temporary{place::scratch, 0, 1};
    if (s == 0)
      return {.to = only(other(p)), .operand = {place::input, 0, 1}, .target = temporary, .store = true};
    primitive combine = exchange::step(p, 1);
    if (s == 1) combine.target = temporary;
    else combine = {.operand = temporary, .target = {place::output, 0, 1}, .store = true};
    return combine;
  }
};

// Reuses it for the message of a second exchange: that one shows that the other has read the first.
struct reuses_scratch_after_answer : exchange {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 1; }
  static constexpr std::int32_t step_count(problem) { return 4; }
  static constexpr cost documented_cost(rank_t) { return {2, 2, 2}; }
  static constexpr primitive step(problem p, std::int32_t s) {
    region const temporary{place::scratch, 0, 1}, input{place::input, 0, 1}, output{place::output, 0, 1};
    if (s == 0) return {.to = only(other(p)), .operand = input, .target = temporary, .store = true};
    if (s == 1) {
      primitive combine = exchange::step(p, 1);
      combine.operand = temporary;
      return combine;
    }
    if (s == 2) return {.to = only(other(p)), .operand = output};
    return {.from = only(other(p)), .target = temporary, .store = true};
  }
};

// ---- pushed --------------------------------------------------------------------------------------

struct pushes_into_reduction : exchange {
  static constexpr std::int32_t step_count(problem) { return 4; }
  static constexpr primitive step(problem p, std::int32_t s) {
    if (s < 2) return swap_ready(p, s);
    primitive step = exchange::step(p, s - 2);
    if (s == 2) step.push = true;
    return step;
  }
  static constexpr primitive swap_ready(problem p, std::int32_t s) {
    if (s == 0) return {.to = only(other(p)), .operand = {place::input, 0, 1}, .copy = true};
    return {.from = only(other(p)), .target = {place::output, 0, 1}};
  }
};

struct pushes_to_another_chunk : push_halves {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 2; }
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = push_halves::step(p, s);
    if (s == 2) step.target.where = place::scratch;
    return step;
  }
};

// Nothing tells the sender that the receiver is there.
struct pushes_at_once : swap {
  static constexpr primitive step(problem p, std::int32_t s) {
    region const own{place::output, p.rank, 1};
    if (s == 0)
      return {.to = only(other(p)),
              .operand = {place::input, p.rank, 1},
              .target = own,
              .store = true,
              .push = true};
    return {.from = only(other(p)), .target = {place::output, other(p), 1}, .store = true};
  }
};

// Before it takes what is pushed there, the receiver stores something of its own at that place.
struct pushes_over_a_write : push_halves {
  static constexpr std::int32_t step_count(problem) { return 4; }
  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 0) return push_halves::step(p, 0);
    if (s == 1)
      return {.operand = {place::input, other(p), 1}, .target = {place::output, other(p), 1}, .store = true};
    return push_halves::step(p, s - 1);
  }
};

// In place, the pushed half overwrites an input that the receiver reads once more.
struct pushes_over_a_read : push_halves {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 2; }
  static constexpr std::int32_t step_count(problem) { return 4; }
  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 0) return push_halves::step(p, 0);
    if (s == 1)
      return {.operand = {place::input, other(p), 1}, .target = {place::scratch, other(p), 1}, .store = true};
    return push_halves::step(p, s - 1);
  }
};

// Three ranks, of which 0 has what all get.
struct spreads_to_three {
  using contract = contract::broadcast;
  static constexpr bool keeps_rank_order = true;
  static constexpr bool supports(rank_t n) { return n == 3; }
  static constexpr std::int32_t scratch_chunks(rank_t) { return 2; }
  static constexpr region all(place where, std::int32_t count) { return {where, 0, count}; }
  static constexpr primitive tells(rank_t whom) {
    return {.to = only(whom), .operand = all(place::input, 0), .target = all(place::output, 0)};
  }
  static constexpr primitive hears(rank_t whom) {
    return {.from = only(whom), .target = all(place::output, 0)};
  }
};

// Rank 0 pushes, and word of it reaches rank 1 by way of rank 2 before the message does. A transport that
// does not push has not stored anything by then.
struct reads_before_the_message : spreads_to_three {
  static constexpr std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr std::int32_t step_count(problem p) { return p.rank == 1 ? 4 : 3; }
  static constexpr cost documented_cost(rank_t) { return {4, 2, 1}; }
  static constexpr primitive step(problem p, std::int32_t s) {
    region const out = all(place::output, 1);
    if (p.rank == 0) {
      if (s == 1)
        return {.to = only(1), .operand = all(place::input, 1), .target = out, .store = true, .push = true};
      return s == 0 ? hears(1) : tells(2);
    }
    if (p.rank == 2) {
      if (s == 2) return {.from = only(1), .target = out, .store = true};
      return s == 0 ? hears(0) : tells(1);
    }
    if (s == 2) return {.to = only(2), .operand = out, .target = out, .copy = true};
    if (s == 3) return {.from = only(0), .target = out, .store = true};
    return s == 0 ? tells(0) : hears(2);
  }
};

// Rank 0 copies a slot for rank 1, and then one for rank 2, over which rank 1 pushes when it has its own.
struct pushes_over_a_later_copy : spreads_to_three {
  static constexpr std::int32_t scratch_chunks(rank_t) { return 4; }
  static constexpr std::int32_t chunk_count(rank_t) { return 2; }
  static constexpr std::int32_t step_count(problem p) { return p.rank == 0 ? 6 : p.rank == 1 ? 3 : 2; }
  static constexpr cost documented_cost(rank_t) { return {2, 4, 4}; }
  static constexpr primitive step(problem p, std::int32_t s) {
    region const even{place::output, 0, 1}, odd{place::output, 1, 1}, slot{place::scratch, 2, 1};
    if (p.rank != 0) {
      if (s == 2) return {.to = only(0), .operand = even, .target = slot, .push = true};
      return {.from = only(0), .target = s == 0 ? odd : even, .store = true};
    }
    region const in{place::input, 0, 1},
        of_each{.where = place::scratch, .count = 1, .per_peer = 2, .modulus = 4};
    switch (s) {
      case 0: return {.operand = all(place::input, 2), .target = all(place::output, 2), .store = true};
      case 1: return {.operand = in, .target = all(place::scratch, 1), .store = true};
      case 2: return {.operand = in, .target = slot, .store = true};
      case 3: return {.to = {1, 1, 2}, .operand = {place::input, 1, 1}, .target = odd};
      case 4: return {.to = {1, 1, 2}, .operand = of_each, .target = of_each, .copy = true};
      default: return {.from = only(1), .target = slot, .store = true};
    }
  }
};

// ---- outputs -------------------------------------------------------------------------------------

struct stops_early : exchange {
  static constexpr std::int32_t step_count(problem p) { return p.rank == 0 ? 2 : 1; }
};
struct does_nothing : exchange {
  static constexpr std::int32_t step_count(problem) { return 0; }
};

struct keeps_its_own : exchange {
  static constexpr std::int32_t step_count(problem) { return 1; }
  static constexpr primitive step(problem, std::int32_t) {
    return {.operand = {place::input, 0, 1}, .target = {place::output, 0, 1}, .store = true};
  }
};

struct swaps_blocks : swap {
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = swap::step(p, s);
    if (s == 1) step.from = {1, 1, 2};
    return step;
  }
};

// Every rank has every chunk, and rank 0's shall arrive; rank 1 keeps its own.
struct from_rank_0 : contract::broadcast {
  static constexpr bool rooted = false;
  static constexpr block_window input(problem) { return {0, 1}; }
  static constexpr rank_t owner(problem, std::int32_t) { return 0; }
};
struct keeps_the_wrong_one : keeps_its_own {
  using contract = from_rank_0;
};

// Rank 0 of a scan gets its own vector only.
struct sees_the_future : exchange {
  using contract = collx::contract::scan;
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = exchange::step(p, s);
    step.complete = false;
    return step;
  }
};

namespace {

template <class S>
void refuse(fault expected, verify_options options = {}, rank_t ranks = 2) {
  verdict const found = verify<S>(ranks, 0, options);
  CAPTURE(std::string(name(found.what)));
  CAPTURE(std::string(name(expected)));
  CHECK(found.what == expected);
}

}  // namespace

TEST_CASE("verify: reads and writes within one rank") {
  refuse<reads_the_output>(fault::read_before_written);
  refuse<combines_what_it_kept>(fault::none);
  refuse<prepares_again>(fault::prepared_twice);
  refuse<prepares_what_came_back>(fault::none, {.in_place = false});
  refuse<prepares_what_came_back>(fault::prepared_twice);
  refuse<stores_both_at_one_place>(fault::overlap);
  refuse<shifts_over_itself>(fault::overlap);
}

TEST_CASE("verify: what is in flight may not be overwritten") {
  refuse<forgets_to_copy>(fault::none, {.in_place = false});
  refuse<forgets_to_copy>(fault::overwritten_in_flight);
  verdict const found = verify<forgets_to_copy>(2);
  CHECK(found.in_place);
  CHECK(found.step == 0);  // the step that needs `copy`, not the one that overwrites
  CHECK(found.peer == 1 - found.rank);
  refuse<reuses_scratch>(fault::overwritten_in_flight);
  refuse<reuses_scratch_after_answer>(fault::none, {.in_place = false});
}

TEST_CASE("verify: pushes need a receiver that is there and memory that nobody uses") {
  refuse<pushes_into_reduction>(fault::push_not_received);
  refuse<pushes_to_another_chunk>(fault::push_not_received);
  refuse<pushes_at_once>(fault::push_before_begin);
  refuse<pushes_over_a_write>(fault::push_unsafe);
  refuse<pushes_over_a_read>(fault::none, {.in_place = false});
  refuse<pushes_over_a_read>(fault::push_unsafe);
  refuse<reads_before_the_message>(fault::push_unsafe, {}, 3);
  refuse<pushes_over_a_later_copy>(fault::push_unsafe, {}, 3);
}

TEST_CASE("verify: outputs that do not hold what the contract says") {
  refuse<stops_early>(fault::leftover_message);
  refuse<does_nothing>(fault::output_not_written);
  refuse<does_nothing>(fault::missing_contribution, {.separate = false});
  refuse<keeps_its_own>(fault::missing_contribution);
  CHECK(verify<keeps_its_own>(2).rank == 0);
  CHECK(verify<keeps_its_own>(2).peer == 1);
  refuse<swaps_blocks>(fault::wrong_chunk);
  refuse<sees_the_future>(fault::foreign_contribution);
  refuse<keeps_the_wrong_one>(fault::wrong_owner);
  CHECK(verify<keeps_the_wrong_one>(2).rank == 1);
  CHECK(verify<keeps_the_wrong_one>(2).peer == 0);
}

}  // namespace wrong
