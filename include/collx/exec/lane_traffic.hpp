// SPDX-License-Identifier: Apache-2.0
// What one lane of a GPU waits for and sends: the half of lane_machine.hpp that knows neither element types
// nor operators. Every wait ends: by what is waited for, by a deadline, or because somebody says that all is
// over.
//
// A GPU's thread is slow, and memory is far: what a step needs of several peers is done by as many threads at
// once, and what is different in kind (messages, credits, staging memory) by threads of different warps.
#pragma once

#include "collx/device/patience.hpp"
#include "collx/device/team.hpp"
#include "collx/exec/chunk_map.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

// Ranks that one group on GPUs may have: what fits the tables below.
inline constexpr rank_t lane_peers_max = 72;
// Of what a port keeps near; see lane_port.hpp.
inline constexpr std::size_t lane_near_bytes = std::size_t{lane_peers_max} * 64;

// What a step does, as one thread has found out for all.
struct lane_step {
  primitive does;
  run operand, target;  // of the first peer
  std::int32_t own;     // this rank's place in the fan-in, -1 if it has none
  bool stages;  // a result that goes on is written to staging memory, too; without a fan-in: some operand may
                // be
};

// What goes to a peer.
struct outgoing {
  std::byte const* data;
  std::size_t bytes;
  bool is_due;  // or nothing is sent to that peer
  bool lends;   // it lies where the user has it
  bool stored;  // it is in the peer's output already, at `data`
  bool staged;  // it is where the destinations say, not at `data`
};

// Steps of a fragment that are found out about together, by as many threads: for one thread after the other
// that takes as long, and longer than to move some 100 KiB.
inline constexpr std::int32_t lane_steps_at_once = 16;

// Memory that the threads of a team share. The tables do not outlive a step; `steps` lasts for as many, and
// `near` for a call.
struct lane_workspace {
  lane_step steps[lane_steps_at_once];
  run targets[lane_peers_max];                  // of each message, where they differ
  std::byte const* sources[lane_peers_max];     // of a fan-in
  std::byte* outputs[lane_peers_max];           // of the senders of a fan-in, where a result may be stored
  std::byte* destinations[lane_peers_max + 1];  // of a result; or where operands of a fan-out were staged
  outgoing given[lane_peers_max];               // to the peers of a fan-out
  std::uint64_t numbers[lane_peers_max];        // of the messages to them
  alignas(16) std::byte near[lane_near_bytes];
  std::byte const* offered;   // of a call: this rank's output, if peers may store there; or null
  std::size_t offered_bytes;  // how long that is
  std::uint32_t lent;         // 1: peers read memory of the user's in this call
  std::uint32_t failed;       // 1: a thread gave up waiting
  std::uint32_t stopped;      // 1: the group had failed before the call began
};

// Whether a lane may begin a call. Not after its group has failed, when nobody keeps the books any more: what
// was queued by then, or is replayed, reports that itself, since no other call of this rank may have. By all
// threads of a team, first of all.
template <device::team Team, class Port>
[[nodiscard]] COLLX_HD bool may_begin(Team& team, Port const& port, lane_workspace& shared) noexcept {
  port.open(team);
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

// Some threads of a team, which have something of their own to do between two syncs of the team.
struct team_part {
  int number, threads;
  [[nodiscard]] COLLX_HD int rank() const noexcept { return number; }
  [[nodiscard]] COLLX_HD int size() const noexcept { return threads; }
  COLLX_HD void sync() const noexcept {}
};

// The fewest threads that packets of one message are dealt with by, where there are several: a warp.
inline constexpr int part_threads_min = 32;

template <device::team Team, class Port>
class lane_traffic {
 public:
  COLLX_HD_INLINE lane_traffic(Team& team, Port const& port, lane_workspace& shared) noexcept
      : team_(team), port_(port), shared_(shared), fragments_(port.fragments()) {
    static_assert(Port::near_bytes(lane_peers_max) <= lane_near_bytes);
  }

 protected:
  // Who begins with the first peer: threads of a warp each.
  enum class duty : int { messages, credits, halves };

  // Calls f(i) for this thread's share of 0 .. count - 1, until one of them is false.
  template <class F>
  COLLX_HD_INLINE bool each(std::int32_t count, duty what, F const& f) const noexcept {
    int const first = team_.rank() - static_cast<int>(what) * part_threads_min;
    int i = first >= 0 ? first : (first % team_.size() + team_.size()) % team_.size();
    for (; i < count; i += team_.size())
      if (!f(i)) return false;
    return true;
  }
  // f(part, i), the team in as many parts as there is something to do for.
  template <class F>
  COLLX_HD_INLINE bool in_parts(std::int32_t count, F const& f) const noexcept {
    int number = team_.rank(), threads = team_.size(), part = 0, parts = 1;
    while (parts < count && threads % (2 * part_threads_min) == 0) {
      threads /= 2, parts *= 2, part *= 2;
      if (number >= threads) number -= threads, ++part;
    }
    team_part const mine{number, threads};
    for (std::int32_t i = part; i < count; i += parts)
      if (!f(mine, i)) return false;
    return true;
  }

  // ---- waiting -------------------------------------------------------------------------------------

  // Every thread waits for what it sees to; returns, to all, whether all of it came.
  template <class Mine>
  [[nodiscard]] COLLX_HD_INLINE bool wait(Mine const& mine) noexcept {
    if (!mine()) device::store_relaxed(&shared_.failed, 1u);  // relaxed: the sync below publishes it
    team_.sync();
    return device::load_relaxed(&shared_.failed) == 0;
  }

  template <class Ready>
  [[nodiscard]] COLLX_HD_INLINE bool wait_for(rank_t peer, std::size_t bytes, Ready const& ready) noexcept {
    if (ready()) return true;
    status const outcome = device::wait_until(port_.limits(), ready);
    if (outcome != status::ok) port_.fail(outcome, step_, fragment_, peer, bytes);
    return outcome == status::ok;
  }

  // The k-th message of a fan-in: puts it together, or notes where it lies; and, if that is wanted, where the
  // sender's output is, if that has `end_bytes`.
  [[nodiscard]] COLLX_HD_INLINE bool message(rank_t peer, std::int32_t k, std::size_t bytes,
                                             bool wants_output, std::size_t end_bytes) noexcept {
    transport::arrival came;
    std::uint32_t looks = 0;
    status outcome = device::wait_until(
        port_.limits(), [&] { return port_.arrived(peer, came, looks++); },
        [&] { return port_.came_as_packets(peer, came.bytes); });
    if (outcome == status::ok && (came.bytes != bytes || port_.calls_ahead(peer) != 0))
      outcome = status::mismatch;
    if (outcome != status::ok) return tell(outcome, peer, came.bytes, bytes);
    shared_.sources[k] = came.data;
    if (wants_output) shared_.outputs[k] = port_.output_of(peer, end_bytes);
    return true;
  }
  [[nodiscard]] COLLX_HD_INLINE bool message_of_packets(team_part const& part, rank_t peer, std::int32_t k,
                                                        std::size_t bytes) noexcept {
    std::size_t came = 0;
    status const outcome = port_.take_packets(part, peer, port_.next_from(peer), k, bytes, came);
    if (outcome != status::ok) return tell(outcome, peer, came, bytes);
    if (part.rank() == 0) shared_.sources[k] = port_.landing(k);
    return true;
  }

  [[nodiscard]] COLLX_HD_INLINE bool credits(peer_set const& to) noexcept {
    return each(to.count, duty::credits, [&](std::int32_t k) {
      rank_t const peer = to.member(k, size());
      if (peer == rank()) return true;
      if (!wait_for(peer, 0, [&] { return port_.can_send(peer); })) return false;
      shared_.numbers[k] = port_.next_to(peer);
      return true;
    });
  }

  [[nodiscard]] COLLX_HD_INLINE bool half_is_free() noexcept {
    return each(size(), duty::halves, [&](rank_t peer) {
      return peer == rank() || wait_for(peer, 0, [&] { return port_.is_free(peer, half()); });
    });
  }

  // When the user's buffers are his again.
  [[nodiscard]] COLLX_HD_INLINE bool drain() noexcept {
    bool const read = wait([&] {
      // Relaxed: stored before the last sync, and not again before the next one.
      if (device::load_relaxed(&shared_.lent) == 0) return true;
      return each(size(), duty::messages, [&](rank_t peer) {
        return peer == rank() || wait_for(peer, 0, [&] { return port_.is_read(peer); });
      });
    });
    keep_count();
    return read;
  }

  // The next call goes on where this one has stopped. After a sync.
  COLLX_HD_INLINE void keep_count() noexcept {
    port_.close(team_);
    if (team_.rank() != 0) return;
    port_.fragments(fragments_);
    port_.count_call();
  }

  // Why the next message from a peer is of no use. Returns false.
  COLLX_HD_INLINE bool tell(status why, rank_t peer, std::size_t came, std::size_t expected) noexcept {
    bool const differs = why == status::mismatch;
    port_.fail(why, step_, fragment_, peer, differs ? came : expected,
               differs ? port_.calls_ahead(peer, port_.next_from(peer)) : 0);
    return false;
  }

  // ---- staging memory ----------------------------------------------------------------------------

  COLLX_HD_INLINE void next_fragment() noexcept {
    team_.sync();  // messages have been counted
    (void)each(size(), duty::messages, [&](rank_t peer) {
      if (peer != rank()) port_.leave_half(peer, half());
      return true;
    });
    ++fragments_;
    staged_bytes_ = 0;
  }

  [[nodiscard]] COLLX_HD_INLINE int half() const noexcept { return static_cast<int>(fragments_ % 2); }

  // Room in this fragment's half of the staging memory: the geometry sees to it that it suffices. Every
  // thread counts what was taken.
  [[nodiscard]] COLLX_HD_INLINE std::byte* stage(std::size_t bytes) noexcept {
    std::byte* const room = port_.staging(half()) + staged_bytes_;
    staged_bytes_ += (bytes + 63) / 64 * 64;
    return room;
  }

  // ---- sending -----------------------------------------------------------------------------------

  // Done with the messages of a fan-in, but for those that takes(k) denies; and gives the peers of a fan-out
  // what the workspace says. After a sync that follows all accesses to either. Messages that is_packed(k) are
  // given back without a fence: who has read a packet has looked at its number before the sync, so no later
  // store to it can have been what was read; and what was read of letters before, a fence of that step
  // covers.
  template <class Takes, class IsPacked>
  COLLX_HD_INLINE void hand_over(peer_set const& from, peer_set const& to, Takes const& takes,
                                 IsPacked const& is_packed) noexcept {
    // Packets first: they need no fence.
    if (port_.has_packets()) {
      (void)in_parts(to.count, [&](team_part const& part, std::int32_t k) {
        rank_t const peer = to.member(k, size());
        outgoing const& sent = shared_.given[k];
        if (peer == rank() || !sent.is_due || !port_.packs(sent.bytes)) return true;
        port_.send_packets(part, peer, shared_.numbers[k], data_of(k), sent.bytes);
        if (part.rank() == 0) port_.sent_as_packets(peer);
        return true;
      });
    }
    if (team_.rank() >= (from.count > to.count ? from.count : to.count)) return;
    bool fences = false;
    (void)each(from.count, duty::messages, [&](std::int32_t k) {
      fences = fences || (from.member(k, size()) != rank() && takes(k) && !is_packed(k));
      return true;
    });
    (void)each(to.count, duty::messages, [&](std::int32_t k) {
      rank_t const peer = to.member(k, size());
      if (!is_letter(peer, shared_.given[k])) return true;
      write(peer, shared_.given[k], data_of(k));
      return fences = true;
    });
    device::publication const published(fences ? port_.reach() : device::reach::nobody);
    (void)each(from.count, duty::messages, [&](std::int32_t k) {
      rank_t const peer = from.member(k, size());
      if (peer != rank() && takes(k)) port_.consume(peer, published);
      return true;
    });
    (void)each(to.count, duty::messages, [&](std::int32_t k) {
      rank_t const peer = to.member(k, size());
      if (is_letter(peer, shared_.given[k])) port_.post(peer, published);
      return true;
    });
  }

  // Lets peers store to the output of this call, or, null, not. A wait comes between this and what is sent.
  COLLX_HD_INLINE void offer(std::byte const* output, std::size_t bytes) noexcept {
    if (team_.rank() != 0) return;
    shared_.offered = output;
    shared_.offered_bytes = bytes;
    shared_.lent = 0;
  }

  [[nodiscard]] COLLX_HD_INLINE rank_t rank() const noexcept { return port_.rank(); }
  [[nodiscard]] COLLX_HD_INLINE rank_t size() const noexcept { return port_.size(); }

  Team& team_;
  Port const& port_;
  lane_workspace& shared_;
  std::size_t fragment_ = 0;
  std::int32_t step_ = 0;

 private:
  [[nodiscard]] COLLX_HD_INLINE bool is_letter(rank_t peer, outgoing const& sent) const noexcept {
    return peer != rank() && sent.is_due && !port_.packs(sent.bytes);
  }
  [[nodiscard]] COLLX_HD_INLINE std::byte const* data_of(std::int32_t k) const noexcept {
    return shared_.given[k].staged ? shared_.destinations[k] : shared_.given[k].data;
  }
  COLLX_HD_INLINE void write(rank_t peer, outgoing const& sent, std::byte const* where) noexcept {
    if (sent.stored) return port_.write_stored(peer, sent.data, sent.bytes);
    if (sent.lends) device::store_relaxed(&shared_.lent, 1u);  // relaxed: read after the next sync
    port_.write(peer, where, sent.bytes, shared_.offered, shared_.offered_bytes);
  }

  std::uint64_t fragments_;  // of this lane, in all calls: which half of the staging memory is used
  std::size_t staged_bytes_ = 0;
};

}  // namespace collx::inline abi_1::exec
