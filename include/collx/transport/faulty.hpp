// SPDX-License-Identifier: Apache-2.0
// A decorator that makes any transport misbehave within its contract, from a seed: messages are
// seen late and, between different peers and lanes, out of order; credits come late; a rank stops
// for good at a chosen send, or with a chosen message read and not acknowledged. For tests: a seed
// replays what it did.
#pragma once

#include <signal.h>
#include <unistd.h>

#include "collx/core/array.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::transport {

// What goes wrong on one rank. The default does nothing.
struct fault_plan {
  std::uint64_t seed = 0;
  std::uint32_t delay_polls_max = 0;   // a message is seen up to so many looks late
  std::uint32_t refuse_one_in = 0;  // one in so many credits is shown only when asked for again; at least 2
  std::uint64_t stop_at_send = 0;      // from its n-th send on this rank does nothing any more; 0: never
  std::uint64_t stop_at_consume = 0;   // the same from the n-th message on that it is done with
  bool kill_process = false;           // it ends by SIGKILL then, instead of only going quiet
};

template <class Endpoint>
class faulty_endpoint : public Endpoint {
 public:
  template <class... Arguments>
  explicit faulty_endpoint(Arguments&&... arguments)
      : Endpoint(static_cast<Arguments&&>(arguments)...),
        waits_(static_cast<std::size_t>(Endpoint::lane_count) * static_cast<std::size_t>(this->size())),
        granted_(waits_.size()),
        ended_(static_cast<std::size_t>(this->size())) {
    for (std::uint32_t& wait : waits_) wait = not_drawn;
  }

  // From now on; a second plan replaces the first.
  void inject(fault_plan const& plan) noexcept {
    plan_ = plan;
    random_ = replayable_random(plan.seed);
  }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  // How often a message or a credit that was there has not been shown.
  [[nodiscard]] std::uint64_t withheld() const noexcept { return withheld_; }

  [[nodiscard]] bool arrived(int lane, rank_t peer, arrival& what) noexcept {
    if (stopped_ || !Endpoint::arrived(lane, peer, what)) return false;
    if (ended_[static_cast<std::size_t>(peer)]) return true;
    std::uint32_t& wait = waits_[index(lane, peer)];
    if (wait == not_drawn) wait = plan_.delay_polls_max == 0 ? 0 : random_.below(plan_.delay_polls_max + 1);
    if (wait == 0) return true;
    --wait;
    ++withheld_;
    return false;
  }

  void consume(int lane, rank_t peer) noexcept {
    waits_[index(lane, peer)] = not_drawn;
    if (plan_.stop_at_consume != 0 && ++consumed_ >= plan_.stop_at_consume) stop();
    if (!stopped_) Endpoint::consume(lane, peer);
  }

  [[nodiscard]] bool can_send(int lane, rank_t peer) noexcept {
    if (stopped_) return false;
    // A credit once shown stays until it is used: a step that needs many asks for all of them again.
    bool& granted = granted_[index(lane, peer)];
    bool const is_shown = granted || ended_[static_cast<std::size_t>(peer)];
    if (!is_shown && plan_.refuse_one_in != 0 && random_.below(plan_.refuse_one_in) == 0) {
      ++withheld_;
      return false;
    }
    granted = true;
    return Endpoint::can_send(lane, peer);
  }

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover how) noexcept {
    granted_[index(lane, peer)] = false;
    if (plan_.stop_at_send != 0 && ++sends_ >= plan_.stop_at_send) stop();
    if (!stopped_) Endpoint::send(lane, peer, payload, bytes, how);
  }

  // What comes late comes by being looked for.
  [[nodiscard]] bool prepare_to_sleep() noexcept
    requires requires(Endpoint& e) { e.prepare_to_sleep(); }
  {
    return plan_.delay_polls_max == 0 && plan_.refuse_one_in == 0 && Endpoint::prepare_to_sleep();
  }

  // A quiet rank's own call fails as well, so that its thread can end.
  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    if (stopped_) return status::peer_lost;
    status const outlook = Endpoint::interrupted(peer);
    // Who has done its part may end. What it sent is there by then, and who is told of its end looks once
    // more, only once: from now on nothing of it is late.
    if (outlook == status::peer_lost && peer >= 0 && peer < this->size())
      ended_[static_cast<std::size_t>(peer)] = true;
    return outlook;
  }

  // One that has stopped never finds out that it is done.
  [[nodiscard]] rank_t unread_by(int lane) noexcept {
    return stopped_ ? this->rank() : Endpoint::unread_by(lane);
  }

 private:
  // Not yet decided for the next message; 0 is "let it through".
  static constexpr std::uint32_t not_drawn = 0xffffffff;

  [[nodiscard]] std::size_t index(int lane, rank_t peer) const noexcept {
    return static_cast<std::size_t>(lane) * static_cast<std::size_t>(this->size()) +
           static_cast<std::size_t>(peer);
  }

  void stop() noexcept {
    if (plan_.kill_process) ::kill(getpid(), SIGKILL);
    stopped_ = true;
  }

  fault_plan plan_{};
  replayable_random random_{0};
  array<std::uint32_t> waits_;
  array<bool> granted_;
  array<bool> ended_;  // peers that are known to be gone
  std::uint64_t sends_ = 0, consumed_ = 0, withheld_ = 0;
  bool stopped_ = false;
};

// faulty<shm>, faulty<threads>, faulty<tcp>, faulty<mailbox>, ...: use as the transport, then
// comm.engine().endpoint().inject({...}).
template <class Transport>
struct faulty {
  static constexpr char const* name = "faulty";
  using world = typename Transport::world;
  using endpoint = faulty_endpoint<typename Transport::endpoint>;
  using membership = typename Transport::template membership_of<faulty>;
};

}  // namespace collx::inline abi_1::transport
