// SPDX-License-Identifier: Apache-2.0
// How a team of threads copies and reduces: m sources combined, in order, into k destinations in one pass over
// memory. The body of the CUDA kernels (cuda/kernels.cuh) and of the steps of the device executor.
#pragma once

#include <cstddef>

#include "collx/device/team.hpp"
#include "collx/op/reduction.hpp"

namespace collx::inline abi_1::device {

// destinations[j][i] = op(sources[0][i], sources[1][i], ...), folded from the left in accumulate_t<Op, T>, for
// i < count. Called by all threads of the team with equal arguments; no synchronisation is done: an element is read
// and written by one thread, and the caller syncs where others wrote the sources or will read the destinations.
//
// A destination may be one of the sources (exactly, not shifted); all sources of an element are read before it is
// written. With `finish`, the operator's finish() is applied to the result. `prepared` is the source that the
// operator's prepare() is applied to first, -1: none. source_count >= 1, destination_count >= 0.
template <class T, class Op, team Team>
COLLX_HD void combine(Team& threads, T* const* destinations, int destination_count, T const* const* sources,
                      int source_count, std::size_t count, Op const& op, bool finish, rank_t size,
                      int prepared = -1);

// destinations[j][i] = source[i] for i < count, bit for bit. A destination may be the source.
template <class T, team Team>
COLLX_HD void copy(Team& threads, T* const* destinations, int destination_count, T const* source,
                   std::size_t count);

}  // namespace collx::inline abi_1::device
