// SPDX-License-Identifier: Apache-2.0
// The messages of one communicator over MPI: what is kept of them, and the calls that post them. The rules of
// the protocol are here and in matched/ledger.hpp: docs/transports.md says why.
#pragma once

#include "collx/transport/matched/ledger.hpp"
#include "collx/transport/mpi/request_table.hpp"

namespace collx::inline abi_1::transport::mpi_parts {

using matched::channel;

// Where messages go: those of lane l have the tag first_tag + l.
struct wire {
  MPI_Comm comm;
  int first_tag;
};

class traffic : public matched::ledger {
 public:
  COLLX_COLD traffic(wire const& by, array<rank_t> members, rank_t rank, int lanes,
                     std::size_t message_bytes_max)
      : ledger(static_cast<array<rank_t>&&>(members), rank, lanes, message_bytes_max),
        by_(by),
        looked_for_(channel_count()),
        table_(channel_count() * (channel::window + 1)) {}
  ~traffic() {
    // Who leaves after a failure may have sends that never end: their memory is never used again.
    if (!is_idle()) abandon_memory();
  }

  [[nodiscard]] bool is_idle() const noexcept { return table_.empty(); }

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
      return MPI_Irecv(c.to, static_cast<int>(landing_bytes()), MPI_BYTE, world_rank(peer),
                       by_.first_tag + lane, by_.comm, request);
    };
    check(c, table_.add({static_cast<std::uint32_t>(index), request_table::receive}, post));
  }

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes) noexcept {
    std::size_t const index = index_of(lane, peer);
    outgoing const out = write_down(index, payload, bytes);
    if (COLLX_UNLIKELY(withdrawn_)) return;
    auto const post = [&](MPI_Request* request) noexcept {
      return (out.synchronous ? MPI_Issend : MPI_Isend)(out.from, static_cast<int>(bytes), MPI_BYTE,
                                                        world_rank(peer), by_.first_tag + lane, by_.comm,
                                                        request);
    };
    check(out.c, table_.add({static_cast<std::uint32_t>(index), out.part}, post));
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

  // ok, or why waiting for a peer is pointless.
  [[nodiscard]] status trouble_with(rank_t peer) noexcept { return trouble_on_lanes(peer); }

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

  void check(channel& c, int code) const noexcept {
    if (COLLX_UNLIKELY(code != MPI_SUCCESS)) c.trouble = status_of(code);
  }

  // Whether the next message of a channel is here, or will never be. It is received to its place if it fits.
  [[nodiscard]] bool found(std::size_t index) noexcept {
    channel& c = channels()[index];
    int const lane = lane_of(index);
    rank_t const peer = peer_of(index);
    int came = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status what;
    int const code = MPI_Improbe(world_rank(peer), by_.first_tag + lane, by_.comm, &came, &message, &what);
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
    strike_out(of.channel, of.part);
  }

  wire by_;
  array<std::size_t> looked_for_;  // channels whose next message goes straight to its place
  std::size_t looked_for_count_ = 0;
  request_table table_;
  bool withdrawn_ = false;
};

}  // namespace collx::inline abi_1::transport::mpi_parts
