// SPDX-License-Identifier: Apache-2.0
// How urgent a started collective is.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// How soon a started collective is moved along when several are in flight on a communicator. Urgent ones
// have a lane of their own, and get a turn after every fragment of the others: a small one does not wait
// for a large one to end. The same on every rank, as the order of starts is.
enum class priority : std::uint8_t { normal, urgent };

}  // namespace collx::inline abi_1
