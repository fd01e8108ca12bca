// SPDX-License-Identifier: Apache-2.0
// The driver's functions for multicast objects. Where a GPU waits for devices that are still to be added,
// this one refuses, and says so.
#include "cuda/emulated/runtime/driver.hpp"
#include "cuda/emulated/runtime/team.hpp"

namespace emulated::runtime::driver {

namespace {

// GPUs recommend much more than is needed.
constexpr std::size_t recommended_bytes = 8 * block_bytes;

[[nodiscard]] bool has_multicast(int ordinal) {
  return attribute_of(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, ordinal) != 0;
}
[[nodiscard]] bool is_whole(std::size_t bytes) { return bytes % block_bytes == 0; }

[[nodiscard]] bool is_good(CUmulticastObjectProp const* what) {
  return what != nullptr && what->numDevices != 0 && what->numDevices <= replicas::most && what->flags == 0 &&
         (what->handleTypes & ~static_cast<unsigned long long>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) ==
             0;
}

[[nodiscard]] CUresult said(char const* function, std::string const& wrong) {
  if (wrong.empty()) return CUDA_SUCCESS;
  complain(function, wrong);
  return CUDA_ERROR_INVALID_VALUE;
}

// f(team) on what the handle is of.
template <class F>
CUresult on_object(char const* function, CUmemGenericAllocationHandle object, F const& f) {
  return call(false, function, [&](lock&) {
    auto const found = find_handle(object);
    if (found == nullptr || found->joined == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return f(*found);
  });
}

}  // namespace

CUresult get_multicast_granularity(std::size_t* to, CUmulticastObjectProp const* what,
                                   CUmulticastGranularity_flags which) {
  return call(false, "cuMulticastGetGranularity", [&](lock&) {
    if (!has_multicast(0)) return CUDA_ERROR_NOT_SUPPORTED;
    if (to == nullptr || !is_good(what)) return CUDA_ERROR_INVALID_VALUE;
    *to = which == CU_MULTICAST_GRANULARITY_RECOMMENDED ? recommended_bytes : block_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult create_multicast(CUmemGenericAllocationHandle* to, CUmulticastObjectProp const* what) {
  return call(false, "cuMulticastCreate", [&](lock&) {
    if (!has_multicast(0)) return CUDA_ERROR_NOT_SUPPORTED;
    if (to == nullptr || !is_good(what) || what->size == 0 || !is_whole(what->size))
      return CUDA_ERROR_INVALID_VALUE;
    if (what->numDevices > all().devices.size()) return CUDA_ERROR_INVALID_DEVICE;
    auto made = make_team(what->numDevices, what->size, what->handleTypes != 0);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *to = add_handle(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult add_device(CUmemGenericAllocationHandle object, CUdevice ordinal) {
  return on_object("cuMulticastAddDevice", object, [&](physical const& found) {
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    return said("cuMulticastAddDevice", found.joined->add(ordinal));
  });
}

CUresult bind(CUmemGenericAllocationHandle object, std::size_t offset, CUmemGenericAllocationHandle memory,
              std::size_t at, std::size_t bytes, unsigned long long flags) {
  return on_object("cuMulticastBindMem", object, [&](physical const& found) {
    auto const bound = find_handle(memory);
    if (bound == nullptr || bound->joined != nullptr || flags != 0 || bytes == 0 || !is_whole(bytes) ||
        !is_whole(offset) || !is_whole(at) || bytes > bound->bytes || at > bound->bytes - bytes ||
        bytes > found.bytes || offset > found.bytes - bytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (found.is_shareable && !bound->is_shareable)
      return said("cuMulticastBindMem", "the object can be exported, and the memory cannot");
    return said("cuMulticastBindMem", found.joined->bind(offset, bound, at, bytes));
  });
}

CUresult unbind(CUmemGenericAllocationHandle object, CUdevice ordinal, std::size_t offset,
                std::size_t bytes) {
  return on_object("cuMulticastUnbind", object, [&](physical const& found) {
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    return said("cuMulticastUnbind", found.joined->unbind(ordinal, offset, bytes));
  });
}

}  // namespace emulated::runtime::driver
