// SPDX-License-Identifier: Apache-2.0
// What a program says of all calls on a communicator, for the choice of their algorithms. Handed on by split.
#pragma once

#include "collx/core/memory_kind.hpp"

namespace collx::inline abi_1::tune {
class settings;
}

namespace collx::inline abi_1::exec {

struct hints {
  tune::settings const* tuning = nullptr;  // the user's
  memory_kind buffers = memory_kind::any;
};

}  // namespace collx::inline abi_1::exec
