// SPDX-License-Identifier: Apache-2.0
// The state file. Read with the library's own reader of JSON.
#include "state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "../perf/options.hpp"
#include "collx/tune/json.hpp"

namespace tuning {
namespace {

using rounds = std::map<int, double>;  // microseconds, by round

std::vector<double> values(rounds const& of) {
  std::vector<double> all;
  for (auto const& [round, us] : of) all.push_back(us);
  return all;
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[(of.size() - 1) / 2];
}

// What each round of a cell took; 1 where no algorithm was in all of them.
rounds levels(std::map<std::string, rounds> const& algorithms) {
  rounds level;
  for (auto const& [algorithm, us] : algorithms)
    for (auto const& [round, each_us] : us) level[round] = 0;
  int everywhere = 0;
  for (auto const& [algorithm, us] : algorithms) {
    if (us.size() != level.size()) continue;
    ++everywhere;
    for (auto const& [round, each_us] : us) level[round] += std::log(each_us);
  }
  for (auto& [round, sum] : level) sum = everywhere == 0 ? 1 : std::exp(sum / everywhere);
  return level;
}

}  // namespace

state::state(std::string path, bool resume) : path_(std::move(path)) {
  if (resume) read();
  std::ofstream const probe(path_, resume ? std::ios::app : std::ios::trunc);
  if (!probe) throw perf::usage_error("cannot write " + path_ + "; give --out a folder that exists");
}

void state::read() {
  std::uintmax_t whole_bytes = 0;
  {
    std::ifstream in(path_, std::ios::binary);
    std::string line;
    for (; std::getline(in, line) && !in.eof(); whole_bytes += line.size() + 1) read_line(line);
  }
  // A line that a killed run did not finish has no end, and is measured again: the next one is not to stand
  // behind it.
  std::error_code none;
  if (std::filesystem::file_size(path_, none) > whole_bytes && !none)
    std::filesystem::resize_file(path_, whole_bytes);
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
  // As the file has it, so that a run that goes on decides as this one does.
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.5g", us);
  us_[i] = std::strtod(digits, nullptr);
  char line[500];
  int const length = std::snprintf(
      line, sizeof line,
      "{\"transport\": \"%s\", \"memory\": \"%s\", \"ranks\": %d, \"collective\": \"%s\", \"block_bytes\": "
      "%lld, \"algorithm\": \"%s\", \"round\": %d, \"us\": %s}\n",
      i.cell.where.transport.c_str(), i.cell.where.memory.c_str(), i.cell.where.ranks,
      i.cell.collective.c_str(), static_cast<long long>(i.cell.block_bytes), i.algorithm.c_str(), i.round,
      digits);
  std::ofstream out(path_, std::ios::app | std::ios::binary);
  out.write(line, length);
  out.close();
  if (!out) throw std::runtime_error("cannot write to " + path_ + "; is the disk full?");
}

results state::summary(int before) const {
  std::map<cell_key, std::map<std::string, rounds>> samples;
  for (auto const& [i, us] : us_)
    if (i.round < before) samples[i.cell][i.algorithm][i.round] = us;
  results all;
  for (auto const& [cell, algorithms] : samples) {
    rounds const level = levels(algorithms);
    double const usual_us = median(values(level));
    for (auto const& [algorithm, us] : algorithms) {
      std::vector<double> relative;
      for (auto const& [round, each_us] : us) relative.push_back(each_us / level.at(round));
      all[cell][algorithm] = usual_us * median(relative);
    }
  }
  return all;
}

}  // namespace tuning
