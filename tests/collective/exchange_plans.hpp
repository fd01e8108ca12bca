// SPDX-License-Identifier: Apache-2.0
// Lists of messages that ranks exchange: random ones from seeds, and those that go wrong first: everybody to
// one, circles, several messages to one peer. Each rank lists its own in an order of its own.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "collx/collective/barrier.hpp"
#include "collx/collective/exchange.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/settings.hpp"

namespace exchanges {

using collx::rank_t;
using collx::status;

// Pieces of 8 KiB: several of them are tens of kilobytes.
inline collx::transport::settings const small_staging{.staging_bytes = 64 * 1024};
inline constexpr std::size_t piece = 8 * 1024;

struct sent {
  rank_t from, to;
  std::size_t bytes;
};
using plan = std::vector<sent>;

inline unsigned char value(std::size_t message, std::size_t i) {
  return static_cast<unsigned char>(message * 37 + i * 11 + i / 251 + 1);
}

// Whatever the ranks' number, every kind of size.
inline plan random_plan(rank_t size, std::uint64_t seed) {
  collx::replayable_random random(seed);
  plan all(random.below(6 * static_cast<std::uint32_t>(size)));
  for (sent& each : all) {
    std::size_t const sizes[] = {0,         1,     31,        33,        1000,         1025,
                                 piece - 1, piece, piece + 1, 2 * piece, 5 * piece + 7};
    auto const rank = [&] { return static_cast<rank_t>(random.below(static_cast<std::uint32_t>(size))); };
    each = {rank(), rank(), sizes[random.below(std::size(sizes))]};
  }
  return all;
}

inline plan everybody_to_one(rank_t size, std::size_t bytes) {
  plan all;
  for (rank_t r = 0; r < size; ++r) all.push_back({r, size / 2, bytes});
  return all;
}
inline plan star(rank_t size, std::size_t bytes) {
  plan all;
  for (rank_t r = 1; r < size; ++r) {
    all.push_back({0, r, bytes});
    all.push_back({r, 0, bytes});
  }
  return all;
}
inline plan circle(rank_t size, std::size_t bytes) {
  plan all;
  for (rank_t r = 0; r < size; ++r) all.push_back({r, (r + 1) % size, bytes});
  return all;
}
inline plan many_to_one_peer(rank_t size, std::size_t bytes) {
  plan all;
  for (int k = 0; k < 40; ++k) all.push_back({0, size - 1, k % 3 == 0 ? bytes : static_cast<std::size_t>(k)});
  return all;
}

// One rank's part of a plan, listed in an order that its rank and the seed choose: only messages of one
// pair and direction keep theirs.
template <class Transport>
struct participant {
  participant(collx::communicator<Transport>& comm, plan const& everything, std::uint64_t seed)
      : all(everything),
        rank(comm.rank()),
        buffers(2 * all.size()),
        list(comm, static_cast<std::int32_t>(2 * all.size())) {
    std::vector<std::size_t> order;  // 2 * message + (0: send, 1: receive)
    for (std::size_t m = 0; m < all.size(); ++m) {
      if (all[m].from == rank) order.push_back(2 * m);
      if (all[m].to == rank) order.push_back(2 * m + 1);
    }
    collx::replayable_random random(seed * 100 + static_cast<std::uint64_t>(rank));
    for (std::size_t i = 1; i < order.size(); ++i)
      for (std::size_t j = i; j > 0 && random.below(3) != 0 && !ordered(order[j - 1], order[j]); --j)
        std::swap(order[j - 1], order[j]);
    for (std::size_t const which : order) {
      sent const& what = all[which / 2];
      auto& buffer = buffers[which];
      buffer.assign(what.bytes, 0xee);
      if (which % 2 == 0) {
        for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = value(which / 2, i);
        list.send(buffer, what.to);
      } else {
        list.receive(buffer, what.from);
      }
    }
  }

  bool ordered(std::size_t a, std::size_t b) const {
    return a % 2 == b % 2 && all[a / 2].from == all[b / 2].from && all[a / 2].to == all[b / 2].to;
  }

  void clear() {
    for (std::size_t m = 0; m < all.size(); ++m)
      if (all[m].to == rank) std::fill(buffers[2 * m + 1].begin(), buffers[2 * m + 1].end(), 0xee);
  }
  std::string difference() const {
    for (std::size_t m = 0; m < all.size(); ++m)
      if (all[m].to == rank)
        for (std::size_t i = 0; i < all[m].bytes; ++i)
          if (buffers[2 * m + 1][i] != value(m, i))
            return "rank " + std::to_string(rank) + ": message " + std::to_string(m) + " from " +
                   std::to_string(all[m].from) + ", byte " + std::to_string(i);
    return "";
  }
  void require_same() const {
    if (std::string const what = difference(); !what.empty()) throw std::runtime_error(what);
  }

  plan const& all;
  rank_t rank;
  std::vector<std::vector<unsigned char>> buffers;
  collx::exchange<Transport> list;
};

template <class F>
void for_each_plan(rank_t size, std::uint64_t seeds, F const& f) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) f(random_plan(size, seed), seed);
  for (std::size_t const bytes : {std::size_t{5}, std::size_t{2000}, 20 * piece + 1}) {
    f(everybody_to_one(size, bytes), 1);
    f(star(size, bytes), 1);
    f(circle(size, bytes), 1);
    f(many_to_one_peer(size, bytes), 1);
  }
}

inline constexpr auto blocking_and_started = [](auto& comm) {
  using transport = typename std::remove_reference_t<decltype(comm)>::transport_type;
  for_each_plan(comm.size(), 12, [&](plan const& all, std::uint64_t seed) {
    participant<transport> mine(comm, all, seed);
    mine.list.run();
    mine.require_same();
    mine.clear();
    mine.list.start().wait();
    mine.require_same();
    mine.clear();
    auto request = mine.list.start();
    collx::barrier(comm);  // on another lane
    while (!request.test()) std::this_thread::yield();
    mine.require_same();
  });
};

}  // namespace exchanges
