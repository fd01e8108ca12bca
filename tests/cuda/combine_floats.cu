// SPDX-License-Identifier: Apache-2.0
// Reductions of floating-point numbers of 8 to 64 bits as kernels: every operator, compared with the host
// where there is a GPU.
#include <collx/op/premultiplied.hpp>

#include "device_trials.cuh"

namespace {

// What the host rounds twice the device must not round once.
struct third_of_each {
  template <class T>
  COLLX_HD T prepare(T const& own) const {
    return static_cast<T>(own * 0.3f);
  }
  template <class T>
  COLLX_HD T operator()(T const& a, T const& b) const {
    return static_cast<T>(a + b);
  }
};

struct sum_in_double : collx::sum_t {
  template <class T>
  using accumulate = double;
};

}  // namespace

int main(int argc, char** argv) {
  using device_trials::combining;
  std::vector<device_trials::subject> all;
  device_trials::add_operators<float>(all, "float");
  device_trials::add_operators<double>(all, "double");
  device_trials::add_operators<collx::float16>(all, "float16");
  device_trials::add_operators<collx::bfloat16>(all, "bfloat16");
  device_trials::add_operators<collx::float8_e4m3>(all, "float8_e4m3");
  device_trials::add_operators<collx::float8_e5m2>(all, "float8_e5m2");
  all.push_back(combining<float, third_of_each>("float", "premultiplied"));
  all.push_back(combining<double, third_of_each>("double", "premultiplied"));
  all.push_back(combining<collx::bfloat16, third_of_each>("bfloat16", "premultiplied"));
  all.push_back(combining<float, sum_in_double>("float", "sum in double"));
  all.push_back(combining<collx::float8_e5m2, sum_in_double>("float8_e5m2", "sum in double"));
  return device_trials::run(all, argc, argv);
}
