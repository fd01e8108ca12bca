// SPDX-License-Identifier: Apache-2.0
// What reductions leave of a GPU's memory bandwidth: sums of 2 and of 8 vectors beside the copy that the
// driver does inside the device. Bytes are those read and written, for both; medians over runs that take
// turns. Sums and copies are to reach 0.9 of that copy. The vectors are numbers, and some results are looked
// at.
//   reduce_bandwidth [small|BYTES OF A VECTOR]      default: 256 MiB, many times what any cache holds
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <collx/core/random.hpp>
#include <collx/device/cuda/kernels.cuh>
#include <cuda_runtime.h>

#include "verdict.hpp"

namespace {

constexpr int source_count_max = 8;
int repetitions = 31;
int warm_ups = 300;  // a GPU that was idle takes some 100 ms to reach its clocks

void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void require(collx::device::launch_result const& result, char const* what) {
  if (result.code == collx::status::ok) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, name(result.code), cudaGetErrorString(result.error));
  std::exit(1);
}

// Runs f between two events; milliseconds.
class stopwatch {
 public:
  stopwatch() {
    require(cudaEventCreate(&begin_), "event");
    require(cudaEventCreate(&end_), "event");
  }
  template <class F>
  float milliseconds(F const& f) {
    require(cudaEventRecord(begin_), "record");
    f();
    require(cudaEventRecord(end_), "record");
    require(cudaEventSynchronize(end_), "run");
    float elapsed = 0;
    require(cudaEventElapsedTime(&elapsed, begin_, end_), "elapsed");
    return elapsed;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

float median(std::vector<float> values) {
  std::nth_element(values.begin(), values.begin() + repetitions / 2, values.end());
  return values[repetitions / 2];
}

struct vectors {
  char* out = nullptr;
  char* in[source_count_max] = {};
};

// What the sources hold: a stretch of numbers between -1 and 1, of each source its own, again and again. The
// length is a prime, so that no tile is like another.
template <class T>
class contents {
 public:
  static constexpr std::size_t stretch = 262'147;

  contents(vectors const& memory, std::size_t count) : count_(count) {
    collx::replayable_random random(7);
    std::size_t const made = count < stretch ? count : stretch;
    for (int k = 0; k < source_count_max; ++k) {
      for (std::size_t i = 0; i < made; ++i)
        numbers_[k].push_back(static_cast<T>(static_cast<float>(random.below(1 << 24)) / (1 << 23) - 1));
      T* const to = reinterpret_cast<T*>(memory.in[k]);
      require(cudaMemcpy(to, numbers_[k].data(), made * sizeof(T), cudaMemcpyHostToDevice), "numbers");
      for (std::size_t done = made; done < count;) {
        std::size_t const more = done < count - done ? done : count - done;
        require(cudaMemcpy(to + done, to, more * sizeof(T), cudaMemcpyDeviceToDevice), "numbers");
        done += more;
      }
    }
  }

  // Ends the program unless `out` is the sum of the first `sources`, at its ends and in its middle.
  void require_sum(char const* out, int sources, char const* what) const {
    std::size_t const looked_at = count_ < 10'000 ? count_ : 10'000;
    for (std::size_t const begin : {std::size_t{0}, (count_ - looked_at) / 2, count_ - looked_at}) {
      std::vector<T> own[source_count_max], expected(looked_at), found(looked_at);
      T const* from[source_count_max];
      for (int k = 0; k < sources; ++k) {
        for (std::size_t i = 0; i < looked_at; ++i) own[k].push_back(numbers_[k][(begin + i) % stretch]);
        from[k] = own[k].data();
      }
      T* const to = expected.data();
      collx::device::solo_team alone;
      collx::device::combine(alone, &to, 1, from, sources, looked_at, collx::sum, false, sources);
      require(
          cudaMemcpy(found.data(), out + begin * sizeof(T), looked_at * sizeof(T), cudaMemcpyDeviceToHost),
          "result");
      if (std::memcmp(found.data(), expected.data(), looked_at * sizeof(T)) == 0) continue;
      std::fprintf(stderr, "%s: wrong numbers behind element %zu of %zu\n", what, begin, count_);
      std::exit(1);
    }
  }

 private:
  std::size_t count_;
  std::vector<T> numbers_[source_count_max];
};

// GB/s of the driver's copy, of ours, of two sources and of eight.
template <class T>
void measure(char const* name, vectors const& memory, std::size_t bytes) {
  std::size_t const count = bytes / sizeof(T);
  T* const to[] = {reinterpret_cast<T*>(memory.out)};
  T const* from[source_count_max];
  for (int k = 0; k < source_count_max; ++k) from[k] = reinterpret_cast<T const*>(memory.in[k]);
  auto const reduce = [&](int sources) {
    require(collx::device::launch_combine(to, 1, from, sources, count, collx::sum, false, sources, nullptr),
            "combine");
  };
  auto const copy = [&] { require(collx::device::launch_copy(to, 1, from[0], count, nullptr), "copy"); };
  contents<T> const numbers(memory, count);
  for (int const sources : {1, 2, source_count_max}) {
    require(cudaMemset(memory.out, 0xFF, bytes), "cudaMemset");
    if (sources == 1) copy();
    else reduce(sources);
    numbers.require_sum(memory.out, sources, name);
  }
  stopwatch watch;
  std::vector<float> driver, copies, twos, eights;
  for (int i = -warm_ups; i < repetitions; ++i) {
    float const a = watch.milliseconds([&] {
      require(cudaMemcpyAsync(to[0], from[0], bytes, cudaMemcpyDeviceToDevice), "cudaMemcpyAsync");
    });
    float const b = watch.milliseconds(copy);
    float const c = watch.milliseconds([&] { reduce(2); });
    float const d = watch.milliseconds([&] { reduce(source_count_max); });
    if (i < 0) continue;
    driver.push_back(a), copies.push_back(b), twos.push_back(c), eights.push_back(d);
  }
  double const megabytes = static_cast<double>(bytes) / 1e6;
  double const limit = 2 * megabytes / median(driver);
  auto const report = [&](char const* what, int vectors_touched, float milliseconds) {
    double const rate = vectors_touched * megabytes / milliseconds;
    std::printf("%-9s %-12s %8.0f GB/s   %5.2f of the driver's copy\n", name, what, rate, rate / limit);
    return rate / limit;
  };
  (void)report("driver copy", 2, median(driver));
  double const of_copy = report("copy", 2, median(copies));
  double const of_two = report("2 sources", 3, median(twos));
  double const of_eight = report("8 sources", source_count_max + 1, median(eights));
  verdict::tell((std::string("copy_") + name).c_str(), of_copy, ">=", 0.9);
  verdict::tell((std::string("reduce_2_") + name).c_str(), of_two, ">=", 0.9);
  verdict::tell((std::string("reduce_8_") + name).c_str(), of_eight, ">=", 0.9);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what has been measured is said, also if this is ended
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  bool const is_small = verdict::is_small(argc, argv);
  if (is_small) repetitions = warm_ups = 3;
  std::size_t const bytes = is_small   ? 1 << 14
                            : argc > 1 ? std::strtoull(argv[1], nullptr, 10)
                                       : std::size_t{256} << 20;
  vectors memory;
  require(cudaMalloc(&memory.out, bytes), "cudaMalloc");
  for (char*& each : memory.in) require(cudaMalloc(&each, bytes), "cudaMalloc");
  measure<float>("float", memory, bytes);
  measure<collx::bfloat16>("bfloat16", memory, bytes);
  measure<collx::float16>("float16", memory, bytes);
  measure<collx::float8_e4m3>("e4m3", memory, bytes);
  measure<collx::float8_e5m2>("e5m2", memory, bytes);
  return 0;
}
