// SPDX-License-Identifier: Apache-2.0
// The forms in which every collective comes: blocking, try_ and start::, over the one function that runs it.
#pragma once

#include "collx/collective/persistent.hpp"

namespace collx::inline abi_1 {
namespace detail {

// Throws what is wrong with arguments that are.
template <class Contract, class T, class Op>
[[noreturn]] COLLX_COLD void throw_wrong(invocation<Contract, T, Op> args) {
  problem const& where = args.at.where;
  if (Contract::input(where).count != 0) args.require_memory(null_input, args.input, args.count);
  if (Contract::output(where).count != 0) args.require_memory(null_output, args.output, args.count);
  throw_wrong_argument(Contract::name, where, args.fault, args.given, args.needed);
}

// Throws what a chooser has against the call.
template <class Algorithm, class Contract, class T, class Op, class Endpoint>
[[noreturn]] COLLX_COLD void refuse_choice([[maybe_unused]] exec::engine<Endpoint>& engine,
                                           [[maybe_unused]] invocation<Contract, T, Op> const& args) {
  if constexpr (chooser<Algorithm>)
    Algorithm::template refuse<Contract, Endpoint, is_commutative<Op>()>(
        engine.said().tuning, question_of(engine, args));
  throw error(status::not_supported, Contract::name);
}

}  // namespace detail

// All code of one collective that depends on element type, operator, transport and algorithm: what every
// form of a call ends in, whatever ranges it is given. Users never call it; they may compile it once, in a
// source file of their choice, and declare it `extern template` elsewhere: docs/compile_time.md.
template <class Contract, class T, class Op, class Endpoint, class Algorithm>
struct compiled_collective {
  using engine_type = exec::engine<Endpoint>;
  using arguments = detail::invocation<Contract, T, Op>;

  // The noexcept form: runs to the end. The outcome is also in failure() unless it is bad_argument or
  // not_supported, which leave the communicator as it was.
  [[nodiscard]] static status run(engine_type& engine, arguments const& args) noexcept;
  // The blocking form: throws error instead of returning anything but ok.
  static void run_or_throw(engine_type& engine, arguments const& args);
  // Throws what run() has returned and is not ok. A call of it costs short calls an instruction.
  [[noreturn]] COLLX_ALWAYS_INLINE static void throw_outcome(engine_type& engine, arguments const& args,
                                                             status outcome);
  // The started form: bad arguments throw here, everything later comes out of the request.
  [[nodiscard]] static request<Endpoint> begin(engine_type& engine, arguments const& args, priority how);
  // The persistent form: bad arguments throw here, and what the ranks disagree about.
  [[nodiscard]] static persistent_collective<Contract, T, Op, Endpoint> prepare(engine_type& engine,
                                                                                arguments const& args,
                                                                                priority how);
  // What a started call is run with. Throws what keeps that from running here.
  [[nodiscard]] static detail::choice choose(engine_type& engine, arguments const& args, char const* form);

 private:
  template <class Chosen>
  [[nodiscard]] static status run_chosen(engine_type& engine, arguments const& args) noexcept;
  template <class S, bool Stages>
  [[nodiscard]] COLLX_ALWAYS_INLINE static status run_shortly(engine_type& engine, detail::choice const& how,
                                                              arguments const& args) noexcept;
  // Out of line, so that the smallest calls are as if it did not exist.
  template <class S>
  [[nodiscard]] COLLX_NEVER_INLINE static status run_staged(engine_type& engine, detail::choice const& how,
                                                            arguments const& args) noexcept;
  COLLX_NEVER_INLINE static status run_executor(engine_type& engine, detail::choice const& how,
                                                arguments const& args, exec::stopped_at at) noexcept;
  [[nodiscard]] static request<Endpoint> launch(engine_type& engine, detail::choice const& with,
                                                arguments const& args, priority how);
};

// Defined outside the class: what is inline is compiled by everybody, `extern template` or not.
template <class Contract, class T, class Op, class Endpoint, class Algorithm>
status compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run(engine_type& engine,
                                                                      arguments const& args) noexcept {
  using namespace detail;
  if (COLLX_UNLIKELY(args.is_wrong())) return status::bad_argument;
  // With checking on, a count of 0 is compared as any other: the peers' may not be 0.
  if (moves_nothing(args) && engine.checker() == nullptr) return engine.failure().code;
  return with_algorithm<Algorithm>(
      engine, args, [&]<class Chosen>() noexcept { return run_chosen<Chosen>(engine, args); },
      []() noexcept { return status::bad_argument; });
}

// A function, not a lambda: what a lambda refers to is stored, and loaded again at once.
template <class Contract, class T, class Op, class Endpoint, class Algorithm>
template <class Chosen>
status compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_chosen(engine_type& engine,
                                                                             arguments const& args) noexcept {
  using namespace detail;
  using S = schedule_for<Contract, Chosen>;
  if (COLLX_UNLIKELY((!can_run<S, T>(engine.endpoint(), args.at.where.shape()))))
    return status::not_supported;
  if (COLLX_UNLIKELY(args.at.where.size == 1)) {
    engine.count_one();
    run_alone(args);
    return engine.failure().code;
  }
  static constexpr choice how = choice_of<Chosen, Contract, T, Op>();
  if (COLLX_UNLIKELY(engine.checker() != nullptr))
    if (status const agreed = engine.checker()(engine, describe(args, how.name)); agreed != status::ok)
      return agreed;
  if constexpr (!is_uneven<Contract> && !is_apart<Contract> && exec::may_be_short<S, T, Op, Endpoint>)
    if (args.at.along.is_whole()) {
      std::size_t const bytes = args.count * sizeof(T);
      if (bytes <= exec::short_staged_bytes &&
          COLLX_LIKELY(exec::stays_whole<S>(engine.endpoint(), args.at.where, bytes))) {
        if (bytes <= engine.endpoint().short_bytes()) return run_shortly<S, false>(engine, how, args);
        return run_staged<S>(engine, how, args);
      }
    }
  return run_executor(engine, how, args, {});
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
template <class S, bool Stages>
status compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_shortly(
    engine_type& engine, detail::choice const& how, arguments const& args) noexcept {
  if (COLLX_UNLIKELY(engine.failure().code != status::ok)) return run_executor(engine, how, args, {});
  exec::stopped_at const at = detail::do_shortly<S, Stages>(engine, args);
  if (COLLX_UNLIKELY(at.step != exec::stopped_at::at_the_end)) return run_executor(engine, how, args, at);
  engine.count_one();
  return status::ok;
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
template <class S>
status compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_staged(engine_type& engine,
                                                                             detail::choice const& how,
                                                                             arguments const& args) noexcept {
  return run_shortly<S, true>(engine, how, args);
}

// Once for all schedules; and out of line, as is all that a short call need not be burdened with.
template <class Contract, class T, class Op, class Endpoint, class Algorithm>
status compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_executor(engine_type& engine,
                                                                               detail::choice const& how,
                                                                               arguments const& args,
                                                                               exec::stopped_at at) noexcept {
  return engine.run(detail::scheduled(how, args), at);
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
void compiled_collective<Contract, T, Op, Endpoint, Algorithm>::throw_outcome(engine_type& engine,
                                                                              arguments const& args,
                                                                              status outcome) {
  using namespace detail;
  if constexpr (chooser<Algorithm>)
    if (outcome == status::bad_argument && !args.is_wrong()) refuse_choice<Algorithm>(engine, args);
  if (outcome == status::bad_argument) throw_wrong(args);
  if (outcome == status::not_supported)
    throw_not_runnable(Contract::name, args.at.where, sizeof(T), engine.endpoint().depth());
  throw error(engine.failure());
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
void compiled_collective<Contract, T, Op, Endpoint, Algorithm>::run_or_throw(engine_type& engine,
                                                                             arguments const& args) {
  status const outcome = run(engine, args);
  if (COLLX_LIKELY(outcome == status::ok)) return;
  throw_outcome(engine, args, outcome);
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
detail::choice compiled_collective<Contract, T, Op, Endpoint, Algorithm>::choose(engine_type& engine,
                                                                                 arguments const& args,
                                                                                 char const* form) {
  using namespace detail;
  if (args.is_wrong()) throw_wrong(args);
  choice const with = with_algorithm<Algorithm>(
      engine, args,
      [&]<class Chosen>() {
        if (!can_run<schedule_for<Contract, Chosen>, T>(engine.endpoint(), args.at.where.shape()))
          throw_not_runnable(Contract::name, args.at.where, sizeof(T), engine.endpoint().depth());
        return choice_of<Chosen, Contract, T, Op>();
      },
      [&]() -> choice { refuse_choice<Algorithm>(engine, args); });
  if (engine.checker() != nullptr && args.at.where.size > 1 &&
      engine.checker()(engine, describe(args, with.name, form)) != status::ok)
    throw error(engine.failure());
  return with;
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
request<Endpoint> compiled_collective<Contract, T, Op, Endpoint, Algorithm>::launch(
    engine_type& engine, detail::choice const& with, arguments const& args, priority how) {
  using namespace detail;
  if (moves_nothing(args)) return request_of_nothing(engine);
  if (args.at.where.size == 1) {
    engine.count_one();
    run_alone(args);
    return request_of_nothing(engine);
  }
  exec::scheduled_call const call = scheduled(with, args);
  return request<Endpoint>(engine,
                           engine.start(call.what, kept_call<Op, Endpoint>(engine, call, args.op), how));
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
request<Endpoint> compiled_collective<Contract, T, Op, Endpoint, Algorithm>::begin(engine_type& engine,
                                                                                   arguments const& args,
                                                                                   priority how) {
  // With checking on, a count of 0 is compared as any other.
  if (!args.is_wrong() && detail::moves_nothing(args) && engine.checker() == nullptr)
    return detail::request_of_nothing(engine);
  return launch(engine, choose(engine, args, detail::name_of_started(how)), args, how);
}

template <class Contract, class T, class Op, class Endpoint, class Algorithm>
persistent_collective<Contract, T, Op, Endpoint>
compiled_collective<Contract, T, Op, Endpoint, Algorithm>::prepare(engine_type& engine, arguments const& args,
                                                                   priority how) {
  return {engine, args, choose(engine, args, detail::name_of_persistent(how)), &launch, how};
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
[[noreturn]] void throw_outcome(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args,
                                status outcome) {
  compiled_collective<Contract, T, Op, Endpoint, Algorithm>::throw_outcome(engine, args, outcome);
}
template <class Algorithm, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] auto begin(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args,
                         priority how) {
  return compiled_collective<Contract, T, Op, Endpoint, Algorithm>::begin(engine, args, how);
}
template <class Algorithm, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] auto prepare(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args,
                           priority how) {
  return compiled_collective<Contract, T, Op, Endpoint, Algorithm>::prepare(engine, args, how);
}

// A buffer whose elements are another's: a span, whose elements are no more constant where it is constant
// itself, and not a std::vector or std::array.
template <class R>
concept borrowed_buffer = std::is_trivially_destructible_v<R> && requires(R& buffer, R const& constant) {
  requires std::is_same_v<decltype(buffer.data()), decltype(constant.data())>;
};

// Blocks (blocks.hpp) that were made of a temporary.
template <class R>
concept blocks_of_temporaries = requires {
  requires !std::remove_reference_t<R>::buffers_stay;
};

template <class R>
concept unnamed = requires { typename R::must_be_named; };  // a graph made for one statement; no reference

// What is started is used after the statement: a temporary that owns its elements is gone by then.
template <class... Arguments>
inline constexpr bool are_no_temporaries = ((std::is_lvalue_reference_v<Arguments> ||
                                             !buffer_like<Arguments> || borrowed_buffer<Arguments>)&&...) &&
                                           ((!blocks_of_temporaries<Arguments> && !unnamed<Arguments>)&&...);

// Lists of calls look at their buffers later, too.
template <class... Buffers>
constexpr void require_listed_buffers_stay() noexcept {
  static_assert(are_no_temporaries<Buffers...>,
                "collx: a buffer that is listed must stay until run() or wait() returns; give it a name");
}

template <class...>
inline constexpr bool may_be_called = false;

// What a set of functions of which one could combine two values converts to: std::max<float>, without a cast.
template <class T>
struct overloaded_operator {
  overloaded_operator(T (*)(T, T));
  overloaded_operator(T const& (*)(T const&, T const&));
};
template <class T>
  requires std::is_array_v<T>
struct overloaded_operator<T> {};  // no function returns one
template <class R>
using operator_for = overloaded_operator<element_t<std::remove_reference_t<R>>>;

}  // namespace detail
}  // namespace collx::inline abi_1

// The forms in which every collective comes; its header defines detail::bind_<name>, which turns the
// arguments into an invocation. As a macro, since the name is all in which they differ.
//
//   name(comm, ...)               blocks; throws error instead of returning anything but ok
//   try_name(comm, ...)           the same, noexcept: returns the status
//   start::name(comm, ...)        returns a request; bad arguments throw here, the rest comes out of it
//   persistent::name(comm, ...)   returns a persistent_collective, to be started as often as wanted
//
// The last two copy the operator: what it refers to stays as long as the buffers, and large captures do not
// compile (exec/request.hpp). What they return must end before the communicator.
//
// Template arguments: the algorithm, and for the last two the priority, or the priority alone.
#define COLLX_DETAIL_FORMS(name)                                                                         \
  COLLX_DETAIL_MISTAKES(name)                                                                            \
  COLLX_DETAIL_MISTAKES(try_##name)                                                                      \
  template <class Algorithm = default_algorithm, class Transport, class... Arguments>                    \
  void name(communicator<Transport>& comm, Arguments&&... arguments) {                                   \
    COLLX_DETAIL_REQUIRE_FIT(name);                                                                      \
    detail::run_or_throw<Algorithm>(                                                                     \
        comm.engine(), detail::called_on(comm, detail::bind_##name(detail::where(comm), arguments...))); \
  }                                                                                                      \
  template <class Algorithm = default_algorithm, class Transport, class... Arguments>                    \
  [[nodiscard]] status try_##name(communicator<Transport>& comm, Arguments&&... arguments) noexcept {    \
    COLLX_DETAIL_REQUIRE_FIT(name);                                                                      \
    return detail::run<Algorithm>(                                                                       \
        comm.engine(), detail::called_on(comm, detail::bind_##name(detail::where(comm), arguments...))); \
  }                                                                                                      \
  namespace start {                                                                                      \
  COLLX_DETAIL_MISTAKES(name)                                                                            \
  template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport,       \
            class... Arguments>                                                                          \
  [[nodiscard]] auto name(communicator<Transport>& comm, Arguments&&... arguments) {                     \
    COLLX_DETAIL_REQUIRE_NO_PRIORITY(name, start);                                                       \
    COLLX_DETAIL_REQUIRE_FIT(name);                                                                      \
    COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(Arguments...);                                                \
    return detail::begin<Algorithm>(                                                                     \
        comm.engine(), detail::called_on(comm, detail::bind_##name(detail::where(comm), arguments...)),  \
        How);                                                                                            \
  }                                                                                                      \
  template <priority How, class Transport, class... Arguments>                                           \
  [[nodiscard]] auto name(communicator<Transport>& comm, Arguments&&... arguments) {                     \
    return start::name<default_algorithm, How>(comm, static_cast<Arguments&&>(arguments)...);            \
  }                                                                                                      \
  }                                                                                                      \
  namespace persistent {                                                                                 \
  COLLX_DETAIL_MISTAKES(name)                                                                            \
  template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport,       \
            class... Arguments>                                                                          \
  [[nodiscard]] auto name(communicator<Transport>& comm, Arguments&&... arguments) {                     \
    COLLX_DETAIL_REQUIRE_NO_PRIORITY(name, persistent);                                                  \
    COLLX_DETAIL_REQUIRE_FIT(name);                                                                      \
    COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(Arguments...);                                                \
    return detail::prepare<Algorithm>(                                                                   \
        comm.engine(), detail::called_on(comm, detail::bind_##name(detail::where(comm), arguments...)),  \
        How);                                                                                            \
  }                                                                                                      \
  template <priority How, class Transport, class... Arguments>                                           \
  [[nodiscard]] auto name(communicator<Transport>& comm, Arguments&&... arguments) {                     \
    return persistent::name<default_algorithm, How>(comm, static_cast<Arguments&&>(arguments)...);       \
  }                                                                                                      \
  }

// Before the call that would say the same with a list of functions that do not fit. nvcc 13 finds that good
// arguments of calls in gpu_communicator.cuh do not.
#if defined(__CUDACC__)
#define COLLX_DETAIL_REQUIRE_FIT(name) static_assert(true)
#else
#define COLLX_DETAIL_REQUIRE_FIT(name)                                              \
  static_assert(                                                                    \
      requires { detail::bind_##name(detail::where(comm), arguments...); },         \
      "collx: " #name                                                               \
      " does not take these arguments (docs/collectives.md); a buffer has "         \
      "data(), size() and trivially copyable elements: std::vector (but of bool), " \
      "std::span, std::array; write std::span(pointer, count), std::span(array), "  \
      "std::span(&value, 1); a _v collective takes collx::blocks{buffer, counts}")
#endif
// Calls that would fit no function at all, of which a compiler says no more than that: they fit these.
#if defined(__CUDACC__)
#define COLLX_DETAIL_MISTAKES(name)
#else
#define COLLX_DETAIL_MISTAKES(name)                                                                          \
  template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport,           \
            class... Arguments>                                                                              \
  auto name(communicator<Transport> const&, Arguments&&...) {                                                \
    static_assert(detail::may_be_called<Transport>,                                                          \
                  "collx: " #name                                                                            \
                  " on a communicator that is a temporary, or const; give it a name: "                       \
                  "auto world = collx::connect<...>()");                                                     \
  }                                                                                                          \
  template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport, class In, \
            class... Root>                                                                                   \
  auto name(communicator<Transport>&, In&&, detail::operator_for<In>, Root&&...) {                           \
    COLLX_DETAIL_REFUSE_OVERLOADED(name);                                                                    \
  }                                                                                                          \
  template <class Algorithm = default_algorithm, priority How = priority::normal, class Transport, class In, \
            class Out, class... Root>                                                                        \
  auto name(communicator<Transport>&, In&&, Out&&, detail::operator_for<Out>, Root&&...) {                   \
    COLLX_DETAIL_REFUSE_OVERLOADED(name);                                                                    \
  }
#define COLLX_DETAIL_REFUSE_OVERLOADED(name)                                            \
  static_assert(detail::may_be_called<Transport>,                                       \
                "collx: " #name                                                         \
                " with a function that is overloaded, or a template, as its operator: " \
                "write a lambda, [](T a, T b) { return std::max(a, b); }, or collx::max")
#endif
#define COLLX_DETAIL_REQUIRE_NO_PRIORITY(name, form)                                \
  static_assert((!std::is_same_v<std::remove_cvref_t<Arguments>, priority> && ...), \
                "collx: a priority is a template argument: " #form "::" #name       \
                "<collx::priority::urgent>(...)")
#define COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(...)      \
  static_assert(detail::are_no_temporaries<__VA_ARGS__>, \
                "collx: a buffer that is started with must stay until wait() returns; give it a name")
