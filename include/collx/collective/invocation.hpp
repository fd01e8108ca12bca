// SPDX-License-Identifier: Apache-2.0
// The arguments of a collective, bound to its contract and checked: what every call is turned into before
// anything is chosen or sent. The headers beside it add what their collective requires.
#pragma once

#include <cstring>
#include <span>

#include "collx/collective/contract.hpp"
#include "collx/collective/wrong_argument.hpp"
#include "collx/communicator.hpp"
#if defined(COLLX_CHOOSE_AT_RUN_TIME)
#include "collx/tune/selector.hpp"
#endif

namespace collx::inline abi_1 {

// Any contiguous range of trivially copyable elements: span, vector, array, symmetric_buffer.
template <class R>
concept buffer_like = requires(R& r) {
  {r.data()};
  { r.size() } -> std::convertible_to<std::size_t>;
}
&&std::is_trivially_copyable_v<std::remove_pointer_t<decltype(std::declval<R&>().data())>>;

template <buffer_like R>
using element_t = std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<R&>().data())>>;

// The algorithm argument: the library chooses by collective, bytes, ranks and transport (tune/).
struct automatic {
  static constexpr char const* name = "automatic";
};

// What calls take that name no algorithm: `automatic`; or, in a program that defines COLLX_CHOOSE_AT_RUN_TIME
// for all of its files, `selected`, so that variables and tables reach them (docs/choice.md).
#if defined(COLLX_CHOOSE_AT_RUN_TIME)
using default_algorithm = selected;
#else
using default_algorithm = automatic;
#endif

// An algorithm argument that chooses in every call: `selected` (tune/selector.hpp), a table of your own
// (tune/fixed_table.hpp). choose() calls what it is given with one algorithm.
template <class Algorithm>
concept chooser = requires {
  requires Algorithm::chooses_algorithms;
};

namespace detail {

// A root or a peer, given as an integer of any type: what is no rank of any communicator does not become one
// on the way.
struct rank_argument {
  std::int64_t value;

  template <class Integer>
    requires(std::convertible_to<Integer, std::int64_t> && !std::is_floating_point_v<Integer> &&
             sizeof(Integer) <= sizeof(std::int64_t))
  constexpr rank_argument(Integer const& given) noexcept : value(static_cast<std::int64_t>(given)) {}

  // The nearest rank_t: of no communicator, if the value is none.
  [[nodiscard]] constexpr rank_t nearest() const noexcept {
    constexpr std::int64_t most = 0x7fffffff;
    return static_cast<rank_t>(value > most ? most : value < no_rank ? no_rank : value);
  }
};

using exec::uneven_buffer;
using exec::uneven_buffers;
struct even_blocks {};
// Blocks that are parts of larger ones: those begin so many elements apart.
struct apart_blocks {
  std::size_t pitch = 0;
};

template <class Contract>
inline constexpr bool is_uneven = requires {
  Contract::counts;
};
template <class Contract>
inline constexpr bool is_apart = requires {
  Contract::blocks_apart;
};

template <class Contract>
using tables_for = std::conditional_t<is_uneven<Contract>, uneven_buffers,
                                      std::conditional_t<is_apart<Contract>, apart_blocks, even_blocks>>;

inline constexpr char const* null_input = "the input is null, and must have elements";
inline constexpr char const* null_output = "the output is null, and must have elements";

// The arguments of one call, bound to a contract: what every collective boils down to. `fault` is
// null, or says what is wrong with them.
template <class Contract, class T, class Op>
struct invocation {
  T const* input = nullptr;
  T* output = nullptr;
  std::size_t count = 0;  // of one block (contract.hpp); of the largest one known where they differ
  rank_t root = 0;
  [[no_unique_address]] Op op;
  bool in_place = false;
  [[no_unique_address]] tables_for<Contract> tables{};
  exec::standing at{};
  char const* fault = nullptr;
  std::int64_t given = 0, needed = 0;  // signed: a root may be negative

  template <class Number>
  void refuse(char const* what, Number has, Number wants) noexcept {
    if (fault != nullptr) return;
    fault = what;
    given = static_cast<std::int64_t>(has);
    needed = static_cast<std::int64_t>(wants);
  }

  void require_count(char const* what, std::size_t has, std::size_t wants) noexcept {
    if (has != wants) refuse(what, has, wants);
  }

  // Of `blocks` times so many elements: what follows may add and multiply counts and bytes of what is not.
  void refuse_if_absurd(std::size_t has, std::size_t blocks = 1) noexcept {
    // There are less than 2^31 ranks.
    if (COLLX_LIKELY(has <= most_elements(sizeof(T), std::size_t{1} << 31) || blocks == 0)) return;
    if (std::size_t const most = most_elements(sizeof(T), blocks); has > most)
      refuse(absurd_count, has, most);
  }

  void require_memory(char const* what, void const* memory, std::size_t has) noexcept {
    if (COLLX_UNLIKELY(memory == nullptr && has != 0)) refuse(what, std::size_t{0}, has);
  }
  // Whether a buffer that the contract gives to this rank is null. Found out by who runs the call, since it
  // costs less there; where blocks differ, their tables say what is needed.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool lacks_memory() const noexcept {
    if constexpr (!is_uneven<Contract>)
      if (COLLX_UNLIKELY(count != 0 && (input == nullptr || output == nullptr)))
        return (input == nullptr && Contract::input(at.where).count != 0) ||
               (output == nullptr && Contract::output(at.where).count != 0);
    return false;
  }
  [[nodiscard]] COLLX_ALWAYS_INLINE bool is_wrong() const noexcept {
    return COLLX_UNLIKELY(fault != nullptr) || lacks_memory();
  }

  void require_root(problem p, rank_argument wanted) noexcept {
    root = static_cast<rank_t>(wanted.value);
    if (wanted.value < 0 || wanted.value >= p.size)
      refuse("the root must be a rank of the communicator, less than its size", wanted.value, said_already);
  }

  // The buffers either are the same memory, chunk for chunk, or do not overlap. `shift`: where the
  // input's first element then lies, counted from the output's.
  void refuse_overlap(std::size_t in_count, std::size_t out_count, std::ptrdiff_t shift) noexcept {
    if (in_count == 0 || out_count == 0) return;
    auto const in = reinterpret_cast<std::uintptr_t>(input), out = reinterpret_cast<std::uintptr_t>(output);
    bool const overlap = in < out + out_count * sizeof(T) && out < in + in_count * sizeof(T);
    in_place = in == out + static_cast<std::uintptr_t>(shift) * sizeof(T);
    if (overlap && !in_place)
      refuse(
          "input and output overlap; pass the same memory, the input as far behind the output's first "
          "element as in place demands, or separate buffers",
          elements_apart(static_cast<std::ptrdiff_t>(in - out)), shift);
  }

  // Rounded away from 0, which would say that the buffers are the same.
  [[nodiscard]] static constexpr std::ptrdiff_t elements_apart(std::ptrdiff_t bytes) noexcept {
    auto const size = static_cast<std::ptrdiff_t>(sizeof(T));
    return (bytes + (bytes > 0 ? size - 1 : 1 - size)) / size;
  }

  // For collectives without an in-place form.
  void refuse_any_overlap(std::size_t in_count, std::size_t out_count) noexcept {
    auto const in = reinterpret_cast<std::uintptr_t>(input), out = reinterpret_cast<std::uintptr_t>(output);
    std::uintptr_t const in_end = in + in_count * sizeof(T), out_end = out + out_count * sizeof(T);
    std::uintptr_t const begin = in < out ? out : in, end = in_end < out_end ? in_end : out_end;
    if (in_count == 0 || out_count == 0 || begin >= end) return;
    refuse(
        "this collective has no in-place form, and input and output overlap in so many elements; pass "
        "separate buffers",
        (end - begin + sizeof(T) - 1) / sizeof(T), std::uintptr_t{0});
  }
};

// -elements, also of absurd counts, which wrap around: they are refused, but not before.
[[nodiscard]] constexpr std::ptrdiff_t negative(std::size_t elements) noexcept {
  return static_cast<std::ptrdiff_t>(0 - elements);
}

[[nodiscard]] COLLX_ALWAYS_INLINE problem where(auto const& comm) noexcept {
  return {comm.rank(), comm.size(), 0};
}

// Bound arguments, until the end of the statement, and whose call they are of.
template <class Invocation>
[[nodiscard]] COLLX_ALWAYS_INLINE Invocation const& called_on(auto& comm, Invocation&& args) noexcept {
  args.at = comm.standing();
  args.at.where.root = args.root;
  return args;
}

// A barrier has none, so that its copy is of constants: 13 instructions less.
template <class T, class Op>
[[nodiscard]] COLLX_ALWAYS_INLINE invocation<contract::barrier, T, Op> called_on(
    auto& comm, invocation<contract::barrier, T, Op> args) noexcept {
  args.at = comm.standing();
  return args;
}

// Bound arguments, of a call that no communicator's executor makes: whose it is.
template <class Invocation>
[[nodiscard]] Invocation called_by(problem const& p, Invocation args) noexcept {
  args.at.where = p;
  return args;
}

// Binds the buffers, and checks by name what their types are. A function becomes a pointer to it.
template <class Contract, class In, class Out, class Op>
[[nodiscard]] auto bind_buffers(In& in, Out& out, Op const& op) noexcept {
  using T = element_t<Out>;
  static_assert(std::is_same_v<element_t<In>, T>, "collx: input and output must have the same element type");
  static_assert(!std::is_const_v<std::remove_pointer_t<decltype(out.data())>>,
                "collx: the output must not be const");
  return invocation<Contract, T, std::decay_t<Op>>{in.data(), out.data(), 0, 0, op};
}

template <class Contract, class In, class Out, class Op>
[[nodiscard]] auto bind_reduction(In& in, Out& out, Op const& op) noexcept {
  static_assert(!std::is_arithmetic_v<Op>,
                "collx: a number stands where the operator belongs; a root comes behind it: "
                "reduce(comm, in, out, collx::sum, root)");
  static_assert(reduction<std::decay_t<Op>, element_t<Out>>,
                "collx: the operator must be callable as T(T, T) for the element type, and trivially "
                "copyable; a call that names none has sum, which wants a + of two elements");
  static_assert(has_fitting_members<std::decay_t<Op>, element_t<Out>>,
                "collx: a member of the operator does not fit: T prepare(T) const, T finish(T, rank_t) "
                "const, static constexpr bool is_commutative");
  return bind_buffers<Contract>(in, out, op);
}

// What both scans require of their arguments.
template <class Contract, class In, class Out, class Op>
[[nodiscard]] auto bind_prefix(In& in, Out& out, Op const& op) noexcept {
  static_assert(
      !requires(element_t<Out> total) { op.finish(total, rank_t{}); },
      "collx: an operator that ends with a scaling, such as avg, has no meaning in a scan; scan the "
      "sum and divide it yourself");
  auto args = bind_reduction<Contract>(in, out, op);
  args.count = out.size();
  args.refuse_if_absurd(args.count);
  args.require_count("the input must have as many elements as the output", in.size(), out.size());
  args.refuse_overlap(in.size(), out.size(), 0);
  return args;
}

// The operator of collectives that combine no values (a barrier combines messages without any).
struct unreduced {
  template <class T>
  [[nodiscard]] COLLX_HD constexpr T const& operator()(T const& a, T const&) const {
    return a;
  }
};
// The same where bytes stand for elements of another type: which, for what ranks compare.
struct unreduced_bytes : unreduced {
  exec::element_kind const* element_type = &exec::no_elements;
};

}  // namespace detail
}  // namespace collx::inline abi_1

// A program of files that define COLLX_CHOOSE_AT_RUN_TIME and files that do not would have two definitions of
// what the library calls itself (`split`), and take either. It does not link: in each kind of file one
// symbol, whose name says what to do, is another name of a variable that all files of the kind share, and
// files of two kinds have two of it. (Linkers keep a second name where they keep the first; so do those that
// optimise, -flto.) Hidden, so that a shared library may decide by itself.
#if defined(__ELF__) && !defined(__CUDA_ARCH__)
#define COLLX_DETAIL_CHOICE "define_COLLX_CHOOSE_AT_RUN_TIME_for_all_files_or_for_none"
#if defined(COLLX_CHOOSE_AT_RUN_TIME)
#define COLLX_DETAIL_CHOICE_HERE COLLX_DETAIL_CHOICE ".this_one_does"
#else
#define COLLX_DETAIL_CHOICE_HERE COLLX_DETAIL_CHOICE ".this_one_does_not"
#endif
namespace collx::inline abi_1::detail {
[[gnu::used, gnu::visibility("hidden")]] inline char const choice_here asm(COLLX_DETAIL_CHOICE_HERE) = 0;
// Declared, and defined by its alias. NOLINTBEGIN(misc-definitions-in-headers)
[[gnu::alias(COLLX_DETAIL_CHOICE_HERE),
  gnu::visibility("hidden")]] extern char const choice_of_all_files asm(COLLX_DETAIL_CHOICE);
// NOLINTEND(misc-definitions-in-headers)
}  // namespace collx::inline abi_1::detail
#undef COLLX_DETAIL_CHOICE_HERE
#undef COLLX_DETAIL_CHOICE
#endif
