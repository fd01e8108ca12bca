// SPDX-License-Identifier: Apache-2.0
// What the engine knows of an executor: where it stands, whom it waits for, and whether that wait is over.
// What it does next is its own affair; advance() is called through a pointer (request.hpp).
#pragma once

#include "collx/exec/lending.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

// Where an executor stands: what a failure report or a watchdog prints.
struct cursor {
  std::size_t fragment = 0;
  std::int32_t step = 0;
  std::int32_t step_count = 0;
  rank_t waits_for = no_rank;
  std::size_t bytes = 0;       // of the message it waits for or works on
  std::size_t peer_bytes = 0;  // of the message that did not fit, after status::mismatch
  // Of the request, where several are looked at: two that stand at the same step are not one that stands
  // still.
  std::uint64_t sequence = 0;

  // Nothing has moved since, as far as can be told from here.
  [[nodiscard]] bool same_wait(cursor const& other) const noexcept {
    return same_place(other) && waits_for == other.waits_for;
  }
  [[nodiscard]] bool same_place(cursor const& other) const noexcept {
    return fragment == other.fragment && step == other.step && sequence == other.sequence;
  }
};

// How far a call came before it got an executor: the first `peers` of step `step` are done. `lent`: peers may
// still read what it sent from where that lies. `announced`: the endpoint knows where the step's messages are
// wanted, those of its other peers as well.
struct stopped_at {
  static constexpr std::int32_t at_the_end = -1;
  std::int32_t step = 0;
  std::int32_t peers = 0;
  bool lent = false;
  bool announced = false;
};

// Whether a call on such an endpoint ends only when the system has everything it sent. Where bytes move by
// themselves, or the caller has to move them between calls anyway, it ends when its buffers are free.
template <class Endpoint>
inline constexpr bool finishes_sends = [] {
  if constexpr (requires { Endpoint::finishes_sends; }) return Endpoint::finishes_sends;
  else return false;
}();

template <class Endpoint>
class resumable {
 public:
  resumable(Endpoint& endpoint, int lane) noexcept : endpoint_(endpoint), lane_(lane) {}

  // Whether advance() would find what the last one found. Cheap enough to spin on.
  [[nodiscard]] bool still_waits() noexcept {
    if (waits_for_ == no_rank || waits_for_others_) return false;
    transport::arrival unused;
    return waits_for_message_ ? !endpoint_.arrived(lane_, waits_for_, unused)
                              : !endpoint_.can_send(lane_, waits_for_);
  }

  // How often advance() looks for a message before it returns pending: once, unless told otherwise.
  void looks(std::uint32_t count) noexcept { looks_ = count; }
  // Goes on where a short call stopped, in the first fragment.
  void go_on_from(stopped_at const& at) noexcept {
    step_ = at.step;
    k_ = at.peers;
  }
  // Whether advance() returns after every fragment, so that others get their turn.
  void yields(bool value) noexcept { yields_ = value; }
  // Whether other requests were in flight when this call began.
  void in_company(bool value) noexcept { in_company_ = value; }

  [[nodiscard]] cursor where() const noexcept {
    return {fragment_, step_, step_count_, waits_for_, bytes_, peer_bytes_};
  }

 protected:
  // Whether all receivers have read what was lent to them; `lent`: whether anything was. If not, one that has
  // not is waited for: never one that has, for that may be done and gone.
  [[nodiscard]] bool drained(bool lent) noexcept {
    if (!finishes_sends<Endpoint> && !lent) return true;
    waits_for_ = endpoint_.unread_by(lane_);
    waits_for_others_ = true;
    return waits_for_ == no_rank;
  }

  Endpoint& endpoint_;
  int lane_;
  std::uint32_t looks_ = 1;
  std::int32_t step_count_ = 0;
  std::int32_t step_ = 0;
  std::int32_t k_ = 0;  // peers of the current step that are done
  bool waits_for_message_ = false;
  bool waits_for_others_ = false;  // for other peers too: only advance() finds out whether one has moved
  bool yields_ = false;
  bool in_company_ = false;
  rank_t waits_for_ = no_rank;
  std::size_t fragment_ = 0;
  std::size_t bytes_ = 0;
  std::size_t peer_bytes_ = 0;
};

}  // namespace collx::inline abi_1::exec
