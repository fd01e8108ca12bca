// SPDX-License-Identifier: Apache-2.0
// The ways to one all_reduce of 8 bytes that call_overhead compares.
#pragma once

#include "collx/any_communicator.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/transport/shm.hpp"

using communicator = collx::communicator<collx::transport::shm>;

// The same sum under another name, so that one program holds both: this one is compiled elsewhere.
struct sum_elsewhere : collx::sum_t {};
extern template struct collx::compiled_collective<collx::contract::all_reduce, float, sum_elsewhere,
                                                  collx::transport::shm::endpoint, collx::automatic>;

collx::any_communicator make_erased(communicator&& comm);
