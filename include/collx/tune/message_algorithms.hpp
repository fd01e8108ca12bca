// SPDX-License-Identifier: Apache-2.0
// The algorithms that message_tables.hpp names for message transports, which include this.
#pragma once

#include "collx/algo/binomial_tree.hpp"
#include "collx/algo/bruck.hpp"
#include "collx/algo/dissemination.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/recursive_halving_doubling.hpp"
#include "collx/algo/ring.hpp"
