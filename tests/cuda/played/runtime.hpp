// SPDX-License-Identifier: Apache-2.0
// As much of CUDA's runtime as a gpu_communicator and its registrations call, played for ranks that are
// processes: memory is of the host, streams do nothing, and no kernel runs. It knows who has whose memory
// open, notes what CUDA would leave undefined, and fails where it is told to. One thread for each process.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

namespace played_runtime {

// What all processes see.
struct handle {
  int process;
  void* memory;  // null: freed
  std::atomic<int> open;
};
struct books {
  static constexpr int handles_max = 256;
  std::atomic<int> count, freed_while_open, wrong_handles, left_open;
  handle handles[handles_max];
};
inline books& of_all = *static_cast<books*>(
    mmap(nullptr, sizeof(books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

// Of this process.
struct allocation {
  std::size_t bytes;
  unsigned long long id;
};
inline std::map<char*, allocation> allocations;
inline std::map<void*, int> opened;  // by address: the handle's number
inline unsigned long long last_id = 0;
inline int calls = 0, failing_call = -1;  // the one that fails; -1: none does
inline useconds_t close_takes_us = 0;     // so that others are ahead of who closes
inline useconds_t load_takes_us = 0;      // of a kernel: so that others give up
inline int events = 0;                    // that there are

inline cudaError_t call() { return calls++ == failing_call ? cudaErrorUnknown : cudaSuccess; }
// Does something unless this call fails.
template <class F>
cudaError_t call(F const& f) {
  cudaError_t const code = call();
  if (code == cudaSuccess) f();
  return code;
}

inline allocation const* find(CUdeviceptr address, char*& base) {
  for (auto const& [begin, what] : allocations) {
    base = begin;
    auto const first = reinterpret_cast<CUdeviceptr>(begin);
    if (address >= first && address - first < what.bytes) return &what;
  }
  return nullptr;
}

inline CUresult attribute(void* to, CUpointer_attribute which, CUdeviceptr address) {
  char* base = nullptr;
  allocation const* const found = find(address, base);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_POINTER_ATTRIBUTE_BUFFER_ID) std::memcpy(to, &found->id, sizeof found->id);
  else *static_cast<int*>(to) = which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? int{CU_MEMORYTYPE_DEVICE} : 1;
  return CUDA_SUCCESS;
}
inline CUresult attributes(unsigned count, CUpointer_attribute* which, void** to, CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) {
    if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(to[i]) = 0;
    if (which[i] != CU_POINTER_ATTRIBUTE_BUFFER_ID && which[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) continue;
    if (attribute(to[i], which[i], address) != CUDA_SUCCESS) return CUDA_SUCCESS;  // not CUDA's
  }
  return CUDA_SUCCESS;
}
inline CUresult range(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address) {
  char* base = nullptr;
  allocation const* const found = find(address, base);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *begin = reinterpret_cast<CUdeviceptr>(base), *bytes = found->bytes;
  return CUDA_SUCCESS;
}

template <class T>
void make(T& thing) {
  thing = reinterpret_cast<T>(std::malloc(1));
}

}  // namespace played_runtime

extern "C" {
using namespace played_runtime;

// ---- memory
// ------------------------------------------------------------------------------------------------
cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  return call([&] {
    *to = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    allocations[static_cast<char*>(*to)] = {bytes, ++last_id};
  });
}
cudaError_t cudaFree(void* memory) {
  for (int i = 0; memory != nullptr && i < of_all.count; ++i) {
    handle& each = of_all.handles[i];
    if (each.process != getpid() || each.memory != memory) continue;
    if (each.open != 0) ++of_all.freed_while_open;
    each.memory = nullptr;
  }
  allocations.erase(static_cast<char*>(memory));
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return call([&] { std::memset(to, value, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(to, value, bytes);
}
cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind) {
  return call([&] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind how, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, how);
}
cudaError_t cudaHostAlloc(void** to, std::size_t bytes, unsigned) {
  return call([&] { *to = std::calloc(1, bytes); });
}
cudaError_t cudaFreeHost(void* memory) { return std::free(memory), cudaSuccess; }

// ---- handles
// ----------------------------------------------------------------------------------------------- Number 0 is
// nobody's: nothing but zeroes is no handle.
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* to, void* memory) {
  return call([&] {
    int const number = of_all.count++;
    of_all.handles[number].process = getpid(), of_all.handles[number].memory = memory;
    int const told = number + 1;
    *to = {};
    std::memcpy(to, &told, sizeof told);
  });
}
cudaError_t cudaIpcOpenMemHandle(void** to, cudaIpcMemHandle_t from, unsigned) {
  int told = 0;
  std::memcpy(&told, &from, sizeof told);
  if (told < 1 || told > of_all.count) return ++of_all.wrong_handles, cudaErrorInvalidValue;
  return call([&] {
    ++of_all.handles[told - 1].open;
    *to = std::malloc(std::size_t{1} << 20);
    opened[*to] = told - 1;
  });
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  usleep(close_takes_us);
  --of_all.handles[opened.at(memory)].open;
  opened.erase(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes*, void const*) { return cudaErrorInvalidValue; }
cudaError_t cudaGetDriverEntryPointByVersion(char const* name, void** to, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* outcome) {
  *to = nullptr;
  if (std::strcmp(name, "cuPointerGetAttribute") == 0) *to = reinterpret_cast<void*>(&attribute);
  if (std::strcmp(name, "cuPointerGetAttributes") == 0) *to = reinterpret_cast<void*>(&attributes);
  if (std::strcmp(name, "cuMemGetAddressRange") == 0) *to = reinterpret_cast<void*>(&range);
  *outcome = *to != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// ---- devices, streams and events, which do nothing
// ---------------------------------------------------------
cudaError_t cudaGetDevice(int* to) { return *to = 0, call(); }
cudaError_t cudaSetDevice(int) { return call(); }
cudaError_t cudaDeviceSynchronize() { return call(); }
cudaError_t cudaDeviceCanAccessPeer(int* to, int, int) { return *to = 1, call(); }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return call(); }
cudaError_t cudaDeviceGetLimit(std::size_t* to, cudaLimit) {
  usleep(load_takes_us);
  return *to = 1 << 20, call();
}
cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return call(); }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, void const*) { return *to = {}, call(); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
  *to = {};
  to->multiProcessorCount = 8;
  return call();
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned) {
  return call([&] { make(*to); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* to, unsigned, int) {
  return call([&] { make(*to); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return call([&] { *lowest = *highest = 0; });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return std::free(stream), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return call(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned) {
  return call([&] { make(*to), ++events; });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return std::free(event), --events, cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return call(); }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static cudaStreamCaptureMode now = cudaStreamCaptureModeGlobal;
  return call([&] { std::swap(now, *mode); });
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
char const* cudaGetErrorName(cudaError_t) { return "an error"; }
char const* cudaGetErrorString(cudaError_t) { return "played"; }
}
