// SPDX-License-Identifier: Apache-2.0
// What one lane of a GPU waits for and sends: the half of lane_machine.hpp that knows neither element types
// nor operators. Every wait ends: by what is waited for, by a deadline, or because somebody says that all is
// over.
#pragma once

#include "collx/device/patience.hpp"
#include "collx/device/team.hpp"
#include "collx/schedule/primitive.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

// Ranks that one group on GPUs may have: what fits the tables below.
inline constexpr rank_t lane_peers_max = 72;

// Memory that the threads of a team share. The tables do not outlive a step.
struct lane_workspace {
  std::byte const* sources[lane_peers_max];  // of a fan-in; or what goes to each peer of a fan-out
  std::uint64_t numbers[2][lane_peers_max];  // of the messages from and to peers
  std::byte* outputs[lane_peers_max];        // of the senders of a fan-in, where a result may be stored
  std::byte* destinations[lane_peers_max + 1];
  std::byte const* offered;   // of a call: this rank's output, if peers may store there; or null
  std::size_t offered_bytes;  // how long that is
  std::uint32_t failed;       // 1: a thread gave up waiting
  std::uint32_t stopped;      // 1: the group had failed before the call began
};

// Whether a lane may begin a call. Not after its group has failed, when nobody keeps the books any more: what
// was queued by then, or is replayed, reports that itself, since no other call of this rank may have. By all
// threads of a team, first of all.
template <device::team Team, class Port>
[[nodiscard]] COLLX_HD bool may_begin(Team& team, Port const& port, lane_workspace& shared) noexcept {
  if (team.rank() == 0) {
    shared.failed = 0;
    // A word of its own: a thread may have given up waiting before another one has looked here.
    shared.stopped = port.is_stopped() ? 1 : 0;
    if (shared.stopped != 0) port.fail(status::aborted, -1, 0, no_rank, 0);
  }
  team.sync();
  return shared.stopped == 0;
}

// A call that moves nothing, because this rank was given no elements: it counts, or messages of the next call
// would be taken for those that peers with elements wait for in this one. By all threads of lane 0's team.
template <device::team Team, class Port>
COLLX_HD void pass_empty_call(Team& team, Port const& port, lane_workspace& shared) noexcept {
  if (may_begin(team, port, shared) && team.rank() == 0) port.count_call();
}

// A peer's letters, credits and books are always seen to by the same thread of the team.
template <device::team Team, class Port>
class lane_traffic {
 public:
  COLLX_HD lane_traffic(Team& team, Port const& port, lane_workspace& shared) noexcept
      : team_(team), port_(port), shared_(shared), fragments_(port.fragments()) {}

 protected:
  // ---- waiting -------------------------------------------------------------------------------------

  // Every thread waits for what it sees to; returns, to all, whether all of it came.
  template <class Mine>
  [[nodiscard]] COLLX_HD bool wait(Mine const& mine) noexcept {
    if (!mine()) device::store_relaxed(&shared_.failed, 1u);  // relaxed: the sync below publishes it
    team_.sync();
    return device::load_relaxed(&shared_.failed) == 0;
  }

  // The thread that deals with a peer's letters and credits.
  [[nodiscard]] COLLX_HD bool sees_to(rank_t peer) const noexcept {
    return peer != rank() && peer % team_.size() == team_.rank();
  }

  template <class Ready>
  [[nodiscard]] COLLX_HD bool wait_for(rank_t peer, std::size_t bytes, Ready const& ready) noexcept {
    status const outcome = device::wait_until(port_.limits(), ready);
    if (outcome != status::ok) port_.fail(outcome, step_, fragment_, peer, bytes);
    return outcome == status::ok;
  }

  // The messages of a fan-in: notes where each lies, or which one is to be unpacked; and the outputs of their
  // senders that have `end_bytes`.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool messages(peer_set const& from, std::size_t bytes,
                                                          bool packed, std::size_t end_bytes = 0) noexcept {
    for (std::int32_t k = 0; k < from.count; ++k) {
      rank_t const peer = from.member(k, size());
      if (!sees_to(peer)) continue;
      if (packed) {
        shared_.numbers[0][k] = port_.next_from(peer);
        continue;
      }
      transport::arrival message;
      status outcome = device::wait_until(
          port_.limits(), [&] { return port_.arrived(peer, message); },
          [&] { return port_.came_as_packets(peer, message.bytes); });
      if (outcome == status::ok && (message.bytes != bytes || port_.calls_ahead(peer) != 0))
        outcome = status::mismatch;
      if (outcome != status::ok) return tell(outcome, peer, message.bytes, bytes);
      shared_.sources[k] = message.data;
      shared_.outputs[k] = port_.output_of(peer, end_bytes);
    }
    return true;
  }

  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool credits(peer_set const& to) noexcept {
    for (std::int32_t k = 0; k < to.count; ++k) {
      rank_t const peer = to.member(k, size());
      if (!sees_to(peer)) continue;
      if (!wait_for(peer, 0, [&] { return port_.can_send(peer); })) return false;
      shared_.numbers[1][k] = port_.next_to(peer);
    }
    return true;
  }

  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool half_is_free() noexcept {
    for (rank_t peer = 0; peer < size(); ++peer)
      if (sees_to(peer) && !wait_for(peer, 0, [&] { return port_.is_free(peer, half()); })) return false;
    return true;
  }

  // Puts packet messages together. After messages(), and a wait, whose outcome every thread must have read
  // before one of them may give up here.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool unpack_all(peer_set const& from,
                                                            std::size_t bytes) noexcept {
    team_.sync();
    return wait([&] {
      for (std::int32_t k = 0; k < from.count; ++k) {
        rank_t const peer = from.member(k, size());
        if (peer == rank()) continue;
        std::size_t came = 0;
        status const outcome = port_.take_packets(team_, peer, shared_.numbers[0][k], k, bytes, came);
        if (outcome != status::ok) return tell(outcome, peer, came, bytes);
        if (team_.rank() == 0) shared_.sources[k] = port_.landing(k);
      }
      return true;
    });
  }

  // When the user's buffers are his again.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE bool drain() noexcept {
    bool const read = wait([&] {
      for (rank_t peer = 0; lent_ && peer < size(); ++peer)
        if (sees_to(peer) && !wait_for(peer, 0, [&] { return port_.is_read(peer); })) return false;
      return true;
    });
    keep_count();
    return read;
  }

  // The next call goes on where this one has stopped.
  COLLX_HD void keep_count() noexcept {
    if (team_.rank() != 0) return;
    port_.fragments(fragments_);
    port_.count_call();
  }

  // Why the next message from a peer is of no use. Returns false.
  COLLX_HD COLLX_NEVER_INLINE bool tell(status why, rank_t peer, std::size_t came,
                                        std::size_t expected) noexcept {
    bool const differs = why == status::mismatch;
    port_.fail(why, step_, fragment_, peer, differs ? came : expected,
               differs ? port_.calls_ahead(peer, port_.next_from(peer)) : 0);
    return false;
  }

  // ---- staging memory ----------------------------------------------------------------------------

  COLLX_HD COLLX_NEVER_INLINE void next_fragment() noexcept {
    for (rank_t peer = 0; peer < size(); ++peer)
      if (sees_to(peer)) port_.leave_half(peer, half());
    ++fragments_;
    staged_bytes_ = 0;
  }

  [[nodiscard]] COLLX_HD int half() const noexcept { return static_cast<int>(fragments_ % 2); }

  // Room in this fragment's half of the staging memory: the geometry sees to it that it suffices.
  [[nodiscard]] COLLX_HD std::byte* stage(std::size_t bytes) noexcept {
    std::byte* const room = port_.staging(half()) + staged_bytes_;
    staged_bytes_ += (bytes + 63) / 64 * 64;
    return room;
  }

  // ---- sending -----------------------------------------------------------------------------------

  COLLX_HD void consume(peer_set const& from) noexcept {
    for (std::int32_t k = 0; k < from.count; ++k)
      if (rank_t const peer = from.member(k, size()); sees_to(peer)) port_.consume(peer);
  }

  // After a sync that follows the last write to the payload.
  COLLX_HD COLLX_NEVER_INLINE void send(rank_t peer, std::int32_t k, std::byte const* payload,
                                        std::size_t bytes, bool lends) noexcept {
    if (peer == rank()) return;
    if (port_.packs(bytes)) {
      port_.send_packets(team_, peer, shared_.numbers[1][k], payload, bytes);
      if (sees_to(peer)) port_.sent_as_packets(peer);
    } else {
      lent_ = lent_ || lends;
      if (sees_to(peer)) port_.send(peer, payload, bytes, shared_.offered, shared_.offered_bytes);
    }
  }

  // Lets peers store to the output of this call, or, null, not. A wait comes between this and what is sent.
  COLLX_HD void offer(std::byte const* output, std::size_t bytes) noexcept {
    if (team_.rank() != 0) return;
    shared_.offered = output;
    shared_.offered_bytes = bytes;
  }

  [[nodiscard]] COLLX_HD rank_t rank() const noexcept { return port_.rank(); }
  [[nodiscard]] COLLX_HD rank_t size() const noexcept { return port_.size(); }

  Team& team_;
  Port const& port_;
  lane_workspace& shared_;
  std::size_t fragment_ = 0;
  std::int32_t step_ = 0;

 private:
  std::uint64_t fragments_;  // of this lane, in all calls: which half of the staging memory is used
  std::size_t staged_bytes_ = 0;
  bool lent_ = false;
};

}  // namespace collx::inline abi_1::exec
