// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a host: one resumable state machine for every schedule, operator and transport.
// Blocking calls, started requests and deterministic tests all call advance(); none of them has
// code of its own for any algorithm. Never allocates, never throws, never blocks.
#pragma once

#include "collx/exec/scheduled_call.hpp"
#include "collx/exec/step_machine.hpp"
#include "collx/trace/null_trace.hpp"

namespace collx::inline abi_1::exec {

// Compiled once per transport. `trace.step(problem, fragment, index, primitive)` is called when a step is
// done.
template <class Endpoint, class Trace = trace::null_trace>
class host_executor : public step_machine<Endpoint> {
  using machine = step_machine<Endpoint>;

 public:
  // Of the call only its operator, its schedule and the user's buffers are looked at later.
  COLLX_NEVER_INLINE host_executor(Endpoint& endpoint, int lane, workspace& work, scheduled_call const& call,
                                   Trace trace = {}) noexcept
      : machine(
            endpoint, lane, work, [&]() noexcept { return map(endpoint, lane, work, call); }, call.combine,
            call.prepare),
        schedule_(*call.schedule),
        op_(call.op),
        trace_(trace),
        along_(call.what.at.along) {
    if constexpr (requires { endpoint.about(lane, call.what.collective); })
      endpoint.about(lane, call.what.collective);
    this->step_count(schedule_.step_count(this->memory().where()));
  }

  // Does everything that can be done without waiting, or a fragment of it (yields). pending: call again;
  // anything else is final.
  [[nodiscard]] COLLX_NEVER_INLINE status advance() noexcept {
    while (this->in_call()) {
      for (; this->in_fragment(); this->next_step()) {
        primitive step = schedule_.step(this->memory().where(), this->step());
        if (COLLX_UNLIKELY(!along_.is_whole())) {
          step.from.along = embed(step.from.along, along_);
          step.to.along = embed(step.to.along, along_);
        }
        status const outcome = this->perform(step, op_);
        if (outcome != status::ok) return outcome;
        trace_.step(this->memory().where(), this->fragment(), this->step(), step);
      }
      if (this->next_fragment()) return status::pending;
    }
    return this->drained() ? status::ok : status::pending;
  }

 protected:
  // Where the operator lies from now on.
  void op(void const* there) noexcept { op_ = there; }

 private:
  [[nodiscard]] static memory_map map(Endpoint& endpoint, int lane, workspace& work,
                                      scheduled_call const& call) noexcept {
    memory_map memory = map_memory(call, work, endpoint.scratch(lane), endpoint.staging_bytes());
    if constexpr (Endpoint::fetches) {
      if (COLLX_UNLIKELY(endpoint.space().crowded())) memory.fetch_as_crowded();
      else if (memory.stages_if_rewritten() && !endpoint.stages_slowly() &&
               work.inputs.is_rewritten(memory.input(), memory.input_bytes()))
        memory.stage_payloads();
    }
    return memory;
  }

  erased_schedule const& schedule_;
  void const* op_;
  [[no_unique_address]] Trace trace_;
  axis along_;
};

// One that keeps its operator. Stays where it is made.
template <class Endpoint, class Op>
class owning_executor : public host_executor<Endpoint> {
 public:
  owning_executor(Endpoint& endpoint, int lane, workspace& work, scheduled_call const& call,
                  Op const& op) noexcept
      : host_executor<Endpoint>(endpoint, lane, work, call), own_(op) {
    this->op(&own_);
  }
  owning_executor(owning_executor const&) = delete;
  owning_executor& operator=(owning_executor const&) = delete;

 private:
  [[no_unique_address]] Op own_;
};

}  // namespace collx::inline abi_1::exec
