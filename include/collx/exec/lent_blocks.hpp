// SPDX-License-Identifier: Apache-2.0
// Blocks that are lent whole, with the message of their first fragment: no others follow it. So ranks do not
// wait for each other once per fragment, and what the system copies, it copies at once. Of schedules that
// move blocks (schedule/concept.hpp), in which a rank sends to every peer at most once and receives from it
// at most once, on endpoints that can say so in a message. Used by the step machine only.
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
  // `size`: ranks of the group.
  explicit lent_blocks(rank_t size) noexcept : size_(size) {}

  // Whether the k-th peer of a step needs no message in this fragment: it had, or gave, all of its block.
  [[nodiscard]] bool is_sent(peer_set const& to, std::int32_t k) const noexcept { return has(sent_, to, k); }
  [[nodiscard]] bool is_taken(peer_set const& from, std::int32_t k) const noexcept {
    return has(taken_, from, k);
  }
  // Whether a part of the k-th peer's block was taken, and its message is still there.
  [[nodiscard]] bool is_held(peer_set const& from, std::int32_t k) const noexcept {
    return has(held_, from, k);
  }

  // Sends the first fragment of a block of so many bytes to the k-th peer.
  template <class Send>
  void lend(Endpoint& endpoint, int lane, peer_set const& to, std::int32_t k, std::size_t block_bytes,
            Send const& send) noexcept {
    if constexpr (possible) endpoint.lends_block(lane, block_bytes);
    send();
    if constexpr (possible) {
      endpoint.lends_block(lane, 0);
      sent_ |= bit(to, k);
    }
  }

  // Bytes of the block that the message which has arrived is the begin of, or 0.
  [[nodiscard]] std::size_t lent_bytes(Endpoint& endpoint, int lane, rank_t peer) const noexcept {
    if constexpr (possible) return endpoint.lent_block_bytes(lane, peer);
    else return 0;
  }

  // Whether a part of any peer's block was taken.
  [[nodiscard]] bool holds() const noexcept { return held_ != 0; }

  // All of it at once, unless others want their turns; but a fragment where blocks that are still to be sent
  // may lie behind.
  [[nodiscard]] static lent_part part(memory_map const& memory, std::size_t fragment, run const& target,
                                      std::size_t block_bytes, bool at_once) noexcept {
    bool const whole = at_once && fragment == 0 && memory.takes_blocks_whole();
    return {memory.bytes_before(fragment), {target.data, whole ? block_bytes : target.bytes}};
  }

  // Returns whether it was the last of the block.
  [[nodiscard]] bool took(peer_set const& from, std::int32_t k, lent_part const& part,
                          std::size_t block_bytes) noexcept {
    std::uint64_t const peer = bit(from, k);
    bool const last = part.at + part.to.bytes >= block_bytes;
    held_ = last ? held_ & ~peer : held_ | peer;
    if (last) taken_ |= peer;
    return last;
  }

 private:
  static constexpr bool possible = [] {
    if constexpr (requires { Endpoint::lends_blocks; }) return Endpoint::lends_blocks;
    else return false;
  }();

  // One for each rank of the group, wherever that lies: memory_map::moves_blocks() sees to it that there are
  // enough, and the proof that the sets of schedules that move blocks count in the group.
  [[nodiscard]] std::uint64_t bit(peer_set const& set, std::int32_t k) const noexcept {
    peer_set const in_group{set.first, set.stride, set.count};
    return std::uint64_t{1} << in_group.member(k, size_);
  }
  [[nodiscard]] bool has(std::uint64_t bits, peer_set const& set, std::int32_t k) const noexcept {
    if constexpr (possible) return COLLX_UNLIKELY(bits != 0) && (bits & bit(set, k)) != 0;
    else return false;
  }

  rank_t size_;
  std::uint64_t sent_ = 0, taken_ = 0, held_ = 0;
};

}  // namespace collx::inline abi_1::exec
