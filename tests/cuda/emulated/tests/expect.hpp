// SPDX-License-Identifier: Apache-2.0
// For tests of the emulated runtime.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

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

// In a process of its own: a failure of a GPU is for good. Before this one has used CUDA.
template <class F>
void in_a_child(F const& f, char const* what) {
  pid_t const child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int outcome = 1;
  expect(waitpid(child, &outcome, 0) == child && outcome == 0, what);
}
