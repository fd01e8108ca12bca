// SPDX-License-Identifier: Apache-2.0
// connect<transport::ucx>(): processes of one host or of many, started by whatever launcher the site has.
// Needs UCX and, for the meeting, OpenSSL (the CMake component collx::ucx).
#pragma once

#include "collx/bootstrap/connect.hpp"
#include "collx/bootstrap/gather.hpp"
#include "collx/bootstrap/hosts.hpp"
#include "collx/bootstrap/network.hpp"
#include "collx/transport/ucx.hpp"

namespace collx::inline abi_1::bootstrap {

template <>
struct start_of<transport::ucx> {
  using settings = transport::settings;

  // Ranks meet as for tcp, and tell each other the addresses of their workers over the connections of that
  // meeting, which the secret has authenticated. Without a secret all is on this host, and UCX opens nothing
  // that others could reach.
  [[nodiscard]] COLLX_COLD static communicator<transport::ucx> connect(settings const& chosen) {
    return connect_as<transport::ucx>(chosen);
  }

  // `As`: the transport itself, or a decorator of it.
  template <class As>
  [[nodiscard]] COLLX_COLD static communicator<As> connect_as(settings const& given) {
    settings const chosen = given.checked();
    net::refuse_tls("ucx");
    net::secret const shared = net::secret::from_environment();
    network_settings over = network_settings::from_environment();
    over.timeout_us = chosen.timeout_us;
    network_membership const all = meet_over_network(launch::from_environment(), over, shared);
    // From the end of the meeting, which is about the same moment for all.
    std::uint64_t const deadline_us = deadline_in(chosen.timeout_us);
    rank_t const here = ranks_on_host_of(all.hosts, all.rank), each = ranks_per_host(all.hosts);
    transport::ucx_parts::worker own({all.size, here, chosen.timeout_us, shared.empty()});
    array<transport::ucx_parts::card> cards = exchange(all, own.address(), chosen.staging_bytes, deadline_us);
    transport::settings sized = chosen;
    sized.sharing = share_processors(all.machines, all.processors);
    communicator<As> world = transport::ucx::join<As>(static_cast<transport::ucx_parts::worker&&>(own),
                                                      static_cast<array<transport::ucx_parts::card>&&>(cards),
                                                      all.rank, sized);
    if (each < all.size) world.ranks_per_group(each);
    return world;
  }

 private:
  using card = transport::ucx_parts::card;

  // A rank's text: what all must have set alike, which process it is, and its worker's address.
  static constexpr std::size_t front_bytes = 24;

  [[nodiscard]] COLLX_COLD static array<card> exchange(network_membership const& all,
                                                       array<std::byte> const& address,
                                                       std::size_t staging_bytes, std::uint64_t deadline_us) {
    array<std::byte> mine(front_bytes + address.size());
    net::put_u64(mine.data(), staging_bytes);
    net::put_u64(mine.data() + 8, static_cast<std::uint64_t>(getpid()));
    net::put_u64(mine.data() + 16, transport::shared_memory::start_time(getpid()));
    std::memcpy(mine.data() + front_bytes, address.data(), address.size());
    array<array<std::byte>> const texts = text_gathering(all, deadline_us).gather({mine.data(), mine.size()});
    array<card> cards(texts.size());
    for (std::size_t r = 0; r < texts.size(); ++r) {
      if (texts[r].size() <= front_bytes || net::get_u64(texts[r].data()) != staging_bytes)
        throw error(status::bad_argument,
                    "transport::ucx: COLLX_STAGING_BYTES is not the same on all ranks; set it to one value "
                    "everywhere");
      cards[r] = read(texts[r], all.hosts[r] == all.hosts[static_cast<std::size_t>(all.rank)]);
    }
    return cards;
  }

  [[nodiscard]] static card read(array<std::byte> const& text, bool is_here) {
    card its;
    its.address = array<std::byte>(text.size() - front_bytes);
    std::memcpy(its.address.data(), text.data() + front_bytes, its.address.size());
    auto const process = static_cast<std::int32_t>(net::get_u64(text.data() + 8));
    its.started = net::get_u64(text.data() + 16);
    // In another container the number may be that of another process.
    bool const is_told = its.started != 0 && its.started != transport::shared_memory::not_told;
    bool const is_seen =
        is_here && is_told && transport::shared_memory::start_time(process) == its.started;
    its.process = is_seen ? process : 0;
    return its;
  }
};

}  // namespace collx::inline abi_1::bootstrap
