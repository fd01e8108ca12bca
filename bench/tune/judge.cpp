// SPDX-License-Identifier: Apache-2.0
// Asks the library what it would do at every measured point.
#include "judge.hpp"

#include <algorithm>

#include "../perf/names.hpp"
#include "../perf/transports.hpp"
#include "collx/tune/selector.hpp"
#include "fit.hpp"

namespace tuning {
namespace {

namespace tune = collx::tune;

constexpr double close_enough = 1.10;

// What the run-time choice needs to know of a collective, on one transport.
tune::selection const* selection_for(cell_key const& cell) {
  tune::selection const* found = nullptr;
  perf::collectives::for_each([&]<class Contract>() {
    using collx::algo::all;
    using shm = collx::transport::shm::endpoint;
    using threads = collx::transport::threads::endpoint;
    if (cell.collective != Contract::name) return;
    found = cell.where.transport == "shm" ? &tune::detail::selection_of<all, Contract, shm, true>
                                          : &tune::detail::selection_of<all, Contract, threads, true>;
  });
  return found;
}

void count(verdict& v, cell_key const& cell, times const& of, char const* chosen) {
  auto const found = of.find(chosen);
  if (found == of.end()) return;
  double best = found->second;
  for (auto const& [algorithm, us] : of) best = std::min(best, us);
  double const ratio = found->second / best;
  ++v.points;
  v.within += ratio <= close_enough;
  if (ratio <= v.worst) return;
  v.worst = ratio;
  v.worst_at =
      cell.collective + " of " + human(cell.block_bytes) + " by " + chosen + " (" + words(cell.where) + ")";
}

}  // namespace

std::vector<verdict> judge(results const& measured, tune::settings const& said) {
  verdict table{"this table"}, built_in{"built-in table"}, model{"cost model"};
  for (auto const& [cell, of] : measured) {
    if (of.size() < 2) continue;  // no choice, no merit
    tune::selection const* const s = selection_for(cell);
    tune::word const transport(cell.where.transport.c_str());
    tune::memory_kind memory = memory_of(cell.where.memory);
    if (memory == tune::memory_kind::any) memory = tune::memory_kind::symmetric;
    tune::question q{static_cast<std::size_t>(cell.block_bytes), cell.where.ranks, &transport, memory};
    // As of a program that says what it has; threads reach all memory anyway.
    q.with.symmetric = memory == tune::memory_kind::symmetric || cell.where.transport == "threads";
    tune::decision d;
    if (tune::detail::by_table(*s, q, said.table(), d)) count(table, cell, of, d.named.text);
    if (tune::detail::by_built_in(*s, q, d)) count(built_in, cell, of, d.named.text);
    count(model, cell, of, tune::cheapest(*s, q, &said).named.text);
  }
  return {table, built_in, model};
}

}  // namespace tuning
