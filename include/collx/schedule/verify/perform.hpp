// SPDX-License-Identifier: Apache-2.0
// Performs one step of one rank on sets of contributions instead of numbers: what a step reads,
// combines, stores and sends, and every way in which that can be wrong. Which step is next is
// decided in verify/run.hpp.
#pragma once

#include "collx/schedule/verify/memory.hpp"

namespace collx::inline abi_1::detail {

// Where a rank stands.
struct progress {
  primitive current{};
  std::int32_t step = 0;
  std::int32_t step_count = 0;
  std::int32_t round = 0;
  std::int32_t messages = 0;
  std::int64_t chunks = 0;

  [[nodiscard]] constexpr bool finished() const { return step == step_count; }
};

class step_performer {
 public:
  constexpr step_performer(subject const& s, bool in_place)
      : s_(s),
        past_(s.size),
        letters_(s.size),
        values_(s.size, s.chunks),
        memory_(s, in_place, letters_, past_),
        ranks_(s.size),
        taken_(s.size) {
    found_.size = s.size;
    found_.inner = s.inner;
    found_.root = s.root;
    found_.in_place = in_place;
  }

 protected:
  // All functions that return bool: false after a fault, which then stands in found_.
  constexpr bool fail(fault what, rank_t rank, std::int32_t step, rank_t peer = no_rank,
                      std::int32_t chunk = -1) {
    found_.what = what;
    found_.rank = rank;
    found_.step = step;
    found_.peer = peer;
    found_.chunk = chunk;
    return false;
  }

  // Requires that the step can start: its messages are there.
  constexpr bool perform(rank_t r) {
    progress& at = ranks_[r];
    primitive const& p = at.current;
    past_.begin(r, at.step);
    if (p.from.empty()) return send_operand(r);
    run_of_values result{payload_.size(), p.target.count};
    if (!take_all(r)) return false;
    if (p.reduce) {
      receive_all(r);
      if (!reduce(r)) return false;
      if (p.store && !store(r, 0, result, p.from.position(r, s_.size) >= 0)) return false;
    } else {
      // Executors may store each message as soon as it is there.
      for (std::int32_t k = 0; k < p.from.count; ++k)
        if ((takes(r, p, k) || p.from.member(k, s_.size) == r) && !pass_on(r, k, result)) return false;
      receive_all(r);
    }
    return send_all(r, result);
  }

  // Whether there is a message from the k-th member of `from`, and one to that of `to`.
  [[nodiscard]] constexpr bool takes(rank_t r, primitive const& p, std::int32_t k) const {
    return p.from.member(k, s_.size) != r && !s_.is_empty(p.target.first_for(k, s_.chunks));
  }
  [[nodiscard]] constexpr bool sends(rank_t r, primitive const& p, std::int32_t k) const {
    return p.to.member(k, s_.size) != r &&
           !(p.from.empty() && s_.is_empty(p.operand.first_for(k, s_.chunks)));
  }

  subject const& s_;
  causality past_;
  mail letters_;
  contributions values_;
  memory memory_;
  table<progress> ranks_;
  verdict found_{};

 private:
  // Where the result of a step, or the message of a fan-in, lies among the payloads.
  struct run_of_values {
    std::int32_t payload = 0;
    std::int32_t count = 0;
  };

  // 1. Take one message from everybody in `from`.
  constexpr bool take_all(rank_t r) {
    progress& at = ranks_[r];
    primitive const& p = at.current;
    for (std::int32_t k = 0; k < p.from.count; ++k) {
      rank_t const peer = p.from.member(k, s_.size);
      if (!takes(r, p, k)) continue;
      taken_[k] = letters_.take(peer, r, at.step);
      message const& m = letters_[taken_[k]];
      if (at.round < m.round + 1) at.round = m.round + 1;
      found_.peer_step = m.sent_at;
      if (m.count != p.target.count) return fail(fault::count_mismatch, r, at.step, peer);
      for (std::int32_t i = 0; i < m.count; ++i) {
        std::int32_t const chunk = values_.chunk_of(payload_[m.payload + i]);
        if (s_.size_class(chunk) != s_.size_class(target_chunk(p, k, i)))
          return fail(fault::wrong_size, r, at.step, peer, chunk);
      }
    }
    found_.peer_step = -1;
    return true;
  }

  // The i-th chunk of the operand, and of the target for the k-th member of `from`.
  [[nodiscard]] constexpr std::int32_t operand_chunk(primitive const& p, std::int32_t i) const {
    return p.operand.chunk(p.operand.first_for(0, s_.chunks), i, s_.chunks);
  }
  [[nodiscard]] constexpr std::int32_t target_chunk(primitive const& p, std::int32_t k,
                                                    std::int32_t i) const {
    return p.target.chunk(p.target.first_for(k, s_.chunks), i, s_.chunks);
  }

  constexpr void receive_all(rank_t r) {
    primitive const& p = ranks_[r].current;
    for (std::int32_t k = 0; k < p.from.count; ++k)
      if (takes(r, p, k)) past_.receive(r, p.from.member(k, s_.size), letters_[taken_[k]].sent);
  }

  // 2. Combine, chunk by chunk, in the order of the set. The result is appended to the payloads.
  constexpr bool reduce(rank_t r) {
    progress& at = ranks_[r];
    primitive const& p = at.current;
    for (std::int32_t i = 0; i < p.target.count; ++i) {
      std::int32_t sum = undefined;
      for (std::int32_t k = 0; k < p.from.count; ++k) {
        rank_t const peer = p.from.member(k, s_.size);
        std::int32_t part = undefined;
        if (peer != r) part = payload_[letters_[taken_[k]].payload + i];
        else if (!read(r, p.operand.where, operand_chunk(p, i), part)) return false;
        if (k == 0) {
          sum = p.from.count == 1 ? part : values_.begin(part);
          continue;
        }
        if (fault const f = values_.add(sum, part); f != fault::none)
          return fail(f, r, at.step, peer, values_.chunk_of(part));
        if (s_.keeps_order && !values_.ascending(sum))
          return fail(fault::wrong_order, r, at.step, peer, values_.chunk_of(part));
      }
      if (p.from.count > 1) values_.end(sum);
      payload_.push(sum);
      bool const is_complete = values_.count(sum) == s_.size;
      if (s_.prefix ? p.complete : s_.size > 1 && is_complete != p.complete)
        return fail(fault::incomplete, r, at.step, no_rank, values_.chunk_of(sum));
    }
    return true;
  }

  // A step without `from`: the result is the operand, or every peer gets a run of its own.
  constexpr bool send_operand(rank_t r) {
    primitive const& p = ranks_[r].current;
    run_of_values whole = {payload_.size(), p.operand.count};
    bool const has_own_runs = p.operand.per_peer != 0;
    if (foreign_count(p.to, r, s_.size) == 0 && !p.store) return true;
    if (!has_own_runs && !load_operand(r, p.operand.first_for(0, s_.chunks))) return false;
    if (p.store && !store(r, 0, whole, true)) return false;
    for (std::int32_t k = 0; k < p.to.count; ++k) {
      if (!sends(r, p, k)) continue;
      std::int32_t const first = p.operand.first_for(k, s_.chunks);
      if (has_own_runs) {
        whole.payload = payload_.size();
        if (!load_operand(r, first)) return false;
      }
      if (!send(r, k, whole, first)) return false;
    }
    return true;
  }

  // One member of `from` in a step that does not reduce: a message, or a copy of the operand.
  constexpr bool pass_on(rank_t r, std::int32_t k, run_of_values& result) {
    primitive const& p = ranks_[r].current;
    rank_t const peer = p.from.member(k, s_.size);
    bool const is_operand = peer == r;
    result.payload = is_operand ? payload_.size() : letters_[taken_[k]].payload;
    if (is_operand && !load_operand(r, p.operand.first_for(0, s_.chunks))) return false;
    if (!p.store) return true;
    if (!is_operand) past_.consider(peer, letters_[taken_[k]].sent);
    bool const stored = store(r, k, result, is_operand);
    past_.forget();
    return stored;
  }

  constexpr bool send_all(rank_t r, run_of_values values) {
    primitive const& p = ranks_[r].current;
    for (std::int32_t k = 0; k < p.to.count; ++k)
      if (p.to.member(k, s_.size) != r && !send(r, k, values, -1)) return false;
    return true;
  }

  // 4. Send to the k-th peer of `to`. `operand_first` is where in the operand's buffer the payload
  // lies, or -1 if it does not lie there.
  constexpr bool send(rank_t r, std::int32_t k, run_of_values values, std::int32_t operand_first) {
    progress& at = ranks_[r];
    primitive const& p = at.current;
    rank_t const peer = p.to.member(k, s_.size);
    if (p.push && !push(r, peer, values)) return false;
    // Executors copy what is sent peer by peer: the run of a later one when its turn has come.
    bool const is_early = p.from.empty() && p.operand.per_peer != 0 && p.copy && k + 1 < p.to.count;
    std::int32_t const id = letters_.post({.sender = r,
                                           .receiver = peer,
                                           .sent_at = at.step,
                                           .payload = values.payload,
                                           .count = values.count,
                                           .round = at.round,
                                           .sent = past_.send(r, is_early)});
    ++at.messages;
    at.chunks += values.count;
    if (p.copy) return true;
    // A transport may choose to read at the operand or at the stored result: neither may change.
    for (std::int32_t i = 0; i < values.count; ++i) {
      if (operand_first >= 0)
        memory_.lend(memory_.cell_of(r, p.operand.where, p.operand.chunk(operand_first, i, s_.chunks)), id);
      if (p.store) memory_.lend(memory_.cell_of(r, p.target.where, target_chunk(p, 0, i)), id);
    }
    return true;
  }

  // Stores straight into the target of the step in which `peer` will take the next message.
  constexpr bool push(rank_t r, rank_t peer, run_of_values values) {
    progress const& at = ranks_[r];
    if (!past_.knows(r, peer, 0)) return fail(fault::push_before_begin, r, at.step, peer);
    std::int32_t index = ranks_[peer].step;
    primitive to{};
    std::int32_t k = -1;
    for (std::int32_t ahead = letters_.in_flight(r, peer); index < ranks_[peer].step_count; ++index) {
      to = s_.step(s_.of(peer), index);
      k = to.from.position(r, s_.size);
      if (k >= 0 && ahead-- == 0) break;
    }
    if (index == ranks_[peer].step_count) return fail(fault::leftover_message, r, at.step, peer);
    found_.peer_step = index;
    if (fault const f = check_step(s_, peer, to); f != fault::none) return fail(f, peer, index);
    std::int32_t const first = to.target.first_for(k, s_.chunks);
    region const& own = at.current.target;
    // One run on both sides: a push is one store to where the receiver's target begins.
    if (to.reduce || !to.store || to.target.where != own.where || first != own.first_for(0, s_.chunks) ||
        to.target.count != values.count || !own.is_one_run() || !to.target.is_one_run())
      return fail(fault::push_not_received, r, at.step, peer);
    for (std::int32_t i = 0; i < values.count; ++i) {
      std::int32_t const chunk = first + i;
      std::int32_t const cell = memory_.cell_of(peer, to.target.where, chunk);
      conflict const c = memory_.push(r, at.step, peer, cell, payload_[values.payload + i], letters_.next());
      if (c.what != fault::none) return report(c, r, at.step, peer, chunk);
    }
    found_.peer_step = -1;
    return true;
  }

  constexpr bool read(rank_t r, place where, std::int32_t chunk, std::int32_t& value) {
    std::int32_t const cell = memory_.cell_of(r, where, chunk);
    fault f = memory_.read(r, ranks_[r].step, cell);
    // Executors prepare what is read from the input.
    bool const prepares = s_.from_all && where == place::input;
    if (prepares && memory_.is_kept(ranks_[r].step, cell)) f = fault::prepared_twice;
    value = memory_.value(cell);
    return f == fault::none || fail(f, r, ranks_[r].step, no_rank, chunk);
  }

  constexpr bool load_operand(rank_t r, std::int32_t first) {
    primitive const& p = ranks_[r].current;
    for (std::int32_t i = 0; i < p.operand.count; ++i) {
      std::int32_t value = undefined;
      if (!read(r, p.operand.where, p.operand.chunk(first, i, s_.chunks), value)) return false;
      payload_.push(value);
    }
    return true;
  }

  // 3. Store the k-th result. `from_operand`: it was made from the operand, position by position.
  constexpr bool store(rank_t r, std::int32_t k, run_of_values values, bool from_operand) {
    progress const& at = ranks_[r];
    primitive const& p = at.current;
    for (std::int32_t i = 0; i < values.count; ++i) {
      std::int32_t const chunk = target_chunk(p, k, i);
      std::int32_t const stored = values_.chunk_of(payload_[values.payload + i]);
      if (s_.size_class(stored) != s_.size_class(chunk))
        return fail(fault::wrong_size, r, at.step, no_rank, stored);
      std::int32_t const cell = memory_.cell_of(r, p.target.where, chunk);
      std::int32_t const twin = from_operand ? memory_.cell_of(r, p.operand.where, operand_chunk(p, i)) : -1;
      conflict const c = memory_.write(r, at.step, cell, payload_[values.payload + i], twin);
      if (c.what != fault::none) return report(c, r, at.step, no_rank, chunk);
    }
    return true;
  }

  // A message in danger is reported where the remedy belongs: at the step that sends it.
  constexpr bool report(conflict const& c, rank_t rank, std::int32_t step, rank_t peer, std::int32_t chunk) {
    if (c.mail < 0) return fail(c.what, rank, step, peer, chunk);
    message const& m = letters_[c.mail];
    found_.peer_step = m.taken_at;
    return fail(c.what, m.sender, m.sent_at, m.receiver, chunk);
  }

  table<std::int32_t> taken_;    // per member of `from`: the message taken in the current step
  table<std::int32_t> payload_;  // the values in messages and results
};

}  // namespace collx::inline abi_1::detail
