// SPDX-License-Identifier: Apache-2.0
// What nvcc has put into this program: PTX, its kernels and its variables. Read for each device when it is
// first needed, or all at once (CUDA_MODULE_LOADING=EAGER).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cuda/emulated/machine.hpp"
#include "cuda/emulated/runtime/books.hpp"

namespace emulated::runtime {

struct image {
  std::string_view ptx;                           // empty: there is none for this machine
  int architecture = 0;                           // that it was made for
  std::map<int, std::unique_ptr<module>> loaded;  // by device

  [[nodiscard]] module const& on(int ordinal);
};

// A kernel of this program: what a stub is registered for.
struct entry {
  image* of = nullptr;
  std::string name;
  std::size_t dynamic_bytes_most = shared_of_block;
  std::map<int, kernel const*> found;  // by device
};

// `function`: a stub, or what __cudaGetKernel() has given. Null if it is neither.
[[nodiscard]] entry* find_entry(void const* function);
// The kernel on the device; loads it, which waits for the device where kernels are loaded one by one. Throws.
[[nodiscard]] kernel const* load(lock& held, entry& what, int ordinal);
void load_all_modules(lock& held, int ordinal);

// Takes the PTX of a fat binary for the highest architecture that this GPU has. Empty if there is none, or it
// is compressed.
void take_ptx(void const* wrapper, image& into);

}  // namespace emulated::runtime
