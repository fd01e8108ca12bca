// SPDX-License-Identifier: Apache-2.0
// Streams, as far as it matters in which of them a call was put, and graphs of what is put into one.
#pragma once

#include "collx/transport/cuda/memory.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// A handle comes again, of another stream, and that of a thread's default stream is the same in all threads.
[[nodiscard]] inline unsigned long long id_of(cudaStream_t stream) {
  unsigned long long id = 0;
  require(cudaStreamGetId(stream, &id), "the identity of the stream");
  return id;
}

[[nodiscard]] inline bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &capturing), "the state of the stream");
  return capturing != cudaStreamCaptureStatusNone;
}

// A graph of what `put(stream)` puts into a stream that nothing else uses. `ready`: set as soon as there is
// one.
template <class Put>
void make_graph(cudaStream_t aside, cudaGraphExec_t& ready, Put const& put) {
  outside_captures const relaxed;
  cudaGraph_t graph = nullptr;
  require(cudaStreamBeginCapture(aside, cudaStreamCaptureModeRelaxed), "the begin of a capture");
  try {
    put(aside);
  } catch (...) {
    if (cudaStreamEndCapture(aside, &graph) == cudaSuccess) (void)cudaGraphDestroy(graph);
    throw;
  }
  require(cudaStreamEndCapture(aside, &graph), "the end of a capture");
  cudaError_t const code = cudaGraphInstantiate(&ready, graph, 0);
  (void)cudaGraphDestroy(graph);
  require(code, "instantiating a graph");
  require(cudaGraphUpload(ready, aside), "uploading a graph");
  require(cudaStreamSynchronize(aside), "uploading a graph");
}

}  // namespace collx::inline abi_1::transport::cuda_parts
