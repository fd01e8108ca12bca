// SPDX-License-Identifier: Apache-2.0
// Proofs at compile time:
//
//   static_assert(collx::proves<my_schedule, 2, 8>);                                  // 2 .. 8 ranks
//   static_assert(collx::proves_for<my_family, collx::contract::all_reduce, 2, 8>);   // one of a family
//
//   static_assert(collx::proves_hosts<algo::hierarchical<ring, chain>::all_reduce, 4, 3>);   // 1 .. 4 ranks
//                                                                                 on each of 1 .. 3 hosts
//
// A wrong schedule stops the compiler with a sentence that says what is wrong; the types in the
// lines around it say where. To ask without stopping, call collx::verify<my_schedule>(size).
#pragma once

#include "collx/schedule/verify.hpp"

namespace collx::inline abi_1 {

// The words of a counterexample, as a compiler prints them.
namespace proof {
template <rank_t>
struct with_ranks;
template <rank_t>
struct and_root;
template <rank_t>
struct ranks_per_host;
template <rank_t>
struct at_rank;
template <std::int32_t>
struct in_step;
template <rank_t>
struct concerning_peer;
template <std::int32_t>
struct at_chunk;
struct out_of_place;
struct in_place;
}  // namespace proof

namespace detail {

// Instantiated for a wrong schedule only: exactly one of the assertions fails.
template <class Schedule, fault What, class... Where>
struct counterexample {
#define COLLX_DETAIL_ASSERTION(name, text) static_assert(What != fault::name, "wrong schedule: " text);
  COLLX_DETAIL_FAULTS(COLLX_DETAIL_ASSERTION)
#undef COLLX_DETAIL_ASSERTION
};

// Whether blocks may differ, too, as far as the schedule states it.
template <class S>
[[nodiscard]] constexpr verdict prove_case(shape n, rank_t root) {
  verdict const found = collx::verify<S>(n, root);
  if (!found.ok() || counts_for<S>() == known_counts::equal) return found;
  return collx::verify<S>(n, root, {.uneven = 1});
}

// One constant, so that compilers' limits on constant evaluation hold for one size and root.
template <class S, rank_t Size, rank_t Root, rank_t Inner = 1>
inline constexpr verdict verdict_for = prove_case<S>(shape{Size, Inner}, Root);

// The verdict on the smallest wrong case. `Any`: some case was proved right before this one.
template <class S, rank_t Size, rank_t Last, rank_t Root = 0, bool Any = false>
constexpr verdict first_wrong() {
  if constexpr (Size > Last) return {.what = Any ? fault::none : fault::size_not_supported, .size = Last};
  else if constexpr (!supports<S>(Size)) return first_wrong<S, Size + 1, Last, 0, Any>();
  else if constexpr (!verdict_for<S, Size, Root>.ok()) return verdict_for<S, Size, Root>;
  else if constexpr (S::contract::rooted && Root + 1 < Size)
    return first_wrong<S, Size, Last, Root + 1, true>();
  else return first_wrong<S, Size + 1, Last, 0, true>();
}

// The same over all ways to lay 1 .. LastInner ranks each on 1 .. LastHosts hosts.
template <class S, rank_t LastInner, rank_t LastHosts, rank_t Inner = 1, rank_t Hosts = 1, rank_t Root = 0>
constexpr verdict first_wrong_hosts() {
  constexpr shape n{Inner * Hosts, Inner};
  if constexpr (!supports<S>(n))
    return {.what = fault::size_not_supported, .size = n.size, .inner = n.inner};
  else if constexpr (!verdict_for<S, n.size, Root, Inner>.ok()) return verdict_for<S, n.size, Root, Inner>;
  else if constexpr (S::contract::rooted && Root + 1 < n.size)
    return first_wrong_hosts<S, LastInner, LastHosts, Inner, Hosts, Root + 1>();
  else if constexpr (Hosts < LastHosts) return first_wrong_hosts<S, LastInner, LastHosts, Inner, Hosts + 1>();
  else if constexpr (Inner < LastInner) return first_wrong_hosts<S, LastInner, LastHosts, Inner + 1>();
  else return {};
}

template <class S, verdict const& V>
constexpr bool accept() {
  if constexpr (!V.ok()) {
    using mode = std::conditional_t<V.in_place, proof::in_place, proof::out_of_place>;
    using shown = counterexample<S, V.what, proof::with_ranks<V.size>, proof::at_rank<V.rank>,
                                 proof::in_step<V.step>, proof::concerning_peer<V.peer>,
                                 proof::at_chunk<V.chunk>, mode, proof::and_root<V.root>,
                                 proof::ranks_per_host<V.inner>>;
    static_cast<void>(sizeof(shown));
  }
  return V.ok();
}

template <class S, rank_t First, rank_t Last>
inline constexpr verdict verdict_of = first_wrong<S, First, Last>();
template <class S, rank_t LastInner, rank_t LastHosts>
inline constexpr verdict verdict_of_hosts = first_wrong_hosts<S, LastInner, LastHosts>();

template <class S, rank_t First, rank_t Last>
constexpr bool prove_schedule() {
  return accept<S, verdict_of<S, First, Last>>();
}

template <class S, rank_t First, rank_t Last>
constexpr bool prove() {
  static_assert(First >= 1 && First <= Last, "collx::proves<S, First, Last>: needs 1 <= First <= Last");
  static_assert(std::is_empty_v<S> && std::is_trivially_copyable_v<S>,
                "collx::proves: not a schedule: the type must be empty and trivially copyable");
  static_assert(
      requires { typename S::contract; }, "collx::proves: not a schedule: it has no type `contract`");
  static_assert(
      requires(rank_t n) {
        { S::supports(n) } -> std::same_as<bool>;
      },
      "collx::proves: not a schedule: it has no static bool supports(rank_t size)");
  static_assert(
      requires(rank_t n) {
        { S::chunk_count(n) } -> std::same_as<std::int32_t>;
      },
      "collx::proves: not a schedule: it has no static int32_t chunk_count(rank_t size)");
  static_assert(
      requires(problem p) {
        { S::step_count(p) } -> std::same_as<std::int32_t>;
      },
      "collx::proves: not a schedule: it has no static int32_t step_count(problem)");
  static_assert(
      requires(problem p, std::int32_t i) {
        { S::step(p, i) } -> std::same_as<primitive>;
      },
      "collx::proves: not a schedule: it has no static primitive step(problem, int32_t index)");
  static_assert(
      requires(rank_t n) {
        { S::documented_cost(n) } -> std::same_as<cost>;
      },
      "collx::proves: not a schedule: it has no static cost documented_cost(rank_t size)");
  if constexpr (schedule<S>) return prove_schedule<S, First, Last>();
  else return false;
}

template <class Algorithm, class Contract, rank_t First, rank_t Last>
constexpr bool prove_for() {
  static_assert(algorithm_for<Algorithm, Contract>,
                "collx::proves_for: this algorithm offers no schedule for this collective");
  if constexpr (algorithm_for<Algorithm, Contract>)
    return prove<schedule_for<Contract, Algorithm>, First, Last>();
  else return false;
}

}  // namespace detail

// Whether schedule S is right for every number of ranks First .. Last that it supports, and every
// root. Never quietly false: a wrong schedule is an error where this is named.
template <class S, rank_t First, rank_t Last>
inline constexpr bool proves = detail::prove<S, First, Last>();

// The same for every way to lay 1 .. LastInner ranks each on 1 .. LastHosts hosts (shape::inner). A
// combination of right schedules is a schedule of its own, and may be wrong: what one part still sends,
// the next may overwrite. Prove it before you run it.
template <schedule S, rank_t LastInner, rank_t LastHosts>
inline constexpr bool proves_hosts = detail::accept<S, detail::verdict_of_hosts<S, LastInner, LastHosts>>();

template <class Algorithm, class Contract, rank_t First, rank_t Last>
inline constexpr bool proves_for = detail::prove_for<Algorithm, Contract, First, Last>();

}  // namespace collx::inline abi_1
