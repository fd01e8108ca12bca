// SPDX-License-Identifier: Apache-2.0
// What one rank keeps of one communicator whose messages a library matches: for every peer and lane a
// channel, and room where a message can land. A transport's traffic is this, and the calls that post.
#pragma once

#include <cstring>

#include "collx/core/array.hpp"
#include "collx/core/types.hpp"
#include "collx/transport/matched/channel.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport::matched {

class ledger {
 public:
  // `members[i]`: the rank in the world of rank i. `message_bytes_max`: of the longest message.
  COLLX_COLD ledger(array<rank_t> members, rank_t rank, int lanes, std::size_t message_bytes_max)
      : rank_(rank),
        landing_bytes_(message_bytes_max),
        members_(static_cast<array<rank_t>&&>(members)),
        holding_(static_cast<std::size_t>(lanes)),
        memory_(channel_count() * (sizeof(channel) + landing_bytes_) + 64) {}
  ledger(ledger const&) = delete;

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return static_cast<rank_t>(members_.size()); }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return memory_.size(); }

  [[nodiscard]] channel& at(int lane, rank_t peer) noexcept { return channels()[index_of(lane, peer)]; }

  // Sends that the current calls on a lane must see ended; and a peer to whom one of them goes, or no_rank.
  [[nodiscard]] std::uint32_t holding(int lane) const noexcept {
    return holding_[static_cast<std::size_t>(lane)];
  }
  [[nodiscard]] rank_t held_by(int lane) noexcept {
    for (rank_t peer = 0; peer < size(); ++peer) {
      channel& c = at(lane, peer);
      for (std::uint64_t message = c.handed; message != c.sent; ++message)
        if (c.post_of(message).open && c.post_of(message).holds_call) return peer;
    }
    return no_rank;
  }

 protected:
  ~ledger() = default;

  // ok, or what a message to or from a peer met with.
  [[nodiscard]] status trouble_on_lanes(rank_t peer) noexcept {
    for (int lane = 0; lane < static_cast<int>(holding_.size()); ++lane)
      if (status const why = at(lane, peer).trouble; why != status::ok) return why;
    return status::ok;
  }

  // A send as it is posted.
  struct outgoing {
    channel& c;
    std::uint32_t part;  // its place in the channel's window
    std::byte const* from;
    bool synchronous;
  };

  [[nodiscard]] outgoing write_down(std::size_t index, std::byte const* payload, std::size_t bytes) noexcept {
    channel& c = channels()[index];
    auto const part = static_cast<std::uint32_t>(c.sent % channel::window);
    channel::post& p = c.posts[part];
    bool const copied = bytes <= channel::inline_bytes;
    if (copied && bytes != 0) std::memcpy(p.small, payload, bytes);
    p.open = true;
    p.synchronous = ++c.sent % channel::synchronous_every == 0;
    // The others are with the library when they have ended, which a small one does at once. Of a small
    // synchronous one nothing is left to do here but to hear that it was matched: no call waits for that.
    p.holds_call = !(copied && p.synchronous);
    holding_[index / members_.size()] += p.holds_call;
    return {c, part, copied ? p.small : payload, p.synchronous};
  }

  // The library no longer needs the payload of a send; if it was synchronous, it has been matched.
  void strike_out(std::size_t index, std::uint32_t part) noexcept {
    channel& c = channels()[index];
    channel::post& p = c.posts[part];
    p.open = false;
    holding_[index / members_.size()] -= p.holds_call;
    if (p.synchronous) {
      // The newest message with this place in the window.
      std::uint64_t const message = c.sent - 1 - (c.sent - 1 - part) % channel::window;
      if (c.matched <= message) c.matched = message + 1;
    }
    while (c.handed != c.sent && !c.post_of(c.handed).open) ++c.handed;
  }

  [[nodiscard]] std::size_t channel_count() const noexcept { return holding_.size() * members_.size(); }
  [[nodiscard]] std::size_t index_of(int lane, rank_t peer) const noexcept {
    return static_cast<std::size_t>(lane) * members_.size() + static_cast<std::size_t>(peer);
  }
  [[nodiscard]] int lane_of(std::size_t index) const noexcept {
    return static_cast<int>(index / members_.size());
  }
  [[nodiscard]] rank_t peer_of(std::size_t index) const noexcept {
    return static_cast<rank_t>(index % members_.size());
  }
  [[nodiscard]] channel* channels() noexcept { return reinterpret_cast<channel*>(memory_.data()); }
  [[nodiscard]] std::byte* landing(std::size_t index) noexcept {
    std::size_t const behind_channels = (channel_count() * sizeof(channel) + 63) / 64 * 64;
    return memory_.data() + behind_channels + index * landing_bytes_;
  }
  [[nodiscard]] std::size_t landing_bytes() const noexcept { return landing_bytes_; }
  // The library has not let go of all of it: it is never used again.
  void abandon_memory() noexcept { memory_.abandon(); }

 private:
  rank_t rank_;
  std::size_t landing_bytes_;
  array<rank_t> members_;
  array<std::uint32_t> holding_;
  zeroed_pages memory_;  // channels, then a landing for each
};

}  // namespace collx::inline abi_1::transport::matched
