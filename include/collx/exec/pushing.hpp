// SPDX-License-Identifier: Apache-2.0
// Payloads that their sender stores to the receiver's output: where that is, and steps that only send. Used
// by the step machine only.
#pragma once

#include "collx/exec/memory_map.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

// How a result reaches its receivers; all of it may hold at once, for different ones.
struct forward_plan {
  bool in_place = false;  // receivers read the stored target
  bool pushes = false;    // at least one receiver's target is reachable
  bool posts = false;     // at least one receiver's target is such that the system stores there
  bool stages = false;    // at least one receiver reads a staged copy; or that is what is posted
};

// One step's.
template <class Endpoint>
class pushing {
 public:
  pushing(Endpoint& endpoint, int lane, memory_map const& memory, std::size_t fragment) noexcept
      : endpoint_(endpoint), memory_(memory), fragment_(fragment), lane_(lane) {}

  // Lets peers have the system store to the output of this call, if it can.
  COLLX_NEVER_INLINE static void offer(Endpoint& endpoint, int lane, memory_map const& memory) noexcept {
    if constexpr (Endpoint::fetches)
      if (endpoint.fetchable(memory.output(), memory.output_bytes(), memory.worth(memory.output_bytes())))
        endpoint.offer(lane);
  }

  // A peer's own target for the chunks of the step, or null where it cannot be stored to.
  [[nodiscard]] std::byte* target(primitive const& step, rank_t peer) noexcept {
    if (peer == endpoint_.rank()) return nullptr;
    std::byte* const output = endpoint_.push_target(lane_, peer);
    if (output == nullptr) return nullptr;
    std::size_t const at = memory_.offset_at(peer, step.target, fragment_);
    return fits(step, peer, at) ? output + at : nullptr;
  }

  // Which receivers of a reducing step are pushed to; `stages`, if any of them is not.
  [[nodiscard]] forward_plan plan(primitive const& step, run const& result) noexcept {
    forward_plan plan;
    bool const may_push = step.reduce && is_pushed(step, result);
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, endpoint_.size());
      if (peer == endpoint_.rank()) continue;
      if (may_push && target(step, peer) != nullptr) plan.pushes = true;
      else if (may_push && may_post(step, peer)) plan.posts = true;
      else plan.stages = true;
    }
    return plan;
  }

  // Has the system store a payload at a peer's target for the chunks of the step, and tells the peer.
  // not_supported: it may not.
  [[nodiscard]] COLLX_NEVER_INLINE status post(primitive const& step, rank_t peer,
                                               run const& payload) noexcept {
    if constexpr (Endpoint::fetches) {
      std::uint64_t const output = endpoint_.post_target(lane_, peer);
      if (output == 0) return status::not_supported;
      std::size_t const at = memory_.offset_at(peer, step.target, fragment_);
      if (!fits(step, peer, at)) return status::not_supported;
      std::uint64_t const to = output + at;
      status const outcome = endpoint_.post(peer, to, payload.data, payload.bytes);
      if (outcome == status::ok)
        endpoint_.send(lane_, peer, reinterpret_cast<std::byte const*>(static_cast<std::uintptr_t>(to)),
                       payload.bytes, transport::handover::posted);
      return outcome;
    }
    return status::not_supported;
  }

  // Stores the operand of a step that only sends, unless it has been spread(), or has the system do it, and
  // tells the peer; or tells it where it may do so, if there is no operand. not_supported: none of this can
  // be done.
  [[nodiscard]] COLLX_NEVER_INLINE status push(primitive const& step, rank_t peer, run const& operand,
                                               bool is_spread) noexcept {
    if (step.operand.count == 0 && memory_.output_bytes() != 0)
      return endpoint_.send(lane_, peer, nullptr, 0, transport::handover::greeting), status::ok;
    if (!is_pushed(step, operand)) return status::not_supported;
    if (std::byte* const to = target(step, peer)) {
      if (!is_spread) device::copy(to, operand.data, operand.bytes, memory_.streams_to_peers());
      endpoint_.send(lane_, peer, to, operand.bytes, transport::handover::pushed);
      return status::ok;
    }
    return lends() ? post(step, peer, operand) : status::not_supported;
  }

  // Stores the operand of a step to the target of this rank and to those of all receivers: memory is read
  // once for all of them. False, and nothing stored, if one of them cannot be reached.
  [[nodiscard]] COLLX_NEVER_INLINE bool spread(primitive const& step, run const& operand,
                                               std::byte** destinations) noexcept {
    run const mine = memory_.find(step.target, 0, fragment_);
    if (!mine.whole || !is_pushed(step, operand)) return false;
    std::int32_t count = 0;
    if (mine.data != operand.data) destinations[count++] = mine.data;
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, endpoint_.size());
      if (peer == endpoint_.rank()) continue;
      std::byte* const theirs = target(step, peer);
      if (theirs == nullptr) return false;
      destinations[count++] = theirs;
    }
    device::spread(destinations, count, operand.data, mine.bytes, memory_.streams_to_peers());
    return true;
  }

  // Below this a receiver's own copy is cheaper than a store into lines it holds.
  static constexpr std::size_t bytes_min = 256;

 private:
  // Whether the payload of a step goes to its receivers' targets, where they can be reached.
  [[nodiscard]] bool is_pushed(primitive const& step, run const& payload) const noexcept {
    return step.push && payload.whole && step.target.where == place::output && memory_.knows_peers() &&
           payload.bytes >= bytes_min;
  }
  [[nodiscard]] bool may_post(primitive const& step, rank_t peer) noexcept {
    if constexpr (Endpoint::fetches)
      return endpoint_.post_target(lane_, peer) != 0 && lends() &&
             fits(step, peer, memory_.offset_at(peer, step.target, fragment_));
    else return false;
  }

  // Asked once for each step, since the answer changes: what is planned is done.
  [[nodiscard]] bool lends() noexcept {
    if constexpr (Endpoint::fetches) return endpoint_.lends(memory_.copying());
    else return false;
  }

  // Whether the chunks of the step, `at` bytes behind where a peer's output begins, end where that does, or
  // before. Not, where the peer was called with a smaller count: it is then sent a message, and says so.
  [[nodiscard]] bool fits(primitive const& step, rank_t peer, std::size_t at) noexcept {
    if constexpr (Endpoint::is_mapped) {
      std::size_t const room = endpoint_.push_room(lane_, peer);
      return at <= room && memory_.find(step.target, 0, fragment_).bytes <= room - at;
    }
    return false;
  }

  Endpoint& endpoint_;
  memory_map const& memory_;
  std::size_t fragment_;
  int lane_;
};

}  // namespace collx::inline abi_1::exec
