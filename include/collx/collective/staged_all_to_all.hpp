// SPDX-License-Identifier: Apache-2.0
// An all_to_all on two levels with a stage of the caller's in between: what the ranks of a host have for a
// lane is gathered, transformed (pooled, projected, compressed), and only then sent between hosts. Between
// hosts every rank sends hosts - 1 messages.
//
//   Luo et al.: Disaggregated Multi-Tower: topology-aware modeling technique for efficient large-scale
//   recommendation (2024).
#pragma once

#include <utility>

#include "collx/collective/all_to_all.hpp"
#include "collx/collective/two_moves.hpp"
#include "collx/device/copy_cached.hpp"

namespace collx::inline abi_1 {

// The stage of an all_to_all without one: what has been gathered is sorted by receiving host.
struct no_stage {
  template <class T>
  void operator()(std::span<T const> gathered, std::span<T> produced, rank_t locals, rank_t hosts) const {
    auto const l_count = static_cast<std::size_t>(locals), h_count = static_cast<std::size_t>(hosts);
    std::size_t const count = gathered.size() / (l_count * h_count);
    if (count == 0) return;
    for (std::size_t l = 0; l < l_count; ++l)
      for (std::size_t h = 0; h < h_count; ++h)
        device::copy_cached(&produced[(h * l_count + l) * count], &gathered[(l * h_count + h) * count],
                            count * sizeof(T));
  }
};

namespace detail {

inline void require_blocks(problem const& where, char const* what, std::size_t given, std::size_t needed,
                           bool holds) {
  if (!holds)
    throw_wrong_argument("staged_all_to_all", where, what, static_cast<std::int64_t>(given),
                         static_cast<std::int64_t>(needed));
}

// What is sorted into memory of its own would be overwritten before it is read, were it in place.
template <class T, class U>
void require_apart(char const* name, problem const& where, char const* what, std::span<T> from,
                   std::span<U> to) {
  auto const begins = [](auto const& memory) { return reinterpret_cast<std::uintptr_t>(memory.data()); };
  if (begins(from) < begins(to) + to.size_bytes() && begins(to) < begins(from) + from.size_bytes())
    throw_wrong_argument(name, where, what, 0, 0);
}

// Both exchanges, and what is around them (two_moves.hpp). Stage: by value, or a reference where the call
// blocks.
template <class T, class U, class Stage>
struct staged_moves {
  static constexpr char const* name = "staged_all_to_all";
  static constexpr char const* no_memory = "staged_all_to_all: no memory for a request";

  [[nodiscard]] static std::size_t bytes_needed() noexcept { return 0; }
  static void use(std::byte*) noexcept {}
  [[nodiscard]] auto first() const noexcept { return on(near, bind_all_to_all(near.where, gathered)); }
  [[nodiscard]] auto second() const noexcept {
    std::span<U const> const made(produced);
    return on(far, bind_all_to_all(far.where, made, out));
  }
  // What goes to one rank of this host lies apart, a block for each other host.
  void before() const noexcept {
    auto const l_count = static_cast<std::size_t>(near.where.size);
    auto const h_count = static_cast<std::size_t>(far.where.size);
    std::size_t const count = in.size() / (l_count * h_count);
    for (std::size_t l = 0; l < l_count && count != 0; ++l)
      for (std::size_t h = 0; h < h_count; ++h)
        device::copy_cached(&gathered[(l * h_count + h) * count], &in[(h * l_count + l) * count],
                            count * sizeof(T));
  }
  void between() const { stage(std::span<T const>(gathered), produced, near.where.size, far.where.size); }
  static void after() noexcept {}

  template <class Invocation>
  [[nodiscard]] static Invocation on(exec::standing const& at, Invocation args) noexcept {
    args.at = at;
    return args;
  }

  exec::standing near, far;
  std::span<T const> in;
  std::span<T> gathered;
  std::span<U> produced, out;
  Stage stage;
};

// Checks everything, so that what is wrong is found before anything is packed or sent.
template <class Stage, class Transport, class In, class Gathered, class Produced, class Out>
[[nodiscard]] auto bind_staged(communicator<Transport>& near, communicator<Transport>& far, In& in,
                               Gathered& gathered, Produced& produced, Out& out, Stage const& stage) {
  using T = element_t<Gathered>;
  using U = element_t<Produced>;
  static_assert(std::is_same_v<element_t<In>, T>,
                "collx: `in` and `gathered` must have the same element type");
  static_assert(std::is_same_v<element_t<Out>, U>,
                "collx: `produced` and `out` must have the same element type");
  problem const whole{far.rank() * near.size() + near.rank(), near.size() * far.size(), 0};
  auto const n = static_cast<std::size_t>(whole.size);
  require_blocks(whole, "the input must be a multiple of the number of ranks on all hosts", in.size(),
                 in.size() / n * n, in.size() % n == 0);
  require_blocks(whole, null_input, 0, in.size(), in.data() != nullptr || in.size() == 0);
  require_blocks(whole, "`gathered` must be as large as the input", gathered.size(), in.size(),
                 gathered.size() == in.size());
  require_blocks(whole, "`produced` must be as large as the output", produced.size(), out.size(),
                 produced.size() == out.size());
  require_blocks(whole, "the output must be a multiple of the number of ranks on all hosts", out.size(),
                 out.size() / n * n, out.size() % n == 0);
  if constexpr (std::is_same_v<std::remove_cvref_t<Stage>, no_stage>)
    require_blocks(whole, "without a stage the output must be as large as the input", out.size(), in.size(),
                   out.size() == in.size());
  staged_moves<T, U, Stage> moves{near.standing(),
                                  far.standing(),
                                  {in.data(), in.size()},
                                  {gathered.data(), gathered.size()},
                                  {produced.data(), produced.size()},
                                  {out.data(), out.size()},
                                  stage};
  constexpr char const* name = staged_moves<T, U, Stage>::name;
  require_apart(name, whole, "`gathered` overlaps the input; pass memory of its own", moves.in,
                moves.gathered);
  if constexpr (std::is_same_v<std::remove_cvref_t<Stage>, no_stage>)
    require_apart(name, whole, "without a stage `produced` overlaps `gathered`; pass memory of its own",
                  moves.gathered, moves.produced);
  if (auto const first = moves.first(); first.is_wrong()) throw_wrong(first);
  if (auto const second = moves.second(); second.is_wrong()) throw_wrong(second);
  return moves;
}

// Requests of two communicators are one order only where they share all they have.
template <class Transport>
void require_axes(char const* name, communicator<Transport>& near, communicator<Transport>& far) {
  if (&near.engine() == &far.engine()) return;
  throw_wrong_argument(name, where(near),
                       "started and persistent ones need `near` and `far` along axes of one communicator "
                       "(mesh.hpp, communicator::along)",
                       0, 0);
}

// Started, or to be started: `Started` is a request_of_two or persistent_of_two.
template <template <class, class> class Started, class Algorithm, class Transport, class Moves>
[[nodiscard]] auto start_staged(communicator<Transport>& near, communicator<Transport>& far, Moves&& moves,
                                priority how) {
  require_axes(Moves::name, near, far);
  return Started<Moves, typename Transport::endpoint>(near.engine(), std::forward<Moves>(moves), how,
                                                      std::type_identity<Algorithm>());
}

}  // namespace detail

// near: the L ranks of this host. far: the H ranks with this one's place in their hosts; a rank's number in
// the whole is far.rank() * L + near.rank(), as on the axes of a mesh. With n = L * H blocks:
//
//   staged_all_to_all(near, far, in, gathered, produced, out, stage)     also start:: and persistent::
//
//   in        n blocks of c elements, block d for rank d
//   gathered  n blocks of c, room for what this host has for this rank's lane: block l * H + h is from
//             rank l of this host, and meant for this lane's rank of host h
//   produced  n blocks of d elements, what the stage makes of it: block h * L + l goes to host h
//   out       n blocks of d, block s from rank s: what came of its input here
//
//   stage(span<T const> gathered, span<U> produced, rank_t L, rank_t H)     this rank's own work
//
// With no_stage the result is that of all_to_all, bit for bit. All buffers are the caller's and distinct (but
// a stage of yours may work in place); gathered and produced hold nothing of use afterwards. Algorithm: of
// both parts. Throws error; what is wrong with arguments is found before anything is sent.
//
// Started and persistent ones take near and far along axes of one communicator (a mesh's). They have a copy
// of the stage, and call it when what it is for has come, within whichever call moves requests of that
// communicator along: it delays those, calls no collective, and must not throw (std::terminate). The
// persistent one is a persistent_collective in all but its type.
template <class Algorithm = default_algorithm, class Transport, buffer_like In, buffer_like Gathered,
          buffer_like Produced, buffer_like Out, class Stage = no_stage>
void staged_all_to_all(communicator<Transport>& near, communicator<Transport>& far, In&& in,
                       Gathered&& gathered, Produced&& produced, Out&& out, Stage const& stage = {}) {
  auto const moves = detail::bind_staged<Stage const&>(near, far, in, gathered, produced, out, stage);
  moves.before();
  detail::run_or_throw<Algorithm>(near.engine(), moves.first());
  moves.between();
  detail::run_or_throw<Algorithm>(far.engine(), moves.second());
}

namespace start {

template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport,
          buffer_like In, buffer_like Gathered, buffer_like Produced, buffer_like Out, class Stage = no_stage>
[[nodiscard]] auto staged_all_to_all(communicator<Transport>& near, communicator<Transport>& far, In&& in,
                                     Gathered&& gathered, Produced&& produced, Out&& out,
                                     Stage const& stage = {}) {
  COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(In, Gathered, Produced, Out);
  return detail::start_staged<request_of_two, Algorithm>(
      near, far, detail::bind_staged<Stage>(near, far, in, gathered, produced, out, stage), How);
}

}  // namespace start

namespace persistent {

template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport,
          buffer_like In, buffer_like Gathered, buffer_like Produced, buffer_like Out, class Stage = no_stage>
[[nodiscard]] auto staged_all_to_all(communicator<Transport>& near, communicator<Transport>& far, In&& in,
                                     Gathered&& gathered, Produced&& produced, Out&& out,
                                     Stage const& stage = {}) {
  COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(In, Gathered, Produced, Out);
  return detail::start_staged<persistent_of_two, Algorithm>(
      near, far, detail::bind_staged<Stage>(near, far, in, gathered, produced, out, stage), How);
}

}  // namespace persistent

}  // namespace collx::inline abi_1
