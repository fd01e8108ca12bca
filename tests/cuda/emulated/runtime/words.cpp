// SPDX-License-Identifier: Apache-2.0
// Memory operations of streams: a stream waits until a word in memory is what it is to be, or sets one.
#include <atomic>
#include <thread>

#include "cuda/emulated/runtime/capture.hpp"
#include "cuda/emulated/runtime/driver.hpp"

namespace emulated::runtime::driver {

namespace {

using word = std::atomic_ref<std::uint32_t>;

[[nodiscard]] bool holds(std::uint32_t now, std::uint32_t wanted, unsigned flags) {
  switch (flags) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::int32_t>(now - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (now & wanted) != 0;
    default: return ~(now | wanted) != 0;
  }
}

[[nodiscard]] bool has_failed(int ordinal) {
  lock const held(all().mutex);
  return all().devices[static_cast<std::size_t>(ordinal)].failure != cudaSuccess;
}

// Looks again and again, as the front end of a GPU does. Acquire: what comes behind in the stream sees what
// was written before the word.
void wait_until(std::uint32_t& at, std::uint32_t wanted, unsigned flags, int ordinal) {
  for (unsigned looks = 1; !holds(word(at).load(std::memory_order_acquire), wanted, flags); ++looks) {
    constexpr unsigned looks_between = 256;  // questions whether anything has failed
    if (looks % looks_between == 0 && has_failed(ordinal)) return;
    std::this_thread::yield();
  }
}

[[nodiscard]] CUresult put_word(char const* function, CUstream handle, CUdeviceptr at, bool stands,
                                std::function<void(std::uint32_t&, int)> work) {
  return call(false, function, [&](lock& held) {
    auto const s = find_stream(held, handle);
    if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    allocation found;
    if (at % sizeof(std::uint32_t) != 0 || !memory().find(at, found) || !found.has(at, sizeof(std::uint32_t)))
      return CUDA_ERROR_INVALID_VALUE;
    auto& there = *reinterpret_cast<std::uint32_t*>(bytes_at(at));
    auto put_work = [work = std::move(work), &there, ordinal = s->ordinal] { work(there, ordinal); };
    return static_cast<CUresult>(put(held, function, *s, std::move(put_work), {}, stands));
  });
}

}  // namespace

CUresult wait_value(CUstream handle, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  if (flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_NOT_SUPPORTED;  // a flush among them
  return put_word("cuStreamWaitValue32", handle, at, true, [value, flags](std::uint32_t& there, int ordinal) {
    wait_until(there, value, flags, ordinal);
  });
}

CUresult write_value(CUstream handle, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_NOT_SUPPORTED;
  // Release: what came before in the stream is seen by whoever sees the word.
  return put_word("cuStreamWriteValue32", handle, at, false, [value](std::uint32_t& there, int) {
    word(there).store(value, std::memory_order_release);
  });
}

}  // namespace emulated::runtime::driver
