// SPDX-License-Identifier: Apache-2.0
// One rank's end of one communicator over TCP. Posts messages, which the world moves; whatever arrives before
// it is expected is kept until it is. See transport/concept.hpp for what is asked of it.
#pragma once

#include "collx/transport/sockets/world.hpp"
#include "collx/transport/staging_ring.hpp"

namespace collx::inline abi_1::transport {

class tcp_endpoint {
 public:
  static constexpr int lane_count = tcp_world::lane_count;
  static constexpr bool is_mapped = false;
  static constexpr bool fetches = false;
  // A call ends when the kernel has all it sent: nothing else would write it while the caller computes.
  static constexpr bool finishes_sends = true;
  // And so it need not wait any longer for a payload that is sent from where it lies.
  static constexpr bool lends_at_once = true;
  // What comes for a communicator that a rank has no part in yet stays in the socket, and all behind it.
  static constexpr bool holds_up_early = true;
  static constexpr char const* transport_name = tcp_world::transport_name;
  static constexpr std::size_t inline_bytes = sockets::channel::inline_bytes;
  using channel = sockets::channel;

  // All that one takes from the system, for a communicator of `members` ranks.
  struct provision {
    provision() = default;
    // Throws error (out_of_memory, system_failure).
    COLLX_COLD provision(tcp_world const& world, rank_t members)
        : group(members, lane_count, staging_bytes_of(world) / 2),
          memory(static_cast<std::size_t>(lane_count) * per_lane_bytes(staging_bytes_of(world))) {}
    sockets::channel_group::provision group;
    zeroed_pages memory;  // staging and scratch
  };

  COLLX_COLD tcp_endpoint(tcp_world& world, std::uint64_t id, array<rank_t> members, rank_t rank,
                          provision&& has)
      : world_(&world),
        group_(id, static_cast<array<rank_t>&&>(members), rank, lane_count, staging_bytes_of(world) / 2,
               static_cast<sockets::channel_group::provision&&>(has.group)),
        memory_(static_cast<zeroed_pages&&>(has.memory)),
        rings_(group_.size()) {
    static_assert(lane_count <= sockets::channel_group::lanes_max);
    for (int lane = 0; lane < lane_count; ++lane) {
      rings_.attach(lane, of_lane(lane), staging_bytes());
      group_.limit(lane, world.all_chosen(), "");
    }
  }

  [[nodiscard]] rank_t rank() const noexcept { return group_.rank(); }
  [[nodiscard]] rank_t size() const noexcept { return group_.size(); }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept { return group_.world_rank(member); }
  [[nodiscard]] std::uint64_t depth() const noexcept { return channel::sure_depth; }
  [[nodiscard]] std::size_t short_bytes() const noexcept { return inline_bytes; }
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return staging_bytes_of(*world_); }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept {
    return memory_.size() + group_.reserved_bytes();
  }
  [[nodiscard]] bool is_sharing() const noexcept { return world_->chosen().sharing; }
  [[nodiscard]] tcp_world& space() const noexcept { return *world_; }
  [[nodiscard]] COLLX_COLD bool is_copy() const noexcept { return world_->is_copy(); }
  COLLX_COLD void enter() noexcept { world_->enter(group_); }
  COLLX_COLD void leave() noexcept { world_->leave(group_); }

  void begin(int, std::byte*, std::size_t = 0) noexcept {}
  // What begins on a lane; see flows::slice_limits.
  void about(int lane, char const* collective) noexcept {
    if (COLLX_LIKELY(!world_->all_chosen().slices.tells_collectives_apart())) return;
    posix_lock const held(world_->mutex());
    group_.limit(lane, world_->all_chosen(), collective);
  }

  void expect(int lane, rank_t peer, std::byte* destination, std::size_t bytes) noexcept {
    posix_lock const held(world_->mutex());
    channel& c = group_.at(lane, peer);
    c.wanted_at = destination;
    c.wanted_bytes = bytes;
    ++c.expected;
    world_->need(c);
  }

  [[nodiscard]] bool arrived(int lane, rank_t peer, arrival& what) noexcept {
    posix_lock const held(world_->mutex());
    channel& c = group_.at(lane, peer);
    if (c.here == c.consumed) {
      group_.watch(c.with);
      return false;
    }
    channel::incoming const& in = c.slot(c.consumed);
    what = {in.to, in.bytes};
    return true;
  }

  void consume(int lane, rank_t peer) noexcept {
    posix_lock const held(world_->mutex());
    channel& c = group_.at(lane, peer);
    // Most receipts travel with messages the other way. In a stream one way the sender must hear in time.
    if (c.consume()) world_->acknowledge(c);
  }

  [[nodiscard]] bool can_send(int lane, rank_t peer) noexcept {
    posix_lock const held(world_->mutex());
    channel& c = group_.at(lane, peer);
    if (COLLX_LIKELY(c.has_credit())) return true;
    group_.watch(nullptr);  // receipts may come on the connection for control
    return false;
  }
  [[nodiscard]] bool reachable(std::byte const*, std::size_t) const noexcept { return true; }
  [[nodiscard]] std::byte* push_target(int, rank_t) noexcept { return nullptr; }

  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    posix_lock const held(world_->mutex());
    return rings_[lane].allocate(bytes, [&](rank_t peer, std::uint64_t count) noexcept {
      return count == 0 || group_.at(lane, peer).handed >= count;
    });
  }
  [[nodiscard]] rank_t staging_held_by(int lane) noexcept { return rings_[lane].held_by(); }

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover) noexcept {
    posix_lock const held(world_->mutex());
    channel& c = group_.at(lane, peer);
    channel::posted& post = c.post(c.sent);
    post.payload = payload;
    post.bytes = static_cast<std::uint32_t>(bytes);
    post.assigned = post.written = 0;
    post.whole = false;
    if (bytes <= inline_bytes) {
      if (bytes != 0) std::memcpy(post.small, payload, bytes);
      post.payload = post.small;
    }
    ++c.sent;
    c.large_unread += c.is_large(bytes);
    ++group_.unsent(lane);
    world_->send(c, lane == lane_count - 1);
  }

  void end_fragment(int lane) noexcept {
    // Of a ring nobody knows but the caller: the lock is for what is asked about peers.
    if (rings_[lane].is_marked()) return;
    posix_lock const held(world_->mutex());
    rings_[lane].mark(
        [&](rank_t peer) noexcept { return group_.is_made(peer) ? group_.at(lane, peer).sent : 0; });
  }

  [[nodiscard]] rank_t unread_by(int lane) noexcept {
    posix_lock const held(world_->mutex());
    if (COLLX_LIKELY(group_.unsent(lane) == 0)) return no_rank;
    group_.watch(nullptr);
    for (rank_t peer = 0; peer < size(); ++peer)
      if (group_.is_made(peer) && group_.at(lane, peer).handed != group_.at(lane, peer).sent) return peer;
    return no_rank;
  }

  // For who keeps the staging of this endpoint and another one together (transport/composite.hpp).
  [[nodiscard]] std::uint64_t staged_for(int lane, rank_t peer) noexcept {
    posix_lock const held(world_->mutex());
    return group_.is_made(peer) ? group_.at(lane, peer).sent : 0;
  }
  [[nodiscard]] bool is_free(int lane, rank_t peer, std::uint64_t count) noexcept {
    posix_lock const held(world_->mutex());
    return count == 0 || group_.at(lane, peer).handed >= count;
  }

  [[nodiscard]] std::byte* scratch(int lane) noexcept { return of_lane(lane) + staging_bytes(); }

  void progress() noexcept {
    posix_lock const held(world_->mutex());
    world_->progress(group_);
  }
  // See exec::sleeping_place.
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    posix_lock const held(world_->mutex());
    world_->prepare_to_sleep(group_);
    return true;
  }
  [[nodiscard]] bool sleep(std::uint64_t at_most_us) noexcept { return world_->sleep(group_, at_most_us); }
  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    return world_->interrupted(peer == no_rank ? no_rank : world_rank(peer), timeout_us_);
  }
  COLLX_COLD void be_patient(std::uint64_t us) noexcept {
    timeout_us_ = us;
    world_->be_patient(us);
  }
  [[nodiscard]] std::uint64_t timeout_us() const noexcept { return timeout_us_; }
  [[nodiscard]] rank_t suspect(rank_t peer) noexcept { return world_->suspect(world_rank(peer)); }

 private:
  [[nodiscard]] static std::size_t staging_bytes_of(tcp_world const& world) noexcept {
    return world.chosen().staging_bytes;
  }
  [[nodiscard]] static std::size_t per_lane_bytes(std::size_t staging) noexcept {
    return staging + staging / 2;
  }
  [[nodiscard]] std::byte* of_lane(int lane) noexcept {
    return memory_.data() + static_cast<std::size_t>(lane) * per_lane_bytes(staging_bytes());
  }

  tcp_world* world_;
  std::uint64_t timeout_us_ = 0;  // of a wait on this communicator: its engine says so before it waits
  sockets::channel_group group_;
  zeroed_pages memory_;  // staging and scratch
  staging_rings<lane_count> rings_;
};

}  // namespace collx::inline abi_1::transport
