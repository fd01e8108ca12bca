// SPDX-License-Identifier: Apache-2.0
// From bound arguments to an executor: which algorithm, where its chunks lie, whether it can run here.
#pragma once

#include "collx/collective/invocation.hpp"
#include "collx/core/fnv1a.hpp"
#include "collx/exec/presence.hpp"
#include "collx/exec/short_call.hpp"
#include "collx/tune/reproducible.hpp"

namespace collx::inline abi_1 {
namespace detail {

// Bytes of an element; counts of a call whose element type is known at run time only are in bytes.
template <class T, class Op>
[[nodiscard]] constexpr std::size_t element_bytes_of([[maybe_unused]] Op const& op) noexcept {
  if constexpr (exec::erased<Op>) return op.element_bytes;
  else return sizeof(T);
}

// A chosen algorithm as values.
struct choice {
  exec::erased_schedule const* schedule;
  exec::combine_function combine;
  exec::preparation const* prepare;
  char const* name;
};

template <class Algorithm>
[[nodiscard]] constexpr char const* algorithm_name() {
  if constexpr (requires { Algorithm::name; }) return Algorithm::name;
  else return "user's";
}

template <class Chosen, class Contract, class T, class Op>
[[nodiscard]] constexpr choice choice_of() {
  using S = schedule_for<Contract, Chosen>;
  return {&exec::erased_schedule_of<S>, exec::detail::combine_for<typename S::contract, T, Op>(),
          exec::detail::prepare_for<typename S::contract, T, Op>(), algorithm_name<Chosen>()};
}

// Does what it can of a call without an executor, and says how far it came. One that stages may be at memory
// that a peer has lent: peers lend what is large enough, whatever this rank does. Letters lie in this rank's
// own block.
template <schedule S, bool Stages, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] COLLX_ALWAYS_INLINE exec::stopped_at do_shortly(
    exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args) noexcept {
  if constexpr (requires { engine.endpoint().about(0, Contract::name); })
    engine.endpoint().about(0, Contract::name);
  exec::short_call<S, T, Op, Endpoint> call(engine.endpoint(), engine.work(0), args.at.where, args.input,
                                            args.output, args.count * sizeof(T), args.op, engine.looks(),
                                            Stages, args.in_place);
  if constexpr (Stages)
    return exec::at_peers(
        engine.endpoint(), [&]() noexcept { return call.run(); }, exec::stopped_at{});
  else return call.run();
}

template <class Algorithm>
inline constexpr bool is_reproducible = false;
template <reproducibility Level>
inline constexpr bool is_reproducible<reproducible<Level>> = true;

// The count on which all ranks agree: what may be compared, and what a choice may depend on.
template <class Contract, class T, class Op>
[[nodiscard]] constexpr std::size_t agreed_count(invocation<Contract, T, Op> const& args) noexcept {
  if constexpr (is_uneven<Contract>) return Contract::counts == known_counts::pairwise ? 0 : args.count;
  else return args.count;
}

// What a chooser may know of a call. The memory is that of the buffer which every rank has, whoever is
// root: ranks must come to the same choice, so they must pass the same kind there.
template <class Contract, class T, class Op, class Endpoint>
[[nodiscard]] tune::question question_of(exec::engine<Endpoint>& engine,
                                         invocation<Contract, T, Op> const& args) noexcept {
  Endpoint& endpoint = engine.endpoint();
  constexpr bool all_have_input = Contract::input({0, 2, 1}).count > 0;
  T const* const everywhere = all_have_input ? args.input : args.output;
  std::size_t const bytes = agreed_count(args) * sizeof(T);
  // Where counts differ, some rank may have nothing, and so no memory of any kind.
  bool const shared = !is_uneven<Contract> && bytes > 0 &&
                      endpoint.reachable(reinterpret_cast<std::byte const*>(everywhere), sizeof(T));
  return {bytes,
          args.at.where.shape(),
          &tune::transport_of<Endpoint>,
          shared ? tune::memory_kind::symmetric : tune::memory_kind::unshared,
          endpoint.depth(),
          endpoint.staging_bytes(),
          tune::situation_of(endpoint, engine.said().buffers, args.at.where.shape())};
}

// Calls f.template operator()<Algorithm>() with the algorithm asked for, or the chosen one; otherwise()
// where a chooser finds none.
template <class Algorithm, class Contract, class T, class Op, class Endpoint, class F, class Otherwise>
[[nodiscard]] auto with_algorithm([[maybe_unused]] exec::engine<Endpoint>& engine,
                                  [[maybe_unused]] invocation<Contract, T, Op> const& args, F const& f,
                                  [[maybe_unused]] Otherwise const& otherwise) {
  if constexpr (std::is_same_v<Algorithm, automatic>) {
    return tune::choose<Contract, Endpoint, is_commutative<Op>()>(
        agreed_count(args) * sizeof(T), args.at.where.size,
        tune::situation_of(engine.endpoint(), engine.said().buffers, args.at.where.shape()), f);
  } else if constexpr (is_reproducible<Algorithm>) {
    return tune::choose_reproducible<Contract, Endpoint, is_commutative<Op>(), Algorithm::level,
                                     is_exact<Op, T>()>(
        agreed_count(args) * sizeof(T), args.at.where.size,
        tune::situation_of(engine.endpoint(), engine.said().buffers, args.at.where.shape()), f);
  } else if constexpr (chooser<Algorithm>) {
    return Algorithm::template choose<Contract, Endpoint, is_commutative<Op>()>(
        engine.said().tuning, question_of(engine, args), f, otherwise);
  } else {
    static_assert(
        algorithm_for<Algorithm, Contract>,
        "collx: this algorithm offers no schedule for this collective; docs/algorithms.md lists which do");
    if constexpr (algorithm_for<Algorithm, Contract>) {
      static_assert(
          is_commutative<Op>() || keeps_rank_order<schedule_for<Contract, Algorithm>>(),
          "collx: this operator is not commutative and this algorithm does not combine in rank order; "
          "choose one that does (docs/algorithms.md)");
      if constexpr (is_uneven<Contract>)
        static_assert(counts_for<schedule_for<Contract, Algorithm>>() >= Contract::counts,
                      "collx: this algorithm works on equal blocks only, or needs every rank to know all "
                      "counts; docs/algorithms.md says which take blocks of any counts");
      return f.template operator()<Algorithm>();
    }
  }
}

// A number for a type, the same in every process that runs the same program: that of its name.
template <class T>
[[nodiscard]] consteval std::uint64_t type_number() {
  return fnv1a_64(__PRETTY_FUNCTION__);
}

// Types whose name is another one to the compiler.
template <class T>
inline constexpr char const* usual_name = nullptr;
template <>
inline constexpr char const* usual_name<float16> = "float16";
template <>
inline constexpr char const* usual_name<bfloat16> = "bfloat16";
template <>
inline constexpr char const* usual_name<float8_e5m2> = "float8_e5m2";
template <>
inline constexpr char const* usual_name<float8_e4m3> = "float8_e4m3";

// The name is what stands behind T in this function's own: "[with T = float]", "[T = float]".
template <class T>
[[nodiscard]] consteval exec::element_kind describe_element() {
  exec::element_kind kind{type_number<T>(), sizeof(T), {}};
  char const* c = usual_name<T>;
  if (c == nullptr) {
    c = __PRETTY_FUNCTION__;
    while (*c != 0 && !(c[0] == 'T' && (c[1] == '=' || (c[1] == ' ' && c[2] == '=')))) ++c;
    while (*c == 'T' || *c == ' ' || *c == '=') ++c;
  }
  int depth = 0;
  for (char& to : kind.name) {
    bool const ends = *c == 0 || (depth == 0 && (*c == ';' || *c == ']')) || &to == std::end(kind.name) - 1;
    if (ends) break;
    depth += (*c == '[') - (*c == ']');
    to = *c++;
  }
  return kind;
}
template <class T>
inline constexpr exec::element_kind element_kind_of = describe_element<T>();

// In which form a call was made: those of one form meet in one lane.
[[nodiscard]] constexpr char const* name_of_started(priority how) noexcept {
  return how == priority::urgent ? "started, urgent" : "started";
}
[[nodiscard]] constexpr char const* name_of_persistent(priority how) noexcept {
  return how == priority::urgent ? "persistent, urgent" : "persistent";
}

// What an operator is called in messages.
template <class Op>
[[nodiscard]] constexpr char const* name_of_operator() noexcept {
  if constexpr (requires { Op::name; }) return Op::name;
  else return "a callable";
}

template <class Contract, class T, class Op>
[[nodiscard]] exec::call describe(invocation<Contract, T, Op> const& args, char const* algorithm,
                                  char const* form = "blocking") noexcept {
  char const* op = name_of_operator<Op>();
  exec::element_kind const* element_type = &element_kind_of<T>;
  std::uint64_t op_type = type_number<Op>(), count = agreed_count(args);
  if constexpr (exec::erased<Op>) {
    op = args.op.op_name;
    op_type = args.op.op_type;
  }
  if constexpr (std::is_same_v<Op, unreduced_bytes>) op_type = type_number<unreduced>();
  // What has its type at run time is bound in bytes.
  if constexpr (exec::erased<Op> || std::is_same_v<Op, unreduced_bytes>) {
    element_type = args.op.element_type;
    count /= element_type->bytes;
  }
  return {Contract::name, algorithm, op, form, element_type, op_type, count, args.root, args.at};
}

// A call as values. What it was made from stays until it has ended.
template <class Contract, class T, class Op>
[[nodiscard]] COLLX_NEVER_INLINE exec::scheduled_call scheduled(
    choice const& how, invocation<Contract, T, Op> const& args) noexcept {
  std::size_t const element_bytes = element_bytes_of<T>(args.op);
  exec::scheduled_call made{.schedule = how.schedule,
                            .contract = &exec::erased_contract_of<Contract>,
                            .combine = how.combine,
                            .prepare = how.prepare,
                            .op = &args.op,
                            .input = reinterpret_cast<std::byte*>(const_cast<T*>(args.input)),
                            .output = reinterpret_cast<std::byte*>(args.output),
                            .count = args.count * sizeof(T) / element_bytes,
                            .element_bytes = element_bytes,
                            .in_place = args.in_place,
                            .what = describe(args, how.name)};
  if constexpr (is_apart<Contract>) made.block_pitch = args.tables.pitch;
  if constexpr (is_uneven<Contract>) {
    made.tables = args.tables;
    made.skips_empty = Contract::counts == known_counts::pairwise;
  }
  return made;
}

// The same for one that is started: what the engine keeps, and makes the executor of when the lane is free.
template <class Op, class Endpoint>
class kept_call {
 public:
  kept_call(exec::engine<Endpoint>& engine, exec::scheduled_call const& call, Op const& op) noexcept
      : engine_(&engine), call_(call), op_(op) {}

  [[nodiscard]] exec::owning_executor<Endpoint, Op> operator()(int lane) const noexcept {
    return {engine_->endpoint(), lane, engine_->work(lane), call_, op_};
  }

 private:
  exec::engine<Endpoint>* engine_;
  exec::scheduled_call call_;
  [[no_unique_address]] Op op_;
};

// With nothing to move there is nothing to do; but a barrier, of count 0, is all about its messages.
template <class Contract>
inline constexpr bool needs_elements = !std::is_same_v<Contract, contract::barrier>;

// Whether the call is over before it begins, as every rank must know: requests take lanes, and calls numbers,
// in the same order on all of them. Who knows its own counts only, and has none, may have peers that do.
template <class Contract, class T, class Op>
[[nodiscard]] constexpr bool moves_nothing(invocation<Contract, T, Op> const& args) noexcept {
  if constexpr (is_uneven<Contract>)
    if (Contract::counts == known_counts::pairwise && args.at.where.size > 1) return false;
  return needs_elements<Contract> && args.count == 0;
}

// The request of a call that has no messages: it is done, or has failed where the communicator had before it.
template <class Endpoint>
[[nodiscard]] request<Endpoint> request_of_nothing(exec::engine<Endpoint>& engine) noexcept {
  if (COLLX_LIKELY(engine.failure().code == status::ok)) return {};
  return {engine, exec::ticket{}};  // nobody's, so that it tells the failure
}

// Whether one element per chunk fits what a fragment may stage.
template <class Endpoint>
[[nodiscard]] COLLX_COLD bool has_room(Endpoint const& endpoint, exec::erased_schedule const& s, shape n,
                                       std::size_t element_bytes) noexcept {
  std::size_t const staged =
      (element_bytes + 63) / 64 * 64 * static_cast<std::size_t>(exec::largest_staged(s, n));
  return staged <= endpoint.staging_bytes() / 2;
}

// Whether the schedule exists for this many ranks, the transport has the credits it declares, and one
// element per chunk fits what a fragment may stage. Where there is as much of that as by default, only large
// elements, large worlds and many chunks can fail the last (tests/exec/geometry.cpp).
inline constexpr std::size_t roomy_element_bytes = 128, roomy_staging_bytes = std::size_t{512} << 10;
inline constexpr rank_t roomy_size = 64;
inline constexpr std::int32_t roomy_chunks = 64;

template <schedule S, class T, class Endpoint>
[[nodiscard]] bool can_run(Endpoint const& endpoint, shape n) noexcept {
  if (!supports<S>(n)) return false;
  // A schedule that is proved with more messages in flight than there are credits may deadlock.
  if (static_cast<std::uint64_t>(depth<S>(n)) > endpoint.depth()) return false;
  if (COLLX_LIKELY(sizeof(T) <= roomy_element_bytes && n.size <= roomy_size &&
                   chunk_count<S>(n) <= roomy_chunks && endpoint.staging_bytes() >= roomy_staging_bytes))
    return true;
  return has_room(endpoint, exec::erased_schedule_of<S>, n, sizeof(T));
}

// One rank: nothing moves, whatever the schedule, but the operator's finish() is due all the same.
template <class Contract, class T, class Op>
void run_alone(invocation<Contract, T, Op> const& args) noexcept {
  if (args.count == 0 || Contract::output({0, 1, 0}).count == 0) return;
  T const* input = args.input;
  T* output = args.output;
  if constexpr (is_uneven<Contract>) {
    std::size_t const unit = element_bytes_of<T>(args.op) / sizeof(T);
    if (args.tables.input.offsets != nullptr) input += args.tables.input.offsets[0] * unit;
    if (args.tables.output.offsets != nullptr) output += args.tables.output.offsets[0] * unit;
  }
  if constexpr (Contract::from_all && prepares<Op, T>) {
    for (std::size_t i = 0; i < args.count; ++i) output[i] = static_cast<T>(args.op.prepare(input[i]));
    input = output;
  }
  if constexpr (Contract::from_all && exec::erased<Op>)
    Op::combine_bytes(&output, 1, &input, 1, args.count, &args.op, true, 1, 0);
  else if constexpr (Contract::from_all)
    device::combine(&output, 1, &input, 1, args.count, args.op, true, rank_t{1});
  else if (input != output) device::copy_cached(output, input, args.count * sizeof(T));
}

}  // namespace detail
}  // namespace collx::inline abi_1
