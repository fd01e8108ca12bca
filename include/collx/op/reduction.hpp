// SPDX-License-Identifier: Apache-2.0
// The operators that come with the library, and the traits by which any callable is one.
#pragma once

#include <concepts>
#include <type_traits>

#include "collx/op/small_float.hpp"

namespace collx::inline abi_1 {

namespace detail {

// The second operand may be a temporary: one that was converted.
template <class Op, class T>
concept combines = requires(Op const& op, T a, T b) {
  { op(a, b) } -> std::convertible_to<T>;
  { op(a, static_cast<T&&>(b)) } -> std::convertible_to<T>;
};

template <class Op, class T>
concept names_accumulate = requires { typename Op::template accumulate<T>; };

// Branches of functions rather than specialisations with constraints: g++ 12 takes a wrong one of those now
// and then where it reads this header precompiled. Only for small floats does anybody ask for Op on float.
template <class Op, class T>
consteval auto accumulate_unnamed() {
  if constexpr (!is_small_float<T>) return std::type_identity<T>();
  else if constexpr (combines<Op, float>) return std::type_identity<float>();
  else return std::type_identity<T>();
}
template <class Op, class T>
consteval auto accumulate_of() {
  if constexpr (names_accumulate<Op, T>) return std::type_identity<typename Op::template accumulate<T>>();
  else return accumulate_unnamed<Op, T>();
}

}  // namespace detail

// The type in which one pass holds its partial results. Small floats (op/small_float.hpp) are combined
// in float by every callable that takes floats: a pass widens what it reads, and rounds what it writes.
template <class Op, class T>
using accumulate_t = typename decltype(detail::accumulate_of<Op, T>())::type;

// A reduction over T is any callable T(T, T); for small floats, float(float, float) as well. It must be
// associative; by default it is taken to be commutative, as MPI and std::reduce do. Optional members of
// the callable refine that:
//
//   static constexpr bool is_commutative = false;    combine in rank order only
//   template <class T> using accumulate = float;     the type sums are held in while one pass combines
//   T finish(T total, rank_t size) const;            applied once, to the complete value (avg)
//   T prepare(T own) const;                          applied once to this rank's own contribution, before
//                                                    anybody combines it; ranks may differ (premultiplied)
template <class Op, class T>
concept reduction = std::is_trivially_copyable_v<T> && std::is_trivially_copyable_v<Op> &&
                    (detail::combines<Op, T> ||
                     (is_small_float<T> && detail::combines<Op, accumulate_t<Op, T>>));

template <class Op, class T>
concept prepares = requires(Op const& op, T own) { static_cast<T>(op.prepare(own)); };

template <class Op, class T>
concept finishes = requires(Op const& op, T total, rank_t size) { op.finish(total, size); };

// Members by these names that are no templates are meant so, and would be passed over if they did not fit.
template <class Op, class T>
inline constexpr bool has_fitting_members =
    (prepares<Op, T> || !requires { &Op::prepare; }) &&
    (finishes<Op, accumulate_t<Op, T>> || !requires { &Op::finish; }) && !requires { Op::is_commutative(); };

template <class Op>
[[nodiscard]] consteval bool is_commutative() {
  if constexpr (requires { Op::is_commutative; }) return Op::is_commutative;
  else return true;
}

// Whether no order and no brackets can change a bit of the result: so for the library's operators on
// integers. A callable may say it of itself: template <class T> static constexpr bool is_exact = true;
template <class Op, class T>
[[nodiscard]] consteval bool is_exact() {
  if constexpr (requires { Op::template is_exact<T>; }) return Op::template is_exact<T>;
  else return false;
}

// What the library's operators have in common.
struct library_operator {
  template <class T> static constexpr bool is_exact = std::is_integral_v<T>;
};

namespace detail {

// What integers are added and multiplied in, so that they wrap around as in their own type: what goes beyond
// the range of a signed type is undefined, and what is narrower than an int becomes a signed one.
template <class T>
consteval auto wrapping_of() {
  if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) return std::type_identity<T>();
  else if constexpr (sizeof(T) < sizeof(int)) return std::type_identity<unsigned>();
  else return std::type_identity<std::make_unsigned_t<T>>();
}

template <class T>
[[nodiscard]] COLLX_HD constexpr T added(T const& a, T const& b) {
  using wrapping = typename decltype(wrapping_of<T>())::type;
  return static_cast<T>(static_cast<wrapping const&>(a) + static_cast<wrapping const&>(b));
}
template <class T>
[[nodiscard]] COLLX_HD constexpr T multiplied(T const& a, T const& b) {
  using wrapping = typename decltype(wrapping_of<T>())::type;
  return static_cast<T>(static_cast<wrapping const&>(a) * static_cast<wrapping const&>(b));
}

}  // namespace detail

// The casts undo integral promotion: char + char is an int. The requirements make an element type that
// lacks the operation an error at the call, not deep inside.
struct sum_t : library_operator {
  static constexpr char const* name = "sum";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<T>(a + b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return detail::added(a, b); }
};

struct prod_t : library_operator {
  static constexpr char const* name = "prod";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<T>(a * b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return detail::multiplied(a, b); }
};

// A NaN in the second operand is dropped and in the first kept, as std::min and MPI do.
struct min_t : library_operator {
  static constexpr char const* name = "min";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<bool>(b < a); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return b < a ? b : a; }
};

struct max_t : library_operator {
  static constexpr char const* name = "max";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<bool>(a < b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return a < b ? b : a; }
};

// The sum, divided once by the number of ranks. Integers divide toward zero, as in NCCL. Sums between several
// passes are of type T, for which float16 and those of 8 bits may be too small.
struct avg_t : library_operator {
  static constexpr char const* name = "avg";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<T>(a + b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return detail::added(a, b); }
  template <class T>
  COLLX_HD constexpr T finish(T const& total, rank_t size) const {
    // One that is narrower than a rank cannot hold every number of them: it is divided as an int.
    constexpr bool is_narrow = std::is_integral_v<T> && sizeof(T) < sizeof(rank_t);
    if constexpr (is_narrow && !std::is_same_v<T, bool>) return static_cast<T>(total / size);
    // To divide a complex number by another one makes a NaN of what stands beside an infinity.
    else if constexpr (requires { total / typename T::value_type{}; })
      return static_cast<T>(total / static_cast<typename T::value_type>(size));
    else return static_cast<T>(total / static_cast<T>(size));
  }
};

struct bit_and_t : library_operator {
  static constexpr char const* name = "bit_and";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<T>(a & b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return static_cast<T>(a & b); }
};

struct bit_or_t : library_operator {
  static constexpr char const* name = "bit_or";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<T>(a | b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return static_cast<T>(a | b); }
};

struct bit_xor_t : library_operator {
  static constexpr char const* name = "bit_xor";
  template <class T>
    requires requires(T const& a, T const& b) { static_cast<T>(a ^ b); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return static_cast<T>(a ^ b); }
};

struct logical_and_t : library_operator {
  static constexpr char const* name = "logical_and";
  template <class T>
    requires requires(T const& a) { static_cast<T>(static_cast<bool>(a)); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const {
    bool const x = static_cast<bool>(a), y = static_cast<bool>(b);
    return static_cast<T>((x & y) != 0);  // not &&: GCC finds no vectors where there are branches
  }
};

struct logical_or_t : library_operator {
  static constexpr char const* name = "logical_or";
  template <class T>
    requires requires(T const& a) { static_cast<T>(static_cast<bool>(a)); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const {
    bool const x = static_cast<bool>(a), y = static_cast<bool>(b);
    return static_cast<T>((x | y) != 0);
  }
};

inline constexpr sum_t sum{};
inline constexpr prod_t prod{};
inline constexpr min_t min{};
inline constexpr max_t max{};
inline constexpr avg_t avg{};
inline constexpr bit_and_t bit_and{};
inline constexpr bit_or_t bit_or{};
inline constexpr bit_xor_t bit_xor{};
inline constexpr logical_and_t logical_and{};
inline constexpr logical_or_t logical_or{};

// Marks a callable as not commutative: contributions are then combined in rank order, and only
// algorithms that keep it are accepted. All else is as the callable has it: ordered(avg) divides, and
// ordered(accumulate_in<double>(f)) is accumulate_in<double>(ordered(f)).
template <class F>
struct ordered {
  static constexpr bool is_commutative = false;
  template <class T> static constexpr bool is_exact = collx::is_exact<F, T>();
  template <class T> using accumulate = accumulate_t<F, T>;
  F f;
  explicit constexpr ordered(F callable) : f(callable) {}
  template <class T>
    requires requires(F const& g, T const& a, T const& b) { { g(a, b) } -> std::convertible_to<T>; }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const { return f(a, b); }
  template <class T>
    requires finishes<F, T>
  COLLX_HD constexpr auto finish(T const& total, rank_t size) const { return f.finish(total, size); }
  template <class T>
    requires prepares<F, T>
  COLLX_HD constexpr auto prepare(T const& own) const { return f.prepare(own); }
};

// Holds partial results of a pass in type A: accumulate_in<double>(sum) on floats. What goes from one pass to
// the next is of type T, and not what one pass would have held: of integers in a larger integer a sum is the
// same modulo T's range, a quotient (avg) is not. In a floating-point type integers must keep to T's range:
// what does not fit it has no result that is defined.
template <class A, class Op>
struct accumulating : Op {
  template <class T> using accumulate = A;
  template <class T>
  static constexpr bool is_exact = std::is_integral_v<A> && collx::is_exact<Op, T>() &&
                                   (!finishes<Op, A> || std::is_same_v<A, T>);
};

template <class A, class Op>
[[nodiscard]] constexpr accumulating<A, Op> accumulate_in(Op op) { return {op}; }

}  // namespace collx::inline abi_1
