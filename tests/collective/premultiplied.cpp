// SPDX-License-Identifier: Apache-2.0
// Operators that prepare each rank's own contribution, differently on every rank: every algorithm of
// every collective that combines, on all transports, in place and not, against a loop over the ranks.
#include "collx/op/premultiplied.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using oracle::element;
using combining =
    collx::type_list<collx::contract::all_reduce, collx::contract::reduce_scatter, collx::contract::reduce,
                     collx::contract::scan, collx::contract::exclusive_scan>;

// Several fragments of every schedule.
constexpr collx::transport::settings several_fragments{.staging_bytes = 64 * 1024};

// Composes functions in rank order, each after it was scaled by a number of its rank's own.
struct scaled_composition {
  static constexpr bool is_commutative = false;
  std::uint32_t factor;
  element prepare(element const& own) const { return {own.a * factor, own.b + factor}; }
  element operator()(element const& f, element const& g) const { return oracle::apply_in_order(f, g); }
};
struct scaled_addition {
  std::uint32_t factor;
  element prepare(element const& own) const { return {own.a * factor, own.b + factor}; }
  element operator()(element const& f, element const& g) const { return oracle::add(f, g); }
};

std::uint32_t factor_of(rank_t rank) { return static_cast<std::uint32_t>(2 * rank + 3); }

template <class Schedule>
auto operator_of(rank_t rank) {
  std::uint32_t const factor = factor_of(rank);
  if constexpr (collx::keeps_rank_order<Schedule>()) return scaled_composition{factor};
  else return scaled_addition{factor};
}

element contribution(rank_t rank, std::size_t i) {
  auto const mixed = static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u;
  return {mixed | 1, mixed >> 7};
}

element total(bool in_order, rank_t ranks, std::size_t i) {
  auto const prepared = [&](rank_t r) { return scaled_addition{factor_of(r)}.prepare(contribution(r, i)); };
  element sum = prepared(0);
  for (rank_t r = 1; r < ranks; ++r)
    sum = in_order ? oracle::apply_in_order(sum, prepared(r)) : oracle::add(sum, prepared(r));
  return sum;
}

// A schedule behind a pointer, which calls it with the operator of a rank: what is done with all of them is
// compiled once.
template <template <class> class Form, class Transport>
struct entry {
  char const* algorithm;
  oracle::collective const* collective;
  bool in_order;
  bool (*supports)(collx::shape);
  typename Form<void>::template result<Transport> (*perform)(collx::communicator<Transport>&, rank_t root,
                                                             bool in_place, std::span<element const> in,
                                                             std::span<element> out);
};

template <template <class> class Form, class Transport>
std::vector<entry<Form, Transport>> const& every_schedule() {
  static auto const found = [] {
    std::vector<entry<Form, Transport>> list;
    collx::for_each_schedule<sample::algorithms, combining>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          list.push_back({Algorithm::name, &oracle::collective_of<Contract>,
                          collx::keeps_rank_order<Schedule>(), &collx::supports<Schedule>,
                          [](collx::communicator<Transport>& comm, rank_t root, bool in_place,
                             std::span<element const> in, std::span<element> out) {
                            return forms::apply<Form<Algorithm>, Contract>(
                                comm, root, in_place, in, out, operator_of<Schedule>(comm.rank()));
                          }});
        });
    return list;
  }();
  return found;
}

// One rank's buffers in one call.
struct part {
  oracle::collective const& what;
  bool in_order;
  collx::problem p;
  std::size_t count;
  bool in_place;
  std::vector<element> in_memory{}, out_memory{};
  std::span<element> in{}, out{};

  void fill() {
    std::size_t const inputs = blocks(what.input(p));
    bool const passes_output = !what.sharded && (in_place || !what.rooted);
    std::size_t const outputs = passes_output ? count : blocks(what.output(p));
    in_memory.resize(inputs);
    for (std::size_t i = 0; i < inputs; ++i) in_memory[i] = contribution(p.rank, i);
    out_memory.resize(outputs);
    in = in_memory;
    out = out_memory;
    if (in_place) out = in.subspan(static_cast<std::size_t>(what.in_place_at(p)) * count, outputs);
  }

  [[nodiscard]] std::size_t blocks(collx::block_window const& window) const {
    return static_cast<std::size_t>(window.count) * count;
  }

  [[nodiscard]] bool is_right() const {
    collx::block_window const window = what.output(p);
    for (std::size_t i = 0; i < blocks(window); ++i) {
      std::size_t const at = i + static_cast<std::size_t>(window.first) * count;
      if (out[i] != total(in_order, what.contributors(p), at)) return false;
    }
    if (!in_place)
      for (std::size_t i = 0; i < in.size(); ++i)
        if (in[i] != contribution(p.rank, i)) return false;
    return true;
  }
};

template <class F>
void for_each_case(oracle::collective const& what, rank_t size, F const& f) {
  for (std::size_t const count : {std::size_t{1}, std::size_t{37}, what.sharded ? std::size_t{2003} : 9001})
    for (rank_t root = 0; root<(what.rooted ? size : 1); root += size> 3 ? 3 : 1)
      for (bool const in_place : {false, true}) f(count, root, in_place);
}

// As one rank of a transport with blocking calls.
template <class Transport>
void call_all(collx::communicator<Transport>& comm) {
  for (auto const& each : every_schedule<forms::blocking, Transport>()) {
    oracle::collective const& what = *each.collective;
    if (!each.supports(comm.size())) continue;
    for_each_case(what, comm.size(), [&](std::size_t count, rank_t root, bool in_place) {
      part mine{what, each.in_order, {comm.rank(), comm.size(), root}, count, in_place};
      mine.fill();
      each.perform(comm, root, in_place, mine.in, mine.out);
      if (!mine.is_right()) throw std::runtime_error(std::string(what.name) + "<" + each.algorithm + ">");
    });
  }
}

using mailbox = collx::transport::mailbox;

void call_on_all(collx::bootstrap::mailbox_ranks<>& ranks, rank_t size,
                 entry<forms::started, mailbox> const& called) {
  oracle::collective const& what = *called.collective;
  CAPTURE(called.algorithm);
  CAPTURE(what.name);
  for_each_case(what, size, [&](std::size_t count, rank_t root, bool in_place) {
    std::vector<part> all;
    for (rank_t r = 0; r < size; ++r)
      all.push_back({what, called.in_order, {r, size, root}, count, in_place});
    collx::array<collx::request<mailbox::endpoint>> requests(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].fill();
      requests[i] = called.perform(ranks[all[i].p.rank], root, in_place, all[i].in, all[i].out);
    }
    REQUIRE(ranks.drive(requests) == collx::status::ok);
    for (auto const& each : all) REQUIRE(each.is_right());
  });
}

// In place, a contribution that was stored is prepared where the input was: nothing may read it as input
// again. The verifier does not look for this, since it is no fault without such operators.
void check_step(collx::exec::erased_schedule const& schedule, collx::problem p, std::int32_t s,
                std::vector<bool>& stored) {
  collx::primitive const step = schedule.step(p, s);
  bool const reads =
      (step.from.empty() || step.from.contains(p.rank, p.size)) && step.operand.where == collx::place::input;
  if (!reads) return;
  auto const chunks = static_cast<std::int32_t>(stored.size());
  auto const is_stored = [&](collx::region const& r, std::int32_t i) {
    return stored.begin() + r.chunk(r.first_for(0, chunks), i, chunks);
  };
  for (std::int32_t i = 0; i < step.operand.count; ++i) CHECK(!*is_stored(step.operand, i));
  if (!step.store || step.reduce || step.target.where != collx::place::output) return;
  for (std::int32_t i = 0; i < step.target.count; ++i) *is_stored(step.target, i) = true;
}

void check_steps(collx::exec::erased_schedule const& schedule, rank_t size) {
  for (rank_t rank = 0; rank < size; ++rank) {
    collx::problem const p{rank, size, 0};
    std::vector<bool> stored(static_cast<std::size_t>(schedule.facts(size).chunk_count));
    for (std::int32_t s = 0; s < schedule.step_count(p); ++s) check_step(schedule, p, s, stored);
  }
}

}  // namespace

TEST_CASE("mailbox: each rank's own contribution is prepared once, by every algorithm") {
  for (rank_t const size : {1, 2, 3, 4, 5, 8, 11}) {
    if (!sample::takes_running(size)) continue;
    CAPTURE(size);
    collx::bootstrap::mailbox_ranks<> ranks(size, 5, several_fragments);
    for (auto const& each : every_schedule<forms::started, mailbox>())
      if (each.supports(size)) call_on_all(ranks, size, each);
  }
}

TEST_CASE("threads: each rank's own contribution is prepared once, by every algorithm") {
  for (rank_t const size : {1, 2, 3, 4, 5}) {
    if (!sample::takes_running(size)) continue;
    watched::on_threads(
        size, [](auto& comm) { call_all(comm); }, several_fragments);
  }
}

TEST_CASE("shm: each rank's own contribution is prepared once, by every algorithm") {
  for (rank_t const size : {2, 3, 4}) {
    if (!sample::takes_running(size)) continue;
    auto const codes = watched::on_processes(
        size, [](auto& comm) { call_all(comm); }, several_fragments);
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("no schedule reads as input what it stored of it") {
  collx::for_each_schedule<sample::algorithms, combining>([]<class, class, class Schedule>() {
    for (rank_t const size : {1, 2, 3, 5, 8, 13})
      if (collx::supports<Schedule>(size)) check_steps(collx::exec::erased_schedule_of<Schedule>, size);
  });
}

TEST_CASE("premultiplied_sum: a factor per rank, on floats, small floats and symmetric memory") {
  watched::on_threads(3, [](collx::communicator<collx::transport::threads>& comm) {
    float const factor = static_cast<float>(comm.rank() + 1) / 2;
    auto v = comm.allocate<float>(5000);
    std::vector<collx::bfloat16> small(300, collx::bfloat16(8));
    for (float& x : v) x = static_cast<float>(comm.rank() + 1);
    collx::all_reduce(comm, v, collx::premultiplied_sum(factor));
    collx::all_reduce<collx::algo::ring>(comm, small, collx::premultiplied_sum(factor));
    for (float const x : v)
      if (x != 0.5f + 2.0f + 4.5f) throw std::runtime_error("premultiplied float");
    for (float const x : small)
      if (x != 24.0f) throw std::runtime_error("premultiplied bfloat16");
  });
  // An operator written for floats is one of small floats, too, with all its members.
  struct scaled {
    float factor;
    float operator()(float a, float b) const { return a + b; }
    float prepare(float own) const { return factor * own; }
  };
  watched::on_threads(3, [](collx::communicator<collx::transport::threads>& comm) {
    std::vector<collx::bfloat16> small(300, collx::bfloat16(8));
    collx::all_reduce(comm, small, scaled{0.5f});
    for (float const x : small)
      if (x != 12.0f) throw std::runtime_error("a prepare of floats");
  });
  using collx::premultiplied_sum_t;
  static_assert(collx::reduction<premultiplied_sum_t<double>, float>);
  static_assert(collx::prepares<premultiplied_sum_t<double>, float>);
  static_assert(!collx::reduction<premultiplied_sum_t<float*>, float>);
}
