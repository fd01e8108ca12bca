// SPDX-License-Identifier: Apache-2.0
// HOW BYTES MOVE: what the executor asks of a transport's endpoint. Mapped transports (peers' memory
// can be loaded) and message transports (sends and receives are posted) answer the same questions.
#pragma once

#include <concepts>
#include <cstddef>

#include "collx/core/status.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport {

// A message that has arrived: readable in place until it is consumed. Without data, if it lies where only
// fetch() can read it.
struct arrival {
  std::byte const* data = nullptr;
  std::size_t bytes = 0;
};

// How a payload is handed over.
enum class handover : std::uint8_t {
  staged,   // lies in memory from stage(); the sender never touches it again
  in_place, // lies in the user's buffer, which stays unchanged while unread_by() names anybody;
            // requires reachable() or fetchable()
  pushed,   // already stored at the receiver's target, whose own address is passed
  posted,   // the same in private memory of the receiver, whose address there is passed
  greeting, // no payload: says where the sender's output begins, for who stores there
};

// Who has the system copy private payloads of a schedule that are copied once.
enum class copying : std::uint8_t {
  by_receivers,
  by_both,  // the sender stores a part of what it sends itself, while the receiver copies the rest
};

// An endpoint is one rank's end of one communicator. One thread uses it at a time. Messages between
// two ranks on one lane arrive in the order they were sent; lanes are independent of each other.
//
//   is_mapped                  peers' memory can be loaded: expect() is not called
//   fetches                    messages may arrive without data; an endpoint without it need not have
//                              fetchable, lends, stages_slowly, stage_copy, fetch, landing,
//                              fetched_ranks_max, offer, post_target, post
//   lends_blocks               optional: a message may be the begin of a block that is lent whole:
//                              lends_block(lane, n), and lent_block_bytes(lane, peer) of one that has arrived
//   finishes_sends             optional: unread_by() names those too who have not been sent everything yet,
//                              and a call ends only when it names nobody
//   lends_at_once              optional, besides: it costs no wait to send a payload from where it lies
//   holds_up_early             optional: a message for a communicator that its receiver has not made yet is
//                              in the way of others: nobody goes on from a split before all have made it
//   inline_bytes               payloads of up to so many bytes are copied by send() itself
//   timed_copy_bytes_min       of those that fetch: stage_copy() times copies of longer payloads
//   has_near_peers             optional: those of this host are reached by memory, and others by messages
//   short_bytes()              optional: the same in lane 0, at least as much; what short calls send
//   depth()                    messages to one peer on one lane that may be in flight at least
//   begin(lane, output, n)     a collective starts on this lane; its output buffer of n bytes, or null and 0
//   expect(lane, peer, p, n)   the next message from peer has n bytes and is wanted at p, or
//                              anywhere if p is null. At most once per message, before arrived().
//   arrived(lane, peer, a)     true if the next message is here; then a says where. Repeatable.
//   consume(lane, peer)        done reading it: the sender may reuse its memory
//   can_send(lane, peer)       whether a credit for one more message is there
//   reachable(p, n)            whether peers can take a payload from there without a copy
//   fetchable(p, n, worth)     whether peers can fetch a payload from there that they cannot reach, and it is
//                              worth it for so many bytes, if staging is slow or the system's copy quick
//   lends(copying)             whether that is so: then such payloads are lent, or posted, and not staged
//   stages_slowly()            whether so slowly that this goes for all payloads. Of both the answer may
//                              change from question to question
//   stage_copy(lane, to, p, n, copying)  copies a payload to memory from stage()
//   fetch(lane, peer, at, p, n)  copies n bytes, from byte `at` on, of the message that is here without
//                              data. Not ok: peer_lost, aborted, or system_failure (it cannot be read)
//   landing(k, count)          memory for landing_room(count) bytes of the k-th of `count` messages that are
//                              read together; used up at once
//   fetched_ranks_max          no messages arrive without data where there are more ranks than that
//   offer(lane)                peers that cannot reach the output of this collective may post to it; requires
//                              fetchable()
//   post_target(lane, peer)    where the peer's output of the current collective begins in its private
//                              memory, if it offers that, or 0
//   post(peer, to, p, n)       copies n bytes to private memory of the peer. Not ok: as of fetch
//   stage(lane, n)             memory for one payload, or null for now
//   staging_held_by(lane)      after stage() gave null: a rank that has yet to read what lies there
//   send(lane, peer, p, n, h)  requires can_send
//   push_target(lane, peer)    where the peer's output of the current collective begins in memory
//                              that this rank can store to, or null
//   push_room(lane, peer)      of mapped ones: how many bytes it has there, or at post_target()
//   end_fragment(lane)         everything sent so far may be reclaimed once consumed
//   unread_by(lane)            a rank that may still read in-place payloads of this one, or no_rank
//   staging_bytes()            what vectors are cut by: half of it per fragment. stage() has at least so much
//   scratch(lane)              memory for place::scratch, staging_bytes() / 2 of it
//   apart(lane, peer)          optional: a place in scratch for what goes to that peer alone, while others
//                              have all of staging, which only calls of theirs free
//   has_read_all(lane, peer)   with that: whether the place is free
//   apart_bytes(peer)          with that: its room, at least inline_bytes, the same on both ranks, or 0: no
//                              place is needed
//   reachable_by(peer, p, n)   optional: as reachable(), by this one
//   progress()                 moves bytes along; called while waiting
//   reclaim(at_most_us)        optional: after a failure, and the alarm about it. When it returns nobody
//                              reads or writes buffers of any call that was made on this endpoint, but those
//                              in flight; or so much time has passed
//   suspect(peer)              optional: the rank of the world to blame when a wait for that peer is too long
//   be_patient(us)             optional: waits may take so long from now on; nobody is given up for lost
//                              sooner because of his silence
//   interrupted(peer)          ok, or why waiting for that peer is pointless. Slow; called rarely.
// One whose ranks can wake each other is an exec::sleeping_place besides.
template <class E>
concept endpoint = requires(E& e, int lane, rank_t peer, std::byte* to, std::byte const* from,
                            std::size_t bytes, arrival& what, handover how) {
  { e.rank() } noexcept -> std::same_as<rank_t>;
  { e.size() } noexcept -> std::same_as<rank_t>;
  { E::lane_count } -> std::convertible_to<int>;
  { E::is_mapped } -> std::convertible_to<bool>;
  { E::fetches } -> std::convertible_to<bool>;
  { E::inline_bytes } -> std::convertible_to<std::size_t>;
  { e.staging_bytes() } noexcept -> std::same_as<std::size_t>;
  { e.depth() } noexcept -> std::same_as<std::uint64_t>;
  { e.begin(lane, to, bytes) } noexcept;
  { e.expect(lane, peer, to, bytes) } noexcept;
  { e.arrived(lane, peer, what) } noexcept -> std::same_as<bool>;
  { e.consume(lane, peer) } noexcept;
  { e.can_send(lane, peer) } noexcept -> std::same_as<bool>;
  { e.reachable(from, bytes) } noexcept -> std::same_as<bool>;
  { e.stage(lane, bytes) } noexcept -> std::same_as<std::byte*>;
  { e.staging_held_by(lane) } noexcept -> std::same_as<rank_t>;
  { e.send(lane, peer, from, bytes, how) } noexcept;
  { e.push_target(lane, peer) } noexcept -> std::same_as<std::byte*>;
  { e.end_fragment(lane) } noexcept;
  { e.unread_by(lane) } noexcept -> std::same_as<rank_t>;
  { e.scratch(lane) } noexcept -> std::same_as<std::byte*>;
  { e.progress() } noexcept;
  { e.interrupted(peer) } noexcept -> std::same_as<status>;
};

}  // namespace collx::inline abi_1::transport
