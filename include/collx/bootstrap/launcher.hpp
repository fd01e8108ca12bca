// SPDX-License-Identifier: Apache-2.0
// Who this process is: what launchers tell in the environment, as one table.
#pragma once

#include "collx/core/environment.hpp"

namespace collx::inline abi_1::bootstrap {

struct launch {
  rank_t rank = 0;
  rank_t size = 1;
  rank_t local_rank = no_rank;          // among the ranks of this host; no_rank: not told
  rank_t local_size = 0;                // ranks on this host; 0: not told
  char const* launcher = "nobody";      // the table's name of it
  char const* rendezvous = nullptr;     // COLLX_RENDEZVOUS
  char const* job = "";                 // the launcher's name of the job
  char host[256] = {};                  // where rank 0 serves; empty: not told
  std::uint16_t port = 0;

  [[nodiscard]] COLLX_COLD static launch from_environment();
};

}  // namespace collx::inline abi_1::bootstrap
