// SPDX-License-Identifier: Apache-2.0
// A program that needs the component cuda, compiled for the host: it has only to compile and link.
#include <collx/device/cuda/grid.cuh>
#include <collx/device/share.hpp>

int main() {
  int devices = 0;
  bool const none = cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0;
  return none || collx::device::share_of(10, 4, 0, 2).count == 8 ? 0 : 1;
}
