// SPDX-License-Identifier: Apache-2.0
// Contexts, as far as the driver's functions speak of them: one for each device, its primary one. A thread
// has a stack of them, whose uppermost is that of the runtime's current device.
#include <vector>

#include "cuda/emulated/runtime/driver.hpp"
#include "cuda/emulated/runtime/streams.hpp"

namespace emulated::runtime::driver {

namespace {

// Where a device is kept is as good a handle as any.
[[nodiscard]] CUcontext context_of(device& d) { return reinterpret_cast<CUcontext>(&d); }
[[nodiscard]] device* find_context(CUcontext context) {
  for (device& each : all().devices)
    if (context_of(each) == context) return &each;
  return nullptr;
}

// What lies below the uppermost.
struct below {
  int device;
  bool has_context;
};
[[nodiscard]] std::vector<below>& stack() {
  thread_local std::vector<below> contexts;
  return contexts;
}

}  // namespace

CUresult get_stream_context(CUstream handle, CUcontext* to) {
  return call(false, "cuStreamGetCtx", [&](lock& held) {
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto const s = find_stream(held, handle);
    if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *to = context_of(all().devices[static_cast<std::size_t>(s->ordinal)]);
    return CUDA_SUCCESS;
  });
}

CUresult get_current_context(CUcontext* to) {
  return call(false, "cuCtxGetCurrent", [&](lock&) {
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *to = me().has_context ? context_of(all().devices[static_cast<std::size_t>(me().device)]) : nullptr;
    return CUDA_SUCCESS;
  });
}

CUresult push_context(CUcontext context) {
  return call(false, "cuCtxPushCurrent", [&](lock&) {
    device const* const found = find_context(context);
    if (found == nullptr || !found->has_context) return CUDA_ERROR_INVALID_CONTEXT;
    stack().push_back({me().device, me().has_context});
    me().device = found->ordinal;
    me().has_context = true;
    return CUDA_SUCCESS;
  }, concerns::none);
}

CUresult pop_context(CUcontext* to) {
  return call(true, "cuCtxPopCurrent", [&](lock&) {
    if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (to != nullptr) *to = context_of(all().devices[static_cast<std::size_t>(me().device)]);
    me().device = stack().back().device;
    me().has_context = stack().back().has_context;
    stack().pop_back();
    return CUDA_SUCCESS;
  }, concerns::none);
}

CUresult get_context_device(CUdevice* to) {
  return call(true, "cuCtxGetDevice", [&](lock&) {
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *to = me().device;
    return CUDA_SUCCESS;
  });
}

// The runtime keeps all contexts that were ever taken: they are not counted.
CUresult retain_primary_context(CUcontext* to, CUdevice ordinal) {
  return call(false, "cuDevicePrimaryCtxRetain", [&](lock& held) {
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *to = context_of(made_ready(held, all().devices[static_cast<std::size_t>(ordinal)]));
    return CUDA_SUCCESS;
  }, concerns::none);
}

CUresult release_primary_context(CUdevice ordinal) {
  return call(false, "cuDevicePrimaryCtxRelease",
              [&](lock&) { return is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; },
              concerns::none);
}

CUresult get_primary_context_state(CUdevice ordinal, unsigned* flags, int* active) {
  return call(false, "cuDevicePrimaryCtxGetState", [&](lock&) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = all().devices[static_cast<std::size_t>(ordinal)].has_context;
    return CUDA_SUCCESS;
  }, concerns::none);
}

}  // namespace emulated::runtime::driver
