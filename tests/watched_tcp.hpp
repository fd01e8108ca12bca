// SPDX-License-Identifier: Apache-2.0
// watched.hpp for ranks that talk over TCP.
#pragma once

#include "collx/bootstrap/tcp_processes.hpp"
#include "watched.hpp"

namespace watched {

// As bootstrap::on_tcp_processes().
template <class Transport = collx::transport::tcp, class RankMain>
collx::bootstrap::exit_codes on_tcp_processes(
    collx::rank_t size, RankMain&& rank_main,
    collx::transport::tcp_settings const& chosen = collx::transport::tcp_settings::from_environment(),
    std::uint8_t version = 4) {
  limit_of_parent const limit;
  return collx::bootstrap::on_tcp_processes<Transport>(size, in_process(rank_main), chosen, version);
}

}  // namespace watched
