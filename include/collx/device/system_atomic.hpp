// SPDX-License-Identifier: Apache-2.0
// Words that processors share: threads of the host, blocks of a GPU, GPUs of one host. Accesses are of system
// scope, since who is on the other side is known at run time only; a fence, which waits for stores, is of a
// narrower one where that is known to do (publication).
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

// Whom a publication has to reach.
enum class reach : std::uint8_t {
  nobody,  // nothing was done before that anybody has to see
  device,  // threads of this process's kernels on this GPU
  system,
};

// Words that are published together: what this thread, and those it has synced with, did before this was made
// is visible to who has loaded one of them with acquire. On a GPU that is one fence for all, where every
// store_release() is one of its own, of a microsecond or two behind stores that are under way, and somewhat
// less where it stays on the device. On a host each store is a release, but for nobody: a fence that is left
// out wrongly is a race there, too.
class publication {
 public:
  COLLX_HD_INLINE explicit publication(reach whom) noexcept : reaches_somebody_(whom != reach::nobody) {
#if defined(__CUDA_ARCH__)
    if (whom == reach::device)
      ::cuda::atomic_thread_fence(order::memory_order_release, ::cuda::thread_scope_device);
    if (whom == reach::system)
      ::cuda::atomic_thread_fence(order::memory_order_release, ::cuda::thread_scope_system);
#endif
  }
  template <class Word>
  COLLX_HD_INLINE void store(Word* word, Word value) const noexcept {
#if defined(__CUDA_ARCH__)
    system_atomic<Word>(*word).store(value, order::memory_order_relaxed);  // relaxed: behind the fence
#else
    // release: what was done before is visible to who finds the word. relaxed: nothing has to be.
    system_atomic<Word>(*word).store(
        value, reaches_somebody_ ? order::memory_order_release : order::memory_order_relaxed);
#endif
  }

 private:
  [[maybe_unused]] bool reaches_somebody_;  // on a GPU the fence has been made
};

// For words that carry all there is to know: nothing else is read because of them.
template <class Word>
[[nodiscard]] COLLX_HD inline Word load_relaxed(Word const* word) noexcept {
  return system_atomic<Word>(*const_cast<Word*>(word)).load(order::memory_order_relaxed);
}

template <class Word>
COLLX_HD inline void store_relaxed(Word* word, Word value) noexcept {
  system_atomic<Word>(*word).store(value, order::memory_order_relaxed);
}

// Two words that lie beside each other, at a multiple of 16. Who finds the second one of a pair that was
// stored finds its first one, too; pairs are not stored over each other before they are read.
struct word_pair {
  std::uint64_t first, second;
};

COLLX_HD inline void store_pair(std::uint64_t* to, word_pair const& stored) noexcept {
#if defined(__CUDA_ARCH__)
  // One store of 16 bytes, which nobody sees half of (PTX ISA 8.3).
  asm volatile("{.reg .b128 pair; mov.b128 pair, {%1, %2}; st.relaxed.sys.global.b128 [%0], pair;}" ::"l"(
                   __cvta_generic_to_global(to)),
               "l"(stored.first), "l"(stored.second)
               : "memory");
#else
  store_relaxed(to, stored.first);       // relaxed: the other store publishes it
  store_release(to + 1, stored.second);  // release: the first word is there
#endif
}

[[nodiscard]] COLLX_HD inline word_pair load_pair(std::uint64_t const* from) noexcept {
  word_pair loaded;
#if defined(__CUDA_ARCH__)
  asm volatile("{.reg .b128 pair; ld.relaxed.sys.global.b128 pair, [%2]; mov.b128 {%0, %1}, pair;}"
               : "=l"(loaded.first), "=l"(loaded.second)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  loaded.second = load_acquire(from + 1);  // acquire: the first word was stored before
  loaded.first = load_relaxed(from);       // relaxed: as said
#endif
  return loaded;
}

// Whether this is the first call for a word that was 0. Relaxed: the winner only earns the right to write.
[[nodiscard]] COLLX_HD inline bool claim(std::uint32_t* word) noexcept {
  return system_atomic<std::uint32_t>(*word).exchange(1, order::memory_order_relaxed) == 0;
}

}  // namespace collx::inline abi_1::device
