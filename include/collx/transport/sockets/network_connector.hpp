// SPDX-License-Identifier: Apache-2.0
// Connections over a network: dials the peers' gates, and lets in those that dial this rank's.
#pragma once

#include "collx/net/caller.hpp"
#include "collx/net/gate.hpp"
#include "collx/transport/sockets/connector.hpp"

namespace collx::inline abi_1::transport::sockets {

class network_connector : public connector {
 public:
  // `gate` lets in links for this rank; `addresses[r]`: where rank r's listens; `timeout_us`: how long
  // somebody is dialled before the wait for him is given up.
  COLLX_COLD network_connector(rank_t rank, array<net::address> addresses, net::gate gate,
                               net::credentials const& mine, net::socket_settings const& chosen,
                               std::uint64_t timeout_us)
      : rank_(rank),
        addresses_(static_cast<array<net::address>&&>(addresses)),
        failed_(addresses_.size()),
        gate_(static_cast<net::gate&&>(gate)),
        mine_(mine),
        chosen_(chosen),
        timeout_us_(timeout_us) {}
  ~network_connector() override {
    while (calls_ != nullptr) delete std::exchange(calls_, calls_->next);
  }

  COLLX_COLD void dial(rank_t peer, int first, int end) noexcept override {
    for (int f = end - 1; f >= first; --f) {
      net::introduction const me{net::purpose::link, rank_, peer, static_cast<rank_t>(addresses_.size()),
                                 static_cast<std::uint32_t>(f)};
      auto* const call = new (std::nothrow)
          one_call{net::caller(addresses_[static_cast<std::size_t>(peer)], me, mine_, chosen_,
                               now_us() + timeout_us_, net::unanswered::means_lost),
                   calls_};
      if (call == nullptr) failed_[static_cast<std::size_t>(peer)] = status::out_of_memory;
      else calls_ = call;
    }
  }

  [[nodiscard]] bool poll(connection& next) noexcept override {
    for (one_call** at = &calls_; *at != nullptr;) {
      status const outcome = (*at)->talk.progress();
      if (outcome == status::pending) {
        at = &(*at)->next;
        continue;
      }
      one_call* const done = std::exchange(*at, (*at)->next);
      net::introduction const who = done->talk.who();
      next = {who.to, static_cast<int>(who.flow), done->talk.take()};
      delete done;
      if (outcome == status::ok) return true;
      failed_[static_cast<std::size_t>(who.to)] = outcome;
    }
    net::guest in;
    if (!gate_.poll(in)) return false;
    next = {in.who.from, static_cast<int>(in.who.flow), static_cast<net::owned_fd&&>(in.socket)};
    return true;
  }

  [[nodiscard]] int fd() const noexcept override { return gate_.fd(); }
  [[nodiscard]] bool is_dialling() const noexcept override { return calls_ != nullptr; }
  [[nodiscard]] status outlook(rank_t peer) noexcept override {
    return failed_[static_cast<std::size_t>(peer)];
  }

 private:
  struct one_call {
    net::caller talk;
    one_call* next;
  };

  rank_t rank_;
  array<net::address> addresses_;
  array<status> failed_;  // ok: nothing has
  net::gate gate_;
  net::credentials mine_;
  net::socket_settings chosen_;
  std::uint64_t timeout_us_;
  one_call* calls_ = nullptr;
};

}  // namespace collx::inline abi_1::transport::sockets
