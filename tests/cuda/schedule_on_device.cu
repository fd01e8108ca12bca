// SPDX-License-Identifier: Apache-2.0
// Evaluates step() of every schedule in a kernel, and compares with what the host computes. That it
// compiles shows that the schedule language is host-and-device text; only a GPU shows the rest.
#include <cstdio>
#include <cstdlib>

#include <collx/algo/all.hpp>
#include <cuda_runtime.h>

namespace {

using namespace collx;

constexpr rank_t size_max = 33;

// Of the fields of a primitive, by the steps of FNV-1a with whole fields for bytes: enough to see that two
// processors agree.
struct digest {
  std::uint64_t value = 14695981039346656037ULL;

  COLLX_HD constexpr void add(std::int64_t field) {
    value = (value ^ static_cast<std::uint64_t>(field)) * 1099511628211ULL;
  }
  COLLX_HD constexpr void add(peer_set s) { add(s.first), add(s.stride), add(s.count); }
  COLLX_HD constexpr void add(region r) {
    add(static_cast<std::int64_t>(r.where)), add(r.first), add(r.count), add(r.per_peer);
  }
  // Unpacked by position, so that a new field cannot be forgotten: it would not compile.
  COLLX_HD constexpr void add(primitive const& p) {
    auto const& [from, to, operand, target, reduce, store, copy, push, complete] = p;
    add(from), add(to), add(operand), add(target);
    add(reduce), add(store), add(copy), add(push), add(complete);
  }
};

// All steps of one rank, for every root.
template <class Schedule>
COLLX_HD std::uint64_t steps_of(rank_t rank, rank_t size) {
  digest d;
  if (!collx::supports<Schedule>(size)) return d.value;
  for (rank_t root = 0; root < size; ++root) {
    problem const p{rank, size, root};
    d.add(collx::chunk_count<Schedule>(size));
    for (std::int32_t s = 0; s < Schedule::step_count(p); ++s) d.add(Schedule::step(p, s));
  }
  return d.value;
}

template <class Schedule>
__global__ void evaluate(rank_t size, std::uint64_t* out) {
  rank_t const rank = static_cast<rank_t>(threadIdx.x);
  if (rank < size) out[rank] = steps_of<Schedule>(rank, size);
}

void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <class Schedule>
int count_differences(std::uint64_t* device_digests) {
  int differences = 0;
  for (rank_t size = 1; size <= size_max; ++size) {
    evaluate<Schedule><<<1, size_max>>>(size, device_digests);
    std::uint64_t digests[size_max];
    require(cudaMemcpy(digests, device_digests, sizeof digests, cudaMemcpyDeviceToHost), "evaluate");
    for (rank_t rank = 0; rank < size; ++rank) differences += digests[rank] != steps_of<Schedule>(rank, size);
  }
  return differences;
}

}  // namespace

int main() {
  int device_count = 0;
  if (cudaGetDeviceCount(&device_count) != cudaSuccess || device_count == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  std::uint64_t* digests = nullptr;
  require(cudaMalloc(&digests, size_max * sizeof(std::uint64_t)), "cudaMalloc");
  int failed = 0;
  for_each_schedule<algo::all, contract::all>([&]<class Algorithm, class Contract, class Schedule>() {
    int const differences = count_differences<Schedule>(digests);
    std::printf("%-28s %-16s %s\n", Algorithm::name, Contract::name, differences == 0 ? "agrees" : "DIFFERS");
    failed += differences != 0;
  });
  require(cudaFree(digests), "cudaFree");
  return failed == 0 ? 0 : 1;
}
