// SPDX-License-Identifier: Apache-2.0
// NCCL, where it is installed: found when the program runs, so that nothing here depends on it. What is
// declared here is the part of its interface that does not change between versions 2.x.   COLLX_NCCL: the
// library, if it is not where the loader looks.
#pragma once

#include <cstdlib>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace nccl {

struct unique_id {
  char bytes[128];
};
using communicator = struct opaque*;

inline constexpr int float32 = 7, sum = 0;

// Zero is success.
struct functions {
  int (*get_unique_id)(unique_id*) = nullptr;
  int (*init_rank)(communicator*, int size, unique_id, int rank) = nullptr;
  int (*all_reduce)(void const*, void*, std::size_t count, int type, int op, communicator,
                    cudaStream_t) = nullptr;
  int (*destroy)(communicator) = nullptr;
  int (*get_version)(int*) = nullptr;

  [[nodiscard]] bool found() const { return destroy != nullptr; }
  // Ranks of older ones need a GPU each.
  [[nodiscard]] bool lets_ranks_share_a_gpu() const {
    int version = 0;
    return found() && get_version(&version) == 0 && version >= 23'000;
  }

  [[nodiscard]] static functions const& loaded() {
    static functions const all = [] {
      functions found;
      char const* const named = std::getenv("COLLX_NCCL");
      void* const library = dlopen(named != nullptr ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) return found;
      bool const whole = get(library, "ncclGetUniqueId", found.get_unique_id) &&
                         get(library, "ncclCommInitRank", found.init_rank) &&
                         get(library, "ncclAllReduce", found.all_reduce) &&
                         get(library, "ncclGetVersion", found.get_version) &&
                         get(library, "ncclCommDestroy", found.destroy);
      return whole ? found : functions{};
    }();
    return all;
  }

 private:
  template <class Function>
  static bool get(void* library, char const* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
};

}  // namespace nccl
