// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process, each with a tcp_world of its own, joined by socket pairs: the
// transport without addresses and handshakes.
#pragma once

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sys/eventfd.h>
#include <sys/socket.h>

#include "collx/transport/tcp.hpp"
#include "watchdog.hpp"

namespace wired {

using collx::rank_t;
using collx::status;
namespace sockets = collx::transport::sockets;

class cables;

// Hands over both ends of a new pair of sockets when the lower rank dials, as a network would.
class plug : public sockets::connector {
 public:
  plug(cables& all, rank_t rank) : all_(all), rank_(rank), bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~plug() override;
  void dial(rank_t peer, int first, int end) noexcept override { join(peer, first, end, false); }
  void knock(rank_t peer) noexcept override { join(peer, 0, 1, true); }
  bool poll(sockets::connection& next) noexcept override {
    std::lock_guard const held(mutex_);
    std::uint64_t rung = 0;
    (void)!read(bell_, &rung, sizeof rung);
    if (ready_.empty()) return false;
    next = std::move(ready_.front());
    ready_.erase(ready_.begin());
    return true;
  }
  int fd() const noexcept override { return bell_; }
  status outlook(rank_t) noexcept override { return status::ok; }

  bool is_dialling() const noexcept override { return false; }

  void give(sockets::connection c) {
    std::lock_guard const held(mutex_);
    ready_.push_back(std::move(c));
    std::uint64_t const one = 1;
    (void)!write(bell_, &one, sizeof one);
  }

  // How many connections this rank has asked for.
  int joined() const noexcept { return joined_; }

 private:
  void join(rank_t peer, int first, int end, bool is_knock) noexcept;

  cables& all_;
  rank_t rank_;
  int bell_;
  int joined_ = 0;
  std::mutex mutex_;
  std::vector<sockets::connection> ready_;
};

class cables {
 public:
  explicit cables(rank_t size) : plugs_(static_cast<std::size_t>(size)) {
    for (rank_t r = 0; r < size; ++r) plugs_[static_cast<std::size_t>(r)] = new plug(*this, r);
  }
  // Each belongs to the world that takes it.
  plug* operator[](rank_t r) { return plugs_[static_cast<std::size_t>(r)]; }
  // To a rank that may have left: then nobody holds that end, and it is closed.
  void give(rank_t to, sockets::connection c) {
    std::lock_guard const held(mutex_);
    if (plug* const there = plugs_[static_cast<std::size_t>(to)]) there->give(std::move(c));
  }
  void leave(rank_t r) {
    std::lock_guard const held(mutex_);
    plugs_[static_cast<std::size_t>(r)] = nullptr;
  }

 private:
  std::mutex mutex_;
  std::vector<plug*> plugs_;
};

inline plug::~plug() {
  all_.leave(rank_);
  close(bell_);
}

inline void plug::join(rank_t peer, int first, int end, bool is_knock) noexcept {
  for (int f = first; f < end; ++f, ++joined_) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return;
    give({peer, f, collx::net::owned_fd(ends[0]), {}, is_knock});
    all_.give(peer, {rank_, f, collx::net::owned_fd(ends[1]), {}, is_knock});
  }
}

// Calls rank_main(communicator&) on `size` threads, under a watchdog; throws what the first of them threw.
template <class Transport = collx::transport::tcp, class RankMain>
void on_wired_threads(rank_t size, collx::transport::tcp_settings const& chosen, RankMain const& rank_main) {
  cables all(size);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::exception_ptr first;
  watchdog dog;
  for (rank_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        auto comm = collx::transport::tcp::join<Transport>(r, size, chosen, all[r]);
        auto const seen = dog.watch(comm);
        try {
          rank_main(comm);
        } catch (...) {
          comm.abort();
          throw;
        }
      } catch (...) {
        std::lock_guard const held(mutex);
        if (!first) first = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace wired
