// SPDX-License-Identifier: Apache-2.0
// Collectives that are set up once: right every time, with new data, and no message but the algorithm's.
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "require.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using transport = counting<collx::transport::threads>;
using communicator = collx::communicator<transport>;

std::size_t index_of(communicator const& comm) { return static_cast<std::size_t>(comm.rank()); }

template <class F>
void on_ranks(rank_t size, F const& f) {
  watched::on_threads<transport>(size, f, {.staging_bytes = 64 * 1024});
}

}  // namespace

TEST_CASE("persistent: every start gives the result of the data that are there then") {
  for (rank_t size = 1; size <= 5; ++size)
    on_ranks(size, [](communicator& comm) {
      std::vector<int> in(30'000), out(in.size());
      auto sum = collx::persistent::all_reduce<collx::algo::ring>(comm, in, out, collx::sum);
      auto first = collx::persistent::broadcast(comm, in, rank_t{0});
      require(sum.test(), "not started, and yet not done");
      for (int round = 1; round <= 4; ++round) {
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = round * (comm.rank() + 1) + static_cast<int>(i);
        sum.start();
        sum.wait();
        rank_t const n = comm.size();
        for (std::size_t i = 0; i < out.size(); i += 997)
          require(out[i] == round * n * (n + 1) / 2 + n * static_cast<int>(i), "a wrong sum");
        first.start();
        first.wait();
        require(in[7] == round + 7, "a wrong broadcast");
      }
    });
}

TEST_CASE("persistent: a start sends what the algorithm sends, even where calls are compared") {
  on_ranks(4, [](communicator& comm) {
    comm.checking(collx::checking_level::communication);
    std::vector<float> v(100, 1.0f);
    auto& endpoint = comm.engine().endpoint();
    auto const in_a_start = [&](auto& what) {
      std::uint64_t const before = endpoint.messages();
      what.start();
      what.wait();
      return endpoint.messages() - before;
    };
    std::uint64_t const at_first = endpoint.messages();
    auto ring = collx::persistent::all_reduce<collx::algo::ring>(comm, v);
    require(endpoint.messages() > at_first, "the calls were not compared");
    for (int i = 0; i < 10; ++i) require(in_a_start(ring) == 6, "not 2(n-1) messages");
    auto direct = collx::persistent::all_reduce<collx::algo::direct_one_shot>(comm, v);
    for (int i = 0; i < 10; ++i) require(in_a_start(direct) == 3, "not n-1 messages");
    auto gathered = std::vector<float>(400);
    auto gather = collx::persistent::all_gather<collx::algo::ring>(comm, v, gathered);
    for (int i = 0; i < 10; ++i) require(in_a_start(gather) == 3, "not n-1 messages");
  });
}

TEST_CASE("persistent: lists of messages, graphs and trees send what they are made of, start after start") {
  on_ranks(4, [](communicator& comm) {
    rank_t const left = (comm.rank() + 3) % 4, right = (comm.rank() + 1) % 4;
    std::vector<float> mine(100, 1.0f), from_left(100), from_right(100), both(200), sum(100);
    collx::exchange list(comm);
    list.send(mine, left);
    list.send(mine, right);
    list.receive(from_left, left);
    list.receive(from_right, right);
    std::vector<rank_t> const peers{left, right};
    collx::graph const edges(comm, peers, peers);
    collx::fixed_tree const tree{4};
    auto const messages = [&](auto const& call) {
      std::uint64_t const before = comm.engine().endpoint().messages();
      call();
      return comm.engine().endpoint().messages() - before;
    };
    auto const of_tree = messages([&] { collx::all_reduce_fixed_tree(comm, tree, mine, sum); });
    auto over_tree = collx::persistent::all_reduce_fixed_tree(comm, tree, mine, sum);
    comm.checking(collx::checking_level::communication);  // when it is made only
    auto over_edges = collx::persistent::neighbour_all_gather(comm, edges, mine, both);
    for (int i = 0; i < 3; ++i) {
      require(messages([&] {
                over_edges.start();
                over_edges.wait();
              }) == 2,
              "two destinations, set up once");
    }
    comm.checking(collx::checking_level::normal);
    for (int i = 0; i < 3; ++i) {
      require(messages([&] { list.start().wait(); }) == 2, "a list of two sends");
      require(messages([&] { collx::start::neighbour_all_gather(comm, edges, mine, both).wait(); }) == 2,
              "two destinations");
      auto const again = messages([&] {
        over_tree.start();
        over_tree.wait();
      });
      require(again == of_tree && again > 0, "a tree");
    }
    require(from_left[99] == 1.0f && both[199] == 1.0f && sum[99] == 4.0f, "a wrong result");
  });
}

TEST_CASE("persistent: several in flight, and started again before they were waited for") {
  on_ranks(3, [](communicator& comm) {
    std::vector<long> a(5000, 1), b(7, 2);
    auto first = collx::persistent::all_reduce(comm, a);
    auto second = collx::persistent::all_reduce<collx::priority::urgent>(comm, b);
    for (int i = 0; i < 3; ++i) {
      first.start();
      second.start();
    }
    second.wait();
    first.wait();
    require(a[4999] == 27 && b[6] == 54, "a start was lost");
  });
}

TEST_CASE("persistent: wrong arguments and disagreement end the setting up") {
  on_ranks(2, [](communicator& comm) {
    std::vector<int> in(3), out(4);
    try {
      (void)collx::persistent::all_reduce(comm, in, out);
      require(false, "accepted");
    } catch (collx::error const& refused) {
      require(refused.code() == collx::status::bad_argument, "another error");
    }
    comm.checking(collx::checking_level::communication);
    std::vector<int> v(comm.rank() == 0 ? 3 : 4);
    try {
      (void)collx::persistent::all_reduce(comm, v);
      require(false, "accepted");
    } catch (collx::error const& refused) {
      // Who sees it first may stop the others before they do.
      bool const stopped = refused.code() == collx::status::aborted;
      require(stopped || refused.code() == collx::status::mismatch, "another error");
    }
  });
}

TEST_CASE("persistent: blocks that are not those it was made with are refused, and nothing is sent") {
  on_ranks(3, [](communicator& comm) {
    std::vector<std::size_t> counts{2, 0, 3}, offsets{3, 3, 0}, from_each(3, counts[index_of(comm)]);
    std::vector<int> in(5, comm.rank()), out(9, -1), all(5, -1), by_edges(5, -1);
    auto exchanged = collx::persistent::all_to_all_v(comm, collx::blocks<int const>{in, counts, offsets},
                                                     collx::blocks<int>{out, from_each});
    auto gathered = collx::persistent::all_gather_v(comm, std::span<int const>(in).first(from_each[0]),
                                                    collx::blocks<int>{all, counts});
    std::vector<collx::rank_t> const everybody{0, 1, 2};
    collx::graph const edges(comm, everybody, everybody);
    auto on_edges = collx::persistent::neighbour_all_gather_v(
        comm, edges, std::span<int const>(in).first(from_each[0]), collx::blocks<int>{by_edges, counts});
    auto const refused = [](auto& what) {
      try {
        what.start();
      } catch (collx::error const& wrong) {
        return wrong.code() == collx::status::bad_argument &&
               std::string(wrong.what()).find("counts or offsets have changed") != std::string::npos;
      }
      return false;
    };
    auto const run_both = [&] {
      exchanged.start();
      gathered.start();
      on_edges.start();
      on_edges.wait();
      gathered.wait();
      exchanged.wait();
      require(by_edges == all, "neighbour_all_gather_v");
      require(all == std::vector<int>{0, 0, 2, 2, 2}, "all_gather_v");
    };
    run_both();
    std::uint64_t const before = comm.engine().endpoint().messages();
    counts[2] = 4;
    require(refused(exchanged) && refused(gathered) && refused(on_edges), "another count");
    counts[2] = 3;
    offsets[1] = 4;
    require(refused(exchanged), "another offset");
    offsets[1] = 3;
    require(comm.engine().endpoint().messages() == before, "something was sent");
    run_both();
  });
}

TEST_CASE("persistent: it reserves nothing that peers can reach, however large its data") {
  on_ranks(2, [](communicator& comm) {
    std::size_t const before = comm.reserved_bytes();
    std::vector<float> v(100'000, 1.0f);
    auto sum = collx::persistent::all_reduce(comm, v);
    sum.start();
    sum.wait();
    require(before > 0 && comm.reserved_bytes() == before, "memory was reserved");
  });
}
