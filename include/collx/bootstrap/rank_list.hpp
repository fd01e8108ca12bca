// SPDX-License-Identifier: Apache-2.0
// Ranks as PMIx lists them: "0,1,5".
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1::bootstrap {

// The first rank from `at` on, which is then behind it; no_rank at the end, and from anything on that is no
// such list or no rank of `size`.
[[nodiscard]] inline rank_t next_of_rank_list(char const*& at, rank_t size) noexcept {
  if (*at < '0' || *at > '9') return no_rank;
  std::int64_t rank = 0;
  for (; *at >= '0' && *at <= '9' && rank < size; ++at) rank = rank * 10 + (*at - '0');
  if (rank >= size || (*at != ',' && *at != '\0')) return no_rank;
  at += *at == ',';
  return static_cast<rank_t>(rank);
}

}  // namespace collx::inline abi_1::bootstrap
