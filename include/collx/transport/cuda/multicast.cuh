// SPDX-License-Identifier: Apache-2.0
// The driver's own functions for memory behind a switch, for multicast.hpp. Found at run time: not every
// driver has them.
#pragma once

#include "collx/transport/cuda/multicast.hpp"
#include "collx/transport/cuda/virtual_memory.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

struct multicast_functions : entry_points<multicast_functions> {
  PFN_cuMulticastGetGranularity_v12010 granularity = nullptr;
  PFN_cuMulticastCreate_v12010 create = nullptr;
  PFN_cuMulticastAddDevice_v12010 add_device = nullptr;
  PFN_cuMulticastBindMem_v12010 bind = nullptr;
  PFN_cuMulticastUnbind_v12010 unbind = nullptr;

  void find_all() noexcept {
    get("cuMulticastGetGranularity", 12010, granularity);
    get("cuMulticastCreate", 12010, create);
    get("cuMulticastAddDevice", 12010, add_device);
    get("cuMulticastBindMem", 12010, bind);
    get("cuMulticastUnbind", 12010, unbind);
  }
};

class cuda_multicast : public cuda_virtual_memory {
 public:
  [[nodiscard]] bool can_multicast(int device) const noexcept {
    return is_there() && functions().are_all_there && has(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device);
  }
  [[nodiscard]] int object_unit(std::size_t bytes, int devices, bool is_shareable,
                                std::size_t& unit) const noexcept {
    CUmulticastObjectProp const wanted = properties(bytes, devices, is_shareable);
    return functions().granularity(&unit, &wanted, CU_MULTICAST_GRANULARITY_MINIMUM);
  }
  [[nodiscard]] int create_object(std::size_t bytes, int devices, bool is_shareable,
                                  std::uint64_t& object) const noexcept {
    CUmulticastObjectProp const wanted = properties(bytes, devices, is_shareable);
    CUmemGenericAllocationHandle made = 0;
    CUresult const code = functions().create(&made, &wanted);
    object = made;
    return code;
  }
  [[nodiscard]] int add_device(std::uint64_t object, int device) const noexcept {
    return functions().add_device(object, device);
  }
  [[nodiscard]] int bind(std::uint64_t object, std::uint64_t memory, std::size_t bytes) const noexcept {
    return functions().bind(object, 0, memory, 0, bytes, 0);
  }
  [[nodiscard]] int unbind(std::uint64_t object, int device, std::size_t bytes) const noexcept {
    return functions().unbind(object, device, 0, bytes);
  }

 private:
  [[nodiscard]] static multicast_functions const& functions() noexcept {
    return multicast_functions::loaded();
  }
  [[nodiscard]] static CUmulticastObjectProp properties(std::size_t bytes, int devices,
                                                        bool is_shareable) noexcept {
    CUmulticastObjectProp wanted{};
    if (is_shareable) wanted.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    wanted.numDevices = static_cast<unsigned>(devices);
    wanted.size = bytes;
    return wanted;
  }
};

static_assert(multicast_driver<cuda_multicast>);

}  // namespace collx::inline abi_1::transport::cuda_parts
