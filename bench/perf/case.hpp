// SPDX-License-Identifier: Apache-2.0
// One measurement: what is asked (job) and what came out (point), and the function between them,
// which case.cpp defines once per transport and element type, each in its own object file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collx/communicator.hpp"

namespace perf {

struct job {
  std::string collective, algorithm, redop;
  std::int64_t bytes = 0;
  bool in_place = false, symmetric = false, check = true;
  bool fresh = false;  // every input is written before each call
  std::int64_t pool_bytes = 0, iterations = 0, batches = 0, warmup = 0;
  collx::rank_t root = 0;
};

struct point {
  std::int64_t bytes = 0;  // of the whole vector: bytes asked, rounded up to whole elements per rank
  std::int64_t count = 0;  // elements per rank, as nccl-tests counts them
  std::int64_t buffers = 0, iterations = 0, batches = 0;
  double min_us = 0, median_us = 0, p99_us = 0;
  double write_us = 0;  // of fresh inputs: what writing one takes, which is in no figure above
  std::int64_t wrong = 0;
};

// Called by every rank with the same job; every rank gets the same answer.
template <class T, class Transport>
[[nodiscard]] point run_case(collx::communicator<Transport>& world, job const& asked);

// What the ranks tell each other around the measured calls; defined once per transport.
template <class Transport>
void meet(collx::communicator<Transport>& world);
template <class Transport>
void slowest(collx::communicator<Transport>& world, std::span<double> samples);
template <class Transport>
[[nodiscard]] std::int64_t total(collx::communicator<Transport>& world, std::int64_t mine);

}  // namespace perf
