// SPDX-License-Identifier: Apache-2.0
// Whether this machine has a GPU, asked in a process of its own: one that has asked CUDA cannot be forked
// any more.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_test {

[[nodiscard]] inline bool gpu_is_here() {
  pid_t const child = fork();
  if (child == 0) {
    int count = 0;
    _exit(cudaGetDeviceCount(&count) == cudaSuccess && count > 0 ? 0 : 1);
  }
  int outcome = 1;
  return child > 0 && waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0;
}

inline void require(cudaError_t code, char const* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

}  // namespace gpu_test
