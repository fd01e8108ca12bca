// SPDX-License-Identifier: Apache-2.0
// Reductions on the GPU in collectives that the host drives: copy engines and the network bring every rank's
// contribution to a block to the rank that owns it, a kernel adds them up, and nothing else runs on the GPU.
// What the host does is an all_to_all and an all_gather, so this is a way to compose them, in stream order.
//
// Contributions are combined in the order of ranks, whatever the operator. Here without CUDA: `combine` puts
// a reduction into the stream. For GPUs: collective/gpu_reductions.cuh.
#pragma once

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/reduce_scatter.hpp"

namespace collx::inline abi_1::detail {

// Elements of workspace that a reduction of `count` elements needs, on a group of `size` ranks.
[[nodiscard]] constexpr std::size_t device_workspace(std::size_t count, rank_t size) {
  return count / static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
}

template <class T>
void require_workspace(char const* collective, problem const& where, std::span<T> workspace,
                       std::size_t needed) {
  if (workspace.size() < needed)
    throw_wrong_argument(collective, where,
                         "the workspace must hold as many elements as the ranks share equally",
                         static_cast<std::int64_t>(workspace.size()), static_cast<std::int64_t>(needed));
}

// Block by block from the workspace to `out`: combine(out, sources, how many, elements) for what came from
// all ranks.
template <class T, class Combine>
void combine_blocks(problem p, T* out, std::span<T> workspace, std::size_t count, Combine const& combine) {
  array<T const*> sources(static_cast<std::size_t>(p.size));
  for (std::size_t r = 0; r < sources.size(); ++r) sources[r] = workspace.data() + r * count;
  combine(out, sources.data(), p.size, count);
}

// `driver`: a host_driven. in and out do not overlap; neither overlaps the workspace.
template <class Driver, class T, class Combine>
void reduce_scatter_on_device(Driver& driver, std::span<T const> in, std::span<T> out, std::span<T> workspace,
                              Combine const& combine, typename Driver::stream where) {
  problem const p{driver.rank(), driver.size(), 0};
  auto const ranks = static_cast<std::size_t>(p.size);
  if (std::size_t const most = most_elements(sizeof(T), ranks); out.size() > most)
    throw_wrong_argument("reduce_scatter", p, absurd_count, static_cast<std::int64_t>(out.size()),
                         static_cast<std::int64_t>(most));
  if (in.size() != out.size() * ranks)
    throw_wrong_argument("reduce_scatter", p, "the input must have a block like the output for every rank",
                         static_cast<std::int64_t>(in.size()),
                         static_cast<std::int64_t>(out.size() * ranks));
  require_workspace("reduce_scatter", p, workspace, in.size());
  if (out.empty()) return;
  std::span<T> gathered = workspace.first(in.size());
  driver.template enqueue<automatic>(bind_all_to_all(p, in, gathered), where);
  combine_blocks(p, out.data(), gathered, out.size(), combine);
}

// in and out may be the same. What the ranks do not share equally, fewer elements than there are ranks, the
// host adds up.
template <class Driver, class T, class Op, class Combine>
void all_reduce_on_device(Driver& driver, std::span<T const> in, std::span<T> out, Op const& op,
                          std::span<T> workspace, Combine const& combine, typename Driver::stream where) {
  problem const p{driver.rank(), driver.size(), 0};
  auto const checked = bind_all_reduce(p, in, out, op);
  if (checked.fault != nullptr)
    throw_wrong_argument("all_reduce", p, checked.fault, checked.given, checked.needed);
  std::size_t const shared = device_workspace(in.size(), p.size);
  require_workspace("all_reduce", p, workspace, shared);
  if (std::size_t const each = shared / static_cast<std::size_t>(p.size); each != 0) {
    std::span<T const> const given = in.first(shared);
    std::span<T> gathered = workspace.first(shared), result = out.first(shared);
    std::span<T> const mine = result.subspan(static_cast<std::size_t>(p.rank) * each, each);
    driver.template enqueue<automatic>(bind_all_to_all(p, given, gathered), where);
    combine_blocks(p, mine.data(), gathered, each, combine);
    driver.template enqueue<automatic>(bind_all_gather(p, mine, result), where);
  }
  std::span<T const> const rest = in.subspan(shared);
  std::span<T> rest_out = out.subspan(shared);
  if (!rest.empty()) driver.template enqueue<automatic>(bind_all_reduce(p, rest, rest_out, op), where);
}

}  // namespace collx::inline abi_1::detail
