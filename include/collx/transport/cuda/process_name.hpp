// SPDX-License-Identifier: Apache-2.0
// Which process a rank is, among those of a group, in containers of their own perhaps. Knows no CUDA.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <random>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// Plain bytes.
struct process_name {
  std::int64_t number;
  std::uint64_t incarnation;  // processes in different containers may have the same number

  [[nodiscard]] static process_name mine() { return {getpid(), drawn()}; }
  friend bool operator==(process_name const&, process_name const&) = default;

 private:
  // A number that another process has with no likelihood, unless it was forked from this one: those have
  // different process numbers in the end.
  [[nodiscard]] static std::uint64_t drawn() {
    static std::uint64_t const once = [] {
      std::random_device source;
      return static_cast<std::uint64_t>(source()) << 32 | source();
    }();
    return once;
  }
};

}  // namespace collx::inline abi_1::transport::cuda_parts
