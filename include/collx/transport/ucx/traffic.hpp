// SPDX-License-Identifier: Apache-2.0
// The messages of one communicator over UCX: what is kept of them, and the calls that post them.
#pragma once

#include "collx/transport/matched/ledger.hpp"
#include "collx/transport/ucx/links.hpp"

namespace collx::inline abi_1::transport::ucx_parts {

using matched::channel;

// Where messages go: through which links, and the number of the communicator.
struct wire {
  links* by;
  int number;
};

class traffic : public matched::ledger {
 public:
  COLLX_COLD traffic(wire const& by, array<rank_t> members, rank_t rank, int lanes,
                     std::size_t message_bytes_max)
      : ledger(static_cast<array<rank_t>&&>(members), rank, lanes, message_bytes_max),
        by_(by),
        pages_(channel_count() * tickets_per_channel * sizeof(ticket)) {}
  ~traffic() {
    if (is_idle()) return;
    // Who leaves after a failure may have sends that never end: their memory is never used again, and if one
    // ends after all nobody is told.
    for (std::size_t i = 0; i < channel_count() * tickets_per_channel; ++i) tickets()[i].owner = nullptr;
    pages_.abandon();
    abandon_memory();
  }

  [[nodiscard]] bool is_idle() const noexcept { return in_flight_ == 0; }

  // The next message from `peer` is wanted at `to`, or, if that is null, anywhere. Of a message that is too
  // long UCX writes no more than was asked for, and tells how long it was.
  void receive(int lane, rank_t peer, std::byte* to, std::size_t bytes) noexcept {
    std::size_t const index = index_of(lane, peer);
    channel& c = channels()[index];
    if (COLLX_UNLIKELY(withdrawn_)) return;
    c.to = to != nullptr ? to : landing(index);
    c.wanted_bytes = bytes;
    // Nobody would say that a peer is gone to whom there is no endpoint.
    (void)by_.by->need(world_rank(peer));
    ticket& mine = ticket_for(index, receive_part);
    ucp_request_param_t how = asking(mine);
    // Only a callback learns how long a message was that is here already.
    how.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    how.cb.recv = [](void* request, ucs_status_t code, ucp_tag_recv_info_t const* what, void* of) {
      if (traffic* const owner = static_cast<ticket*>(of)->owner)
        owner->has_received(*static_cast<ticket*>(of), code, what->length);
      ucp_request_free(request);
    };
    mine.open = true;
    ++in_flight_;
    ucs_status_ptr_t const answer =
        ucp_tag_recv_nbx(by_.by->get(), c.to, bytes, tag(world_rank(peer), lane), ~ucp_tag_t{0}, &how);
    if (COLLX_UNLIKELY(UCS_PTR_IS_ERR(answer))) has_received(mine, UCS_PTR_STATUS(answer), 0);
    else if (mine.open) mine.request = answer;
  }

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes) noexcept {
    std::size_t const index = index_of(lane, peer);
    outgoing const out = write_down(index, payload, bytes);
    if (COLLX_UNLIKELY(withdrawn_)) return;
    ucp_ep_h const to = by_.by->need(world_rank(peer));
    if (COLLX_UNLIKELY(to == nullptr)) return;  // it stays open: whoever waits for it learns why
    ticket& mine = ticket_for(index, out.part);
    ucp_request_param_t how = asking(mine);
    how.cb.send = [](void* request, ucs_status_t code, void* of) {
      if (traffic* const owner = static_cast<ticket*>(of)->owner)
        owner->has_ended(*static_cast<ticket*>(of), code);
      ucp_request_free(request);
    };
    ucs_status_ptr_t const answer = (out.synchronous ? ucp_tag_send_sync_nbx : ucp_tag_send_nbx)(
        to, out.from, bytes, tag(world_rank(rank()), lane), &how);
    if (is_request(answer)) {
      ++in_flight_;
      return;
    }
    ended(index, out.part, UCS_PTR_STATUS(answer));
  }

  void progress() noexcept { by_.by->progress(); }

  // ok, or why waiting for a peer is pointless.
  [[nodiscard]] status trouble_with(rank_t peer) noexcept {
    // Asked first: it reads what the peer sent before a message to it failed.
    status const of_peer = by_.by->outlook(world_rank(peer));
    status const of_lanes = trouble_on_lanes(peer);
    return of_lanes != status::ok ? of_lanes : of_peer;
  }

  // After a failure: nothing is posted any more, and what UCX still writes to is taken from it.
  COLLX_COLD void withdraw() noexcept {
    if (withdrawn_) return;
    withdrawn_ = true;
    for_each_receive([&](ticket const& each) { ucp_request_cancel(by_.by->get(), each.request); });
  }
  [[nodiscard]] COLLX_COLD bool has_receives() noexcept {
    bool any = false;
    for_each_receive([&](ticket const&) { any = true; });
    return any;
  }

  traffic* next = nullptr;

 private:
  // What UCX hands back with a request that has ended.
  struct ticket {
    traffic* owner;
    std::uint32_t index;  // of the channel
    std::uint16_t part;   // of its window, or receive_part
    bool open;            // a receive that has not ended
    void* request;        // of such a one
  };
  static constexpr std::uint32_t receive_part = channel::window;
  static constexpr std::size_t tickets_per_channel = channel::window + 1;

  [[nodiscard]] ticket* tickets() noexcept { return reinterpret_cast<ticket*>(pages_.data()); }
  [[nodiscard]] ticket& ticket_for(std::size_t index, std::uint32_t part) noexcept {
    ticket& mine = tickets()[index * tickets_per_channel + part];
    mine = {this, static_cast<std::uint32_t>(index), static_cast<std::uint16_t>(part), false, nullptr};
    return mine;
  }
  template <class Each>
  void for_each_receive(Each const& each) noexcept {
    for (std::size_t i = receive_part; i < channel_count() * tickets_per_channel; i += tickets_per_channel)
      if (tickets()[i].open) each(tickets()[i]);
  }

  // Sender, lane and communicator: messages with one tag come in the order they were sent.
  [[nodiscard]] ucp_tag_t tag(rank_t world_sender, int lane) const noexcept {
    return static_cast<ucp_tag_t>(by_.number) << 40 | static_cast<ucp_tag_t>(lane) << 32 |
           static_cast<ucp_tag_t>(world_sender);
  }

  [[nodiscard]] static ucp_request_param_t asking(ticket& mine) noexcept {
    ucp_request_param_t how;
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.user_data = &mine;
    return how;
  }

  void has_received(ticket& of, ucs_status_t code, std::size_t bytes) noexcept {
    of.open = false;
    --in_flight_;
    received(channels()[of.index], code, bytes);
  }
  void received(channel& c, ucs_status_t code, std::size_t bytes) noexcept {
    if (COLLX_UNLIKELY(code == UCS_ERR_CANCELED)) return;
    bool const truncated = code == UCS_ERR_MESSAGE_TRUNCATED;
    if (COLLX_UNLIKELY(code != UCS_OK && !truncated)) {
      c.trouble = status_of(code);
      return;
    }
    c.bytes = bytes;
    c.here = true;
  }

  void has_ended(ticket const& of, ucs_status_t code) noexcept {
    --in_flight_;
    ended(of.index, of.part, code);
  }
  void ended(std::size_t index, std::uint32_t part, ucs_status_t code) noexcept {
    if (COLLX_LIKELY(code == UCS_OK)) strike_out(index, part);
    else channels()[index].trouble = status_of(code);  // and it stays open: whoever waits for it learns why
  }

  wire by_;
  zeroed_pages pages_;  // tickets
  std::size_t in_flight_ = 0;
  bool withdrawn_ = false;
};

}  // namespace collx::inline abi_1::transport::ucx_parts
