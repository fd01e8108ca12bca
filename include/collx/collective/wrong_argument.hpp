// SPDX-License-Identifier: Apache-2.0
// What is said of a call that is refused before anything is sent: which collective, on which rank of how
// many, what is wrong, and the numbers that do not fit.
#pragma once

#include <cstdint>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::detail {

// The most elements that memory may have for each of `blocks` blocks: above that, what follows could not add
// and multiply counts and bytes.
[[nodiscard]] constexpr std::size_t most_elements(std::size_t element_bytes, std::size_t blocks) noexcept {
  return PTRDIFF_MAX / element_bytes / blocks;
}
// Both numbers are counts then, and may be larger than any signed one.
inline constexpr char const* absurd_count = "so many elements fit into no memory; is the count negative?";
// For `needed`, where the text says what would do: a range, or something that is no number.
inline constexpr std::int64_t said_already = INT64_MIN;

// `where`: the rank that is told, and of how many.
[[noreturn]] COLLX_COLD inline void throw_wrong_argument(char const* collective, problem const& where,
                                                         char const* what, std::int64_t given,
                                                         std::int64_t needed) {
  if (what == absurd_count)
    throw_error(status::bad_argument, "%s on rank %d of %d: %s (given %llu, at most %llu)", collective,
                where.rank, where.size, what, static_cast<unsigned long long>(given),
                static_cast<unsigned long long>(needed));
  if (needed == said_already)
    throw_error(status::bad_argument, "%s on rank %d of %d: %s (given %lld)", collective, where.rank,
                where.size, what, static_cast<long long>(given));
  throw_error(status::bad_argument, "%s on rank %d of %d: %s (given %lld, needed %lld)", collective,
              where.rank, where.size, what, static_cast<long long>(given), static_cast<long long>(needed));
}

[[noreturn]] COLLX_COLD inline void throw_not_runnable(char const* collective, problem const& where,
                                                       std::size_t element_bytes, std::uint64_t credits) {
  throw_error(
      status::not_supported,
      "%s on rank %d: this algorithm cannot run on %d ranks with elements of %zu bytes here: it has no "
      "schedule for so many ranks (see docs/algorithms.md), or declares a depth above the transport's %llu "
      "credits, or an element is too large for its staging memory (set COLLX_STAGING_BYTES to more)",
      collective, where.rank, where.size, element_bytes, static_cast<unsigned long long>(credits));
}

}  // namespace collx::inline abi_1::detail
