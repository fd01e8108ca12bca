// SPDX-License-Identifier: Apache-2.0
// Chunks that do not follow each other in memory, and messages, in which they do: copies within one
// rank. Used by the step machine only.
#pragma once

#include <cstring>

#include "collx/exec/memory_map.hpp"

namespace collx::inline abi_1::exec {

// The operand of a step to its target for the k-th peer. They may be the same memory.
COLLX_NEVER_INLINE inline void copy_locally(memory_map const& memory, primitive const& step, std::int32_t k,
                                            std::size_t fragment) noexcept {
  auto const copy = [&](piece const& from, piece const& to) noexcept {
    if (to.bytes == 0 || from.data == to.data) return;
    bool const apart = from.data + to.bytes <= to.data || to.data + to.bytes <= from.data;
    if (apart && memory.streams()) device::copy(to.data, from.data, to.bytes, true);
    else std::memmove(to.data, from.data, to.bytes);
  };
  run const from = memory.find(step.operand, 0, fragment), to = memory.find(step.target, k, fragment);
  if (from.whole && to.whole) return copy({from.data, from.bytes}, {to.data, to.bytes});
  for (std::int32_t i = 0; i < step.target.count; ++i)
    copy(memory.chunk(from, step.operand, i, fragment), memory.chunk(to, step.target, i, fragment));
}

// The chunks `from` of region `what`, one behind the other, to a message.
COLLX_NEVER_INLINE inline void pack(memory_map const& memory, region const& what, run const& from,
                                    std::size_t fragment, std::byte* message) noexcept {
  if (from.whole) {
    if (from.bytes != 0) std::memcpy(message, from.data, from.bytes);
    return;
  }
  for (std::int32_t i = 0; i < what.count; ++i) {
    piece const part = memory.chunk(from, what, i, fragment);
    if (part.bytes != 0) std::memcpy(message, part.data, part.bytes);
    message += part.bytes;
  }
}

// And back, to the chunks `to` of region `what`; past the caches if asked for.
COLLX_NEVER_INLINE inline void unpack(memory_map const& memory, std::byte const* message, region const& what,
                                      run const& to, std::size_t fragment, bool past_caches) noexcept {
  if (to.whole) return device::copy(to.data, message, to.bytes, past_caches);
  for (std::int32_t i = 0; i < what.count; ++i) {
    piece const part = memory.chunk(to, what, i, fragment);
    device::copy(part.data, message, part.bytes, past_caches);
    message += part.bytes;
  }
}

}  // namespace collx::inline abi_1::exec
