// SPDX-License-Identifier: Apache-2.0
// Which call it is, for people and for other ranks: what an engine knows of a collective apart from how it
// runs.
#pragma once

#include "collx/exec/standing.hpp"

namespace collx::inline abi_1::exec {

// What a collective is called with, apart from its memory: for reports and for checking. Types are
// told apart by hashes of their names.
struct call {
  char const* collective = "";
  char const* algorithm = "";
  char const* op = "";
  char const* form = "blocking";
  std::uint64_t element_type = 0;
  std::uint64_t op_type = 0;
  std::uint64_t count = 0;
  rank_t root = 0;
  standing at{};
};

}  // namespace collx::inline abi_1::exec
