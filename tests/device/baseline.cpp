// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since it is left out where nothing is optimised
// sanitizers: no, without optimisation it is what the tests run that it includes
// What other processors than those of x86-64 run: tests compiled as if there were one kind of vectors.
#include "collx/core/config.hpp"
#undef COLLX_AVX2
#undef COLLX_AVX512

#include "device/host_combine.cpp"
#include "device/stream.cpp"
