// SPDX-License-Identifier: Apache-2.0
// What one rank keeps of one communicator over MPI: for every peer and lane the messages that are on their
// way out, and the one that is wanted. The rules of the protocol are here: docs/transports.md says why.
#pragma once

#include <cstring>

#include "collx/core/array.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/mpi/request_table.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport::mpi_parts {

// One lane between this rank and one peer. All zero is how it begins: it lies in pages that are taken when
// touched.
struct channel {
  // Sends that may be in flight. Every `synchronous_every`-th is an MPI_Issend, which ends when the receiver
  // has asked for the message; since MPI matches in order, it has asked for all earlier ones too.
  static constexpr std::uint64_t window = 16, synchronous_every = 8;
  // So many messages may be unmatched whatever the sender knows.
  static constexpr std::uint64_t depth = window - synchronous_every + 1;
  static constexpr std::size_t inline_bytes = 64;

  struct posted {
    bool open;  // MPI may still read the payload
    bool synchronous;
    bool holds_call;  // the call waits until it has ended
    std::byte small[inline_bytes];
  };

  std::uint64_t sent, handed;  // handed: sends that have ended, in order
  std::uint64_t matched;       // those that the receiver is known to have asked for
  posted posts[window];

  std::byte* to;             // of the message that is wanted, or is here
  std::size_t wanted_bytes;  // where it goes straight to its place
  std::size_t bytes;         // of the one that is here
  bool here;
  status trouble;  // ok, or why nothing will come or go any more

  [[nodiscard]] posted& post(std::uint64_t message) noexcept { return posts[message % window]; }
};

class traffic {
 public:
  // Messages of lane l have the tag first_tag + l. `members[i]`: the rank in `comm` of rank i.
  COLLX_COLD traffic(MPI_Comm comm, int first_tag, array<rank_t> members, rank_t rank, int lanes,
                     std::size_t message_bytes_max)
      : comm_(comm),
        first_tag_(first_tag),
        rank_(rank),
        landing_bytes_(message_bytes_max),
        members_(static_cast<array<rank_t>&&>(members)),
        holding_(static_cast<std::size_t>(lanes)),
        looked_for_(channel_count()),
        table_(channel_count() * (channel::window + 1)),
        memory_(channel_count() * (sizeof(channel) + landing_bytes_) + 64) {}
  traffic(traffic const&) = delete;
  ~traffic() {
    // Who leaves after a failure may have sends that never end: their memory is never used again.
    if (!is_idle()) memory_.abandon();
  }

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return static_cast<rank_t>(members_.size()); }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] bool is_idle() const noexcept { return table_.empty(); }

  [[nodiscard]] channel& at(int lane, rank_t peer) noexcept { return channels()[index_of(lane, peer)]; }

  // Sends that the current calls on a lane must see ended.
  [[nodiscard]] std::uint32_t holding(int lane) const noexcept {
    return holding_[static_cast<std::size_t>(lane)];
  }

  // The next message from `peer` is wanted at `to`, or, if that is null, anywhere. No receive is ever posted
  // for less than the longest message: of one that is too long, MPI may write more than was asked for (Open
  // MPI 4.1 does, between processes of one host), or end the program (MPICH 4.0 does, whatever the
  // communicator's error handler). So most are received where there is room for any. Large ones go straight
  // to their place, once it is known how long they are.
  void receive(int lane, rank_t peer, std::byte* to, std::size_t bytes) noexcept {
    std::size_t const index = index_of(lane, peer);
    channel& c = channels()[index];
    if (COLLX_UNLIKELY(withdrawn_)) return;
    if (to != nullptr && bytes >= straight_bytes_min) {
      c.to = to;
      c.wanted_bytes = bytes;
      looked_for_[looked_for_count_++] = index;
      return;
    }
    c.to = landing(index);
    auto const post = [&](MPI_Request* request) noexcept {
      return MPI_Irecv(c.to, static_cast<int>(landing_bytes_), MPI_BYTE, world_rank(peer), first_tag_ + lane,
                       comm_, request);
    };
    check(c, table_.add({static_cast<std::uint32_t>(index), request_table::receive}, post));
  }

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes) noexcept {
    std::size_t const index = index_of(lane, peer);
    channel& c = channels()[index];
    channel::posted& p = c.post(c.sent);
    bool const copied = bytes <= channel::inline_bytes;
    if (copied && bytes != 0) std::memcpy(p.small, payload, bytes);
    p.open = true;
    p.synchronous = ++c.sent % channel::synchronous_every == 0;
    // The others are with MPI when they have ended, which a small one does at once. Of a small synchronous
    // one nothing is left to do here but to hear that it was matched: no call waits for that.
    p.holds_call = !(copied && p.synchronous);
    holding_[static_cast<std::size_t>(lane)] += p.holds_call;
    if (COLLX_UNLIKELY(withdrawn_)) return;
    auto const post = [&](MPI_Request* request) noexcept {
      return (p.synchronous ? MPI_Issend : MPI_Isend)(copied ? p.small : payload, static_cast<int>(bytes),
                                                      MPI_BYTE, world_rank(peer), first_tag_ + lane, comm_,
                                                      request);
    };
    auto const part = static_cast<std::uint32_t>((c.sent - 1) % channel::window);
    check(c, table_.add({static_cast<std::uint32_t>(index), part}, post));
  }

  void progress() noexcept {
    // From the back, so that the one that takes a gap has been looked for already.
    for (std::size_t i = looked_for_count_; i-- != 0;)
      if (found(looked_for_[i])) looked_for_[i] = looked_for_[--looked_for_count_];
    if (table_.empty()) return;
    table_.test([this](request_table::owner const& of, MPI_Status const& how, int code) noexcept {
      channel& c = channels()[of.channel];
      if (of.part == request_table::receive) received(c, how, code);
      else ended(c, of, code);
    });
  }

  // After a failure: nothing is posted any more, and what MPI still writes to is taken from it.
  COLLX_COLD void withdraw() noexcept {
    if (withdrawn_) return;
    withdrawn_ = true;
    looked_for_count_ = 0;
    table_.cancel_receives();
  }
  [[nodiscard]] COLLX_COLD bool has_receives() const noexcept { return table_.has_receives(); }

  traffic* next = nullptr;

 private:
  // Below this a copy is cheaper than to ask MPI whether the message is here before it is received.
  static constexpr std::size_t straight_bytes_min = 4096;

  [[nodiscard]] std::size_t channel_count() const noexcept { return holding_.size() * members_.size(); }
  [[nodiscard]] std::size_t index_of(int lane, rank_t peer) const noexcept {
    return static_cast<std::size_t>(lane) * members_.size() + static_cast<std::size_t>(peer);
  }
  [[nodiscard]] channel* channels() noexcept { return reinterpret_cast<channel*>(memory_.data()); }
  [[nodiscard]] std::byte* landing(std::size_t index) noexcept {
    std::size_t const behind_channels = (channel_count() * sizeof(channel) + 63) / 64 * 64;
    return memory_.data() + behind_channels + index * landing_bytes_;
  }

  void check(channel& c, int code) const noexcept {
    if (COLLX_UNLIKELY(code != MPI_SUCCESS)) c.trouble = status_of(code);
  }

  // Whether the next message of a channel is here, or will never be. It is received to its place if it fits.
  [[nodiscard]] bool found(std::size_t index) noexcept {
    channel& c = channels()[index];
    int const lane = static_cast<int>(index / members_.size());
    rank_t const peer = static_cast<rank_t>(index % members_.size());
    int came = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status what;
    int const code = MPI_Improbe(world_rank(peer), first_tag_ + lane, comm_, &came, &message, &what);
    check(c, code);
    if (code != MPI_SUCCESS || came == 0) return code != MPI_SUCCESS;
    if (count_of(what) != c.wanted_bytes) c.to = landing(index);
    check(c, table_.add({static_cast<std::uint32_t>(index), request_table::receive},
                        [&](MPI_Request* request) noexcept {
                          return MPI_Imrecv(c.to, static_cast<int>(count_of(what)), MPI_BYTE, &message,
                                            request);
                        }));
    return true;
  }

  [[nodiscard]] static std::size_t count_of(MPI_Status const& what) noexcept {
    int count = 0;
    return MPI_Get_count(&what, MPI_BYTE, &count) != MPI_SUCCESS || count < 0
               ? 0
               : static_cast<std::size_t>(count);
  }

  void received(channel& c, MPI_Status const& how, int code) noexcept {
    int cancelled = 0;
    if (COLLX_UNLIKELY(withdrawn_)) {
      (void)MPI_Test_cancelled(&how, &cancelled);
      if (cancelled != 0) return;
    }
    check(c, code);
    c.bytes = count_of(how);
    c.here = code == MPI_SUCCESS;
  }

  void ended(channel& c, request_table::owner const& of, int code) noexcept {
    if (COLLX_UNLIKELY(code != MPI_SUCCESS)) {
      c.trouble = status_of(code);  // and it stays open: whoever waits for it learns why
      return;
    }
    channel::posted& p = c.posts[of.part];
    p.open = false;
    holding_[of.channel / members_.size()] -= p.holds_call;
    if (p.synchronous) {
      // The newest message with this place in the window.
      std::uint64_t const message = c.sent - 1 - (c.sent - 1 - of.part) % channel::window;
      if (c.matched <= message) c.matched = message + 1;
    }
    while (c.handed != c.sent && !c.post(c.handed).open) ++c.handed;
  }

  MPI_Comm comm_;
  int first_tag_;
  rank_t rank_;
  std::size_t landing_bytes_;
  array<rank_t> members_;
  array<std::uint32_t> holding_;
  array<std::size_t> looked_for_;  // channels whose next message goes straight to its place
  std::size_t looked_for_count_ = 0;
  request_table table_;
  zeroed_pages memory_;  // channels, then a landing for each
  bool withdrawn_ = false;
};

}  // namespace collx::inline abi_1::transport::mpi_parts
