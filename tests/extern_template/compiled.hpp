// SPDX-License-Identifier: Apache-2.0
// The recipe of docs/compile_time.md: what this program uses of collx, compiled in compiled.cpp alone.
#pragma once

#include "collx/bootstrap/connect.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/transport/shm.hpp"

namespace program {

using collx::transport::shm;

}  // namespace program

extern template class collx::communicator<program::shm>;
extern template collx::communicator<program::shm> collx::connect<program::shm>(
    collx::transport::settings const&);
extern template struct collx::compiled_collective<collx::contract::all_reduce, float, collx::sum_t,
                                                  program::shm::endpoint, collx::automatic>;
extern template struct collx::compiled_collective<collx::contract::all_reduce, double, collx::max_t,
                                                  program::shm::endpoint, collx::algo::direct_one_shot>;
