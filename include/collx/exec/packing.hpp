// SPDX-License-Identifier: Apache-2.0
// Chunks that do not follow each other in memory, and messages, in which they do: copies within one
// rank. Used by the step machine only.
#pragma once

#include <cstring>

#include "collx/device/stream.hpp"
#include "collx/exec/memory_map.hpp"

namespace collx::inline abi_1::exec {

// The operand of a step to its target for the k-th peer. They may be the same memory.
COLLX_NEVER_INLINE inline void copy_locally(memory_map const& memory, primitive const& step, std::int32_t k,
                                            std::size_t fragment) noexcept {
  run const operand = memory.find(step.operand, 0, fragment), target = memory.find(step.target, k, fragment);
  bool const whole = operand.whole && target.whole;
  for (std::int32_t i = 0; i < (whole ? 1 : step.target.count); ++i) {
    piece from{operand.data, operand.bytes}, to{target.data, target.bytes};
    if (!whole) {
      from = memory.chunk(operand, step.operand, i, fragment);
      to = memory.chunk(target, step.target, i, fragment);
    }
    if (to.bytes == 0 || from.data == to.data) continue;
    bool const apart = from.data + to.bytes <= to.data || to.data + to.bytes <= from.data;
    if (apart) device::copy(to.data, from.data, to.bytes, memory.streams());
    else std::memmove(to.data, from.data, to.bytes);
  }
}

// The chunks `from` of region `what`, one behind the other, to a message.
COLLX_NEVER_INLINE inline void pack(memory_map const& memory, region const& what, run const& from,
                                    std::size_t fragment, std::byte* message) noexcept {
  if (from.whole) {
    device::copy_cached(message, from.data, from.bytes);
    return;
  }
  for (std::int32_t i = 0; i < what.count; ++i) {
    piece const part = memory.chunk(from, what, i, fragment);
    device::copy_cached(message, part.data, part.bytes);
    message += part.bytes;
  }
}

// And back, to the chunks `to` of region `what`; past the caches if asked for.
COLLX_NEVER_INLINE inline void unpack(memory_map const& memory, std::byte const* message, region const& what,
                                      run const& to, std::size_t fragment, bool past_caches) noexcept {
  for (std::int32_t i = 0; i < (to.whole ? 1 : what.count); ++i) {
    piece const part = to.whole ? piece{to.data, to.bytes} : memory.chunk(to, what, i, fragment);
    device::copy(part.data, message, part.bytes, past_caches);
    message += part.bytes;
  }
}

}  // namespace collx::inline abi_1::exec
