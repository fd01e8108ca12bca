// SPDX-License-Identifier: Apache-2.0
// Memory of which every GPU of a group has a replica, and an address at which the switch between them adds up
// and spreads (NVLS). For ranks of one process, each with a GPU of its own, where driver, GPUs and switch can
// do it.
#pragma once

#include <numeric>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "collx/core/array.hpp"
#include "collx/transport/cuda/entry_point.cuh"
#include "collx/transport/cuda/memory.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// Found at run time: not every driver has them.
struct multicast_functions {
  PFN_cuDeviceGetAttribute_v2000 attribute = nullptr;
  PFN_cuMulticastGetGranularity_v12010 granularity = nullptr;
  PFN_cuMulticastCreate_v12010 create = nullptr;
  PFN_cuMulticastAddDevice_v12010 add_device = nullptr;
  PFN_cuMulticastBindMem_v12010 bind = nullptr;
  PFN_cuMulticastUnbind_v12010 unbind = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 unit = nullptr;
  PFN_cuMemCreate_v10020 take = nullptr;
  PFN_cuMemRelease_v10020 give_back = nullptr;
  PFN_cuMemAddressReserve_v10020 reserve = nullptr;
  PFN_cuMemAddressFree_v10020 free_address = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 grant = nullptr;
  bool whole = true;

  [[nodiscard]] static multicast_functions const& loaded() noexcept {
    static multicast_functions const functions = load();
    return functions;
  }

 private:
  template <class Function>
  void get(char const* symbol, unsigned version, Function& function) noexcept {
    whole = find_entry_point(symbol, version, function) == cudaSuccess && whole;
  }

  [[nodiscard]] static multicast_functions load() noexcept {
    multicast_functions f;
    f.get("cuDeviceGetAttribute", 2000, f.attribute);
    f.get("cuMulticastGetGranularity", 12010, f.granularity);
    f.get("cuMulticastCreate", 12010, f.create);
    f.get("cuMulticastAddDevice", 12010, f.add_device);
    f.get("cuMulticastBindMem", 12010, f.bind);
    f.get("cuMulticastUnbind", 12010, f.unbind);
    f.get("cuMemGetAllocationGranularity", 10020, f.unit);
    f.get("cuMemCreate", 10020, f.take);
    f.get("cuMemRelease", 10020, f.give_back);
    f.get("cuMemAddressReserve", 10020, f.reserve);
    f.get("cuMemAddressFree", 10020, f.free_address);
    f.get("cuMemMap", 10020, f.map);
    f.get("cuMemUnmap", 10020, f.unmap);
    f.get("cuMemSetAccess", 10020, f.grant);
    return f;
  }
};

// A rank's part of it. Devices are CUDA's ordinals, which are the driver's too.
class multicast_replica {
 public:
  multicast_replica() = default;
  multicast_replica(multicast_replica const&) = delete;
  ~multicast_replica() { undo(); }

  [[nodiscard]] static bool supported(int device) noexcept {
    auto const& f = multicast_functions::loaded();
    int can = 0;
    return f.whole && f.attribute(&can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device) == CUDA_SUCCESS &&
           can != 0;
  }

  // Whole units of memory; 0 if the driver refuses. Multicast objects recommend units of their own, which may
  // be large; those of the memory do as well.
  [[nodiscard]] static std::size_t rounded(std::size_t bytes, int device, int devices) noexcept {
    auto const& f = multicast_functions::loaded();
    CUmulticastObjectProp const wanted = properties(bytes, devices);
    CUmemAllocationProp const here = memory_of(device);
    std::size_t of_object = 0, of_memory = 0;
    if (f.granularity(&of_object, &wanted, CU_MULTICAST_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        f.unit(&of_memory, &here, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS)
      return 0;
    std::size_t const unit = std::lcm(of_object, of_memory);
    return unit == 0 ? 0 : (bytes + unit - 1) / unit * unit;
  }

  // By one rank; the others get the handle, which is good for the whole process. 0: refused.
  [[nodiscard]] static std::uint64_t create(std::size_t bytes, int devices) noexcept {
    CUmulticastObjectProp const wanted = properties(bytes, devices);
    CUmemGenericAllocationHandle handle = 0;
    return multicast_functions::loaded().create(&handle, &wanted) == CUDA_SUCCESS ? handle : 0;
  }
  // When no rank is bound any more.
  static void destroy(std::uint64_t handle) noexcept {
    if (handle != 0) (void)multicast_functions::loaded().give_back(handle);
  }

  // By every rank, before any binds.
  [[nodiscard]] static bool join(std::uint64_t handle, int device) noexcept {
    return multicast_functions::loaded().add_device(handle, device) == CUDA_SUCCESS;
  }

  // `devices`: of all ranks, which all reach this replica. False: refused, and nothing is left of it.
  [[nodiscard]] bool bind(std::uint64_t handle, std::size_t bytes, int device,
                          array<CUmemAccessDesc> const& everybody) noexcept {
    auto const& f = multicast_functions::loaded();
    object_ = handle, bytes_ = bytes, device_ = device;
    CUmemAllocationProp const here = memory_of(device);
    if (f.take(&memory_, bytes, &here, 0) != CUDA_SUCCESS) memory_ = 0;
    bool const bound = memory_ != 0 && f.bind(handle, 0, memory_, 0, bytes, 0) == CUDA_SUCCESS;
    bound_ = bound;
    CUmemAccessDesc const mine = access_by(device);
    if (bound && map(own_, memory_, everybody.data(), everybody.size()) && map(all_, handle, &mine, 1))
      return true;
    undo();
    return false;
  }

  [[nodiscard]] static CUmemAccessDesc access_by(int device) noexcept {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return access;
  }

  // This rank's replica; and the address of all of them.
  [[nodiscard]] std::byte* own() const noexcept { return pointer(own_); }
  [[nodiscard]] std::byte* all() const noexcept { return pointer(all_); }

  // When no kernel of any rank looks at it any more.
  void undo() noexcept {
    auto const& f = multicast_functions::loaded();
    for (CUdeviceptr* const at : {&all_, &own_}) {
      if (*at == 0) continue;
      (void)f.unmap(*at, bytes_);
      (void)f.free_address(*at, bytes_);
      *at = 0;
    }
    if (bound_) (void)f.unbind(object_, device_, 0, bytes_);
    if (memory_ != 0) (void)f.give_back(memory_);
    bound_ = false;
    memory_ = 0;
  }

 private:
  [[nodiscard]] static CUmemAllocationProp memory_of(int device) noexcept {
    CUmemAllocationProp here{};
    here.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    here.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.location.id = device;
    return here;
  }
  [[nodiscard]] static CUmulticastObjectProp properties(std::size_t bytes, int devices) noexcept {
    CUmulticastObjectProp wanted{};
    wanted.numDevices = static_cast<unsigned>(devices);
    wanted.size = bytes;
    return wanted;
  }
  [[nodiscard]] static std::byte* pointer(CUdeviceptr at) noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(at));
  }

  [[nodiscard]] bool map(CUdeviceptr& at, CUmemGenericAllocationHandle what, CUmemAccessDesc const* access,
                         std::size_t count) noexcept {
    auto const& f = multicast_functions::loaded();
    if (f.reserve(&at, bytes_, 0, 0, 0) != CUDA_SUCCESS) {
      at = 0;
      return false;
    }
    if (f.map(at, bytes_, 0, what, 0) != CUDA_SUCCESS) {
      (void)f.free_address(at, bytes_);
      at = 0;
      return false;
    }
    return f.grant(at, bytes_, access, count) == CUDA_SUCCESS;
  }

  std::uint64_t object_ = 0;
  CUmemGenericAllocationHandle memory_ = 0;
  CUdeviceptr own_ = 0, all_ = 0;
  std::size_t bytes_ = 0;
  int device_ = 0;
  bool bound_ = false;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
