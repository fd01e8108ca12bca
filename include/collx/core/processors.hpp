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
#include "collx/core/fnv1a.hpp"

namespace collx::inline abi_1 {

// A set of processors by number. Ranks that are bound to one processor each may together have as many as
// there are ranks, so it is the union of their sets that counts. Zeroed memory is the empty set.
class processor_set {
 public:
  // How many, and a number by which equal sets of one machine are told from others: what fits into a message.
  struct summary {
    std::uint32_t count = 0, mark = 0;
    friend bool operator==(summary const&, summary const&) = default;
  };
  [[nodiscard]] COLLX_COLD static summary of_this_thread() noexcept {
    processor_set mine;
    mine.add_those_of_this_thread();
    summary found{static_cast<std::uint32_t>(mine.count()), fnv1a_32_of_nothing};
    for (auto const& word : mine.words_) {
      std::uint64_t const bits = word.load(std::memory_order_relaxed);
      found.mark = fnv1a_32(reinterpret_cast<unsigned char const*>(&bits), sizeof bits, found.mark);
    }
    return found;
  }

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

  // The set as bits, 64 to a word: what MPI unites.
  static constexpr int word_count = 64;
  [[nodiscard]] COLLX_COLD std::uint64_t word(int index) const noexcept {
    return words_[index].load(std::memory_order_relaxed);
  }

  [[nodiscard]] COLLX_COLD int count() const noexcept {
    int total = 0;
    for (auto const& word : words_) total += __builtin_popcountll(word.load(std::memory_order_relaxed));
    return total;
  }

 private:
  static constexpr int numbers_max = 64 * word_count;

  atomic_word<std::uint64_t> words_[numbers_max / 64]{};
};

}  // namespace collx::inline abi_1
