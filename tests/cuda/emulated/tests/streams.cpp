// SPDX-License-Identifier: Apache-2.0
// Streams of the emulated runtime: what waits for what, and what does not; captures and what disturbs them.
#include <atomic>
#include <thread>
#include <vector>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "cuda/emulated/tests/expect.hpp"

namespace {

struct words {
  PFN_cuStreamWriteValue32_v11070 write = nullptr;
  PFN_cuStreamWaitValue32_v11070 wait = nullptr;
};

words found_words() {
  words w;
  cudaDriverEntryPointQueryResult how{};
  void* f = nullptr;
  good(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &f, 11070, 0, &how), "the entry point");
  w.write = reinterpret_cast<PFN_cuStreamWriteValue32_v11070>(f);
  good(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &f, 11070, 0, &how), "the entry point");
  w.wait = reinterpret_cast<PFN_cuStreamWaitValue32_v11070>(f);
  expect(w.write != nullptr && w.wait != nullptr, "memory operations of streams");
  return w;
}

// A stream that stands still until it is let go.
class gate {
 public:
  gate() {
    good(cudaHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, 0), "cudaHostAlloc"), *word_ = 0;
  }
  gate(gate const&) = delete;
  ~gate() { good(cudaFreeHost(word_), "cudaFreeHost"); }
  void hold(cudaStream_t s) {
    static words const w = found_words();
    expect(
        w.wait(s, reinterpret_cast<CUdeviceptr>(word_), ++rounds_, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS,
        "cuStreamWaitValue32");
  }
  // Release: as who writes a word that a stream waits for.
  void open() { std::atomic_ref<std::uint32_t>(*word_).store(rounds_, std::memory_order_release); }

 private:
  std::uint32_t* word_ = nullptr;
  std::uint32_t rounds_ = 0;
};

struct stream {
  cudaStream_t id = nullptr;
  explicit stream(unsigned flags) { good(cudaStreamCreateWithFlags(&id, flags), "cudaStreamCreate"); }
  stream(stream const&) = delete;
  ~stream() { good(cudaStreamDestroy(id), "cudaStreamDestroy"); }
};

void default_stream() {
  stream const blocking(cudaStreamDefault), free(cudaStreamNonBlocking);
  gate g;
  g.hold(blocking.id);
  expect(cudaStreamQuery(blocking.id), cudaErrorNotReady, "a stream that stands");
  expect(cudaGetLastError(), cudaErrorNotReady, "it is the last error");
  good(cudaStreamSynchronize(free.id), "the other stream is idle");
  int* memory = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 4), "cudaMalloc");
  good(cudaMemset(memory, 1, 4), "cudaMemset does not wait for itself");
  expect(cudaStreamQuery(nullptr), cudaErrorNotReady, "the default stream stands behind the blocking one");
  good(cudaMemsetAsync(memory, 2, 4, free.id), "cudaMemsetAsync");
  good(cudaStreamSynchronize(free.id), "one that does not block goes on");
  int got = 0;
  g.open();
  good(cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
  expect(got == 0x01010101, "the default stream's memset came last");
  good(cudaFree(memory), "cudaFree");
}

void events() {
  stream const a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  cudaEvent_t e = nullptr;
  gate g;
  good(cudaEventCreate(&e), "cudaEventCreate");
  good(cudaEventQuery(e), "an event that was not recorded");
  good(cudaStreamWaitEvent(b.id, e, 0), "nothing to wait for");
  good(cudaStreamSynchronize(b.id), "nothing was waited for");
  g.hold(a.id);
  good(cudaEventRecord(e, a.id), "cudaEventRecord");
  good(cudaStreamWaitEvent(b.id, e, 0), "cudaStreamWaitEvent");
  expect(cudaEventQuery(e), cudaErrorNotReady, "not passed yet");
  expect(cudaStreamQuery(b.id), cudaErrorNotReady, "waits for it");
  good(cudaEventDestroy(e), "an event that is waited for may be destroyed");
  expect(cudaEventQuery(e), cudaErrorInvalidResourceHandle, "one that is destroyed is none");
  g.open();
  good(cudaStreamSynchronize(b.id), "passed");
  (void)cudaGetLastError();
}

void captures() {
  stream const a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  cudaEvent_t fork = nullptr, join = nullptr;
  good(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), "an event");
  good(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), "an event");
  int* memory = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 8), "cudaMalloc");
  good(cudaMemsetAsync(memory, 0, 8, a.id), "cudaMemsetAsync");
  good(cudaStreamSynchronize(a.id), "cudaStreamSynchronize");
  good(cudaStreamBeginCapture(a.id, cudaStreamCaptureModeThreadLocal), "begin");
  good(cudaEventRecord(fork, a.id), "fork");
  good(cudaStreamWaitEvent(b.id, fork, 0), "fork");
  good(cudaMemsetAsync(memory, 1, 4, a.id), "a node");
  good(cudaMemsetAsync(memory + 1, 2, 4, b.id), "a node");
  good(cudaEventRecord(join, b.id), "join");
  good(cudaStreamWaitEvent(a.id, join, 0), "join");
  cudaGraph_t graph = nullptr;
  good(cudaStreamEndCapture(a.id, &graph), "end");
  int got[2] = {-1, -1};
  good(cudaMemcpy(got, memory, 8, cudaMemcpyDeviceToHost), "cudaMemcpy");
  expect(got[0] == 0 && got[1] == 0, "what is captured is not carried out");
  cudaGraphExec_t ready = nullptr;
  good(cudaGraphInstantiate(&ready, graph, 0), "instantiation");
  good(cudaGraphDestroy(graph), "cudaGraphDestroy");
  good(cudaGraphLaunch(ready, b.id), "replay");
  good(cudaGraphExecDestroy(ready), "what runs may be destroyed");
  good(cudaStreamSynchronize(b.id), "replay");
  good(cudaMemcpy(got, memory, 8, cudaMemcpyDeviceToHost), "cudaMemcpy");
  expect(got[0] == 0x01010101 && got[1] == 0x02020202, "both branches");

  // Not joined, and waited for.
  good(cudaStreamBeginCapture(a.id, cudaStreamCaptureModeThreadLocal), "begin");
  good(cudaEventRecord(fork, a.id), "fork");
  good(cudaStreamWaitEvent(b.id, fork, 0), "fork");
  good(cudaMemsetAsync(memory, 1, 4, b.id), "a node");
  expect(cudaStreamEndCapture(a.id, &graph), cudaErrorStreamCaptureUnjoined, "not joined");
  good(cudaStreamBeginCapture(a.id, cudaStreamCaptureModeRelaxed), "begin");
  expect(cudaStreamSynchronize(a.id), cudaErrorStreamCaptureUnsupported, "to wait for what is captured");
  expect(cudaStreamEndCapture(a.id, &graph), cudaErrorStreamCaptureInvalidated, "that ends it");
  (void)cudaGetLastError();
  good(cudaFree(memory), "cudaFree");
  good(cudaEventDestroy(fork), "cudaEventDestroy");
  good(cudaEventDestroy(join), "cudaEventDestroy");
}

// What one thread may do while another one captures.
void captures_and_threads() {
  stream const a(cudaStreamNonBlocking), blocking(cudaStreamDefault);
  cudaGraph_t graph = nullptr;
  auto const allocation = [](cudaStreamCaptureMode mode) {
    cudaError_t code = cudaSuccess;
    std::thread([&] {
      (void)cudaThreadExchangeStreamCaptureMode(&mode);
      void* memory = nullptr;
      code = cudaMalloc(&memory, 4);
      if (code == cudaSuccess) (void)cudaFree(memory);
    }).join();
    return code;
  };
  good(cudaStreamBeginCapture(a.id, cudaStreamCaptureModeGlobal), "begin");
  good(allocation(cudaStreamCaptureModeRelaxed), "a relaxed thread");
  good(allocation(cudaStreamCaptureModeThreadLocal), "a thread that cares for its own captures");
  good(cudaStreamEndCapture(a.id, &graph), "end");
  good(cudaGraphDestroy(graph), "cudaGraphDestroy");
  good(cudaStreamBeginCapture(a.id, cudaStreamCaptureModeGlobal), "begin");
  expect(allocation(cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported, "any other thread");
  expect(cudaStreamEndCapture(a.id, &graph), cudaErrorStreamCaptureInvalidated, "that ends the capture");
  good(cudaStreamBeginCapture(blocking.id, cudaStreamCaptureModeRelaxed), "begin");
  cudaStreamCaptureStatus status{};
  expect(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit, "the default stream");
  good(cudaStreamEndCapture(blocking.id, &graph), "to ask does not end it");
  good(cudaGraphDestroy(graph), "cudaGraphDestroy");
  (void)cudaGetLastError();
}

void copies() {
  std::vector<int> host(1 << 20, 7), back(host.size());
  int* device = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * 4), "cudaMalloc");
  stream const a(cudaStreamNonBlocking);
  gate g;
  g.hold(a.id);
  good(cudaMemcpyAsync(device, host.data(), host.size() * 4, cudaMemcpyHostToDevice, a.id),
       "cudaMemcpyAsync");
  host.assign(host.size(), 8);  // pageable memory was taken at once
  g.open();
  good(cudaMemcpyAsync(back.data(), device, back.size() * 4, cudaMemcpyDeviceToHost, a.id),
       "cudaMemcpyAsync");
  expect(back == std::vector<int>(back.size(), 7), "to pageable memory: waits");
  good(cudaMemcpy2DAsync(back.data(), 12, device, 8, 4, 3, cudaMemcpyDeviceToHost, a.id), "rows");
  expect(cudaMemcpy(device, back.data(), (back.size() + 1) * 4, cudaMemcpyHostToDevice),
         cudaErrorInvalidValue, "beyond the allocation");
  expect(cudaMemcpy(device, back.data(), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection,
         "the wrong direction");
  good(cudaFree(device), "cudaFree");
  expect(cudaMemset(device, 0, 4), cudaErrorInvalidValue, "freed memory");
  (void)cudaGetLastError();
}

}  // namespace

int main() {
  default_stream();
  events();
  captures();
  captures_and_threads();
  copies();
  std::puts("streams of the emulated runtime: ok");
}
