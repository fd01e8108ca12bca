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
inline constexpr std::size_t lane_near_bytes = std::size_t{lane_peers_max} * 72;

// What a step does, as one thread has found out for all.
struct lane_step {
  primitive does;
  run operand, target;  // of the first peer
  std::int32_t own;     // this rank's place in the fan-in, -1 if it has none
  bool stages;  // a result that goes on is written to staging memory, too; without a fan-in: some operand may
                // be
};

// How a message travels. Nothing: between a rank and itself, or without bytes where those are not sent.
enum class carriage : std::uint8_t { nothing, letter, packets };

// A peer of a step, and what comes from it.
struct incoming {
  rank_t peer;
  carriage by;
};

// What goes to a peer.
struct outgoing {
  std::byte const* data;
  std::size_t bytes;
  rank_t peer;
  carriage by;
  bool lends;    // it lies where the user has it
  bool stored;   // it is in the peer's output already, at `data`
  bool staged;   // it is where the destinations say, not at `data`
  bool written;  // its letter is
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
  incoming from[lane_peers_max];                // the same
  std::byte* outputs[lane_peers_max];           // of the senders of a fan-in, where a result may be stored
  std::byte* destinations[lane_peers_max + 1];  // of a result; or where operands of a fan-out were staged
  outgoing given[lane_peers_max];               // to the peers of a fan-out
  std::uint64_t numbers[lane_peers_max];        // of the messages to them
  alignas(16) std::byte near[lane_near_bytes];
  std::byte const* offered;   // of a call: this rank's output, if peers may store there; or null
  std::size_t offered_bytes;  // how long that is
  std::int32_t step;          // that is performed
  std::uint32_t lent;         // 1: peers read memory of the user's in this call
  std::uint32_t failed;       // 1: a thread gave up waiting
  std::uint32_t stopped;      // 1: the group had failed before the call began
};

// Whether a lane may begin a call. Not after its group has failed, when nobody keeps the books any more: what
// was queued by then, or is replayed, reports that itself, since no other call of this rank may have. By all
// threads of a team, first of all.
// Does `meanwhile()` while memory answers; that must not need the port's books, nor what it knows of peers.
template <device::team Team, class Port, class Meanwhile>
[[nodiscard]] COLLX_HD_INLINE bool may_begin(Team& team, Port const& port, lane_workspace& shared,
                                             Meanwhile const& meanwhile) noexcept {
  port.open(team, [&] {
    if (team.rank() == 0) shared.failed = 0;
    // By who has least to do else. A word of its own: a thread may have given up waiting before another one
    // has looked here.
    if (team.rank() == team.size() - 1) {
      shared.stopped = port.is_stopped() ? 1 : 0;
      if (shared.stopped != 0) port.fail(status::aborted, -1, 0, no_rank, 0);
    }
    meanwhile();
  });
  team.sync();
  return shared.stopped == 0;
}
template <device::team Team, class Port>
[[nodiscard]] COLLX_HD bool may_begin(Team& team, Port const& port, lane_workspace& shared) noexcept {
  return may_begin(team, port, shared, [] {});
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
  // The same, always for all, by threads of different warps where the team has as many: where what they do
  // differs, or takes long, those of one warp would wait for each other.
  template <class F>
  COLLX_HD_INLINE void each_apart(std::int32_t count, F const& f) const noexcept {
    int const apart = team_.size() >= part_threads_min * count       ? part_threads_min
                      : team_.size() >= part_threads_min / 4 * count ? part_threads_min / 4
                                                                     : 1;
    if (team_.rank() % apart != 0) return;
    COLLX_NO_UNROLL
    for (int i = team_.rank() / apart; i < count; i += apart == 1 ? team_.size() : count) f(i);
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
    if (outcome != status::ok) port_.fail(outcome, shared_.step, fragment_, peer, bytes);
    return outcome == status::ok;
  }

  // The k-th message of a fan-in: notes where it lies; and, if that is wanted, where the sender's output is,
  // if that has `end_bytes`.
  [[nodiscard]] COLLX_HD_INLINE bool message(rank_t peer, std::int32_t k, std::size_t bytes,
                                             bool wants_output, std::size_t end_bytes) noexcept {
    typename Port::delivery came;
    std::uint32_t looks = 0;
    status outcome = device::wait_until(
        port_.limits(), [&] { return port_.arrived(peer, came, looks++); },
        [&] { return port_.came_as_packets(peer, came.bytes); });
    if (outcome == status::ok && (came.bytes != bytes || came.calls_ahead != 0)) outcome = status::mismatch;
    if (outcome != status::ok) return tell(outcome, peer, came.bytes, bytes);
    shared_.sources[k] = came.data;
    if (wants_output) shared_.outputs[k] = port_.output_of(peer, came, end_bytes);
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

  // Waits until the peers of a fan-out take a message, and has `describe(k, sent)` say what goes to each. Its
  // letter is written at once where that can be said, so while others wait.
  template <class Describe>
  [[nodiscard]] COLLX_HD_INLINE bool credits(peer_set const& to, Describe const& describe) noexcept {
    return each(to.count, duty::credits, [&](std::int32_t k) {
      outgoing sent{};
      sent.peer = to.member(k, size());
      if (sent.peer != rank()) {
        if (!wait_for(sent.peer, 0, [&] { return port_.can_send(sent.peer); })) return false;
        shared_.numbers[k] = port_.next_to(sent.peer);
        describe(k, sent);
      }
      shared_.given[k] = sent;
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
    port_.fail(why, shared_.step, fragment_, peer, differs ? came : expected,
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
    staged_lines_ = 0;
  }

  [[nodiscard]] COLLX_HD_INLINE int half() const noexcept { return static_cast<int>(fragments_ % 2); }

  // Room in this fragment's half of the staging memory: the geometry sees to it that it suffices. Every
  // thread counts what was taken.
  [[nodiscard]] COLLX_HD_INLINE std::byte* stage(std::size_t bytes) noexcept {
    std::byte* const room = port_.staging(half()) + std::size_t{staged_lines_} * 64;
    staged_lines_ += static_cast<std::uint32_t>((bytes + 63) / 64);
    return room;
  }

  // ---- sending -----------------------------------------------------------------------------------

  // Done with the messages of a fan-in, and gives the peers of a fan-out what the workspace says. After a
  // sync that follows all accesses to either. Packets are given back without a fence: who has read a packet
  // has looked at its number before the sync, so no later store to it can have been what was read; and what
  // was read of letters before, a fence of that step covers.
  COLLX_HD_INLINE void hand_over(std::int32_t senders, std::int32_t receivers) noexcept {
    // Packets first: they need no fence.
    if (port_.has_packets()) {
      (void)in_parts(receivers, [&](team_part const& part, std::int32_t k) {
        outgoing const& sent = shared_.given[k];
        if (sent.by != carriage::packets) return true;
        port_.send_packets(part, sent.peer, shared_.numbers[k], data_of(k), sent.bytes);
        if (part.rank() == 0) port_.sent_as_packets(sent.peer);
        return true;
      });
    }
    if (team_.rank() >= (senders > receivers ? senders : receivers)) return;
    bool fences = false;
    (void)each(senders, duty::messages, [&](std::int32_t k) {
      fences = fences || shared_.from[k].by == carriage::letter;
      return true;
    });
    (void)each(receivers, duty::messages, [&](std::int32_t k) {
      outgoing const& sent = shared_.given[k];
      if (sent.by != carriage::letter) return true;
      if (!sent.written) write(sent, data_of(k));
      return fences = true;
    });
    device::publication const published(fences ? port_.reach() : device::reach::nobody);
    (void)each(senders, duty::messages, [&](std::int32_t k) {
      incoming const came = shared_.from[k];
      if (came.by != carriage::nothing) port_.consume(came.peer, published);
      return true;
    });
    (void)each(receivers, duty::messages, [&](std::int32_t k) {
      outgoing const& sent = shared_.given[k];
      if (sent.by == carriage::letter) port_.post(sent.peer, published);
      return true;
    });
  }

  // The letter that says where a payload is. By the thread that sees to the peer, once it takes a message.
  COLLX_HD_INLINE void write(outgoing const& sent, std::byte const* where) noexcept {
    if (sent.stored) return port_.write_stored(sent.peer, where, sent.bytes);
    if (sent.lends) device::store_relaxed(&shared_.lent, 1u);  // relaxed: read after the next sync
    port_.write(sent.peer, where, sent.bytes, shared_.offered, shared_.offered_bytes);
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
  // Of 32 bits, for registers are scarce: a fragment has a line at least, and more than 256 GiB nobody cuts
  // in lines.
  std::uint32_t fragment_ = 0;

 private:
  [[nodiscard]] COLLX_HD_INLINE std::byte const* data_of(std::int32_t k) const noexcept {
    return shared_.given[k].staged ? shared_.destinations[k] : shared_.given[k].data;
  }

  std::uint32_t fragments_;  // of this lane, in all calls: which half of the staging memory is used
  std::uint32_t staged_lines_ = 0;
};

}  // namespace collx::inline abi_1::exec
