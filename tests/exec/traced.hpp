// SPDX-License-Identifier: Apache-2.0
// One rank of any schedule, whose executor records the steps it takes, and those that the proof took.
#pragma once

#include <vector>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collx/collective/call.hpp"
#include "collx/schedule/verify.hpp"

namespace traced {

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
            collx::primitive const& step) const noexcept {
    events->push_back({where, fragment, index, step});
  }
};

// A schedule as the verifier and as an executor see it, whichever it is: what is done with it is compiled
// once.
struct entry {
  char const* algorithm;
  oracle::collective const* collective;
  collx::detail::subject (*of)(collx::shape, rank_t root);
  collx::exec::erased_schedule const* schedule;
  collx::exec::erased_contract const* contract;
  collx::exec::combine_function combine;
  void const* op;

  [[nodiscard]] bool supports(rank_t size) const { return of(size, 0).supported; }

  // One rank's call, of blocks of `count` elements.
  [[nodiscard]] collx::exec::scheduled_call call(collx::problem where, oracle::element* in,
                                                 oracle::element* out, std::size_t count,
                                                 bool in_place = false) const {
    collx::exec::scheduled_call made;
    made.schedule = schedule;
    made.contract = contract;
    made.combine = combine;
    made.op = op;
    made.input = reinterpret_cast<std::byte*>(in);
    made.output = reinterpret_cast<std::byte*>(out);
    made.count = count;
    made.element_bytes = sizeof(oracle::element);
    made.in_place = in_place;
    made.what.at.where = where;
    return made;
  }
};

template <class Schedule>
inline constexpr auto operator_of = oracle::operator_for<Schedule>();

// `op`: stays where it is.
template <class Algorithm, class Contract, class Schedule, class Op>
entry entry_of(Op const& op) {
  return {Algorithm::name,
          &oracle::collective_of<Contract>,
          &collx::detail::erased<Schedule>::of,
          &collx::exec::erased_schedule_of<Schedule>,
          &collx::exec::erased_contract_of<Contract>,
          collx::exec::detail::combine_for<Contract, oracle::element, Op>(),
          &op};
}

template <class Algorithms>
std::vector<entry> every_schedule() {
  std::vector<entry> list;
  collx::for_each_schedule<Algorithms, collx::contract::all>(
      [&]<class Algorithm, class Contract, class Schedule>() {
        list.push_back(entry_of<Algorithm, Contract, Schedule>(operator_of<Schedule>));
      });
  return list;
}

// The steps of all ranks in the run that proves a schedule.
class proof {
 public:
  static proof of(entry const& schedule, rank_t size, rank_t root) {
    proof made;
    collx::verdict const found =
        collx::detail::verify(schedule.of(size, root), {.in_place = false}, recorder{&made.steps_});
    REQUIRE(found.ok());
    return made;
  }

  // In the order of that run.
  [[nodiscard]] std::vector<event> const& steps() const { return steps_; }
  // Those of one rank, once for every fragment.
  [[nodiscard]] std::vector<event> of_rank(collx::problem where, std::size_t fragments) const {
    std::vector<event> all;
    for (std::size_t f = 0; f < fragments; ++f)
      for (event each : steps_) {
        if (each.where.rank != where.rank) continue;
        each.fragment = f;
        all.push_back(each);
      }
    return all;
  }

 private:
  std::vector<event> steps_;
};

// One rank's buffers, large enough for every contract, and what its executor recorded.
struct traced_rank {
  traced_rank(entry const& schedule, rank_t size, std::size_t count)
      : called(&schedule), count_(count), in(static_cast<std::size_t>(size) * count + 1), out(in.size()) {}

  // What the executor at an endpoint goes by.
  template <class Endpoint>
  collx::exec::memory_map map(Endpoint& endpoint, int lane, rank_t root) {
    collx::problem const where{endpoint.rank(), endpoint.size(), root};
    return collx::exec::map_memory(
        *called->schedule, where,
        collx::exec::even_buffers(*called->contract, where, input(), output(), false), endpoint.scratch(lane),
        count_, sizeof(oracle::element), endpoint.staging_bytes());
  }

  // Returns what engine.start and engine.run call to get the executor.
  template <class Endpoint>
  auto maker(collx::exec::engine<Endpoint>& engine, rank_t root) {
    return [this, &engine, root](int lane) noexcept {
      Endpoint& endpoint = engine.endpoint();
      fragments = map(endpoint, lane, root).fragments();
      collx::exec::scheduled_call const call =
          called->call({endpoint.rank(), endpoint.size(), root}, in.data(), out.data(), count_);
      return collx::exec::host_executor<Endpoint, recorder>(endpoint, lane, engine.work(lane), call,
                                                            recorder{&events});
    };
  }

  void check(proof const& proved, collx::problem where) const {
    CAPTURE(where.rank);
    REQUIRE(fragments > 0);
    REQUIRE(events == proved.of_rank(where, fragments));
  }

  [[nodiscard]] std::byte* input() { return reinterpret_cast<std::byte*>(in.data()); }
  [[nodiscard]] std::byte* output() { return reinterpret_cast<std::byte*>(out.data()); }

  entry const* called;
  std::size_t count_, fragments = 0;
  std::vector<oracle::element> in, out;
  std::vector<event> events;
};

}  // namespace traced
