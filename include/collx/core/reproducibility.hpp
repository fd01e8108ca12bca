// SPDX-License-Identifier: Apache-2.0
// What can be relied on when a reduction is done again, in levels. A schedule states the one it has, the
// verifier holds it to that, and a caller can require one: docs/reproducibility.md.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// Each level includes those before it. All of them are about the bits of the result for the same
// contributions, operator and machine code.
enum class reproducibility : std::uint8_t {
  none,
  same_on_every_rank,  // every rank that gets a result gets the same one
  run_to_run,          // the same call, in the same place and with the same settings, gives it again
  any_transport,       // so do other transports, memory and settings, and other places in the vector
  any_size             // so do other numbers of ranks
};

// The algorithm argument by which a caller requires a level: the library chooses, but only what has it.
//
//   all_reduce<reproducible<reproducibility::any_transport>>(comm, in, out, sum);
//
// From any_transport on it chooses alike on every transport. any_size is had by operators that are exact
// on the element type (integers); for others there is all_reduce_fixed_tree.
template <reproducibility Level>
struct reproducible {
  static constexpr char const* name = "reproducible";
  static constexpr reproducibility level = Level;
};

}  // namespace collx::inline abi_1
