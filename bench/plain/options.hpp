// SPDX-License-Identifier: Apache-2.0
// The command line of the programs that bench/compare starts: PROGRAM COLLECTIVE [--flag value]..., as
// mpi_perf has it, with --ranks, because no launcher says how many there are.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "../perf/method.h"

namespace plain {

struct options {
  std::string collective;
  std::vector<std::int64_t> bytes = {8};
  bool in_place = false, check = true, pinned = true;
  bool fresh = false;  // every input is written before each call
  int ranks = 2, root = 0;
  std::int64_t iterations = 0, batches = 0, warmup = 20;  // 0 iterations or batches: by size
  std::int64_t pool_bytes = method_pool_bytes();
};

[[nodiscard]] inline std::int64_t whole_number(std::string const& flag, std::string const& text) {
  bool const digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || text.size() > 18) throw std::invalid_argument(flag + " wants whole numbers, as in 8,1024");
  return std::strtoll(text.c_str(), nullptr, 10);
}

[[nodiscard]] inline std::vector<std::int64_t> whole_numbers(std::string const& flag,
                                                             std::string const& text) {
  std::vector<std::int64_t> found;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t const comma = std::min(text.find(',', at), text.size());
    found.push_back(whole_number(flag, text.substr(at, comma - at)));
    at = comma + 1;
  }
  return found;
}

// Throws std::invalid_argument that says what to write instead.
[[nodiscard]] inline options parse(int argc, char const* const* argv) {
  if (argc < 2 || argc % 2 != 0) throw std::invalid_argument("usage: COLLECTIVE [--flag value]...");
  options o;
  o.collective = argv[1];
  for (int i = 2; i < argc; i += 2) {
    std::string const flag = argv[i], value = argv[i + 1];
    if (flag == "--bytes") o.bytes = whole_numbers(flag, value);
    else if (flag == "--ranks") o.ranks = static_cast<int>(whole_number(flag, value));
    else if (flag == "--root") o.root = static_cast<int>(whole_number(flag, value));
    else if (flag == "--in-place") o.in_place = whole_number(flag, value) != 0;
    else if (flag == "--fresh") o.fresh = whole_number(flag, value) != 0;
    else if (flag == "--check") o.check = whole_number(flag, value) != 0;
    else if (flag == "--pin") o.pinned = whole_number(flag, value) != 0;
    else if (flag == "--iterations") o.iterations = whole_number(flag, value);
    else if (flag == "--batches") o.batches = whole_number(flag, value);
    else if (flag == "--warmup") o.warmup = whole_number(flag, value);
    else if (flag == "--pool") o.pool_bytes = whole_number(flag, value);
    else throw std::invalid_argument(flag + " is not a flag of this program");
  }
  if (o.ranks < 1 || o.root >= o.ranks) throw std::invalid_argument("--root wants a rank, --ranks 1 or more");
  if (o.fresh) o.pool_bytes = 0;
  return o;
}

}  // namespace plain
