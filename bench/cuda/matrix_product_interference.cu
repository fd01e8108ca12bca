// SPDX-License-Identifier: Apache-2.0
// How much an all_to_all slows a matrix product that runs beside it on the same GPU: driven by kernels, which
// take multiprocessors from it, and driven by the host, where copy engines do the work. Two ranks, threads of
// this process, on one GPU; rank 0 multiplies. Medians over repetitions. Driven by the host it is to cost
// less than 2 %.
//   matrix_product_interference [small|BYTES FOR EACH RANK]      default: 16 MiB
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include <collx/bootstrap/threads.hpp>
#include <collx/gpu.cuh>

#include "verdict.hpp"

namespace {

using namespace collx;

constexpr rank_t ranks = 2;
int order = 4096;  // of the matrices
int repetitions = 11;
// A GPU that was idle takes some 100 ms to reach its clocks.
int warm_ups = 50;
// That may wait at a time: for the host's thread; in a stream, of which CUDA takes some 1000.
constexpr int host_calls_max = 30, kernel_calls_max = 600;

void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::_Exit(1);  // the other rank would wait for this one
}

// c = a b. Blocks of 256 threads, each of which computes 64 x 64 elements out of shared memory: not the
// fastest product, but one that all multiprocessors are busy with and that does not wait for memory.
constexpr int tile = 64, depth = 16, each = 4;
__global__ void __launch_bounds__(256) multiply(float const* a, float const* b, float* c, int order) {
  __shared__ float left[depth][tile], right[depth][tile];
  int const x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  int const row = static_cast<int>(blockIdx.y) * tile, column = static_cast<int>(blockIdx.x) * tile;
  float total[each][each] = {};
  for (int k = 0; k < order; k += depth) {
    for (int i = static_cast<int>(threadIdx.x); i < tile * depth; i += 256) {
      left[i % depth][i / depth] = a[(row + i / depth) * order + k + i % depth];
      right[i / tile][i % tile] = b[(k + i / tile) * order + column + i % tile];
    }
    __syncthreads();
    for (int d = 0; d < depth; ++d)
      for (int i = 0; i < each; ++i)
        for (int j = 0; j < each; ++j) total[i][j] += left[d][y * each + i] * right[d][x * each + j];
    __syncthreads();
  }
  for (int i = 0; i < each; ++i)
    for (int j = 0; j < each; ++j) c[(row + y * each + i) * order + column + x * each + j] = total[i][j];
}

// Of the lowest priority, or of the one below the highest, whose queues are for the library's own copies: in
// them a copy could stand behind a stream that waits for it.
struct stream {
  cudaStream_t id = nullptr;
  explicit stream(bool urgent) {
    int lowest = 0, highest = 0;
    require(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "the priorities of streams");
    int const chosen = urgent && highest < lowest ? highest + 1 : lowest;
    require(cudaStreamCreateWithPriority(&id, cudaStreamNonBlocking, chosen), "a stream");
  }
  stream(stream const&) = delete;
  ~stream() { (void)cudaStreamDestroy(id); }
};

// Everything a rank uses, made before any rank waits for another.
struct rank_state {
  stream products{false}, calls{true};
  cudaEvent_t begin = nullptr, end = nullptr;
  float *a = nullptr, *b = nullptr, *c = nullptr;
  float *in = nullptr, *out = nullptr;
  std::size_t count;  // floats of a block

  explicit rank_state(std::size_t bytes) : count(bytes / sizeof(float) / ranks) {
    require(cudaEventCreate(&begin), "an event");
    require(cudaEventCreate(&end), "an event");
    for (float** const matrix : {&a, &b, &c})
      take(*matrix, static_cast<std::size_t>(order) * static_cast<std::size_t>(order));
    for (float** const vector : {&in, &out}) take(*vector, count * ranks);
    require(cudaStreamSynchronize(nullptr), "clearing memory");
  }
  rank_state(rank_state const&) = delete;
  ~rank_state() {
    for (float* const memory : {a, b, c, in, out}) (void)cudaFree(memory);
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
  }
  static void take(float*& memory, std::size_t floats) {
    require(cudaMalloc(&memory, floats * sizeof(float)), "cudaMalloc");
    require(cudaMemset(memory, 0, floats * sizeof(float)), "cudaMemset");
  }

  // Milliseconds, by events in a stream.
  template <class Put>
  float timed(cudaStream_t where, Put const& put) const {
    require(cudaEventRecord(begin, where), "cudaEventRecord");
    put();
    require(cudaEventRecord(end, where), "cudaEventRecord");
    require(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    return ms;
  }
  void product() const {
    multiply<<<dim3(order / tile, order / tile), 256, 0, products.id>>>(a, b, c, order);
    require(cudaGetLastError(), "the product");
  }
};

float median(std::vector<float> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// What both ranks share.
struct shared {
  std::barrier<> meeting{ranks};
  int calls = 0;
};

// One product, alone and beside all_to_alls that last longer; rank 0 prints, and returns by how many percent
// the product was slowed down; or nothing, where the calls ended before it.
template <class Gpu>
std::optional<double> interfere(char const* driver, Gpu& gpu, rank_state const& mine, shared& both,
                                int calls_max) {
  std::span<float> const in(mine.in, mine.count * ranks), out(mine.out, mine.count * ranks);
  auto const call = [&] { all_to_all(gpu, in, out, on(mine.calls.id)); };
  bool const multiplies = gpu.rank() == 0;
  float alone = 0, of_call = 0;
  if (multiplies) {
    std::vector<float> times;
    for (int i = -warm_ups; i < repetitions; ++i) {
      float const ms = mine.timed(mine.products.id, [&] { mine.product(); });
      if (i >= 0) times.push_back(ms);
    }
    alone = median(times);
  }
  both.meeting.arrive_and_wait();
  for (int i = 0; i < 5; ++i) of_call = mine.timed(mine.calls.id, call);
  if (multiplies)  // calls enough for twice a product's time
    both.calls = std::clamp(static_cast<int>(2 * alone / std::max(of_call, 0.001f)) + 1, 2, calls_max);
  both.meeting.arrive_and_wait();
  std::vector<float> beside;
  for (int i = 0; i < repetitions; ++i) {
    for (int k = 0; k < both.calls; ++k) call();
    if (multiplies) beside.push_back(mine.timed(mine.products.id, [&] { mine.product(); }));
    require(cudaStreamSynchronize(mine.calls.id), "all_to_all");
    gpu.throw_if_failed();
    both.meeting.arrive_and_wait();
  }
  double const slowed = multiplies ? 100.0 * static_cast<double>(median(beside) / alone - 1) : 0;
  bool const ended_before = of_call * static_cast<float>(both.calls) < alone;
  if (multiplies)
    std::printf("%-14s product alone %8.3f ms, beside %2d all_to_all of %.3f ms %8.3f ms: %+6.2f %%%s\n",
                driver, static_cast<double>(alone), both.calls, static_cast<double>(of_call),
                static_cast<double>(median(beside)), slowed,
                ended_before ? " (the calls ended before it: no figure)" : "");
  both.meeting.arrive_and_wait();
  if (ended_before) return std::nullopt;
  return slowed;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what has been measured is said, also if this is ended
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  bool const is_small = verdict::is_small(argc, argv);
  if (is_small) order = tile, repetitions = warm_ups = 2;
  std::size_t const bytes = is_small   ? 1 << 14
                            : argc > 1 ? std::strtoull(argv[1], nullptr, 10)
                                       : std::size_t{16} << 20;
  shared both;
  bootstrap::on_threads(ranks, [&]<class Transport>(communicator<Transport>& host) {
    try {
      require(cudaSetDevice(0), "cudaSetDevice");
      rank_state const mine(bytes);
      {
        gpu_communicator gpu(host);
        (void)interfere("by kernels", gpu, mine, both, kernel_calls_max);
      }
      transport::cuda_parts::copy_engine copies;
      both.meeting.arrive_and_wait();  // from here on streams wait for the other rank
      {
        gpu_driven_by_host<Transport> gpu(host, copies);
        std::optional<double> const slowed = interfere("by the host", gpu, mine, both, host_calls_max);
        if (gpu.rank() == 0 && slowed) verdict::tell("product_slowed_by_host_driven_%", *slowed, "<=", 2);
      }
      both.meeting.arrive_and_wait();
    } catch (std::exception const& e) {
      std::fprintf(stderr, "rank %d: %s\n", host.rank(), e.what());
      std::_Exit(1);  // the other rank would wait for this one
    }
  });
}
