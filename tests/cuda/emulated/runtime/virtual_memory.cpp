// SPDX-License-Identifier: Apache-2.0
// The driver's functions for virtual memory: files in memory, mapped where addresses were reserved.
#include <map>

#include <fcntl.h>
#include <unistd.h>

#include "cuda/emulated/runtime/driver.hpp"
#include "cuda/emulated/runtime/team.hpp"

namespace emulated::runtime::driver {

namespace {

struct table {
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<physical>> handles;
  CUmemGenericAllocationHandle last = 0;
  std::map<CUdeviceptr, std::size_t> reservations, mappings;

  [[nodiscard]] CUmemGenericAllocationHandle add(std::shared_ptr<physical> what) {
    handles[++last] = std::move(what);
    return last;
  }
};
[[nodiscard]] table& here() {
  static auto* const made = new table;
  return *made;
}

[[nodiscard]] bool is_good(CUmemAllocationProp const* what) {
  return what != nullptr && what->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         what->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(what->location.id) &&
         (what->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0;
}

// Whether whole mappings, one behind the other, fill the range.
template <class F>
[[nodiscard]] bool for_each_mapping(CUdeviceptr at, std::size_t bytes, F const& f) {
  CUdeviceptr const end = at + bytes;
  for (CUdeviceptr each = at; each < end;) {
    auto const found = here().mappings.find(each);
    if (found == here().mappings.end() || found->second > end - each) return false;
    each += found->second;
  }
  for (auto found = here().mappings.find(at); found != here().mappings.end() && found->first < end;) {
    auto const [begin, length] = *found++;
    f(begin, length);
  }
  return true;
}

}  // namespace

CUmemGenericAllocationHandle add_handle(std::shared_ptr<physical> what) {
  return here().add(std::move(what));
}
std::shared_ptr<physical> find_handle(CUmemGenericAllocationHandle handle) {
  auto const found = here().handles.find(handle);
  return found == here().handles.end() ? nullptr : found->second;
}

bool find_reservation(CUdeviceptr at, CUdeviceptr& begin, std::size_t& bytes) {
  auto const behind = here().reservations.upper_bound(at);
  if (behind == here().reservations.begin()) return false;
  auto const& [first, length] = *std::prev(behind);
  if (at - first >= length) return false;
  begin = first;
  bytes = length;
  return true;
}

CUresult get_granularity(std::size_t* to, CUmemAllocationProp const* what, CUmemAllocationGranularity_flags) {
  return call(false, "cuMemGetAllocationGranularity", [&](lock&) {
    if (to == nullptr || !is_good(what)) return CUDA_ERROR_INVALID_VALUE;
    *to = block_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult create(CUmemGenericAllocationHandle* to, std::size_t bytes, CUmemAllocationProp const* what,
                unsigned long long flags) {
  return call(false, "cuMemCreate", [&](lock& held) {
    if (to == nullptr || !is_good(what) || flags != 0 || bytes == 0 || bytes % block_bytes != 0)
      return CUDA_ERROR_INVALID_VALUE;
    (void)held;
    auto made = make_physical(what->location.id, bytes);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    made->is_shareable = what->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    *to = here().add(std::move(made));
    return CUDA_SUCCESS;
  });
}

// What is mapped of it stays.
CUresult release(CUmemGenericAllocationHandle handle) {
  return call(false, "cuMemRelease", [&](lock&) {
    return here().handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult export_handle(void* to, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long flags) {
  return call(false, "cuMemExportToShareableHandle", [&](lock&) {
    auto const found = here().handles.find(handle);
    if (to == nullptr || flags != 0 || found == here().handles.end() || !found->second->is_shareable ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
      return CUDA_ERROR_INVALID_VALUE;
    int const fd = fcntl(found->second->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(to) = fd;
    return CUDA_SUCCESS;
  });
}

// The descriptor stays the caller's.
CUresult import_handle(CUmemGenericAllocationHandle* to, void* from, CUmemAllocationHandleType type) {
  return call(false, "cuMemImportFromShareableHandle", [&](lock&) {
    if (to == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    int const fd = fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(from)), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
    auto taken = adopt_team(fd);
    if (taken == nullptr) taken = adopt(fd);
    if (taken == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *to = here().add(std::move(taken));
    return CUDA_SUCCESS;
  });
}

CUresult reserve(CUdeviceptr* to, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                 unsigned long long flags) {
  return call(false, "cuMemAddressReserve", [&](lock&) {
    if (to == nullptr || flags != 0 || bytes == 0 || bytes % block_bytes != 0 ||
        (alignment & (alignment - 1)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    *to = addresses().take(bytes, alignment);
    if (*to == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    here().reservations[*to] = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult free_address(CUdeviceptr at, std::size_t bytes) {
  return call(false, "cuMemAddressFree", [&](lock&) {
    auto const found = here().reservations.find(at);
    if (found == here().reservations.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    auto const next = here().mappings.lower_bound(at);
    if (next != here().mappings.end() && next->first < at + bytes) {
      complain("cuMemAddressFree", "memory is mapped there still");
      return CUDA_ERROR_INVALID_VALUE;
    }
    here().reservations.erase(found);
    addresses().give_back(at, bytes);
    return CUDA_SUCCESS;
  });
}

// Nobody may touch it until access is set.
CUresult map(CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags) {
  return call(false, "cuMemMap", [&](lock&) {
    CUdeviceptr begin = 0;
    std::size_t length = 0;
    auto const found = here().handles.find(handle);
    if (found == here().handles.end() || flags != 0 || offset != 0 || bytes == 0 ||
        bytes != found->second->bytes || at % block_bytes != 0 || !find_reservation(at, begin, length) ||
        bytes > length - (at - begin) || memory().overlaps(at, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    team const* const joined = found->second->joined.get();
    if (joined != nullptr && !joined->is_complete()) {
      complain("cuMemMap", "not all devices are added to the object: on a GPU it waits for them");
      return CUDA_ERROR_NOT_PERMITTED;
    }
    // What is behind a multicast address is for the machine to find.
    if (joined == nullptr && !addresses().show(at, *found->second, 0, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation made;
    made.begin = at;
    made.bytes = bytes;
    made.kind = joined != nullptr ? memory_kind::multicast : memory_kind::mapped;
    made.ordinal = found->second->ordinal;
    made.file = found->second;
    memory().enter(std::move(made));
    here().mappings[at] = bytes;
    return CUDA_SUCCESS;
  });
}

// Waits for nobody: who unmaps sees to it that nothing looks there any more.
CUresult unmap(CUdeviceptr at, std::size_t bytes) {
  return call(false, "cuMemUnmap", [&](lock&) {
    return for_each_mapping(at, bytes,
                            [](CUdeviceptr begin, std::size_t length) {
                              memory().remove(begin);
                              addresses().hide(begin, length);
                              here().mappings.erase(begin);
                            })
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult set_access(CUdeviceptr at, std::size_t bytes, CUmemAccessDesc const* what, std::size_t count) {
  return call(false, "cuMemSetAccess", [&](lock&) {
    for (std::size_t i = 0; i < count; ++i) {
      if (what[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(what[i].location.id) ||
          what[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
      if (!for_each_mapping(
              at, bytes, [&](CUdeviceptr begin, std::size_t) { memory().grant(begin, what[i].location.id); }))
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace emulated::runtime::driver
