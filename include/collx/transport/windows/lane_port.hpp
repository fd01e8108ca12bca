// SPDX-License-Identifier: Apache-2.0
// One lane of one rank's end of a group of windows: the questions of transport/concept.hpp, as a kernel asks
// them. Each question about a peer is asked by one thread of a team at a time, and the team syncs before
// another one asks: so books need no synchronisation of their own.
#pragma once

#include "collx/device/team.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/windows/packets.hpp"
#include "collx/transport/windows/view.hpp"

namespace collx::inline abi_1::transport::windows {

// A message that is here.
struct delivery : arrival {
  // Where the sender has its output, and how long that is; 0: none may be stored to.
  std::uint64_t output = 0;
  std::size_t output_bytes = 0;
  // How many more calls its sender had made. Else than 0, the two ranks are not in the same call.
  std::int64_t calls_ahead = 0;
};

class lane_port {
 public:
  using group = view;  // what kernels take
  using delivery = windows::delivery;

  COLLX_HD_INLINE lane_port(view const& all, int lane) noexcept
      : group_(&all),
        lane_(lane),
        call_(lane == 0 ? all.state(0).calls : 0),
        packed_max_(lane == 0 ? static_cast<std::uint32_t>(all.where.packet_bytes()) : 0),
        books_(kept_books()),
        peers_(all.peers),
        channels_(static_cast<std::uint32_t>(all.where.from(lane, 0))) {}
  // The same with what is looked at in every step in memory that is near to the team's threads, of
  // near_bytes: a GPU's first-level cache forgets it at every acquire. open() comes first, and close() last.
  COLLX_HD_INLINE lane_port(view const& all, int lane, std::byte* near) noexcept
      : group_(&all),
        lane_(lane),
        call_(lane == 0 ? all.state(0).calls : 0),
        packed_max_(lane == 0 ? static_cast<std::uint32_t>(all.where.packet_bytes()) : 0),
        books_(reinterpret_cast<book*>(near)),
        peers_(reinterpret_cast<peer_view const*>(near + static_cast<std::size_t>(all.size) * sizeof(book))),
        channels_(static_cast<std::uint32_t>(all.where.from(lane, 0))) {}
  [[nodiscard]] static constexpr COLLX_HD std::size_t near_bytes(rank_t size) noexcept {
    return static_cast<std::size_t>(size) * (sizeof(book) + sizeof(peer_view));
  }

  // By all threads, which sync afterwards. Does `meanwhile()` while what it has asked for is under way, which
  // therefore must not need it.
  template <device::team Team, class Meanwhile>
  COLLX_HD_INLINE void open(Team const& team, Meanwhile const& meanwhile) const noexcept {
    rank_t peer = team.rank();
    bool const has_peer = is_near() && peer < size();
    book kept{};
    peer_view seen{};
    if (has_peer) kept = kept_books()[peer], seen = group_->peers[peer];
    meanwhile();
    if (!has_peer) return;
    keep_near(peer, kept, seen);
    for (peer += team.size(); peer < size(); peer += team.size())
      keep_near(peer, kept_books()[peer], group_->peers[peer]);
  }
  template <device::team Team>
  COLLX_HD_INLINE void open(Team const& team) const noexcept {
    open(team, [] {});
  }
  // By all threads, which have synced before. What is not closed is as if it had not happened.
  template <device::team Team>
  COLLX_HD_INLINE void close(Team const& team) const noexcept {
    if (!is_near()) return;
    for (rank_t peer = team.rank(); peer < size(); peer += team.size()) kept_books()[peer] = books_[peer];
  }

  [[nodiscard]] COLLX_HD_INLINE rank_t rank() const noexcept { return group_->rank; }
  [[nodiscard]] COLLX_HD_INLINE rank_t size() const noexcept { return group_->size; }
  [[nodiscard]] COLLX_HD_INLINE int lane() const noexcept { return lane_; }
  [[nodiscard]] COLLX_HD_INLINE int lanes() const noexcept { return group_->lanes; }
  [[nodiscard]] COLLX_HD_INLINE device::reach reach() const noexcept { return group_->reach; }
  [[nodiscard]] COLLX_HD_INLINE device::patience const& limits() const noexcept { return group_->limits; }
  [[nodiscard]] COLLX_HD_INLINE std::size_t half_bytes() const noexcept { return group_->where.half_bytes(); }

  // ---- by the thread that sees to the peer ---------------------------------------------------------

  // Whether the next message from the peer is here; then `came` is what it says. Not for packets. `looks`:
  // how often that was asked before.
  [[nodiscard]] COLLX_HD_INLINE bool arrived(rank_t peer, delivery& came,
                                             std::uint32_t looks = 0) const noexcept {
    std::uint64_t const taken = book_of(peer).taken;
    letter const& next = from(peer).letters[taken % depth];
    if (!holds(&next.sequence, taken + 1, looks)) return false;
    // All that it says, before any of it is used: memory is far, and is asked once.
    std::uint64_t const address = next.address;
    std::uint32_t const call = next.call;
    letter_place const where = next.where;
    came.bytes = next.bytes, came.output = next.output, came.output_bytes = next.output_bytes;
    peer_view const& sender = peers_[peer];
    std::int64_t const shift = where == letter_place::heap     ? sender.shift_of(address)
                               : where == letter_place::window ? sender.window_shift
                                                               : 0;
    came.data = reinterpret_cast<std::byte const*>(address + static_cast<std::uint64_t>(shift));
    came.calls_ahead = static_cast<std::int32_t>(call - call_);
    return true;
  }

  // The sender's output, as this rank sees it; or null if none may be stored to, or it ends before
  // `end_bytes`: the sender was called with a smaller count.
  [[nodiscard]] COLLX_HD_INLINE std::byte* output_of(rank_t peer, delivery const& came,
                                                     std::size_t end_bytes) const noexcept {
    if (came.output == 0 || came.output_bytes < end_bytes) return nullptr;
    return reinterpret_cast<std::byte*>(came.output +
                                        static_cast<std::uint64_t>(peers_[peer].shift_of(came.output)));
  }

  // Done with the peer's message: the peer may reuse its memory, and the letter. Published after all threads
  // have read it: what was read of the message is read before the peer writes there again.
  COLLX_HD_INLINE void consume(rank_t peer, device::publication const& published) const noexcept {
    published.store(&at(peer).consumed, ++book_of(peer).taken);
  }

  // Looks at what the peer has read only where what it had read by the last look does not do.
  [[nodiscard]] COLLX_HD_INLINE bool can_send(rank_t peer) const noexcept {
    book& own = book_of(peer);
    std::uint64_t const wanted = own.sent - (depth - 1);
    if (reaches(own.read, wanted)) return true;
    own.read = consumed_by(peer);
    return reaches(own.read, wanted);
  }

  // Requires can_send. In two parts, so that one publication does for the letters to several peers: the
  // letter is written before it is made, and posted by it. `output`: of this call, for peers to store to; or
  // null.
  COLLX_HD_INLINE void write(rank_t peer, std::byte const* payload, std::size_t bytes,
                             std::byte const* output = nullptr, std::size_t output_bytes = 0) const noexcept {
    write(peer, reinterpret_cast<std::uintptr_t>(payload), bytes,
          is_in_window(payload) ? letter_place::window : letter_place::heap, output, output_bytes);
  }
  // The same for a payload that was stored at `target`, in the peer's output as output_of() has it.
  COLLX_HD_INLINE void write_stored(rank_t peer, std::byte const* target, std::size_t bytes) const noexcept {
    auto const here = reinterpret_cast<std::uintptr_t>(target);
    std::uint64_t const address = here - static_cast<std::uint64_t>(peers_[peer].shift_to(here));
    write(peer, address, bytes, letter_place::receiver, nullptr, 0);
  }
  // Published after all threads' writes to the payload, and this one's of the letter.
  COLLX_HD_INLINE void post(rank_t peer, device::publication const& published) const noexcept {
    std::uint64_t& sent = book_of(peer).sent;
    letter& next = at(peer).letters[sent % depth];
    published.store(&next.sequence, ++sent);
  }

  // Counts a message that went as packets.
  COLLX_HD_INLINE void sent_as_packets(rank_t peer) const noexcept { ++book_of(peer).sent; }

  // The numbers, from 0, of the next message to and from a peer.
  [[nodiscard]] COLLX_HD_INLINE std::uint64_t next_to(rank_t peer) const noexcept {
    return book_of(peer).sent;
  }
  [[nodiscard]] COLLX_HD_INLINE std::uint64_t next_from(rank_t peer) const noexcept {
    return book_of(peer).taken;
  }

  // Whether the peer has read everything.
  [[nodiscard]] COLLX_HD_INLINE bool is_read(rank_t peer) const noexcept {
    return has_consumed(peer, book_of(peer).sent);
  }
  // Whether it has read what was sent when that half of the staging memory was left.
  [[nodiscard]] COLLX_HD_INLINE bool is_free(rank_t peer, int half) const noexcept {
    return has_consumed(peer, book_of(peer).staged_until[half]);
  }
  COLLX_HD_INLINE void leave_half(rank_t peer, int half) const noexcept {
    book& own = book_of(peer);
    own.staged_until[half] = own.sent;
  }

  // ---- by all threads ------------------------------------------------------------------------------

  // Whether peers can read a payload where it lies, or store there.
  [[nodiscard]] COLLX_HD_INLINE bool reachable(std::byte const* p, std::size_t bytes) const noexcept {
    auto const begin = reinterpret_cast<std::uintptr_t>(p);
    bool const in_heap = begin >= group_->heap_begin && begin <= group_->heap_end &&
                         bytes <= group_->heap_end - begin;  // written so that nothing wraps around
    // Not the near view: it may not be here yet.
    return in_heap || is_in_window(p) || group_->peers[rank()].has_registered(begin, bytes);
  }

  // Whether a message of that length goes as packets: both ends know.
  [[nodiscard]] COLLX_HD_INLINE bool packs(std::size_t bytes) const noexcept {
    return bytes - 1 < packed_max_;  // not of 0 bytes: that wraps
  }
  // Whether any does on this lane.
  [[nodiscard]] COLLX_HD_INLINE bool has_packets() const noexcept { return packed_max_ != 0; }

  // Stores a payload of any alignment in the peer's packets. `message`: next_to(peer).
  template <device::team Team>
  COLLX_HD_INLINE void send_packets(Team const& team, rank_t peer, std::uint64_t message,
                                    std::byte const* payload, std::size_t bytes) const noexcept {
    send_packets_of(team, group_->where.width(), peers_[peer].window + group_->where.packets(rank(), message),
                    message, call_, payload, bytes);
  }

  // Puts the payload of the k-th packet message of a step together. Each thread waits for its own words and
  // returns ok, or why it stopped waiting; with mismatch, `came` is the length of the message.
  template <device::team Team>
  [[nodiscard]] COLLX_HD_INLINE status take_packets(Team const& team, rank_t peer, std::uint64_t message,
                                                    int k, std::size_t bytes,
                                                    std::size_t& came) const noexcept {
    unpacked const outcome = take_packets_of(team, limits(), group_->where.width(),
                                             group_->own + group_->where.packets(peer, message), from(peer),
                                             message, call_, landing(k), bytes);
    came = outcome.came;
    return outcome.why;
  }

  // Whether the next message from a peer is here, though it went as packets, where a letter is expected: the
  // peer was called with another count. By the thread that sees to the peer.
  [[nodiscard]] COLLX_HD_INLINE bool came_as_packets(rank_t peer, std::size_t& bytes) const noexcept {
    if (!has_packets()) return false;
    std::uint64_t const taken = book_of(peer).taken;
    return load_length(group_->own + group_->where.packets(peer, taken), taken, bytes);
  }

  // Of a message that is here in either way: delivery::calls_ahead.
  [[nodiscard]] COLLX_HD_INLINE std::int64_t calls_ahead(rank_t peer, std::uint64_t message) const noexcept {
    letter const& next = from(peer).letters[message % depth];
    // Relaxed: who asks has seen the message.
    if (device::load_relaxed(&next.sequence) == message + 1)
      return static_cast<std::int32_t>(next.call - call_);
    std::int64_t ahead = 0;
    return has_packets() &&
                   load_call(group_->own + group_->where.packets(peer, message), message, call_, ahead)
               ? ahead
               : 0;
  }
  // The call is over. By one thread, when none makes a port any more; does nothing on other lanes than 0,
  // which have no part in every call.
  COLLX_HD_INLINE void count_call() const noexcept {
    if (lane_ == 0) group_->state(0).calls = call_ + 1;
  }

  [[nodiscard]] COLLX_HD_INLINE std::byte* landing(int k) const noexcept {
    return group_->own + group_->where.landing(k);
  }
  [[nodiscard]] COLLX_HD_INLINE std::byte* staging(int half) const noexcept {
    return group_->own + group_->where.staging(lane_, half);
  }
  [[nodiscard]] COLLX_HD_INLINE std::byte* scratch() const noexcept {
    return group_->own + group_->where.scratch(lane_);
  }
  // By this lane, in all calls before.
  [[nodiscard]] COLLX_HD_INLINE std::uint32_t fragments() const noexcept {
    return group_->state(lane_).fragments;
  }
  // By one thread, when none reads it.
  COLLX_HD_INLINE void fragments(std::uint32_t count) const noexcept {
    group_->state(lane_).fragments = count;
  }

  // Whether somebody has said that all is over. Relaxed: nothing is read because of it.
  [[nodiscard]] COLLX_HD_INLINE bool is_stopped() const noexcept {
    return device::load_relaxed(&group_->own_head().stopped) != 0;
  }

  // The first failure of this rank: tells the host what it was, and all peers to stop. By any thread.
  // `calls_ahead`: as above, where that is what went wrong.
  COLLX_HD_INLINE void fail(status why, std::int32_t step, std::size_t fragment, rank_t peer,
                            std::size_t bytes, std::int64_t calls_ahead = 0) const noexcept {
    fail_of(*group_, lane_, call_, why, step, fragment, peer, bytes, calls_ahead);
  }

 private:
  COLLX_HD_INLINE void write(rank_t peer, std::uint64_t address, std::size_t bytes, letter_place where,
                             std::byte const* output, std::size_t output_bytes) const noexcept {
    letter& next = at(peer).letters[book_of(peer).sent % depth];
    next.address = address;
    next.bytes = bytes;
    next.where = where;
    next.output = reinterpret_cast<std::uintptr_t>(output);
    next.output_bytes = output_bytes;
    next.call = call_;
  }

  // Not a member, as nothing that is called out of line: a port whose address is known elsewhere lies in
  // memory, and a GPU's thread waits for that in each step.
  COLLX_HD COLLX_NEVER_INLINE static void fail_of(view const& group, int lane, std::uint64_t call, status why,
                                                  std::int32_t step, std::size_t fragment, rank_t peer,
                                                  std::size_t bytes, std::int64_t calls_ahead) noexcept {
    head& own = group.own_head();
    std::uint32_t const stopped_by = device::load_relaxed(&own.stopped);
    if (!device::claim(&own.reported)) return;
    report& to = *group.failure;
    to.lane = lane, to.step = step, to.peer = peer;
    to.fragment = fragment, to.bytes = bytes, to.stopped_by = stopped_by;
    to.calls_ahead = calls_ahead, to.calls = call;
    to.collective = group.collective, to.sequence = group.sequence;
    // Release: the host reads the rest once it sees the code.
    device::store_release(&to.code, static_cast<std::uint32_t>(why));
    auto const me = static_cast<std::uint32_t>(group.rank) + 1;
    // Relaxed: says nothing but itself.
    for (rank_t r = 0; r < group.size; ++r)
      device::store_relaxed(reinterpret_cast<std::uint32_t*>(group.peers[r].window), me);
  }

  // Looks of a usual wait: some microseconds.
  static constexpr std::uint32_t short_looks = 16;

  // Whether a word has a value, and then sees what was written before it. The first looks are acquires, or
  // what is here would have to be looked at twice. Later ones are many, so relaxed, which leaves the caches
  // to who else works on this multiprocessor.
  [[nodiscard]] static COLLX_HD_INLINE bool holds(std::uint64_t const* word, std::uint64_t value,
                                                  std::uint32_t looks) noexcept {
    if (looks >= short_looks && device::load_relaxed(word) != value) return false;
    return device::load_acquire(word) == value;
  }

  // Out of line and no members, as said at fail_of().
  template <device::team Team>
  COLLX_HD COLLX_NEVER_INLINE static void send_packets_of(Team const team, packet_width width, std::byte* to,
                                                          std::uint64_t message, std::uint64_t call,
                                                          std::byte const* payload,
                                                          std::size_t bytes) noexcept {
    if (width == packet_width::wide) windows::send_packets<4>(team, to, message, call, payload, bytes);
    else windows::send_packets<2>(team, to, message, call, payload, bytes);
  }
  struct unpacked {
    status why;
    std::size_t came;
  };
  template <device::team Team>
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE static unpacked take_packets_of(
      Team const team, device::patience const& limits, packet_width width, std::byte const* from,
      channel const& peer, std::uint64_t message, std::uint64_t call, std::byte* landing,
      std::size_t bytes) noexcept {
    auto* const to = reinterpret_cast<std::uint32_t*>(landing);
    // Whether it came as a letter; another thread may see to those.
    auto const has_letter = [&](std::size_t& length) noexcept {
      letter const& next = peer.letters[message % depth];
      if (!holds(&next.sequence, message + 1, short_looks)) return false;
      length = next.bytes;
      return true;
    };
    std::size_t came = 0;
    status const why =
        width == packet_width::wide
            ? windows::take_packets<4>(team, limits, from, message, call, to, bytes, has_letter, came)
            : windows::take_packets<2>(team, limits, from, message, call, to, bytes, has_letter, came);
    return {why, came};
  }

  [[nodiscard]] COLLX_HD_INLINE book& book_of(rank_t peer) const noexcept { return books_[peer]; }
  // Of the lane, from call to call.
  [[nodiscard]] COLLX_HD_INLINE book* kept_books() const noexcept {
    return reinterpret_cast<book*>(group_->own + group_->where.of(lane_, 0));
  }
  [[nodiscard]] COLLX_HD_INLINE bool is_near() const noexcept { return books_ != kept_books(); }
  COLLX_HD_INLINE void keep_near(rank_t peer, book const& kept, peer_view const& seen) const noexcept {
    books_[peer] = kept;
    const_cast<peer_view&>(peers_[peer]) = seen;
  }
  // Where the peer writes, in this rank's window; and where this rank does, in the peer's.
  [[nodiscard]] COLLX_HD_INLINE channel const& from(rank_t peer) const noexcept {
    return reinterpret_cast<channel const*>(group_->own + channels_)[peer];
  }
  [[nodiscard]] COLLX_HD_INLINE channel& at(rank_t peer) const noexcept {
    return reinterpret_cast<channel*>(peers_[peer].window + channels_)[rank()];
  }
  // Whether a count of messages is at least another one, which is a difference, and may be below 0.
  [[nodiscard]] static COLLX_HD_INLINE bool reaches(std::uint64_t count, std::uint64_t wanted) noexcept {
    return static_cast<std::int64_t>(count - wanted) >= 0;
  }
  // How many messages the peer has read. Acquire: its reads of what is now reused came before.
  [[nodiscard]] COLLX_HD_INLINE std::uint64_t consumed_by(rank_t peer) const noexcept {
    return device::load_acquire(&from(peer).consumed);
  }
  [[nodiscard]] COLLX_HD_INLINE bool has_consumed(rank_t peer, std::uint64_t messages) const noexcept {
    return reaches(consumed_by(peer), messages);
  }
  [[nodiscard]] COLLX_HD_INLINE bool is_in_window(std::byte const* p) const noexcept {
    auto const begin = reinterpret_cast<std::uintptr_t>(p);
    auto const own = reinterpret_cast<std::uintptr_t>(group_->own);
    return begin >= own && begin < own + group_->where.bytes();
  }

  view const* group_;
  int lane_;
  std::uint32_t call_;        // how many there were before this one
  std::uint32_t packed_max_;  // bytes of the longest message that travels as packets
  book* books_;               // of the lane, by peer
  peer_view const* peers_;
  std::uint32_t channels_;  // where those of the lane begin, by peer, in every window
};

}  // namespace collx::inline abi_1::transport::windows
