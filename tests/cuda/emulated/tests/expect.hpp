// SPDX-License-Identifier: Apache-2.0
// For tests of the emulated runtime.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

inline void expect(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s (last error: %s)\n", what, cudaGetErrorName(cudaPeekAtLastError()));
  std::_Exit(1);
}
inline void expect(cudaError_t got, cudaError_t wanted, char const* what) {
  if (got == wanted) return;
  std::fprintf(stderr, "FAILED: %s: %s instead of %s\n", what, cudaGetErrorName(got),
               cudaGetErrorName(wanted));
  std::_Exit(1);
}
inline void good(cudaError_t got, char const* what) { expect(got, cudaSuccess, what); }
