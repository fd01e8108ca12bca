// SPDX-License-Identifier: Apache-2.0
// Ranks that have done their part leave while others still wait, which is no loss: each race between a
// last message and its sender's end, forced to go the wrong way. The decorator below holds a rank in its
// question "is my peer still there?" until the peer has done everything and is gone.
#include <atomic>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/local.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exchange.hpp"
#include "collx/collective/send_receive.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;

template <class Endpoint>
class leaving_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;
  std::function<status(rank_t peer)> ask = [](rank_t) { return status::ok; };
  bool lends = true;

  [[nodiscard]] bool reachable(std::byte const* payload, std::size_t bytes) const noexcept {
    return lends && Endpoint::reachable(payload, bytes);
  }

  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    status const why = Endpoint::interrupted(peer);
    return why == status::ok ? ask(peer) : why;
  }
};

struct leaving_threads {
  using world = collx::transport::threads::world;
  using endpoint = leaving_endpoint<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<leaving_threads>;
};
using communicator = collx::communicator<leaving_threads>;

// 8 pieces of an exchange are staged at once: 5 leave without their sender waiting.
collx::transport::settings const small_staging{.timeout_us = 60'000'000, .staging_bytes = 64 * 1024};
std::vector<int> numbers(std::size_t count) {
  std::vector<int> v(count);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

// Set once, waited for without sleeping.
class event {
 public:
  void set() {
    happened_.store(true, std::memory_order_release);
    happened_.notify_all();
  }
  [[nodiscard]] bool is_set() const { return happened_.load(std::memory_order_acquire); }
  void wait() const { happened_.wait(false, std::memory_order_acquire); }

 private:
  std::atomic<bool> happened_{false};
};

// Rank 1 calls `receive` and, when it asks after rank 0, is answered once that has done all its sends.
template <class Send, class Receive>
void sender_ends_while_asked_after(Send const& send, Receive const& receive) {
  event asked, gone;
  watched::on_threads<leaving_threads>(
      2,
      [&](communicator& comm) {
        if (comm.rank() == 0) {
          comm.engine().endpoint().lends = false;  // or it would wait for its reader
          asked.wait();
          send(comm);
          gone.set();
          return;
        }
        comm.engine().endpoint().ask = [&](rank_t) {
          asked.set();
          gone.wait();
          return status::peer_lost;
        };
        receive(comm);
        if (!gone.is_set()) throw std::runtime_error("the race did not take place");
      },
      small_staging);
}

constexpr std::size_t five_pieces = 10 * 1024, four_pages = 4096;

}  // namespace

TEST_CASE("a sender that ends right after its last message is not lost: one blocking message") {
  sender_ends_while_asked_after([](communicator& comm) { collx::send(comm, numbers(five_pieces), 1); },
                                [](communicator& comm) {
                                  std::vector<int> got(five_pieces);
                                  collx::receive(comm, got, 0);
                                  if (got != numbers(five_pieces)) throw std::runtime_error("wrong");
                                });
}

// The same by started exchanges. `finish(request)` waits for the receiver's.
template <class Finish>
void started_sender_ends_while_asked_after(Finish const& finish) {
  sender_ends_while_asked_after(
      [](communicator& comm) {
        std::vector<int> const out = numbers(five_pieces);
        collx::exchange ex(comm);
        ex.send(out, 1);
        ex.start().wait();
      },
      [&](communicator& comm) {
        std::vector<int> got(five_pieces);
        collx::exchange ex(comm);
        ex.receive(got, 0);
        auto request = ex.start();
        finish(request);
        if (got != numbers(five_pieces)) throw std::runtime_error("wrong");
      });
}

TEST_CASE("a sender that ends right after its last message is not lost: a request of many fragments") {
  started_sender_ends_while_asked_after([](auto& request) { request.wait(); });
}

TEST_CASE("a sender that ends right after its last message is not lost: a request that is only tested") {
  started_sender_ends_while_asked_after([](auto& request) {
    while (!request.test()) std::this_thread::yield();
  });
}

// Rank 0 lends its memory to both others; one reads it and is gone; the other reads only when rank 0 has
// looked around at least once.
template <class Call>
void one_reader_is_gone(rank_t first, Call const& call) {
  event first_gone, looked;
  watched::on_threads<leaving_threads>(
      3,
      [&](communicator& comm) {
        auto const memory = comm.allocate<int>(four_pages);
        if (comm.rank() == 0) {
          comm.engine().endpoint().ask = [&](rank_t peer) {
            first_gone.wait();
            looked.set();
            return peer == first ? status::peer_lost : status::ok;
          };
        } else if (comm.rank() != first) {
          looked.wait();
        }
        call(comm, memory.span());
        if (comm.rank() == first) first_gone.set();
      },
      small_staging);
}

TEST_CASE("a reader that has read what was lent to it, and ended, is not lost") {
  for (rank_t const first : {1, 2}) {
    one_reader_is_gone(first, [](communicator& comm, std::span<int> memory) {
      collx::exchange ex(comm);
      if (comm.rank() == 0) {
        ex.send(memory, 1);
        ex.send(memory, 2);
      } else {
        ex.receive(memory, 0);
      }
      ex.run();
    });
    one_reader_is_gone(first, [](communicator& comm, std::span<int> memory) {
      collx::broadcast<collx::algo::direct_one_shot>(comm, memory, 0);
    });
  }
}

TEST_CASE("a reader that ends before it has read what was lent to it is lost, at once and by name") {
  watched::on_threads<leaving_threads>(
      2,
      [](communicator& comm) {
        auto const memory = comm.allocate<int>(four_pages);
        if (comm.rank() == 1) return;
        comm.engine().endpoint().ask = [](rank_t peer) { return peer == 1 ? status::peer_lost : status::ok; };
        status const outcome = collx::try_broadcast<collx::algo::direct_one_shot>(comm, memory.span(), 0);
        if (outcome != status::peer_lost) throw std::runtime_error("not noticed");
        if (comm.engine().failure().peer != 1) throw std::runtime_error("not named");
      },
      small_staging);
}
