// SPDX-License-Identifier: Apache-2.0
// The list of measurements.
#include "grid.hpp"

#include <cstdio>

#include "../perf/names.hpp"

namespace tuning {
namespace {

void add_cell(std::vector<item>& items, int round, cell_key const& cell) {
  for (perf::algorithm_entry const& entry : perf::algorithms_for(cell.collective, cell.where.ranks))
    if (entry.supported) items.push_back({cell, entry.name, round});
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

std::vector<item> items_of(options const& o, setting const& where) {
  std::vector<item> items;
  for (int round = 0; round < o.rounds; ++round)
    for (std::string const& collective : o.collectives)
      for (std::int64_t const bytes : collective == "barrier" ? std::vector<std::int64_t>{0} : o.sizes())
        add_cell(items, round, {where, collective, bytes});
  return items;
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
