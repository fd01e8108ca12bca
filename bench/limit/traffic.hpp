// SPDX-License-Identifier: Apache-2.0
// What a rank must at least send and receive over a network in one call, whatever the algorithm: bytes, and
// steps that wait for each other. See docs/benchmarks.md.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace limit {

struct traffic {
  int steps = 1;
  std::int64_t send_bytes = 0, receive_bytes = 0;  // in each step
  bool one_way = false;                            // from rank 0 along the ring, not back to it
  bool follows = false;                            // sends on what it receives, as it comes
};

// Of a vector of `bytes` on `ranks` ranks. After s steps of exchanges in pairs, no rank can know of more than
// 2^s ranks: so many steps does a small call need that depends on everybody's input. Throws
// std::invalid_argument for a collective that is not known here.
[[nodiscard]] inline traffic traffic_of(std::string const& collective, int rank, int ranks,
                                        std::int64_t bytes) {
  if (collective != "all_reduce" && collective != "all_to_all" && collective != "broadcast" &&
      collective != "all_gather" && collective != "reduce_scatter")
    throw std::invalid_argument("'" + collective +
                                "': a limit is known for all_reduce, reduce_scatter, all_gather, "
                                "all_to_all and broadcast");
  traffic t;
  if (ranks < 2) return t;
  if (collective == "broadcast") {
    t.one_way = true;
    t.follows = rank != 0;
    t.send_bytes = rank + 1 < ranks ? bytes : 0;
    t.receive_bytes = rank != 0 ? bytes : 0;
    return t;
  }
  // An all_reduce is a reduce_scatter and an all_gather; the others leave or bring each block once. Rounded
  // up.
  std::int64_t const times = collective == "all_reduce" ? 2 : 1;
  t.steps = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
  std::int64_t const shares = std::int64_t{ranks} * t.steps;
  t.send_bytes = (times * (ranks - 1) * bytes + shares - 1) / shares;
  t.receive_bytes = t.send_bytes;
  return t;
}

}  // namespace limit
