// SPDX-License-Identifier: Apache-2.0
// A ring all-reduce of floats written out by hand, for one GPU or several that share an address space: what
// the library's ring, run from its schedule, is compared with. Flags, two slots for each lane, and nothing
// else: no deadline, no abort, no check, any count that the ranks divide into multiples of four.
#pragma once

#include <cstdint>

#include <cuda/atomic>
#include <cuda_runtime.h>

namespace by_hand {

inline constexpr int slots = 2;

struct flags {
  std::uint64_t filled;  // by the left neighbour
  std::uint64_t pad[15];
  std::uint64_t freed;  // by the right one
  std::uint64_t pad_too[15];
};

// Of one rank; an array of them is an argument of the kernel.
struct member {
  float const* in;
  float* out;
  float* staging;  // [lane][slot][slot_count]
  flags* lanes;
  std::uint64_t* rounds;  // [lane]: messages so far
};

struct ring {
  member members[8];
  int size;
  std::size_t slot_count;  // floats
};

using word = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_system>;

__device__ inline void wait_for(std::uint64_t& at, std::uint64_t value) {
  if (threadIdx.x == 0)
    while (word(at).load(::cuda::memory_order_acquire) < value) {
    }
  __syncthreads();
}

__device__ inline void tell(std::uint64_t& at, std::uint64_t value) {
  __syncthreads();
  if (threadIdx.x == 0) word(at).store(value, ::cuda::memory_order_release);
}

// out = a (+ b), and the same to `sent` unless that is null.
__device__ inline void move(float* out, float* sent, float const* a, float const* b, std::size_t count) {
  auto const* const x = reinterpret_cast<float4 const*>(a);
  auto const* const y = reinterpret_cast<float4 const*>(b);
  for (std::size_t i = threadIdx.x; i < count / 4; i += blockDim.x) {
    float4 v = x[i];
    if (y != nullptr) v.x += y[i].x, v.y += y[i].y, v.z += y[i].z, v.w += y[i].w;
    if (out != nullptr) reinterpret_cast<float4*>(out)[i] = v;
    if (sent != nullptr) reinterpret_cast<float4*>(sent)[i] = v;
  }
}

// One block on a multiprocessor, as the library's: with the first number alone, ptxas makes room for three,
// and spills.
__global__ void __launch_bounds__(512, 1)
    all_reduce(__grid_constant__ ring const all, int rank, std::size_t count) {
  int const n = all.size, lane = static_cast<int>(blockIdx.x), lanes = static_cast<int>(gridDim.x);
  member const& me = all.members[rank];
  member const& right = all.members[(rank + 1) % n];
  member const& left = all.members[(rank + n - 1) % n];
  std::size_t const chunk = count / static_cast<std::size_t>(n);
  // Of a lane: whole vectors of four. The last lane has what is left.
  std::size_t const each =
      (chunk / 4 + static_cast<std::size_t>(lanes) - 1) / static_cast<std::size_t>(lanes) * 4;
  std::size_t const behind = static_cast<std::size_t>(lane) * each;
  std::size_t const share = behind >= chunk ? 0 : chunk - behind < each ? chunk - behind : each;
  std::size_t const pieces = (share + all.slot_count - 1) / all.slot_count;
  std::uint64_t const first = me.rounds[lane];
  std::uint64_t sent = first, taken = first;
  auto const slot_of = [&](member const& of, std::uint64_t message) {
    return of.staging + (static_cast<std::size_t>(lane) * slots + message % slots) * all.slot_count;
  };
  for (std::size_t p = 0; p < pieces; ++p) {
    std::size_t const at = behind + p * all.slot_count;
    std::size_t const rest = share - p * all.slot_count, len = rest < all.slot_count ? rest : all.slot_count;
    for (int step = 0; step < 2 * n - 1; ++step) {
      int const c = (rank - step + 2 * n) % n;
      std::size_t const begin = static_cast<std::size_t>(c) * chunk + at;
      bool const takes = step > 0, gives = step < 2 * n - 2, adds = takes && step < n;
      if (gives) wait_for(me.lanes[lane].freed, sent < slots ? 0 : sent - slots + 1);
      if (takes) wait_for(me.lanes[lane].filled, taken + 1);
      float const* const from = takes ? slot_of(me, taken) : me.in + begin;
      move(step >= n - 1 ? me.out + begin : nullptr, gives ? slot_of(right, sent) : nullptr, from,
           adds ? me.in + begin : nullptr, len);
      if (takes) tell(left.lanes[lane].freed, ++taken);
      if (gives) tell(right.lanes[lane].filled, ++sent);
      __syncthreads();
    }
  }
  if (threadIdx.x == 0) me.rounds[lane] = sent;
}

}  // namespace by_hand
