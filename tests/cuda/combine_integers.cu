// SPDX-License-Identifier: Apache-2.0
// Reductions of integers as kernels: every operator, compared with the host where there is a GPU.
#include "device_trials.cuh"

int main(int argc, char** argv) {
  std::vector<device_trials::subject> all;
  device_trials::add_operators<bool>(all, "bool");
  device_trials::add_operators<signed char>(all, "signed char");
  device_trials::add_operators<unsigned char>(all, "unsigned char");
  device_trials::add_operators<short>(all, "short");
  device_trials::add_operators<unsigned short>(all, "unsigned short");
  device_trials::add_operators<int>(all, "int");
  device_trials::add_operators<unsigned>(all, "unsigned");
  device_trials::add_operators<long long>(all, "long long");
  device_trials::add_operators<unsigned long long>(all, "unsigned long long");
  return device_trials::run(all, argc, argv);
}
