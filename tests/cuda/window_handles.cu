// SPDX-License-Identifier: Apache-2.0
// Windows that processes map by descriptors instead of handles of CUDA IPC: the driver's steps one by one,
// and groups whose ranks all have descriptors, or some, and that go while a graph of theirs runs.
#include <string>
#include <string_view>
#include <vector>

#include <collx/bootstrap/local.hpp>
#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"
#include "rings/rings.cuh"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::check, gpu_test::require, gpu_test::stream;
using transport::cuda_parts::cuda_virtual_memory;

// Every step of the driver's, in this process: what is written in one mapping is read in the other.
void take_steps(cuda_virtual_memory const& driver) {
  using namespace transport::cuda_parts;
  shareable_memory<cuda_virtual_memory> made;
  mapped_memory<cuda_virtual_memory> there;
  driver_outcome met = shareable_memory<cuda_virtual_memory>::make(driver, 1, 0, made);
  check(static_cast<bool>(met), std::string("making it: ") + (met ? "" : met.failed));
  met = map_descriptor(driver, made.descriptor(), made.here().bytes(), 0, there);
  check(static_cast<bool>(met), std::string("mapping it: ") + (met ? "" : met.failed));
  made.close_descriptor();
  check(made.here().data() != there.data(), "two mappings");
  std::vector<int> content(made.here().bytes() / sizeof(int));
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<int>(3 * i);
  buffer<int>::fill(reinterpret_cast<int*>(made.here().data()), content);
  made = {};  // the other mapping holds the memory
  std::vector<int> const got = buffer<int>::read(reinterpret_cast<int*>(there.data()), content.size());
  check(got == content, "what one mapping has written, another one reads");
}

// Three times; what the first one takes for good (page tables, say) the third one does not take again. Of the
// whole device, so other programs show, too.
void try_steps() {
  cuda_virtual_memory const driver;
  gpu_test::arena const for_copies(1);
  std::size_t left[3] = {}, all = 0;
  for (std::size_t& each : left) {
    take_steps(driver);
    require(cudaMemGetInfo(&each, &all), "cudaMemGetInfo");
  }
  check(left[2] >= left[1], "memory is given back: " + std::to_string(left[1]) +
                                " bytes were free, and then " + std::to_string(left[2]) +
                                "; does anybody else use this GPU?");
}

// The longest vector. What is slow gets short ones.
std::size_t longest = 100'000;

void try_group(gpu_communicator& gpu, stream const& s) {
  auto const value = [](rank_t r, std::size_t i) {
    return static_cast<float>((i + static_cast<std::size_t>(r)) % 7);
  };
  for (std::size_t const count : {std::size_t{5}, longest}) {
    std::vector<float> mine(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      mine[i] = value(gpu.rank(), i);
      for (rank_t r = 0; r < gpu.size(); ++r) expected[i] += value(r, i);
    }
    buffer<float> staged(mine);
    auto in_place = gpu.allocate<float>(count);
    buffer<float>::fill(in_place.data(), mine);
    all_reduce<algo::ring>(gpu, staged, sum, on(s.id));
    all_reduce<algo::ring>(gpu, in_place, sum, on(s.id));
    gpu.synchronize(on(s.id));
    check(staged.content() == expected, "all_reduce over windows");
    check(buffer<float>::read(in_place.data(), count) == expected, "all_reduce of memory in windows");
  }
}

// Starts a graph of some calls and does not wait for it.
template <class Transport>
[[nodiscard]] cudaGraphExec_t start_replay(communicator<Transport>& host, gpu_communicator& gpu,
                                           stream const& s, buffer<float>& numbers) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  require(cudaStreamBeginCapture(s.id, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
  for (int i = 0; i < 20; ++i) all_reduce<algo::ring>(gpu, numbers, collx::max, on(s.id));
  require(cudaStreamEndCapture(s.id, &graph), "the end of a capture");
  require(cudaGraphInstantiate(&ready, graph, 0), "instantiating a graph");
  require(cudaGraphDestroy(graph), "destroying a graph");
  // To instantiate one may wait for the device, and so for a kernel that waits for this rank.
  barrier(host);
  require(cudaGraphLaunch(ready, s.id), "launching a graph");
  return ready;
}

// Groups one after the other: memory of the first is gone when the second is made.
template <class Transport>
void one_rank(communicator<Transport>& host) {
  require(cudaSetDevice(0), "cudaSetDevice");
  gpu_test::arena memory(std::size_t{16} << 20);
  stream const s;
  for (bool const all_of_them : {true, false}) {
    gpu_settings chosen = gpu_settings::from_environment();
    chosen.heap_bytes = 1 << 20;
    chosen.handles = all_of_them || host.rank() == 0 ? window_handles::descriptors : window_handles::ipc;
    buffer<float> numbers(std::vector<float>(longest, static_cast<float>(host.rank())));
    cudaGraphExec_t replayed = nullptr;
    {
      gpu_communicator gpu(host, chosen);
      try_group(gpu, s);
      replayed = start_replay(host, gpu, s, numbers);
    }
    require(cudaStreamSynchronize(s.id), "a graph whose group has gone");
    require(cudaGraphExecDestroy(replayed), "destroying a graph");
    std::vector<float> const expected(numbers.size(), static_cast<float>(host.size() - 1));
    check(numbers.content() == expected, "results of a graph whose group has gone");
  }
}

constexpr int not_here = 77, failed = 1;

// What what() returns in a process of its own: one that has asked CUDA cannot be forked any more.
[[nodiscard]] int in_a_process(int (*what)()) {
  pid_t const child = fork();
  if (child == 0) {
    int code = failed;
    try {
      code = what();
    } catch (std::exception const& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    std::fflush(nullptr);
    _exit(code);
  }
  int outcome = failed;
  return child > 0 && waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) ? WEXITSTATUS(outcome)
                                                                                 : failed;
}

// 0: memory can be exported; not_here: the device says that it cannot. The runtime is asked as well: pools of
// memory that can be exported stand on the same functions of the driver's.
[[nodiscard]] int ask_for_descriptors() {
  require(cudaFree(nullptr), "cudaFree");
  int of_pools = 0;
  require(cudaDeviceGetAttribute(&of_pools, cudaDevAttrMemoryPoolSupportedHandleTypes, 0),
          "handles of pools");
  bool const runtime_can = (of_pools & cudaMemHandleTypePosixFileDescriptor) != 0;
  check(cuda_virtual_memory::is_there() || !runtime_can,
        "the driver has descriptors of memory, but its functions are not found");
  check(cuda_virtual_memory::can_export(0) || !runtime_can,
        "pools can be exported as descriptors, but can_export() says no");
  return cuda_virtual_memory::can_export(0) ? 0 : not_here;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "small") longest = 3'000;
  if (!gpu_test::may_begin()) return 0;
  int const asked = in_a_process(ask_for_descriptors);
  if (asked == not_here) {
    std::puts("SKIPPED: this GPU does not export its memory as descriptors");
    return 0;
  }
  if (asked != 0) {
    std::fprintf(stderr, "whether this GPU exports its memory: the question failed (%d)\n", asked);
    return 1;
  }
  try {
    check(in_a_process([] { return try_steps(), 0; }) == 0, "the driver's steps");
    std::puts("the driver's steps: passed");
    for (rank_t const size : {2, 4}) {
      for (int const code : watched::on_processes(size, [](auto& host) { one_rank(host); }))
        check(code == 0, "a rank of " + std::to_string(size) + " processes failed");
      std::printf("%d processes: passed\n", size);
    }
    watched::on_threads(2, [](auto& host) { one_rank(host); });
    std::puts("2 threads: passed");
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
