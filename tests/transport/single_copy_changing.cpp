// SPDX-License-Identifier: Apache-2.0
// Whether payloads are staged, lent or posted may change with every question, on each rank by itself: results
// are the same.
// thread sanitizer: no, each rank is a process of one thread
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/pairwise.hpp"
#include "collx/collx.hpp"
#include "collx/core/random.hpp"
#include "is_sample.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

// Answers as its seed says.
template <class Endpoint>
class changing_endpoint : public fetching_endpoint<Endpoint> {
 public:
  using fetching_endpoint<Endpoint>::fetching_endpoint;
  bool lends(collx::transport::copying) noexcept { return answers.below(2) == 0; }
  bool stages_slowly() noexcept { return answers.below(2) == 0; }
  collx::replayable_random answers{0};
};
struct changing {
  using world = collx::transport::shm::world;
  using endpoint = changing_endpoint<collx::transport::shm::endpoint>;
  using membership = collx::transport::shm::membership_of<changing>;
};
using communicator = collx::communicator<changing>;

// Element i of what rank r gives.
int given(rank_t r, std::size_t i) { return r * 1000 + static_cast<int>(i % 997); }
std::vector<int> inputs(rank_t r, std::size_t count) {
  std::vector<int> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = given(r, i);
  return made;
}

struct round_of {
  communicator& comm;
  std::size_t block;
  rank_t root;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(comm.size()); }
  [[nodiscard]] int sum_at(std::size_t i) const {
    int sum = 0;
    for (rank_t r = 0; r < comm.size(); ++r) sum += given(r, i);
    return sum;
  }
  template <class Expected>
  [[nodiscard]] static bool holds(std::vector<int> const& got, Expected const& expected) {
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != expected(i)) return false;
    return true;
  }

  // The number of the collective that went wrong; 0: none.
  [[nodiscard]] int run() const {
    rank_t const me = comm.rank();
    auto const blocks_of_all = [&](std::size_t i) {
      return given(static_cast<rank_t>(i / block), i % block);
    };
    std::vector<int> const one = inputs(me, block), all = inputs(me, size() * block);
    std::vector<int> out_one(block), out_all(size() * block), vector = one;

    collx::all_reduce(comm, one, std::span(out_one), collx::sum);
    if (!holds(out_one, [&](std::size_t i) { return sum_at(i); })) return 1;
    collx::all_reduce(comm, std::span(vector), collx::sum);
    if (!holds(vector, [&](std::size_t i) { return sum_at(i); })) return 2;
    collx::reduce_scatter(comm, all, std::span(out_one), collx::sum);
    std::size_t const mine = static_cast<std::size_t>(me) * block;
    if (!holds(out_one, [&](std::size_t i) { return sum_at(mine + i); })) return 3;
    collx::all_gather(comm, one, std::span(out_all));
    if (!holds(out_all, blocks_of_all)) return 4;
    std::fill(out_all.begin(), out_all.end(), -1);
    auto const exchanged = [&](std::size_t i) {
      return given(static_cast<rank_t>(i / block), mine + i % block);
    };
    collx::all_to_all(comm, all, std::span(out_all));
    if (!holds(out_all, exchanged)) return 5;
    std::fill(out_all.begin(), out_all.end(), -1);
    collx::all_to_all<collx::algo::pairwise>(comm, all, std::span(out_all));
    if (!holds(out_all, exchanged)) return 6;
    vector = one;
    collx::broadcast(comm, std::span(vector), root);
    if (!holds(vector, [&](std::size_t i) { return given(root, i); })) return 7;
    std::fill(out_one.begin(), out_one.end(), -1);
    collx::reduce(comm, one, std::span(out_one), collx::sum, root);
    if (me == root && !holds(out_one, [&](std::size_t i) { return sum_at(i); })) return 8;
    std::fill(out_all.begin(), out_all.end(), -1);
    collx::gather(comm, one, std::span(out_all), root);
    if (me == root && !holds(out_all, blocks_of_all)) return 9;
    collx::scatter(comm, all, std::span(out_one), root);
    if (!holds(out_one, [&](std::size_t i) { return given(root, mine + i); })) return 10;
    return 0;
  }
};

}  // namespace

TEST_CASE("single copy: that ranks change between staging and lending changes no result") {
  system_copies::say_if_refused();
  for (rank_t const ranks : {2, 3, 4}) {
    if (!sample::takes_running(ranks)) continue;
    CAPTURE(ranks);
    auto const codes = watched::on_processes<changing>(
        ranks,
        [](communicator& comm) {
          collx::barrier(comm);
          if (!permitted(comm)) return 0;
          auto& endpoint = comm.engine().endpoint();
          endpoint.answers = collx::replayable_random(static_cast<std::uint64_t>(comm.rank()) + 1);
          for (int round = 0; round < 12; ++round)
            for (std::size_t const block : {3'000u, 20'000u, 77'777u}) {
              int const wrong = round_of{comm, block, round % comm.size()}.run();
              if (wrong != 0) return wrong;
            }
          // Longer than what is fetched where staging is quick, on any processor with less than 2 MiB a core.
          if (int const wrong = round_of{comm, 1'100'000, 0}.run(); wrong != 0) return wrong;
          return endpoint.fetched + endpoint.posted > 0 ? 0 : 20;
        },
        {.single_copy_bytes = 8192});
    for (int const code : codes) CHECK(code == 0);
  }
}
