// SPDX-License-Identifier: Apache-2.0
// One rank's end of a communicator whose members are partly on this host, and partly elsewhere. Every message
// goes by the transport that its peer is reached by; a payload that goes both ways is staged once, in memory
// that the peers of this host read and the far transport sends from.
#pragma once

#include "collx/transport/combined/world.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/mapped/layout.hpp"
#include "collx/transport/staging_ring.hpp"

namespace collx::inline abi_1::transport {

template <class Near, class Far>
class composite_endpoint {
 public:
  using near_endpoint = typename Near::endpoint;
  using far_endpoint = typename Far::endpoint;
  using world_type = composite_world<typename Near::world, typename Far::world>;

  static constexpr int lane_count = far_endpoint::lane_count;
  static constexpr bool is_mapped = false;  // not everybody's memory is
  static constexpr bool has_near_peers = true;
  static constexpr bool fetches = false;
  static constexpr bool finishes_sends = true;
  static constexpr bool lends_memory = near_endpoint::lends_memory;
  static constexpr bool holds_up_early = true;
  static constexpr char const* transport_name = "composite";
  static constexpr std::size_t inline_bytes = near_endpoint::inline_bytes < far_endpoint::inline_bytes
                                                  ? near_endpoint::inline_bytes
                                                  : far_endpoint::inline_bytes;
  static_assert(near_endpoint::lane_count == far_endpoint::lane_count);
  static_assert(near_endpoint::is_mapped && !far_endpoint::is_mapped,
                "collx: composite<Near, Far> wants a near transport that maps and a far one of messages");

  // `members`: ranks of the far world, `rank` this one's place among them. `near_members`: those of them that
  // are here, as ranks of the near world, with the blocks that each contributes, and this one's place among
  // those. `has`: what the far half takes from the system.
  COLLX_COLD composite_endpoint(world_type& world, std::uint64_t id, array<rank_t> members, rank_t rank,
                                array<rank_t> near_members, rank_t near_rank, std::byte* const* near_blocks,
                                mapped::block_layout const& near_layout,
                                typename far_endpoint::provision&& has)
      : world_(&world),
        near_(world.near(), near_rank, static_cast<array<rank_t>&&>(near_members), near_blocks, near_layout),
        far_(world.far(), id, static_cast<array<rank_t>&&>(members), rank,
             static_cast<typename far_endpoint::provision&&>(has)),
        near_of_(static_cast<std::size_t>(far_.size())),
        member_of_(static_cast<std::size_t>(near_.size())),
        rings_(far_.size()) {
    rank_t next = 0;
    for (rank_t r = 0; r < size(); ++r) {
      bool const here = world.near_rank(far_.world_rank(r)) != no_rank;
      near_of_[static_cast<std::size_t>(r)] = here ? next : no_rank;
      if (here) member_of_[static_cast<std::size_t>(next++)] = r;
    }
    for (int lane = 0; lane < lane_count; ++lane)
      rings_.attach(lane, near_.staging(lane), near_.layout().ring_bytes(lane));
  }

  [[nodiscard]] rank_t rank() const noexcept { return far_.rank(); }
  [[nodiscard]] rank_t size() const noexcept { return far_.size(); }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept { return far_.world_rank(member); }
  [[nodiscard]] std::uint64_t depth() const noexcept {
    return near_.depth() < far_.depth() ? near_.depth() : far_.depth();
  }
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return near_.staging_bytes(); }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept {
    return near_.reserved_bytes() + far_.reserved_bytes();
  }
  // Whether all members are on this host; the same on all of them.
  [[nodiscard]] bool all_near() const noexcept { return near_.size() == far_.size(); }
  [[nodiscard]] bool is_sharing() const noexcept
    requires requires(far_endpoint const& far) { far.is_sharing(); }
  {
    return far_.is_sharing();
  }
  [[nodiscard]] world_type& space() const noexcept { return *world_; }
  [[nodiscard]] COLLX_COLD bool is_copy() const noexcept
    requires requires(far_endpoint const& far) { far.is_copy(); }
  {
    return far_.is_copy();
  }
  COLLX_COLD void enter() noexcept {
    if constexpr (requires { far_.enter(); }) far_.enter();
  }
  COLLX_COLD void leave() noexcept {
    far_.leave();
    near_.leave();
  }

  void begin(int lane, std::byte*, std::size_t = 0) noexcept {
    near_.begin(lane, nullptr);
    far_.begin(lane, nullptr);
  }
  void about(int lane, char const* collective) noexcept {
    if constexpr (requires { far_.about(lane, collective); }) far_.about(lane, collective);
  }
  void expect(int lane, rank_t peer, std::byte* destination, std::size_t bytes) noexcept {
    if (here(peer) == no_rank) far_.expect(lane, peer, destination, bytes);
  }
  [[nodiscard]] bool arrived(int lane, rank_t peer, arrival& what) noexcept {
    rank_t const near = here(peer);
    if (near != no_rank ? near_.arrived(lane, near, what) : far_.arrived(lane, peer, what)) return true;
    waits_near_ = near != no_rank;
    return false;
  }
  void consume(int lane, rank_t peer) noexcept {
    rank_t const near = here(peer);
    if (near != no_rank) near_.consume(lane, near);
    else far_.consume(lane, peer);
  }
  [[nodiscard]] bool can_send(int lane, rank_t peer) noexcept {
    rank_t const near = here(peer);
    if (near != no_rank ? near_.can_send(lane, near) : far_.can_send(lane, peer)) return true;
    waits_near_ = near != no_rank;
    return false;
  }
  // By whomever it goes to: one that only goes far could be sent from anywhere, but that is not known here.
  [[nodiscard]] bool reachable(std::byte const* payload, std::size_t bytes) const noexcept {
    return member_of_.size() == 1 || near_.reachable(payload, bytes);
  }
  [[nodiscard]] bool reachable_by(rank_t peer, std::byte const* payload, std::size_t bytes) const noexcept {
    return here(peer) != no_rank ? near_.reachable(payload, bytes) : far_.reachable(payload, bytes);
  }
  [[nodiscard]] std::byte* push_target(int, rank_t) noexcept { return nullptr; }

  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    return rings_[lane].allocate(bytes, [&](rank_t peer, std::uint64_t count) noexcept {
      rank_t const near = here(peer);
      bool const is_free =
          near != no_rank ? near_.is_free(lane, near, count) : far_.is_free(lane, peer, count);
      if (!is_free) waits_near_ = near != no_rank;
      return is_free;
    });
  }
  [[nodiscard]] rank_t staging_held_by(int lane) noexcept { return rings_[lane].held_by(); }
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover how) noexcept {
    rank_t const near = here(peer);
    if (near != no_rank) near_.send(lane, near, payload, bytes, how);
    else far_.send(lane, peer, payload, bytes, how);
  }
  void end_fragment(int lane) noexcept {
    rings_[lane].mark([&](rank_t peer) noexcept {
      rank_t const near = here(peer);
      return near != no_rank ? near_.staged_for(lane, near) : far_.staged_for(lane, peer);
    });
  }
  [[nodiscard]] rank_t unread_by(int lane) noexcept {
    rank_t const near = near_.unread_by(lane);
    waits_near_ = near != no_rank;
    return near != no_rank ? member_of_[static_cast<std::size_t>(near)] : far_.unread_by(lane);
  }
  [[nodiscard]] std::byte* scratch(int lane) noexcept { return near_.scratch(lane); }
  [[nodiscard]] std::size_t apart_bytes(rank_t peer) const noexcept {
    rank_t const near = here(peer);
    if (near != no_rank) return near_.apart_bytes(near);
    if constexpr (requires { far_.apart_bytes(peer); }) return far_.apart_bytes(peer);
    else return 0;
  }
  [[nodiscard]] std::byte* apart(int lane, rank_t peer) noexcept {
    rank_t const near = here(peer);
    if (near != no_rank) return near_.apart(lane, near);
    if constexpr (requires { far_.apart(lane, peer); }) return far_.apart(lane, peer);
    else return nullptr;
  }
  [[nodiscard]] bool has_read_all(int lane, rank_t peer) noexcept {
    rank_t const near = here(peer);
    bool has = true;
    if (near != no_rank) has = near_.has_read_all(lane, near);
    else if constexpr (requires { far_.has_read_all(lane, peer); }) has = far_.has_read_all(lane, peer);
    if (!has) waits_near_ = near != no_rank;
    return has;
  }

  // See exec/presence.hpp: the far peers touch nothing of this rank's.
  [[nodiscard]] bool approach() noexcept { return near_.approach(); }
  [[nodiscard]] bool withdraw() noexcept { return near_.withdraw(); }
  // The far transport drops what it was given when its alarm is raised: here, since who gave up may have been
  // seen on the near side only.
  COLLX_COLD void reclaim(std::uint64_t at_most_us) noexcept {
    (void)world_->interrupted(no_rank, far_.timeout_us());
    near_.reclaim(at_most_us);
  }

  // Those of this host move their bytes themselves.
  void progress() noexcept {
    if (goes_far()) far_.progress();
  }

  // See exec::sleeping_place. No system call waits for other processes' memory and for sockets together: a
  // rank sleeps where the peer that it looked for in vain wakes it, and looks at the other side now and then.
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    return (!goes_near() || near_.prepare_to_sleep()) && (!goes_far() || far_.prepare_to_sleep());
  }
  [[nodiscard]] bool sleep(std::uint64_t at_most_us) noexcept {
    if (!goes_far()) return near_.sleep(at_most_us);
    if (!goes_near()) return far_.sleep(at_most_us);
    std::uint64_t const nap = at_most_us < nap_us ? at_most_us : nap_us;
    bool const near_rang = near_.sleep(waits_near_ ? nap : 0);
    bool const far_rang = far_.sleep(waits_near_ || near_rang ? 0 : nap);
    return near_rang || far_rang;
  }

  // Now and then, while a rank waits. In a group of one host nothing else looks at the sockets meanwhile,
  // where ranks elsewhere may tell of a failure, or ask whom this one waits for.
  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    if (!goes_far() && !world_->all_near()) far_.progress();
    return world_->interrupted(peer == no_rank ? no_rank : world_rank(peer), far_.timeout_us());
  }
  COLLX_COLD void be_patient(std::uint64_t us) noexcept { far_.be_patient(us); }
  [[nodiscard]] rank_t suspect(rank_t peer) noexcept { return far_.suspect(peer); }

 private:
  // What others on the other side want of a sleeper may wait so long. It costs some microseconds each time.
  static constexpr std::uint64_t nap_us = 2'000;

  [[nodiscard]] bool goes_near() const noexcept { return member_of_.size() > 1; }
  [[nodiscard]] bool goes_far() const noexcept { return member_of_.size() != near_of_.size(); }
  // As what a peer is known to the near endpoint; no_rank: not at all.
  [[nodiscard]] rank_t here(rank_t peer) const noexcept { return near_of_[static_cast<std::size_t>(peer)]; }

  world_type* world_;
  near_endpoint near_;
  far_endpoint far_;
  array<rank_t> near_of_;
  array<rank_t> member_of_;
  staging_rings<lane_count> rings_;
  bool waits_near_ = false;  // the peer looked for last is of this host
};

}  // namespace collx::inline abi_1::transport
