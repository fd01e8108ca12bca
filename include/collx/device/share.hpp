// SPDX-License-Identifier: Apache-2.0
// Who of several blocks takes which elements.
#pragma once

#include <cstddef>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device {

// A block's share of `count` elements: whole cuts of `cut` elements, but for the last one.
struct share {
  std::size_t begin, count;
};

[[nodiscard]] COLLX_HD constexpr share share_of(std::size_t count, std::size_t cut, std::size_t block,
                                                std::size_t blocks) {
  std::size_t const cuts = (count + cut - 1) / cut;
  std::size_t const each = cuts / blocks, more = cuts % blocks;
  std::size_t const begin = (block * each + (block < more ? block : more)) * cut;
  std::size_t const wanted = (each + (block < more ? 1 : 0)) * cut;
  if (begin >= count) return {count, 0};
  return {begin, count - begin < wanted ? count - begin : wanted};
}

}  // namespace collx::inline abi_1::device
