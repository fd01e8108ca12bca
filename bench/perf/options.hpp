// SPDX-License-Identifier: Apache-2.0
// What the user of collx_perf asks for. The flags of nccl-tests keep their letters and meaning.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace perf {

struct algorithm_entry;

// Bad input. The text says what was wrong and what to do instead.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct options {
  std::string collective;
  std::string transport = "shm";
  std::string algorithm = "auto";
  std::string memory = "private";
  std::string places = "both";
  std::string state = "rotating";
  std::string pin = "auto";
  std::string json_path;
  std::vector<std::int64_t> bytes;  // from --bytes, or from the range below
  std::int64_t min_bytes = 8, max_bytes = std::int64_t{32} << 20;
  std::int64_t step_bytes = 0, step_factor = 4;
  std::int64_t pool_bytes = 0;
  std::int64_t iterations = 0, batches = 0;  // 0: by size
  std::int64_t warmup = 20;
  std::int64_t timeout_seconds = 30;
  int ranks = 2, root = 0;
  bool check = true;
  bool help = false;
  std::vector<std::string> types = {"float"};
  std::vector<std::string> operators = {"sum"};
};

// Throws usage_error. Checks everything that needs no communicator.
[[nodiscard]] options parse(int argc, char const* const* argv);

// Whether ranks, or some of them, talk over TCP.
[[nodiscard]] bool is_networked(options const& asked);

// The algorithms that --algorithm may name, for this collective and transport.
[[nodiscard]] std::vector<algorithm_entry> algorithms_for(options const& asked);

// A whole number from `low` to `high`. Throws usage_error that names `flag`.
[[nodiscard]] std::int64_t parse_count(char const* flag, std::string const& text, std::int64_t low,
                                       std::int64_t high);

// "4096", "32K", "1M", "2G" (binary multiples). Throws usage_error that names `flag`.
[[nodiscard]] std::int64_t parse_bytes(char const* flag, std::string const& text);

void print_help();

}  // namespace perf
