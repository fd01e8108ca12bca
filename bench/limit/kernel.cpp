// SPDX-License-Identifier: Apache-2.0
// One text for three widths: the build says which (LIMIT_VECTOR_BYTES), with the flags that it takes. What
// the compiler predefines does not say: whoever builds all for AVX2 has that here, too.
#include "kernel.hpp"

#include <immintrin.h>

namespace limit {

#if LIMIT_VECTOR_BYTES == 64
namespace avx512 {
namespace {
using vector = __m512;
inline vector load(float const* from) { return _mm512_load_ps(from); }
inline void store(float* to, vector v) { _mm512_store_ps(to, v); }
inline void store_past_cache(float* to, vector v) { _mm512_stream_ps(to, v); }
#elif LIMIT_VECTOR_BYTES == 32
namespace avx2 {
namespace {
using vector = __m256;
inline vector load(float const* from) { return _mm256_load_ps(from); }
inline void store(float* to, vector v) { _mm256_store_ps(to, v); }
inline void store_past_cache(float* to, vector v) { _mm256_stream_ps(to, v); }
#elif LIMIT_VECTOR_BYTES == 16
namespace generic {
namespace {
using vector = __m128;
inline vector load(float const* from) { return _mm_load_ps(from); }
inline void store(float* to, vector v) { _mm_store_ps(to, v); }
inline void store_past_cache(float* to, vector v) { _mm_stream_ps(to, v); }
#else
#error "LIMIT_VECTOR_BYTES is 16, 32 or 64"
#endif

constexpr std::size_t line_count = 64 / sizeof(float);
constexpr std::size_t vector_count = sizeof(vector) / sizeof(float);

template <bool PastCache>
inline void put(float* to, vector v) {
  if constexpr (PastCache) store_past_cache(to, v);
  else store(to, v);
}

// A copy of whole vectors from one stream to another.
template <int Vectors, bool PastCache>
inline void copy_step(float const* from, float* to) {
  vector v[Vectors];
  for (int i = 0; i < Vectors; ++i) v[i] = load(from + static_cast<std::size_t>(i) * vector_count);
  for (int i = 0; i < Vectors; ++i) put<PastCache>(to + static_cast<std::size_t>(i) * vector_count, v[i]);
}

// The sum of all streams read (of one: itself), to all streams written.
template <int Vectors, bool PastCache>
inline void sum_step(float const* const* in, float* const* out, int reads, int writes, std::size_t at) {
  vector v[Vectors];
  for (int i = 0; i < Vectors; ++i) v[i] = load(in[0] + at + static_cast<std::size_t>(i) * vector_count);
  for (int r = 1; r < reads; ++r)
    for (int i = 0; i < Vectors; ++i) v[i] += load(in[r] + at + static_cast<std::size_t>(i) * vector_count);
  for (int w = 0; w < writes; ++w)
    for (int i = 0; i < Vectors; ++i)
      put<PastCache>(out[w] + at + static_cast<std::size_t>(i) * vector_count, v[i]);
}

// step_at(where) for each whole step of `count` elements; how many elements that were. Several pages at once:
// the processor fetches ahead within a page, so that more lines are under way.
template <std::size_t Step, int Pages, class StepAt>
inline std::size_t walk(std::size_t count, StepAt const& step_at) {
  constexpr std::size_t page = 4096 / sizeof(float);
  std::size_t at = 0;
  if constexpr (Pages > 1)
    for (; at + Pages * page <= count; at += Pages * page)
      for (std::size_t in_page = 0; in_page < page; in_page += Step)
        for (std::size_t p = 0; p < Pages; ++p) step_at(at + p * page + in_page);
  for (; at + Step <= count; at += Step) step_at(at);
  return at;
}

// The few elements behind the last whole step.
inline void rest(streams const& s, float const* const* in, float* const* out, std::size_t at,
                 std::size_t count) {
  for (; at < count; ++at) {
    float sum = 0;
    for (int r = 0; r < s.reads; ++r) sum += in[r][at];
    for (int w = 0; w < s.writes; ++w) out[w][at] = s.sums || s.reads == 1 ? sum : in[w][at];
  }
}

// Reads, Writes: known to the compiler; 0: any number.
template <int Reads, int Writes, bool Pairs, bool PastCache, int Lines, int Pages>
void run(streams const& s, float const* const* in, float* const* out, std::size_t count) {
  constexpr std::size_t step = Lines * line_count;
  constexpr int vectors = static_cast<int>(step / vector_count);
  int const reads = Reads != 0 ? Reads : s.reads, writes = Writes != 0 ? Writes : s.writes;
  std::size_t at = 0;
  if constexpr (Pairs) {
    for (int pair = 0; pair < writes; ++pair)
      at = walk<step, Pages>(
          count, [&](std::size_t i) { copy_step<vectors, PastCache>(in[pair] + i, out[pair] + i); });
  } else {
    at = walk<step, Pages>(count,
                           [&](std::size_t i) { sum_step<vectors, PastCache>(in, out, reads, writes, i); });
  }
  rest(s, in, out, at, count);
  if constexpr (PastCache) _mm_sfence();  // a peer that is told now must see it
}

template <bool PastCache, int Lines, int Pages>
kernel find_shape(streams const& s) {
  if (!s.sums && s.reads != 1) return run<0, 0, true, PastCache, Lines, Pages>;
  if (s.reads == 1 && s.writes == 1) return run<1, 1, false, PastCache, Lines, Pages>;
  if (s.reads == 1 && s.writes == 2) return run<1, 2, false, PastCache, Lines, Pages>;
  if (s.reads == 2 && s.writes == 1) return run<2, 1, false, PastCache, Lines, Pages>;
  if (s.reads == 2 && s.writes == 2) return run<2, 2, false, PastCache, Lines, Pages>;
  return run<0, 0, false, PastCache, Lines, Pages>;
}

}  // namespace

kernel find(streams const& s, variant const& how) {
  if (how.pages > 1) return how.past_cache ? find_shape<true, 1, 4>(s) : find_shape<false, 1, 4>(s);
  if (how.lines == 1) return how.past_cache ? find_shape<true, 1, 1>(s) : find_shape<false, 1, 1>(s);
  return how.past_cache ? find_shape<true, 4, 1>(s) : find_shape<false, 4, 1>(s);
}

}  // namespace generic, avx2 or avx512
}  // namespace limit
