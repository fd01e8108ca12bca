// SPDX-License-Identifier: Apache-2.0
// What the emulated runtime knows of this process: its devices and the threads that call it. One lock guards
// all of it; kernels and copies run without.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include <cuda_runtime_api.h>

namespace emulated::runtime {

struct stream;

// What the emulated GPU is like besides; see machine.hpp.
inline constexpr int threads_of_block = 1024;
inline constexpr std::size_t shared_of_block = std::size_t{48} << 10;        // unless more is asked for
inline constexpr std::size_t shared_of_block_most = std::size_t{163} << 10;  // with cudaFuncSetAttribute
inline constexpr std::size_t shared_reserved = std::size_t{1} << 10;         // of each block, by the driver

using lock = std::unique_lock<std::mutex>;

struct device {
  int ordinal = 0;
  bool has_context = false;
  cudaError_t failure = cudaSuccess;       // of a kernel: every later call says it
  std::atomic<std::size_t> used_bytes{0};  // changed without the lock, too
  std::size_t stack_bytes = 1024;
  std::set<int> peers;  // whose memory it may touch
  std::shared_ptr<stream> legacy;
};

struct books {
  std::mutex mutex;
  std::condition_variable host;  // for threads that wait for streams
  std::deque<device> devices;
  std::size_t device_bytes = 0;
  bool waits_always = false;  // whatever may wait for the device does
  bool loads_lazily = true;
  bool has_closed_handles = false;  // of memory: no other process opens them
  bool launches_wait = false;       // CUDA_LAUNCH_BLOCKING
  bool has_queues = false;          // see queues.hpp
  unsigned delay_us = 0;            // see delay()
};

// Of the environment.
[[nodiscard]] long long number_from(char const* variable, long long otherwise);
// Never destroyed: threads of streams outlive main().
[[nodiscard]] books& all();

// Of the calling thread.
struct caller {
  int device = 0;
  bool has_context = false;
  cudaError_t last = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
[[nodiscard]] caller& me();

// Keeps it for cudaGetLastError().
cudaError_t noted(cudaError_t code);
// Says what the program did that it must not, where CUDA would leave it undefined or a number is too little.
void complain(char const* function, std::string const& what);
// Whether this process was forked from one that had used CUDA.
[[nodiscard]] bool is_forked();
// From here on this process must not be forked and go on with CUDA.
void note_use();
[[nodiscard]] bool is_in_use();
// Makes the current device's context if there is none yet.
[[nodiscard]] device& ready(lock& held);
[[nodiscard]] device& made_ready(lock& held, device& which);

// Where it is asked for (COLLX_EMULATED_DELAY_US), stands still for a while of at most so long, drawn anew
// each time: calls of other threads come before, and what streams do comes late. What the program has not
// ordered shows then.
void delay();

// A call of the runtime on the current device: f(lock, device).
template <class F>
cudaError_t call(char const* function, F const& f) noexcept {
  try {
    if (is_forked()) return noted(cudaErrorInitializationError);
    delay();
    lock held(all().mutex);
    device& here = ready(held);
    if (here.failure != cudaSuccess) return noted(here.failure);
    return noted(f(held, here));
  } catch (std::bad_alloc const&) {
    return noted(cudaErrorMemoryAllocation);
  } catch (std::exception const& e) {
    complain(function, e.what());
    return noted(cudaErrorUnknown);
  }
}

}  // namespace emulated::runtime
