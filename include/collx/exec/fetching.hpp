// SPDX-License-Identifier: Apache-2.0
// Messages that arrived without data, because they lie in private memory of their senders: copied to where
// a step wants them, or by pieces that are combined while they are in the cache. Used by the step machine
// only, and compiled only for endpoints that fetch.
#pragma once

#include "collx/exec/packing.hpp"
#include "collx/exec/workspace.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

// Whether the receiver copies a private payload of this step itself. Not what several read: it is better
// staged once. Nor what is reduced: that goes to the target and to staging in one pass. Nor elements of which
// none fits the landing of one of as many ranks as fetch: nothing would ever land.
template <class Endpoint>
[[nodiscard]] bool may_be_fetched(Endpoint& endpoint, memory_map const& memory, run const& payload,
                                  primitive const& step) noexcept {
  if constexpr (Endpoint::fetches) {
    constexpr std::size_t element_bytes_max = Endpoint::landing_room(Endpoint::fetched_ranks_max);
    bool const pays = memory.lets_fetch() || memory.lets_fetch_if_slow();
    if (!pays || step.reduce || memory.element_bytes() > element_bytes_max) return false;
    bool const apart = step.from.empty() && step.operand.per_peer != 0;
    bool const has_one_reader =
        step.to.count - (step.to.contains(endpoint.rank(), endpoint.size()) ? 1 : 0) == 1;
    return (apart || has_one_reader) &&
           endpoint.fetchable(payload.data, payload.bytes, memory.worth(payload)) &&
           (memory.lets_fetch() ? endpoint.lends(memory.copying()) : endpoint.stages_slowly());
  }
  return false;
}

// One step's.
template <class Endpoint>
class fetching {
 public:
  // `peer` and `bytes` are written when something cannot be read: what, and of whom.
  fetching(Endpoint& endpoint, int lane, memory_map const& memory, std::size_t fragment, rank_t& peer,
           std::size_t& bytes) noexcept
      : endpoint_(endpoint), memory_(memory), peer_(peer), bytes_(bytes), fragment_(fragment), lane_(lane) {}

  // A whole message: to `to`, or where that is null chunk by chunk to `target`.
  COLLX_NEVER_INLINE status take(rank_t from, primitive const& step, run const& target,
                                 std::byte* to) noexcept {
    if (to != nullptr) return fetch(from, 0, {to, target.bytes});
    std::size_t done = 0;
    for (std::int32_t i = 0; i < step.target.count; ++i) {
      piece const part = memory_.chunk(target, step.target, i, fragment_);
      if (status const outcome = fetch(from, done, part); outcome != status::ok) return outcome;
      done += part.bytes;
    }
    return status::ok;
  }

  // What lies `at` bytes behind the begin of a message.
  status fetch(rank_t from, std::size_t at, piece const& to) noexcept {
    status const outcome = endpoint_.fetch(lane_, from, at, to.data, to.bytes);
    if (COLLX_LIKELY(outcome == status::ok)) return outcome;
    peer_ = from;
    bytes_ = to.bytes;
    return outcome;
  }

  // The fan-in where sources without data are their landings; the others are read in place.
  // `combine_piece(target, at, bytes)` combines the piece that begins `at` bytes behind the messages' begin.
  template <class Combine>
  COLLX_NEVER_INLINE status combine(workspace& work, primitive const& step, run const& operand,
                                    run const& target, Combine const& combine_piece) noexcept {
    bool const whole = target.whole && operand.whole;
    std::size_t done = 0;
    for (std::int32_t i = 0; i < (whole ? 1 : step.target.count); ++i) {
      piece part{target.data, target.bytes};
      if (!whole) {
        part = memory_.chunk(target, step.target, i, fragment_);
        point_to_own(work, step, memory_.chunk(operand, step.operand, i, fragment_).data);
      }
      while (part.bytes != 0) {
        std::size_t const room = landing_room(step.from.count);
        if (room == 0) return status::mismatch;  // who fetches so large elements calls something else
        std::size_t const n = part.bytes < room ? part.bytes : room;
        if (status const outcome = land(work, step, done, n); outcome != status::ok) return outcome;
        combine_piece(part.data, done, n);
        move_on(work, step, n);
        // Where the result only goes on to others, there is no target.
        part = {part.data == nullptr ? nullptr : part.data + n, part.bytes - n};
        done += n;
      }
    }
    return status::ok;
  }

 private:
  [[nodiscard]] bool is_landing(workspace const& work, std::int32_t k, std::int32_t count) const noexcept {
    return work.sources[static_cast<std::size_t>(k)] == endpoint_.landing(k, count);
  }

  [[nodiscard]] std::size_t landing_room(std::int32_t count) const noexcept {
    return Endpoint::landing_room(count) / memory_.element_bytes() * memory_.element_bytes();
  }

  // Bytes [at, at + n) of each message without data, to its landing.
  status land(workspace const& work, primitive const& step, std::size_t at, std::size_t n) noexcept {
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      if (!is_landing(work, k, step.from.count)) continue;
      status const outcome = fetch(step.from.member(k, endpoint_.size()), at,
                                   {endpoint_.landing(k, step.from.count), n});
      if (outcome != status::ok) return outcome;
    }
    return status::ok;
  }

  void move_on(workspace& work, primitive const& step, std::size_t n) const noexcept {
    for (std::int32_t k = 0; k < step.from.count; ++k)
      if (!is_landing(work, k, step.from.count)) work.sources[static_cast<std::size_t>(k)] += n;
  }

  // This rank's own operand of a fan-in, if it has one.
  void point_to_own(workspace& work, primitive const& step, std::byte const* operand) const noexcept {
    for (std::int32_t k = 0; k < step.from.count; ++k)
      if (step.from.member(k, endpoint_.size()) == endpoint_.rank())
        work.sources[static_cast<std::size_t>(k)] = operand;
  }

  Endpoint& endpoint_;
  memory_map const& memory_;
  rank_t& peer_;
  std::size_t& bytes_;
  std::size_t fragment_;
  int lane_;
};

}  // namespace collx::inline abi_1::exec
