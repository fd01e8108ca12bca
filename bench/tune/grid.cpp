// SPDX-License-Identifier: Apache-2.0
// The list of measurements.
#include "grid.hpp"

#include <algorithm>
#include <cstdio>

#include "../perf/names.hpp"

namespace tuning {
namespace {

void add_cell(std::vector<item>& items, int round, cell_key const& cell) {
  auto const first = static_cast<std::ptrdiff_t>(items.size());
  for (perf::algorithm_entry const& entry : perf::algorithms_for(cell.collective, cell.where.ranks))
    if (entry.supported) items.push_back({cell, entry.name, round});
  std::ptrdiff_t const count = static_cast<std::ptrdiff_t>(items.size()) - first;
  if (count > 0) std::rotate(items.begin() + first, items.begin() + first + round % count, items.end());
}

// With noise of some 10 % a median of five rounds misses by less than this.
constexpr double close = 1.25;

bool is_close(times const& of, std::string const& algorithm) {
  auto const found = of.find(algorithm);
  if (found == of.end()) return false;
  return std::all_of(of.begin(), of.end(),
                     [&](auto const& each) { return found->second <= close * each.second; });
}

}  // namespace

std::string words(setting const& s) {
  return s.transport + ", " + s.memory + " memory, " + std::to_string(s.ranks) + " ranks";
}

std::vector<setting> settings_of(options const& o) {
  std::vector<setting> all;
  for (std::string const& transport : o.transports)
    for (int const ranks : o.ranks)
      for (std::string const& memory : o.memories) {
        // Threads reach all of each other's memory.
        if (transport == "threads" && memory != o.memories.front()) continue;
        all.push_back({transport, transport == "threads" ? "any" : memory, ranks});
      }
  return all;
}

std::vector<item> items_of(options const& o, setting const& where, int round) {
  std::vector<item> items;
  for (std::string const& collective : o.collectives)
    for (std::int64_t const bytes : collective == "barrier" ? std::vector<std::int64_t>{0} : o.sizes())
      add_cell(items, round, {where, collective, bytes});
  return items;
}

std::vector<item> close_ones(std::vector<item> const& items, results const& so_far) {
  std::vector<item> close_items;
  for (item const& i : items) {
    auto const cell = so_far.find(i.cell);
    if (cell == so_far.end() || !is_close(cell->second, i.algorithm)) continue;
    auto const rivals = std::count_if(cell->second.begin(), cell->second.end(),
                                      [&](auto const& each) { return is_close(cell->second, each.first); });
    if (rivals > 1) close_items.push_back(i);
  }
  return close_items;
}

std::string human(std::int64_t bytes) {
  char const* const units[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 3) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", value, units[unit]);
  return text;
}

}  // namespace tuning
