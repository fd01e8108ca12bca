// SPDX-License-Identifier: Apache-2.0
// The one translation unit that compiles them: the same lines without `extern`.
#include "compiled.hpp"

template class collx::communicator<program::shm>;
template collx::communicator<program::shm> collx::connect<program::shm>(collx::transport::settings const&);
template struct collx::compiled_collective<collx::contract::all_reduce, float, collx::sum_t,
                                           program::shm::endpoint, collx::automatic>;
template struct collx::compiled_collective<collx::contract::all_reduce, double, collx::max_t,
                                           program::shm::endpoint, collx::algo::direct_one_shot>;
