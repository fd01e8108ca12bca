// SPDX-License-Identifier: Apache-2.0
// Which call it is, for people and for other ranks: what an engine knows of a collective apart from how it
// runs.
#pragma once

#include "collx/exec/standing.hpp"

namespace collx::inline abi_1::exec {

// The type of a call's elements: for people, and for other ranks.
struct element_kind {
  std::uint64_t number = 0;  // a hash of its name
  std::size_t bytes = 0;
  char name[48] = {};  // as much as there is room for
};
inline constexpr element_kind no_elements{};

// What a collective is called with, apart from its memory: for reports and for checking. Types are
// told apart by hashes of their names.
struct call {
  char const* collective = "";
  char const* algorithm = "";
  char const* op = "";
  char const* form = "blocking";
  element_kind const* element_type = &no_elements;
  std::uint64_t op_type = 0;
  std::uint64_t count = 0;
  rank_t root = 0;
  standing at{};
  char const* root_is = "root";  // what `root` stands for
};

}  // namespace collx::inline abi_1::exec
