// SPDX-License-Identifier: Apache-2.0
// A process that dies in the middle of a job: the kernels of the others, which spin, end at their deadline,
// calls after that are refused, and the group can be destroyed.
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"
#include "rings/rings.cuh"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::check, gpu_test::error_of, gpu_test::stream;

constexpr std::uint64_t patience_us = 3'000'000;  // of a kernel

// Rank 1 is lost after a call that all have made, and before the next.
template <class Transport>
int one_rank(communicator<Transport>& host) {
  gpu_test::arena memory(std::size_t{1} << 20);
  stream const s;
  buffer<float> data(std::vector<float>(10'000, 1.0f));
  gpu_settings chosen = gpu_settings::from_environment();
  chosen.heap_bytes = 1 << 20;
  chosen.timeout_us = patience_us;
  auto const call = [&](gpu_communicator& gpu) {
    all_reduce<algo::ring>(gpu, data, sum, on(s.id));
    gpu.synchronize(on(s.id));
  };
  auto const begin = std::chrono::steady_clock::now();
  {
    gpu_communicator gpu(host, chosen);
    call(gpu);
    check(data.content() == std::vector<float>(10'000, static_cast<float>(host.size())), "the call before");
    barrier(host);
    if (host.rank() == 1) (void)raise(SIGKILL);
    auto const told = error_of([&] { call(gpu); });
    check(told.has_value(), "nobody was missed");
    std::printf("rank %d: %s\n", host.rank(), told->what());
    // Of more than two, one may wait for another that waits for the lost one, or hear from it that it gave
    // up.
    bool const is_next = host.size() == 2;
    check(told->code() == status::timeout || (!is_next && told->code() == status::aborted),
          "the call that the lost rank does not come to");
    check(!is_next || std::strstr(told->what(), "peer 1,") != nullptr, "the lost rank is not named");
    check(error_of([&] { call(gpu); }).has_value(), "a call after that is not refused");
  }
  auto const took = std::chrono::steady_clock::now() - begin;
  check(took < std::chrono::microseconds(8 * patience_us), "it took longer than what is waited for");
  return 0;
}

}  // namespace

int main() {
  if (!gpu_test::may_begin()) return 0;
  int wrong = 0;
  for (rank_t const size : {2, 3}) {
    auto const codes = watched::on_processes(size, [](auto& host) { return one_rank(host); });
    for (std::size_t r = 0; r < codes.size(); ++r) {
      int const wanted = r == 1 ? 128 + SIGKILL : 0;
      if (codes[r] == wanted) continue;
      std::printf("rank %d of %d ended with %d, wanted %d\n", static_cast<int>(r), size, codes[r], wanted);
      ++wrong;
    }
  }
  std::puts(wrong == 0 ? "a rank that dies: ok" : "a rank that dies: FAILED");
  return wrong == 0 ? 0 : 1;
}
