// SPDX-License-Identifier: Apache-2.0
// See rings.cuh.
#include "rings.cuh"

COLLX_TEST_RING_OF_FLOATS(template, collx::sum_t);
COLLX_TEST_RING_OF_FLOATS(template, collx::max_t);
