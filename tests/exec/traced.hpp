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

// The steps of all ranks in the run that proves a schedule.
class proof {
 public:
  template <class Schedule>
  static proof of(collx::shape size, rank_t root = 0) {
    proof made;
    collx::verdict const found =
        collx::verify<Schedule>(size, root, {.in_place = false}, recorder{&made.steps_});
    REQUIRE(found.ok());
    return made;
  }

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
template <class Schedule>
struct traced_rank {
  static constexpr auto op = oracle::operator_for<Schedule>();
  using op_type = std::remove_const_t<decltype(op)>;

  traced_rank(rank_t size, std::size_t count)
      : count_(count), in(static_cast<std::size_t>(size) * count + 1), out(in.size()) {}

  // What the executor at an endpoint goes by.
  template <class Endpoint>
  collx::exec::memory_map map(Endpoint& endpoint, int lane, rank_t root) {
    collx::problem const where{endpoint.rank(), endpoint.size(), root};
    auto const user = [&] {
      return collx::exec::even_buffers<typename Schedule::contract>(where, in.data(), out.data(), false);
    };
    return collx::exec::map_memory<Schedule>(where, user, endpoint.scratch(lane), count_,
                                             sizeof(oracle::element), endpoint.staging_bytes());
  }

  // Returns what engine.start and engine.run call to get the executor.
  template <class Endpoint>
  auto maker(collx::exec::engine<Endpoint>& engine, rank_t root) {
    return [this, &engine, root](int lane) noexcept {
      Endpoint& endpoint = engine.endpoint();
      using contract = typename Schedule::contract;
      fragments = map(endpoint, lane, root).fragments();
      collx::exec::scheduled_call call;
      call.schedule = &collx::exec::erased_schedule_of<Schedule>;
      call.contract = &collx::exec::erased_contract_of<contract>;
      call.combine = collx::exec::detail::combine_for<contract, oracle::element, op_type>();
      call.op = &op;
      call.input = reinterpret_cast<std::byte*>(in.data());
      call.output = reinterpret_cast<std::byte*>(out.data());
      call.count = count_;
      call.element_bytes = sizeof(oracle::element);
      call.what.at.where = {endpoint.rank(), endpoint.size(), root};
      return collx::exec::host_executor<Endpoint, recorder>(endpoint, lane, engine.work(lane), call,
                                                            recorder{&events});
    };
  }

  void check(proof const& proved, collx::problem where) const {
    CAPTURE(where.rank);
    REQUIRE(fragments > 0);
    REQUIRE(events == proved.of_rank(where, fragments));
  }

  std::size_t count_, fragments = 0;
  std::vector<oracle::element> in, out;
  std::vector<event> events;
};

}  // namespace traced
