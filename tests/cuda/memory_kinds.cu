// SPDX-License-Identifier: Apache-2.0
// The cache of memory kinds asks CUDA's own driver: every kind of memory, and memory that is freed and
// allocated again at the same address. Without a GPU it still has to say that memory is the host's.
#include <cstdio>
#include <cstdlib>

#include <collx/transport/cuda/driver.cuh>
#include <collx/transport/cuda/registrations.hpp>
#include <cuda_runtime.h>

namespace {

using namespace collx;
using namespace collx::transport::cuda_parts;

void require(bool good, char const* what) {
  if (good) return;
  std::printf("FAILED: %s (CUDA says %s)\n", what, cudaGetErrorString(cudaPeekAtLastError()));
  std::exit(1);
}

constexpr std::size_t bytes = 1 << 16;

template <class Allocate>
void* allocate(Allocate const& call) {
  void* p = nullptr;
  require(call(&p) == cudaSuccess && p != nullptr, "allocating");
  return p;
}

// Twice: asked of the driver, and remembered.
memory_place find(memory_kinds<cuda_driver>& kinds, void* p, place_kind kind) {
  memory_answer const first = kinds.find(p, bytes);
  memory_answer const again = kinds.find(static_cast<char*>(p) + bytes - 1, 1);
  require(first.code == status::ok && again.code == status::ok, "the driver answers");
  require(first.place.kind == kind, name(kind));
  require(first.place == again.place, "the beginning and the end lie in one allocation");
  std::printf(
      "%s: device %d, base %+lld, %zu bytes, identity %llu\n", name(first.place.kind), first.place.device,
      static_cast<long long>(first.place.base) - static_cast<long long>(reinterpret_cast<std::uintptr_t>(p)),
      first.place.bytes, static_cast<unsigned long long>(first.place.id));
  return first.place;
}

// Frees and allocates until the address comes again: CUDA mostly gives it at once.
void reuse_addresses(memory_kinds<cuda_driver>& kinds, bool told) {
  int came_again = 0;
  for (int round = 0; round < 8; ++round) {
    void* const p = allocate([](void** out) { return cudaMalloc(out, bytes); });
    memory_place const old = find(kinds, p, place_kind::device);
    if (told) kinds.forget(p);
    require(cudaFree(p) == cudaSuccess, "cudaFree");
    void* const q = allocate([](void** out) { return cudaMalloc(out, 2 * bytes); });
    memory_place const fresh = find(kinds, q, place_kind::device);
    require(fresh.id != 0 && fresh.id != old.id, "another allocation has another identity");
    require(fresh.bytes >= 2 * bytes, "and its own size");
    came_again += p == q;
    if (told) kinds.forget(q);
    require(cudaFree(q) == cudaSuccess, "cudaFree");
    if (!told) require(kinds.find(q, 1).place.id != fresh.id, "what is freed is not remembered");
  }
  std::printf("the same address again: %d of 8\n", came_again);
}

void every_kind(memory_kinds<cuda_driver>& kinds) {
  void* const pinned = allocate([](void** out) { return cudaMallocHost(out, bytes); });
  void* const managed = allocate([](void** out) { return cudaMallocManaged(out, bytes); });
  void* const device = allocate([](void** out) { return cudaMalloc(out, bytes); });
  void* const host = std::aligned_alloc(4096, bytes);
  require(find(kinds, pinned, place_kind::pinned).contains(reinterpret_cast<std::uintptr_t>(pinned)),
          "extent");
  // Drivers need not say how long it is.
  memory_place const moving = find(kinds, managed, place_kind::managed);
  require(moving.bytes == 0 || moving.contains(reinterpret_cast<std::uintptr_t>(managed)), "extent");
  require(find(kinds, device, place_kind::device).device == 0, "device 0");
  find(kinds, host, place_kind::host);
  require(kinds.find(device, ~std::size_t{0} / 2).code == status::bad_argument, "too long a range");
  require(cudaHostRegister(host, bytes, cudaHostRegisterDefault) == cudaSuccess, "cudaHostRegister");
  find(kinds, host, place_kind::pinned);
  kinds.forget(host);
  require(cudaHostUnregister(host) == cudaSuccess, "cudaHostUnregister");
  find(kinds, host, place_kind::host);
  for (void* const p : {pinned, managed, device}) kinds.forget(p);
  require(cudaFreeHost(pinned) == cudaSuccess && cudaFree(managed) == cudaSuccess &&
              cudaFree(device) == cudaSuccess,
          "freeing");
  std::free(host);
}

// An exported handle per allocation.
struct exporter {
  status make(memory_place const& place, cudaIpcMemHandle_t& handle) noexcept {
    return cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(place.base)) == cudaSuccess
               ? status::ok
               : status::system_failure;
  }
  void undo(memory_place const&, cudaIpcMemHandle_t&) noexcept {}
};

void export_handles(memory_kinds<cuda_driver>& kinds) {
  registrations<cudaIpcMemHandle_t, exporter> handles;
  void* const p = allocate([](void** out) { return cudaMalloc(out, bytes); });
  cudaIpcMemHandle_t any;
  if (cudaIpcGetMemHandle(&any, p) != cudaSuccess) {  // some virtual GPUs and sandboxes have none
    std::printf("no handles of CUDA IPC: %s\n", cudaGetErrorString(cudaGetLastError()));
    require(cudaFree(p) == cudaSuccess, "cudaFree");
    return;
  }
  {
    decltype(handles)::lease mine, again;
    memory_place const place = find(kinds, p, place_kind::device);
    require(handles.acquire(place, mine) == status::ok && handles.acquire(place, again) == status::ok,
            "exporting");
    require(&mine.value() == &again.value(), "once");
  }
  kinds.forget(p);
  require(cudaFree(p) == cudaSuccess, "cudaFree");
  handles.sweep(kinds.driver());
  require(handles.size() == 0, "freed memory has no handle");
}

}  // namespace

int main() {
  memory_kinds<cuda_driver>& kinds = kinds_of_this_process();
  int on_the_stack = 0;
  require(kinds.find(&on_the_stack, sizeof on_the_stack).code == status::ok,
          "host memory without CUDA in use");
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("host memory is known for that; the rest: SKIPPED: no GPU");
    return 0;
  }
  every_kind(kinds);
  reuse_addresses(kinds, false);
  kinds.trust_hits();
  every_kind(kinds);
  reuse_addresses(kinds, true);
  export_handles(kinds);
  std::puts("memory kinds: ok");
  return 0;
}
