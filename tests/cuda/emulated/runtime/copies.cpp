// SPDX-License-Identifier: Apache-2.0
// Copies and memsets, as asynchronous as the documentation says, and no less.
#include <algorithm>
#include <cstring>
#include <string>

#include "cuda/emulated/runtime/capture.hpp"
#include "cuda/emulated/runtime/memory.hpp"

namespace emulated::runtime {

namespace {

struct rows {
  std::byte* to;
  std::size_t to_pitch;
  std::byte const* from;
  std::size_t from_pitch, width, count;
};

void move(rows const& r) {
  for (std::size_t i = 0; i < r.count; ++i)
    std::memmove(bytes_at(r.to + i * r.to_pitch), bytes_at(r.from + i * r.from_pitch), r.width);
}

enum class side { pageable, host, device, managed };

// Where so many bytes lie. False: they begin in memory that CUDA knows and end outside of it, or in an
// address of a device where nothing is.
[[nodiscard]] bool find_side(void const* at, std::size_t bytes, side& found) {
  allocation around;
  auto const address = reinterpret_cast<std::uintptr_t>(at);
  found = side::pageable;
  if (!memory().find(address, around)) return !addresses().has(address);
  if (around.kind == memory_kind::multicast) return false;  // which is for kernels alone
  found = is_of_host(around.kind)               ? side::host
          : around.kind == memory_kind::managed ? side::managed
                                                : side::device;
  return around.has(address, bytes);
}

[[nodiscard]] bool fits(side to, side from, cudaMemcpyKind kind) {
  auto const may = [](side s, bool wants_device) {
    return s == side::managed || (s == side::device) == wants_device;
  };
  switch (kind) {
    case cudaMemcpyHostToHost: return may(to, false) && may(from, false);
    case cudaMemcpyHostToDevice: return may(to, true) && may(from, false);
    case cudaMemcpyDeviceToHost: return may(to, false) && may(from, true);
    case cudaMemcpyDeviceToDevice: return may(to, true) && may(from, true);
    case cudaMemcpyDefault: return true;
  }
  return false;
}

// What lies between the first and the last byte of so many rows.
[[nodiscard]] std::size_t extent(std::size_t pitch, std::size_t width, std::size_t count) {
  return (count - 1) * pitch + width;
}

[[nodiscard]] cudaError_t check(char const* function, rows const& r, cudaMemcpyKind kind, side& to,
                                side& from) {
  constexpr std::size_t pitch_most = 0x7fffffff;
  if (r.count > 1 && (r.to_pitch < r.width || r.from_pitch < r.width || r.to_pitch > pitch_most ||
                      r.from_pitch > pitch_most))
    return cudaErrorInvalidPitchValue;
  if (r.to == nullptr || r.from == nullptr) return cudaErrorInvalidValue;
  if (!find_side(r.to, extent(r.to_pitch, r.width, r.count), to) ||
      !find_side(r.from, extent(r.from_pitch, r.width, r.count), from)) {
    complain(function, "the range leaves its allocation, or there is none");
    return cudaErrorInvalidValue;
  }
  if (fits(to, from, kind)) return cudaSuccess;
  complain(function, "the kind of copy says another direction than the pointers");
  return cudaErrorInvalidMemcpyDirection;
}

// A copy that was put, and is to be waited for.
[[nodiscard]] cudaError_t finish(lock& held, place const& end) {
  (void)wait_for(held, end);
  return all().devices[static_cast<std::size_t>(end.of->ordinal)].failure;
}

// Takes the bytes now; they arrive in stream order.
[[nodiscard]] std::function<void()> staged(rows r) {
  auto const kept = std::make_shared<std::vector<std::byte>>(r.width * r.count);
  move({kept->data(), r.width, r.from, r.from_pitch, r.width, r.count});
  return [kept, r] { move({r.to, r.to_pitch, kept->data(), r.width, r.width, r.count}); };
}

// `blocks`: a form without Async, in the legacy stream.
[[nodiscard]] cudaError_t copy(char const* function, rows const& r, cudaMemcpyKind kind, cudaStream_t handle,
                               bool blocks) {
  return call(function, [&](lock& held, device& here) {
    auto const s = find_stream(held, handle);
    if (s == nullptr) return cudaErrorInvalidResourceHandle;
    if (r.width == 0 || r.count == 0) return cudaSuccess;
    side to{}, from{};
    if (cudaError_t const code = check(function, r, kind, to, from); code != cudaSuccess) return code;
    if (s->captured != nullptr) return put(held, function, *s, [r] { move(r); });
    if (s->is_legacy)
      if (cudaError_t const code = refuse_legacy(s->ordinal); code != cudaSuccess) return code;
    bool const is_from_host = from == side::pageable || from == side::host;
    bool const is_to_host = to == side::pageable || to == side::host;
    if (from == side::pageable && !is_to_host) {
      // The driver may wait for the stream before it takes the bytes: the form that blocks does.
      if (blocks || all().waits_always) (void)finish(held, put_now(held, *s, nullptr));
      put_now(held, *s, staged(r));
      return here.failure;
    }
    place const end = put_now(held, *s, [r] { move(r); });
    bool const waits =
        to == side::pageable || (is_from_host && is_to_host) || (blocks && (is_from_host || is_to_host));
    return waits ? finish(held, end) : cudaSuccess;
  });
}

[[nodiscard]] rows one_row(void* to, void const* from, std::size_t bytes) {
  return {static_cast<std::byte*>(to), bytes, static_cast<std::byte const*>(from), bytes, bytes, 1};
}

[[nodiscard]] cudaError_t set(char const* function, void* to, int value, std::size_t bytes,
                              cudaStream_t handle, bool blocks) {
  return call(function, [&](lock& held, device&) {
    auto const s = find_stream(held, handle);
    if (s == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    side where{};
    if (!find_side(to, bytes, where) || where == side::pageable) {
      complain(function, "the range leaves its allocation, or there is none");
      return cudaErrorInvalidValue;
    }
    if (cudaError_t const code =
            put(held, function, *s, [to, value, bytes] { std::memset(bytes_at(to), value, bytes); });
        code != cudaSuccess)
      return code;
    return blocks && where != side::device ? finish(held, end_of(*s)) : cudaSuccess;
  });
}

}  // namespace

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy("cudaMemcpy", one_row(to, from, bytes), kind, nullptr, true);
}
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s) {
  return copy("cudaMemcpyAsync", one_row(to, from, bytes), kind, s, false);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, void const* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t s) {
  return copy(
      "cudaMemcpy2DAsync",
      {static_cast<std::byte*>(to), to_pitch, static_cast<std::byte const*>(from), from_pitch, width, height},
      kind, s, false);
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return set("cudaMemset", to, value, bytes, nullptr, true);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t s) {
  return set("cudaMemsetAsync", to, value, bytes, s, false);
}
}
