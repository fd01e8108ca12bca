// SPDX-License-Identifier: Apache-2.0
// Greedy from the smallest size: the algorithm that stays good for longest gets the next row, which
// gives the fewest rows there can be. A difference within the noise is no reason for a row.
#include "table.hpp"

#include <algorithm>
#include <cmath>

namespace tuning {
namespace {

constexpr double as_good = 1.05;

struct sized_times {
  std::int64_t bytes;
  times const* of;
};

double best_of(times const& of) {
  double best = of.begin()->second;
  for (auto const& [algorithm, us] : of) best = std::min(best, us);
  return best;
}

bool good(sized_times const& size, std::string const& algorithm) {
  auto const found = size.of->find(algorithm);
  return found != size.of->end() && found->second <= as_good * best_of(*size.of);
}

// How many sizes from `begin` on the algorithm is good at, and by how much it misses the best of them.
struct reach {
  std::size_t sizes = 0;
  double missed = 0;

  [[nodiscard]] bool beats(reach const& other) const {
    return sizes != other.sizes ? sizes > other.sizes : missed < other.missed;
  }
};

reach reach_of(std::vector<sized_times> const& sizes, std::size_t begin, std::string const& algorithm) {
  reach found;
  for (std::size_t i = begin; i < sizes.size() && good(sizes[i], algorithm); ++i) {
    ++found.sizes;
    found.missed += std::log(sizes[i].of->at(algorithm) / best_of(*sizes[i].of));
  }
  return found;
}

// Where between two measured sizes the second algorithm catches up: linear in the logarithms.
std::int64_t crossover(sized_times const& low, sized_times const& high, std::string const& before,
                       std::string const& after) {
  auto const lead = [&](sized_times const& at) {  // below 0: `before` is faster
    auto const a = at.of->find(before), b = at.of->find(after);
    return a == at.of->end() || b == at.of->end() ? 0.0 : std::log(a->second / b->second);
  };
  double const from = lead(low), to = lead(high);
  if (from >= 0 || to <= 0) return low.bytes;
  double const part = from / (from - to);
  double const bytes = static_cast<double>(low.bytes) *
                       std::pow(static_cast<double>(high.bytes) / static_cast<double>(low.bytes), part);
  return std::clamp(static_cast<std::int64_t>(bytes), low.bytes, high.bytes - 1);
}

void add_rows(std::vector<entry>& table, cell_key const& key, std::vector<sized_times> const& sizes) {
  for (std::size_t begin = 0; begin < sizes.size();) {
    std::string chosen;
    reach longest;
    for (auto const& [algorithm, us] : *sizes[begin].of)
      if (reach const r = reach_of(sizes, begin, algorithm); r.beats(longest))
        chosen = algorithm, longest = r;
    if (begin > 0)
      table.back().bytes_max = crossover(sizes[begin - 1], sizes[begin], table.back().algorithm, chosen);
    table.push_back({key.where, key.collective, chosen});
    begin += longest.sizes;
  }
}

}  // namespace

std::vector<entry> table_of(results const& measured) {
  std::vector<entry> table;
  // In the map, sizes of one collective in one setting follow each other, ascending.
  for (auto at = measured.begin(); at != measured.end();) {
    cell_key const key = at->first;
    std::vector<sized_times> sizes;
    for (; at != measured.end() && at->first.where == key.where && at->first.collective == key.collective;
         ++at)
      sizes.push_back({at->first.block_bytes, &at->second});
    add_rows(table, key, sizes);
  }
  // Narrow rows stand before wide ones: fewer ranks first.
  std::sort(table.begin(), table.end(), [](entry const& a, entry const& b) {
    return std::tie(a.collective, a.where.transport, a.where.memory, a.where.ranks, a.bytes_max) <
           std::tie(b.collective, b.where.transport, b.where.memory, b.where.ranks, b.bytes_max);
  });
  return table;
}

}  // namespace tuning
