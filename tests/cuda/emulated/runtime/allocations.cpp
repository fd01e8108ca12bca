// SPDX-License-Identifier: Apache-2.0
// Memory of devices and of the host. What is small shares blocks with others, as with CUDA, so a handle of it
// shows other processes the whole block.
#include <algorithm>
#include <cstring>
#include <list>

#include <fcntl.h>
#include <sys/mman.h>

#include "cuda/emulated/runtime/capture.hpp"
#include "cuda/emulated/runtime/memory.hpp"

namespace emulated::runtime {

namespace {

constexpr std::size_t small_most = std::size_t{1} << 20, small_unit = 512;

// A block that small allocations share.
struct shared_block {
  std::uintptr_t at = 0;
  std::shared_ptr<physical> file;
  std::map<std::size_t, std::size_t> used;  // offset, bytes

  [[nodiscard]] bool take(std::size_t bytes, std::size_t& offset) {
    offset = 0;
    for (auto const& [begin, length] : used) {
      if (begin - offset >= bytes) break;
      offset = begin + length;
    }
    if (bytes > block_bytes - offset) return false;
    used[offset] = bytes;
    return true;
  }
};

[[nodiscard]] std::list<shared_block>& shared_blocks() {
  static auto* const blocks = new std::list<shared_block>;
  return *blocks;
}

// New memory at new addresses; 0: there is none.
[[nodiscard]] std::uintptr_t show_new(int ordinal, std::size_t bytes, std::shared_ptr<physical>& file) {
  file = make_physical(ordinal, bytes);
  if (file == nullptr) return 0;
  std::uintptr_t const at = addresses().take(bytes);
  if (at == 0 || addresses().show(at, *file, 0, file->bytes)) return at;
  addresses().give_back(at, bytes);
  return 0;
}

[[nodiscard]] bool allocate_small(int ordinal, std::size_t bytes, allocation& made) {
  std::size_t const rounded = (bytes + small_unit - 1) / small_unit * small_unit;
  auto const found = std::find_if(shared_blocks().begin(), shared_blocks().end(), [&](shared_block& each) {
    return each.file->ordinal == ordinal && each.take(rounded, made.offset);
  });
  shared_block* of = found == shared_blocks().end() ? nullptr : &*found;
  if (of == nullptr) {
    shared_block fresh;
    fresh.at = show_new(ordinal, block_bytes, fresh.file);
    if (fresh.at == 0) return false;
    of = &shared_blocks().emplace_back(std::move(fresh));
    (void)of->take(rounded, made.offset);
  }
  made.begin = of->at + made.offset;
  made.file = of->file;
  std::memset(bytes_at(made.begin), 0xA5, rounded);
  return true;
}

void release(allocation const& gone) {
  std::uintptr_t at = gone.begin;
  auto const of = std::find_if(shared_blocks().begin(), shared_blocks().end(),
                               [&](shared_block const& each) { return each.file == gone.file; });
  if (of != shared_blocks().end()) {
    std::memset(bytes_at(gone.begin), 0xDD, gone.bytes);
    of->used.erase(gone.offset);
    if (!of->used.empty()) return;
    at = of->at;
    shared_blocks().erase(of);
  }
  addresses().hide(at, gone.file->bytes);
  addresses().give_back(at, gone.file->bytes);
}

// Processes that have it open hold a lock on its bytes; see ipc.cpp.
[[nodiscard]] bool is_open_elsewhere(allocation const& what) {
  struct flock about {};
  about.l_type = F_WRLCK;
  about.l_whence = SEEK_SET;
  about.l_start = static_cast<off_t>(what.offset);
  about.l_len = static_cast<off_t>(what.bytes);
  return fcntl(what.file->fd, F_OFD_GETLK, &about) == 0 && about.l_type != F_UNLCK;
}

// Memory of the host that devices reach.
[[nodiscard]] cudaError_t allocate_host(lock& held, device& here, void** to, std::size_t bytes,
                                        memory_kind kind) {
  if (to == nullptr) return cudaErrorInvalidValue;
  if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
  *to = nullptr;
  if (bytes == 0) return kind == memory_kind::managed ? cudaErrorInvalidValue : cudaSuccess;
  may_wait_for_device(held, here.ordinal);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return cudaErrorMemoryAllocation;
  std::memset(at, 0xA5, bytes);
  allocation made;
  made.begin = reinterpret_cast<std::uintptr_t>(at);
  made.bytes = bytes;
  made.kind = kind;
  made.ordinal = here.ordinal;
  memory().enter(std::move(made));
  *to = at;
  return cudaSuccess;
}

// What begins at the address, and is of this kind.
[[nodiscard]] bool find_whole(void* at, memory_kind kind, allocation& found) {
  return memory().find(reinterpret_cast<std::uintptr_t>(at), found) &&
         found.begin == reinterpret_cast<std::uintptr_t>(at) && found.kind == kind;
}

}  // namespace

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  return call("cudaMalloc", [&](lock& held, device& here) {
    if (to == nullptr) return cudaErrorInvalidValue;
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    *to = nullptr;
    if (bytes == 0) return cudaSuccess;
    may_wait_for_device(held, here.ordinal);
    allocation made;
    made.ordinal = here.ordinal;
    made.bytes = bytes;
    if (bytes > small_most) made.begin = show_new(here.ordinal, bytes, made.file);
    else if (!allocate_small(here.ordinal, bytes, made)) return cudaErrorMemoryAllocation;
    if (made.begin == 0) return cudaErrorMemoryAllocation;
    *to = reinterpret_cast<void*>(made.begin);
    memory().enter(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* at) {
  return call("cudaFree", [&](lock& held, device& here) {
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    if (at == nullptr) return cudaSuccess;
    allocation gone;
    if (!find_whole(at, memory_kind::plain, gone) && !find_whole(at, memory_kind::managed, gone))
      return cudaErrorInvalidValue;
    if (!wait_for_device(held, gone.ordinal)) return here.failure;
    if (gone.kind == memory_kind::plain && is_open_elsewhere(gone)) {
      complain("cudaFree", "another process has this memory open (cudaIpcOpenMemHandle)");
      return cudaErrorInvalidValue;
    }
    memory().remove(gone.begin);
    if (gone.kind == memory_kind::managed) (void)munmap(at, gone.bytes);
    else release(gone);
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** to, std::size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](lock& held, device& here) {
    return allocate_host(held, here, to, bytes, memory_kind::pinned);
  });
}
cudaError_t cudaMallocHost(void** to, std::size_t bytes) {
  return cudaHostAlloc(to, bytes, cudaHostAllocDefault);
}

cudaError_t cudaMallocManaged(void** to, std::size_t bytes, unsigned) {
  return call("cudaMallocManaged", [&](lock& held, device& here) {
    return allocate_host(held, here, to, bytes, memory_kind::managed);
  });
}

cudaError_t cudaFreeHost(void* at) {
  return call("cudaFreeHost", [&](lock& held, device& here) {
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    if (at == nullptr) return cudaSuccess;
    allocation gone;
    if (!find_whole(at, memory_kind::pinned, gone)) return cudaErrorInvalidValue;
    if (!wait_for_device(held, here.ordinal)) return here.failure;
    memory().remove(gone.begin);
    (void)munmap(at, gone.bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned) {
  return call("cudaHostRegister", [&](lock& held, device& here) {
    if (at == nullptr || bytes == 0) return cudaErrorInvalidValue;
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    auto const begin = reinterpret_cast<std::uintptr_t>(at);
    if (memory().overlaps(begin, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    may_wait_for_device(held, here.ordinal);
    allocation made;
    made.begin = begin;
    made.bytes = bytes;
    made.kind = memory_kind::registered;
    made.ordinal = here.ordinal;
    memory().enter(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* at) {
  return call("cudaHostUnregister", [&](lock& held, device& here) {
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    allocation gone;
    if (!find_whole(at, memory_kind::registered, gone)) return cudaErrorHostMemoryNotRegistered;
    if (!wait_for_device(held, here.ordinal)) return here.failure;
    memory().remove(gone.begin);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** to, void* at, unsigned) {
  return call("cudaHostGetDevicePointer", [&](lock&, device&) {
    allocation found;
    if (to == nullptr || !memory().find(reinterpret_cast<std::uintptr_t>(at), found) ||
        !is_of_host(found.kind))
      return cudaErrorInvalidValue;
    *to = at;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* whole) {
  return call("cudaMemGetInfo", [&](lock&, device& here) {
    *left = all().device_bytes - here.used_bytes;
    *whole = all().device_bytes;
    return cudaSuccess;
  });
}
}
