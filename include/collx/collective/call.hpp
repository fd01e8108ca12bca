// SPDX-License-Identifier: Apache-2.0
// What the collectives share: turning arguments into an executor and running or starting it. The
// headers beside it add only what each collective means.
#pragma once

#include <cstring>
#include <span>

#include "collx/collective/contract.hpp"
#include "collx/communicator.hpp"
#include "collx/tune/choice.hpp"

namespace collx::inline abi_1 {

// Any contiguous range of trivially copyable elements: span, vector, array, symmetric_buffer.
template <class R>
concept buffer_like = requires(R& r) {
  { r.data() };
  { r.size() } -> std::convertible_to<std::size_t>;
} && std::is_trivially_copyable_v<std::remove_pointer_t<decltype(std::declval<R&>().data())>>;

template <buffer_like R>
using element_t = std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<R&>().data())>>;

// The algorithm argument: the library chooses by collective, bytes, ranks and transport (tune/).
struct automatic {
  static constexpr char const* name = "automatic";
};

namespace detail {

template <class Transport>
using engine_of = exec::engine<typename Transport::endpoint>;

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

  void require_root(problem p, rank_t wanted) noexcept {
    root = wanted;
    if (wanted < 0 || wanted >= p.size)
      refuse("the root must be a rank of the communicator, less than its size",
             wanted, p.size);
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
          "input and output overlap; pass the same memory, as this collective defines in place, or separate "
          "buffers",
          in_count, out_count);
  }
};

[[nodiscard]] COLLX_ALWAYS_INLINE problem where(auto const& comm) noexcept {
  return {comm.rank(), comm.size(), 0};
}

// Binds the buffers, and checks by name what their types are.
template <class Contract, class In, class Out, class Op>
[[nodiscard]] auto bind_buffers(In& in, Out& out, Op const& op) noexcept {
  using T = element_t<Out>;
  static_assert(std::is_same_v<element_t<In>, T>, "collx: input and output must have the same element type");
  static_assert(!std::is_const_v<std::remove_pointer_t<decltype(out.data())>>,
                "collx: the output must not be const");
  return invocation<Contract, T, Op>{in.data(), out.data(), 0, 0, op};
}

template <class Contract, class In, class Out, class Op>
[[nodiscard]] auto bind_reduction(In& in, Out& out, Op const& op) noexcept {
  static_assert(
      reduction<Op, element_t<Out>>,
      "collx: the operator must be callable as T(T, T) for the element type, and trivially copyable");
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
  args.require_count("the input must have as many elements as the output", in.size(), out.size());
  args.refuse_overlap(in.size(), out.size(), 0);
  return args;
}

// The operator of collectives that combine no values (a barrier combines messages without any).
struct unreduced {
  template <class T>
  [[nodiscard]] constexpr T const& operator()(T const& a, T const&) const { return a; }
};

template <schedule S, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] auto make_executor(exec::engine<Endpoint>& engine, int lane,
                                 invocation<Contract, T, Op> const& args) noexcept {
  Endpoint& endpoint = engine.endpoint();
  problem const where{endpoint.rank(), endpoint.size(), args.root, engine.ranks_per_group()};
  std::byte* const scratch = scratch_chunks<S>(where.shape()) == 0 ? nullptr : endpoint.scratch(lane);
  auto const map = [&]() noexcept {
    return exec::map_memory<S>(where,
                               exec::even_buffers<Contract>(where, args.input, args.output, args.in_place),
                               scratch, args.count, sizeof(T), endpoint.staging_bytes());
  };
  return exec::host_executor<S, T, Op, Endpoint>(endpoint, lane, engine.work(lane), map, args.op);
}

// Calls f.template operator()<Algorithm>() with the algorithm asked for, or the chosen one.
template <class Contract, class Algorithm, class Op, class Endpoint, class F>
[[nodiscard]] auto with_algorithm(exec::engine<Endpoint>& engine, std::size_t bytes, F const& f) {
  if constexpr (std::is_same_v<Algorithm, automatic>) {
    return tune::choose<Contract, Endpoint, is_commutative<Op>()>(bytes, engine.endpoint().size(), f);
  } else {
    static_assert(
        algorithm_for<Algorithm, Contract>,
        "collx: this algorithm offers no schedule for this collective; docs/algorithms.md lists which do");
    if constexpr (algorithm_for<Algorithm, Contract>) {
      static_assert(
          is_commutative<Op>() || keeps_rank_order<schedule_for<Contract, Algorithm>>(),
          "collx: this operator is not commutative and this algorithm does not combine in rank order; "
          "choose one that does (docs/algorithms.md)");
      return f.template operator()<Algorithm>();
    }
  }
}

template <class Algorithm>
[[nodiscard]] constexpr char const* algorithm_name() {
  if constexpr (requires { Algorithm::name; }) return Algorithm::name;
  else return "user's";
}

// A number for a type, the same in every process that runs the same program (FNV-1a of its name).
template <class T>
[[nodiscard]] consteval std::uint64_t type_number() {
  std::uint64_t hash = 14695981039346656037ULL;
  for (char const* c = __PRETTY_FUNCTION__; *c != 0; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211ULL;
  return hash;
}

template <class Chosen, class Contract, class T, class Op>
[[nodiscard]] exec::call describe(invocation<Contract, T, Op> const& args) noexcept {
  char const* op = "a callable";
  if constexpr (requires { Op::name; }) op = Op::name;
  return {Contract::name, algorithm_name<Chosen>(), op, type_number<T>(), type_number<Op>(), args.count,
          args.root};
}

// With nothing to move there is nothing to do; but a barrier, of count 0, is all about its messages.
template <class Contract>
inline constexpr bool needs_elements = !std::is_same_v<Contract, contract::barrier>;

// Whether the schedule exists for this many ranks, the transport has the credits it declares, and one
// element per chunk fits what a fragment may stage. Only large elements and large worlds can fail the
// last with the least staging memory there is.
template <schedule S, class T, class Endpoint>
[[nodiscard]] bool can_run(exec::engine<Endpoint>& engine) noexcept {
  Endpoint const& endpoint = engine.endpoint();
  shape const n{endpoint.size(), engine.ranks_per_group()};
  if (!supports<S>(n)) return false;
  // A schedule that is proved with more messages in flight than there are credits may deadlock.
  if (static_cast<std::uint64_t>(depth<S>(n)) > endpoint.depth()) return false;
  if (sizeof(T) <= 128 && n.size <= 64) return true;
  std::size_t const staged =
      (sizeof(T) + 63) / 64 * 64 * static_cast<std::size_t>(exec::largest_staged<S>(n));
  return staged <= endpoint.staging_bytes() / 2;
}

// One rank: nothing moves, whatever the schedule, but the operator's finish() is due all the same.
template <class Contract, class T, class Op>
void run_alone(invocation<Contract, T, Op> const& args) noexcept {
  if (args.count == 0 || Contract::output({0, 1, 0}).count == 0) return;
  if constexpr (Contract::from_all)
    device::combine(&args.output, 1, &args.input, 1, args.count, args.op, true, rank_t{1});
  else if (args.input != args.output)
    std::memcpy(static_cast<void*>(args.output), args.input, args.count * sizeof(T));
}

[[noreturn]] COLLX_COLD inline void throw_refusal(char const* collective, char const* what,
                                                  std::int64_t given, std::int64_t needed) {
  char text[400];
  std::snprintf(text, sizeof text, "%s: %s (given %lld, needed %lld)", collective, what,
                static_cast<long long>(given), static_cast<long long>(needed));
  throw error(status::bad_argument, text);
}

[[noreturn]] COLLX_COLD inline void throw_unsupported(char const* collective, rank_t size,
                                                      std::size_t element_bytes, std::uint64_t credits) {
  char text[500];
  std::snprintf(
      text, sizeof text,
      "%s: this algorithm cannot run on %d ranks with elements of %zu bytes here: it has no schedule "
      "for so many ranks (see docs/algorithms.md), or declares a depth above the transport's %llu "
      "credits, or an element is too large for its staging memory (set COLLX_STAGING_BYTES to more)",
      collective, size, element_bytes, static_cast<unsigned long long>(credits));
  throw error(status::not_supported, text);
}

}  // namespace detail

// All code of one collective that depends on element type, operator, transport and algorithm: what every
// form of a call ends in, whatever ranges it is given. Users never call it; they may compile it once, in a
// source file of their choice, and declare it `extern template` elsewhere: docs/compile_time.md.
template <class Contract, class T, class Op, class Endpoint, class Algorithm = automatic>
struct compiled_collective {
  using engine_type = exec::engine<Endpoint>;
  using arguments = detail::invocation<Contract, T, Op>;

  // The noexcept form: runs to the end. The outcome is also in failure() unless it is bad_argument or
  // not_supported, which leave the communicator as it was.
  [[nodiscard]] static status run(engine_type& engine, arguments const& args) noexcept;
  // The blocking form: throws error instead of returning anything but ok.
  static void run_or_throw(engine_type& engine, arguments const& args);
  // The started form: bad arguments throw here, everything later comes out of the request.
  [[nodiscard]] static request<Endpoint> begin(engine_type& engine, arguments const& args);
};

// Defined outside the class: what is inline is compiled by everybody, `extern template` or not.
template <class Contract, class T, class Op, class Endpoint, class Algorithm>
status compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run(engine_type& engine,
                                                                      arguments const& args) noexcept {
  using namespace detail;
  if (COLLX_UNLIKELY(args.fault != nullptr)) return status::bad_argument;
  // With checking on, a count of 0 is compared as any other: the peers' may not be 0.
  if (needs_elements<Contract> && args.count == 0 && engine.checker() == nullptr)
    return engine.failure().code;
  return with_algorithm<Contract, Algorithm, Op>(
      engine, args.count * sizeof(T), [&]<class Chosen>() noexcept {
        using S = schedule_for<Contract, Chosen>;
        if (COLLX_UNLIKELY((!can_run<S, T>(engine)))) return status::not_supported;
        if (COLLX_UNLIKELY(engine.endpoint().size() == 1)) {
          engine.count_one();
          run_alone(args);
          return engine.failure().code;
        }
        exec::call const what = describe<Chosen>(args);
        if (COLLX_UNLIKELY(engine.checker() != nullptr))
          if (status const agreed = engine.checker()(engine, what); agreed != status::ok) return agreed;
        return engine.run(what, [&](int lane) noexcept { return make_executor<S>(engine, lane, args); });
      });
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
void compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_or_throw(engine_type& engine,
                                                                             arguments const& args) {
  using namespace detail;
  status const outcome = run(engine, args);
  if (COLLX_LIKELY(outcome == status::ok)) return;
  if (outcome == status::bad_argument) throw_refusal(Contract::name, args.fault, args.given, args.needed);
  if (outcome == status::not_supported)
    throw_unsupported(Contract::name, engine.endpoint().size(), sizeof(T), engine.endpoint().depth());
  throw error(engine.failure());
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
request<Endpoint> compiled_collective<Contract, T, Op, Endpoint, Algorithm>::begin(engine_type& engine,
                                                                                   arguments const& args) {
  using namespace detail;
  if (args.fault != nullptr) throw_refusal(Contract::name, args.fault, args.given, args.needed);
  if (needs_elements<Contract> && args.count == 0 && engine.checker() == nullptr) return {};
  return with_algorithm<Contract, Algorithm, Op>(engine, args.count * sizeof(T), [&]<class Chosen>() {
    using S = schedule_for<Contract, Chosen>;
    if (!can_run<S, T>(engine))
      throw_unsupported(Contract::name, engine.endpoint().size(), sizeof(T), engine.endpoint().depth());
    if (engine.endpoint().size() == 1) {
      engine.count_one();
      run_alone(args);
      return request<Endpoint>{};
    }
    exec::call const what = describe<Chosen>(args);
    if (engine.checker() != nullptr && engine.checker()(engine, what) != status::ok)
      throw error(engine.failure());
    return request<Endpoint>(
        engine, engine.start(what, [&](int lane) noexcept { return make_executor<S>(engine, lane, args); }));
  });
}

namespace detail {

template <class Algorithm, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] status run(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args) noexcept {
  return compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run(engine, args);
}
template <class Algorithm, class Contract, class T, class Op, class Endpoint>
void run_or_throw(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args) {
  compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_or_throw(engine, args);
}
template <class Algorithm, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] auto begin(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args) {
  return compiled_collective<Contract, T, Op, Endpoint, Algorithm>::begin(engine, args);
}

}  // namespace detail
}  // namespace collx::inline abi_1

// The forms in which every collective comes; its header defines detail::bind_<name>, which turns the
// arguments into an invocation. As a macro, since the name is all in which they differ.
//
//   name(comm, ...)          blocks; throws error instead of returning anything but ok
//   try_name(comm, ...)      the same, noexcept: returns the status
//   start::name(comm, ...)   returns a request; bad arguments throw here, the rest comes out of it
#define COLLX_DETAIL_FORMS(name)                                                                           \
  template <class Algorithm = automatic, class Transport, class... Arguments>                              \
  void name(communicator<Transport>& comm, Arguments&&... arguments) {                                     \
    detail::run_or_throw<Algorithm>(comm.engine(), detail::bind_##name(detail::where(comm), arguments...)); \
  }                                                                                                        \
  template <class Algorithm = automatic, class Transport, class... Arguments>                              \
  [[nodiscard]] status try_##name(communicator<Transport>& comm, Arguments&&... arguments) noexcept {      \
    return detail::run<Algorithm>(comm.engine(), detail::bind_##name(detail::where(comm), arguments...));  \
  }                                                                                                        \
  namespace start {                                                                                        \
  template <class Algorithm = automatic, class Transport, class... Arguments>                              \
  [[nodiscard]] auto name(communicator<Transport>& comm, Arguments&&... arguments) {                       \
    return detail::begin<Algorithm>(comm.engine(), detail::bind_##name(detail::where(comm), arguments...)); \
  }                                                                                                        \
  }
