// SPDX-License-Identifier: Apache-2.0
// Queues of the device, which streams share: what stands in one waits for what stands before it.
#include "cuda/emulated/runtime/queues.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cuda/emulated/runtime/streams.hpp"

namespace emulated::runtime {

namespace {

constexpr long long queues_most = 32, queues_usual = 8;

struct ring {
  std::vector<std::shared_ptr<queue>> queues;
  std::size_t given = 0;
};

}  // namespace

void queue::count_begun() {
  ++begun;
  for (auto const& each : std::exchange(waiting, {})) each->wake.notify_one();
}

std::shared_ptr<queue> next_queue(int ordinal, int priority) {
  static auto* const rings = new std::map<std::pair<int, int>, ring>;
  if (!all().has_queues) return nullptr;
  ring& r = (*rings)[{ordinal, priority}];
  long long const wanted = number_from("CUDA_DEVICE_MAX_CONNECTIONS", queues_usual);
  auto const count = static_cast<std::size_t>(std::clamp(wanted, 1LL, queues_most));
  if (r.queues.size() < count) r.queues.push_back(std::make_shared<queue>());
  return r.queues[r.given++ % count];
}

}  // namespace emulated::runtime
