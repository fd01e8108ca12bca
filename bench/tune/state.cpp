// SPDX-License-Identifier: Apache-2.0
// The state file. Read with the library's own reader of JSON.
#include "state.hpp"

#include <algorithm>
#include <fstream>

#include "../perf/options.hpp"
#include "collx/tune/json.hpp"

namespace tuning {

state::state(std::string path, bool resume) : path_(std::move(path)) {
  if (resume) read();
  std::ofstream const probe(path_, resume ? std::ios::app : std::ios::trunc);
  if (!probe) throw perf::usage_error("cannot write " + path_ + "; give --out a folder that exists");
}

void state::read() {
  std::ifstream in(path_);
  std::string line;
  // A line that a killed run did not finish has no end, and is measured again.
  while (std::getline(in, line) && !in.eof()) read_line(line);
}

void state::read_line(std::string const& line) {
  item i;
  double us = 0;
  collx::tune::json_reader json(line.c_str(), path_.c_str());
  json.object([&](char const* key) {
    std::string const k = key;
    char text[100];
    if (k == "transport" || k == "memory" || k == "collective" || k == "algorithm") {
      json.string(text);
      (k == "transport"    ? i.cell.where.transport
       : k == "memory"     ? i.cell.where.memory
       : k == "collective" ? i.cell.collective
                           : i.algorithm) = text;
    } else if (k == "ranks") i.cell.where.ranks = static_cast<int>(json.whole(1, 1 << 20));
    else if (k == "block_bytes") i.cell.block_bytes = json.whole(0, 1LL << 50);
    else if (k == "round") i.round = static_cast<int>(json.whole(0, 1 << 20));
    else if (k == "us") us = json.number();
    else json.refuse("this is no line of collx_tune; remove the file, or do not say --resume");
  });
  us_[i] = us;
}

void state::add(item const& i, double us) {
  us_[i] = us;
  char line[500];
  int const length = std::snprintf(
      line, sizeof line,
      "{\"transport\": \"%s\", \"memory\": \"%s\", \"ranks\": %d, \"collective\": \"%s\", \"block_bytes\": "
      "%lld, \"algorithm\": \"%s\", \"round\": %d, \"us\": %.5g}\n",
      i.cell.where.transport.c_str(), i.cell.where.memory.c_str(), i.cell.where.ranks,
      i.cell.collective.c_str(), static_cast<long long>(i.cell.block_bytes), i.algorithm.c_str(), i.round,
      us);
  std::ofstream out(path_, std::ios::app | std::ios::binary);
  out.write(line, length);
}

results state::summary() const {
  std::map<cell_key, std::map<std::string, std::vector<double>>> samples;
  for (auto const& [i, us] : us_) samples[i.cell][i.algorithm].push_back(us);
  results medians;
  for (auto& [cell, algorithms] : samples)
    for (auto& [algorithm, rounds] : algorithms) {
      std::sort(rounds.begin(), rounds.end());
      medians[cell][algorithm] = rounds[(rounds.size() - 1) / 2];
    }
  return medians;
}

}  // namespace tuning
