// SPDX-License-Identifier: Apache-2.0
// Compiles the collective that main.cpp only knows by `extern template`.
#include "calls.hpp"

template struct collx::compiled_collective<collx::contract::all_reduce, float, sum_elsewhere,
                                           collx::transport::shm::endpoint, collx::automatic>;
