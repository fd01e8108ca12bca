// SPDX-License-Identifier: Apache-2.0
// Blocks that are lent whole, with the message of their first fragment: no others follow it. So ranks do not
// wait for each other once per fragment, and what the system copies, it copies at once. Of schedules that
// move blocks (schedule/concept.hpp), whose one step sends and whose other one receives, on endpoints that
// can say so in a message. Used by the step machine only.
#pragma once

#include "collx/exec/memory_map.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

// What a receiver takes in one fragment: so many bytes behind the block's begin.
struct lent_part {
  std::size_t at;
  piece to;
};

template <class Endpoint>
class lent_blocks {
 public:
  // Whether the k-th peer of a step needs no message in this fragment: it gave, or had, all of its block.
  [[nodiscard]] bool is_done(std::int32_t step, std::int32_t k) const noexcept {
    if constexpr (possible) return has(done_[step & 1], k);
    else return false;
  }
  // Whether a part of the k-th peer's block was taken, and its message is still there.
  [[nodiscard]] bool is_held(std::int32_t k) const noexcept {
    if constexpr (possible) return has(held_, k);
    else return false;
  }

  // Sends the first fragment of a block of so many bytes to the k-th peer.
  template <class Send>
  void lend(Endpoint& endpoint, int lane, std::int32_t step, std::int32_t k, std::size_t block_bytes,
            Send const& send) noexcept {
    if constexpr (possible) endpoint.lends_block(lane, block_bytes);
    send();
    if constexpr (possible) {
      endpoint.lends_block(lane, 0);
      done_[step & 1] |= bit(k);
    }
  }

  // Bytes of the block that the message which has arrived is the begin of, or 0.
  [[nodiscard]] std::size_t lent_bytes(Endpoint& endpoint, int lane, rank_t peer) const noexcept {
    if constexpr (possible) return endpoint.lent_block_bytes(lane, peer);
    else return 0;
  }

  // All of it at once; but a fragment where blocks that are still to be sent may lie behind.
  [[nodiscard]] lent_part part(memory_map const& memory, std::size_t fragment,
                               run const& target) const noexcept {
    return {memory.bytes_before(fragment),
            {target.data, memory.takes_blocks_whole() ? memory.block_bytes() : target.bytes}};
  }

  // Returns whether it was the last of the block.
  [[nodiscard]] bool took(std::int32_t step, std::int32_t k, lent_part const& part,
                          std::size_t block_bytes) noexcept {
    held_ |= bit(k);
    bool const last = part.at + part.to.bytes >= block_bytes;
    if (last) done_[step & 1] |= bit(k);
    return last;
  }

 private:
  static constexpr bool possible = [] {
    if constexpr (requires { Endpoint::lends_blocks; }) return Endpoint::lends_blocks;
    else return false;
  }();

  // memory_map::lends_blocks() sees to it that there are no more peers than bits.
  [[nodiscard]] static constexpr std::uint64_t bit(std::int32_t k) noexcept { return std::uint64_t{1} << k; }
  [[nodiscard]] static bool has(std::uint64_t bits, std::int32_t k) noexcept {
    return COLLX_UNLIKELY(bits != 0) && (bits & bit(k)) != 0;
  }

  std::uint64_t done_[2] = {};  // of the two steps
  std::uint64_t held_ = 0;      // of the one that receives
};

}  // namespace collx::inline abi_1::exec
