// SPDX-License-Identifier: Apache-2.0
// What the user of collx_tune asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuning {

struct options {
  std::vector<std::string> collectives, transports{"shm", "threads"}, memories{"private", "symmetric"};
  std::vector<int> ranks{2};
  std::int64_t min_bytes = 8, max_bytes = std::int64_t{2} << 20, factor = 2;
  std::int64_t pool_bytes = 0, iterations = 0, batches = 10;
  std::int64_t limit_seconds = 0, timeout_seconds = 30;
  int rounds = 5, more = 10;
  bool between = false, resume = false, help = false;
  std::string out = "collx_tuning", name = "my_tuning", check;

  // The sizes, of one block.
  [[nodiscard]] std::vector<std::int64_t> sizes() const;
  [[nodiscard]] std::string state_path() const { return out + (check.empty() ? ".jsonl" : ".check.jsonl"); }
};

// Throws perf::usage_error.
[[nodiscard]] options parse(int argc, char const* const* argv);
void print_help();

}  // namespace tuning
