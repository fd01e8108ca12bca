// SPDX-License-Identifier: Apache-2.0
// An algorithm of one's own: written in one's own file, proved by the compiler, run at once.
//
// The star: everybody sends its vector to rank 0, which adds them up and sends the sum back. Two
// rounds for any number of ranks; rank 0's links carry all the traffic. The library has no such
// all_reduce, and need not be told of this one.
#include <cstdio>
#include <vector>

#include <collx/bootstrap/local.hpp>
#include <collx/collective/all_reduce.hpp>
#include <collx/schedule/proves.hpp>
#include <collx/schedule/render.hpp>

struct star {
  static constexpr char const* name = "star";
  using contract = collx::contract::all_reduce;
  static constexpr bool keeps_rank_order = true;  // rank 0 combines 0, 1, 2, ...: any operator will do

  static constexpr bool supports(collx::rank_t) { return true; }
  static constexpr int chunk_count(collx::rank_t) { return 1; }  // the vector is not cut
  static constexpr int step_count(collx::problem p) { return p.rank == 0 ? 1 : 2; }

  static constexpr collx::primitive step(collx::problem p, int index) {
    collx::region const mine{collx::place::input, 0, 1};
    collx::region const result{collx::place::output, 0, 1};
    if (p.rank == 0)  // take from everybody, add up, keep, send to everybody
      return {.from = collx::everybody(p.size),
              .to = collx::everybody_after(0, p.size),
              .operand = mine,
              .target = result,
              .reduce = true,
              .store = true,
              .complete = true};
    if (index == 0) return {.to = collx::only(0), .operand = mine};
    return {.from = collx::only(0), .target = result, .store = true};
  }

  // Checked as well: {rounds, messages of the busiest rank, chunks it sends}.
  static constexpr collx::cost documented_cost(collx::rank_t n) { return {n > 1 ? 2 : 0, n - 1, n - 1}; }
};

// Every contribution arrives exactly once, nothing deadlocks, nothing is read too early, and the cost
// is the documented one; for 2 to 8 ranks. Let the others send to the wrong rank, `.to = collx::only(1)`
// where index is 0: it will not compile.
static_assert(collx::proves<star, 2, 8>);

constexpr int rank_count = 5;
constexpr std::size_t element_count = 1000;

// Runs on every rank: element i of rank r is i + r, so the sum over the ranks is known.
template <class World>
void run_star(World& world) {
  std::vector<double> values(element_count);
  for (std::size_t i = 0; i < element_count; ++i) values[i] = static_cast<double>(i) + world.rank();
  collx::all_reduce<star>(world, std::span<double>(values), collx::sum);

  int wrong = 0;
  for (std::size_t i = 0; i < element_count; ++i)
    wrong += values[i] != static_cast<double>(i) * world.size() + world.size() * (world.size() - 1) / 2;
  if (wrong != 0) throw std::runtime_error("the star gave " + std::to_string(wrong) + " wrong elements");
}

int main() {
  std::printf("%s\n", collx::render_text<star>(4).c_str());

  collx::bootstrap::on_threads(rank_count, [](auto& world) { run_star(world); });
  std::printf("%d threads: %zu elements right on every rank\n", rank_count, element_count);

  auto const codes = collx::bootstrap::on_processes(rank_count, [](auto& world) { run_star(world); });
  for (int code : codes)
    if (code != 0) return code;
  std::printf("%d processes: the same\n", rank_count);
}
