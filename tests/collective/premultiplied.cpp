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

template <class Schedule>
auto operator_of(rank_t rank) {
  auto const factor = static_cast<std::uint32_t>(2 * rank + 3);
  if constexpr (collx::keeps_rank_order<Schedule>()) return scaled_composition{factor};
  else return scaled_addition{factor};
}

element contribution(rank_t rank, std::size_t i) {
  auto const mixed = static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u;
  return {mixed | 1, mixed >> 7};
}

template <class Schedule>
element total(rank_t ranks, std::size_t i) {
  auto const op = operator_of<Schedule>(0);
  element sum = op.prepare(contribution(0, i));
  for (rank_t r = 1; r < ranks; ++r) sum = op(sum, operator_of<Schedule>(r).prepare(contribution(r, i)));
  return sum;
}

// One rank's buffers in one call.
template <class Contract, class Schedule>
struct part {
  collx::problem p;
  std::size_t count;
  bool in_place;
  std::vector<element> in_memory{}, out_memory{};
  std::span<element> in{}, out{};

  void fill() {
    std::size_t const inputs = blocks(Contract::input(p));
    bool const passes_output = !Contract::sharded && (in_place || !Contract::rooted);
    std::size_t const outputs = passes_output ? count : blocks(Contract::output(p));
    in_memory.resize(inputs);
    for (std::size_t i = 0; i < inputs; ++i) in_memory[i] = contribution(p.rank, i);
    out_memory.resize(outputs);
    in = in_memory;
    out = out_memory;
    if (in_place) out = in.subspan(static_cast<std::size_t>(Contract::in_place_at(p)) * count, outputs);
  }

  [[nodiscard]] std::size_t blocks(collx::block_window const& window) const {
    return static_cast<std::size_t>(window.count) * count;
  }

  [[nodiscard]] bool is_right() const {
    collx::block_window const window = Contract::output(p);
    for (std::size_t i = 0; i < blocks(window); ++i) {
      std::size_t const at = i + static_cast<std::size_t>(window.first) * count;
      if (out[i] != total<Schedule>(Contract::contributors(p), at)) return false;
    }
    if (!in_place)
      for (std::size_t i = 0; i < in.size(); ++i)
        if (in[i] != contribution(p.rank, i)) return false;
    return true;
  }
};

template <class F>
void for_each_case(rank_t size, bool rooted, bool sharded, F const& f) {
  for (std::size_t const count : {std::size_t{1}, std::size_t{37}, sharded ? std::size_t{2003} : 9001})
    for (rank_t root = 0; root<(rooted ? size : 1); root += size> 3 ? 3 : 1)
      for (bool const in_place : {false, true}) f(count, root, in_place);
}

// As one rank of a transport with blocking calls.
template <class Transport>
struct on_this_rank {
  collx::communicator<Transport>& comm;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    if (!collx::supports<Schedule>(comm.size())) return;
    auto const op = operator_of<Schedule>(comm.rank());
    for_each_case(comm.size(), Contract::rooted, Contract::sharded,
                  [&](std::size_t count, rank_t root, bool in_place) {
                    part<Contract, Schedule> mine{{comm.rank(), comm.size(), root}, count, in_place};
                    mine.fill();
                    forms::apply<forms::blocking<Algorithm>, Contract>(
                        comm, root, in_place, std::span<element const>(mine.in), mine.out, op);
                    if (!mine.is_right())
                      throw std::runtime_error(std::string(Contract::name) + "<" + Algorithm::name + ">");
                  });
  }
};

struct on_all_mailbox_ranks {
  rank_t size;
  collx::bootstrap::mailbox_ranks<>& ranks;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    if (!collx::supports<Schedule>(size)) return;
    std::string const algorithm = Algorithm::name, collective = Contract::name;
    CAPTURE(algorithm);
    CAPTURE(collective);
    for_each_case(size, Contract::rooted, Contract::sharded,
                  [&](std::size_t count, rank_t root, bool in_place) {
                    std::vector<part<Contract, Schedule>> all;
                    for (rank_t r = 0; r < size; ++r) all.push_back({{r, size, root}, count, in_place});
                    collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(all.size());
                    for (std::size_t i = 0; i < all.size(); ++i) {
                      rank_t const r = all[i].p.rank;
                      all[i].fill();
                      requests[i] = forms::apply<forms::started<Algorithm>, Contract>(
                          ranks[r], root, in_place, std::span<element const>(all[i].in), all[i].out,
                          operator_of<Schedule>(r));
                    }
                    REQUIRE(ranks.drive(requests) == collx::status::ok);
                    for (auto const& each : all) REQUIRE(each.is_right());
                  });
  }
};

// In place, a contribution that was stored is prepared where the input was: nothing may read it as input
// again. The verifier does not look for this, since it is no fault without such operators.
struct stores_before_it_reads {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    for (rank_t const size : {1, 2, 3, 5, 8, 13}) {
      if (!collx::supports<Schedule>(size)) continue;
      for (rank_t rank = 0; rank < size; ++rank) {
        collx::problem const p{rank, size, 0};
        std::vector<bool> stored(static_cast<std::size_t>(collx::chunk_count<Schedule>(size)));
        for (std::int32_t s = 0; s < Schedule::step_count(p); ++s) check_step<Schedule>(p, s, stored);
      }
    }
  }

  template <class Schedule>
  static void check_step(collx::problem p, std::int32_t s, std::vector<bool>& stored) {
    collx::primitive const step = Schedule::step(p, s);
    bool const reads = (step.from.empty() || step.from.contains(p.rank, p.size)) &&
                       step.operand.where == collx::place::input;
    if (!reads) return;
    std::int32_t const chunks = collx::chunk_count<Schedule>(p.size);
    auto const is_stored = [&](collx::region const& r, std::int32_t i) {
      return stored.begin() + r.chunk(r.first_for(0, chunks), i, chunks);
    };
    for (std::int32_t i = 0; i < step.operand.count; ++i) CHECK(!*is_stored(step.operand, i));
    if (!step.store || step.reduce || step.target.where != collx::place::output) return;
    for (std::int32_t i = 0; i < step.target.count; ++i) *is_stored(step.target, i) = true;
  }
};

}  // namespace

TEST_CASE("mailbox: each rank's own contribution is prepared once, by every algorithm") {
  for (rank_t const size : {1, 2, 3, 4, 5, 8, 11}) {
    CAPTURE(size);
    collx::bootstrap::mailbox_ranks<> ranks(size, 5, several_fragments);
    collx::for_each_schedule<sample::algorithms, combining>(on_all_mailbox_ranks{size, ranks});
  }
}

TEST_CASE("threads: each rank's own contribution is prepared once, by every algorithm") {
  for (rank_t const size : {1, 2, 3, 4, 5}) {
    watched::on_threads(
        size,
        [&](collx::communicator<collx::transport::threads>& comm) {
          on_this_rank<collx::transport::threads> const each{comm};
          collx::for_each_schedule<sample::algorithms, combining>(each);
        },
        several_fragments);
  }
}

TEST_CASE("shm: each rank's own contribution is prepared once, by every algorithm") {
  for (rank_t const size : {2, 3, 4}) {
    auto const codes = watched::on_processes(
        size,
        [&](collx::communicator<collx::transport::shm>& comm) {
          collx::for_each_schedule<sample::algorithms, combining>(on_this_rank<collx::transport::shm>{comm});
        },
        several_fragments);
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("no schedule reads as input what it stored of it") {
  collx::for_each_schedule<sample::algorithms, combining>(stores_before_it_reads{});
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
  using collx::premultiplied_sum_t;
  static_assert(collx::reduction<premultiplied_sum_t<double>, float>);
  static_assert(collx::prepares<premultiplied_sum_t<double>, float>);
  static_assert(!collx::reduction<premultiplied_sum_t<float*>, float>);
}
