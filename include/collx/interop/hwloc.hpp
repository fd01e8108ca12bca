// SPDX-License-Identifier: Apache-2.0
// What hwloc knows of the machine, as far as collx can use it: processors, caches, memory nodes. Needs
// libhwloc (CMake: collx::hwloc); nothing else of collx includes this, and nothing needs it: without it collx
// asks the system itself (core/processors.hpp, device/stream.hpp).
#pragma once

#include <hwloc.h>

#include "collx/core/error.hpp"
#include "collx/device/stream.hpp"

namespace collx::inline abi_1::interop {

// Seen from the calling thread: what it may run on decides. A machine's processors need not be alike; of
// their caches the smallest counts.
struct machine {
  int processors = 0;        // that the thread may run on
  int memory_nodes = 0;      // of those processors
  int memory_node = -1;      // the system's number, where there is but one
  std::size_t l2_bytes = 0;  // of one second-level cache; 0: unknown, or none
  std::size_t l3_bytes = 0;
  int l3_processors = 0;     // that share one third-level cache, of all in the machine
};

namespace detail {

// hwloc's objects, freed at the end of their scope.
class topology {
 public:
  COLLX_COLD topology() {
    if (hwloc_topology_init(&all_) != 0) throw_failed("hwloc_topology_init");
    here_ = hwloc_bitmap_alloc();
    if (here_ == nullptr || hwloc_topology_load(all_) != 0) {
      release();
      throw_failed("hwloc_topology_load");
    }
    // Where the system does not say what the thread is bound to, it may use all that the process may.
    if (hwloc_get_cpubind(all_, here_, HWLOC_CPUBIND_THREAD) != 0)
      hwloc_bitmap_copy(here_, hwloc_topology_get_allowed_cpuset(all_));
    hwloc_bitmap_and(here_, here_, hwloc_topology_get_allowed_cpuset(all_));
  }
  topology(topology const&) = delete;
  ~topology() { release(); }

  [[nodiscard]] int processors() const noexcept { return hwloc_bitmap_weight(here_); }

  // Calls f for each object of a kind that shares a processor with the thread.
  template <class F>
  void for_each(hwloc_obj_type_t kind, F const& f) const {
    for (hwloc_obj_t object = hwloc_get_next_obj_by_type(all_, kind, nullptr); object != nullptr;
         object = hwloc_get_next_obj_by_type(all_, kind, object))
      if (object->cpuset != nullptr && hwloc_bitmap_intersects(object->cpuset, here_) != 0) f(*object);
  }

 private:
  void release() noexcept {
    hwloc_bitmap_free(here_);
    hwloc_topology_destroy(all_);
  }
  [[noreturn]] static void throw_failed(char const* what) {
    throw_error(status::system_failure, "%s failed; is /sys mounted? Do without: nothing of collx needs it",
                what);
  }

  hwloc_topology_t all_ = nullptr;
  hwloc_bitmap_t here_ = nullptr;
};

inline void keep_smaller(std::size_t& least, hwloc_uint64_t bytes) noexcept {
  if (bytes != 0 && (least == 0 || bytes < least)) least = static_cast<std::size_t>(bytes);
}

}  // namespace detail

// Takes milliseconds: to be asked once, not per call. Throws error (system_failure).
[[nodiscard]] COLLX_COLD inline machine look_at_machine() {
  detail::topology const all;
  machine found;
  found.processors = all.processors();
  all.for_each(HWLOC_OBJ_L2CACHE, [&](hwloc_obj const& cache) {
    detail::keep_smaller(found.l2_bytes, cache.attr->cache.size);
  });
  all.for_each(HWLOC_OBJ_L3CACHE, [&](hwloc_obj const& cache) {
    detail::keep_smaller(found.l3_bytes, cache.attr->cache.size);
    found.l3_processors = hwloc_bitmap_weight(cache.cpuset);
  });
  all.for_each(HWLOC_OBJ_NUMANODE, [&](hwloc_obj const& node) {
    found.memory_node = found.memory_nodes++ == 0 ? static_cast<int>(node.os_index) : -1;
  });
  return found;
}

// Has results stored past the caches from those sizes on which fit these caches. Per process; to be called
// before collectives run, since they read it without a lock.
inline void fit_caches(machine const& m) noexcept {
  if (m.l2_bytes != 0) device::stream_bytes_min(m.l2_bytes / device::stream_divisor);
  if (device::result_cache().bytes != 0 && m.l3_bytes != 0 && m.l3_processors > 0)
    device::result_cache(
        {device::cpu::dependable_part(m.l3_bytes), static_cast<std::size_t>(m.l3_processors)});
}

}  // namespace collx::inline abi_1::interop
