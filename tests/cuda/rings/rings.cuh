// SPDX-License-Identifier: Apache-2.0
// What most programs here call, all_reduces of floats in a ring, compiled once (rings.cu): each kernel takes
// half a minute for all architectures.
#pragma once

#include <collx/algo/ring.hpp>
#include <collx/gpu.cuh>

extern template struct collx::compiled_gpu_collective<collx::contract::all_reduce, float, collx::sum_t,
                                                      collx::algo::ring>;
extern template struct collx::compiled_gpu_collective<collx::contract::all_reduce, float, collx::max_t,
                                                      collx::algo::ring>;
