// SPDX-License-Identifier: Apache-2.0
// Queues of the device that streams share (COLLX_EMULATED_QUEUES=1): of each priority there are as many as
// CUDA_DEVICE_MAX_CONNECTIONS says, 8 if it does not, and streams take them in turn. What is behind something
// in a queue does not begin before that has, whatever the streams: so kernels that wait for one behind them
// hang. CUDA does not say which streams share one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace emulated::runtime {

struct stream;

struct queue {
  std::uint64_t put = 0, begun = 0;              // counts of tasks
  std::vector<std::shared_ptr<stream>> waiting;  // to be woken when `begun` counts on
  void count_begun();
};

// Of the next stream with this priority; null where queues are not emulated.
[[nodiscard]] std::shared_ptr<queue> next_queue(int ordinal, int priority);

}  // namespace emulated::runtime
