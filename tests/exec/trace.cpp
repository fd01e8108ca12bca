// SPDX-License-Identifier: Apache-2.0
// What the executor does is what the schedule says: the recorded steps of each rank equal the
// schedule's own enumeration, fragment by fragment, on a message transport and on a mapped one.
// sanitizers: no
#include <vector>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/call.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

struct event {
  collx::problem where;
  std::size_t fragment;
  std::int32_t index;
  collx::primitive step;
  friend bool operator==(event const&, event const&) = default;
};

struct recorder {
  std::vector<event>* events;
  void step(collx::problem where, std::size_t fragment, std::int32_t index,
            collx::primitive const& step) noexcept {
    events->push_back({where, fragment, index, step});
  }
};

template <class Schedule>
std::vector<event> symbolic(collx::problem where, std::size_t fragments) {
  std::vector<event> all;
  for (std::size_t f = 0; f < fragments; ++f)
    for (std::int32_t i = 0; i < Schedule::step_count(where); ++i)
      all.push_back({where, f, i, Schedule::step(where, i)});
  return all;
}

// One rank's buffers, large enough for every contract, and what its executor recorded.
template <class Schedule>
struct traced_rank {
  static constexpr auto op = oracle::operator_for<Schedule>();
  using op_type = std::remove_const_t<decltype(op)>;

  traced_rank(rank_t size, std::size_t count)
      : count_(count), in(static_cast<std::size_t>(size) * count + 1), out(in.size()) {}

  // Returns what engine.start and engine.run call to get the executor.
  template <class Endpoint>
  auto maker(collx::exec::engine<Endpoint>& engine, rank_t root) {
    return [this, &engine, root](int lane) noexcept {
      Endpoint& endpoint = engine.endpoint();
      auto const map = [&] {
        collx::problem const where{endpoint.rank(), endpoint.size(), root};
        auto const user = [&] {
          return collx::exec::even_buffers<typename Schedule::contract>(where, in.data(), out.data(), false);
        };
        auto const made = collx::exec::map_memory<Schedule>(
            where, user, endpoint.scratch(lane), count_, sizeof(oracle::element), endpoint.staging_bytes());
        fragments = made.fragments();
        return made;
      };
      return collx::exec::host_executor<Schedule, oracle::element, op_type, Endpoint, recorder>(
          endpoint, lane, engine.work(lane), map, op, recorder{&events});
    };
  }

  void check(collx::problem where) const {
    CAPTURE(where.rank);
    REQUIRE(fragments > 0);
    REQUIRE(events == symbolic<Schedule>(where, fragments));
  }

  std::size_t count_, fragments = 0;
  std::vector<oracle::element> in, out;
  std::vector<event> events;
};

struct on_mailbox {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t const size : {1, 2, 3, 4, 5, 8, 9})
      for (std::size_t const count : {std::size_t{2}, cases::large_count<Contract>(size)})
        for (rank_t const root : cases::roots<Contract>(size))
          if (collx::supports<Schedule>(size)) run<Algorithm, Contract, Schedule>(size, count, root);
  }

  template <class Algorithm, class Contract, class Schedule>
  void run(rank_t size, std::size_t count, rank_t root) {
    CAPTURE(Contract::name);
    CAPTURE(Algorithm::name);
    CAPTURE(size);
    CAPTURE(count);
    CAPTURE(root);
    collx::bootstrap::mailbox_ranks<> ranks(size, 3, {.staging_bytes = cases::staging_bytes},
                                            static_cast<std::uint64_t>(collx::depth<Schedule>(size)));
    std::vector<traced_rank<Schedule>> all(static_cast<std::size_t>(size), {size, count});
    collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(all.size());
    for (rank_t r = 0; r < size; ++r) {
      auto const i = static_cast<std::size_t>(r);
      auto& engine = ranks[r].engine();
      requests[i] = {engine, engine.start({Contract::name, Algorithm::name}, all[i].maker(engine, root))};
    }
    REQUIRE(ranks.drive(requests) == collx::status::ok);
    for (rank_t r = 0; r < size; ++r) all[static_cast<std::size_t>(r)].check({r, size, root});
    most_fragments = std::max(most_fragments, all[0].fragments);
  }

  std::size_t most_fragments = 0;
};

struct on_threads {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t const size : {2, 3, 4, 5}) {
      if (!collx::supports<Schedule>(size)) continue;
      CAPTURE(Contract::name);
      CAPTURE(Algorithm::name);
      std::vector<traced_rank<Schedule>> all(static_cast<std::size_t>(size),
                                             {size, cases::large_count<Contract>(size)});
      watched::on_threads(size,
                          [&](collx::communicator<collx::transport::threads>& comm) {
                            auto& engine = comm.engine();
                            auto& mine = all[static_cast<std::size_t>(comm.rank())];
                            auto const what = [] {
                              return collx::exec::call{Contract::name, Algorithm::name};
                            };
                            if (engine.run(what, mine.maker(engine, 0)) != collx::status::ok)
                              throw collx::error(comm.failure());
                          },
                          {.staging_bytes = cases::staging_bytes});
      for (rank_t r = 0; r < size; ++r) all[static_cast<std::size_t>(r)].check({r, size, 0});
    }
  }
};

}  // namespace

TEST_CASE("mailbox: the steps taken are the steps of the schedule, for every fragment") {
  on_mailbox all;
  collx::for_each_schedule<sample::algorithms, collx::contract::all>(all);
  CHECK(all.most_fragments > 1);
}

TEST_CASE("threads: the steps taken are the steps of the schedule, for every fragment") {
  collx::for_each_schedule<sample::algorithms, collx::contract::all>(on_threads{});
}
