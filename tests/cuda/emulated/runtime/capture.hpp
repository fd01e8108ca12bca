// SPDX-License-Identifier: Apache-2.0
// Captures: what is put into a stream becomes a node of a graph instead of being carried out. And what CUDA
// refuses meanwhile, which ends the captures that it would disturb.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cuda/emulated/runtime/streams.hpp"

namespace emulated::runtime {

struct node {
  std::vector<std::size_t> after;
  std::function<void()> work;  // null: a meeting of several
};

struct graph {
  std::vector<node> nodes;
};

struct capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id by;
  bool is_valid = true;
  stream* origin = nullptr;
  std::shared_ptr<graph> made = std::make_shared<graph>();
};

[[nodiscard]] cudaError_t add_node(char const* function, stream& where, std::function<void()> work);
void invalidate(capture& c);

// Why the calling thread must not do what is unsafe while others, or itself, capture; ends those captures.
[[nodiscard]] cudaError_t refuse_unsafe();
// To ask a stream that is captured for what it was made with.
[[nodiscard]] cudaError_t refuse_captured(stream& s);
// To wait for a stream, or to ask whether it is done.
[[nodiscard]] cudaError_t refuse_wait(stream& s);
[[nodiscard]] cudaError_t refuse_device_wait(int ordinal);
// To put something into the legacy stream while a stream that waits for it is captured.
[[nodiscard]] cudaError_t refuse_legacy(int ordinal);

}  // namespace emulated::runtime
