// SPDX-License-Identifier: Apache-2.0
// staged_all_to_all (staged_all_to_all.hpp) for blocks that have counts of their own: tables of different
// widths, towers that make less of some inputs than of others. As many messages: hosts - 1 of each rank
// between hosts, none where there is nothing to move.
#pragma once

#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/staged_all_to_all.hpp"

namespace collx::inline abi_1 {

// The stage of a call without one: blocks are sorted by receiving host. They have the same counts.
struct no_stage_v {
  template <class T>
  void operator()(blocks<T const> const& gathered, blocks<T> const& produced, rank_t locals,
                  rank_t hosts) const {
    auto const l_count = static_cast<std::size_t>(locals), h_count = static_cast<std::size_t>(hosts);
    // Begins are summed up anew for each host: this runs between the exchanges, where a list could find no
    // memory, and the other ranks would wait.
    std::size_t to = 0;
    for (std::size_t h = 0; h < h_count; ++h)
      for (std::size_t block = 0, from = 0; block < l_count * h_count; ++block) {
        std::size_t const count = gathered.counts[block];
        if (block % h_count == h && count != 0) {
          device::copy_cached(&produced.data[to], &gathered.data[from], count * sizeof(T));
          to += count;
        }
        from += count;
      }
  }
};

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
[[nodiscard]] blocks<T const> read_only(blocks<T> const& given) noexcept {
  return {std::span<T const>(given.data), given.counts, given.offsets};
}

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

// Without a stage what is produced is what has been gathered.
inline void require_unstaged_counts(problem const& where, rank_t locals,
                                    std::span<std::size_t const> gathered,
                                    std::span<std::size_t const> produced) {
  auto const l_count = static_cast<std::size_t>(locals);
  std::size_t const h_count = gathered.size() / l_count;
  for (std::size_t l = 0; l < l_count; ++l)
    for (std::size_t h = 0; h < h_count; ++h) {
      std::size_t const came = gathered[l * h_count + h], made = produced[h * l_count + l];
      if (came != made)
        throw_wrong_argument("staged_all_to_all_v", where,
                             "without a stage block h * L + l of `produced` must have the count of block "
                             "l * H + h of `gathered`",
                             static_cast<std::int64_t>(made), static_cast<std::int64_t>(came));
    }
}

// Both exchanges, and what is around them (two_moves.hpp). Stage: by value, or a reference where the call
// blocks.
template <class T, class U, class Stage>
class staged_moves_v {
 public:
  static constexpr char const* name = "staged_all_to_all_v";
  static constexpr char const* no_memory = "staged_all_to_all_v: no memory for a request";

  staged_moves_v(exec::standing const& near, exec::standing const& far, blocks<T const> const& in, T* packed,
                 blocks<T> const& gathered, blocks<U> const& produced, blocks<U> const& out,
                 Stage const& stage)
      : near_(near),
        far_(far),
        in_(in),
        packed_(packed),
        gathered_(gathered),
        produced_(produced),
        out_(out),
        stage_(stage),
        to_local_(locals()),
        from_local_(gathered.counts, hosts()),
        to_host_(produced.counts, locals()),
        from_host_(out.counts, locals()) {
    for (std::size_t d = 0; d < in.counts.size(); ++d) to_local_[d % locals()] += in.counts[d];
  }

  [[nodiscard]] static std::size_t bytes_needed() noexcept { return 0; }
  static void use(std::byte*) noexcept {}
  [[nodiscard]] auto first() const noexcept {
    std::size_t elements = 0;
    for (std::size_t const count : to_local_) elements += count;
    blocks<T const> const sorted(std::span<T const>(packed_, elements), {to_local_.data(), locals()});
    return staged_moves<T, U, Stage>::on(
        near_, bind_all_to_all_v(near_.where, sorted, blocks<T>(gathered_.data, from_local_.lengths())));
  }
  [[nodiscard]] auto second() const noexcept {
    blocks<U const> const made(std::span<U const>(produced_.data), to_host_.lengths());
    return staged_moves<T, U, Stage>::on(
        far_, bind_all_to_all_v(far_.where, made, blocks<U>(out_.data, from_host_.lengths())));
  }
  // What goes to one rank of this host lies apart, a block for each other host.
  void before() const noexcept {
    T* to = packed_;
    for (std::size_t l = 0; l < locals(); ++l) {
      T const* from = in_.data.data();
      for (std::size_t d = 0; d < in_.counts.size(); from += in_.counts[d++]) {
        if (d % locals() != l || in_.counts[d] == 0) continue;
        device::copy_cached(to, from, in_.counts[d] * sizeof(T));
        to += in_.counts[d];
      }
    }
  }
  void between() const {
    stage_(blocks<T const>(std::span<T const>(gathered_.data), gathered_.counts), produced_, near_.where.size,
           far_.where.size);
  }
  static void after() noexcept {}

  // Of all lists of counts: those that were made of them hold for these only.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    uneven_buffers const sent{table_of(in_), table_of(gathered_)}, made{table_of(produced_), table_of(out_)};
    return detail::fingerprint(sent, near_.where.size * far_.where.size) +
           31 * detail::fingerprint(made, near_.where.size * far_.where.size);
  }

 private:
  [[nodiscard]] std::size_t locals() const noexcept { return static_cast<std::size_t>(near_.where.size); }
  [[nodiscard]] std::size_t hosts() const noexcept { return static_cast<std::size_t>(far_.where.size); }

  exec::standing near_, far_;
  blocks<T const> in_;
  T* packed_;
  blocks<T> gathered_;
  blocks<U> produced_, out_;
  Stage stage_;
  array<std::size_t> to_local_;
  runs_of_blocks from_local_, to_host_, from_host_;
};

// Checks everything, so that what is wrong is found before anything is packed or sent.
template <class Stage, class Transport, class T, class Packed, class U>
[[nodiscard]] auto bind_staged_v(communicator<Transport>& near, communicator<Transport>& far,
                                 blocks<T const> const& in, Packed& packed, blocks<T> const& gathered,
                                 blocks<U> const& produced, blocks<U> const& out, Stage const& stage) {
  problem const whole{far.rank() * near.size() + near.rank(), near.size() * far.size()};
  constexpr char const* name = staged_moves_v<T, U, Stage>::name;
  require_packed_blocks(whole, "the input", in);
  require_packed_blocks(whole, "`gathered`", gathered);
  require_packed_blocks(whole, "`produced`", produced);
  require_packed_blocks(whole, "the output", out);
  auto const total = [](std::span<std::size_t const> counts) {
    std::size_t sum = 0;
    for (std::size_t const count : counts) sum += count;
    return sum;
  };
  std::size_t const elements = total(in.counts);
  if (packed.size() < elements || (packed.data() == nullptr && elements != 0))
    throw_wrong_argument(name, whole,
                         "`packed` must hold as many elements as the blocks of the input",
                         packed.data() == nullptr ? 0 : static_cast<std::int64_t>(packed.size()),
                         static_cast<std::int64_t>(elements));
  if constexpr (std::is_same_v<std::remove_cvref_t<Stage>, no_stage_v>) {
    require_unstaged_counts(whole, near.size(), gathered.counts, produced.counts);
    std::size_t const came = total(gathered.counts);
    require_apart(name, whole, "without a stage `produced` overlaps `gathered`; pass memory of its own",
                  gathered.data.first(came), produced.data.first(came));
  }
  require_apart(name, whole, "`packed` overlaps the input; pass memory of its own",
                in.data.first(elements), std::span(packed.data(), elements));
  staged_moves_v<T, U, Stage> moves(near.standing(), far.standing(), in, packed.data(), gathered, produced,
                                    out, stage);
  if (auto const first = moves.first(); first.is_wrong()) throw_wrong(first);
  if (auto const second = moves.second(); second.is_wrong()) throw_wrong(second);
  return moves;
}

}  // namespace detail

// near, far and the numbers of ranks as for staged_all_to_all. All blocks lie one behind the other (no
// offsets), each list has n = L * H counts, of elements:
//
//   staged_all_to_all_v(near, far, in, packed, gathered, produced, out, stage)   also start:: and
//   persistent::
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
// Allocates a few short lists, when it is called or made. Throws error; what is wrong with arguments is found
// before anything is sent. Started and persistent ones as for staged_all_to_all; the lists of counts stay the
// caller's, and as they are, for their life.
template <class Algorithm = default_algorithm, class Transport, class In, buffer_like Packed, class T,
          class U, class Stage = no_stage_v>
  requires std::is_same_v<std::remove_const_t<In>, T>
void staged_all_to_all_v(communicator<Transport>& near, communicator<Transport>& far, blocks<In> const& in,
                         Packed&& packed, blocks<T> const& gathered, blocks<U> const& produced,
                         blocks<U> const& out, Stage const& stage = {}) {
  auto const moves = detail::bind_staged_v<Stage const&>(near, far, detail::read_only(in), packed, gathered,
                                                         produced, out, stage);
  moves.before();
  detail::run_or_throw<Algorithm>(near.engine(), moves.first());
  moves.between();
  detail::run_or_throw<Algorithm>(far.engine(), moves.second());
}

namespace start {

template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport, class In,
          buffer_like Packed, class T, class U, bool S0, bool S1, bool S2, bool S3, class Stage = no_stage_v>
  requires std::is_same_v<std::remove_const_t<In>, T>
[[nodiscard]] auto staged_all_to_all_v(communicator<Transport>& near, communicator<Transport>& far,
                                       blocks<In, S0> const& in, Packed&& packed,
                                       blocks<T, S1> const& gathered, blocks<U, S2> const& produced,
                                       blocks<U, S3> const& out, Stage const& stage = {}) {
  COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(Packed, blocks<In, S0>, blocks<T, S1>, blocks<U, S2>, blocks<U, S3>);
  return detail::start_staged<request_of_two, Algorithm>(
      near, far,
      detail::bind_staged_v<Stage>(near, far, detail::read_only(in), packed, gathered, produced, out, stage),
      How);
}

}  // namespace start

namespace persistent {

template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport, class In,
          buffer_like Packed, class T, class U, bool S0, bool S1, bool S2, bool S3, class Stage = no_stage_v>
  requires std::is_same_v<std::remove_const_t<In>, T>
[[nodiscard]] auto staged_all_to_all_v(communicator<Transport>& near, communicator<Transport>& far,
                                       blocks<In, S0> const& in, Packed&& packed,
                                       blocks<T, S1> const& gathered, blocks<U, S2> const& produced,
                                       blocks<U, S3> const& out, Stage const& stage = {}) {
  COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(Packed, blocks<In, S0>, blocks<T, S1>, blocks<U, S2>, blocks<U, S3>);
  return detail::start_staged<persistent_of_two, Algorithm>(
      near, far,
      detail::bind_staged_v<Stage>(near, far, detail::read_only(in), packed, gathered, produced, out, stage),
      How);
}

}  // namespace persistent

}  // namespace collx::inline abi_1
