// SPDX-License-Identifier: Apache-2.0
// Calls that are made while a stream is captured: what comes of them, and whether the capture goes on.
#pragma once

#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "gpu.hpp"

namespace gpu_test {

// In which mode a stream is captured, and whether the thread that calls is let off meanwhile.
struct way {
  char const* name;
  cudaStreamCaptureMode mode;
  bool is_let_off;
};
inline constexpr std::array<way, 5> ways{
    {{"globally", cudaStreamCaptureModeGlobal, false},
     {"by its thread", cudaStreamCaptureModeThreadLocal, false},
     {"relaxed", cudaStreamCaptureModeRelaxed, false},
     {"globally, outside of it", cudaStreamCaptureModeGlobal, true},
     {"by its thread, outside of it", cudaStreamCaptureModeThreadLocal, true}}};

// What comes of a call, for each of the ways.
struct answer {
  std::array<cudaError_t, ways.size()> codes;
  bool ends = true;  // where it is refused, so does the capture
};
constexpr answer always(cudaError_t code) { return {{code, code, code, code, code}}; }
inline constexpr cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
inline constexpr answer allowed = always(cudaSuccess), refused = always(unsupported);
inline constexpr answer unsafe{{unsupported, unsupported, cudaSuccess, cudaSuccess, cudaSuccess}};

struct question {
  char const* what;
  answer wanted;
  std::function<cudaError_t()> call;
};
using questions = std::vector<question>;

// Of a call, and of the end of the capture.
[[nodiscard]] inline std::string text_of(cudaError_t code, cudaError_t end) {
  return std::string(cudaGetErrorName(code)) + ", at the end of the capture " + cudaGetErrorName(end);
}

[[nodiscard]] inline bool agrees(cudaStream_t captured, question const& q, std::size_t w) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaGraph_t graph = nullptr;
  require(cudaStreamBeginCapture(captured, ways[w].mode), "begin of capture");
  if (ways[w].is_let_off) require(cudaThreadExchangeStreamCaptureMode(&mode), "exchange of modes");
  cudaError_t const got = q.call();
  if (ways[w].is_let_off) require(cudaThreadExchangeStreamCaptureMode(&mode), "exchange of modes");
  cudaError_t const end = cudaStreamEndCapture(captured, &graph);
  (void)cudaGetLastError();
  if (graph != nullptr) require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  cudaError_t const wanted = q.wanted.codes[w];
  cudaError_t const wanted_end =
      wanted != cudaSuccess && q.wanted.ends ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  if (got == wanted && end == wanted_end) return true;
  std::printf("FAILED: %s while a stream is captured %s: %s; wanted: %s\n", q.what, ways[w].name,
              text_of(got, end).c_str(), text_of(wanted, wanted_end).c_str());
  return false;
}

// How many there are; each is told.
[[nodiscard]] inline int differences(cudaStream_t captured, questions const& all) {
  int found = 0;
  for (question const& q : all)
    for (std::size_t w = 0; w < ways.size(); ++w) found += !agrees(captured, q, w);
  return found;
}

}  // namespace gpu_test
