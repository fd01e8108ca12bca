// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a host: one resumable state machine for every schedule, operator and transport.
// Blocking calls, started requests and deterministic tests all call advance(); none of them has
// code of its own for any algorithm. Never allocates, never throws, never blocks.
#pragma once

#include "collx/device/host_combine.hpp"
#include "collx/exec/step_machine.hpp"
#include "collx/trace/null_trace.hpp"

namespace collx::inline abi_1::exec {

namespace detail {

template <class T, class Op>
void combine_as(std::byte* const* destinations, std::int32_t destination_count,
                std::byte const* const* sources, std::int32_t source_count, std::size_t bytes, void const* op,
                bool complete, rank_t size, std::int32_t streamed) noexcept {
  device::combine(reinterpret_cast<T* const*>(destinations), destination_count,
                  reinterpret_cast<T const* const*>(sources), source_count, bytes / sizeof(T),
                  *static_cast<Op const*>(op), complete, size, streamed);
}

template <class Contract, class T, class Op>
[[nodiscard]] constexpr combine_function combine_for() {
  if constexpr (Contract::from_all) return &combine_as<T, Op>;
  else return nullptr;
}

// How far the windows of two neighbouring ranks are apart, in chunks. The contracts are linear.
template <class Contract>
[[nodiscard]] constexpr memory_map::windows windows_of(rank_t size, std::int32_t chunks) {
  if constexpr (!Contract::sharded) return {};
  if (size == 1) return {};
  problem const first{0, size, 0}, second{1, size, 0};
  return {Contract::input(second, chunks).first - Contract::input(first, chunks).first,
          Contract::output(second, chunks).first - Contract::output(first, chunks).first};
}

}  // namespace detail

// Where schedule S finds its chunks in these buffers. `input` may be null where the contract gives
// this rank none, and likewise output and scratch. staging_bytes is the same on every rank.
template <schedule S, class T>
[[nodiscard]] memory_map map_memory(problem p, T const* input, T* output, std::byte* scratch,
                                    std::size_t count, std::size_t staging_bytes) noexcept {
  using contract = typename S::contract;
  std::int32_t const chunks = S::chunk_count(p.size);
  geometry const cut(count, sizeof(T), chunks, p.size, contract::sharded, largest_staged<S>(p.size),
                     staging_bytes);
  return {p, cut, chunks, sizeof(T), detail::windows_of<contract>(p.size, chunks),
          // Only written where the call is in place, and then it is the output.
          reinterpret_cast<std::byte*>(const_cast<T*>(input)), reinterpret_cast<std::byte*>(output), scratch};
}

// `trace.step(problem, fragment, index, primitive)` is called when a step is done.
template <schedule S, class T, class Op, class Endpoint, class Trace = trace::null_trace>
class host_executor : public step_machine<Endpoint> {
  using machine = step_machine<Endpoint>;

 public:
  // `map()` returns the memory_map of the call (map_memory<S>).
  template <class Map>
  host_executor(Endpoint& endpoint, int lane, workspace& work, Map const& map, Op const& op,
                Trace trace = {}) noexcept
      : machine(endpoint, lane, work, map, detail::combine_for<typename S::contract, T, Op>()),
        op_(op),
        trace_(trace) {
    this->step_count(S::step_count(this->memory().where()));
  }

  // Does everything that can be done without waiting. pending: call again; anything else is final.
  [[nodiscard]] status advance() noexcept {
    for (; this->in_call(); this->next_fragment()) {
      for (; this->in_fragment(); this->next_step()) {
        primitive const step = S::step(this->memory().where(), this->step());
        status const outcome = this->perform(step, &op_);
        if (outcome != status::ok) return outcome;
        trace_.step(this->memory().where(), this->fragment(), this->step(), step);
      }
    }
    return this->drained() ? status::ok : status::pending;
  }

 private:
  [[no_unique_address]] Op op_;
  [[no_unique_address]] Trace trace_;
};

}  // namespace collx::inline abi_1::exec
