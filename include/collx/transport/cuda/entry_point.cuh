// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, got from the runtime library: so nobody has to link -lcuda, and a program starts
// on a machine without a driver.
#pragma once

#include <cuda_runtime_api.h>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// `version`: of the CUDA that brought this form of the function. Where there is none it says why, leaves
// `function` as it is, and nothing of it meets the program in its own cudaGetLastError().
template <class Function>
[[nodiscard]] cudaError_t find_entry_point(char const* symbol, unsigned version,
                                           Function& function) noexcept {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult outcome = cudaDriverEntryPointSymbolNotFound;
  cudaError_t const code =
      cudaGetDriverEntryPointByVersion(symbol, &found, version, cudaEnableDefault, &outcome);
  if (code != cudaSuccess) return (void)cudaGetLastError(), code;
  if (outcome != cudaDriverEntryPointSuccess) return cudaErrorSymbolNotFound;
  function = reinterpret_cast<Function>(found);
  return cudaSuccess;
}

// What the driver has of several functions that are of use together only. A table of them derives from this,
// and gets each in its find_all().
template <class Table>
struct entry_points {
  bool are_all_there = true;

  [[nodiscard]] static Table const& loaded() noexcept {
    static Table const found = [] {
      Table made;
      made.find_all();
      return made;
    }();
    return found;
  }

 protected:
  template <class Function>
  void get(char const* symbol, unsigned version, Function& function) noexcept {
    are_all_there = find_entry_point(symbol, version, function) == cudaSuccess && are_all_there;
  }
};

}  // namespace collx::inline abi_1::transport::cuda_parts
