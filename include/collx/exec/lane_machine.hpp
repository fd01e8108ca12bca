// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a GPU: a team of threads (a block) performs the steps of one lane, and waits where it
// must. The text is the same for a kernel and for threads of a host. It never allocates, and every wait has
// an end.
//
// Lanes share a call by fragments: lane l of n does fragments l, l + n, ... Each has its own messages and its
// own staging memory, so lanes never wait for each other.
#pragma once

#include "collx/device/combine.hpp"
#include "collx/exec/chunk_map.hpp"
#include "collx/exec/lane_traffic.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::exec {

// What a step does with a payload that goes on.
struct lane_plan {
  bool stages = false;  // it is written to `staged`
  std::byte* staged = nullptr;
  bool pushes = false;  // it is stored to the receivers' outputs, by this
};

// What follows a call that nothing follows; see perform_all_then().
struct no_epilogue {};

// The rule is that of step_machine.hpp: a step waits for all its messages and credits, then reads, combines,
// stores and sends. `Port` is a lane of a transport (transport/windows/lane_port.hpp).
template <bool Combines, class T, class Op, device::team Team, class Port>
class lane_machine : lane_traffic<Team, Port> {
  using traffic = lane_traffic<Team, Port>;

 public:
  // All threads of a team make one, with the same arguments and one workspace, of which `failed` is 0.
  COLLX_HD lane_machine(Team& team, Port const& port, lane_workspace& shared, chunk_map const& map,
                        Op const& op) noexcept
      : traffic(team, port, shared), map_(map), op_(op) {
    std::size_t const output_bytes = Combines ? map.common_output_bytes() : 0;
    bool const reached = output_bytes != 0 && port.reachable(map.output(), output_bytes);
    this->offer(reached ? map.output() : nullptr, output_bytes);
  }

  // Performs all fragments of this lane. Returns whether that worked; if not, the port knows why.
  template <schedule S>
  [[nodiscard]] COLLX_HD bool perform_all() noexcept {
    auto const first = static_cast<std::size_t>(port_.lane()),
               lanes = static_cast<std::size_t>(port_.lanes());
    for (fragment_ = first; fragment_ < map_.fragments(); fragment_ += lanes) {
      std::int32_t const count = S::step_count(map_.where());
      for (step_ = 0; step_ < count; ++step_)
        if (!perform(S::step(map_.where(), step_))) return false;
      this->next_fragment();
    }
    return this->drain();
  }

  // The same, and then after(i, value) for each element of the output that this lane has completed, by one
  // thread each: an epilogue fused into the call, while others still work on other elements. For contracts of
  // one block.
  template <schedule S, class After>
  [[nodiscard]] COLLX_HD bool perform_all_then(After const& after) noexcept {
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
  [[nodiscard]] COLLX_HD bool meet() noexcept {
    std::int32_t const count = S::step_count(map_.where());
    for (step_ = 0; step_ < count; ++step_)
      if (!perform(S::step(map_.where(), step_))) return false;
    this->next_fragment();
    return true;
  }
  COLLX_HD void leave() noexcept { this->keep_count(); }

 private:
  using traffic::consume, traffic::credits, traffic::fragment_, traffic::half_is_free, traffic::messages;
  using traffic::port_, traffic::rank, traffic::sees_to, traffic::send, traffic::shared_, traffic::size,
      traffic::stage;
  using traffic::step_, traffic::team_, traffic::unpack_all, traffic::wait;

  // What follows is out of line where it is long: kernels of all schedules share it.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool perform(primitive const& step) noexcept {
    bool const done = step.from.empty() ? originate(step) : step.reduce ? reduce(step) : relay(step);
    // Nobody writes to the workspace, or counts a message, that another thread still looks at.
    team_.sync();
    return done;
  }

  // Nothing to receive: store a local copy, send the operand; the k-th peer may get its own run.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool originate(primitive const& step) noexcept {
    bool const raw = is_unprepared(step.operand);
    if (step.store) copy_locally(step, 0, raw);
    if (step.to.empty()) return true;
    region const& sent = raw && step.store ? step.target : step.operand;
    bool const prepares_now = raw && !step.store;
    bool stages = false;
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      run const operand = find(sent, k);
      stages = stages || (!skips(operand) && !goes_directly(operand, sent.where, step, prepares_now));
    }
    if (!wait([&] { return credits(step.to) && (!stages || half_is_free()); })) return false;
    std::byte* staged = nullptr;
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      run const operand = find(sent, k);
      if (step.to.member(k, size()) == rank() || skips(operand)) continue;
      std::byte const* payload = operand.data;
      if (!goes_directly(operand, sent.where, step, prepares_now)) {
        if (staged == nullptr || sent.per_peer != 0) {
          staged = stage(operand.bytes);
          pack(sent, operand, staged, prepares_now);
        }
        payload = staged;
      }
      if (team_.rank() == 0) shared_.sources[k] = payload;
    }
    team_.sync();
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      run const operand = find(sent, k);
      if (skips(operand)) continue;
      std::byte const* const payload = shared_.sources[k];
      send(step.to.member(k, size()), k, payload, operand.bytes, operand.whole && payload == operand.data);
    }
    return true;
  }

  // Fan-in: every source in one pass, to the target and to staging at once.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool reduce(primitive const& step) noexcept {
    run const target = find(step.target, 0), operand = find(step.operand, 0);
    lane_plan plan = plan_forward(step, target);
    bool const packed = port_.packs(target.bytes);
    int own = -1;  // of this rank's operand among the sources
    for (std::int32_t k = 0; k < step.from.count; ++k)
      if (step.from.member(k, size()) == rank()) own = k;
    if (!wait([&] {
          return messages(step.from, target.bytes, packed, offset_of(target.data) + target.bytes) &&
                 credits(step.to) && (!plan.stages || half_is_free());
        }))
      return false;
    if (packed && !unpack_all(step.from, target.bytes)) return false;
    if (!packed && may_push(step, target)) plan = {false, nullptr, true};
    if (target.whole && (own < 0 || operand.whole)) {
      combine_piece(step, {target.data, target.bytes}, operand.data, own, 0, plan);
    } else {
      std::size_t done = 0;
      for (std::int32_t i = 0; i < step.target.count; ++i) {
        piece const result = chunk(target, step.target, i);
        std::byte* const mine = own < 0 ? nullptr : chunk(operand, step.operand, i).data;
        combine_piece(step, result, mine, own, done, plan);
        done += result.bytes;
      }
    }
    team_.sync();
    consume(step.from);
    forward(step, target, plan);
    return true;
  }

  // Messages that are results themselves: store each, and pass a single one on.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool relay(primitive const& step) noexcept {
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, size());
      run const target = find(step.target, k);
      if (peer == rank()) {
        if (step.store) copy_locally(step, k, is_unprepared(step.operand));
        continue;
      }
      if (skips(target)) continue;
      lane_plan const plan = plan_forward(step, target);
      peer_set const sender = only(peer);
      bool const packed = port_.packs(target.bytes);
      if (!wait([&] {
            return messages(sender, target.bytes, packed) && credits(step.to) &&
                   (!plan.stages || half_is_free());
          }))
        return false;
      if (packed && !unpack_all(sender, target.bytes)) return false;
      std::byte const* const message = shared_.sources[0];
      if (plan.stages) copy(plan.staged, message, target.bytes);
      if (step.store) unpack(step.target, target, message);
      team_.sync();
      consume(sender);
      forward(step, target, plan);
      team_.sync();
    }
    return true;
  }

  // ---- memory --------------------------------------------------------------------------------------

  // The map is that of all lanes: its scratch memory begins at address 0.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE run find(region const& r, std::int32_t k) const noexcept {
    run found = map_.find(r, k, fragment_);
    if (found.whole) found.data = moved(r, found.data);
    return found;
  }
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE piece chunk(run const& of, region const& r,
                                                        std::int32_t i) const noexcept {
    piece found = map_.chunk(of, r, i, fragment_);
    found.data = moved(r, found.data);
    return found;
  }
  [[nodiscard]] COLLX_HD std::byte* moved(region const& r, std::byte* data) const noexcept {
    if (r.where != place::scratch) return data;
    return port_.scratch() + reinterpret_cast<std::uintptr_t>(data);
  }

  [[nodiscard]] COLLX_HD bool skips(run const& payload) const noexcept {
    return map_.skips_empty() && payload.bytes == 0;
  }

  // Contributions that the operator must prepare first; see step_machine.hpp.
  [[nodiscard]] COLLX_HD bool is_unprepared(region const& r) const noexcept {
    return Combines && prepares<Op, T> && r.where == place::input;
  }

  // Whether a payload can be sent from where it lies.
  [[nodiscard]] COLLX_HD bool goes_directly(run const& payload, place where, primitive const& step,
                                            bool unprepared) const noexcept {
    if (!payload.whole || unprepared) return false;
    if (port_.packs(payload.bytes)) return true;
    bool const stays = !step.copy || (where == place::input && !map_.in_place());
    return stays && where != place::scratch && port_.reachable(payload.data, payload.bytes);
  }

  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE lane_plan plan_forward(primitive const& step,
                                                                   run const& result) noexcept {
    bool const stages =
        !step.to.empty() && !(step.store && goes_directly(result, step.target.where, step, false));
    return {stages, stages ? stage(result.bytes) : nullptr};
  }

  COLLX_HD COLLX_NEVER_INLINE void combine_piece(primitive const& step, piece const& result,
                                                 std::byte const* mine, int own, std::size_t staged_at,
                                                 lane_plan const& plan) noexcept {
    if constexpr (Combines) {
      int count = step.store ? 1 : 0;
      bool const leads = team_.rank() == 0;
      if (leads && step.store) shared_.destinations[0] = result.data;
      if (plan.stages) {
        if (leads) shared_.destinations[count] = plan.staged + staged_at;
        ++count;
      }
      for (std::int32_t k = 0; plan.pushes && k < step.to.count; ++k) {
        rank_t const peer = step.to.member(k, size());
        if (peer == rank()) continue;
        if (leads) shared_.destinations[count] = pushed_to(step, peer, result.data);
        ++count;
      }
      if (leads && own >= 0) shared_.sources[own] = mine;
      team_.sync();
      combine_all(count, step.from.count, result.bytes, step.complete,
                  is_unprepared(step.operand) ? own : -1);
      if (step.target.count == 1) return;
      team_.sync();  // more pieces follow: all sources but the own one move on
      if (team_.rank() == 0)
        for (std::int32_t k = 0; k < step.from.count; ++k)
          if (k != own) shared_.sources[k] += result.bytes;
    }
  }

  // The sources of the workspace to its destinations.
  COLLX_HD COLLX_NEVER_INLINE void combine_all(int destinations, int sources, std::size_t bytes,
                                               bool complete, int prepared) noexcept {
    device::combine(team_, reinterpret_cast<T* const*>(shared_.destinations), destinations,
                    reinterpret_cast<T const* const*>(shared_.sources), sources, bytes / sizeof(T), op_,
                    complete, size(), prepared);
  }

  // One source to one destination, prepared if that is due.
  COLLX_HD COLLX_NEVER_INLINE void copy(std::byte* to, std::byte const* from, std::size_t bytes,
                                        bool prepares_now = false) noexcept {
    if (bytes == 0 || (to == from && !prepares_now)) return;
    if constexpr (Combines && prepares<Op, T>) {
      if (prepares_now) {
        T* const destination = reinterpret_cast<T*>(to);
        T const* const source = reinterpret_cast<T const*>(from);
        return device::combine(team_, &destination, 1, &source, 1, bytes / sizeof(T), op_, false, size(), 0);
      }
    }
    // Messages consist of whole elements.
    T* const destination = reinterpret_cast<T*>(to);
    device::copy(team_, &destination, 1, reinterpret_cast<T const*>(from), bytes / sizeof(T));
  }

  // The operand of a step to its target for the k-th peer.
  COLLX_HD COLLX_NEVER_INLINE void copy_locally(primitive const& step, std::int32_t k, bool raw) noexcept {
    run const from = find(step.operand, 0), to = find(step.target, k);
    if (from.whole && to.whole) {
      copy(to.data, from.data, to.bytes, raw);
    } else {
      for (std::int32_t i = 0; i < step.target.count; ++i) {
        piece const target = chunk(to, step.target, i);
        copy(target.data, chunk(from, step.operand, i).data, target.bytes, raw);
      }
    }
    team_.sync();
  }

  // Chunks to a message, one behind the other; and back.
  COLLX_HD COLLX_NEVER_INLINE void pack(region const& what, run const& from, std::byte* message,
                                        bool raw) noexcept {
    if (from.whole) return copy(message, from.data, from.bytes, raw);
    for (std::int32_t i = 0; i < what.count; ++i) {
      piece const part = chunk(from, what, i);
      copy(message, part.data, part.bytes, raw);
      message += part.bytes;
    }
  }
  COLLX_HD COLLX_NEVER_INLINE void unpack(region const& what, run const& to,
                                          std::byte const* message) noexcept {
    if (to.whole) return copy(to.data, message, to.bytes);
    for (std::int32_t i = 0; i < what.count; ++i) {
      piece const part = chunk(to, what, i);
      copy(part.data, message, part.bytes);
      message += part.bytes;
    }
  }

  // ---- pushing: results stored where their receivers want them ---------------------------------------

  // The place in a fan-in of the message from a peer; -1: it sends none. Fan-ins and fan-outs are mostly
  // alike.
  [[nodiscard]] COLLX_HD std::int32_t place_of(peer_set const& from, rank_t peer,
                                               std::int32_t hint) const noexcept {
    if (hint < from.count && from.member(hint, size()) == peer) return hint;
    for (std::int32_t k = 0; k < from.count; ++k)
      if (from.member(k, size()) == peer) return k;
    return -1;
  }

  // Whether all receivers of a result have said, with a message of this step, where their outputs are, and
  // these are long enough. That message is also why nobody is in the way there: it shows that its sender has
  // come to this call, and the verifier has proved the rest of steps that push.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool may_push(primitive const& step,
                                                          run const& result) const noexcept {
    if (!step.push || step.to.empty() || !result.whole || step.target.where != place::output) return false;
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, size());
      if (peer == rank()) continue;
      std::int32_t const at = place_of(step.from, peer, k);
      if (at < 0 || shared_.outputs[at] == nullptr) return false;
    }
    return true;
  }

  [[nodiscard]] COLLX_HD std::byte* pushed_to(primitive const& step, rank_t peer,
                                              std::byte* mine) const noexcept {
    return shared_.outputs[place_of(step.from, peer, 0)] + offset_of(mine);
  }

  // In the output, in bytes. Outputs are numbers here: this rank may have none itself.
  [[nodiscard]] COLLX_HD std::size_t offset_of(std::byte const* mine) const noexcept {
    return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(map_.output());
  }

  // ---- sending -------------------------------------------------------------------------------------

  COLLX_HD void forward(primitive const& step, run const& result, lane_plan const& plan) noexcept {
    for (std::int32_t k = 0; plan.pushes && k < step.to.count; ++k)
      if (rank_t const peer = step.to.member(k, size()); sees_to(peer))
        port_.send_stored(peer, pushed_to(step, peer, result.data), result.bytes);
    if (plan.pushes) return;
    std::byte const* const payload = plan.stages ? plan.staged : result.data;
    for (std::int32_t k = 0; k < step.to.count; ++k)
      send(step.to.member(k, size()), k, payload, result.bytes, !plan.stages);
  }

  chunk_map const& map_;
  Op const& op_;
};

}  // namespace collx::inline abi_1::exec
