// SPDX-License-Identifier: Apache-2.0
// Collectives on memory of GPUs: needs nvcc 13 and the CMake component collx::cuda. See
// docs/gpu_collectives.md.
#pragma once

#include "collx/collective/gpu_forms.cuh"
#include "collx/collective/gpu_multicast.cuh"
#include "collx/collective/gpu_reductions.cuh"
#include "collx/collective/gpu_registration.cuh"
#include "collx/gpu_communicator.cuh"
