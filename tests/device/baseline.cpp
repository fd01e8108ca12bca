// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since it is left out where nothing is optimised
// sanitizers: no, without optimisation it is what the tests run that it includes
// What processors without 512-bit vectors run, also where there are some: tests compiled as if there were
// none.
#include "collx/core/config.hpp"
#undef COLLX_WIDE_VECTORS

#include "device/host_combine.cpp"
#include "device/stream.cpp"
