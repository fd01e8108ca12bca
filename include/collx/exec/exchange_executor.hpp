// SPDX-License-Identifier: Apache-2.0
// HOW A LIST OF MESSAGES RUNS: sends and receives that are known at run time only, all at once. There is
// no schedule and so no order between peers: whatever can move does, so no order in which ranks list
// their messages can deadlock. Never allocates, never throws, never blocks.
#pragma once

#include <cstring>

#include "collx/device/stream.hpp"
#include "collx/exec/resumable.hpp"
#include "collx/exec/workspace.hpp"

namespace collx::inline abi_1::exec {

// `List` offers chains() and, for message i, operator[]; the list behind it stays as it is until the
// executor is done.
//
// A message travels in pieces of a size that both its ranks know. The last one is shorter, if need be empty:
// so a receiver that expects more or fewer bytes notices at the piece where the messages part, and never
// takes a piece of one message for the next.
template <class List, class Endpoint>
class exchange_executor : public resumable<Endpoint> {
  using base = resumable<Endpoint>;

 public:
  // `work` has chain_states reserved, unless there is one message only.
  exchange_executor(Endpoint& endpoint, int lane, workspace& work, List const& list) noexcept
      : base(endpoint, lane),
        list_(list),
        many_(work.chains.data()) {
    endpoint_.begin(lane, nullptr);
    if constexpr (requires { endpoint_.about(lane, ""); }) endpoint_.about(lane, "");
    message_chains const all = list_.chains();
    step_count_ = all.count;
    for (std::int32_t i = 0; i < all.head_count; ++i) {
      message const first = list_[all.heads[i]];
      if (first.peer != endpoint_.rank()) state(active_++) = begun(first, all.heads[i]);
      else (first.outgoing ? own_outgoing_ : own_incoming_) = all.heads[i];
    }
    if (many_ == nullptr) bytes_ = only_.what.bytes;  // for who waits until it is read
  }

  // Does everything that can be done without waiting. pending: call again; anything else is final.
  [[nodiscard]] status advance() noexcept {
    room_held_by_ = no_rank;
    if (status const outcome = copy_own(); outcome != status::ok) return outcome;
    for (std::int32_t i = 0; i < active_;) {
      chain_state& now = state(i);
      status const outcome = now.what.outgoing ? hand_over(now) : take(now);
      if (outcome == status::pending) {
        ++i;
        continue;
      }
      if (outcome != status::ok) return outcome;
      ++step_;
      std::int32_t const next = list_.chains().next[now.index];
      now = next != no_message ? begun(list_[next], next) : state(--active_);
    }
    mark();
    if (active_ == 0) return base::drained(lent_) ? status::ok : status::pending;
    waits_for(state(0));
    // Its chain may have ended.
    if (room_held_by_ != no_rank) waits_for_ = room_held_by_;
    return status::pending;
  }

 private:
  using base::bytes_, base::endpoint_, base::fragment_, base::lane_, base::peer_bytes_, base::step_;
  using base::step_count_, base::waits_for_, base::waits_for_others_, base::yields_;

  [[nodiscard]] chain_state& state(std::int32_t i) noexcept { return many_ == nullptr ? only_ : many_[i]; }

  [[nodiscard]] chain_state begun(message const& first, std::int32_t index) noexcept {
    std::size_t piece_bytes = endpoint_.staging_bytes() / pieces_staged / line_bytes * line_bytes;
    // One fits the place of its peer's own, too. A shorter message than any place is one piece whatever.
    if constexpr (requires { endpoint_.apart_bytes(first.peer); })
      if (first.bytes >= Endpoint::inline_bytes) {
        std::size_t const apart_bytes = endpoint_.apart_bytes(first.peer);
        if (apart_bytes != 0 && apart_bytes < piece_bytes) piece_bytes = apart_bytes;
      }
    return {first, index, false, 0, piece_bytes};
  }

  // Messages of this rank to itself: the k-th one out is the k-th one in.
  status copy_own() noexcept {
    while (own_outgoing_ != no_message || own_incoming_ != no_message) {
      message const from = own_outgoing_ == no_message ? message{} : list_[own_outgoing_];
      message const to = own_incoming_ == no_message ? message{} : list_[own_incoming_];
      bool const unpaired = own_outgoing_ == no_message || own_incoming_ == no_message;
      if (unpaired || from.bytes != to.bytes) return disagree(endpoint_.rank(), to.bytes, from.bytes);
      if (to.bytes != 0 && from.data != to.data) std::memmove(to.data, from.data, to.bytes);
      own_outgoing_ = list_.chains().next[own_outgoing_];
      own_incoming_ = list_.chains().next[own_incoming_];
      step_ += 2;
    }
    return status::ok;
  }

  [[nodiscard]] std::size_t piece_of(chain_state const& chain) const noexcept {
    std::size_t const rest = chain.what.bytes - chain.done_bytes;
    return rest < chain.piece_bytes ? rest : chain.piece_bytes;
  }

  // Returns whether it was the last piece of its message.
  bool piece_done(chain_state& chain, std::size_t bytes) noexcept {
    chain.done_bytes += bytes;
    ++fragment_;
    return bytes < chain.piece_bytes;
  }

  status hand_over(chain_state& chain) noexcept {
    do {
      rank_t const peer = chain.what.peer;
      std::size_t const bytes = piece_of(chain);
      if (!endpoint_.can_send(lane_, peer)) return status::pending;
      std::byte const* const from = chain.what.data + chain.done_bytes;
      bool const copied_at_once = bytes <= Endpoint::inline_bytes;
      if (copied_at_once || (bytes >= lendable_from<Endpoint> && is_reachable(peer, from, bytes))) {
        lend(peer, from, bytes);
      } else if (std::byte* const staged = stage(bytes); staged != nullptr) {
        device::copy_cached(staged, from, bytes);
        endpoint_.send(lane_, peer, staged, bytes, transport::handover::staged);
        if (unmarked_bytes_ >= chain.piece_bytes) mark();
      } else if (!hand_over_apart(peer, from, bytes)) {
        return status::pending;
      }
      if (piece_done(chain, bytes)) return status::ok;
    } while (!yields_);
    return status::pending;
  }

  void lend(rank_t peer, std::byte const* from, std::size_t bytes) noexcept {
    endpoint_.send(lane_, peer, from, bytes, transport::handover::in_place);
    lent_ = lent_ || bytes > Endpoint::inline_bytes;
  }

  [[nodiscard]] bool is_reachable(rank_t peer, std::byte const* from, std::size_t bytes) noexcept {
    if constexpr (requires { endpoint_.reachable_by(peer, from, bytes); })
      return endpoint_.reachable_by(peer, from, bytes);
    else return endpoint_.reachable(from, bytes);
  }

  // Where there is no room in staging: others hold it, who may take what they are sent only after this peer
  // has had what is for it. From where it lies, or, one piece at a time, from a place of the peer's own. The
  // call ends when that is read, as it does for what is lent: so the place is free when the next begins.
  [[nodiscard]] COLLX_NEVER_INLINE bool hand_over_apart(rank_t peer, std::byte const* from,
                                                        std::size_t bytes) noexcept {
    if (is_reachable(peer, from, bytes)) {
      lend(peer, from, bytes);
      return true;
    }
    if constexpr (requires { endpoint_.apart_bytes(peer); }) {
      if (endpoint_.apart_bytes(peer) == 0) return false;
      // Who has more to read is not kept back, and is waited for, not who holds staging.
      if (!endpoint_.has_read_all(lane_, peer)) {
        room_held_by_ = peer;
      } else {
        std::byte* const place = endpoint_.apart(lane_, peer);
        device::copy_cached(place, from, bytes);
        lend(peer, place, bytes);
        return true;
      }
    }
    return false;
  }

  status take(chain_state& chain) noexcept {
    do {
      rank_t const peer = chain.what.peer;
      std::size_t const bytes = piece_of(chain);
      std::byte* const to = bytes == 0 ? nullptr : chain.what.data + chain.done_bytes;
      if (!chain.expected) endpoint_.expect(lane_, peer, to, bytes);
      chain.expected = true;
      transport::arrival here;
      if (!endpoint_.arrived(lane_, peer, here)) return status::pending;
      // What must be fetched is a collective's, whose ranks call in another order: no message of a list is
      // lent where its receiver cannot read it. So is a block that is lent whole.
      bool const is_no_message = here.data == nullptr && bytes != 0;
      std::size_t const sent_bytes = length_of(peer, here);
      if (sent_bytes != bytes || COLLX_UNLIKELY(is_no_message))
        return disagree(peer, chain.what.bytes, chain.done_bytes + sent_bytes);
      if (here.data != to) device::copy(to, here.data, bytes, chain.what.bytes > device::stream_bytes_min());
      endpoint_.consume(lane_, peer);
      chain.expected = false;
      if (piece_done(chain, bytes)) return status::ok;
    } while (!yields_);
    return status::pending;
  }

  // Of what has arrived; of a block that is lent whole, all of it: its sender would take the rest for read.
  [[nodiscard]] std::size_t length_of(rank_t peer, transport::arrival const& here) noexcept {
    if constexpr (requires { Endpoint::lends_blocks; })
      if (here.bytes >= lend_bytes_min)
        if (std::size_t const block = endpoint_.lent_block_bytes(lane_, peer); block != 0) return block;
    return here.bytes;
  }

  // Staging is freed in the order in which it was marked, once its receivers are done, each in its own time.
  [[nodiscard]] std::byte* stage(std::size_t bytes) noexcept {
    std::byte* staged = endpoint_.stage(lane_, bytes);
    if (staged == nullptr && unmarked_bytes_ != 0) {
      mark();
      staged = endpoint_.stage(lane_, bytes);
    }
    if (staged != nullptr) unmarked_bytes_ += bytes;
    else room_held_by_ = endpoint_.staging_held_by(lane_);
    return staged;
  }

  void mark() noexcept {
    if (unmarked_bytes_ == 0) return;
    endpoint_.end_fragment(lane_);
    unmarked_bytes_ = 0;
  }

  // Names one of the chains that wait, or (advance()) who holds the room that some wait for. The others move
  // all the same, so its loss is always noticed: by this rank at once, or when the chain named now has ended.
  void waits_for(chain_state const& chain) noexcept {
    waits_for_ = chain.what.peer;
    waits_for_others_ = true;
    bytes_ = chain.what.bytes;
  }

  status disagree(rank_t peer, std::size_t expected_bytes, std::size_t sent_bytes) noexcept {
    waits_for_ = peer;
    bytes_ = expected_bytes;
    peer_bytes_ = sent_bytes;
    return status::mismatch;
  }

  static constexpr std::size_t line_bytes = 64;
  // So many pieces fit into staging: some are read while others are written.
  static constexpr std::size_t pieces_staged = 8;

  List list_;
  chain_state* many_;
  chain_state only_{};
  std::size_t unmarked_bytes_ = 0;  // staged since the last mark
  std::int32_t active_ = 0;
  rank_t room_held_by_ = no_rank;  // that a chain has not found
  std::int32_t own_outgoing_ = no_message, own_incoming_ = no_message;
  bool lent_ = false;  // peers may still read from the user's memory
};

}  // namespace collx::inline abi_1::exec
