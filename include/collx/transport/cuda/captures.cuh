// SPDX-License-Identifier: Apache-2.0
// Streams, as far as it matters in which of them a call was put, and graphs of what is put into one.
#pragma once

#include <cudaTypedefs.h>

#include "collx/transport/cuda/entry_point.cuh"
#include "collx/transport/cuda/memory.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// A handle comes again, of another stream, and that of a thread's default stream is the same in all threads.
// Not asked of one that is captured: CUDA refuses, and that ends the capture.
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

// Of a stream that is captured: which capture it is, a number that does not come again.
[[nodiscard]] inline unsigned long long capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  require(cudaStreamGetCaptureInfo(stream, &capturing, &id), "the capture of the stream");
  return id;
}

// Not refused, nor the end of a capture, where another thread captures in a mode that forbids to wait.
inline void wait_for(cudaStream_t stream) {
  outside_captures const relaxed;
  require(cudaStreamSynchronize(stream), "waiting for the stream");
}

// Of the driver: what can be asked about a stream while it is captured.
struct context_functions : entry_points<context_functions> {
  PFN_cuStreamGetCtx_v9020 of_stream = nullptr;
  PFN_cuCtxGetCurrent_v4000 current = nullptr;
  PFN_cuCtxPushCurrent_v4000 enter = nullptr;
  PFN_cuCtxPopCurrent_v4000 leave = nullptr;
  PFN_cuCtxGetDevice_v2000 device = nullptr;

  void find_all() noexcept {
    get("cuStreamGetCtx", 9020, of_stream);
    get("cuCtxGetCurrent", 4000, current);
    get("cuCtxPushCurrent", 4000, enter);
    get("cuCtxPopCurrent", 4000, leave);
    get("cuCtxGetDevice", 2000, device);
  }
};

// The device of a stream, which may be captured: cudaStreamGetDevice() refuses such a one, and that ends the
// capture (seen with driver 580). `current`: the calling thread's device, whose the default streams are.
[[nodiscard]] inline int device_of(cudaStream_t stream, int current) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return current;
  context_functions const& driver = context_functions::loaded();
  CUcontext context = nullptr, here = nullptr;
  CUresult code = CUDA_ERROR_NOT_FOUND;
  if (driver.are_all_there) code = driver.of_stream(stream, &context);
  if (code == CUDA_SUCCESS && driver.current(&here) == CUDA_SUCCESS && here == context) return current;
  int device = -1;
  if (code == CUDA_SUCCESS) code = driver.enter(context);
  if (code == CUDA_SUCCESS) {
    code = driver.device(&device);
    (void)driver.leave(&context);
  }
  // One number for both, where an earlier kernel has failed.
  require(static_cast<cudaError_t>(code), "the device of the stream");
  return device;
}

// Whether what is put into a stream waits for what is in others. Not asked of one that is captured, which
// CUDA would refuse like the question for its device: a graph waits for what the stream that it is replayed
// in waits for.
[[nodiscard]] inline bool waits_for_others(cudaStream_t stream) {
  if (is_captured(stream)) return false;
  unsigned flags = 0;
  require(cudaStreamGetFlags(stream, &flags), "the flags of the stream");
  return (flags & cudaStreamNonBlocking) == 0;
}

// That go on at a time and have calls of one group. A capture beyond that takes the event of the one that was
// first, whose next call in another stream then has no edge from the calls before.
inline constexpr int captures_max = 8;

// Calls of a group run one behind the other, whatever their streams: each notes an event behind itself, which
// the next one waits for if it is in another stream. Streams of one capture, of which each call becomes part,
// do so with an event of the capture's, which becomes an edge of the graph. Otherwise a stream that is being
// captured waits for no other, and none for it: when a graph is replayed is the user's affair.
class call_order {
 public:
  // Where a call is put, as far as it has been asked: each question takes the thread some 0.2 us.
  struct put_in {
    bool is_captured;
    unsigned long long id;  // of the stream; of the capture, where there is one
  };

  // `captured_calls`: events for calls that are captured, one for each capture.
  [[nodiscard]] put_in begin(cudaStream_t stream, cudaEvent_t last_call,
                             own_event const (&captured_calls)[captures_max]) {
    if (is_captured(stream)) {
      put_in const call{true, capture_of(stream)};
      // The same stream again waits for itself, which is no edge more.
      if (int const at = place_of(call.id); at >= 0)
        require(cudaStreamWaitEvent(stream, captured_calls[at].get(), 0),
                "waiting for the last call of the capture");
      return call;
    }
    put_in const call{false, id_of(stream)};
    if (has_calls_ && call.id != last_stream_)
      require(cudaStreamWaitEvent(stream, last_call, 0), "waiting for the last call");
    return call;
  }
  void end(cudaStream_t stream, put_in const& call, cudaEvent_t last_call,
           own_event const (&captured_calls)[captures_max]) {
    if (call.is_captured) {
      int at = place_of(call.id);
      if (at < 0) at = next_capture_, next_capture_ = (next_capture_ + 1) % captures_max;
      captures_[at] = 0;
      require(cudaEventRecord(captured_calls[at].get(), stream), "noting the call of the capture");
      captures_[at] = call.id;
      return;
    }
    require(cudaEventRecord(last_call, stream), "noting the call");
    last_stream_ = call.id;
    has_calls_ = true;
  }
  [[nodiscard]] bool has_calls() const noexcept { return has_calls_; }

 private:
  // Of the event of a capture; -1: it has none.
  [[nodiscard]] int place_of(unsigned long long capture) const noexcept {
    for (int i = 0; i < captures_max; ++i)
      if (captures_[i] == capture && capture != 0) return i;
    return -1;
  }

  unsigned long long last_stream_ = 0, captures_[captures_max] = {};
  int next_capture_ = 0;
  bool has_calls_ = false;
};

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
