// SPDX-License-Identifier: Apache-2.0
// What the runtime and the driver say of an address.
#include <cstring>

#include "cuda/emulated/runtime/driver.hpp"

namespace emulated::runtime::driver {

namespace {

template <class T>
CUresult give(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return CUDA_SUCCESS;
}

[[nodiscard]] CUresult tell(void* to, CUpointer_attribute which, CUdeviceptr at, allocation const& a) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(to, is_of_host(a.kind) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return give(to, at);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!is_of_host(a.kind) && a.kind != memory_kind::managed) return CUDA_ERROR_INVALID_VALUE;
      return give(to, at);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return give(to, a.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return give(to, int{a.kind == memory_kind::managed});
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(to, a.ordinal);
    case CU_POINTER_ATTRIBUTE_MAPPED: return give(to, int{1});
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give(to, int{a.kind == memory_kind::plain || a.kind == memory_kind::variable});
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: {
      CUdeviceptr begin = a.begin;
      std::size_t bytes = a.bytes;
      (void)find_reservation(at, begin, bytes);
      return which == CU_POINTER_ATTRIBUTE_RANGE_SIZE ? give(to, bytes) : give(to, begin);
    }
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// What there is instead for an address that is not CUDA's.
void tell_nothing(void* to, CUpointer_attribute which) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return (void)give(to, int{0});
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return (void)give(to, int{-2});
    default: return (void)give(to, std::uint64_t{0});
  }
}

}  // namespace

CUresult get_pointer_attribute(void* to, CUpointer_attribute which, CUdeviceptr at) {
  return call(true, "cuPointerGetAttribute", [&](lock&) {
    allocation found;
    if (to == nullptr || !memory().find(at, found)) return CUDA_ERROR_INVALID_VALUE;
    return tell(to, which, at, found);
  });
}

CUresult get_pointer_attributes(unsigned count, CUpointer_attribute* which, void** to, CUdeviceptr at) {
  return call(true, "cuPointerGetAttributes", [&](lock&) {
    allocation found;
    bool const is_known = memory().find(at, found);
    for (unsigned i = 0; i < count; ++i)
      if (!is_known || tell(to[i], which[i], at, found) != CUDA_SUCCESS) tell_nothing(to[i], which[i]);
    return CUDA_SUCCESS;
  });
}

CUresult get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at) {
  return call(true, "cuMemGetAddressRange", [&](lock&) {
    allocation found;
    if (!memory().find(at, found) || found.kind == memory_kind::managed) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = found.begin;
    if (bytes != nullptr) *bytes = found.bytes;
    return CUDA_SUCCESS;
  });
}

}  // namespace emulated::runtime::driver

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, void const* at) {
  return emulated::runtime::call("cudaPointerGetAttributes", [&](lock&, device&) {
    if (to == nullptr) return cudaErrorInvalidValue;
    *to = {};
    to->type = cudaMemoryTypeUnregistered;
    to->device = -2;
    to->hostPointer = const_cast<void*>(at);
    allocation found;
    if (!memory().find(reinterpret_cast<std::uintptr_t>(at), found)) return cudaSuccess;
    to->device = found.ordinal;
    to->devicePointer = const_cast<void*>(at);
    to->type = is_of_host(found.kind)               ? cudaMemoryTypeHost
               : found.kind == memory_kind::managed ? cudaMemoryTypeManaged
                                                    : cudaMemoryTypeDevice;
    if (to->type == cudaMemoryTypeDevice) to->hostPointer = nullptr;
    return cudaSuccess;
  });
}
}
