// SPDX-License-Identifier: Apache-2.0
// What CUDA refuses while a stream is captured, and what it allows: the library relies on it, see
// transport/cuda/{captures,memory}.cuh, and the emulated GPU has to answer as a real one does.
#include <thread>

#include "captures.cuh"

namespace {

using namespace gpu_test;

__global__ void nothing() {}
void do_nothing(void*) {}

struct stage {
  stream captured, other;
  cudaStream_t blocking = nullptr, also_blocking = nullptr;  // which wait for the legacy one
  gpu_test::event passed, again;
  void *device = nullptr, *pinned = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;

  stage() {
    require(cudaStreamCreate(&blocking), "cudaStreamCreate");
    require(cudaStreamCreate(&also_blocking), "cudaStreamCreate");
    require(cudaMalloc(&device, 1 << 22), "cudaMalloc");
    require(cudaMallocHost(&pinned, 4096), "cudaMallocHost");
    require(cudaEventRecord(passed.id, other.id), "cudaEventRecord");
    require(cudaStreamBeginCapture(other.id, cudaStreamCaptureModeRelaxed), "begin of capture");
    nothing<<<1, 1, 0, other.id>>>();
    require(cudaStreamEndCapture(other.id, &graph), "end of capture");
    require(cudaGraphInstantiate(&ready, graph, 0), "instantiation");
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  stage(stage const&) = delete;
  ~stage() {
    (void)cudaGraphExecDestroy(ready);
    (void)cudaGraphDestroy(graph);
    (void)cudaFreeHost(pinned);
    (void)cudaFree(device);
    (void)cudaStreamDestroy(also_blocking);
    (void)cudaStreamDestroy(blocking);
  }
};

[[nodiscard]] cudaError_t launch(cudaStream_t s) {
  nothing<<<1, 1, 0, s>>>();
  return cudaGetLastError();
}

// Room for what a call tells, which nobody looks at.
template <class T>
[[nodiscard]] T* to() {
  static T room;
  return &room;
}
using is_capturing = cudaStreamCaptureStatus;

template <class Handle, class Make, class Destroy>
[[nodiscard]] cudaError_t made(Make const& make, Destroy const& destroy) {
  Handle handle = nullptr;
  cudaError_t const code = make(&handle);
  return code == cudaSuccess ? destroy(handle) : code;
}
[[nodiscard]] cudaError_t some_memory() {
  return made<void*>([](void** m) { return cudaMalloc(m, 1 << 22); }, [](void* m) { return cudaFree(m); });
}

// As an NVIDIA H200 with driver 580.159.04 answered on 2026-11-26, asked by the thread that captures.
[[nodiscard]] questions seen(stage const& at) {
  constexpr answer isolated = always(cudaErrorStreamCaptureIsolation);
  cudaStream_t const s = at.captured.id, t = at.other.id, blocking = at.blocking;
  cudaEvent_t const passed = at.passed.id, again = at.again.id;
  cudaGraphExec_t const ready = at.ready;
  void *const m = at.device, *const host = at.pinned;
  cudaGraph_t const graph = at.graph;
  return {
      {"cudaStreamGetDevice of it", refused, [=] { return cudaStreamGetDevice(s, to<int>()); }},
      {"cudaStreamGetDevice of another", allowed, [=] { return cudaStreamGetDevice(t, to<int>()); }},
      {"cudaStreamGetFlags of it", refused, [=] { return cudaStreamGetFlags(s, to<unsigned>()); }},
      {"cudaStreamGetId of it", refused, [=] { return cudaStreamGetId(s, to<unsigned long long>()); }},
      {"cudaStreamGetPriority of it", allowed, [=] { return cudaStreamGetPriority(s, to<int>()); }},
      {"cudaStreamIsCapturing of it", allowed, [=] { return cudaStreamIsCapturing(s, to<is_capturing>()); }},
      {"cudaStreamGetCaptureInfo of it", allowed,
       [=] { return cudaStreamGetCaptureInfo(s, to<is_capturing>(), to<unsigned long long>()); }},
      {"cudaStreamIsCapturing of the legacy one", allowed,
       [=] { return cudaStreamIsCapturing(nullptr, to<is_capturing>()); }},
      {"cudaStreamQuery of it", refused, [=] { return cudaStreamQuery(s); }},
      {"cudaStreamSynchronize of it", refused, [=] { return cudaStreamSynchronize(s); }},
      {"cudaStreamQuery of another", unsafe, [=] { return cudaStreamQuery(t); }},
      {"cudaStreamSynchronize of another", unsafe, [=] { return cudaStreamSynchronize(t); }},
      {"cudaDeviceSynchronize", refused, [] { return cudaDeviceSynchronize(); }},
      {"cudaEventQuery", unsafe, [=] { return cudaEventQuery(passed); }},
      {"cudaEventSynchronize", unsafe, [=] { return cudaEventSynchronize(passed); }},
      {"cudaStreamWaitEvent in it", isolated, [=] { return cudaStreamWaitEvent(s, passed, 0); }},
      {"cudaStreamWaitEvent in it, external", allowed,
       [=] { return cudaStreamWaitEvent(s, passed, cudaEventWaitExternal); }},
      {"cudaEventRecord in another", allowed, [=] { return cudaEventRecord(again, t); }},
      {"a kernel in another", allowed, [=] { return launch(t); }},
      {"a kernel in the legacy one", allowed, [] { return launch(nullptr); }},
      {"a kernel in one that waits for the legacy one", allowed, [=] { return launch(blocking); }},
      {"cudaMemcpyAsync in another", allowed,
       [=] { return cudaMemcpyAsync(m, host, 16, cudaMemcpyHostToDevice, t); }},
      {"cudaMemcpy", allowed, [=] { return cudaMemcpy(m, host, 16, cudaMemcpyHostToDevice); }},
      {"cudaMemset", allowed, [=] { return cudaMemset(m, 0, 16); }},
      {"cudaLaunchHostFunc in another", allowed, [=] { return cudaLaunchHostFunc(t, do_nothing, nullptr); }},
      {"cudaGetDevice", allowed, [] { return cudaGetDevice(to<int>()); }},
      {"cudaSetDevice", allowed, [] { return cudaSetDevice(0); }},
      {"cudaDeviceGetAttribute", allowed,
       [] { return cudaDeviceGetAttribute(to<int>(), cudaDevAttrMultiProcessorCount, 0); }},
      {"cudaPointerGetAttributes", allowed,
       [=] { return cudaPointerGetAttributes(to<cudaPointerAttributes>(), m); }},
      {"cudaFuncGetAttributes", allowed,
       [] { return cudaFuncGetAttributes(to<cudaFuncAttributes>(), nothing); }},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", allowed,
       [] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(to<int>(), nothing, 256, 0); }},
      {"cudaIpcGetMemHandle", allowed, [=] { return cudaIpcGetMemHandle(to<cudaIpcMemHandle_t>(), m); }},
      {"cudaMalloc", unsafe, [] { return some_memory(); }},
      {"cudaFree of nothing", unsafe, [] { return cudaFree(nullptr); }},
      {"cudaMallocHost", unsafe,
       [] { return made<void*>([](void** p) { return cudaMallocHost(p, 4096); }, cudaFreeHost); }},
      {"cudaHostRegister", unsafe,
       [] {
         static char some[8192];
         cudaError_t const code = cudaHostRegister(some, sizeof some, 0);
         return code == cudaSuccess ? cudaHostUnregister(some) : code;
       }},
      {"an event made and destroyed", allowed,
       [] {
         return made<cudaEvent_t>([](auto* e) { return cudaEventCreateWithFlags(e, cudaEventDisableTiming); },
                                  cudaEventDestroy);
       }},
      {"a stream made and destroyed", allowed,
       [] {
         return made<cudaStream_t>(
             [](auto* c) { return cudaStreamCreateWithFlags(c, cudaStreamNonBlocking); }, cudaStreamDestroy);
       }},
      {"another capture", allowed,
       [=] {
         cudaError_t const code = cudaStreamBeginCapture(t, cudaStreamCaptureModeThreadLocal);
         if (code != cudaSuccess) return code;
         return made<cudaGraph_t>([=](auto* g) { return cudaStreamEndCapture(t, g); }, cudaGraphDestroy);
       }},
      {"cudaGraphInstantiate", unsafe,
       [=] {
         return made<cudaGraphExec_t>([=](auto* x) { return cudaGraphInstantiate(x, graph, 0); },
                                      cudaGraphExecDestroy);
       }},
      {"cudaGraphUpload in another", allowed, [=] { return cudaGraphUpload(ready, t); }},
      {"cudaGraphLaunch in another", allowed, [=] { return cudaGraphLaunch(ready, t); }},
  };
}

template <class Call>
[[nodiscard]] cudaError_t in_another_thread(Call const& call, bool is_let_off) {
  cudaError_t code = cudaSuccess;
  std::thread([&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (is_let_off) (void)cudaThreadExchangeStreamCaptureMode(&mode);
    code = call();
  }).join();
  return code;
}

// The answers to these, too, are those of that H200.
[[nodiscard]] questions by_other_threads() {
  constexpr answer unsafe_for_all{{unsupported, cudaSuccess, cudaSuccess, unsupported, cudaSuccess}};
  return {
      {"cudaMalloc in another thread", unsafe_for_all, [] { return in_another_thread(some_memory, false); }},
      {"cudaMalloc in one that is let off", allowed, [] { return in_another_thread(some_memory, true); }},
      {"cudaDeviceSynchronize in one that is let off", refused,
       [] { return in_another_thread(cudaDeviceSynchronize, true); }},
  };
}

// The same, where the stream that is captured waits for the legacy one.
[[nodiscard]] questions about_the_legacy_stream(stage const& at) {
  constexpr cudaError_t implicit = cudaErrorStreamCaptureImplicit;
  answer told = always(implicit);
  told.ends = false;
  cudaStream_t const t = at.other.id, also_blocking = at.also_blocking;
  return {
      {"a kernel in the legacy stream, for which that waits,", always(implicit),
       [] { return launch(nullptr); }},
      {"cudaStreamIsCapturing of the legacy stream, for which that waits,", told,
       [] { return cudaStreamIsCapturing(nullptr, to<is_capturing>()); }},
      {"a kernel in a stream that waits as it does", allowed, [=] { return launch(also_blocking); }},
      {"a kernel in one that waits for none", allowed, [=] { return launch(t); }},
  };
}

}  // namespace

int main() {
  if (!may_begin()) return 0;
  try {
    stage const at;
    int const wrong = differences(at.captured.id, seen(at)) +
                      differences(at.captured.id, by_other_threads()) +
                      differences(at.blocking, about_the_legacy_stream(at));
    if (wrong != 0) return 1;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::puts("captures: ok");
}
