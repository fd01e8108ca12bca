// SPDX-License-Identifier: Apache-2.0
// The algorithms that the tables of transports with near peers name (message_tables.hpp), which include this.
#pragma once

#include "collx/algo/hierarchical.hpp"
#include "collx/tune/message_algorithms.hpp"
