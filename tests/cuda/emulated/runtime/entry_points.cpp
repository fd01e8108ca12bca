// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, found by name.
#include <cstring>

#include "cuda/emulated/runtime/driver.hpp"

using namespace emulated::runtime;

namespace {

struct entry_point {
  char const* name;
  unsigned version;  // of the CUDA that brought this form
  void* function;
};

// Pointer: of the type that programs take it for.
template <class Pointer>
[[nodiscard]] void* as(Pointer f) {
  return reinterpret_cast<void*>(f);
}

[[nodiscard]] entry_point const* find(char const* name) {
  static entry_point const points[] = {
      {"cuDeviceGetAttribute", 2000, as<PFN_cuDeviceGetAttribute_v2000>(driver::get_device_attribute)},
      {"cuPointerGetAttribute", 4000, as<PFN_cuPointerGetAttribute_v4000>(driver::get_pointer_attribute)},
      {"cuPointerGetAttributes", 7000, as<PFN_cuPointerGetAttributes_v7000>(driver::get_pointer_attributes)},
      {"cuMemGetAddressRange", 3020, as<PFN_cuMemGetAddressRange_v3020>(driver::get_address_range)},
      {"cuStreamWaitValue32", 11070, as<PFN_cuStreamWaitValue32_v11070>(driver::wait_value)},
      {"cuStreamWriteValue32", 11070, as<PFN_cuStreamWriteValue32_v11070>(driver::write_value)},
      {"cuStreamGetCtx", 9020, as<PFN_cuStreamGetCtx_v9020>(driver::get_stream_context)},
      {"cuCtxGetCurrent", 4000, as<PFN_cuCtxGetCurrent_v4000>(driver::get_current_context)},
      {"cuCtxPushCurrent", 4000, as<PFN_cuCtxPushCurrent_v4000>(driver::push_context)},
      {"cuCtxPopCurrent", 4000, as<PFN_cuCtxPopCurrent_v4000>(driver::pop_context)},
      {"cuCtxGetDevice", 2000, as<PFN_cuCtxGetDevice_v2000>(driver::get_context_device)},
      {"cuDevicePrimaryCtxRetain", 7000,
       as<PFN_cuDevicePrimaryCtxRetain_v7000>(driver::retain_primary_context)},
      {"cuDevicePrimaryCtxRelease", 11000,
       as<PFN_cuDevicePrimaryCtxRelease_v11000>(driver::release_primary_context)},
      {"cuDevicePrimaryCtxGetState", 7000,
       as<PFN_cuDevicePrimaryCtxGetState_v7000>(driver::get_primary_context_state)},
      {"cuMemGetAllocationGranularity", 10020,
       as<PFN_cuMemGetAllocationGranularity_v10020>(driver::get_granularity)},
      {"cuMemCreate", 10020, as<PFN_cuMemCreate_v10020>(driver::create)},
      {"cuMemRelease", 10020, as<PFN_cuMemRelease_v10020>(driver::release)},
      {"cuMemExportToShareableHandle", 10020,
       as<PFN_cuMemExportToShareableHandle_v10020>(driver::export_handle)},
      {"cuMemImportFromShareableHandle", 10020,
       as<PFN_cuMemImportFromShareableHandle_v10020>(driver::import_handle)},
      {"cuMemAddressReserve", 10020, as<PFN_cuMemAddressReserve_v10020>(driver::reserve)},
      {"cuMemAddressFree", 10020, as<PFN_cuMemAddressFree_v10020>(driver::free_address)},
      {"cuMemMap", 10020, as<PFN_cuMemMap_v10020>(driver::map)},
      {"cuMemUnmap", 10020, as<PFN_cuMemUnmap_v10020>(driver::unmap)},
      {"cuMulticastGetGranularity", 12010,
       as<PFN_cuMulticastGetGranularity_v12010>(driver::get_multicast_granularity)},
      {"cuMulticastCreate", 12010, as<PFN_cuMulticastCreate_v12010>(driver::create_multicast)},
      {"cuMulticastAddDevice", 12010, as<PFN_cuMulticastAddDevice_v12010>(driver::add_device)},
      {"cuMulticastBindMem", 12010, as<PFN_cuMulticastBindMem_v12010>(driver::bind)},
      {"cuMulticastUnbind", 12010, as<PFN_cuMulticastUnbind_v12010>(driver::unbind)},
      {"cuMemSetAccess", 10020, as<PFN_cuMemSetAccess_v10020>(driver::set_access)},
  };
  for (entry_point const& each : points)
    if (std::strcmp(each.name, name) == 0) return &each;
  return nullptr;
}

}  // namespace

namespace emulated::runtime::driver {

CUresult get_device_attribute(int* to, CUdevice_attribute which, CUdevice ordinal) {
  return call(false, "cuDeviceGetAttribute", [&](lock&) {
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *to = attribute_of(which, ordinal);
    return CUDA_SUCCESS;
  });
}

}  // namespace emulated::runtime::driver

extern "C" {

// What is not emulated is what an older driver lacks.
cudaError_t cudaGetDriverEntryPointByVersion(char const* name, void** to, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* outcome) {
  if (name == nullptr || to == nullptr) return noted(cudaErrorInvalidValue);
  entry_point const* const found = find(name);
  *to = found == nullptr || version < found->version ? nullptr : found->function;
  if (outcome != nullptr)
    *outcome = found == nullptr ? cudaDriverEntryPointSymbolNotFound
               : *to == nullptr ? cudaDriverEntryPointVersionNotSufficent
                                : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}
