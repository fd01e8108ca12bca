// SPDX-License-Identifier: Apache-2.0
// Whether this machine has a GPU, asked in a process of its own: one that has asked CUDA cannot be forked
// any more.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <collx/core/error.hpp>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_test {

[[nodiscard]] inline bool gpu_is_here() {
  pid_t const child = fork();
  if (child == 0) {
    int count = 0;
    cudaError_t const code = cudaGetDeviceCount(&count);
    // Where there is a GPU, this says why it cannot be used: an old driver, say.
    if (code != cudaSuccess) std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
    _exit(code == cudaSuccess && count > 0 ? 0 : 1);
  }
  int outcome = 1;
  return child > 0 && waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0;
}

inline void require(cudaError_t code, char const* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

inline void check(bool holds, std::string const& what) {
  if (!holds) throw std::runtime_error(what);
}

// To be called before CUDA is: streams of many ranks must not share a queue of the device, where a kernel
// behind one that waits would wait too.
inline void prepare_environment() {
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  (void)setenv("COLLX_CUDA_STAGING_BYTES", "262144", 0);  // so that a lane has several fragments
}

// How a program begins that starts ranks. False: there is no GPU, and it has said so.
[[nodiscard]] inline bool may_begin() {
  prepare_environment();
  if (gpu_is_here()) return true;
  std::puts("SKIPPED: no GPU");
  return false;
}

// [LEAST-]MOST as two numbers.
[[nodiscard]] inline std::pair<int, int> numbers_of_ranks(std::string_view text) {
  int least = 1, most = 0;
  char const *at = text.data(), *const end = at + text.size();
  auto got = std::from_chars(at, end, most);
  if (got.ec == std::errc{} && got.ptr != end && *got.ptr == '-') {
    least = most;
    got = std::from_chars(got.ptr + 1, end, most);
  }
  if (got.ec != std::errc{} || got.ptr != end || least < 1 || most < least)
    throw std::invalid_argument("'" + std::string(text) + "' is no number of ranks; say 4, or 2-4");
  return {least, most};
}

// What f() throws.
template <class F>
[[nodiscard]] std::optional<collx::error> error_of(F const& f) {
  try {
    f();
  } catch (collx::error const& e) {
    return e;
  }
  return std::nullopt;
}

// A stream that waits for no other.
struct stream {
  cudaStream_t id = nullptr;
  stream() { require(cudaStreamCreateWithFlags(&id, cudaStreamNonBlocking), "cudaStreamCreate"); }
  stream(stream const&) = delete;
  ~stream() { (void)cudaStreamDestroy(id); }
};

// Memory of the GPU for one rank, taken at once: to allocate or to free may wait for the device, and so for a
// kernel of another rank that waits for this one. Parts are given back in the reverse order. And a stream for
// what is copied there and back: the default stream is that of all ranks of a process, and may share a queue
// with any one in which a kernel waits.
class arena {
 public:
  explicit arena(std::size_t bytes) : bytes_(bytes) {
    require(cudaMalloc(&data_, bytes), "cudaMalloc");
    mine() = this;
  }
  arena(arena const&) = delete;
  ~arena() {
    mine() = nullptr;
    (void)cudaFree(data_);
  }

  // Of this thread.
  [[nodiscard]] static arena*& mine() {
    static thread_local arena* current = nullptr;
    return current;
  }
  [[nodiscard]] std::byte* take(std::size_t bytes) {
    std::size_t const begin = used_;
    used_ += (bytes + 255) / 256 * 256;
    if (used_ > bytes_) throw std::runtime_error("the arena of this test is too small");
    return data_ + begin;
  }
  void give_back(std::byte* from) { used_ = static_cast<std::size_t>(from - data_); }
  [[nodiscard]] cudaStream_t copies() const { return copies_.id; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_, used_ = 0;
  stream copies_;
};

// Between memory of the host and of the GPU, by a thread that has an arena: the bytes are there when this
// returns.
inline void copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind way) {
  cudaStream_t const aside = arena::mine()->copies();
  require(cudaMemcpyAsync(to, from, bytes, way, aside), "cudaMemcpyAsync");
  require(cudaStreamSynchronize(aside), "cudaMemcpyAsync");
}

// Some elements of it.
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t count)
      : data_(reinterpret_cast<T*>(arena::mine()->take(count * sizeof(T)))), size_(count) {}
  explicit buffer(std::vector<T> const& content) : buffer(content.size()) { fill(data_, content); }
  buffer(buffer const&) = delete;
  ~buffer() { arena::mine()->give_back(reinterpret_cast<std::byte*>(data_)); }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::vector<T> content() const { return read(data_, size_); }
  static void fill(T* to, std::vector<T> const& content) {
    copy(to, content.data(), content.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  [[nodiscard]] static std::vector<T> read(T const* from, std::size_t count) {
    std::vector<T> got(count);
    copy(got.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
    return got;
  }

 private:
  T* data_;
  std::size_t size_;
};

struct event {
  cudaEvent_t id = nullptr;
  event() { require(cudaEventCreateWithFlags(&id, cudaEventDisableTiming), "cudaEventCreate"); }
  event(event const&) = delete;
  ~event() { (void)cudaEventDestroy(id); }
};

// What record() puts into the stream, to be launched there.
class captured_graph {
 public:
  template <class Record>
  captured_graph(stream const& s, Record const& record) : stream_(s.id) {
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin of capture");
    record();
    require(cudaStreamEndCapture(stream_, &graph_), "end of capture");
    require(cudaGraphInstantiate(&ready_, graph_, 0), "instantiation");
    require(cudaGraphUpload(ready_, stream_), "upload");
    require(cudaStreamSynchronize(stream_), "upload");
  }
  captured_graph(captured_graph const&) = delete;
  ~captured_graph() {
    (void)cudaGraphExecDestroy(ready_);
    (void)cudaGraphDestroy(graph_);
  }
  void launch() const { require(cudaGraphLaunch(ready_, stream_), "replay"); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace gpu_test
