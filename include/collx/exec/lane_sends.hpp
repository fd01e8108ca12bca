// SPDX-License-Identifier: Apache-2.0
// What a lane of a GPU sends in a step: from where a payload goes, and how it travels. Used by
// lane_machine.hpp.
#pragma once

#include "collx/exec/lane_memory.hpp"

namespace collx::inline abi_1::exec {

template <bool Combines, class T, class Op, device::team Team, class Port>
class lane_sends : public lane_traffic<Team, Port> {
  using traffic = lane_traffic<Team, Port>;
  using work = lane_work<Combines, T, Op, Team>;

 protected:
  using traffic::each, traffic::fragment_, traffic::port_, traffic::rank, traffic::shared_, traffic::size,
      traffic::stage, traffic::team_;
  using typename traffic::duty;

  COLLX_HD_INLINE lane_sends(Team& team, Port const& port, lane_workspace& shared, chunk_map const& map,
                             Op const& op) noexcept
      : traffic(team, port, shared), map_(map), op_(op) {}

  // Where chunks of the fragment lie. Made anew each time: registers are scarce.
  [[nodiscard]] COLLX_HD_INLINE lane_place here() const noexcept {
    return {&map_, fragment_, port_.scratch()};
  }

  // ---- what a step is about ------------------------------------------------------------------------

  [[nodiscard]] COLLX_HD_INLINE bool skips(run const& sent) const noexcept {
    return map_.skips_empty() && sent.bytes == 0;
  }
  // How it travels between this rank and a peer: both find the same.
  [[nodiscard]] COLLX_HD_INLINE carriage carried(rank_t peer, run const& sent) const noexcept {
    return peer == rank() || skips(sent) ? carriage::nothing
           : port_.packs(sent.bytes)     ? carriage::packets
                                         : carriage::letter;
  }

  // Contributions that the operator must prepare first; see step_machine.hpp.
  [[nodiscard]] COLLX_HD_INLINE bool is_unprepared(region const& r) const noexcept {
    return Combines && prepares<Op, T> && r.where == place::input;
  }
  // A contribution that was prepared where it was stored is sent from there.
  [[nodiscard]] COLLX_HD_INLINE bool sent_from_target(primitive const& step) const noexcept {
    return step.store && is_unprepared(step.operand);
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

  // ---- what is sent --------------------------------------------------------------------------------

  // A result, from where it was staged or lies. Whether it is pushed instead, messages say that are yet to
  // come.
  COLLX_HD_INLINE void give_result(lane_step const& now, std::byte const* staged, outgoing& sent) noexcept {
    sent.data = staged != nullptr ? staged : now.target.data;
    sent.bytes = now.target.bytes;
    sent.by = carried(sent.peer, now.target);
    sent.lends = staged == nullptr;
    sent.written = sent.by == carriage::letter && !now.does.push;
  }
  // An operand, from where it lies, if it can be, or it will be staged.
  COLLX_HD_INLINE void give_operand(lane_step const& now, std::int32_t k, outgoing& sent) noexcept {
    primitive const& step = now.does;
    region const what = sent_without_fan_in(step);
    run const operand = what.per_peer != 0       ? here().find(what, k)
                        : sent_from_target(step) ? now.target
                                                 : now.operand;
    sent.data = operand.data;
    sent.bytes = operand.bytes;
    sent.by = carried(sent.peer, operand);
    sent.lends = goes_directly(operand, what.where, step, prepares_now(step));
    sent.staged = !sent.lends;
    sent.written = sent.by == carriage::letter && sent.lends;
    if (sent.staged) shared_.targets[k] = operand;
  }
  // Once for all peers or for each.
  COLLX_HD_INLINE void stage_operands(lane_step const& now) noexcept {
    primitive const& step = now.does;
    region const what = sent_without_fan_in(step);
    std::byte* staged = nullptr;
    COLLX_NO_UNROLL
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      outgoing const& given = shared_.given[k];
      if (given.by == carriage::nothing || !given.staged) continue;
      if (staged == nullptr || what.per_peer != 0) {
        staged = stage(given.bytes);
        work::pack(team_, here(), what, shared_.targets[k], staged, op_, prepares_now(step), size());
      }
      if (team_.rank() == 0) shared_.destinations[k] = staged;
    }
  }

  // ---- pushing: results stored where their receivers want them ---------------------------------------

  // In the output, in bytes. Outputs are numbers here: this rank may have none itself.
  [[nodiscard]] COLLX_HD_INLINE std::size_t offset_of(std::byte const* mine) const noexcept {
    return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(map_.output());
  }

  // Has a result stored where its receivers want it, if all of them have said, with a message of this step,
  // where their outputs are, and these are long enough. That message is also why nobody is in the way there:
  // it shows that its sender has come to this call, and the verifier has proved the rest of steps that push.
  // Returns how many destinations there are, in the workspace; 0: nothing is pushed.
  [[nodiscard]] COLLX_HD_INLINE int push(primitive const& step, run const& result) noexcept {
    if (!step.push || step.to.empty() || step.target.where != place::output || port_.packs(result.bytes))
      return 0;
    return push_to(team_, shared_, step.from, step.to, rank(), size(), offset_of(result.data), step.store);
  }

  chunk_map const& map_;
  Op const& op_;

 private:
  // What is sent where nothing was received.
  [[nodiscard]] COLLX_HD_INLINE region sent_without_fan_in(primitive const& step) const noexcept {
    if (sent_from_target(step)) return step.target;
    return step.operand;
  }

  // Out of line, and by value: few steps do that, and registers are scarce.
  COLLX_HD COLLX_NEVER_INLINE static int push_to(Team& team, lane_workspace& shared, peer_set from,
                                                 peer_set to, rank_t rank, rank_t size, std::size_t offset,
                                                 bool stores) noexcept {
    auto const output_of = [&](std::int32_t k) {
      std::int32_t const at = from.position(to.member(k, size), size);
      return at < 0 ? nullptr : shared.outputs[at];
    };
    for (std::int32_t k = 0; k < to.count; ++k)
      if (to.member(k, size) != rank && output_of(k) == nullptr) return 0;
    int count = stores ? 1 : 0;  // the target is noted already
    for (std::int32_t k = 0; k < to.count; ++k) {
      if (to.member(k, size) == rank) continue;
      std::byte* const there = output_of(k) + offset;
      if (team.rank() == 0) {
        outgoing& sent = shared.given[k];
        sent.data = there, sent.lends = false, sent.stored = true;
        shared.destinations[count] = there;
      }
      ++count;
    }
    team.sync();
    return count;
  }
};

}  // namespace collx::inline abi_1::exec
