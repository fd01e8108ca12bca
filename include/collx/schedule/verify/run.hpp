// SPDX-License-Identifier: Apache-2.0
// The symbolic executor: lets all ranks take their steps under the rule of the fused executor, and
// looks at the outputs at the end. A step starts when all its messages have arrived and all its
// receivers have a free slot; it then takes and sends in one go.
//
// One order of execution stands for all of them: a rank's steps are sequential and messages are
// matched by position, so no order can change what arrives or who blocks. What depends on timing,
// accesses to memory, is decided by happens-before and not by the order of this run.
#pragma once

#include "collx/schedule/verify/perform.hpp"

namespace collx::inline abi_1::detail {

// Nobody watches. As a trace (trace/null_trace.hpp), whose fragments are 0 here: the run is of one.
struct unwatched {
  constexpr void step(problem, std::size_t /*fragment*/, std::int32_t /*index*/,
                      primitive const&) const noexcept {}
};

// `Watcher`: sees each step when it has been performed, in the order of the run.
template <class Watcher>
class symbolic_run : step_performer {
 public:
  constexpr symbolic_run(subject const& s, std::int32_t depth, bool in_place, Watcher const& watcher)
      : step_performer(s, in_place), depth_(depth), watcher_(watcher) {}

  // Runs everything to the end or to the first fault.
  constexpr verdict execute() {
    if (!set_up() || !run_steps()) return found_;
    if (std::int32_t const id = letters_.leftover(); id >= 0) {
      message const& m = letters_[id];
      fail(fault::leftover_message, m.sender, m.sent_at, m.receiver);
      return found_;
    }
    for (rank_t r = 0; r < s_.size; ++r)
      if (!check_output(r)) return found_;
    found_.level = found_level();
    count_cost();
    return found_;
  }

 private:
  constexpr bool set_up() {
    for (rank_t r = 0; r < s_.size; ++r) {
      block_window const window = s_.input(s_.of(r));
      for (std::int32_t i = 0; i < window.count * s_.chunks_per_block; ++i) {
        std::int32_t const c = s_.chunk_at(window, i);
        memory_.set_up(memory_.cell_of(r, place::input, c), values_.input(r, c));
      }
      std::int32_t const count = ranks_[r].step_count = s_.step_count(s_.of(r));
      if (count < 0 || (s_.steps_max != 0 && count > s_.steps_max)) return fail(fault::bad_step_count, r, -1);
    }
    for (rank_t r = 0; r < s_.size; ++r)
      if (!load(r)) return false;
    return true;
  }

  // Evaluates the rank's next step once; it may have to be tried many times.
  constexpr bool load(rank_t r) {
    progress& at = ranks_[r];
    if (at.finished()) return true;
    at.current = s_.step(s_.of(r), at.step);
    fault const f = check_step(s_, r, at.current);
    return f == fault::none || fail(f, r, at.step);
  }

  constexpr bool run_steps() {
    for (bool all_finished = false; !all_finished;) {
      bool progressed = false;
      all_finished = true;
      for (rank_t r = 0; r < s_.size; ++r) {
        while (!ranks_[r].finished() && blocked_by(r).peer == no_rank) {
          if (!perform(r)) return false;
          watcher_.step(s_.of(r), 0, ranks_[r].step, ranks_[r].current);
          ++ranks_[r].step;
          if (!load(r)) return false;
          progressed = true;
        }
        all_finished = all_finished && ranks_[r].finished();
      }
      if (!all_finished && !progressed) return explain_block();
    }
    return true;
  }

  struct block {
    rank_t peer = no_rank;
    bool for_message = false;  // otherwise for a slot
  };

  [[nodiscard]] constexpr block blocked_by(rank_t r) const {
    primitive const& p = ranks_[r].current;
    for (std::int32_t k = 0; k < p.from.count; ++k) {
      rank_t const peer = p.from.member(k, s_.size);
      if (takes(r, p, k) && letters_.in_flight(peer, r) == 0) return {peer, true};
    }
    for (std::int32_t k = 0; k < p.to.count; ++k) {
      rank_t const peer = p.to.member(k, s_.size);
      if (sends(r, p, k) && letters_.in_flight(r, peer) >= depth_) return {peer, false};
    }
    return {};
  }

  // Nobody can go on. If somebody waits for a rank that is through, that is the cause; otherwise
  // ranks wait in a circle.
  constexpr bool explain_block() {
    rank_t waiting = no_rank;
    for (rank_t r = 0; r < s_.size; ++r) {
      if (ranks_[r].finished()) continue;
      if (waiting == no_rank) waiting = r;
      block const b = blocked_by(r);
      if (ranks_[b.peer].finished())
        return fail(b.for_message ? fault::unmatched_receive : fault::leftover_message, r, ranks_[r].step,
                    b.peer);
    }
    rank_t const peer = blocked_by(waiting).peer;
    found_.peer_step = ranks_[peer].step;
    return fail(fault::deadlock, waiting, ranks_[waiting].step, peer);
  }

  constexpr bool check_output(rank_t r) {
    problem const p = s_.of(r);
    for (rank_t other = 0; s_.synchronizes && other < s_.size; ++other)
      if (other != r && !past_.knows(r, other, 0)) return fail(fault::leaves_too_early, r, -1, other);
    block_window const window = s_.output(p);
    rank_t const contributors = s_.contributors(p);
    for (std::int32_t i = 0; i < window.count * s_.chunks_per_block; ++i) {
      std::int32_t const c = s_.chunk_at(window, i);
      if (s_.is_empty(c)) continue;
      std::int32_t const value = memory_.value(memory_.cell_of(r, place::output, c));
      if (value == undefined) return fail(fault::output_not_written, r, -1, no_rank, c);
      if (values_.chunk_of(value) != c) return fail(fault::wrong_chunk, r, -1, no_rank, c);
      if (!s_.from_all) {
        rank_t const owner = s_.owner(p, c / s_.chunks_per_block);
        if (value != values_.input(owner, c)) return fail(fault::wrong_owner, r, -1, owner, c);
        continue;
      }
      rank_t present = 0;
      while (present < contributors && values_.has(value, present)) ++present;
      if (present != contributors) return fail(fault::missing_contribution, r, -1, present, c);
      if (values_.count(value) == contributors) continue;
      rank_t stranger = contributors;
      while (!values_.has(value, stranger)) ++stranger;
      return fail(fault::foreign_contribution, r, -1, stranger, c);
    }
    return true;
  }

  // The lowest of all results: the same expression everywhere; at least for each chunk; or not even that.
  // Of a prefix only places in the vector are compared: every rank has an expression of its own.
  constexpr reproducibility found_level() {
    if (!s_.from_all) return reproducibility::any_size;
    auto level = reproducibility::any_transport;
    std::int32_t any = undefined;
    table<std::int32_t> of_chunk(s_.chunks);  // the first value found, plus 1
    for (rank_t r = 0; r < s_.size; ++r) {
      block_window const window = s_.output(s_.of(r));
      if (s_.prefix) any = undefined;
      for (std::int32_t i = 0; i < window.count * s_.chunks_per_block; ++i) {
        std::int32_t const c = s_.chunk_at(window, i);
        if (s_.is_empty(c)) continue;
        std::int32_t const value = memory_.value(memory_.cell_of(r, place::output, c));
        if (any == undefined) any = value;
        if (s_.prefix || of_chunk[c] == 0) of_chunk[c] = value + 1;
        if (values_.tree(value) != values_.tree(of_chunk[c] - 1)) return reproducibility::none;
        if (values_.tree(value) != values_.tree(any)) level = reproducibility::run_to_run;
      }
    }
    return level;
  }

  constexpr void count_cost() {
    cost& sum = found_.counted;
    for (rank_t r = 0; r < s_.size; ++r) {
      progress const& at = ranks_[r];
      if (sum.rounds < at.round) sum.rounds = at.round;
      if (sum.messages < at.messages) sum.messages = at.messages;
      if (sum.chunks < at.chunks) sum.chunks = at.chunks;
    }
  }

  std::int32_t depth_;
  [[no_unique_address]] Watcher watcher_;
};

}  // namespace collx::inline abi_1::detail
