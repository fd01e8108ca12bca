// SPDX-License-Identifier: Apache-2.0
// Whom this process talks to over UCX: an endpoint for each peer, made when it is first needed. Besides data,
// peers tell each other of a failure and that they leave.
#pragma once

#include <sched.h>

#include <utility>

#include "collx/core/clock.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/shared_memory/process.hpp"
#include "collx/transport/ucx/worker.hpp"

namespace collx::inline abi_1::transport::ucx_parts {

// What a rank tells the others before they talk.
struct card {
  array<std::byte> address;  // of its worker
  // Which process it is, for those on its host that can see it; else 0. UCX does not always notice that one
  // has ended.
  std::int32_t process = 0;
  std::uint64_t started = 0;
};

class links {
 public:
  // `cards[r]`: of rank r.
  COLLX_COLD links(worker by, array<card> cards, rank_t rank)
      : cards_(static_cast<array<card>&&>(cards)),
        peers_(cards_.size()),
        rank_(rank),
        worker_(static_cast<worker&&>(by)) {
    ucp_am_handler_param_t ear{};
    ear.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                     UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    ear.id = word_id;
    ear.flags = UCP_AM_FLAG_WHOLE_MSG;
    ear.cb = hear;
    ear.arg = this;
    require(ucp_worker_set_am_recv_handler(worker_.get(), &ear), "ucp_worker_set_am_recv_handler",
            "use a UCX of version 1.11 or newer");
    // One is made at once: to find out whether it can be, and so that word of a failure gets round.
    rank_t const size = static_cast<rank_t>(peers_.size()), neighbour = (rank + 1) % size;
    if (size == 1) return;
    one& next = peers_[static_cast<std::size_t>(neighbour)];
    ucs_status_t const made = make(next, neighbour);
    // It may have done its part since all have met, and have left: with the memory that it shared.
    if (made == UCS_ERR_SHMEM_SEGMENT) next.trouble = status_of(made);
    else
      require(
          made, "ucp_ep_create",
          "UCX knows no way to the next rank that tells of lost peers: look at UCX_TLS; for shared memory "
          "alone set UCX_POSIX_ERROR_HANDLING=y");
  }
  links(links const&) = delete;

  [[nodiscard]] ucp_worker_h get() const noexcept { return worker_.get(); }
  [[nodiscard]] rank_t rank() const noexcept { return rank_; }

  // Null: nothing can be sent to this peer (any more); outlook() says why.
  [[nodiscard]] ucp_ep_h need(rank_t peer) noexcept {
    one& p = peers_[static_cast<std::size_t>(peer)];
    if (COLLX_LIKELY(p.ep != nullptr && p.trouble == status::ok)) return p.ep;
    return p.trouble == status::ok ? reach(p, peer) : nullptr;
  }

  // ok, or why waiting for a peer is pointless.
  [[nodiscard]] COLLX_COLD status outlook(rank_t peer) noexcept {
    one& p = peers_[static_cast<std::size_t>(peer)];
    card const& its = cards_[static_cast<std::size_t>(peer)];
    if (p.trouble == status::ok && its.process != 0 && p.watch.ended(its.process, its.started))
      p.trouble = status::peer_lost;
    // What it sent before it left or ended comes first, whichever of UCX's connections it takes.
    if (p.trouble != status::ok && !std::exchange(p.is_read_out, true)) read_what_is_here();
    return p.trouble;
  }

  void progress() noexcept { (void)ucp_worker_progress(worker_.get()); }

  // ---- words, at most one of each kind

  // Starts to tell all peers that have an endpoint of a failure. They tell theirs. The one to the next rank
  // may be the only one, and lead to a lost one: so the rank before is told as well, unless it is to blame:
  // then who says so has talked to it.
  COLLX_COLD void tell_alarm(mapped::first_failure const& what) noexcept {
    rank_t const size = static_cast<rank_t>(peers_.size()), before = (rank_ + size - 1) % size;
    if (before != rank_ && before != what.culprit) (void)need(before);
    alarm_ = {kind::alarm, rank_, static_cast<std::int32_t>(what.code), what.reporter, what.culprit};
    tell_all(alarm_);
  }
  // Whether UCX has let go of all words.
  [[nodiscard]] bool has_told() const noexcept { return untold_ == 0; }

  // True if a peer has told of a failure.
  [[nodiscard]] bool has_heard(mapped::first_failure& what) const noexcept {
    what = heard_;
    return heard_.code != status::ok;
  }

  // ---- the end

  // Waits for what was sent, says goodbye, and closes all endpoints; at the deadline what is left is dropped.
  COLLX_COLD void part(std::uint64_t deadline_us) noexcept {
    ucp_request_param_t plain{};
    finish(ucp_worker_flush_nbx(worker_.get(), &plain), deadline_us);
    say_goodbye(deadline_us);
    close_all(false, deadline_us);
  }

  // After a failure: stays until peers say goodbye, too. Who only sees that this rank is gone, before word of
  // the failure has got round, would take it for the lost one.
  COLLX_COLD void linger(std::uint64_t deadline_us) noexcept {
    say_goodbye(deadline_us);
    while (is_in_touch() && now_us() < deadline_us) yield();
  }

  // Closes all endpoints so that every message under way ends, with an error.
  COLLX_COLD void cut(std::uint64_t deadline_us) noexcept { close_all(true, deadline_us); }

 private:
  struct one {
    ucp_ep_h ep = nullptr;
    status trouble = status::ok;
    bool is_read_out = false;  // with trouble: nothing more of it lies unread
    shared_memory::process_watch watch;
  };
  enum class kind : std::uint32_t { alarm = 1, goodbye };
  struct word {
    kind what;
    std::int32_t from;  // who says it
    std::int32_t code, reporter, culprit;
  };
  static constexpr unsigned word_id = 0;

  [[nodiscard]] COLLX_COLD ucp_ep_h reach(one& p, rank_t peer) noexcept {
    if (ucs_status_t const made = make(p, peer); made != UCS_OK) p.trouble = status_of(made);
    return p.ep;
  }

  [[nodiscard]] COLLX_COLD ucs_status_t make(one& p, rank_t peer) noexcept {
    array<std::byte> const& address = cards_[static_cast<std::size_t>(peer)].address;
    ucp_ep_params_t wanted{};
    wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    wanted.address = reinterpret_cast<ucp_address_t const*>(address.data());
    wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    wanted.err_handler.cb = lose;
    wanted.err_handler.arg = &p;
    ucs_status_t const made = ucp_ep_create(worker_.get(), &wanted, &p.ep);
    if (made != UCS_OK) p.ep = nullptr;
    return made;
  }

  static void lose(void* arg, ucp_ep_h, ucs_status_t why) noexcept {
    static_cast<one*>(arg)->trouble = status_of(why);
  }

  // Who says nonsense is of another version, and not understood.
  static ucs_status_t hear(void* arg, void const* header, std::size_t bytes, void*, std::size_t,
                           ucp_am_recv_param_t const*) noexcept {
    links& self = *static_cast<links*>(arg);
    word said;
    if (bytes != sizeof said) return UCS_OK;
    std::memcpy(&said, header, sizeof said);
    auto const in_world = [&](std::int32_t r) {
      return r >= 0 && static_cast<std::size_t>(r) < self.peers_.size();
    };
    if (!in_world(said.from)) return UCS_OK;
    if (said.what == kind::goodbye)
      self.peers_[static_cast<std::size_t>(said.from)].trouble = status::peer_lost;
    bool const names_ranks = (in_world(said.reporter) || said.reporter == no_rank) &&
                             (in_world(said.culprit) || said.culprit == no_rank);
    bool const is_failure = said.code > 0 && said.code <= static_cast<int>(status::system_failure);
    if (said.what == kind::alarm && names_ranks && is_failure && self.heard_.code == status::ok)
      self.heard_ = {static_cast<status>(said.code), said.reporter, said.culprit};
    return UCS_OK;
  }

  COLLX_COLD void tell_all(word const& what) noexcept {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.user_data = this;
    how.cb.send = [](void* request, ucs_status_t, void* self) {
      --static_cast<links*>(self)->untold_;
      ucp_request_free(request);
    };
    for (one const& p : peers_)
      if (p.ep != nullptr && p.trouble == status::ok)
        untold_ += is_request(ucp_am_send_nbx(p.ep, word_id, &what, sizeof what, nullptr, 0, &how));
  }

  // UCX reads a little at a time, of one connection after the other, and says so only of whole messages: that
  // nothing is left is known when it has been silent for a while.
  COLLX_COLD void read_what_is_here() noexcept {
    std::uint64_t const deadline_us = now_us() + patience_us;
    for (int silent = 0; silent < looks_until_silent && now_us() < deadline_us;)
      silent = ucp_worker_progress(worker_.get()) != 0 ? 0 : silent + 1;
  }
  static constexpr int looks_until_silent = 256;
  static constexpr std::uint64_t patience_us = 200'000;  // others may send on and on

  COLLX_COLD void say_goodbye(std::uint64_t deadline_us) noexcept {
    goodbye_ = {kind::goodbye, rank_, 0, no_rank, no_rank};
    tell_all(goodbye_);
    while (!has_told() && now_us() < deadline_us) yield();
  }

  [[nodiscard]] bool is_in_touch() const noexcept {
    for (one const& p : peers_)
      if (p.ep != nullptr && p.trouble == status::ok) return true;
    return false;
  }

  COLLX_COLD void close_all(bool by_force, std::uint64_t deadline_us) noexcept {
    for (one& p : peers_) {
      if (p.ep == nullptr) continue;
      ucp_request_param_t how{};
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      how.flags = by_force || p.trouble != status::ok ? unsigned{UCP_EP_CLOSE_FLAG_FORCE} : 0u;
      finish(ucp_ep_close_nbx(std::exchange(p.ep, nullptr), &how), deadline_us);
      p.trouble = status::peer_lost;
    }
  }

  COLLX_COLD void finish(ucs_status_ptr_t answer, std::uint64_t deadline_us) noexcept {
    if (!is_request(answer)) return;
    while (ucp_request_check_status(answer) == UCS_INPROGRESS && now_us() < deadline_us) yield();
    ucp_request_free(answer);
  }

  void yield() noexcept {
    progress();
    sched_yield();
  }

  array<card> cards_;
  array<one> peers_;
  rank_t rank_;
  word alarm_{}, goodbye_{};
  mapped::first_failure heard_;
  std::uint32_t untold_ = 0;
  worker worker_;  // last: as it ends, it may report to what stands above
};

}  // namespace collx::inline abi_1::transport::ucx_parts
