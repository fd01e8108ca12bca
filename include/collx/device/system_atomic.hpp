// SPDX-License-Identifier: Apache-2.0
// Words that processors share: threads of the host, blocks of a GPU, GPUs of one host. Always of system
// scope, since who is on the other side is known at run time only; on x86 and on NVIDIA's GPUs that costs
// no more than a narrower scope where nobody else has the line.
#pragma once

#include <atomic>
#include <cstdint>

#include "collx/core/config.hpp"

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

namespace collx::inline abi_1::device {

#if defined(__CUDA_ARCH__)
template <class Word>
using system_atomic = ::cuda::atomic_ref<Word, ::cuda::thread_scope_system>;
namespace order = ::cuda::std;
#else
template <class Word>
using system_atomic = std::atomic_ref<Word>;
namespace order = ::std;
#endif

// What the writer did before its store_release() is visible to who has loaded the value.
template <class Word>
[[nodiscard]] COLLX_HD inline Word load_acquire(Word const* word) noexcept {
  return system_atomic<Word>(*const_cast<Word*>(word)).load(order::memory_order_acquire);
}

template <class Word>
COLLX_HD inline void store_release(Word* word, Word value) noexcept {
  system_atomic<Word>(*word).store(value, order::memory_order_release);
}

// For words that carry all there is to know: nothing else is read because of them.
template <class Word>
[[nodiscard]] COLLX_HD inline Word load_relaxed(Word const* word) noexcept {
  return system_atomic<Word>(*const_cast<Word*>(word)).load(order::memory_order_relaxed);
}

template <class Word>
COLLX_HD inline void store_relaxed(Word* word, Word value) noexcept {
  system_atomic<Word>(*word).store(value, order::memory_order_relaxed);
}

// Whether this is the first call for a word that was 0. Relaxed: the winner only earns the right to write.
[[nodiscard]] COLLX_HD inline bool claim(std::uint32_t* word) noexcept {
  return system_atomic<std::uint32_t>(*word).exchange(1, order::memory_order_relaxed) == 0;
}

}  // namespace collx::inline abi_1::device
