// SPDX-License-Identifier: Apache-2.0
// The transports collx_perf offers, with how each starts its ranks.
#pragma once

#include "collx/transport/shm.hpp"
#include "collx/transport/threads.hpp"
