// SPDX-License-Identifier: Apache-2.0
// Which processors a thread may run on. Those, and not all that are online, decide whether ranks have one
// each: containers, batch systems and taskset leave a program some of a machine's.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "collx/core/atomic_word.hpp"
#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

// A set of processors by number. Ranks that are bound to one processor each may together have as many as
// there are ranks, so it is the union of their sets that counts. Zeroed memory is the empty set.
class processor_set {
 public:
  // Relaxed: whoever reads the set learns in another way that it is complete.
  COLLX_COLD void add(int processor) noexcept {
    if (processor >= 0 && processor < numbers_max)
      words_[processor / 64].fetch_or(std::uint64_t{1} << (processor % 64), std::memory_order_relaxed);
  }

  // Those that the calling thread may run on; all that are online where the system does not say.
  COLLX_COLD void add_those_of_this_thread() noexcept {
    std::uint64_t mask[numbers_max / 64] = {};
    if (sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask)) == 0) {
      for (std::size_t i = 0; i < numbers_max / 64; ++i)
        words_[i].fetch_or(mask[i], std::memory_order_relaxed);
      return;
    }
    long const online = sysconf(_SC_NPROCESSORS_ONLN);
    for (int processor = 0; processor < online; ++processor) add(processor);
  }

  [[nodiscard]] COLLX_COLD int count() const noexcept {
    int total = 0;
    for (auto const& word : words_) total += __builtin_popcountll(word.load(std::memory_order_relaxed));
    return total;
  }

 private:
  static constexpr int numbers_max = 4096;

  atomic_word<std::uint64_t> words_[numbers_max / 64]{};
};

}  // namespace collx::inline abi_1
