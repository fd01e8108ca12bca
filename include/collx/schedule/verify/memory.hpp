// SPDX-License-Identifier: Apache-2.0
// The memory of all ranks in the symbolic run, one cell per chunk, with who touched it last: what
// is needed to prove that no two accesses, one of them a write, can happen at the same time.
#pragma once

#include "collx/schedule/verify/contribution.hpp"
#include "collx/schedule/verify/mail.hpp"
#include "collx/schedule/verify/subject.hpp"

namespace collx::inline abi_1::detail {

// A finding of a memory access. With overwritten_in_flight, `mail` is the message in danger.
struct conflict {
  fault what = fault::none;
  std::int32_t mail = -1;
};

class memory {
 public:
  constexpr memory(subject const& s, bool in_place, mail const& letters, causality const& past)
      : s_(s), letters_(letters), past_(past), layout_(s.size), cells_(lay_out(in_place)) {}

  // The number of the cell that holds a chunk, or -1 if the place does not hold it.
  [[nodiscard]] constexpr std::int32_t cell_of(rank_t rank, place where, std::int32_t chunk) const {
    layout const& at = layout_[rank];
    if (where == place::scratch) return at.scratch_base + chunk;
    bool const is_input = where == place::input;
    std::int32_t const position = s_.position(is_input ? at.input : at.output, chunk);
    return position < 0 ? -1 : (is_input ? at.input_base : at.output_base) + position;
  }

  [[nodiscard]] constexpr std::int32_t value(std::int32_t cell) const {
    return cell < 0 ? undefined : cells_[cell].value;
  }
  constexpr void set_up(std::int32_t cell, std::int32_t value) { cells_[cell].value = value; }

  // The rank reads its own memory as an operand.
  constexpr fault read(rank_t rank, std::int32_t step, std::int32_t cell) {
    if (cell < 0) return fault::read_before_written;
    record& c = cells_[cell];
    if (c.value == undefined) return fault::read_before_written;
    if (c.written_at == step) return fault::overlap;
    if (!knows_push(rank, c) || is_untaken(c)) return fault::push_unsafe;
    c.touched_at = c.read_at = step;
    return fault::none;
  }

  // Whether a step before has stored the cell where it lies: an operator may have prepared it there.
  [[nodiscard]] constexpr bool is_kept(std::int32_t step, std::int32_t cell) const {
    return cell >= 0 && cells_[cell].kept_at >= 0 && cells_[cell].kept_at < step;
  }

  // The rank stores to its own memory. `twin` is the cell of its operand at the same position of
  // the run, which may be the same one: element-wise updates in place are right, and a copy of
  // memory onto itself is no write at all (executors skip it).
  constexpr conflict write(rank_t rank, std::int32_t step, std::int32_t cell, std::int32_t value,
                           std::int32_t twin) {
    record& c = cells_[cell];
    if (cell == twin && c.read_at == step && c.value == value) {
      if (c.kept_at < 0) c.kept_at = step;
      return {};
    }
    if (c.written_at == step || (c.read_at == step && cell != twin)) return {fault::overlap};
    if (!knows_push(rank, c) || is_untaken(c)) return {fault::push_unsafe};
    if (std::int32_t const id = endangered(rank, c); id >= 0) return {fault::overwritten_in_flight, id};
    c.readers = -1;
    c.touched_at = c.written_at = step;
    c.value = value;
    if (c.kept_at < 0) c.kept_at = step;
    return {};
  }

  // Rank `pusher` stores to the memory of `owner`, during the pusher's current step.
  // `told_by`: the message that says so.
  constexpr conflict push(rank_t pusher, std::int32_t step, rank_t owner, std::int32_t cell,
                          std::int32_t value, std::int32_t told_by) {
    record& c = cells_[cell];
    if (is_untaken(c)) return {fault::push_unsafe};
    if (c.touched_at >= 0 && !past_.knows(pusher, owner, c.touched_at)) return {fault::push_unsafe};
    if (!knows_push(pusher, c) || (c.pusher == pusher && c.pushed_at == step)) return {fault::push_unsafe};
    if (std::int32_t const id = endangered(pusher, c); id >= 0) return {fault::overwritten_in_flight, id};
    c.readers = -1;
    c.pusher = pusher;
    c.pushed_at = step;
    c.told_by = told_by;
    c.value = value;
    return {};
  }

  // The receiver of message `id` may read the cell in place until the step in which it takes it.
  constexpr void lend(std::int32_t cell, std::int32_t id) {
    if (cell < 0) return;
    cells_[cell].readers = readers_.push({id, cells_[cell].readers});
  }

 private:
  struct record {
    std::int32_t value = undefined;
    std::int32_t readers = -1;     // head of the list of messages that are read here in place
    std::int32_t touched_at = -1;  // the owner's last step that read or wrote
    std::int32_t read_at = -1;
    std::int32_t written_at = -1;
    std::int32_t kept_at = -1;  // the first step that stored to it, or copied it onto itself
    rank_t pusher = no_rank;    // the last rank that pushed to here, and its step
    std::int32_t pushed_at = -1, told_by = -1;  // and the message that told of it
  };
  // Where the places of one rank begin among the cells.
  struct layout {
    block_window input, output;
    std::int32_t input_base = 0, output_base = 0, scratch_base = 0;
  };
  struct reader {
    std::int32_t mail = -1;
    std::int32_t next = -1;
  };

  [[nodiscard]] constexpr bool knows_push(rank_t rank, record const& c) const {
    return c.pusher == no_rank || past_.knows(rank, c.pusher, c.pushed_at);
  }

  // A push is no duty: until its message is taken the cell may hold what it did, or that.
  [[nodiscard]] constexpr bool is_untaken(record const& c) const {
    return c.told_by >= 0 && letters_[c.told_by].taken_at < 0;
  }

  // Gives every chunk of every buffer a cell; in place, the smaller buffer lies in the larger one.
  constexpr std::int32_t lay_out(bool in_place) {
    std::int32_t cells = 0;
    for (rank_t r = 0; r < s_.size; ++r) {
      layout& at = layout_[r];
      at.input = s_.input(s_.of(r));
      at.output = s_.output(s_.of(r));
      std::int32_t const inputs = at.input.count * s_.chunks_per_block;
      std::int32_t const outputs = at.output.count * s_.chunks_per_block;
      bool const shared = in_place && inputs > 0 && outputs > 0;
      std::int32_t const inset = s_.in_place_at(s_.of(r)) * s_.chunks_per_block;
      at.input_base = cells + (shared && inputs < outputs ? inset : 0);
      at.output_base = cells + (!shared ? inputs : outputs < inputs ? inset : 0);
      cells += !shared ? inputs + outputs : inputs > outputs ? inputs : outputs;
      at.scratch_base = cells;
      cells += s_.scratch;
    }
    return cells;
  }

  // A message whose reading in place is not surely over when `writer` writes now, or -1. A list
  // may be dropped after a write that found none: whatever comes later must know of that write.
  [[nodiscard]] constexpr std::int32_t endangered(rank_t writer, record const& c) const {
    for (std::int32_t r = c.readers; r >= 0; r = readers_[r].next) {
      message const& m = letters_[readers_[r].mail];
      if (m.taken_at < 0 || !past_.knows(writer, m.receiver, m.taken_at)) return readers_[r].mail;
    }
    return -1;
  }

  subject const& s_;
  mail const& letters_;
  causality const& past_;
  table<layout> layout_;
  table<record> cells_;
  table<reader> readers_;
};

}  // namespace collx::inline abi_1::detail
