// SPDX-License-Identifier: Apache-2.0
// mistake: -fno-exceptions
// first error: collx needs exceptions
#include "collx/collx.hpp"
