// SPDX-License-Identifier: Apache-2.0
// Collectives cut in parts on several lanes: right for every count, and all lanes are used.
#include "collx/collective/multi_lane.hpp"

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/tune/fixed_table.hpp"
#include "watched.hpp"

namespace {

using collx::multi_lane;
using collx::rank_t;

// Every algorithm, in two and in three lanes, blocking and started.
template <class Transport>
struct on_this_rank {
  collx::communicator<Transport>& comm;
  std::vector<oracle::element> memory = std::vector<oracle::element>(oracle::reference::index_count * 2);

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if constexpr (!std::is_same_v<Contract, collx::contract::barrier>) {
      if (!collx::supports<Schedule>(comm.size())) return;
      cases::for_each(oracle::collective_of<Contract>, comm.size(), [&](oracle::setting const& how) {
        run<forms::blocking<multi_lane<Algorithm, 2>>, Algorithm, Contract, Schedule>(how);
        run<forms::started<multi_lane<Algorithm, 3>>, Algorithm, Contract, Schedule>(how);
      });
    }
  }

  template <class Form, class Algorithm, class Contract, class Schedule>
  void run(oracle::setting const& how) {
    constexpr auto op = oracle::operator_for<Schedule>();
    oracle::participant const mine(oracle::collective_of<Contract>, collx::keeps_rank_order<Schedule>(), how,
                                   comm.rank(), memory.data());
    if constexpr (std::is_same_v<Form, forms::blocking<multi_lane<Algorithm, 2>>>)
      forms::call<Form, Contract>(comm, how, mine, op);
    else forms::call<Form, Contract>(comm, how, mine, op).wait();
    if (std::string const wrong = mine.difference(); !wrong.empty())
      throw std::runtime_error(cases::describe(Contract::name, Algorithm::name, how) + ": " + wrong);
    collx::barrier(comm);
  }
};

using algorithms = collx::type_list<collx::algo::ring, collx::algo::direct_one_shot, collx::algo::chain,
                                    collx::algo::recursive_doubling>;

}  // namespace

TEST_CASE("multi_lane: gives what the reference gives, for all counts, roots and buffers") {
  auto const everything = [](auto& comm) {
    on_this_rank<typename std::remove_reference_t<decltype(comm)>::transport_type> all{comm};
    collx::for_each_schedule<algorithms, collx::contract::all>(all);
  };
  for (rank_t size = 1; size <= 5; ++size)
    watched::on_threads(size, everything, {.staging_bytes = cases::staging_bytes});
  for (int const code : watched::on_processes(3, everything, {.staging_bytes = cases::staging_bytes}))
    CHECK(code == 0);
}

TEST_CASE("multi_lane: parts cover the vector once, and begin on cache lines") {
  for (std::size_t const element_bytes : {1u, 4u, 24u, 100u})
    for (std::size_t const count : {0u, 1u, 15u, 16u, 17u, 1000u})
      for (int parts = 1; parts <= 8; ++parts) {
        std::size_t next = 0;
        for (int i = 0; i < parts; ++i) {
          auto const part = collx::detail::part_of_lanes(count, element_bytes, i, parts);
          CHECK(part.begin == next);
          CHECK(part.end >= part.begin);
          if (64 % element_bytes == 0 && part.begin != count) CHECK(part.begin * element_bytes % 64 == 0);
          next = part.end;
        }
        CHECK(next == count);
      }
}

TEST_CASE("multi_lane: tested, set up once, and chosen by the library; a part may be empty") {
  watched::on_threads(3, [](auto& comm) {
    auto const require = [](bool fine) {
      if (!fine) throw std::runtime_error("wrong");
    };
    std::vector<int> in(17, comm.rank()), out(3 * in.size(), -1), sum(5);
    auto const right = [&] {
      for (std::size_t i = 0; i < out.size(); ++i)
        if (out[i] != static_cast<int>(i / 17)) return false;
      out.assign(out.size(), -1);
      return true;
    };
    auto request = collx::start::all_gather<multi_lane<collx::automatic, 2>>(comm, in, out);
    while (!request.test()) std::this_thread::yield();
    require(right());
    auto repeated = collx::persistent::all_gather<multi_lane<collx::algo::ring, 2>>(comm, in, out);
    require(repeated.algorithm() == std::string_view("ring"));
    for (int i = 0; i < 3; ++i) {
      repeated.start();
      while (repeated.try_test() == collx::status::pending) std::this_thread::yield();
      require(right());
    }
    repeated.start();
    require(repeated.try_wait() == collx::status::ok && right());
    sum.assign(5, 1);
    collx::start::all_reduce<multi_lane<collx::algo::ring, 8>>(comm, sum).wait();
    require(sum[4] == 3);
  });
}

namespace {

using doubling = collx::tune::fixed_rule<collx::contract::all_gather, collx::algo::recursive_doubling>;
struct by_rules : collx::tune::fixed_table<doubling> {};

// The algorithm of an all_gather of so many ints per rank, which the lanes halve.
template <class Algorithm>
std::string chosen_for(auto& comm, std::size_t count) {
  std::vector<int> in(count), out(count * static_cast<std::size_t>(comm.size()));
  return collx::persistent::all_gather<Algorithm>(comm, in, out).algorithm();
}

}  // namespace

TEST_CASE("multi_lane: parts of blocks go by the rows of their collective, built in or of a table") {
  watched::on_threads(4, [](auto& comm) {
    auto const check = [](std::string const& chosen, std::string const& expected) {
      if (chosen != expected) throw std::runtime_error(chosen + " instead of " + expected);
    };
    for (std::size_t const count : {1000u, 20'000u, 100'000u})
      check(chosen_for<multi_lane<collx::automatic, 2>>(comm, 2 * count),
            chosen_for<collx::automatic>(comm, count));
    check(chosen_for<collx::automatic>(comm, 100'000), "push_pull");  // no table's only row
    check(chosen_for<multi_lane<by_rules, 2>>(comm, 100), "recursive_doubling");
  });
}

TEST_CASE("multi_lane: wrong arguments are refused as ever, and try_ returns the status") {
  watched::on_threads(2, [](auto& comm) {
    std::vector<int> in(3), out(4);
    auto const refused = collx::try_all_reduce<multi_lane<collx::algo::ring, 2>>(comm, in, out);
    if (refused != collx::status::bad_argument) throw std::runtime_error("accepted");
    if (collx::try_all_reduce<multi_lane<collx::algo::ring, 2>>(comm, out) != collx::status::ok)
      throw std::runtime_error("not ok");
  });
}

namespace {

// Counts what a rank sends in every lane.
template <class Endpoint>
struct counts_lanes : Endpoint {
  using Endpoint::Endpoint;
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    sent[static_cast<std::size_t>(lane)] += bytes;
    Endpoint::send(lane, peer, payload, bytes, how);
  }
  std::array<std::size_t, Endpoint::lane_count> sent{};
};
struct threads_with_counts {
  using world = collx::transport::threads::world;
  using endpoint = counts_lanes<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<threads_with_counts>;
};

}  // namespace

TEST_CASE("multi_lane: each lane carries its part, and no other does") {
  watched::on_threads<threads_with_counts>(2, [](auto& comm) {
    using one_shot = collx::algo::direct_one_shot;
    std::vector<float> v(1000, 1.0f), gathered(2000);
    auto& sent = comm.engine().endpoint().sent;
    auto const in_lanes = [&](auto const& call) {
      auto const before = sent;
      call();
      auto now = sent;
      for (std::size_t lane = 0; lane < now.size(); ++lane) now[lane] -= before[lane];
      return now;
    };
    auto const require = [&](bool holds, auto const& lanes, char const* what) {
      std::string words = what;
      for (std::size_t const bytes : lanes) words += " " + std::to_string(bytes);
      if (!holds) throw std::runtime_error(words);
    };
    // Blocking, two started, urgent ones. Parts begin on cache lines: 512 and 488 elements.
    static_assert(std::tuple_size_v<std::remove_reference_t<decltype(sent)>> == 4);
    auto const two = in_lanes([&] { collx::all_reduce<multi_lane<one_shot, 2>>(comm, v); });
    require(two == decltype(two){0, 2048, 1952, 0}, two, "two");
    auto const gather = in_lanes([&] { collx::all_gather<multi_lane<one_shot, 2>>(comm, v, gathered); });
    require(gather == decltype(two){0, 2048, 1952, 0}, gather, "a part of every block");
    // 336, 336 and 328: the third queues behind the first.
    auto const three = in_lanes([&] { collx::start::all_reduce<multi_lane<one_shot, 3>>(comm, v).wait(); });
    require(three == decltype(two){0, 1344 + 1312, 1344, 0}, three, "three");
    auto const urgent = in_lanes(
        [&] { collx::start::all_reduce<multi_lane<one_shot, 2>, collx::priority::urgent>(comm, v).wait(); });
    require(urgent == decltype(two){0, 0, 0, 4000}, urgent, "urgent");
    auto const one = in_lanes([&] { collx::all_reduce<one_shot>(comm, v); });
    require(one == decltype(two){4000, 0, 0, 0}, one, "no lanes");
  });
}

TEST_CASE("multi_lane: ranks that cut in different numbers of lanes get an error, compared or not") {
  for (auto const level : {collx::checking_level::normal, collx::checking_level::communication})
    for (std::size_t const count : {std::size_t{100}, std::size_t{50'000}})
      watched::on_threads(2, [&](auto& comm) {
        comm.checking(level);
        std::vector<float> v(count, 1.0f);
        collx::status const outcome = comm.rank() == 0
                                          ? collx::try_all_reduce<multi_lane<collx::algo::ring, 2>>(comm, v)
                                          : collx::try_all_reduce<multi_lane<collx::algo::ring, 3>>(comm, v);
        bool const said = outcome == collx::status::mismatch || outcome == collx::status::aborted;
        if (!said)
          throw std::runtime_error("rank " + std::to_string(comm.rank()) + " got status " +
                                   std::to_string(static_cast<int>(outcome)));
        if (comm.failure().code != outcome) throw std::runtime_error("no report");
      });
}

TEST_CASE("multi_lane: when one part has failed, none is in flight any more") {
  std::atomic<bool> done{false};
  watched::on_threads(2, [&](auto& comm) {
    if (comm.rank() == 1) return done.wait(false);
    comm.timeout_us(20'000);
    std::vector<int> v(100, 1);
    int in_flight = 0;
    auto request = collx::start::all_reduce<multi_lane<collx::algo::ring, 2>>(comm, v);
    while (request.try_test() == collx::status::pending) std::this_thread::yield();
    comm.engine().for_each_in_flight([&](auto const&...) { ++in_flight; });
    done = true;
    done.notify_all();
    if (in_flight != 0) throw std::runtime_error("a part is in flight");
  });
}
