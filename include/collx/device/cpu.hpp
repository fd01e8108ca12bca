// SPDX-License-Identifier: Apache-2.0
// What this processor can do, asked once when the program starts.
#pragma once

#include "collx/core/clock.hpp"
#include "collx/core/config.hpp"

#if defined(COLLX_AVX2)
#include <cpuid.h>
#endif

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::device::cpu {

// The cache that processors share: of how many bytes, and by how many of them.
struct shared_cache {
  std::size_t bytes = 0;
  std::size_t processors = 1;
};

// The kinds of code for vectors, each of which has the instructions of those before it: what the compiler was
// told to compile for, and what COLLX_AVX2 and COLLX_AVX512 stand for.
enum class vector_kind : unsigned char { generic, avx2, avx512 };
inline constexpr char const* vector_kind_names[] = {"generic", "avx2", "avx512"};

// The last kind that this processor has, and this program.
[[nodiscard]] inline vector_kind widest_vectors() noexcept {
#if defined(COLLX_AVX2)
  __builtin_cpu_init();
#if defined(COLLX_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return vector_kind::avx512;
#endif
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0)
    return vector_kind::avx2;
#endif
  return vector_kind::generic;
}

// What COLLX_VECTORS names, as `text`; -1 where that is none of the kinds up to `widest`.
[[nodiscard]] COLLX_COLD inline int named_vectors(char const* text, vector_kind widest) noexcept {
  for (int kind = static_cast<int>(widest); kind >= 0; --kind)
    if (std::strcmp(text, vector_kind_names[kind]) == 0) return kind;
  return -1;
}

// Throws error (bad_argument) where COLLX_VECTORS asks for what is not there.
COLLX_COLD inline void require_named_vectors() {
  char const* const text = std::getenv("COLLX_VECTORS");
  vector_kind const widest = widest_vectors();
  if (text == nullptr || named_vectors(text, widest) >= 0) return;
  constexpr char const* possible[] = {"generic", "generic or avx2", "generic, avx2 or avx512"};
  throw_error(status::bad_argument,
              "environment variable COLLX_VECTORS is \"%.120s\"; this processor and this program, as it was "
              "compiled, have %s: set it to that, or unset it",
              text, possible[static_cast<int>(widest)]);
}

// What COLLX_VECTORS says, else the widest. Where it makes no sense, who makes a world is told.
[[nodiscard]] inline vector_kind chosen_vectors() noexcept {
  char const* const text = std::getenv("COLLX_VECTORS");
  int const named = text == nullptr ? -1 : named_vectors(text, widest_vectors());
  return named < 0 ? widest_vectors() : static_cast<vector_kind>(named);
}

#if defined(COLLX_AVX2)
// Chosen when the program starts. Tests change it, while nothing is combined.
inline vector_kind vectors_in_use = chosen_vectors();

// The family of a processor of AMD's (25: Zen 3 and 4, 26: Zen 5) and its model; of others 0.
struct amd_identity {
  unsigned family = 0, model = 0;
};
inline amd_identity const amd = [] {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_is("amd") || __get_cpuid(1, &a, &b, &c, &d) == 0) return amd_identity{};
  unsigned const base = a >> 8 & 0xf, extended = a >> 20 & 0xff;
  return amd_identity{base + extended, (a >> 4 & 0xf) | (a >> 12 & 0xf0)};
}();

// Of family 25, Zen 3 has the models up to 0x0f and from 0x20 to 0x5f, Zen 4 the others.
inline bool const is_zen_3 =
    amd.family == 25 && (amd.model < 0x10 || (amd.model >= 0x20 && amd.model < 0x60));

// Whether streams want help with what they read next: several pages walked at a time, or lines asked for by
// instructions. Intel's Xeons (fourth generation) take 0.8 of the time with it, AMD's Zen 4 and 5, which
// fetch ahead across pages by themselves, up to 2 times as long, and Zen 3 up to 8; others were not timed
// with and without, and AMD's do as those (docs/decisions.md).
inline bool const wants_help_fetching = amd.family == 0;

// Of a cache that processors share, what results may count on. On Zen 3 half of it: an all_gather of 2 MiB
// whose output is not used again took 1.9 times as long in the cache.
[[nodiscard]] inline std::size_t dependable_part(std::size_t cache_bytes) noexcept {
  return is_zen_3 ? cache_bytes / 2 : cache_bytes;
}

// The cache that processors share, where results are better stored to it than past it; else nothing. So it is
// on AMD's Zen 3 and 5, with a third-level cache of 32 MiB for each eight cores, and neither on Zen 4, which
// has as much, nor on Intel's Xeons (fourth generation); others were not timed (docs/decisions.md).
[[nodiscard]] inline shared_cache find_shared_cache() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if ((amd.family < 26 && !is_zen_3) || __get_cpuid_count(0x8000001d, 3, &a, &b, &c, &d) == 0 ||
      (a & 0x1f) == 0)
    return {};
  // AMD64 Architecture Programmer's Manual, volume 3, appendix E: each field is one less than it says.
  std::size_t const line_bytes = (b & 0xfff) + 1, partitions = (b >> 12 & 0x3ff) + 1, ways = (b >> 22) + 1;
  return {dependable_part(line_bytes * partitions * ways * (std::size_t{c} + 1)), (a >> 14 & 0xfff) + 1};
}

// Whether who looks for a line that another processor is about to write does better to pause between looks:
// each takes the line away from its writer, who must ask for it again. So it is on Zen 4 and 5, where a pause
// takes as long as a line, 27 and 23 ns, and on Zen 3 (without, up to 1.45 of the time); AMD's older ones do
// as those, untimed. On Intel's Xeons it takes 50 to 70 (fourth generation) or 15 (fifth), and gains where no
// root sends: letters that enclose something take 0.92 to 0.97 of the time. Who looks for those of a root had
// better be early (docs/decisions.md).
inline bool const wants_pause_between_looks = amd.family != 0;
inline constexpr bool wants_pause_without_root = true;

// Whether lines are slow to come from another processor's own caches, as on Zen 4, and on Zen 3 (broadcasts
// of 8 KiB take 1.2 to 1.4 of the time without): then what is staged had better not lie where others have
// read lately, and is sooner lent. On Zen 5 they come three times as quickly; others were not timed both ways
// (docs/decisions.md). Tests change it.
inline bool takes_lines_slowly = amd.family == 25;
// Or so quick that a copy of 2 KiB takes less than to wait until a peer has read it. Tests change it.
inline bool takes_lines_quickly = amd.family >= 26;

// Whether the processor copies strings (rep movsb) more slowly than vectors do, and a C library leaves it to
// that: GNU's does so on AMD (seen with 2.36), from 2 KiB on, or 4 with AVX-512. The system does, too.
// Tests change it.
inline bool copies_strings_slowly = vectors_in_use != vector_kind::generic && amd.family >= 25;
#else
inline constexpr bool wants_help_fetching = true;
inline constexpr bool wants_pause_between_looks = false, wants_pause_without_root = false;
inline bool takes_lines_slowly = false, takes_lines_quickly = false;
[[nodiscard]] inline std::size_t dependable_part(std::size_t cache_bytes) noexcept { return cache_bytes; }
[[nodiscard]] inline shared_cache find_shared_cache() noexcept { return {}; }
#endif

// To be called between two looks for what another processor writes; `without_root`: that one looks for what
// this one writes, too.
COLLX_ALWAYS_INLINE void pause_between_looks(bool without_root = false) noexcept {
  if (without_root ? wants_pause_without_root : wants_pause_between_looks) relax();
}

}  // namespace collx::inline abi_1::device::cpu
