// SPDX-License-Identifier: Apache-2.0
// How ranks that talk over TCP become members of a communicator: of the world, or of a part.
#pragma once

#include "collx/communicator.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/settings.hpp"
#include "collx/transport/sockets/endpoint.hpp"

namespace collx::inline abi_1::transport::sockets {

template <class Transport>
struct membership {
  using endpoint = typename Transport::endpoint;
  using engine_type = exec::engine<endpoint>;

  // The communicator of everybody. Takes no reference on the world.
  [[nodiscard]] static engine_type* join_world(tcp_world& world) {
    settings const& chosen = world.chosen();
    return new engine_type(chosen.timeout_us,
                           exec::wakefulness_of(chosen.sharing, chosen.yield_us, exec::looks_by_system_call),
                           world, world_id, everybody(world.size()), world.rank(),
                           typename endpoint::provision(world, world.size()));
  }

  // The first member of a new group numbers it.
  struct reservation {
    std::uint64_t token = 0;
    typename endpoint::provision has{};
  };
  [[nodiscard]] static reservation reserve(engine_type& parent, rank_t my_rank, rank_t count) {
    tcp_world& world = parent.endpoint().space();
    typename endpoint::provision has(world, count);
    return {my_rank != 0 ? 0 : world.new_id(), static_cast<typename endpoint::provision&&>(has)};
  }
  [[nodiscard]] static engine_type* assemble(engine_type& parent, array<rank_t> members, rank_t my_rank,
                                             array<std::uint64_t> const& tokens, reservation&& mine) {
    return new engine_type(parent.timeout_us(), parent.wakefulness(), parent.endpoint().space(), tokens[0],
                           static_cast<array<rank_t>&&>(members), my_rank,
                           static_cast<typename endpoint::provision&&>(mine.has));
  }

 private:
  static constexpr std::uint64_t world_id = 1;
};

}  // namespace collx::inline abi_1::transport::sockets
