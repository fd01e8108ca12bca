// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, which programs get by cudaGetDriverEntryPointByVersion().
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "cuda/emulated/runtime/books.hpp"
#include "cuda/emulated/runtime/devices.hpp"
#include "cuda/emulated/runtime/memory.hpp"

namespace emulated::runtime::driver {

// A call of the driver's: f(lock). It makes no context; the codes are the runtime's by number. It concerns
// the thread's device, and fails where that has, or none.
enum class concerns { this_device, none };
template <class F>
CUresult call(bool needs_context, char const* function, F const& f,
              concerns what = concerns::this_device) noexcept {
  try {
    if (is_forked() || !is_in_use()) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs_context && !me().has_context) return CUDA_ERROR_INVALID_CONTEXT;
    delay();
    lock held(all().mutex);
    device const& here = all().devices.at(static_cast<std::size_t>(me().device));
    bool const is_stuck = what == concerns::this_device && here.failure != cudaSuccess;
    if (is_stuck) return static_cast<CUresult>(here.failure);
    return f(held);
  } catch (std::bad_alloc const&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (std::exception const& e) {
    complain(function, e.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

CUresult get_device_attribute(int* to, CUdevice_attribute which, CUdevice ordinal);
// contexts.cpp
CUresult get_stream_context(CUstream stream, CUcontext* to);
CUresult get_current_context(CUcontext* to);
CUresult push_context(CUcontext context);
CUresult pop_context(CUcontext* to);
CUresult get_context_device(CUdevice* to);
CUresult retain_primary_context(CUcontext* to, CUdevice ordinal);
CUresult release_primary_context(CUdevice ordinal);
CUresult get_primary_context_state(CUdevice ordinal, unsigned* flags, int* active);
// pointers.cpp
CUresult get_pointer_attribute(void* to, CUpointer_attribute which, CUdeviceptr at);
CUresult get_pointer_attributes(unsigned count, CUpointer_attribute* which, void** to, CUdeviceptr at);
CUresult get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at);
// words.cpp
CUresult wait_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);
CUresult write_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);
// virtual_memory.cpp
CUresult get_granularity(std::size_t* to, CUmemAllocationProp const* what, CUmemAllocationGranularity_flags);
CUresult create(CUmemGenericAllocationHandle* to, std::size_t bytes, CUmemAllocationProp const* what,
                unsigned long long flags);
CUresult release(CUmemGenericAllocationHandle handle);
CUresult export_handle(void* to, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long flags);
CUresult import_handle(CUmemGenericAllocationHandle* to, void* from, CUmemAllocationHandleType type);
CUresult reserve(CUdeviceptr* to, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,
                 unsigned long long flags);
CUresult free_address(CUdeviceptr at, std::size_t bytes);
CUresult map(CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags);
CUresult unmap(CUdeviceptr at, std::size_t bytes);
CUresult set_access(CUdeviceptr at, std::size_t bytes, CUmemAccessDesc const* what, std::size_t count);
// multicast.cpp
CUresult get_multicast_granularity(std::size_t* to, CUmulticastObjectProp const* what,
                                   CUmulticastGranularity_flags which);
CUresult create_multicast(CUmemGenericAllocationHandle* to, CUmulticastObjectProp const* what);
CUresult add_device(CUmemGenericAllocationHandle object, CUdevice ordinal);
CUresult bind(CUmemGenericAllocationHandle object, std::size_t offset, CUmemGenericAllocationHandle memory,
              std::size_t at, std::size_t bytes, unsigned long long flags);
CUresult unbind(CUmemGenericAllocationHandle object, CUdevice ordinal, std::size_t offset, std::size_t bytes);
// Of memory, or of a multicast object. Null if there is none.
[[nodiscard]] std::shared_ptr<physical> find_handle(CUmemGenericAllocationHandle handle);
[[nodiscard]] CUmemGenericAllocationHandle add_handle(std::shared_ptr<physical> what);
// Of the reservation around an address; false if there is none.
[[nodiscard]] bool find_reservation(CUdeviceptr at, CUdeviceptr& begin, std::size_t& bytes);

}  // namespace emulated::runtime::driver
