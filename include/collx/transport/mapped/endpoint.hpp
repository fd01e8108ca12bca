// SPDX-License-Identifier: Apache-2.0
// The endpoint of every transport whose ranks can load each other's memory: publish and read in
// place. `Space` says what is reachable and how an address is told to a peer (threads: the pointer
// itself; shm: an offset in the segment) and who is still alive.
#pragma once

#include <cstring>

#include "collx/core/array.hpp"
#include "collx/device/cache_hint.hpp"
#include "collx/device/copy_few.hpp"
#include "collx/device/cpu.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/mapped/doorbell.hpp"
#include "collx/transport/mapped/pair.hpp"
#include "collx/transport/mapped/presence.hpp"
#include "collx/transport/mapped/staging_pace.hpp"
#include "collx/transport/staging_ring.hpp"

namespace collx::inline abi_1::transport::mapped {

// A Space offers: address_of(pointer, bytes) -> shared address or 0; at(address) -> pointer;
// interrupted(world_rank) -> status; bell(world_rank) -> its doorbell; fenced() -> whether all ranks have
// joined the fences. One with `fetches` can besides copy from memory that a peer does not share:
// fetched_bytes_min(), page_of_system(), readable(pointer, bytes), read_private(world_rank, from there, to,
// bytes) -> status; crowded() -> whether ranks share processors, so that less is worth it.
template <class Space>
class endpoint {
 public:
  static constexpr int lane_count = mapped::lane_count;
  static constexpr bool is_mapped = true;
  static constexpr bool lends_blocks = true;
  // This and is_open (address_of() never returns 0) are for tables of choices.
  static constexpr char const* transport_name = [] {
    if constexpr (requires { Space::transport_name; }) return Space::transport_name;
    else return "mapped";
  }();
  static constexpr std::size_t inline_bytes = mapped::inline_bytes;
  static constexpr std::size_t timed_copy_bytes_min = staging_pace::noted_bytes_min;
  static constexpr rank_t fetched_ranks_max = mapped::fetched_ranks_max;
  static constexpr bool fetches = [] {
    if constexpr (requires { Space::fetches; }) return Space::fetches;
    else return false;
  }();

  // Whether what failed calls were given must be guarded from peers (exec/presence.hpp).
  static constexpr bool lends_memory = [] {
    if constexpr (requires { Space::lends_memory; }) return Space::lends_memory;
    else return false;
  }();

  static constexpr bool is_open = [] {
    if constexpr (requires { Space::is_open; }) return Space::is_open;
    else return false;
  }();

  // `members[i]`: the world rank of rank i here. `blocks[i]`: where its block of shared memory lies
  // in this rank's address space; zeroed by its owner before anybody else uses it.
  COLLX_COLD endpoint(Space& space, rank_t rank, array<rank_t> members, std::byte* const* blocks,
                      block_layout layout)
      : space_(&space),
        rank_(rank),
        layout_(layout),
        members_(static_cast<array<rank_t>&&>(members)),
        peers_(static_cast<std::size_t>(lane_count) * static_cast<std::size_t>(layout.size)),
        short_bytes_(layout.inbox_of(0).enclosed_bytes_max),
        own_block_(blocks[rank]),
        sleeper_(space.bell(members_[static_cast<std::size_t>(rank)]), space.fenced()),
        rings_(layout.size) {
    for (int lane = 0; lane < lane_count; ++lane) {
      for (rank_t peer = 0; peer < size(); ++peer) attach(lane, peer, blocks);
      rings_.attach(lane, own_block_ + layout.staging(lane), layout.ring_bytes(lane));
    }
  }

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return layout_.size; }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return layout_.staging_bytes; }
  [[nodiscard]] std::size_t short_bytes() const noexcept { return short_bytes_; }
  [[nodiscard]] std::uint64_t depth() const noexcept { return mapped::depth; }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return layout_.bytes_taken(); }
  [[nodiscard]] Space& space() const noexcept { return *space_; }
  [[nodiscard]] block_layout const& layout() const noexcept { return layout_; }

  [[nodiscard]] COLLX_COLD bool is_copy() const noexcept
    requires requires(Space const& space) { space.is_copy(); }
  {
    return space_->is_copy();
  }

  // Gives the shared memory of this communicator back, once the other members have left as well. The
  // endpoint is not used afterwards.
  COLLX_COLD void leave() noexcept {
    farewell& mine = *reinterpret_cast<farewell*>(own_block_ + layout_.end_of_use());
    mine.members = static_cast<std::uint64_t>(size());
    mine.block = own_block_;
    mine.bytes = layout_.bytes_taken();
    for (rank_t peer = 0; peer < size(); ++peer) {
      // Release: whatever this rank did with the block comes before.
      reinterpret_cast<farewell*>(block_of(peer) + layout_.end_of_use())
          ->departed.fetch_add(1, std::memory_order_release);
    }
    space_->retire_block(mine);
  }

  // See exec/presence.hpp.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool approach() noexcept {
    return presence_in(own_block_).approach(space_->fenced());
  }
  COLLX_ALWAYS_INLINE bool withdraw() noexcept { return presence_in(own_block_).withdraw(); }
  COLLX_COLD void reclaim(std::uint64_t at_most_us) noexcept {
    std::uint64_t const begin_us = now_us();
    if constexpr (fetches) space_->wait_for_writers(at_most_us);
    std::uint64_t const waited_us = now_us() - begin_us;
    std::uint64_t const rest_us = waited_us < at_most_us ? at_most_us - waited_us : 0;
    if constexpr (lends_memory)
      outlast(
          rank_, size(), space_->fenced(), rest_us,
          [&](rank_t peer) -> presence& { return presence_in(block_of(peer)); },
          [&](rank_t peer) {
            if constexpr (requires { space_->has_ended(peer); }) return space_->has_ended(world_rank(peer));
            else return false;
          });
  }

  void begin(int lane, std::byte* output, std::size_t output_bytes = 0) noexcept {
    target_[lane] = output;
    target_bytes_[lane] = output_bytes;
    offers_[lane] = false;
    ++collective_[lane];
  }
  void offer(int lane) noexcept { offers_[lane] = true; }
  // Payloads that are sent in place from now on are the begin of a block of so many bytes, which is lent with
  // them; 0: they are what they are.
  void lends_block(int lane, std::size_t bytes) noexcept { lent_block_bytes_[lane] = bytes; }
  // Of the message that has arrived.
  [[nodiscard]] std::size_t lent_block_bytes(int lane, rank_t peer) noexcept {
    letter const& here = *at(lane, peer).inbox;
    return here.payload == 0 ? 0 : here.lent_block_bytes();
  }

  void expect(int, rank_t, std::byte*, std::size_t) noexcept {}  // peers' memory is read in place

  [[nodiscard]] COLLX_ALWAYS_INLINE bool arrived(int lane, rank_t peer, arrival& what) noexcept {
    pair& with = at(lane, peer);
    letter const& next = *with.inbox;
    // Acquire: pairs with the release in send(), so that the letter and the payload it points to
    // are seen as the sender wrote them.
    if (next.sequence.load(std::memory_order_acquire) != with.received + 1) return false;
    what.bytes = next.bytes;
    with.owes_receipt = next.payload != 0;
    if (next.payload == 0) {
      what.data = COLLX_LIKELY(what.bytes <= inline_bytes) ? next.inlined : with.inbox.enclosure();
      return true;
    }
    what.data = fetches && COLLX_UNLIKELY(next.payload >= in_receiver) ? in_private(next.payload)
                                                                       : space_->at(next.payload);
    with.push_target = next.target;
    std::memcpy(&with.push_room, next.inlined, sizeof with.push_room);
    with.push_collective = collective_[lane];
    return true;
  }

  COLLX_ALWAYS_INLINE void consume(int lane, rank_t peer) noexcept {
    pair& with = at(lane, peer);
    letter const& here = *with.inbox;
    learn(with, here);
    with.enclosed_bytes = here.payload == 0 && here.bytes > inline_bytes ? here.bytes : 0;
    ++with.received;
    with.inbox.advance();
    // The sender waits for its staging or its user's memory to be free. Of small letters it only
    // needs to know often enough never to run out of credit.
    std::uint64_t const unsaid = with.received - with.acknowledged;
    if (!with.owes_receipt && unsaid < with.per_receipt) return;
    with.acknowledged = with.received;
    // Release: everything read from the payload is read before the sender may overwrite it.
    with.receipts->consumed.store(with.received, std::memory_order_release);
    with.bell->ring_if_asleep();
  }

  COLLX_ALWAYS_INLINE void prepare_letter(int lane, rank_t peer) noexcept { prepare_answer(at(lane, peer)); }

  [[nodiscard]] COLLX_ALWAYS_INLINE bool can_send(int lane, rank_t peer) noexcept {
    pair& to = at(lane, peer);
    return COLLX_LIKELY(to.sent - to.known_consumed <= to.taken_max) ||
           acknowledged(to, to.sent - to.taken_max);
  }

  [[nodiscard]] bool reachable(std::byte const* payload, std::size_t bytes) const noexcept {
    return space_->address_of(payload, bytes) != 0;
  }

  // Whether a payload that peers cannot reach may be sent in place all the same: they fetch it.
  [[nodiscard]] bool fetchable(std::byte const* payload, std::size_t bytes, std::size_t worth) noexcept {
    if constexpr (fetches) {
      std::size_t const least = space_->fetched_bytes_min();
      if (COLLX_UNLIKELY(!paces_.has_started()) && least != static_cast<std::size_t>(-1)) start_paces();
      return (worth >= least || (worth >= least / 8 && stages_slowly())) && space_->readable(payload, bytes);
    }
    return false;
  }
  [[nodiscard]] bool lends(copying how) noexcept { return paces_.lends(how); }
  [[nodiscard]] bool stages_slowly() noexcept { return paces_.is_slow(); }
  void stage_copy(int lane, std::byte* to, std::byte const* payload, std::size_t bytes,
                  copying how) noexcept {
    paces_.copy(lane, to, payload, bytes, how);
  }
  [[nodiscard]] staging_paces& paces() noexcept { return paces_; }

  // Bytes [from, from + bytes) of the message that has arrived without data.
  [[nodiscard]] COLLX_NEVER_INLINE status fetch(int lane, rank_t peer, std::size_t from, std::byte* to,
                                                std::size_t bytes) noexcept {
    pair const& with = at(lane, peer);
    letter const& here = *with.inbox;
    return space_->read_private(world_rank(peer), (here.payload & ~in_sender) + from, to, bytes);
  }

  // Where what peers cannot reach begins in their memory; and copies to there.
  [[nodiscard]] std::uint64_t post_target(int lane, rank_t peer) noexcept {
    pair const& with = at(lane, peer);
    bool const known = with.push_collective == collective_[lane] && (with.push_target & in_sender) != 0;
    return known ? with.push_target & ~in_sender : 0;
  }
  [[nodiscard]] status post(rank_t peer, std::uint64_t to, std::byte const* from,
                            std::size_t bytes) noexcept {
    return space_->write_private(world_rank(peer), to, from, bytes);
  }

  // A part of this rank's own memory for what is fetched from the k-th of `count` ranks, to be read at once.
  [[nodiscard]] std::byte* landing(std::int32_t k, std::int32_t count) const noexcept {
    return own_block_ + layout_.landing() + static_cast<std::size_t>(k) * landing_room(count);
  }
  [[nodiscard]] static constexpr std::size_t landing_room(std::int32_t count) noexcept {
    return landing_bytes / static_cast<std::size_t>(count) / line_bytes * line_bytes;
  }

  // Payloads that fit a letter need no memory that peers can read: any line of ours will do.
  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    if (bytes <= inline_bytes) return small_[lane];
    return rings_[lane].allocate(
        bytes, [&](rank_t peer, std::uint64_t count) { return acknowledged(at(lane, peer), count); });
  }
  [[nodiscard]] rank_t staging_held_by(int lane) noexcept { return rings_[lane].held_by(); }

  COLLX_ALWAYS_INLINE void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
                                handover how) noexcept {
    pair& to = at(lane, peer);
    bool const unanswered = to.acknowledged == to.received;
    if (COLLX_LIKELY(bytes <= inline_bytes && how < handover::pushed))
      write_letter(to, payload, bytes, bytes);
    else if (lane == 0 && bytes <= short_bytes_ && how < handover::pushed)
      write_enclosing(to, payload, bytes);
    else return send_where_it_lies(lane, peer, payload, bytes, how);
    to.bell->ring_if_asleep();
    // One of a stream: the next follows before this one has arrived, and need not wait for its line. Where
    // letters alternate with the peer's, its line is fetched when the peer's is consumed.
    if (unanswered) prepare_answer(to);
  }

  COLLX_NEVER_INLINE void send_where_it_lies(int lane, rank_t peer, std::byte const* payload,
                                             std::size_t bytes, handover how) noexcept {
    pair& to = at(lane, peer);
    letter& next = *to.outbox;
    next.bytes = static_cast<std::uint32_t>(bytes);
    next.consumed = static_cast<std::uint32_t>(to.acknowledged = to.received);
    // Of a greeting, any address will do that is one. What was posted lies at an address of the receiver's.
    if (how == handover::posted) next.payload = 0;
    else next.payload = space_->address_of(how == handover::greeting ? own_block_ : payload, bytes);
    next.target = target_[lane] == nullptr ? 0 : space_->address_of(target_[lane], 1);
    next.say_bytes(target_bytes_[lane], how == handover::in_place ? lent_block_bytes_[lane] : 0);
    if constexpr (fetches) {
      if (next.payload == 0)
        next.payload =
            reinterpret_cast<std::uintptr_t>(payload) | (how == handover::posted ? in_receiver : in_sender);
      if (next.target == 0 && offers_[lane])
        next.target = reinterpret_cast<std::uintptr_t>(target_[lane]) | in_sender;
    }
    (how == handover::in_place ? to.in_place_sent : to.staged_sent) = to.sent + 1;
    // The same payload goes to several peers one after the other: hint once.
    bool const hint = how == handover::staged && bytes <= hinted_bytes_max() && payload != hinted_[lane];
    if (hint && bytes <= demoted_bytes_max) device::demote(payload, bytes);
    // Release: the letter and the payload are written before the receiver can see the number.
    next.sequence.store(++to.sent, std::memory_order_release);
    to.outbox.advance();
    to.bell->ring_if_asleep();
    if (hint) {
      // The receivers read the ring's next lines a round ago; take them back while they are busy.
      hinted_[lane] = payload;
      if (rings_[lane].is_used()) device::prefetch_exclusive(rings_[lane].likely_next(bytes), bytes);
    }
  }

  [[nodiscard]] std::byte* push_target(int lane, rank_t peer) noexcept {
    pair const& with = at(lane, peer);
    bool const known = with.push_collective == collective_[lane] && with.push_target != 0;
    return known && (with.push_target & in_sender) == 0 ? space_->at(with.push_target) : nullptr;
  }
  [[nodiscard]] std::size_t push_room(int lane, rank_t peer) noexcept { return at(lane, peer).push_room; }

  void end_fragment(int lane) noexcept {
    // Only staged letters: those without a payload are not acknowledged at once.
    rings_[lane].mark([&](rank_t peer) { return at(lane, peer).staged_sent; });
  }

  [[nodiscard]] COLLX_NEVER_INLINE rank_t unread_by(int lane) noexcept {
    for (rank_t peer = 0; peer < size(); ++peer)
      if (!acknowledged(at(lane, peer), at(lane, peer).in_place_sent)) return peer;
    return no_rank;
  }

  // For who keeps the staging of this endpoint and another one together (transport/composite.hpp): its
  // memory, and what a mark is made of.
  [[nodiscard]] std::byte* staging(int lane) const noexcept { return own_block_ + layout_.staging(lane); }
  [[nodiscard]] std::uint64_t staged_for(int lane, rank_t to) noexcept { return at(lane, to).staged_sent; }
  [[nodiscard]] bool is_free(int lane, rank_t peer, std::uint64_t count) noexcept {
    return acknowledged(at(lane, peer), count);
  }

  [[nodiscard]] std::byte* scratch(int lane) noexcept { return own_block_ + layout_.scratch(lane); }
  [[nodiscard]] std::size_t apart_bytes(rank_t) const noexcept { return layout_.apart_bytes(); }
  [[nodiscard]] std::byte* apart(int lane, rank_t to) noexcept {
    return own_block_ + layout_.apart(lane, to);
  }
  [[nodiscard]] bool has_read_all(int lane, rank_t peer) noexcept { return read_all(at(lane, peer)); }
  void progress() noexcept {}  // the processors' caches move the bytes
  // See exec::sleeping_place.
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    sleeper_.announce();
    return true;
  }
  [[nodiscard]] bool sleep(std::uint64_t at_most_us) noexcept { return sleeper_.sleep(at_most_us); }
  [[nodiscard]] sleeper const& slept() const noexcept { return sleeper_; }
  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    return space_->interrupted(peer == no_rank ? no_rank : world_rank(peer));
  }

 private:
  // When payloads may be lent: by then it is known how quick the system is.
  COLLX_COLD void start_paces() noexcept { paces_.start(space_->page_of_system(), layout_.ring_bytes(0)); }

  // Measured for one writer and one reader: demoting lines pays up to 512 bytes, fetching the
  // next payload's lines early as long as they do not push out what is in use.
  static constexpr std::size_t demoted_bytes_max = 512;
  static std::size_t hinted_bytes_max() { return device::cpu::wants_help_fetching ? 16384 : 8192; }

  void attach(int lane, rank_t peer, std::byte* const* blocks) noexcept {
    pair& with = at(lane, peer);
    std::byte* const theirs = blocks[peer];
    with.block = theirs;
    inbox_shape const inbox = layout_.inbox_of(lane);
    with.inbox = ring_place(own_block_ + layout_.inbox(lane, peer), inbox);
    with.outbox = ring_place(theirs + layout_.inbox(lane, rank_), inbox);
    with.taken_max = inbox.taken_max();
    with.per_receipt = inbox.per_receipt();
    with.bell = &space_->bell(world_rank(peer));
    with.receipts = reinterpret_cast<acknowledgement*>(own_block_ + layout_.acknowledgement_of(lane, peer));
    with.returned =
        reinterpret_cast<acknowledgement const*>(theirs + layout_.acknowledgement_of(lane, rank_));
  }

  [[nodiscard]] std::byte* block_of(rank_t peer) noexcept { return at(0, peer).block; }
  [[nodiscard]] presence& presence_in(std::byte* block) const noexcept {
    return *reinterpret_cast<presence*>(block + layout_.presence());
  }

  [[nodiscard]] pair& at(int lane, rank_t peer) noexcept {
    return peers_[static_cast<std::size_t>(lane) * static_cast<std::size_t>(size()) +
                  static_cast<std::size_t>(peer)];
  }

  // A payload that lies in private memory: null, if it is in the sender's.
  [[nodiscard]] static std::byte const* in_private(std::uint64_t payload) noexcept {
    return (payload & in_sender) != 0 ? nullptr : reinterpret_cast<std::byte const*>(payload & ~in_receiver);
  }

  Space* space_;
  rank_t rank_;
  block_layout layout_;
  array<rank_t> members_;
  array<pair> peers_;
  std::size_t short_bytes_;
  std::byte* own_block_;
  sleeper sleeper_;
  staging_rings<lane_count> rings_;
  staging_paces paces_;
  // What is staged and fits a letter; read as elements.
  alignas(line_bytes) std::byte small_[lane_count][line_bytes];
  std::byte const* hinted_[lane_count] = {};
  std::byte const* target_[lane_count] = {};
  std::size_t target_bytes_[lane_count] = {};
  std::size_t lent_block_bytes_[lane_count] = {};
  bool offers_[lane_count] = {};
  std::uint64_t collective_[lane_count] = {};
};

}  // namespace collx::inline abi_1::transport::mapped
