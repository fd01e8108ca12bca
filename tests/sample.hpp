// SPDX-License-Identifier: Apache-2.0
// What tests walk that compile code for every pair of an algorithm and something else (an element type, an
// operator): all algorithms, or one of each kind, under a sanitizer, where that code takes four times as long
// to compile, and where COLLX_TEST_SAMPLE is defined. The matrix runs every algorithm all the same, but
// with some numbers of ranks only: at -O0 under a sanitizer all of them take minutes.
#pragma once

#include "collx/algo/all.hpp"
#include "collx/op/small_float.hpp"
#include "is_sample.hpp"

namespace sample {

#if defined(COLLX_TEST_SAMPLE)
using algorithms =
    collx::type_list<collx::algo::direct_one_shot, collx::algo::direct_two_shot, collx::algo::knomial_tree<4>,
                     collx::algo::pat, collx::algo::recursive_doubling,
                     collx::algo::recursive_halving_doubling, collx::algo::ring>;
template <class>
using types_of = collx::type_list<std::int32_t, float, collx::bfloat16>;
#else
using algorithms = collx::algo::all;
template <class All>
using types_of = All;
#endif

}  // namespace sample
