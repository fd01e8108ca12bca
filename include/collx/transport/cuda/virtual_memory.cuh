// SPDX-License-Identifier: Apache-2.0
// The driver's own functions for virtual memory, for virtual_memory.hpp. Found at run time: not every driver
// has them, and nobody has to link it.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "collx/transport/cuda/entry_point.cuh"
#include "collx/transport/cuda/virtual_memory.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

struct virtual_memory_functions : entry_points<virtual_memory_functions> {
  PFN_cuDeviceGetAttribute_v2000 attribute = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 unit = nullptr;
  PFN_cuMemCreate_v10020 create = nullptr;
  PFN_cuMemRelease_v10020 release = nullptr;
  PFN_cuMemExportToShareableHandle_v10020 give = nullptr;
  PFN_cuMemImportFromShareableHandle_v10020 take = nullptr;
  PFN_cuMemAddressReserve_v10020 reserve = nullptr;
  PFN_cuMemAddressFree_v10020 free_address = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 grant = nullptr;

  void find_all() noexcept {
    get("cuDeviceGetAttribute", 2000, attribute);
    get("cuMemGetAllocationGranularity", 10020, unit);
    get("cuMemCreate", 10020, create);
    get("cuMemRelease", 10020, release);
    get("cuMemExportToShareableHandle", 10020, give);
    get("cuMemImportFromShareableHandle", 10020, take);
    get("cuMemAddressReserve", 10020, reserve);
    get("cuMemAddressFree", 10020, free_address);
    get("cuMemMap", 10020, map);
    get("cuMemUnmap", 10020, unmap);
    get("cuMemSetAccess", 10020, grant);
  }
};

// Devices are CUDA's ordinals, which are the driver's too.
class cuda_virtual_memory {
 public:
  [[nodiscard]] static bool is_there() noexcept { return virtual_memory_functions::loaded().are_all_there; }
  // Whether the device says yes; no where the driver cannot be asked.
  [[nodiscard]] static bool has(CUdevice_attribute what, int device) noexcept {
    int answer = 0;
    auto const ask = virtual_memory_functions::loaded().attribute;
    return ask != nullptr && ask(&answer, what, device) == CUDA_SUCCESS && answer != 0;
  }
  // Whether memory of the device can be mapped by other processes that have a descriptor of it.
  [[nodiscard]] static bool can_export(int device) noexcept {
    return is_there() && has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) &&
           has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device);
  }

  [[nodiscard]] int unit(int device, bool is_shareable, std::size_t& bytes) const noexcept {
    CUmemAllocationProp const what = memory_of(device, is_shareable);
    return functions().unit(&bytes, &what, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  }
  [[nodiscard]] int create(std::size_t bytes, int device, bool is_shareable,
                           std::uint64_t& memory) const noexcept {
    CUmemAllocationProp const what = memory_of(device, is_shareable);
    CUmemGenericAllocationHandle made = 0;
    CUresult const code = functions().create(&made, bytes, &what, 0);
    memory = made;
    return code;
  }
  [[nodiscard]] int release(std::uint64_t memory) const noexcept { return functions().release(memory); }
  [[nodiscard]] int export_fd(std::uint64_t memory, int& fd) const noexcept {
    return functions().give(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  }
  [[nodiscard]] int import_fd(int fd, std::uint64_t& memory) const noexcept {
    CUmemGenericAllocationHandle taken = 0;
    // The descriptor itself, not where it is.
    CUresult const code = functions().take(&taken, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    memory = taken;
    return code;
  }
  [[nodiscard]] int reserve(std::size_t bytes, std::size_t alignment, std::uint64_t& address) const noexcept {
    CUdeviceptr at = 0;
    CUresult const code = functions().reserve(&at, bytes, alignment, 0, 0);
    address = at;
    return code;
  }
  [[nodiscard]] int free_address(std::uint64_t address, std::size_t bytes) const noexcept {
    return functions().free_address(address, bytes);
  }
  [[nodiscard]] int map(std::uint64_t address, std::size_t bytes, std::uint64_t memory) const noexcept {
    return functions().map(address, bytes, 0, memory, 0);
  }
  [[nodiscard]] int unmap(std::uint64_t address, std::size_t bytes) const noexcept {
    return functions().unmap(address, bytes);
  }
  // One by one: the driver takes a list, too, for which there would have to be memory.
  [[nodiscard]] int grant(std::uint64_t address, std::size_t bytes, int const* devices,
                          std::size_t count) const noexcept {
    CUresult code = CUDA_SUCCESS;
    for (std::size_t i = 0; i < count && code == CUDA_SUCCESS; ++i) {
      CUmemAccessDesc access{};
      access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access.location.id = devices[i];
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      code = functions().grant(address, bytes, &access, 1);
    }
    return code;
  }

 private:
  [[nodiscard]] static virtual_memory_functions const& functions() noexcept {
    return virtual_memory_functions::loaded();
  }
  [[nodiscard]] static CUmemAllocationProp memory_of(int device, bool is_shareable) noexcept {
    CUmemAllocationProp here{};
    here.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    here.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.location.id = device;
    if (is_shareable) here.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return here;
  }
};

static_assert(virtual_memory_driver<cuda_virtual_memory>);

}  // namespace collx::inline abi_1::transport::cuda_parts
