// SPDX-License-Identifier: Apache-2.0
// How a call is cut where lanes share its fragments: enough fragments that every lane has one, and as many
// each.
#pragma once

#include "collx/exec/scheduled_call.hpp"

namespace collx::inline abi_1::exec {

// Chunks below this are not worth a lane more.
inline constexpr std::size_t lane_chunk_bytes_min = 4096;

// The staging memory to hand to a geometry, at most what a lane has (`staging_bytes`). A function of what all
// ranks know: `count` elements of a block, which has `parts` chunks, `most_staged` of which are staged per
// fragment.
[[nodiscard]] constexpr std::size_t lane_staging_bytes(std::size_t count, std::size_t element_bytes,
                                                       std::int32_t parts, std::int64_t most_staged,
                                                       std::size_t staging_bytes, int lanes) {
  constexpr std::size_t line_bytes = 64;  // where chunks begin
  auto const staged = static_cast<std::size_t>(most_staged), pieces = static_cast<std::size_t>(parts);
  auto const lane_count = static_cast<std::size_t>(lanes);
  auto const divided = [](std::size_t all, std::size_t by) { return (all + by - 1) / by; };
  std::size_t const room = staging_bytes / 2 / staged;
  if (room <= line_bytes + element_bytes) return staging_bytes;
  std::size_t const bytes = count * element_bytes;
  std::size_t const rounds = divided(bytes, room / line_bytes * line_bytes * pieces * lane_count);
  std::size_t chunk = divided(bytes, (rounds == 0 ? 1 : rounds) * lane_count * pieces);
  if (chunk < lane_chunk_bytes_min) chunk = lane_chunk_bytes_min;
  std::size_t const odd_bytes = line_bytes % element_bytes == 0 ? 0 : element_bytes;  // do not fill a line
  std::size_t const wanted = 2 * staged * divided(chunk + odd_bytes, line_bytes) * line_bytes;
  return wanted < staging_bytes ? wanted : staging_bytes;
}

// Where schedule S finds its chunks in the buffers that `user()` returns, cut for lanes. What depends on the
// lane, scratch memory, begins at address 0.
template <schedule S, class User>
[[nodiscard]] chunk_map map_lanes(problem p, User const& user, std::size_t count, std::size_t element_bytes,
                                  std::size_t staging_bytes, int lanes) noexcept {
  std::int32_t const chunks = chunk_count<S>(p.shape()), blocks = S::contract::blocks(p.size);
  std::int32_t const parts = chunks <= blocks ? 1 : chunks / blocks;
  // Ranks that do not know the same counts must not cut by them.
  std::size_t const cut = user().skips_empty
                              ? staging_bytes
                              : lane_staging_bytes(count, element_bytes, parts, largest_staged<S>(p.shape()),
                                                   staging_bytes, lanes);
  return map_memory<S>(p, user, nullptr, count, element_bytes, cut);
}

}  // namespace collx::inline abi_1::exec
