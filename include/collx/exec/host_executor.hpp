// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a host: one resumable state machine for every schedule, operator and transport.
// Blocking calls, started requests and deterministic tests all call advance(); none of them has
// code of its own for any algorithm. Never allocates, never throws, never blocks.
#pragma once

#include "collx/device/host_combine.hpp"
#include "collx/exec/step_machine.hpp"
#include "collx/trace/null_trace.hpp"

namespace collx::inline abi_1::exec {

// An operator that stands for one that is known at run time only, and brings its loop
// (erased_reduction.hpp).
template <class Op>
concept erased = requires { &Op::combine_bytes; };

namespace detail {

template <class T, class Op>
void combine_as(std::byte* const* destinations, std::int32_t destination_count,
                std::byte const* const* sources, std::int32_t source_count, std::size_t bytes, void const* op,
                bool complete, rank_t size, std::int32_t streamed) noexcept {
  device::combine(reinterpret_cast<T* const*>(destinations), destination_count,
                  reinterpret_cast<T const* const*>(sources), source_count, bytes / sizeof(T),
                  *static_cast<Op const*>(op), complete, size, streamed);
}

template <class T, class Op>
void prepare_as(std::byte* data, std::size_t bytes, void const* op) noexcept {
  T* const elements = reinterpret_cast<T*>(data);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i)
    elements[i] = static_cast<T>(static_cast<Op const*>(op)->prepare(elements[i]));
}

template <class Contract, class T, class Op>
[[nodiscard]] constexpr prepare_function prepare_for() {
  if constexpr (Contract::from_all && prepares<Op, T>) {
    static_assert(sizeof(T) <= prepared_bytes,
                  "collx: an operator that prepares contributions takes elements of up to 4096 bytes");
    return &prepare_as<T, Op>;
  } else {
    return nullptr;
  }
}

template <class Contract, class T, class Op>
[[nodiscard]] constexpr combine_function combine_for() {
  if constexpr (Contract::from_all && erased<Op>) return &Op::combine_bytes;
  else if constexpr (Contract::from_all) return &combine_as<T, Op>;
  else return nullptr;
}

// Receivers copy private payloads themselves where every rank receives as much as it sends, once. Where
// data flows one way, two ranks that do half of the work each, one into staging and one out of it, are
// faster than one that does all of it; so they are for an all_reduce, and for many operands of a fan-in
// (docs/decisions.md has the figures). Schedules that share the copying out say so themselves.
template <class Contract>
[[nodiscard]] std::size_t fetched_block_bytes_max(rank_t size) noexcept {
  bool const pays = !Contract::rooted && Contract::sharded && (!Contract::from_all || size == 2);
  return pays ? device::fetched_bytes_max() : 0;
}

}  // namespace detail

// The buffers of a call without tables, laid out as the contract has it.
template <class Contract, class T>
[[nodiscard]] buffers even_buffers(problem p, T const* input, T* output, bool in_place) noexcept {
  buffers user;
  // Only written where the call is in place, and then it is the output.
  user.input = reinterpret_cast<std::byte*>(const_cast<T*>(input));
  user.output = reinterpret_cast<std::byte*>(output);
  user.input_window = Contract::input(p);
  user.output_window = Contract::output(p);
  // The contracts are linear: neighbours are equally far apart.
  if constexpr (Contract::sharded)
    user.output_pitch =
        Contract::output({1, p.size, p.root}).first - Contract::output({0, p.size, p.root}).first;
  user.in_place = in_place;
  user.fetched_block_bytes_max = detail::fetched_block_bytes_max<Contract>(p.size);
  return user;
}

// Where schedule S finds its chunks in the buffers that `user()` returns. `count`: elements of a block,
// of the largest one that this rank knows of where they differ. staging_bytes is the same on every rank.
template <schedule S, class User>
[[nodiscard]] memory_map map_memory(problem p, User const& user, std::byte* scratch, std::size_t count,
                                    std::size_t element_bytes, std::size_t staging_bytes) noexcept {
  shape const n = p.shape();
  std::int32_t const chunks = chunk_count<S>(n);
  std::int32_t const blocks = S::contract::blocks(p.size);
  auto const cut = [&](buffers const& made) noexcept {
    return geometry(count, element_bytes, blocks == 1 ? chunks : chunks == blocks ? 1 : chunks / blocks,
                    largest_staged<S>(n), staging_bytes, !made.skips_empty);
  };
  auto const bound = [&]() noexcept {
    buffers made = user();
    if (shares_copying<S>(p.size)) {
      made.fetched_block_bytes_max = (S::contract::from_all ? 1 : 4) * device::fetched_bytes_max();
      made.lets_post = true;
    }
    return made;
  };
  return {p, cut, chunks, element_bytes, bound, scratch};
}

// `trace.step(problem, fragment, index, primitive)` is called when a step is done.
template <schedule S, class T, class Op, class Endpoint, class Trace = trace::null_trace>
class host_executor : public step_machine<Endpoint> {
  using machine = step_machine<Endpoint>;

 public:
  // `map()` returns the memory_map of the call (map_memory<S>), `along`: where the group's ranks lie among
  // those of the endpoint.
  template <class Map>
  host_executor(Endpoint& endpoint, int lane, workspace& work, Map const& map, Op const& op,
                 Trace trace = {}, axis const& along = {}) noexcept
      : machine(endpoint, lane, work, map, detail::combine_for<typename S::contract, T, Op>(),
                detail::prepare_for<typename S::contract, T, Op>()),
        op_(op),
        trace_(trace),
        along_(along) {
    this->step_count(S::step_count(this->memory().where()));
  }

  // Does everything that can be done without waiting, or a fragment of it (yields). pending: call again;
  // anything else is final.
  [[nodiscard]] status advance() noexcept {
    while (this->in_call()) {
      for (; this->in_fragment(); this->next_step()) {
        primitive step = S::step(this->memory().where(), this->step());
        if (COLLX_UNLIKELY(!along_.is_whole())) {
          step.from.along = embed(step.from.along, along_);
          step.to.along = embed(step.to.along, along_);
        }
        status const outcome = this->perform(step, &op_);
        if (outcome != status::ok) return outcome;
        trace_.step(this->memory().where(), this->fragment(), this->step(), step);
      }
      if (this->next_fragment()) return status::pending;
    }
    return this->drained() ? status::ok : status::pending;
  }

 private:
  [[no_unique_address]] Op op_;
  [[no_unique_address]] Trace trace_;
  axis along_;
};

}  // namespace collx::inline abi_1::exec
