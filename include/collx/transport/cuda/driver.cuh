// SPDX-License-Identifier: Apache-2.0
// CUDA's own word on an address, for memory_kinds.hpp.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "collx/transport/cuda/entry_point.cuh"
#include "collx/transport/cuda/memory_kinds.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// Loaded once per process. Null where there is no driver: no memory is then anything but host memory.
struct driver_functions {
  PFN_cuPointerGetAttribute_v4000 attribute = nullptr;
  PFN_cuPointerGetAttributes_v7000 attributes = nullptr;
  PFN_cuMemGetAddressRange_v3020 range = nullptr;
  cudaError_t failure = cudaSuccess;  // why they are null

  [[nodiscard]] static driver_functions const& loaded() noexcept {
    static driver_functions const functions = load();
    return functions;
  }

 private:
  template <class Function>
  void get(char const* symbol, unsigned version, Function& function) noexcept {
    cudaError_t const outcome = find_entry_point(symbol, version, function);
    if (failure == cudaSuccess) failure = outcome;
  }

  [[nodiscard]] static driver_functions load() noexcept {
    driver_functions functions;
    functions.get("cuPointerGetAttribute", 4000, functions.attribute);
    functions.get("cuPointerGetAttributes", 7000, functions.attributes);
    functions.get("cuMemGetAddressRange", 3020, functions.range);
    return functions;
  }
};

// Errors are CUresult. Needs no current context, and makes none but where describe() says so.
class cuda_driver {
 public:
  [[nodiscard]] std::uint64_t id_of(std::uintptr_t address) noexcept {
    unsigned long long id = 0;
    if (functions_->attribute == nullptr) return 0;
    // Fails for memory that is not CUDA's, which describe() tells from other failures.
    return functions_->attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) == CUDA_SUCCESS ? id : 0;
  }

  // What a kernel failed with has one number, whether the driver or the runtime tells it.
  [[nodiscard]] static char const* name_of(int error) noexcept {
    return cudaGetErrorName(static_cast<cudaError_t>(error));
  }

  // Whether all who reach the device reach this memory: that of cudaMalloc, but not of pools and mappings,
  // where access is granted for each. False also where the driver does not say.
  [[nodiscard]] bool is_plain(void const* pointer) noexcept {
    int plain = 0;  // a boolean of a size that is not said
    return functions_->attribute != nullptr &&
           functions_->attribute(&plain, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                 reinterpret_cast<std::uintptr_t>(pointer)) == CUDA_SUCCESS &&
           plain != 0;
  }

  [[nodiscard]] int describe(std::uintptr_t address, memory_place& place) noexcept {
    if (functions_->failure == cudaErrorInsufficientDriver || functions_->failure == cudaErrorNoDevice)
      return 0;
    if (functions_->failure != cudaSuccess) return CUDA_ERROR_NOT_SUPPORTED;
    parts found;
    switch (CUresult const code = ask(address, found)) {
      case CUDA_SUCCESS: break;
      // Nobody has used CUDA yet, or this is not of a kind that it knows.
      case CUDA_ERROR_NOT_INITIALIZED:
      case CUDA_ERROR_INVALID_VALUE: return 0;
      case CUDA_ERROR_INVALID_CONTEXT: return describe_by_runtime(address, place);
      default: return code;
    }
    if (found.type == 0) return 0;
    place.kind = kind_of(found);
    place.device = found.device;
    place.id = found.id;
    set_extent(address, found, place);
    return 0;
  }

 private:
  // Zero is what the driver gives for what it does not know. Managed is a boolean of a size that is not said.
  struct parts {
    unsigned long long id = 0;
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    unsigned int type = 0;
    int is_managed = 0;
    int device = -1;
  };

  [[nodiscard]] CUresult ask(std::uintptr_t address, parts& found) noexcept {
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                  CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* where[] = {&found.type, &found.id, &found.is_managed, &found.device, &found.begin, &found.bytes};
    return functions_->attributes(6, what, where, address);
  }

  [[nodiscard]] static place_kind kind_of(parts const& found) noexcept {
    if (found.is_managed != 0) return place_kind::managed;
    return found.type == CU_MEMORYTYPE_HOST ? place_kind::pinned : place_kind::device;
  }

  // The attributes give the range of addresses that was reserved, of which several allocations may be mapped;
  // for memory on a device only the other function will do. That one need not know managed memory. Where
  // neither knows, the extent stays unknown, and nothing is kept.
  void set_extent(std::uintptr_t address, parts const& found, memory_place& place) noexcept {
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    if (functions_->range(&begin, &bytes, address) == CUDA_SUCCESS) {
      place.base = begin;
      place.bytes = bytes;
    } else if (place.kind != place_kind::device) {
      place.base = found.begin;
      place.bytes = found.bytes;
    }
  }

  // Without a context the driver does not say. The runtime does, though it makes the device's own context for
  // it; nothing is kept.
  [[nodiscard]] COLLX_COLD static int describe_by_runtime(std::uintptr_t address,
                                                          memory_place& place) noexcept {
    cudaPointerAttributes found{};
    cudaError_t const code = cudaPointerGetAttributes(&found, reinterpret_cast<void const*>(address));
    if (code != cudaSuccess) {
      (void)cudaGetLastError();  // it is told by what is returned
      return code == cudaErrorInvalidValue ? 0 : static_cast<int>(CUDA_ERROR_INVALID_CONTEXT);
    }
    switch (found.type) {
      case cudaMemoryTypeHost: place.kind = place_kind::pinned; break;
      case cudaMemoryTypeDevice: place.kind = place_kind::device; break;
      case cudaMemoryTypeManaged: place.kind = place_kind::managed; break;
      default: return 0;
    }
    place.device = found.device;
    return 0;
  }

  driver_functions const* functions_ = &driver_functions::loaded();
};

static_assert(memory_driver<cuda_driver>);

// The one cache of this process. Checked, until somebody calls trust_hits(). Never destroyed: other objects
// of static storage may free memory, and tell of it, later than any order of destruction would allow.
[[nodiscard]] inline memory_kinds<cuda_driver>& kinds_of_this_process() {
  static auto* const kinds = new memory_kinds<cuda_driver>;
  return *kinds;
}

}  // namespace collx::inline abi_1::transport::cuda_parts
