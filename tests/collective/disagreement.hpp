// SPDX-License-Identifier: Apache-2.0
// Calls in which ranks pass different counts: who notices says so, and nobody stores to a peer by his own
// count, behind the end of what the peer passed.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "collective/schedules.hpp"

#if defined(__SANITIZE_THREAD__)
#define COLLX_TEST_SEES_RACES true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COLLX_TEST_SEES_RACES true
#endif
#endif
#if !defined(COLLX_TEST_SEES_RACES)
#define COLLX_TEST_SEES_RACES false
#endif

namespace disagreement {

// Within an output, ranks that disagree about where blocks lie may write to the same elements: a race, in a
// call that fails and leaves its output undefined.
inline constexpr bool sees_races = COLLX_TEST_SEES_RACES;

using collx::rank_t;
using counts_t = std::vector<std::size_t>;
using oracle::element;

// One rank's buffers: what a call is given, and what lies behind it up to where the largest count would end.
class memory {
 public:
  // `at`: memory of 2 * room elements.
  memory(element* at, std::size_t room) : begin_(at), room_(room) {
    std::memset(static_cast<void*>(begin_), given, room_ * sizeof(element));
    std::memset(static_cast<void*>(begin_ + room_), guard, room_ * sizeof(element));
  }
  // Calls with the first elements of both halves. Returns whether this rank was told that counts differ.
  template <class Entry, class Transport>
  bool call(Entry const& called, collx::communicator<Transport>& comm, rank_t root, std::size_t count) {
    collx::block_window const gotten = called.collective->output({comm.rank(), comm.size(), root});
    passed_ = static_cast<std::size_t>(called.collective->sharded ? gotten.count : 1) * count;
    if constexpr (std::is_void_v<typename Entry::result>) {
      try {
        called.with_room(comm, root, count, {begin_, room_}, {begin_ + room_, room_});
      } catch (collx::error const&) {  // the report says it
      }
    } else {
      (void)called.with_room(comm, root, count, {begin_, room_}, {begin_ + room_, room_});
    }
    collx::status const outcome = comm.failure().code;
    if (outcome == collx::status::timeout) throw collx::error(comm.failure());
    return outcome == collx::status::mismatch;
  }
  // Whether the input, and what lies behind the output, are as they were.
  [[nodiscard]] bool is_untouched() const {
    // Bytes are all alike if each is as the one before it.
    auto const all_are = [](int byte, element const* from, element const* to) {
      auto const* const bytes = reinterpret_cast<unsigned char const*>(from);
      std::size_t const n = static_cast<std::size_t>(to - from) * sizeof(element);
      return n == 0 || (*bytes == byte && std::memcmp(bytes, bytes + 1, n - 1) == 0);
    };
    element const* const output = begin_ + room_;
    return all_are(given, begin_, output) && all_are(guard, output + passed_, output + room_);
  }

 private:
  static constexpr int given = 0x3c, guard = 0xd7;

  element* begin_;
  std::size_t room_, passed_ = 0;
};

// Elements that half of a memory needs in such a call.
inline std::size_t room_of(counts_t const& counts) {
  return counts.size() * *std::max_element(counts.begin(), counts.end());
}

// Calls f(schedule, root) for every one that sends elements.
template <template <class> class Form, class Transport, class F>
void for_each(rank_t size, F const& f) {
  for (auto const& called : schedules::all<Form, Transport>()) {
    bool const moves = called.collective != &oracle::collective_of<collx::contract::barrier>;
    if (!moves || !called.supports(size)) continue;
    for (rank_t root = 0; root < (called.collective->rooted ? size : 1); root += size - 1) f(called, root);
  }
}

}  // namespace disagreement
