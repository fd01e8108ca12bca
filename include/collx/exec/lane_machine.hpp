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

#include "collx/exec/lane_sends.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::exec {

// What follows a call that nothing follows; see perform_all_then().
struct no_epilogue {};

// The rule is that of step_machine.hpp: a step waits for all its messages and credits, then reads, combines,
// stores and sends. `Port` is a lane of a transport (transport/windows/lane_port.hpp).
template <bool Combines, class T, class Op, device::team Team, class Port>
class lane_machine : lane_sends<Combines, T, Op, Team, Port> {
  using traffic = lane_traffic<Team, Port>;
  using sends = lane_sends<Combines, T, Op, Team, Port>;
  using work = lane_work<Combines, T, Op, Team>;

 public:
  // All threads of a team make one, with the same arguments and one workspace, of which `failed` is 0 by the
  // next sync.
  COLLX_HD_INLINE lane_machine(Team& team, Port const& port, lane_workspace& shared, chunk_map const& map,
                               Op const& op) noexcept
      : sends(team, port, shared, map, op) {
    std::size_t const output_bytes = Combines ? map.common_output_bytes() : 0;
    bool const reached = output_bytes != 0 && port.reachable(map.output(), output_bytes);
    this->offer(reached ? map.output() : nullptr, output_bytes);
  }

  // Finds out about the first steps, while memory answers (may_begin). A sync follows, and what performs
  // them.
  template <schedule S>
  COLLX_HD_INLINE void look_ahead() noexcept {
    fragment_ = static_cast<std::uint32_t>(port_.lane());
    if (steps_max<S>() != 0 || fragment_ >= map_.fragments()) return;
    find_some<S>(0, S::step_count(map_.where()));
    has_looked_ahead_ = true;
  }

  // Performs all fragments of this lane. Returns whether that worked; if not, the port knows why.
  template <schedule S>
  [[nodiscard]] COLLX_HD_INLINE bool perform_all() noexcept {
    auto const first = static_cast<std::uint32_t>(port_.lane()),
               lanes = static_cast<std::uint32_t>(port_.lanes());
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
  using sends::carried, sends::give_operand, sends::give_result, sends::goes_directly, sends::here,
      sends::is_unprepared, sends::map_, sends::offset_of, sends::op_, sends::prepares_now, sends::push,
      sends::sent_from_target, sends::skips, sends::stage_operands;
  using traffic::credits, traffic::each, traffic::each_apart, traffic::fragment_, traffic::half_is_free,
      traffic::hand_over, traffic::in_parts, traffic::message, traffic::message_of_packets, traffic::port_,
      traffic::rank, traffic::shared_, traffic::size, traffic::stage, traffic::team_, traffic::wait;
  using typename traffic::duty;

  template <schedule S>
  [[nodiscard]] COLLX_HD_INLINE bool perform_fragment(std::int32_t count) noexcept {
    bool done = true;
    if constexpr (steps_max<S>() != 0) {
      static_assert(keeps_to_steps_max<S>(), "more steps than steps_max says, which may be inherited");
      done = perform_from<S, 0>(count);
    } else done = perform_found<S>(count);
    if (done) this->next_fragment();
    return done;
  }

  template <schedule S>
  [[nodiscard]] COLLX_HD_INLINE bool perform_found(std::int32_t count) noexcept {
    COLLX_NO_UNROLL
    for (std::int32_t number = 0; number < count; ++number) {
      std::int32_t const place = number % lane_steps_at_once;
      if (place == 0 && !has_looked_ahead_) {
        team_.sync();  // nobody looks at the last ones any more
        find_some<S>(number, count);
      }
      has_looked_ahead_ = false;
      begin_step(number);
      team_.sync();  // nor at what the last step has left in the tables
      if (!perform(shared_.steps[place])) return false;
    }
    return true;
  }

  // Of so few steps that each is compiled by itself, all that are left: of most, nearly all is known then,
  // and every thread finds out the rest for itself.
  template <schedule S, std::int32_t Step>
  [[nodiscard]] COLLX_HD_INLINE bool perform_from(std::int32_t count) noexcept {
    if (Step >= count) return true;
    begin_step(Step);
    problem const where = map_.where();
    COLLX_ASSUME(where.size > 0);  // so that everybody is somebody
    lane_step now{};
    now.does = S::step(where, Step);
    now.operand = here().find(now.does.operand, 0);
    now.target = here().find(now.does.target, 0);
    find_out_more(now);
    team_.sync();  // nobody looks at what the last step has left in the tables
    if (!perform(now)) return false;
    if constexpr (Step + 1 < steps_max<S>()) return perform_from<S, Step + 1>(count);
    else return true;
  }

  // A sync follows.
  COLLX_HD_INLINE void begin_step(std::int32_t number) noexcept {
    if (team_.rank() == 0) shared_.step = number;
  }

  // About the next of `count` steps, from `begin` on.
  template <schedule S>
  COLLX_HD_INLINE void find_some(std::int32_t begin, std::int32_t count) noexcept {
    std::int32_t const rest = count - begin;
    each_apart(rest < lane_steps_at_once ? rest : lane_steps_at_once,
               [&](std::int32_t i) { find_out(shared_.steps[i], S::step(map_.where(), begin + i)); });
  }

  // By one thread.
  COLLX_HD_INLINE void find_out(lane_step& now, primitive const& step) noexcept {
    now.does = step;
    COLLX_NO_UNROLL
    for (int i = 0; i < 2; ++i) {
      run const found = here().find(i == 0 ? now.does.operand : now.does.target, 0);
      (i == 0 ? now.operand : now.target) = found;
    }
    find_out_more(now);
  }
  // What follows from it, and from where its chunks lie.
  COLLX_HD_INLINE void find_out_more(lane_step& now) noexcept {
    primitive const& step = now.does;
    now.own = step.reduce ? step.from.position(rank(), size()) : -1;
    bool const originates = step.from.empty(), sends_operand = originates && !sent_from_target(step);
    // By value, as all that is chosen of a step: what it may lie at could not be kept in registers.
    place const where = sends_operand ? step.operand.where : step.target.where;
    bool const differs = originates && (sends_operand ? step.operand.per_peer : step.target.per_peer) != 0;
    bool const direct =
        (originates || step.store) &&
        (sends_operand ? goes_directly(now.operand, where, step, prepares_now(step))
                       : goes_directly(now.target, where, step, originates && prepares_now(step)));
    now.stages = !step.to.empty() && (!direct || differs);
  }

  // By all threads: what is needed is waited for, elements are moved, what was taken is given back and what
  // was made is sent.
  [[nodiscard]] COLLX_HD_INLINE bool perform(lane_step const& now) noexcept {
    primitive const& step = now.does;
    bool const originates = step.from.empty(), raw = is_unprepared(step.operand);
    if (originates && step.store) {
      copy_locally(now, now.target, raw);
      if (step.to.empty()) return true;
    }
    // Messages of different lengths, each looked up by a thread.
    bool const differ = !step.reduce && step.from.count > 1;
    if (differ) {
      (void)each(step.from.count, duty::messages, [&](std::int32_t k) {
        shared_.targets[k] = here().find(step.target, k);
        return true;
      });
      team_.sync();
    }
    bool const whole = step.reduce && now.target.whole && (now.own < 0 || now.operand.whole);
    std::byte* const staged = !originates && now.stages ? stage(now.target.bytes) : nullptr;
    int const destinations = whole ? work::note_destinations(team_, shared_, step.store, now.own,
                                                             now.target.data, staged, now.operand.data)
                                   : 0;
    bool const ready = wait([&] {
      return messages(now, differ) &&
             credits(step.to,
                     [&](std::int32_t k, outgoing& sent) {
                       if (originates) give_operand(now, k, sent);
                       else give_result(now, staged, sent);
                       if (sent.written) this->write(sent, sent.data);
                     }) &&
             (!now.stages || half_is_free());
    });
    if (!ready) return false;
    if (originates) {
      if (now.stages) stage_operands(now);
    } else {
      int const pushed = whole ? push(step, now.target) : 0;
      if (whole) combine(now, pushed != 0 ? pushed : destinations, raw);
      else if (step.reduce) combine_pieces(now, staged, raw);
      else store_all(now, differ, staged, raw);
    }
    if (!originates || now.stages) team_.sync();  // else nothing was moved since all waited
    hand_over(step.from.count, step.to.count);
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
      carriage const by = carried(peer, target);
      shared_.from[k] = {peer, by};
      return by != carriage::letter ||
             message(peer, k, target.bytes, step.push, offset_of(target.data) + target.bytes);
    });
    if (!came || !port_.has_packets()) return came;
    return in_parts(step.from.count, [&](team_part const& part, std::int32_t k) {
      rank_t const peer = step.from.member(k, size());
      run const target = target_of(now, differ, k);
      if (carried(peer, target) != carriage::packets) return true;
      return message_of_packets(part, peer, k, target.bytes);
    });
  }

  // ---- moving --------------------------------------------------------------------------------------

  COLLX_HD_INLINE void combine(lane_step const& now, int destinations, bool raw) noexcept {
    work::combine(team_, shared_, op_, destinations, now.does.from.count, now.target.bytes, now.does.complete,
                  size(), raw ? now.own : -1);
  }

  // By value: a step that threads have for themselves would lie in memory if its address were known
  // elsewhere.
  COLLX_HD_INLINE void combine_pieces(lane_step const& now, std::byte* staged, bool raw) noexcept {
    primitive const& step = now.does;
    work::combine_pieces(team_, shared_, op_, here(), step.operand, now.operand, step.target, now.target,
                         step.from.count, now.own, step.store, step.complete, staged, size(), raw);
  }
  COLLX_HD_INLINE void copy_locally(lane_step const& now, run const& to, bool raw) noexcept {
    work::copy_locally(team_, here(), now.does.operand, now.operand, now.does.target, to, op_, raw, size());
  }

  // Messages that are results themselves: stores each, and stages the only one if it goes on.
  COLLX_HD_INLINE void store_all(lane_step const& now, bool differ, std::byte* staged, bool raw) noexcept {
    primitive const& step = now.does;
    COLLX_NO_UNROLL
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      run const target = target_of(now, differ, k);
      if (step.from.member(k, size()) == rank()) {
        if (step.store) copy_locally(now, target, raw);
        continue;
      }
      if (skips(target)) continue;
      std::byte const* const came = shared_.sources[k];
      bool const stores = step.store && target.whole;
      if (stores || staged != nullptr)
        work::copy(team_, stores ? target.data : staged, stores ? staged : nullptr, came, target.bytes, op_,
                   false, size());
      if (step.store && !target.whole) work::unpack(team_, here(), step.target, target, came, op_, size());
    }
  }

  bool has_looked_ahead_ = false;
};

}  // namespace collx::inline abi_1::exec
