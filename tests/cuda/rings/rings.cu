// SPDX-License-Identifier: Apache-2.0
// See rings.cuh.
#include "rings.cuh"

template struct collx::compiled_gpu_collective<collx::contract::all_reduce, float, collx::sum_t,
                                               collx::algo::ring>;
template struct collx::compiled_gpu_collective<collx::contract::all_reduce, float, collx::max_t,
                                               collx::algo::ring>;
