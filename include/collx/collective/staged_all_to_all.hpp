// SPDX-License-Identifier: Apache-2.0
// An all_to_all on two levels with a stage of the caller's in between: what the ranks of a host have for a
// lane is gathered, transformed (pooled, projected, compressed), and only then sent between hosts. Between
// hosts every rank sends hosts - 1 messages.
//
//   Luo et al.: Disaggregated Multi-Tower: topology-aware modeling technique for efficient large-scale
//   recommendation (2024).
#pragma once

#include "collx/collective/all_to_all.hpp"

namespace collx::inline abi_1 {

namespace detail {

inline void require_blocks(problem const& where, char const* what, std::size_t given, std::size_t needed,
                           bool holds) {
  if (!holds)
    throw_wrong_argument("staged_all_to_all", where, what, static_cast<std::int64_t>(given),
                         static_cast<std::int64_t>(needed));
}

}  // namespace detail

// The stage of an all_to_all without one: what has been gathered is sorted by receiving host.
struct no_stage {
  template <class T>
  void operator()(std::span<T const> gathered, std::span<T> produced, rank_t locals, rank_t hosts) const {
    auto const l_count = static_cast<std::size_t>(locals), h_count = static_cast<std::size_t>(hosts);
    std::size_t const count = gathered.size() / (l_count * h_count);
    if (count == 0) return;
    for (std::size_t l = 0; l < l_count; ++l)
      for (std::size_t h = 0; h < h_count; ++h)
        std::memcpy(&produced[(h * l_count + l) * count], &gathered[(l * h_count + h) * count],
                    count * sizeof(T));
  }
};

// near: the L ranks of this host. far: the H ranks with this one's place in their hosts; a rank's number in
// the whole is far.rank() * L + near.rank(), as on the axes of a mesh. With n = L * H blocks:
//
//   in        n blocks of c elements, block d for rank d
//   gathered  n blocks of c, room for what this host has for this rank's lane: block l * H + h is from
//             rank l of this host, and meant for this lane's rank of host h
//   produced  n blocks of d elements, what the stage makes of it: block h * L + l goes to host h
//   out       n blocks of d, block s from rank s: what came of its input here
//
//   stage(span<T const> gathered, span<U> produced, rank_t L, rank_t H)     this rank's own work
//
// With no_stage the result is that of all_to_all, bit for bit. All buffers are the caller's and distinct;
// gathered and produced hold nothing of use afterwards. Algorithm: of both parts. Throws error; what is
// wrong with arguments is found before anything is sent.
template <class Algorithm = default_algorithm, class Transport, buffer_like In, buffer_like Gathered,
          buffer_like Produced, buffer_like Out, class Stage = no_stage>
void staged_all_to_all(communicator<Transport>& near, communicator<Transport>& far, In&& in,
                       Gathered&& gathered, Produced&& produced, Out&& out, Stage const& stage = {}) {
  using T = element_t<Gathered>;
  using U = element_t<Produced>;
  auto const l_count = static_cast<std::size_t>(near.size()), h_count = static_cast<std::size_t>(far.size());
  std::size_t const n = l_count * h_count, count = in.size() / n;
  problem const whole{far.rank() * near.size() + near.rank(), near.size() * far.size(), 0};
  detail::require_blocks(whole, "the input must be a multiple of the number of ranks on all hosts", in.size(),
                         count * n, in.size() == count * n);
  detail::require_blocks(whole, "`gathered` must be as large as the input", gathered.size(), in.size(),
                         gathered.size() == in.size());
  detail::require_blocks(whole, "`produced` must be as large as the output", produced.size(), out.size(),
                         produced.size() == out.size());
  detail::require_blocks(whole, "the output must be a multiple of the number of ranks on all hosts",
                         out.size(), out.size() / n * n, out.size() % n == 0);
  // What goes to one rank of this host lies apart, a block for each other host.
  std::span<T> const packed(gathered.data(), gathered.size());
  for (std::size_t l = 0; l < l_count && count != 0; ++l)
    for (std::size_t h = 0; h < h_count; ++h)
      std::memcpy(&packed[(l * h_count + h) * count], in.data() + (h * l_count + l) * count,
                  count * sizeof(T));
  all_to_all<Algorithm>(near, packed);
  std::span<U> const made(produced.data(), produced.size());
  stage(std::span<T const>(packed), made, near.size(), far.size());
  all_to_all<Algorithm>(far, std::span<U const>(made), out);
}

}  // namespace collx::inline abi_1
