// SPDX-License-Identifier: Apache-2.0
// staged_all_to_all (staged_all_to_all.hpp) for blocks that have counts of their own: tables of different
// widths, towers that make less of some inputs than of others. As many messages: hosts - 1 of each rank
// between hosts, none where there is nothing to move.
#pragma once

#include "collx/collective/all_to_all_v.hpp"

namespace collx::inline abi_1 {

namespace detail {

// Blocks one behind the other, in runs of `each` for one receiver or from one sender: how long the runs are.
class runs_of_blocks {
 public:
  runs_of_blocks(std::span<std::size_t const> counts, std::size_t each) : lengths_(counts.size() / each) {
    for (std::size_t i = 0; i < counts.size(); ++i) lengths_[i / each] += counts[i];
  }
  [[nodiscard]] std::span<std::size_t const> lengths() const noexcept {
    return {lengths_.data(), lengths_.size()};
  }

 private:
  array<std::size_t> lengths_;
};

template <class T>
void require_packed_blocks(problem const& where, char const* what, blocks<T> const& given) {
  auto const ranks = static_cast<std::size_t>(where.size);
  auto const refuse = [&](char const* why, std::size_t is, std::size_t needed) {
    char text[200];
    std::snprintf(text, sizeof text, "%s %s", what, why);
    throw_wrong_argument("staged_all_to_all_v", where, text, static_cast<std::int64_t>(is),
                         static_cast<std::int64_t>(needed));
  };
  if (given.counts.size() != ranks || !given.offsets.empty())
    refuse("must have a count for every rank on all hosts, and no offsets", given.counts.size(), ranks);
  std::size_t end = 0;
  for (std::size_t const count : given.counts) {
    if (count > given.data.size() - end)
      refuse("must hold its blocks, one behind the other", given.data.size(), end + count);
    end += count;
  }
  if (end != 0 && given.data.data() == nullptr) refuse("must have memory", 0, end);
}

}  // namespace detail

// The stage of a call without one: blocks are sorted by receiving host. They have the same counts.
struct no_stage_v {
  template <class T>
  void operator()(blocks<T const> const& gathered, blocks<T> const& produced, rank_t locals,
                  rank_t hosts) const {
    auto const l_count = static_cast<std::size_t>(locals), h_count = static_cast<std::size_t>(hosts);
    array<std::size_t> begins(l_count * h_count);
    for (std::size_t b = 1; b < begins.size(); ++b) begins[b] = begins[b - 1] + gathered.counts[b - 1];
    std::size_t to = 0;
    for (std::size_t h = 0; h < h_count; ++h)
      for (std::size_t l = 0; l < l_count; ++l) {
        std::size_t const block = l * h_count + h, count = gathered.counts[block];
        if (count != 0) std::memcpy(&produced.data[to], &gathered.data[begins[block]], count * sizeof(T));
        to += count;
      }
  }
};

// near, far and the numbers of ranks as for staged_all_to_all. All blocks lie one behind the other (no
// offsets), each list has n = L * H counts, of elements:
//
//   in        block d for rank d
//   packed    as many elements as the blocks of `in` together: what is sent to this host is sorted there
//   gathered  block l * H + h is from rank l of this host, meant for this lane's rank of host h; its count is
//             what that rank has in `in` for it
//   produced  what the stage makes of it: block h * L + l goes to host h
//   out       block s from rank s: what came of its input here; its count is that of the block of `produced`
//             on the rank that sends it
//
//   stage(blocks<T const> gathered, blocks<U> produced, rank_t L, rank_t H)     this rank's own work
//
// Every rank knows its own counts; sums that two ranks do not share are status::mismatch, which names both.
// All buffers are the caller's and distinct; packed, gathered and produced hold nothing of use afterwards.
// Allocates a few short lists. Throws error; what is wrong with arguments is found before anything is sent.
template <class Algorithm = default_algorithm, class Transport, class In, buffer_like Packed, class T,
          class U, class Stage = no_stage_v>
  requires std::is_same_v<std::remove_const_t<In>, T>
void staged_all_to_all_v(communicator<Transport>& near, communicator<Transport>& far, blocks<In> const& in,
                         Packed&& packed, blocks<T> const& gathered, blocks<U> const& produced,
                         blocks<U> const& out, Stage const& stage = {}) {
  auto const l_count = static_cast<std::size_t>(near.size()), h_count = static_cast<std::size_t>(far.size());
  std::size_t const n = l_count * h_count;
  problem const whole{far.rank() * near.size() + near.rank(), near.size() * far.size()};
  detail::require_packed_blocks(whole, "the input", in);
  detail::require_packed_blocks(whole, "`gathered`", gathered);
  detail::require_packed_blocks(whole, "`produced`", produced);
  detail::require_packed_blocks(whole, "the output", out);
  std::size_t elements = 0;
  for (std::size_t const count : in.counts) elements += count;
  if (packed.size() < elements || (packed.data() == nullptr && elements != 0))
    detail::throw_wrong_argument(
        "staged_all_to_all_v", whole, "`packed` must hold as many elements as the blocks of the input",
        packed.data() == nullptr ? 0 : static_cast<std::int64_t>(packed.size()),
        static_cast<std::int64_t>(elements));
  // What goes to one rank of this host lies apart, a block for each other host.
  array<std::size_t> to_local(l_count);
  std::size_t end = 0;
  for (std::size_t l = 0; l < l_count; ++l) {
    std::size_t from = 0;
    for (std::size_t d = 0; d < n; from += in.counts[d++]) {
      if (d % l_count != l || in.counts[d] == 0) continue;
      std::memcpy(packed.data() + end, in.data.data() + from, in.counts[d] * sizeof(T));
      end += in.counts[d];
      to_local[l] += in.counts[d];
    }
  }
  detail::runs_of_blocks const from_local(gathered.counts, h_count), to_host(produced.counts, l_count),
      from_host(out.counts, l_count);
  std::span<T const> const sorted(packed.data(), end);
  all_to_all_v<Algorithm>(near, blocks<T const>(sorted, {to_local.data(), l_count}),
                          blocks<T>(gathered.data, from_local.lengths()));
  stage(blocks<T const>(gathered.data, gathered.counts), produced, near.size(), far.size());
  std::span<U const> const made(produced.data);
  all_to_all_v<Algorithm>(far, blocks<U const>(made, to_host.lengths()),
                          blocks<U>(out.data, from_host.lengths()));
}

}  // namespace collx::inline abi_1
