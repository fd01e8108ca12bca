// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a GPU: a team of threads (a block) performs the steps of one lane, and waits where it
// must. The text is the same for a kernel and for threads of a host. It never allocates, and every wait has
// an end.
//
// Lanes share a call by fragments: lane l of n does fragments l, l + n, ... Each has its own messages and its
// own staging memory, so lanes never wait for each other.
//
// A GPU's thread is slow, and a multiprocessor's 16 warps at the same few instructions are slower: the
// schedule is evaluated, and places are looked up, for several steps at once, by a thread each (lane_step). A
// step then mostly costs three syncs and one fence. All of it is inline but for what moves elements: an
// object whose address is known to a function that is called lies in memory, which the acquire of each
// message puts far away.
#pragma once

#include "collx/exec/lane_memory.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::exec {

// What follows a call that nothing follows; see perform_all_then().
struct no_epilogue {};

// The rule is that of step_machine.hpp: a step waits for all its messages and credits, then reads, combines,
// stores and sends. `Port` is a lane of a transport (transport/windows/lane_port.hpp).
template <bool Combines, class T, class Op, device::team Team, class Port>
class lane_machine : lane_traffic<Team, Port> {
  using traffic = lane_traffic<Team, Port>;
  using work = lane_work<Combines, T, Op, Team>;

 public:
  // All threads of a team make one, with the same arguments and one workspace, of which `failed` is 0.
  COLLX_HD_INLINE lane_machine(Team& team, Port const& port, lane_workspace& shared, chunk_map const& map,
                               Op const& op) noexcept
      : traffic(team, port, shared), map_(map), op_(op) {
    std::size_t const output_bytes = Combines ? map.common_output_bytes() : 0;
    bool const reached = output_bytes != 0 && port.reachable(map.output(), output_bytes);
    this->offer(reached ? map.output() : nullptr, output_bytes);
  }

  // Performs all fragments of this lane. Returns whether that worked; if not, the port knows why.
  template <schedule S>
  [[nodiscard]] COLLX_HD_INLINE bool perform_all() noexcept {
    auto const first = static_cast<std::size_t>(port_.lane()),
               lanes = static_cast<std::size_t>(port_.lanes());
    std::int32_t const count = S::step_count(map_.where());
    for (fragment_ = first; fragment_ < map_.fragments(); fragment_ += lanes)
      if (!perform_fragment<S>(count)) return false;
    team_.sync();  // a lane without a fragment has met nobody yet
    return this->drain();
  }

  // The same, and then after(i, value) for each element of the output that this lane has completed, by one
  // thread each: an epilogue fused into the call, while others still work on other elements. For contracts of
  // one block.
  template <schedule S, class After>
  [[nodiscard]] COLLX_HD_INLINE bool perform_all_then(After const& after) noexcept {
    if (!perform_all<S>()) return false;
    T const* const result = reinterpret_cast<T const*>(map_.output());
    auto const threads = static_cast<std::size_t>(team_.size());
    for (auto f = static_cast<std::size_t>(port_.lane()); f < map_.fragments();
         f += static_cast<std::size_t>(port_.lanes())) {
      extent const part = map_.elements(f);
      for (std::size_t i = static_cast<std::size_t>(team_.rank()); i < part.count; i += threads)
        after(part.begin + i, result[part.begin + i]);
    }
    return true;
  }

  // Once over a schedule that moves nothing, a barrier, of this lane alone; what any thread of its namesakes
  // did before is then visible to all threads of the lane. leave() after the last one.
  template <schedule S>
  [[nodiscard]] COLLX_HD_INLINE bool meet() noexcept {
    return perform_fragment<S>(S::step_count(map_.where()));
  }
  COLLX_HD_INLINE void leave() noexcept {
    team_.sync();  // what was counted is kept
    this->keep_count();
  }

 private:
  using traffic::credits, traffic::each, traffic::fragment_, traffic::half_is_free, traffic::hand_over,
      traffic::in_parts, traffic::message, traffic::message_of_packets, traffic::port_, traffic::rank;
  using traffic::shared_, traffic::size, traffic::stage, traffic::step_, traffic::team_, traffic::wait;
  using typename traffic::duty;

  template <schedule S>
  [[nodiscard]] COLLX_HD_INLINE bool perform_fragment(std::int32_t count) noexcept {
    place_ = {&map_, fragment_, port_.scratch()};
    for (std::int32_t begin = 0; begin < count; begin += lane_steps_at_once) {
      std::int32_t const rest = count - begin;
      std::int32_t const some = rest < lane_steps_at_once ? rest : lane_steps_at_once;
      team_.sync();  // nobody looks at the last ones any more
      (void)each(some, duty::messages, [&](std::int32_t i) {
        find_out(shared_.steps[i], S::step(map_.where(), begin + i));
        return true;
      });
      COLLX_NO_UNROLL
      for (std::int32_t i = 0; i < some; ++i) {
        step_ = begin + i;
        team_.sync();  // nor at what the last step has left in the tables
        if (!perform(shared_.steps[i])) return false;
      }
    }
    this->next_fragment();
    return true;
  }

  // By one thread.
  COLLX_HD_INLINE void find_out(lane_step& now, primitive const& step) noexcept {
    now.does = step;
    now.own = -1;
    for (std::int32_t k = 0; step.reduce && k < step.from.count; ++k)
      if (step.from.member(k, size()) == rank()) now.own = k;
    COLLX_NO_UNROLL
    for (int i = 0; i < 2; ++i) {
      run const found = place_.find(i == 0 ? now.does.operand : now.does.target, 0);
      (i == 0 ? now.operand : now.target) = found;
    }
    bool const originates = step.from.empty(), sends_operand = originates && !sent_from_target(step);
    region const& sent = originates ? sent_without_fan_in(now.does) : now.does.target;
    bool const direct =
        (originates || step.store) && goes_directly(sends_operand ? now.operand : now.target, sent.where,
                                                    step, originates && prepares_now(step));
    now.stages = !step.to.empty() && (!direct || (originates && sent.per_peer != 0));
  }

  // By all threads: what is needed is waited for, elements are moved, what was taken is given back and what
  // was made is sent.
  [[nodiscard]] COLLX_HD_INLINE bool perform(lane_step const& now) noexcept {
    primitive const& step = now.does;
    bool const originates = step.from.empty(), raw = is_unprepared(step.operand);
    if (originates && step.store) {
      work::copy_locally(team_, now, place_, now.target, op_, raw, size());
      if (step.to.empty()) return true;
      team_.sync();
    }
    // Messages of different lengths, each looked up by a thread.
    bool const differ = !step.reduce && step.from.count > 1;
    if (differ) {
      (void)each(step.from.count, duty::messages, [&](std::int32_t k) {
        shared_.targets[k] = place_.find(step.target, k);
        return true;
      });
      team_.sync();
    }
    bool const whole = step.reduce && now.target.whole && (now.own < 0 || now.operand.whole);
    std::byte* const staged = !originates && now.stages ? stage(now.target.bytes) : nullptr;
    int const destinations =
        whole ? work::note_destinations(team_, shared_, now, now.target.data, staged, now.operand.data) : 0;
    bool const ready =
        wait([&] { return messages(now, differ) && credits(step.to) && (!now.stages || half_is_free()); });
    if (!ready) return false;
    if (originates) {
      give_operands(now);
    } else {
      bool const pushes = whole && may_push(step, now.target);
      if (whole) combine(now, pushes ? note_pushes(step, now.target) : destinations, raw);
      else if (step.reduce)
        work::combine_pieces(team_, shared_, op_, now, place_, staged, size(), raw ? now.own : -1);
      else store_all(now, differ, staged, raw);
      give_result(now, staged, pushes);
    }
    team_.sync();
    hand_over(
        step.from, step.to, [&](std::int32_t k) { return !skips(target_of(now, differ, k)); },
        [&](std::int32_t k) { return port_.packs(target_of(now, differ, k).bytes); });
    return true;
  }

  // ---- waiting -------------------------------------------------------------------------------------

  // Of a fan-in that is not a reduction every message has its own.
  [[nodiscard]] COLLX_HD_INLINE run target_of(lane_step const& now, bool differ,
                                              std::int32_t k) const noexcept {
    return differ ? shared_.targets[k] : now.target;
  }

  [[nodiscard]] COLLX_HD_INLINE bool messages(lane_step const& now, bool differ) noexcept {
    primitive const& step = now.does;
    bool const came = each(step.from.count, duty::messages, [&](std::int32_t k) {
      rank_t const peer = step.from.member(k, size());
      run const target = target_of(now, differ, k);
      if (peer == rank() || skips(target) || port_.packs(target.bytes)) return true;
      return message(peer, k, target.bytes, step.push, offset_of(target.data) + target.bytes);
    });
    if (!came || !port_.has_packets()) return came;
    return in_parts(step.from.count, [&](team_part const& part, std::int32_t k) {
      rank_t const peer = step.from.member(k, size());
      run const target = target_of(now, differ, k);
      if (peer == rank() || !port_.packs(target.bytes)) return true;
      return message_of_packets(part, peer, k, target.bytes);
    });
  }

  // ---- moving --------------------------------------------------------------------------------------

  COLLX_HD_INLINE void combine(lane_step const& now, int destinations, bool raw) noexcept {
    work::combine(team_, shared_, op_, destinations, now.does.from.count, now.target.bytes, now.does.complete,
                  size(), raw ? now.own : -1);
  }

  // Messages that are results themselves: stores each, and stages the only one if it goes on.
  COLLX_HD_INLINE void store_all(lane_step const& now, bool differ, std::byte* staged, bool raw) noexcept {
    primitive const& step = now.does;
    COLLX_NO_UNROLL
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      run const target = target_of(now, differ, k);
      if (step.from.member(k, size()) == rank()) {
        if (step.store) work::copy_locally(team_, now, place_, target, op_, raw, size());
        continue;
      }
      if (skips(target)) continue;
      std::byte const* const came = shared_.sources[k];
      bool const stores = step.store && target.whole;
      if (stores || staged != nullptr)
        work::copy(team_, stores ? target.data : staged, stores ? staged : nullptr, came, target.bytes, op_,
                   false, size());
      if (step.store && !target.whole) work::unpack(team_, place_, step.target, target, came, op_, size());
    }
  }

  // ---- what is sent --------------------------------------------------------------------------------

  // A result, from where it was staged or lies, or as it was stored to each peer's output.
  COLLX_HD_INLINE void give_result(lane_step const& now, std::byte const* staged, bool pushes) noexcept {
    primitive const& step = now.does;
    (void)each(step.to.count, duty::messages, [&](std::int32_t k) {
      rank_t const peer = step.to.member(k, size());
      outgoing sent{staged != nullptr ? staged : now.target.data,
                    now.target.bytes,
                    !skips(now.target),
                    staged == nullptr,
                    false,
                    false};
      if (pushes && peer != rank())
        sent = {pushed_to(step, peer, k, now.target.data), now.target.bytes, true, false, true, false};
      shared_.given[k] = sent;
      return true;
    });
  }

  // Operands, from where they lie, or staged: once for all peers or for each.
  COLLX_HD_INLINE void give_operands(lane_step const& now) noexcept {
    primitive const& step = now.does;
    bool const from_target = sent_from_target(step), prepares = prepares_now(step);
    region const& sent = sent_without_fan_in(step);
    bool const differ = sent.per_peer != 0;
    (void)each(step.to.count, duty::messages, [&](std::int32_t k) {
      run const operand = differ ? place_.find(sent, k) : from_target ? now.target : now.operand;
      bool const lends = goes_directly(operand, sent.where, step, prepares);
      shared_.targets[k] = operand;
      shared_.given[k] = {operand.data, operand.bytes, !skips(operand), lends, false, !lends};
      return true;
    });
    if (!now.stages) return;
    team_.sync();
    std::byte* staged = nullptr;
    COLLX_NO_UNROLL
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      outgoing const& given = shared_.given[k];
      if (step.to.member(k, size()) == rank() || !given.is_due || given.lends) continue;
      if (staged == nullptr || differ) {
        staged = stage(given.bytes);
        work::pack(team_, place_, sent, shared_.targets[k], staged, op_, prepares, size());
      }
      if (team_.rank() == 0) shared_.destinations[k] = staged;
    }
  }

  // ---- what a step is about ------------------------------------------------------------------------

  [[nodiscard]] COLLX_HD_INLINE bool skips(run const& sent) const noexcept {
    return map_.skips_empty() && sent.bytes == 0;
  }

  // Contributions that the operator must prepare first; see step_machine.hpp.
  [[nodiscard]] COLLX_HD_INLINE bool is_unprepared(region const& r) const noexcept {
    return Combines && prepares<Op, T> && r.where == place::input;
  }
  // A contribution that was prepared where it was stored is sent from there.
  [[nodiscard]] COLLX_HD_INLINE bool sent_from_target(primitive const& step) const noexcept {
    return step.store && is_unprepared(step.operand);
  }
  [[nodiscard]] COLLX_HD_INLINE region const& sent_without_fan_in(primitive const& step) const noexcept {
    return sent_from_target(step) ? step.target : step.operand;
  }
  [[nodiscard]] COLLX_HD_INLINE bool prepares_now(primitive const& step) const noexcept {
    return is_unprepared(step.operand) && !step.store;
  }

  // Whether a payload can be sent from where it lies.
  [[nodiscard]] COLLX_HD_INLINE bool goes_directly(run const& sent, place where, primitive const& step,
                                                   bool unprepared) const noexcept {
    if (!sent.whole || unprepared) return false;
    if (port_.packs(sent.bytes)) return true;
    bool const stays = !step.copy || (where == place::input && !map_.in_place());
    return stays && where != place::scratch && port_.reachable(sent.data, sent.bytes);
  }

  // ---- pushing: results stored where their receivers want them ---------------------------------------

  // In the output, in bytes. Outputs are numbers here: this rank may have none itself.
  [[nodiscard]] COLLX_HD_INLINE std::size_t offset_of(std::byte const* mine) const noexcept {
    return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(map_.output());
  }

  // The place in a fan-in of the message from a peer; -1: it sends none. Fan-ins and fan-outs are mostly
  // alike.
  [[nodiscard]] COLLX_HD_INLINE std::int32_t place_of(peer_set const& from, rank_t peer,
                                                      std::int32_t hint) const noexcept {
    if (hint < from.count && from.member(hint, size()) == peer) return hint;
    for (std::int32_t k = 0; k < from.count; ++k)
      if (from.member(k, size()) == peer) return k;
    return -1;
  }

  // Whether all receivers of a result have said, with a message of this step, where their outputs are, and
  // these are long enough. That message is also why nobody is in the way there: it shows that its sender has
  // come to this call, and the verifier has proved the rest of steps that push.
  [[nodiscard]] COLLX_HD_INLINE bool may_push(primitive const& step, run const& result) const noexcept {
    if (!step.push || step.to.empty() || step.target.where != place::output || port_.packs(result.bytes))
      return false;
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, size());
      if (peer == rank()) continue;
      std::int32_t const at = place_of(step.from, peer, k);
      if (at < 0 || shared_.outputs[at] == nullptr) return false;
    }
    return true;
  }

  [[nodiscard]] COLLX_HD_INLINE std::byte* pushed_to(primitive const& step, rank_t peer, std::int32_t hint,
                                                     std::byte* mine) const noexcept {
    return shared_.outputs[place_of(step.from, peer, hint)] + offset_of(mine);
  }

  // The target and the places in peers' outputs as destinations. Returns how many.
  [[nodiscard]] COLLX_HD_INLINE int note_pushes(primitive const& step, run const& target) noexcept {
    int count = step.store ? 1 : 0;
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, size());
      if (peer == rank()) continue;
      if (team_.rank() == 0) shared_.destinations[count] = pushed_to(step, peer, k, target.data);
      ++count;
    }
    team_.sync();
    return count;
  }

  chunk_map const& map_;
  Op const& op_;
  lane_place place_{};
};

}  // namespace collx::inline abi_1::exec
