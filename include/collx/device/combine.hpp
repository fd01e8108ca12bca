// SPDX-License-Identifier: Apache-2.0
// How a team of threads copies and reduces: m sources combined, in order, into k destinations in one pass
// over memory. The body of the CUDA kernels (cuda/kernels.cuh) and of the steps of the device executor.
#pragma once

#include "collx/device/alignment.hpp"
#include "collx/device/pack.hpp"
#include "collx/device/team.hpp"
#include "collx/device/team_copy.hpp"
#include "collx/op/reduction.hpp"

namespace collx::inline abi_1::device {

namespace detail {

// What combine() was told.
template <class T, class Op>
struct combination {
  T* const* destinations;
  T const* const* sources;
  int destination_count, source_count;
  Op const& op;
  bool finish;
  rank_t size;
  int prepared;
};

// Packs of N elements that a thread has in flight, from each of two sources: what hides the way to memory.
// Limited by the registers for both and for the results, of which each takes at least one: this many bytes
// leave room for three blocks of 256 threads on a multiprocessor of Hopper.
inline constexpr std::size_t held_bytes_max = 192;
inline constexpr std::size_t packs_max = 4;
template <class T, class Wide, std::size_t N>
inline constexpr std::size_t packs_in_flight = [] {
  std::size_t const pack_bytes = N * (2 * sizeof(T) + (sizeof(Wide) < 4 ? 4 : sizeof(Wide)));
  std::size_t const packs = held_bytes_max / pack_bytes;
  return packs < 1 ? std::size_t{1} : packs > packs_max ? packs_max : packs;
}();

// The elements that one thread combines at a time: packs of N. All that is read of a source, or of two, is
// asked for before any of it is used; all of a batch is combined before any is written.
template <access By, std::size_t N, std::size_t Packs, class T, class Op>
class batch {
  using wide = accumulate_t<Op, T>;

 public:
  // The packs at places first, first + stride, ...
  COLLX_HD_INLINE batch(combination<T, Op> const& told, places const& where, std::size_t first,
                        std::size_t stride)
      : told_(told) {
    COLLX_UNROLL
    for (std::size_t p = 0; p < Packs; ++p) at_[p] = where.at(first + p * stride);
  }

  // Two sources at a time; of an odd number, the first one by itself.
  COLLX_HD_INLINE void run() {
    int const count = told_.source_count;
    bool const odd = count % 2 != 0;
    if (odd) fold<1, true>(0);
    else fold<2, true>(0);
    COLLX_NO_UNROLL
    for (int k = odd ? 1 : 2; k < count; k += 2) fold<2, false>(k);
    write();
  }

 private:
  template <int Sources, bool Begin>
  COLLX_HD_INLINE void fold(int k) {
    pack<By, T, N> read[std::size_t{Sources}][Packs];
    COLLX_UNROLL
    for (int s = 0; s < Sources; ++s) {
      T const* const source = told_.sources[k + s];
      COLLX_UNROLL
      for (std::size_t p = 0; p < Packs; ++p) read[s][p].load(source + at_[p]);
    }
    COLLX_UNROLL
    for (int s = 0; s < Sources; ++s) {
      COLLX_UNROLL
      for (std::size_t p = 0; p < Packs; ++p) {
        T operand[N];
        read[s][p].get(operand);
        prepare(operand, k + s);
        if (Begin && s == 0) widen_pack(total_[p], operand);
        else add(total_[p], operand);
      }
    }
  }

  COLLX_HD_UNCHECKED
  COLLX_HD_INLINE void prepare([[maybe_unused]] T (&own)[N], [[maybe_unused]] int k) {
    if constexpr (prepares<Op, T>) {
      if (k != told_.prepared) return;
      COLLX_UNROLL
      for (std::size_t i = 0; i < N; ++i) {
        own[i] = static_cast<T>(told_.op.prepare(own[i]));
        round_here(own[i]);
      }
    }
  }

  COLLX_HD_UNCHECKED
  COLLX_HD_INLINE void add(wide (&total)[N], T const (&own)[N]) {
    wide operand[N];
    widen_pack(operand, own);
    COLLX_UNROLL
    for (std::size_t i = 0; i < N; ++i) total[i] = static_cast<wide>(told_.op(total[i], operand[i]));
  }

  COLLX_HD_UNCHECKED
  COLLX_HD_INLINE void finish(wide (&total)[N]) {
    if constexpr (finishes<Op, wide>) {
      if (!told_.finish) return;
      COLLX_UNROLL
      for (std::size_t i = 0; i < N; ++i) total[i] = static_cast<wide>(told_.op.finish(total[i], told_.size));
    }
  }

  COLLX_HD_INLINE void write() {
    pack<By, T, N> result[Packs];
    COLLX_UNROLL
    for (std::size_t p = 0; p < Packs; ++p) {
      T elements[N];
      finish(total_[p]);
      narrow_pack(elements, total_[p]);
      result[p].set(elements);
    }
    COLLX_NO_UNROLL
    for (int j = 0; j < told_.destination_count; ++j) {
      T* const destination = told_.destinations[j];
      COLLX_UNROLL
      for (std::size_t p = 0; p < Packs; ++p) result[p].store(destination + at_[p]);
    }
  }

  combination<T, Op> const& told_;
  std::size_t at_[Packs];
  wide total_[Packs][N];
};

// Batches of at most `Most` packs. Neighbouring threads take neighbouring packs, so that their accesses are
// one. Whole batches ask nothing of their packs; guarded ones cost a GPU's compiler its predicates, and it
// then no longer reads before it adds.
template <access By, std::size_t N, std::size_t Most, class T, class Op, team Team>
COLLX_HD_INLINE void combine_places(Team const& threads, combination<T, Op> const& told,
                                    places const& where) {
  constexpr std::size_t possible = packs_in_flight<T, accumulate_t<Op, T>, N>;
  constexpr std::size_t packs = possible < Most ? possible : Most;
  std::size_t const stride = N * static_cast<std::size_t>(threads.size());
  std::size_t at = N * static_cast<std::size_t>(threads.rank());
  COLLX_NO_UNROLL
  for (; at + (packs - 1) * stride < where.count; at += packs * stride)
    batch<By, N, packs, T, Op>(told, where, at, stride).run();
  if constexpr (packs > 1) {
    COLLX_NO_UNROLL
    for (; at < where.count; at += stride) batch<By, N, 1, T, Op>(told, where, at, stride).run();
  }
}

// Elements begin .. begin + count - 1: those between the first and the last boundary in vectors, at most
// `Most` packs of them at a time, the others singly.
template <std::size_t Most, class T, class Op, team Team>
COLLX_HD_INLINE void combine_piece(Team const& threads, combination<T, Op> const& told, std::size_t begin,
                                   std::size_t count) {
  std::size_t head = 0, whole = 0;
  if constexpr (has_vectors<T>) {
    constexpr std::size_t n = pack_elements<T>;
    alignment all;
    COLLX_NO_UNROLL
    for (int j = 0; j < told.destination_count; ++j) all.add(told.destinations[j] + begin);
    COLLX_NO_UNROLL
    for (int k = 0; k < told.source_count; ++k) all.add(told.sources[k] + begin);
    head = all.steps(sizeof(T), n);
    if (head < n && head < count) whole = (count - head) / n * n;
    if (whole == 0) head = 0;
    combine_places<access::vectors, n, Most>(threads, told, {begin + head, whole, whole, 0});
  }
  combine_places<access::elements, 1, packs_max>(threads, told, {begin, count - whole, head, whole});
}

}  // namespace detail

// destinations[j][i] = op(sources[0][i], sources[1][i], ...), folded from the left in accumulate_t<Op, T>,
// for i < count: the bits of host_combine.hpp. Called by all threads of the team with equal arguments, in any
// memory that they all can read. Nothing is synchronised: an element is read and written by one thread, and
// the caller syncs where others wrote the sources or are to read the destinations.
//
// A destination may be one of the sources (exactly, not shifted); all sources of an element are read before
// it is written. With `finish`, the operator's finish() is applied to the result. `prepared` is the source
// that the operator's prepare() is applied to first, -1: none. source_count >= 1, destination_count >= 0.
template <class T, class Op, team Team>
COLLX_HD void combine(Team& threads, T* const* destinations, int destination_count, T const* const* sources,
                      int source_count, std::size_t count, Op const& op, bool finish, rank_t size,
                      int prepared = -1) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_copyable_v<Op>,
                "combine() takes trivially copyable elements and operators");
  detail::combination<T, Op> const told{destinations, sources, destination_count, source_count, op,
                                        finish,       size,    prepared};
  detail::combine_piece<detail::packs_max>(threads, told, 0, count);
}

}  // namespace collx::inline abi_1::device
