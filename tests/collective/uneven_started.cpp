// SPDX-License-Identifier: Apache-2.0
// Started _v collectives of which some rank has no element, and does not know who has: it takes its turn all
// the same, or what it starts next would meet its peers' on other lanes.
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scatter_v.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::blocks;
using collx::rank_t;
using counts_t = std::array<std::size_t, 3>;
using vector = std::vector<int>;

constexpr rank_t ranks = 3, root = 0;
// Rank 1 has nothing; in all_to_all_v it has nothing for anybody, and nobody for it.
constexpr counts_t counts{5, 0, 7};
constexpr std::array<counts_t, 3> pairs{{{1, 0, 4}, {0, 0, 0}, {3, 0, 2}}};
std::array<std::string, 5> const names{"all_gather_v", "reduce_scatter_v", "all_to_all_v", "gather_v",
                                       "scatter_v"};
constexpr std::array kinds{0, 1, 2, 3, 4};

std::size_t at(rank_t rank) { return static_cast<std::size_t>(rank); }
counts_t received(rank_t rank) { return {pairs[0][at(rank)], pairs[1][at(rank)], pairs[2][at(rank)]}; }

// One of them, and behind it sums of one value each, whose lanes tell whether all ranks count alike.
template <class Transport>
class rank_of_it {
  using request = collx::request<typename Transport::endpoint>;

 public:
  rank_of_it(collx::communicator<Transport>& comm, int kind)
      : comm_(comm), own_(counts[at(comm.rank())], comm.rank() + 1), all_(12, comm.rank() + 1) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = static_cast<int>(10 * i) + comm.rank();
    started_[0] = start(kind);
    for (std::size_t i = 0; i < sums_.size(); ++i)
      started_[i + 1] = collx::start::all_reduce(comm_, std::span(&sums_[i], 1));
  }

  request& operator[](std::size_t i) { return started_[i]; }

  // Of each form the elements that a wrong lane would not bring, and the sums.
  void check(int kind) const {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      require(sums_[i] == static_cast<int>(30 * i) + 3, names[at(kind)]);
    bool const everything = kind == 0 || (kind == 3 && comm_.rank() == root);
    if (everything) require(all_ == vector{1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3}, names[at(kind)]);
    if (kind == 1) require(own_ == vector(own_.size(), 6), names[at(kind)]);
    if (kind == 4) require(own_ == vector(own_.size(), root + 1), names[at(kind)]);
    if (kind == 2 && comm_.rank() == 0) require(given_ == vector{1, 3, 3, 3}, names[at(kind)]);
  }

 private:
  request start(int kind) {
    if (kind == 0) return collx::start::all_gather_v(comm_, own_, blocks{all_, counts});
    if (kind == 1) return collx::start::reduce_scatter_v(comm_, blocks{all_, counts}, own_);
    if (kind == 2) {
      std::size_t in = 0, out = 0;
      out_counts_ = received(comm_.rank());
      for (std::size_t r = 0; r < 3; ++r) in += pairs[at(comm_.rank())][r], out += out_counts_[r];
      all_.assign(in, comm_.rank() + 1);
      given_.resize(out);
      return collx::start::all_to_all_v(comm_, blocks{all_, pairs[at(comm_.rank())]},
                                        blocks{given_, out_counts_});
    }
    bool const is_root = comm_.rank() == root;
    if (kind == 3)
      return collx::start::gather_v(comm_, own_, is_root ? blocks<int>{all_, counts} : blocks<int>{}, root);
    return collx::start::scatter_v(comm_, is_root ? blocks<int>{all_, counts} : blocks<int>{}, own_, root);
  }

  collx::communicator<Transport>& comm_;
  vector own_, all_, given_;
  counts_t out_counts_{};
  std::array<int, 3> sums_{};
  std::array<request, 4> started_{};
};

}  // namespace

TEST_CASE("started _v collectives, some rank of which has nothing: threads") {
  for (int const kind : kinds) {
    CAPTURE(names[at(kind)]);
    collx::transport::settings chosen;
    chosen.timeout_us = 30'000'000;
    watched::on_threads(
        ranks,
        [&](auto& comm) {
          rank_of_it mine(comm, kind);
          for (std::size_t i = 0; i < 4; ++i) mine[i].wait();
          mine.check(kind);
        },
        chosen);
  }
}

TEST_CASE("started _v collectives, some rank of which has nothing: mailbox") {
  for (int const kind : kinds)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(names[at(kind)]);
      CAPTURE(seed);
      using transport = collx::transport::mailbox;
      collx::bootstrap::mailbox_ranks<transport> world(ranks, seed);
      std::vector<rank_of_it<transport>> all;
      all.reserve(3);
      for (rank_t r = 0; r < ranks; ++r) all.emplace_back(world[r], kind);
      for (std::size_t i = 0; i < 4; ++i) {
        collx::array<collx::request<transport::endpoint>> requests(3);
        for (std::size_t r = 0; r < 3; ++r) requests[r] = std::move(all[r][i]);
        REQUIRE(world.drive(requests, 1'000'000) == collx::status::ok);
      }
      for (auto const& each : all) each.check(kind);
    }
}

TEST_CASE("blocking _v collectives count on a rank that has nothing as on the others") {
  watched::on_threads(ranks, [&](auto& comm) {
    vector const own(counts[at(comm.rank())], 1);
    vector all(12);
    collx::gather_v(comm, own, comm.rank() == root ? blocks<int>{all, counts} : blocks<int>{}, root);
    if (comm.engine().sequence() != 1) throw std::runtime_error("not counted");
  });
}
