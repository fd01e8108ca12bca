// SPDX-License-Identifier: Apache-2.0
// One descriptor of rank 0, for the ranks of other processes than its own.
#pragma once

#include <optional>

#include "collx/net/descriptor_exchange.hpp"
#include "collx/transport/cuda/process_name.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// Where a rank is to be found, and which process it is in. Plain bytes.
struct hand_over_guest {
  net::descriptor_desk desk;
  process_name process;
};

// Collective. `fd`: of rank 0; it stays the caller's, and -1 is handed over as none. Returns it on ranks of
// other processes. Desks are made by `together(make)`, by all ranks or by none; `gather(mine, all)`: all
// ranks' guests. From then on a rank that fails closes its desk, so that nobody waits for it. Throws error,
// some of which other ranks may not meet with (timeout, peer_lost, bad_argument, system_failure).
template <class Together, class Gather>
[[nodiscard]] net::owned_fd hand_over(char const* what, rank_t rank, std::size_t size,
                                      process_name const& process, int fd, std::uint64_t timeout_us,
                                      Together const& together, Gather const& gather) {
  array<hand_over_guest> all;
  array<net::descriptor_desk> desks;
  array<net::owned_fd> theirs;
  array<bool> with;
  hand_over_guest mine{{}, process};
  std::optional<net::descriptor_exchange> exchange;
  together([&] {
    // Here, since who has no memory for it must not leave the others waiting for its desk.
    all = array<hand_over_guest>(size);
    desks = array<net::descriptor_desk>(size);
    theirs = array<net::owned_fd>(size);
    with = array<bool>(size);
    mine.desk = exchange.emplace(what, rank).mine();
  });
  gather(mine, all);
  for (std::size_t r = 0; r < size; ++r) {
    desks[r] = all[r].desk;
    with[r] = (r == 0 || rank == 0) && all[r].process != process;
  }
  exchange->run(fd, std::span(desks.data(), size), std::span(with.data(), size),
                std::span(theirs.data(), size), deadline_in(timeout_us));
  return std::move(theirs[0]);
}

}  // namespace collx::inline abi_1::transport::cuda_parts
