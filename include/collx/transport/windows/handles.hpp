// SPDX-License-Identifier: Apache-2.0
// By what processes map each other's windows: a handle of CUDA IPC, or a descriptor that the driver exports.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "collx/core/error.hpp"

namespace collx::inline abi_1 {

// What the user wants (COLLX_CUDA_HANDLES).
enum class window_handles : std::int32_t {
  automatic,    // handles of CUDA IPC, and descriptors where there are none, or peers cannot open them
  ipc,          // "ipc"
  descriptors,  // "fd"
};

namespace transport::windows {

// What a window has. Ranks of one process need nothing of it.
enum class handle_kind : std::int32_t { none, ipc, descriptor };

// `is_alone`: all ranks are in one process. `has_ipc`: the driver gave a handle. `can_export`: the device
// says that its memory can be exported as a descriptor. `none` where the wanted kind is not to be had.
[[nodiscard]] constexpr handle_kind chosen_handles(window_handles wanted, bool is_alone, bool has_ipc,
                                                   bool can_export) noexcept {
  if (wanted == window_handles::descriptors) return can_export ? handle_kind::descriptor : handle_kind::none;
  if (has_ipc) return handle_kind::ipc;
  bool const falls_back = wanted == window_handles::automatic && !is_alone && can_export;
  return falls_back ? handle_kind::descriptor : handle_kind::none;
}

// Whether a rank whose window has that kind of handle may take descriptors instead, when peers cannot open
// it.
[[nodiscard]] constexpr bool can_do_without_ipc(window_handles wanted, handle_kind has,
                                                bool can_export) noexcept {
  return has != handle_kind::ipc || (wanted == window_handles::automatic && can_export);
}

// With whom a rank exchanges descriptors: ranks of other processes of its host, where either has any. Two
// ranks say the same of each other, or one would wait in vain. `Announcement`: host, kind,
// is_of_process_of(other). Of all ranks; `rank`: whose partners they are.
template <class Announcement>
void descriptor_partners(std::span<Announcement const> all, rank_t rank, std::span<bool> with) noexcept {
  Announcement const& mine = all[static_cast<std::size_t>(rank)];
  for (std::size_t r = 0; r < all.size(); ++r) {
    bool const has_any = mine.kind == handle_kind::descriptor || all[r].kind == handle_kind::descriptor;
    with[r] = has_any && all[r].host == mine.host && !all[r].is_of_process_of(mine);
  }
}

// `Announcement`: kind. Of all ranks.
template <class Announcement>
[[nodiscard]] bool any_has_descriptor(std::span<Announcement const> all) noexcept {
  for (Announcement const& each : all)
    if (each.kind == handle_kind::descriptor) return true;
  return false;
}

// What has come of waiting for GPUs before memory is unmapped that kernels of graphs may still look at.
struct device_rest {
  bool is_own_idle;     // this rank's device is
  bool are_all_idle;    // all ranks have said so of theirs
  bool has_neighbours;  // other ranks of this process, which see this rank's window where it does itself

  // Driver and runtime refuse to wait while another thread captures a stream of the device. To unmap memory
  // under a kernel ends the context; to leave it mapped costs the memory.
  [[nodiscard]] constexpr bool may_unmap() const noexcept {
    return is_own_idle && (are_all_idle || !has_neighbours);
  }
};

[[nodiscard]] inline window_handles handles_from_environment() {
  char const* const text = std::getenv("COLLX_CUDA_HANDLES");
  if (text == nullptr) return window_handles::automatic;
  if (std::strcmp(text, "ipc") == 0) return window_handles::ipc;
  if (std::strcmp(text, "fd") == 0) return window_handles::descriptors;
  throw_error(status::bad_argument,
              "environment variable COLLX_CUDA_HANDLES is \"%.120s\"; set it to ipc or fd, or unset it",
              text);
}

}  // namespace transport::windows

}  // namespace collx::inline abi_1
