// SPDX-License-Identifier: Apache-2.0
// Who of several blocks takes which elements.
#pragma once

#include <cstddef>
#include <cstdint>

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

// `count` elements in tiles of `each`, a block a tile. The first one has the `head` besides, so that the
// others begin where lines of memory do.
struct tiles {
  std::size_t count, head, each;

  [[nodiscard]] COLLX_HD constexpr std::size_t number() const {
    return count <= head + each ? 1 : (count - head + each - 1) / each;
  }
  // tile < number()
  [[nodiscard]] COLLX_HD constexpr share at(std::size_t tile) const {
    std::size_t const begin = tile == 0 ? 0 : head + tile * each;
    std::size_t const end = head + (tile + 1) * each;
    return {begin, (end < count ? end : count) - begin};
  }
};

// Elements of a tile: as many as a block reads at once, and the fewest that are worth a block.
struct tile_sizes {
  std::size_t whole, least;
};

// Tiles of the whole size, if there are `enough` of them, else of the least; larger ones, if there were more
// than `most`.
[[nodiscard]] constexpr tiles tiles_of(std::size_t count, std::size_t head, tile_sizes sizes,
                                       std::size_t enough, std::size_t most) {
  tiles cut{count, head, sizes.whole};
  std::size_t const number = cut.number();
  if (number < enough) cut.each = sizes.least;
  else if (number > most) cut.each *= (number + most - 1) / most;
  return cut;
}

// How many elements lie in front of the first one that begins a line; 0 if none of the first `limit` does.
[[nodiscard]] constexpr std::size_t elements_to_cut(std::uintptr_t address, std::size_t element_bytes,
                                                     std::size_t bytes_of_line, std::size_t limit) {
  for (std::size_t i = 0; i < limit; ++i)
    if ((address + i * element_bytes) % bytes_of_line == 0) return i;
  return 0;
}

}  // namespace collx::inline abi_1::device
