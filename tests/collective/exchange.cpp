// SPDX-License-Identifier: Apache-2.0
// Exchanges: messages between any ranks, listed by each rank in an order of its own.
#include "collx/collective/exchange.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/exchange_order.hpp"
#include "collective/exchange_plans.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/neighbour_all_gather.hpp"
#include "collx/collective/send_receive.hpp"
#include "collx/transport/faulty.hpp"
#include "sample.hpp"
#include "watched.hpp"

using namespace exchanges;

TEST_CASE("exchange: mailbox, any order of delivery") {
  for (rank_t size = 1; size <= 9; ++size)
    for_each_plan(size, sample::is_sample ? 10 : 40, [&](plan const& all, std::uint64_t seed) {
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
  for (rank_t size = 1; size <= 9; ++size)
    if (sample::takes_running(size)) watched::on_threads(size, blocking_and_started, small_staging);
}

TEST_CASE("exchange: processes") {
  for (rank_t const size : {1, 2, 3, 5, 8})
    if (!sample::is_sample || size != 5)
      for (int const code : watched::on_processes(size, blocking_and_started, small_staging))
        CHECK(code == 0);
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

TEST_CASE("send: a small message that is not taken yet keeps none to other ranks back") {
  auto const stream = [](auto& comm) {
    std::vector<std::byte> v(600);
    int const me = comm.rank();
    for (int turn = 0; turn < 30; ++turn) {
      if (me == 0) collx::send(comm, v, 1);
      if (me == 1) collx::receive(comm, v, 2);
      for (int i = 0; i < 150; ++i) {
        if (me == 0) collx::send(comm, v, 2);
        if (me == 2) collx::receive(comm, v, 0);
      }
      if (me == 2) collx::send(comm, v, 1);
      if (me == 1) collx::receive(comm, v, 0);
      collx::barrier(comm);  // so that one is not taken, and not the next one of rank 1 too
    }
  };
  watched::on_threads(3, stream);
  for (int const code : watched::on_processes(3, stream)) CHECK(code == 0);
}

TEST_CASE("exchange: a receiver that takes a long message last keeps nobody else from his") {
  auto const all = [](auto& comm) { every_late_last(comm); };
  for (rank_t const size : {3, 4, 8}) watched::on_threads(size, all, small_staging);
  for (rank_t const size : {3, 4})
    for (int const code : watched::on_processes(size, all, small_staging)) CHECK(code == 0);
}

TEST_CASE("exchange: nine messages to a peer wait for no receive") {
  for (std::size_t const bytes : {std::size_t{64}, std::size_t{1023}}) {
    auto const all = [bytes](auto& comm) { nine_before_one(comm, bytes); };
    for (rank_t const size : {2, 3, 8}) watched::on_threads(size, all);
    for (rank_t const size : {2, 4})
      for (int const code : watched::on_processes(size, all)) CHECK(code == 0);
  }
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
