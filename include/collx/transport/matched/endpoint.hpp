// SPDX-License-Identifier: Apache-2.0
// One rank's end of one communicator whose messages a library matches. See transport/concept.hpp for
// what is asked of it.
#pragma once

#include "collx/transport/concept.hpp"
#include "collx/transport/matched/ledger.hpp"
#include "collx/transport/staging_ring.hpp"

namespace collx::inline abi_1::transport::matched {

// `World`: a matched::world with transport_name, and wire(number): what its traffic posts to.
template <class World>
class endpoint {
 public:
  static constexpr int lane_count = World::lane_count;
  static constexpr bool is_mapped = false;
  static constexpr bool fetches = false;
  // The library promises to get on with a large message only while both ends are inside of it.
  static constexpr bool finishes_sends = true;
  // Its calls are those of the thread that joined, and of no other.
  static constexpr bool is_of_one_thread = true;
  static constexpr char const* transport_name = World::transport_name;
  static constexpr std::size_t inline_bytes = matched::channel::inline_bytes;
  using channel = matched::channel;

  COLLX_COLD endpoint(World& world, int number, array<rank_t> members, rank_t rank)
      : world_(&world),
        number_(number),
        scratch_bytes_(scratch_for(world, members.size())),
        memory_(lane_count * per_lane_bytes()),
        traffic_(world.wire(number), static_cast<array<rank_t>&&>(members), rank, lane_count,
                 staging_bytes() / 2),
        rings_(traffic_.size()) {
    for (int lane = 0; lane < lane_count; ++lane) rings_.attach(lane, of_lane(lane), staging_bytes());
  }
  endpoint(endpoint const&) = delete;
  ~endpoint() {
    if (!traffic_.is_idle()) memory_.abandon();  // as traffic does
  }

  [[nodiscard]] rank_t rank() const noexcept { return traffic_.rank(); }
  [[nodiscard]] rank_t size() const noexcept { return traffic_.size(); }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept { return traffic_.world_rank(member); }
  [[nodiscard]] std::uint64_t depth() const noexcept { return channel::depth; }
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return world_->chosen().staging_bytes; }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept {
    return memory_.size() + traffic_.reserved_bytes();
  }
  [[nodiscard]] World& space() const noexcept { return *world_; }
  COLLX_COLD void enter() noexcept { world_->enter(traffic_, number_); }
  COLLX_COLD void leave() noexcept { world_->leave(traffic_); }

  void begin(int, std::byte*, std::size_t = 0) noexcept {}

  void expect(int lane, rank_t peer, std::byte* destination, std::size_t bytes) noexcept {
    traffic_.receive(lane, peer, destination, bytes);
  }
  [[nodiscard]] bool arrived(int lane, rank_t peer, arrival& what) noexcept {
    channel const& c = traffic_.at(lane, peer);
    if (!c.here) return false;
    what = {c.to, c.bytes};
    return true;
  }
  void consume(int lane, rank_t peer) noexcept { traffic_.at(lane, peer).here = false; }

  [[nodiscard]] bool can_send(int lane, rank_t peer) noexcept {
    channel const& c = traffic_.at(lane, peer);
    return c.sent - c.matched < channel::window && c.sent - c.handed < channel::window;
  }
  // No send is made from a user's buffer: the library cannot be made to let go of it. After a failure the
  // user frees it, and a receiver that has not heard of that yet would still fetch it.
  [[nodiscard]] bool reachable(std::byte const*, std::size_t) const noexcept { return false; }
  [[nodiscard]] std::byte* push_target(int, rank_t) noexcept { return nullptr; }

  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    return rings_[lane].allocate(bytes, [&](rank_t peer, std::uint64_t count) noexcept {
      return count == 0 || traffic_.at(lane, peer).handed >= count;
    });
  }
  [[nodiscard]] rank_t staging_held_by(int lane) noexcept { return rings_[lane].held_by(); }
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover) noexcept {
    traffic_.send(lane, peer, payload, bytes);
  }
  void end_fragment(int lane) noexcept {
    rings_[lane].mark([&](rank_t peer) noexcept { return traffic_.at(lane, peer).sent; });
  }

  [[nodiscard]] rank_t unread_by(int lane) noexcept {
    if (traffic_.holding(lane) == 0) return no_rank;
    traffic_.progress();  // most have ended, and nobody has asked
    return COLLX_LIKELY(traffic_.holding(lane) == 0) ? no_rank : traffic_.held_by(lane);
  }

  [[nodiscard]] std::byte* scratch(int lane) noexcept { return of_lane(lane) + staging_bytes(); }
  [[nodiscard]] std::size_t apart_bytes(rank_t) const noexcept {
    return scratch_bytes_ / static_cast<std::size_t>(size()) / inline_bytes * inline_bytes;
  }
  [[nodiscard]] std::byte* apart(int lane, rank_t peer) noexcept {
    return scratch(lane) + static_cast<std::size_t>(peer) * apart_bytes(peer);
  }
  [[nodiscard]] bool has_read_all(int lane, rank_t peer) noexcept {
    channel const& c = traffic_.at(lane, peer);
    return c.handed == c.sent;
  }
  void progress() noexcept { traffic_.progress(); }

  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    // As it was before the world looks around: the caller has not seen what arrives meanwhile.
    status const trouble = peer == no_rank ? status::ok : traffic_.trouble_with(peer);
    status const of_all = world_->interrupted();
    return of_all != status::ok ? of_all : trouble;
  }

 private:
  // So that a place apart for each rank holds some pages' worth of a message.
  [[nodiscard]] static std::size_t scratch_for(World const& world, std::size_t ranks) noexcept {
    std::size_t const asked = world.chosen().staging_bytes / 2, for_places = ranks * place_bytes_min;
    return asked > for_places ? asked : for_places;
  }
  [[nodiscard]] std::size_t per_lane_bytes() const noexcept { return staging_bytes() + scratch_bytes_; }
  [[nodiscard]] std::byte* of_lane(int lane) noexcept {
    return memory_.data() + static_cast<std::size_t>(lane) * per_lane_bytes();
  }

  static constexpr std::size_t place_bytes_min = 4096;

  World* world_;
  int number_;
  std::size_t scratch_bytes_;  // per lane
  zeroed_pages memory_;  // staging and scratch
  typename World::traffic traffic_;
  staging_rings<lane_count> rings_;
};

}  // namespace collx::inline abi_1::transport::matched
