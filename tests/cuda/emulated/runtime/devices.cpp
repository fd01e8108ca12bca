// SPDX-License-Identifier: Apache-2.0
// What devices there are, and what they say of themselves.
#include "cuda/emulated/runtime/devices.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda/emulated/machine.hpp"
#include "cuda/emulated/runtime/capture.hpp"

namespace emulated::runtime {

bool is_device(int ordinal) {
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < all().devices.size();
}

// Read before main(), when nobody may ask for the books yet: what main() sets is not in the environment then.
int capability() {
  static int const said = [] {
    char const* const text = std::getenv("COLLX_EMULATED_CAPABILITY");
    double const version = text == nullptr || *text == 0 ? 8.0 : std::strtod(text, nullptr);
    return static_cast<int>(version * 10 + 0.5);
  }();
  return said;
}

int attribute_of(int which, int ordinal) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return threads_of_block;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(shared_of_block);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(shared_of_block_most);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(shared_bytes_each);
    case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(shared_reserved);
    case cudaDevAttrTotalConstantMemory: return 65536;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxPitch: return 0x7fffffff;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrMultiProcessorCount: return int{multiprocessors};
    case cudaDevAttrMaxThreadsPerMultiProcessor: return int{threads_each};
    case cudaDevAttrMaxBlocksPerMultiprocessor: return int{blocks_each};
    case cudaDevAttrComputeCapabilityMajor: return capability() / 10;
    case cudaDevAttrComputeCapabilityMinor: return capability() % 10;
    case cudaDevAttrClockRate: return 1'000'000;
    case cudaDevAttrPciDeviceId: return ordinal;
    case cudaDevAttrAsyncEngineCount: return 2;
    case cudaDevAttrMemoryPoolSupportedHandleTypes: return cudaMemHandleTypePosixFileDescriptor;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrIpcEventSupport:
    case cudaDevAttrMemoryPoolsSupported:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: return 1;
    case cudaDevAttrMemSyncDomainCount: return capability() >= 90 ? int{domains_most} : 1;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return int{capability() >= 90};
    default: return 0;
  }
}

void name_device(int ordinal, unsigned char (&to)[16]) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, "emulated GPU", 12);
  to[15] = static_cast<unsigned char>(ordinal);
}

}  // namespace emulated::runtime

using namespace emulated::runtime;
using namespace emulated;

namespace {

void describe(cudaDeviceProp& to, int ordinal) {
  auto const says = [&](int which) { return attribute_of(which, ordinal); };
  to = {};
  std::snprintf(to.name, sizeof to.name, "emulated GPU %d", ordinal);
  unsigned char uuid[16];
  name_device(ordinal, uuid);
  std::memcpy(&to.uuid, uuid, sizeof uuid);
  to.totalGlobalMem = all().device_bytes;
  to.sharedMemPerBlock = shared_of_block;
  to.sharedMemPerBlockOptin = shared_of_block_most;
  to.sharedMemPerMultiprocessor = shared_bytes_each;
  to.reservedSharedMemPerBlock = shared_reserved;
  to.regsPerBlock = to.regsPerMultiprocessor = says(cudaDevAttrMaxRegistersPerBlock);
  to.warpSize = 32;
  to.memPitch = 0x7fffffff;
  to.maxThreadsPerBlock = to.maxThreadsDim[0] = to.maxThreadsDim[1] = threads_of_block;
  to.maxThreadsDim[2] = 64;
  to.maxGridSize[0] = 0x7fffffff;
  to.maxGridSize[1] = to.maxGridSize[2] = 65535;
  to.totalConstMem = 65536;
  to.major = capability() / 10;
  to.minor = capability() % 10;
  to.multiProcessorCount = int{multiprocessors};
  to.maxThreadsPerMultiProcessor = int{threads_each};
  to.maxBlocksPerMultiProcessor = int{blocks_each};
  to.asyncEngineCount = 2;
  to.pciDeviceID = ordinal;
  to.canMapHostMemory = to.concurrentKernels = to.unifiedAddressing = to.managedMemory = 1;
  to.concurrentManagedAccess = to.streamPrioritiesSupported = to.cooperativeLaunch = 1;
  to.hostRegisterSupported = to.canUseHostPointerForRegisteredMem = 1;
}

}  // namespace

extern "C" {

// Needs no context, but CUDA is in use from here on.
cudaError_t cudaGetDeviceCount(int* to) {
  if (to == nullptr) return noted(cudaErrorInvalidValue);
  *to = 0;
  if (is_forked()) return noted(cudaErrorInitializationError);
  note_use();
  *to = static_cast<int>(all().devices.size());
  return *to == 0 ? noted(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaGetDevice(int* to) {
  if (is_forked()) return noted(cudaErrorInitializationError);
  if (all().devices.empty()) return noted(cudaErrorNoDevice);
  *to = me().device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal) {
  if (is_forked()) return noted(cudaErrorInitializationError);
  if (all().devices.empty()) return noted(cudaErrorNoDevice);
  if (!is_device(ordinal)) return noted(cudaErrorInvalidDevice);
  me().device = ordinal;
  return call("cudaSetDevice", [](lock&, device&) { return cudaSuccess; });  // makes its context, too
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int ordinal) {
  if (to == nullptr) return noted(cudaErrorInvalidValue);
  if (is_forked()) return noted(cudaErrorInitializationError);
  if (!is_device(ordinal)) return noted(cudaErrorInvalidDevice);
  describe(*to, ordinal);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* to, cudaDeviceAttr which, int ordinal) {
  if (to == nullptr) return noted(cudaErrorInvalidValue);
  if (is_forked()) return noted(cudaErrorInitializationError);
  if (!is_device(ordinal)) return noted(cudaErrorInvalidDevice);
  *to = attribute_of(which, ordinal);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* to, int ordinal, int peer) {
  if (!is_device(ordinal) || !is_device(peer)) return noted(cudaErrorInvalidDevice);
  *to = ordinal != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call("cudaDeviceEnablePeerAccess", [&](lock&, device& here) {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!is_device(peer) || peer == here.ordinal) return cudaErrorInvalidDevice;
    if (!here.peers.insert(peer).second) return cudaErrorPeerAccessAlreadyEnabled;
    count_change();
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call("cudaDeviceDisablePeerAccess", [&](lock&, device& here) {
    if (here.peers.erase(peer) == 0) return cudaErrorPeerAccessNotEnabled;
    count_change();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetLimit(std::size_t* to, cudaLimit which) {
  return call("cudaDeviceGetLimit", [&](lock&, device& here) {
    if (which != cudaLimitStackSize) return cudaErrorUnsupportedLimit;
    *to = here.stack_bytes;
    return cudaSuccess;
  });
}

// Takes effect at the next launch: whatever runs keeps what it has.
cudaError_t cudaDeviceSetLimit(cudaLimit which, std::size_t bytes) {
  return call("cudaDeviceSetLimit", [&](lock& held, device& here) {
    if (which != cudaLimitStackSize) return cudaErrorUnsupportedLimit;
    may_wait_for_device(held, here.ordinal);
    here.stack_bytes = bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* to) { return *to = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* to) { return *to = CUDART_VERSION, cudaSuccess; }
}
