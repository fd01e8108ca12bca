// SPDX-License-Identifier: Apache-2.0
// The levels of reproducibility as a caller meets them: every algorithm of every collective that combines
// is held to the level that it states, and a required level to what it promises.
// sanitizers: no
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/core/random.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::level_of;
using collx::rank_t;
using collx::reproducibility;
using collx::reproducible;
using bits = std::vector<std::uint32_t>;
using combining =
    collx::type_list<collx::contract::all_reduce, collx::contract::reduce_scatter, collx::contract::reduce,
                     collx::contract::scan, collx::contract::exclusive_scan>;

// Elements of a block: several fragments with the least staging memory, and no multiple of anything.
constexpr std::size_t count = 9007;
constexpr collx::transport::settings few_fragments{.staging_bytes = 1 << 20};
constexpr collx::transport::settings many_fragments{.staging_bytes = 1 << 16};

// Of very different sizes, so that every order of additions rounds differently.
float contribution(rank_t rank, std::size_t i) {
  collx::replayable_random random(static_cast<std::uint64_t>(rank) * 1'000'003 + i);
  float const digits = static_cast<float>(random.below(1u << 24)) - 0x1p23f;
  return std::ldexp(digits, static_cast<int>(random.below(16)) - 30);
}

// One rank's call.
template <class Contract>
struct part {
  collx::problem p;
  std::size_t block;
  std::vector<float> in{}, out{};

  part(rank_t rank, rank_t size, std::size_t elements)
      : p{rank, size, Contract::rooted ? size / 2 : 0}, block(elements) {
    in.resize(block * static_cast<std::size_t>(Contract::input(p).count));
    out.resize(block * static_cast<std::size_t>(Contract::output(p).count));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = contribution(rank, i);
  }

  template <class Form>
  auto call(auto& comm) {
    std::span<float> to = out;
    if (!Contract::sharded && !Contract::rooted) {
      out.resize(block);
      to = out;
    }
    return forms::apply<Form, Contract>(comm, p.root, false, std::span<float const>(in), to, collx::sum);
  }

  // Nothing where this rank gets no result.
  [[nodiscard]] bits result() const {
    bits all(Contract::output(p).count == 0 ? 0 : out.size());
    if (!all.empty()) std::memcpy(all.data(), out.data(), all.size() * sizeof(float));
    return all;
  }
};

template <class Algorithm, class Contract>
std::vector<bits> on_mailbox(rank_t size, std::size_t block, std::uint64_t seed,
                             collx::transport::settings settings) {
  collx::bootstrap::mailbox_ranks<> ranks(size, seed, settings);
  std::vector<part<Contract>> parts;
  for (rank_t r = 0; r < size; ++r) parts.emplace_back(r, size, block);
  collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests[i] = parts[i].template call<forms::started<Algorithm>>(ranks[parts[i].p.rank]);
  REQUIRE(ranks.drive(requests) == collx::status::ok);
  std::vector<bits> all;
  for (auto const& each : parts) all.push_back(each.result());
  return all;
}

// Throws on the rank that gets something else.
template <class Algorithm, class Contract, class Transport>
void require_same(collx::communicator<Transport>& comm, std::size_t block,
                  std::vector<bits> const& expected) {
  part<Contract> mine(comm.rank(), comm.size(), block);
  mine.template call<forms::blocking<Algorithm>>(comm);
  if (mine.result() != expected[static_cast<std::size_t>(comm.rank())])
    throw std::runtime_error(std::string(Contract::name) + "<" + Algorithm::name + ">: other bits");
}

template <class Algorithm, class Contract>
void require_same_everywhere(rank_t size, std::size_t block, std::vector<bits> const& expected) {
  for (auto const settings : {few_fragments, many_fragments}) {
    CHECK((on_mailbox<Algorithm, Contract>(size, block, 4, settings) == expected));
    watched::on_threads(
        size,
        [&](collx::communicator<collx::transport::threads>& comm) {
          require_same<Algorithm, Contract>(comm, block, expected);
        },
        settings);
    auto const codes = watched::on_processes(
        size,
        [&](collx::communicator<collx::transport::shm>& comm) {
          require_same<Algorithm, Contract>(comm, block, expected);
          collx::barrier(comm);  // a rank that only sends must not end before all have joined
        },
        settings);
    for (int const code : codes) CHECK(code == 0);
  }
}

struct keeps_its_level {
  rank_t size;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    if (!collx::supports<Schedule>(size)) return;
    std::string const algorithm = Algorithm::name, collective = Contract::name;
    CAPTURE(algorithm);
    CAPTURE(collective);
    constexpr reproducibility level = level_of<Schedule>();
    std::vector<bits> const expected = on_mailbox<Algorithm, Contract>(size, count, 1, many_fragments);
    if constexpr (level >= reproducibility::same_on_every_rank &&
                  std::is_same_v<Contract, collx::contract::all_reduce>)
      for (bits const& each : expected) CHECK((each == expected[0]));
    if constexpr (level >= reproducibility::run_to_run)
      for (std::uint64_t const seed : {2u, 3u})
        CHECK((on_mailbox<Algorithm, Contract>(size, count, seed, many_fragments) == expected));
    if constexpr (level >= reproducibility::any_transport)
      require_same_everywhere<Algorithm, Contract>(size, count, expected);
  }
};

}  // namespace

TEST_CASE("every algorithm of every collective that combines keeps the level that it states") {
  for (rank_t const size : {2, 3, 5, 8}) {
    CAPTURE(size);
    collx::for_each_schedule<sample::algorithms, combining>(keeps_its_level{size});
  }
}

TEST_CASE("what a level promises holds for what the library chooses, small and large") {
  using anywhere = reproducible<reproducibility::any_transport>;
  for (rank_t const size : {2, 3, 5})
    for (std::size_t const block : {std::size_t{7}, std::size_t{1500}, count}) {
      CAPTURE(size);
      CAPTURE(block);
      auto const check = [&]<class Contract>() {
        auto const expected = on_mailbox<anywhere, Contract>(size, block, 1, few_fragments);
        require_same_everywhere<anywhere, Contract>(size, block, expected);
      };
      combining::for_each(check);
    }
}

TEST_CASE("integers have every level") {
  for (rank_t const size : {1, 2, 3, 5})
    watched::on_threads(size, [](collx::communicator<collx::transport::threads>& comm) {
      std::vector<long> v(100, 60 / comm.size()), lowest(100, comm.rank());
      collx::all_reduce<reproducible<reproducibility::any_size>>(comm, v, collx::sum);
      collx::reduce<reproducible<reproducibility::any_size>>(comm, lowest, collx::min, 0);
      if (v != std::vector<long>(100, 60)) throw std::runtime_error("sum");
      if (lowest != std::vector<long>(100, comm.rank())) throw std::runtime_error("min");
    });
  static_assert(collx::is_exact<collx::sum_t, unsigned char>() && !collx::is_exact<collx::sum_t, float>());
  static_assert(!collx::is_exact<decltype(collx::accumulate_in<float>(collx::sum)), int>());
}

TEST_CASE("a level may be required of collectives that combine nothing") {
  watched::on_threads(3, [](collx::communicator<collx::transport::threads>& comm) {
    std::vector<float> one(1, static_cast<float>(comm.rank())), all(3);
    collx::all_gather<reproducible<reproducibility::any_size>>(comm, one, all);
    if (all != std::vector<float>{0, 1, 2}) throw std::runtime_error("all_gather");
  });
}
