// SPDX-License-Identifier: Apache-2.0
// What may be lent, by executors and by calls that have none: a payload that its receivers read where it
// lies, and that is its owner's again when they have. From what length on it is, and whether they can reach
// it, each asks by itself.
#pragma once

#include "collx/device/cpu.hpp"
#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1::exec {

// Below this a copy is cheaper than to wait until the receivers have read the original.
inline constexpr std::size_t lend_bytes_min = 1024;

// From how many bytes on a payload is lent to an endpoint: any that send() does not copy itself, where the
// call waits for nobody longer because of it.
template <class Endpoint>
inline constexpr std::size_t lendable_from = [] {
  if constexpr (requires { Endpoint::lends_at_once; }) return Endpoint::inline_bytes + 1;
  else return lend_bytes_min;
}();

// The same of short calls. A copy of 1 KiB, or of 2 where lines come quickly or there are more than two
// ranks, takes less than to wait for who reads it (docs/decisions.md). Where others only take, or only send,
// calls that follow each other overlap, and a root that lends waits for its readers: one copy for all
// (`once`) costs less up to 8 KiB, or to half of that where readers are slow to take it. `sooner`: two ranks,
// and what the program writes before each call is not lent.
template <class Endpoint>
[[nodiscard]] COLLX_ALWAYS_INLINE std::size_t lent_from_short_calls(bool once, bool sooner) noexcept {
  if constexpr (requires { Endpoint::lends_at_once; }) return lendable_from<Endpoint>;
  if (once) return (device::cpu::takes_lines_slowly ? 4 : 8) * lend_bytes_min + 1;
  return (sooner && !device::cpu::takes_lines_quickly ? 2 : 4) * lend_bytes_min;
}

// Whether what a step sends stays as it is where it lies, until receivers have read it. What a step must copy
// is what a later one overwrites; nobody overwrites a separate input. Scratch is reused by the next fragment,
// so it is never read later.
[[nodiscard]] COLLX_ALWAYS_INLINE constexpr bool stays_there(primitive const& step, place where,
                                                             bool in_place) noexcept {
  return step.copy ? where == place::input && !in_place : where != place::scratch;
}

}  // namespace collx::inline abi_1::exec
