// SPDX-License-Identifier: Apache-2.0
// What a choice of algorithm may depend on, and the conditions that rows of tables put on it. Plain
// data, known when compiling or read from a file: the same types serve both.
#pragma once

#include "collx/core/fnv1a.hpp"
#include "collx/core/memory_kind.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::tune {

inline constexpr std::size_t any_bytes = static_cast<std::size_t>(-1);
inline constexpr rank_t any_size = 0x7fffffff;

// A short name that compares as a number: names come from files and variables and are looked up in every
// call. Longer ones than its room are shown cut, and compare whole.
struct word {
  char text[64] = {};
  std::uint64_t number = 0;

  constexpr word() = default;
  constexpr word(char const* name) : word(name, __builtin_strlen(name)) {}  // NOLINT: reads as text in tables
  constexpr word(char const* name, std::size_t length) {
    if (length == 0) return;
    for (std::size_t i = 0; i < length && i + 1 < sizeof text; ++i) text[i] = name[i];
    number = fnv1a_64(name, length);
  }

  [[nodiscard]] constexpr bool empty() const { return number == 0; }
  friend constexpr bool operator==(word const& a, word const& b) { return a.number == b.number; }
};

using abi_1::memory_kind;

// What all ranks of a communicator know of themselves, besides how many they are.
struct situation {
  bool symmetric = false;  // all memory that calls are given is within reach of peers
  bool sharing = false;    // some machine has more ranks than processors (transport::settings::sharing)
  bool all_near = false;   // of a transport made of two: all messages take the near one
  bool grouped = false;    // some peers are near, and there are several groups of as many (ranks_per_group)
};

template <class Endpoint>
inline constexpr bool tells_sharing = requires(Endpoint const& endpoint) { endpoint.is_sharing(); };
template <class Endpoint>
inline constexpr bool has_near_peers = requires { requires Endpoint::has_near_peers; };

// `buffers`: what the program said of them (communicator::buffers).
template <class Endpoint>
[[nodiscard]] constexpr situation situation_of([[maybe_unused]] Endpoint const& endpoint,
                                               [[maybe_unused]] memory_kind buffers,
                                               [[maybe_unused]] shape n) noexcept {
  situation with;
  if constexpr (requires { requires Endpoint::is_open; }) with.symmetric = true;
  else with.symmetric = buffers == memory_kind::symmetric;
  if constexpr (tells_sharing<Endpoint>) with.sharing = endpoint.is_sharing();
  if constexpr (has_near_peers<Endpoint>) {
    with.all_near = endpoint.all_near();
    with.grouped = !with.all_near && n.inner > 1 && n.inner < n.size;
  }
  return with;
}

// One call, as far as a choice looks at it. Everything in it is the same on all ranks, or the ranks
// would choose differently and wait for each other: see `memory`.
struct question {
  std::size_t bytes = 0;  // of one block: the vector, or where it is sharded what one rank holds of it
  shape ranks{};
  word const* transport = nullptr;
  memory_kind memory = memory_kind::unshared;  // of the buffer that every rank has, see call.hpp
  std::uint64_t credits = any_bytes;           // messages that the transport lets be in flight
  std::size_t staging_bytes = any_bytes;       // of a lane: half of it is a fragment
  situation with{};

  // In how many pieces a block moves.
  [[nodiscard]] constexpr double fragments() const {
    std::size_t const most = staging_bytes / 2 / 64 * 64;  // whole lines, as exec/geometry.hpp cuts
    if (most == 0 || bytes == 0) return 1;
    std::size_t const before_last = (bytes - 1) / most;
    return static_cast<double>(before_last + 1);
  }
};

// What a row asks of a call. Rows are looked at in order and the first that holds wins, so upper
// bounds are enough.
struct condition {
  std::size_t bytes_max = any_bytes;
  rank_t ranks_max = any_size;
  rank_t ranks_per_group_max = any_size;  // 1: only where no ranks are nearer than others
  memory_kind memory = memory_kind::any;
  word transport{};  // empty: any

  [[nodiscard]] constexpr bool holds(question const& q) const {
    return q.bytes <= bytes_max && q.ranks.size <= ranks_max && q.ranks.inner <= ranks_per_group_max &&
           (memory == memory_kind::any || memory == q.memory) &&
           (transport.empty() || transport == *q.transport);
  }
};

template <class Endpoint>
[[nodiscard]] constexpr word name_of_transport() {
  if constexpr (requires { Endpoint::transport_name; }) return word(Endpoint::transport_name);
  else return word(Endpoint::is_mapped ? "mapped" : "message");
}

template <class Endpoint>
inline constexpr word transport_of = name_of_transport<Endpoint>();

}  // namespace collx::inline abi_1::tune
