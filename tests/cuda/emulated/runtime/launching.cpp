// SPDX-License-Identifier: Apache-2.0
// Launches, and what kernels need of a multiprocessor.
#include <algorithm>
#include <cstring>
#include <optional>

#include "cuda/emulated/runtime/capture.hpp"
#include "cuda/emulated/runtime/devices.hpp"
#include "cuda/emulated/runtime/memory.hpp"
#include "cuda/emulated/runtime/modules.hpp"

namespace emulated::runtime {

namespace {

struct shape {
  dimensions grid, block;
  std::size_t dynamic_bytes = 0;
  bool is_cooperative = false;
  // What the launch says itself of its domain; else its stream's counts.
  std::optional<cudaLaunchMemSyncDomain> domain = {};
  std::optional<cudaLaunchMemSyncDomainMap> domains = {};
};

// On devices that have one only, all launches are of that.
[[nodiscard]] unsigned domain_of(shape const& s, stream const& where) {
  auto const map = s.domains.value_or(where.domains);
  bool const is_remote = s.domain.value_or(where.domain) == cudaLaunchMemSyncDomainRemote;
  return capability() < 90 ? 0 : is_remote ? map.remote : map.default_;
}
[[nodiscard]] bool is_possible(cudaLaunchMemSyncDomainMap const& map) {
  unsigned const count = capability() < 90 ? 1 : domains_most;
  return map.default_ < count && map.remote < count;
}

// Blocks that a multiprocessor holds at once. Registers are not counted: what they are is ptxas's affair.
[[nodiscard]] int blocks_at_once(kernel const& what, std::size_t threads, std::size_t dynamic_bytes) {
  std::size_t const rounded = (threads + 31) / 32 * 32;
  std::size_t const shared = what.static_shared_bytes + dynamic_bytes + shared_reserved;
  if (threads == 0 || threads > what.max_threads || shared > shared_bytes_each) return 0;
  return static_cast<int>(
      std::min({threads_each / rounded, shared_bytes_each / shared, std::size_t{blocks_each}}));
}

[[nodiscard]] cudaError_t check(entry const& what, kernel const& k, shape const& s) {
  bool const has_grid =
      s.grid.count() != 0 && s.grid.x <= 0x7fffffffu && s.grid.y <= 65535 && s.grid.z <= 65535;
  bool const has_block = s.block.count() != 0 && s.block.count() <= threads_of_block && s.block.x <= 1024 &&
                         s.block.y <= 1024 && s.block.z <= 64;
  if (!has_grid || !has_block) return cudaErrorInvalidConfiguration;
  if (s.block.count() > k.max_threads) {
    complain("cudaLaunchKernel", what.name + ": more threads than its launch bounds say");
    return cudaErrorInvalidConfiguration;
  }
  if (s.dynamic_bytes > what.dynamic_bytes_most ||
      k.static_shared_bytes + s.dynamic_bytes > shared_of_block_most)
    return cudaErrorInvalidValue;
  auto const most =
      static_cast<std::size_t>(blocks_at_once(k, s.block.count(), s.dynamic_bytes)) * multiprocessors;
  if (s.is_cooperative && s.grid.count() > most) return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

[[nodiscard]] std::vector<std::byte> copied(kernel const& what, void** arguments) {
  std::vector<std::byte> all_of_them(what.parameter_bytes);
  for (std::size_t i = 0; i < what.parameters.size(); ++i)
    std::memcpy(all_of_them.data() + what.parameters[i].offset, arguments[i], what.parameters[i].bytes);
  return all_of_them;
}

[[nodiscard]] cudaError_t launch_on(lock& held, device& here, void const* function, shape const& s,
                                    void** arguments, cudaStream_t handle) {
  entry* const what = find_entry(function);
  if (what == nullptr) return cudaErrorInvalidDeviceFunction;
  auto const where = find_stream(held, handle);
  if (where == nullptr) return cudaErrorInvalidResourceHandle;
  if (where->ordinal != here.ordinal) {
    complain("cudaLaunchKernel", what->name + ": the stream is of device " + std::to_string(where->ordinal) +
                                     ", and device " + std::to_string(here.ordinal) + " is current");
    return cudaErrorInvalidResourceHandle;
  }
  kernel const* const k = load(held, *what, here.ordinal);
  if (cudaError_t const code = check(*what, *k, s); code != cudaSuccess) return code;
  if (k->local_bytes > here.stack_bytes) {  // the driver makes room for it, and waits
    (void)wait_for_device(held, here.ordinal);
    here.stack_bytes = k->local_bytes;
  }
  launch begun;
  begun.code = &what->of->on(here.ordinal);
  begun.what = k;
  begun.grid = s.grid;
  begun.block = s.block;
  begun.dynamic_shared_bytes = s.dynamic_bytes;
  begun.parameters = copied(*k, arguments);
  begun.device = here.ordinal;
  begun.domain = domain_of(s, *where);
  cudaError_t const code =
      put(held, "cudaLaunchKernel", *where, [begun = std::move(begun), ordinal = here.ordinal] {
        std::string const wrong = run(begun);
        if (!wrong.empty()) fail_device(ordinal, wrong);
      });
  bool const waits = all().launches_wait && code == cudaSuccess && where->captured == nullptr;
  return !waits || wait_for(held, end_of(*where)) ? code : here.failure;
}

[[nodiscard]] cudaError_t start(void const* function, shape const& s, void** arguments, cudaStream_t handle) {
  return call("cudaLaunchKernel", [&](lock& held, device& here) {
    return launch_on(held, here, function, s, arguments, handle);
  });
}

[[nodiscard]] dimensions of(dim3 d) { return {d.x, d.y, d.z}; }

// f(entry, kernel) on what a stub stands for.
template <class F>
cudaError_t on_kernel(char const* name, void const* function, F const& f) {
  return call(name, [&](lock& held, device& here) {
    entry* const what = find_entry(function);
    if (what == nullptr) return cudaErrorInvalidDeviceFunction;
    return f(*what, *load(held, *what, here.ordinal));
  });
}

// Of <<<>>>, between its two halves.
struct configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
[[nodiscard]] std::vector<configuration>& pushed() {
  static thread_local std::vector<configuration> configurations;
  return configurations;
}

}  // namespace

}  // namespace emulated::runtime

using namespace emulated::runtime;
using emulated::kernel;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* s) {
  pushed().push_back({grid, block, shared, s});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* s) {
  if (pushed().empty()) return noted(cudaErrorMissingConfiguration);
  configuration const last = pushed().back();
  pushed().pop_back();
  *grid = last.grid, *block = last.block, *shared = last.shared;
  std::memcpy(s, &last.stream, sizeof last.stream);
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(void const* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t s) {
  return start(function, {of(grid), of(block), shared, false}, arguments, s);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t what, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t s) {
  return start(what, {of(grid), of(block), shared, false}, arguments, s);
}
cudaError_t cudaLaunchCooperativeKernel(void const* function, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared, cudaStream_t s) {
  return start(function, {of(grid), of(block), shared, true}, arguments, s);
}

cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* given, void const* function, void** arguments) {
  if (given == nullptr) return noted(cudaErrorInvalidValue);
  shape s{of(given->gridDim), of(given->blockDim), given->dynamicSmemBytes, false};
  for (unsigned i = 0; i < given->numAttrs; ++i) {
    auto const& [id, padding, value] = given->attrs[i];
    if (id == cudaLaunchAttributeCooperative) s.is_cooperative = value.cooperative != 0;
    else if (id == cudaLaunchAttributeMemSyncDomain) s.domain = value.memSyncDomain;
    else if (id == cudaLaunchAttributeMemSyncDomainMap) s.domains = value.memSyncDomainMap;
    else if (id != cudaLaunchAttributePriority) return noted(cudaErrorNotSupported);
  }
  if (s.domains && !is_possible(*s.domains)) return noted(cudaErrorInvalidValue);
  return start(function, s, arguments, given->stream);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t handle, cudaStreamAttrID id,
                                   cudaStreamAttrValue const* value) {
  return call("cudaStreamSetAttribute", [&](lock& held, device&) {
    auto const where = find_stream(held, handle);
    if (where == nullptr) return cudaErrorInvalidResourceHandle;
    if (value == nullptr) return cudaErrorInvalidValue;
    if (id == cudaLaunchAttributeMemSyncDomain) return where->domain = value->memSyncDomain, cudaSuccess;
    if (id != cudaLaunchAttributeMemSyncDomainMap) return cudaErrorNotSupported;
    if (!is_possible(value->memSyncDomainMap)) return cudaErrorInvalidValue;
    return where->domains = value->memSyncDomainMap, cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, void const* function) {
  return on_kernel("cudaFuncGetAttributes", function, [&](entry const& what, kernel const& k) {
    *to = {};
    to->sharedSizeBytes = k.static_shared_bytes;
    to->localSizeBytes = k.local_bytes;
    to->maxThreadsPerBlock = static_cast<int>(k.max_threads);
    to->numRegs = 32;
    to->ptxVersion = what.of->architecture;
    to->binaryVersion = capability();
    to->maxDynamicSharedSizeBytes = static_cast<int>(what.dynamic_bytes_most);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(void const* function, cudaFuncAttribute which, int value) {
  return on_kernel("cudaFuncSetAttribute", function, [&](entry& what, kernel const& k) {
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize)
      return which == cudaFuncAttributePreferredSharedMemoryCarveout ? cudaSuccess : cudaErrorInvalidValue;
    if (value < 0 || static_cast<std::size_t>(value) + k.static_shared_bytes > shared_of_block_most)
      return cudaErrorInvalidValue;
    what.dynamic_bytes_most = static_cast<std::size_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* to, void const* function, int threads,
                                                                   std::size_t dynamic_bytes, unsigned) {
  return on_kernel("cudaOccupancyMaxActiveBlocksPerMultiprocessor", function,
                   [&](entry const&, kernel const& k) {
                     if (threads <= 0) return cudaErrorInvalidValue;
                     *to = blocks_at_once(k, static_cast<std::size_t>(threads), dynamic_bytes);
                     return cudaSuccess;
                   });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* to, void const* function, int threads,
                                                          std::size_t dynamic_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(to, function, threads, dynamic_bytes, 0);
}
}
