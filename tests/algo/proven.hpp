// SPDX-License-Identifier: Apache-2.0
// The proof at compile time that every algorithm has.
#pragma once

#include "collx/schedule/proves.hpp"
#include "is_sample.hpp"

// For 1 to 6 ranks; 5 where one compiler of several has proved the rest. More of them, at run time:
// tests/schedule.
template <class Schedule>
inline constexpr bool is_proven = collx::proves < Schedule,
                      1, sample::is_sample ? 5 : 6 > ;
