// SPDX-License-Identifier: Apache-2.0
// Kernels that most programs here launch, all_reduces of floats in a ring, compiled once (rings.cu): each of
// them takes half a minute for all architectures.
#pragma once

#include <collx/algo/ring.hpp>
#include <collx/gpu.cuh>

#define COLLX_TEST_RING_OF_FLOATS(instantiate, Op)                                                       \
  instantiate cudaError_t collx::exec::launch_lanes<                                                     \
      collx::algo::ring::all_reduce, collx::contract::all_reduce, float, Op,                             \
      collx::transport::windows::lane_port, collx::exec::no_epilogue, collx::exec::no_tables>(           \
      collx::transport::windows::lane_port::group const&, int, collx::exec::chunk_map const&, Op const&, \
      collx::exec::no_epilogue const&, collx::exec::no_tables const&, std::size_t, cudaStream_t) noexcept

COLLX_TEST_RING_OF_FLOATS(extern template, collx::sum_t);
COLLX_TEST_RING_OF_FLOATS(extern template, collx::max_t);
