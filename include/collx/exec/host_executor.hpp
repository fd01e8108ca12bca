// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a host: one resumable state machine for every schedule, operator and transport.
// Blocking calls, started requests and deterministic tests all call advance(); none of them has
// code of its own for any algorithm. Never allocates, never throws, never blocks.
#pragma once

#include <cstring>

#include "collx/device/host_combine.hpp"
#include "collx/exec/buffers.hpp"
#include "collx/exec/workspace.hpp"
#include "collx/trace/null_trace.hpp"

namespace collx::inline abi_1::exec {

// Where an executor stands: what a failure report or a watchdog prints.
struct cursor {
  std::size_t fragment = 0;
  std::int32_t step = 0;
  std::int32_t step_count = 0;
  rank_t waits_for = no_rank;
  std::size_t bytes = 0;       // of the message it waits for or works on
  std::size_t peer_bytes = 0;  // of the message that did not fit, after status::mismatch

  [[nodiscard]] bool same_place(cursor const& other) const noexcept {
    return fragment == other.fragment && step == other.step;
  }
};

// The executor's rule is the fused one that the verifier assumes: a step waits for all its messages
// and all its credits, then reads, combines, stores and sends at once.
template <schedule S, class T, class Op, class Endpoint, class Trace = trace::null_trace>
class host_executor {
 public:
  host_executor(Endpoint& endpoint, int lane, workspace& work, buffers<S, T> const& memory, Op const& op,
                Trace trace = {}) noexcept
      : endpoint_(endpoint),
        work_(work),
        memory_(memory),
        op_(op),
        trace_(trace),
        lane_(lane),
        step_count_(S::step_count(memory.where())) {
    endpoint_.begin(lane, reinterpret_cast<std::byte*>(memory.output()));
  }

  // Does everything that can be done without waiting. pending: call again; anything else is final.
  [[nodiscard]] status advance() noexcept {
    while (fragment_ < memory_.fragments()) {
      for (; step_ < step_count_; ++step_) {
        primitive const step = S::step(memory_.where(), step_);
        status const outcome = perform(step);
        if (outcome != status::ok) return outcome;
        trace_.step(memory_.where(), fragment_, step_, step);
        k_ = 0;
        staged_ = nullptr;
        waits_for_ = no_rank;
        phase_ = phase::begin;
      }
      endpoint_.end_fragment(lane_);
      step_ = 0;
      ++fragment_;
    }
    return endpoint_.drained(lane_) ? status::ok : status::pending;
  }

  // Whether advance() would find what the last one found. Cheap enough to spin on.
  [[nodiscard]] bool still_waits() noexcept {
    if (waits_for_ == no_rank) return false;
    transport::arrival unused;
    return waits_for_message_ ? !endpoint_.arrived(lane_, waits_for_, unused)
                              : !endpoint_.can_send(lane_, waits_for_);
  }

  [[nodiscard]] cursor where() const noexcept {
    return {fragment_, step_, step_count_, waits_for_, bytes_, peer_bytes_};
  }

 private:
  enum class phase : std::uint8_t { begin, receive, send };

  // How a result reaches its receivers; all three may hold at once, for different ones.
  struct forward_plan {
    bool in_place = false;  // receivers read the stored target
    bool pushes = false;    // at least one receiver's target is reachable
    bool stages = false;    // at least one receiver reads a staged copy
  };

  status perform(primitive const& step) noexcept {
    if (step.from.empty()) return originate(step);
    if (phase_ == phase::begin) {
      if constexpr (!Endpoint::is_mapped) announce(step);
      phase_ = phase::receive;
    }
    if constexpr (S::contract::from_all) {
      if (step.reduce) return reduce(step);
    }
    return relay(step);
  }

  // Nothing to receive: store a local copy, send the operand; the k-th peer may get its own run.
  status originate(primitive const& step) noexcept {
    if (phase_ == phase::begin) {
      if (step.store) copy_locally(step.operand, step.target);
      phase_ = phase::send;
    }
    for (; k_ < step.to.count; ++k_) {
      rank_t const peer = step.to.member(k_, size());
      if (peer == rank()) continue;
      run<T> const operand = memory_.find(step.operand, k_, fragment_);
      if (!may_send(peer, operand.bytes())) return status::pending;
      if (direct(operand, step.copy)) {
        endpoint_.send(lane_, peer, bytes_of(operand.data), operand.bytes(), transport::handover::in_place);
        continue;
      }
      if (staged_ == nullptr || step.operand.per_peer != 0) {
        staged_ = endpoint_.stage(lane_, operand.bytes());
        if (staged_ == nullptr) return status::pending;
        pack(operand, staged_);
      }
      endpoint_.send(lane_, peer, staged_, operand.bytes(), transport::handover::staged);
    }
    return status::ok;
  }

  // Tells a message transport where each message of this step is wanted.
  void announce(primitive const& step) noexcept {
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, size());
      if (peer == rank()) continue;
      run<T> const target = memory_.find(step.target, k, fragment_);
      bool const straight = !step.reduce && step.store && target.pieces == 1;
      endpoint_.expect(lane_, peer, straight ? bytes_of(target.data) : nullptr, target.bytes());
    }
  }

  // Fan-in: every source in one pass, to the target, to peers' targets and to staging at once.
  status reduce(primitive const& step) noexcept {
    run<T> const target = memory_.find(step.target, 0, fragment_);
    run<T> const operand = memory_.find(step.operand, 0, fragment_);
    for (; k_ < step.from.count; ++k_) {
      rank_t const peer = step.from.member(k_, size());
      transport::arrival& message = work_.arrivals[static_cast<std::size_t>(k_)];
      if (peer == rank()) message = {};
      else if (status const outcome = receive(peer, target.bytes(), message); outcome != status::ok) return outcome;
    }
    if (!may_send_to_all(step.to, target.bytes())) return status::pending;
    forward_plan const plan = plan_forward(step, target);
    if (plan.stages && !stage(target.bytes())) return status::pending;
    combine(step, operand, target, plan);
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, size());
      if (peer != rank()) endpoint_.consume(lane_, peer);
    }
    forward(step, target, plan);
    return status::ok;
  }

  // Messages that are results themselves: store each, and pass a single one on.
  status relay(primitive const& step) noexcept {
    for (; k_ < step.from.count; ++k_) {
      rank_t const peer = step.from.member(k_, size());
      run<T> const target = memory_.find(step.target, k_, fragment_);
      if (peer == rank()) {
        if (step.store) copy(memory_.find(step.operand, k_, fragment_), target);
        continue;
      }
      transport::arrival message;
      if (status const outcome = receive(peer, target.bytes(), message); outcome != status::ok) return outcome;
      if (!may_send_to_all(step.to, target.bytes())) return status::pending;
      forward_plan const plan = plan_forward(step, target);
      if (plan.stages) {
        if (!stage(target.bytes())) return status::pending;
        std::memcpy(staged_, message.data, target.bytes());
      }
      // A message that was pushed, or received straight into place, already lies there.
      if (step.store && message.data != bytes_of(target.data)) unpack(message.data, target);
      endpoint_.consume(lane_, peer);
      forward(step, target, plan);
    }
    return status::ok;
  }

  // ---- receiving -------------------------------------------------------------------------------

  status receive(rank_t peer, std::size_t expected_bytes, transport::arrival& message) noexcept {
    if (!endpoint_.arrived(lane_, peer, message)) {
      waits_for_ = peer;
      waits_for_message_ = true;
      bytes_ = expected_bytes;
      return status::pending;
    }
    if (COLLX_LIKELY(message.bytes == expected_bytes)) return status::ok;
    waits_for_ = peer;
    bytes_ = expected_bytes;
    peer_bytes_ = message.bytes;
    return status::mismatch;
  }

  void combine(primitive const& step, run<T> const& operand, run<T> const& target,
               forward_plan const& plan) noexcept {
    std::size_t done = 0;
    for (std::int32_t piece = 0; piece < target.pieces; ++piece) {
      extent const mine = operand.piece(piece);
      extent const theirs = target.piece(piece);
      for (std::int32_t k = 0; k < step.from.count; ++k) {
        transport::arrival const& message = work_.arrivals[static_cast<std::size_t>(k)];
        work_.sources[static_cast<std::size_t>(k)] =
            message.data == nullptr ? bytes_of(operand.data + mine.begin) : message.data + done * sizeof(T);
      }
      std::int32_t destinations = 0;
      auto const add = [&](std::byte* to) { work_.destinations[static_cast<std::size_t>(destinations++)] = to; };
      if (step.store) add(bytes_of(target.data + theirs.begin));
      if (plan.stages) add(staged_ + done * sizeof(T));
      if (plan.pushes)
        for (std::int32_t k = 0; k < step.to.count; ++k)
          if (std::byte* const to = pushed_target(step, step.to.member(k, size()))) add(to);
      device::combine(reinterpret_cast<T* const*>(work_.destinations.data()), destinations,
                      reinterpret_cast<T const* const*>(work_.sources.data()), step.from.count, theirs.count, op_,
                      step.complete, size());
      done += theirs.count;
    }
  }

  // ---- sending ---------------------------------------------------------------------------------

  [[nodiscard]] bool may_send(rank_t peer, std::size_t bytes) noexcept {
    if (COLLX_LIKELY(endpoint_.can_send(lane_, peer))) return true;
    waits_for_ = peer;
    waits_for_message_ = false;
    bytes_ = bytes;
    return false;
  }

  [[nodiscard]] bool may_send_to_all(peer_set const& to, std::size_t bytes) noexcept {
    for (std::int32_t k = 0; k < to.count; ++k) {
      rank_t const peer = to.member(k, size());
      if (peer != rank() && !may_send(peer, bytes)) return false;
    }
    return true;
  }

  [[nodiscard]] bool stage(std::size_t bytes) noexcept {
    if (staged_ == nullptr) staged_ = endpoint_.stage(lane_, bytes);
    return staged_ != nullptr;
  }

  // Whether send() can take this run where it lies: because it copies so little itself, or because
  // receivers may read it there. Scratch is reused by the next fragment, so it is never read later.
  [[nodiscard]] bool direct(run<T> const& payload, bool must_copy) const noexcept {
    if (payload.pieces != 1) return false;
    if (payload.bytes() <= Endpoint::inline_bytes) return true;
    return !must_copy && payload.where != place::scratch &&
           endpoint_.reachable(bytes_of(payload.data), payload.bytes());
  }

  // A peer's own target for the chunks this step pushes, or null where it cannot be stored to.
  [[nodiscard]] std::byte* pushed_target(primitive const& step, rank_t peer) noexcept {
    if (peer == rank()) return nullptr;
    std::byte* const output = endpoint_.push_target(lane_, peer);
    if (output == nullptr) return nullptr;
    return output + memory_.find_at(peer, step.target, fragment_).begin * sizeof(T);
  }

  [[nodiscard]] forward_plan plan_forward(primitive const& step, run<T> const& result) noexcept {
    forward_plan plan;
    if (step.to.empty()) return plan;
    plan.in_place = step.store && direct(result, step.copy);
    bool const may_push = step.push && step.reduce && result.pieces == 1 && result.where == place::output &&
                          result.bytes() >= push_bytes_min;
    for (std::int32_t k = 0; may_push && k < step.to.count; ++k)
      if (pushed_target(step, step.to.member(k, size())) != nullptr) plan.pushes = true;
    for (std::int32_t k = 0; !plan.in_place && k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, size());
      if (peer != rank() && !(plan.pushes && pushed_target(step, peer) != nullptr)) plan.stages = true;
    }
    return plan;
  }

  void forward(primitive const& step, run<T> const& result, forward_plan const& plan) noexcept {
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, size());
      if (peer == rank()) continue;
      std::byte* const pushed = plan.pushes ? pushed_target(step, peer) : nullptr;
      if (pushed != nullptr) endpoint_.send(lane_, peer, pushed, result.bytes(), transport::handover::pushed);
      else if (plan.in_place)
        endpoint_.send(lane_, peer, bytes_of(result.data), result.bytes(), transport::handover::in_place);
      else endpoint_.send(lane_, peer, staged_, result.bytes(), transport::handover::staged);
    }
  }

  // ---- local copies ----------------------------------------------------------------------------

  void copy_locally(region const& from, region const& to) noexcept {
    copy(memory_.find(from, 0, fragment_), memory_.find(to, 0, fragment_));
  }

  void copy(run<T> const& from, run<T> const& to) noexcept {
    for (std::int32_t i = 0; i < to.pieces; ++i) {
      extent const source = from.piece(i);
      extent const target = to.piece(i);
      if (target.count != 0 && from.data + source.begin != to.data + target.begin)
        std::memmove(to.data + target.begin, from.data + source.begin, target.count * sizeof(T));
    }
  }

  void pack(run<T> const& from, std::byte* to) noexcept {
    for (std::int32_t i = 0; i < from.pieces; ++i) {
      extent const part = from.piece(i);
      if (part.count != 0) std::memcpy(to, from.data + part.begin, part.count * sizeof(T));
      to += part.count * sizeof(T);
    }
  }

  void unpack(std::byte const* from, run<T> const& to) noexcept {
    for (std::int32_t i = 0; i < to.pieces; ++i) {
      extent const part = to.piece(i);
      if (part.count != 0) std::memcpy(to.data + part.begin, from, part.count * sizeof(T));
      from += part.count * sizeof(T);
    }
  }

  [[nodiscard]] static std::byte* bytes_of(T* p) noexcept { return reinterpret_cast<std::byte*>(p); }
  [[nodiscard]] rank_t rank() const noexcept { return memory_.where().rank; }
  [[nodiscard]] rank_t size() const noexcept { return memory_.where().size; }

  // Below this a receiver's own copy is cheaper than a store into lines it holds.
  static constexpr std::size_t push_bytes_min = 256;

  Endpoint& endpoint_;
  workspace& work_;
  buffers<S, T> memory_;
  [[no_unique_address]] Op op_;
  [[no_unique_address]] Trace trace_;
  int lane_;
  std::int32_t step_count_;
  std::int32_t step_ = 0;
  std::int32_t k_ = 0;  // peers of the current step that are done
  phase phase_ = phase::begin;
  rank_t waits_for_ = no_rank;
  bool waits_for_message_ = false;
  std::size_t fragment_ = 0;
  std::byte* staged_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t peer_bytes_ = 0;
};

}  // namespace collx::inline abi_1::exec
