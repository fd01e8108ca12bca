// SPDX-License-Identifier: Apache-2.0
// Exchanges: messages between any ranks, listed by each rank in an order of its own. Random lists from
// seeds, and those that go wrong first: everybody to one, circles, several messages to one peer.
#include "collx/collective/exchange.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/neighbour_all_gather.hpp"
#include "collx/collective/send_receive.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/faulty.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;

// Pieces of 8 KiB: several of them are tens of kilobytes.
collx::transport::settings const small_staging{.staging_bytes = 64 * 1024};
constexpr std::size_t piece = 8 * 1024;

struct sent {
  rank_t from, to;
  std::size_t bytes;
};
using plan = std::vector<sent>;

unsigned char value(std::size_t message, std::size_t i) {
  return static_cast<unsigned char>(message * 37 + i * 11 + i / 251 + 1);
}

// Whatever the ranks' number, every kind of size.
plan random_plan(rank_t size, std::uint64_t seed) {
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

plan everybody_to_one(rank_t size, std::size_t bytes) {
  plan all;
  for (rank_t r = 0; r < size; ++r) all.push_back({r, size / 2, bytes});
  return all;
}
plan star(rank_t size, std::size_t bytes) {
  plan all;
  for (rank_t r = 1; r < size; ++r) {
    all.push_back({0, r, bytes});
    all.push_back({r, 0, bytes});
  }
  return all;
}
plan circle(rank_t size, std::size_t bytes) {
  plan all;
  for (rank_t r = 0; r < size; ++r) all.push_back({r, (r + 1) % size, bytes});
  return all;
}
plan many_to_one_peer(rank_t size, std::size_t bytes) {
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

auto const blocking_and_started = [](auto& comm) {
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

}  // namespace

TEST_CASE("exchange: mailbox, any order of delivery") {
  for (rank_t size = 1; size <= 9; ++size)
    for_each_plan(size, 40, [&](plan const& all, std::uint64_t seed) {
      CAPTURE(size);
      CAPTURE(seed);
      collx::bootstrap::mailbox_ranks<> ranks(size, seed, small_staging, 1 + seed % 3);
      std::vector<std::unique_ptr<participant<collx::transport::mailbox>>> each;
      collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(
          static_cast<std::size_t>(size));
      for (rank_t r = 0; r < size; ++r)
        each.push_back(std::make_unique<participant<collx::transport::mailbox>>(ranks[r], all, seed));
      for (std::size_t r = 0; r < requests.size(); ++r) requests[r] = each[r]->list.start();
      REQUIRE(ranks.drive(requests) == status::ok);
      for (auto const& mine : each) REQUIRE(mine->difference() == "");
    });
}

TEST_CASE("exchange: threads") {
  for (rank_t size = 1; size <= 9; ++size) watched::on_threads(size, blocking_and_started, small_staging);
}

TEST_CASE("exchange: processes") {
  for (rank_t const size : {1, 2, 3, 5, 8})
    for (int const code : watched::on_processes(size, blocking_and_started, small_staging)) CHECK(code == 0);
}

TEST_CASE("exchange: processes, in memory that peers read in place") {
  for (int const code : watched::on_processes(3, [](auto& comm) {
         std::size_t const count = 100'000;
         auto const out = comm.template allocate<float>(count), in = comm.template allocate<float>(2 * count);
         for (std::size_t i = 0; i < count; ++i)
           out[i] = static_cast<float>(comm.rank() * 10) + static_cast<float>(i % 7);
         rank_t const left = (comm.rank() + 2) % 3, right = (comm.rank() + 1) % 3;
         collx::exchange ex(comm);
         ex.receive(in.span().first(count), left);
         ex.receive(in.span().subspan(count), right);
         ex.send(out, left);
         ex.send(out, right);
         for (int round = 0; round < 3; ++round) {
           ex.run();
           for (std::size_t i = 0; i < count; ++i)
             if (in[i] != static_cast<float>(left * 10) + static_cast<float>(i % 7) ||
                 in[count + i] != static_cast<float>(right * 10) + static_cast<float>(i % 7))
               throw std::runtime_error("wrong");
         }
       }))
    CHECK(code == 0);
}

TEST_CASE("exchange: late and out of order, from seeds") {
  using faulty_threads = collx::transport::faulty<collx::transport::threads>;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    watched::on_threads<faulty_threads>(
        4,
        [&](collx::communicator<faulty_threads>& comm) {
          comm.engine().endpoint().inject({.seed = seed * 8 + static_cast<std::uint64_t>(comm.rank()),
                                           .delay_polls_max = 5,
                                           .refuse_one_in = 3});
          plan const all = random_plan(4, seed);
          participant<faulty_threads> mine(comm, all, seed);
          mine.list.run();
          mine.require_same();
        },
        small_staging);
  }
}

TEST_CASE("exchange: run() concerns only those that have messages; send and receive") {
  watched::on_threads(3, [](auto& comm) {
    std::vector<int> v(30'000, comm.rank());
    if (comm.rank() == 0) collx::send(comm, v, 2);
    if (comm.rank() == 2) collx::receive(comm, v, 0);
    if (comm.rank() == 2 && v[29'999] != 0) throw std::runtime_error("not received");
    int one = comm.rank();
    if (comm.rank() == 2 && collx::try_send(comm, std::span(&one, 1), 1) != status::ok) throw 1;
    if (comm.rank() == 1 && collx::try_receive(comm, std::span(&one, 1), 2) != status::ok) throw 2;
    if (comm.rank() == 1 && one != 2) throw std::runtime_error("not received");
    collx::barrier(comm);
    if (comm.engine().sequence() != 1) throw std::runtime_error("messages are no collectives");
    auto first = collx::exchange(comm).start();  // empty, and gone at once
    collx::barrier(comm);
    first.wait();
  });
}

TEST_CASE("exchange: along an axis, and a graph of it") {
  watched::on_threads(
      6,
      [](auto& world) {
        auto const column = world.along({world.rank() % 2, 2, 3});  // ranks r, r + 2, r + 4
        auto comm = world.along({world.rank() % 2, 2, 3});
        rank_t const right = (comm.rank() + 1) % 3, left = (comm.rank() + 2) % 3;
        std::vector<int> out(5000, world.rank()), in(5000), both(10000);
        collx::exchange ex(comm);
        ex.send(out, right);
        ex.receive(in, left);
        ex.run();
        if (in[4999] != column.world_rank(left)) throw std::runtime_error("run");
        in[4999] = -1;
        ex.start().wait();
        if (in[4999] != column.world_rank(left)) throw std::runtime_error("start");
        std::vector<rank_t> const peers{right, left};
        collx::graph const edges(comm, peers, peers);
        collx::neighbour_all_gather(comm, edges, out, both);
        if (both[0] != column.world_rank(right) || both[9999] != column.world_rank(left))
          throw std::runtime_error("graph");
        if (collx::try_neighbour_all_gather(world, edges, out, both) != status::bad_argument)
          throw std::runtime_error("another communicator's graph");
        if (comm.rank() == 0) collx::send(comm, out, 2);
        if (comm.rank() == 2) collx::receive(comm, in, 0);
        if (comm.rank() == 2 && in[0] != world.rank() - 4) throw std::runtime_error("send");
      },
      small_staging);
}
