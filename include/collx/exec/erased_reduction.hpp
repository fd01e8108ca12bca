// SPDX-License-Identifier: Apache-2.0
// A reduction whose element type and operator are known at run time only: elements are bytes to everybody
// but the loop that combines them. So schedules are compiled once, not for each type and operator.
#pragma once

#include "collx/exec/call.hpp"
#include "collx/exec/step_machine.hpp"

namespace collx::inline abi_1::exec {

// Stands in the place of an operator on std::byte; counts are then in bytes.
struct erased_reduction {
  combine_function loop = nullptr;
  void const* op = nullptr;  // what the loop is handed; without state, and there for good
  std::size_t element_bytes = 1;
  element_kind const* element_type = &no_elements;
  std::uint64_t op_type = 0;
  char const* op_name = "";

  // What makes it an operator; never called.
  [[nodiscard]] std::byte operator()(std::byte const& a, std::byte const&) const noexcept { return a; }

  static void combine_bytes(std::byte* const* destinations, std::int32_t destination_count,
                            std::byte const* const* sources, std::int32_t source_count, std::size_t bytes,
                            void const* self, bool complete, rank_t size, std::int32_t streamed) noexcept {
    auto const& erased = *static_cast<erased_reduction const*>(self);
    erased.loop(destinations, destination_count, sources, source_count, bytes, erased.op, complete, size,
                streamed);
  }
};

}  // namespace collx::inline abi_1::exec
