// SPDX-License-Identifier: Apache-2.0
// What runs collectives on one endpoint: numbers them, gives them lanes, moves all requests in
// flight along whenever one is waited for, and keeps the first failure. Typed by the endpoint only.
#pragma once

#include <span>
#include <utility>

#include "collx/core/priority.hpp"
#include "collx/exec/call.hpp"
#include "collx/exec/hints.hpp"
#include "collx/exec/kept_memory.hpp"
#include "collx/exec/presence.hpp"
#include "collx/exec/request.hpp"
#include "collx/exec/waiter.hpp"

namespace collx::inline abi_1::exec {

template <class Endpoint>
class engine {
  using machine_type = resumable<Endpoint>;
  using flight_type = flight<Endpoint>;

 public:
  static constexpr std::uint32_t request_count = 16;  // started at once; one more waits for the oldest

  template <class... Arguments>
  COLLX_COLD explicit engine(std::uint64_t timeout_us, exec::wakefulness awake, Arguments&&... arguments)
      : endpoint_(static_cast<Arguments&&>(arguments)...), awake_(awake) {
    this->timeout_us(timeout_us);
    for (workspace& work : work_) work.reserve(endpoint_.size());
    // Last: from now on the world refers to it, until it leaves, and nothing that fails may come after that.
    if constexpr (requires { endpoint_.enter(); }) endpoint_.enter();
  }

  [[nodiscard]] Endpoint& endpoint() noexcept { return endpoint_; }
  [[nodiscard]] workspace& work(int lane) noexcept { return work_[lane]; }
  [[nodiscard]] kept_memory& memory() noexcept { return memory_; }
  [[nodiscard]] failure_report const& failure() const noexcept { return failure_; }
  [[nodiscard]] std::uint64_t timeout_us() const noexcept { return timeout_us_; }
  void timeout_us(std::uint64_t value) noexcept {
    timeout_us_ = value;
    if constexpr (requires { endpoint_.be_patient(value); }) endpoint_.be_patient(value);
  }
  [[nodiscard]] exec::wakefulness wakefulness() const noexcept { return awake_; }
  // Compares a call with the other ranks' before it begins; null: not asked for.
  using check_function = status (*)(engine&, call const&) noexcept;
  [[nodiscard]] check_function checker() const noexcept { return checker_; }
  void checker(check_function f) noexcept { checker_ = f; }
  // What the user says of all calls, for the choice of algorithms.
  [[nodiscard]] hints& said() noexcept { return said_; }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }

  // Runs one collective to its end on lane 0. `make(lane)` returns its executor; `describe()` the call,
  // and is asked when it has failed.
  template <class Describe, class Make>
  [[nodiscard]] status run(Describe const& describe, Make const& make) noexcept {
    status const outcome = run_uncounted(describe, make);
    ++sequence_;
    return outcome;
  }

  // The same of a schedule, from where a short call of it stopped.
  [[nodiscard]] status run(scheduled_call const& call, stopped_at at) noexcept {
    status const outcome = run_uncounted(call, at);
    ++sequence_;
    return outcome;
  }

  // How often one that may be done at once, without an executor, looks for each message (short_call.hpp). If
  // it is done, count_one(); else run() does the rest.
  [[nodiscard]] std::uint32_t looks() const noexcept { return alone() ? looks_at_first : 1; }

  // The same for what a collective needs beforehand: it reports under that collective's number.
  template <class Describe, class Make>
  [[nodiscard]] status run_uncounted(Describe const& describe, Make const& make) noexcept {
    if (COLLX_UNLIKELY(failure_.code != status::ok)) return failure_.code;
    auto executor = make(0);
    status const outcome = run_to_end(executor);
    if (COLLX_UNLIKELY(outcome != status::ok)) fail(outcome, describe(), executor.where());
    return outcome;
  }

  // The same of a schedule.
  [[nodiscard]] COLLX_NEVER_INLINE status run_uncounted(scheduled_call const& call,
                                                        stopped_at at = {}) noexcept {
    if (COLLX_UNLIKELY(failure_.code != status::ok)) return failure_.code;
    host_executor<Endpoint> executor(endpoint_, 0, work_[0], call);
    executor.go_on_from(at);
    status const outcome = run_to_end(executor);
    if (COLLX_UNLIKELY(outcome != status::ok)) fail(outcome, call.what, executor.where());
    return outcome;
  }

  // A collective that needed no messages is one all the same.
  void count_one() noexcept { ++sequence_; }

  // Starts one collective; it moves along whenever any call of this communicator waits or tests. `make` is
  // kept, and called when earlier ones have left the lane: it must hold by value what it needs. `behind`: a
  // request that was started before it, and not waited for: it begins when that one has ended.
  template <class Make>
  [[nodiscard]] ticket start(call const& what, Make const& make, priority how = priority::normal,
                             ticket const* behind = nullptr) noexcept {
    progress_ = [](engine& self) noexcept { self.progress(); };
    finish_ = [](engine& self, std::uint32_t index) noexcept { (void)self.finish(index); };
    std::uint32_t index = next_slot_++ % request_count;
    flight_type& slot = flights_[index];
    if (slot.occupied) (void)finish(index);
    static_assert(Endpoint::lane_count >= 3, "collx: lanes for blocking, started and, the last, urgent ones");
    std::uint32_t& started = what.at.started != nullptr ? *what.at.started : started_;
    int const lane = how == priority::urgent ? Endpoint::lane_count - 1
                                             : 1 + static_cast<int>(started++ % (Endpoint::lane_count - 2));
    if (++slot.generation == 0) ++slot.generation;  // 0 is nobody's
    slot.occupied = true;
    slot.outcome = failure_.code == status::ok ? status::pending : failure_.code;
    slot.lane = lane;
    slot.behind = behind != nullptr ? *behind : ticket{};
    slot.urgent = how == priority::urgent;
    slot.running = false;
    slot.started_us = now_us();
    slot.moved_us = 0;
    slot.report = report_for(what);
    ++sequence_;
    if (slot.outcome == status::pending) {
      ++in_flight_;
      slot.template install<decltype(make(lane))>(make);
      slot.running = true;
      urgent_in_flight_ += slot.urgent;
      progress();
    }
    return {index, slot.generation};
  }

  [[nodiscard]] status test(ticket t) noexcept {
    flight_type& slot = flights_[t.slot];
    if (!slot.holds(t)) return failure_.code;  // see ticket
    progress();
    if (slot.outcome == status::pending) {
      if (++tests_ % tests_per_look == 0) look_around(slot);
      if (slot.outcome == status::pending) return status::pending;
    }
    slot.occupied = false;
    return slot.outcome;
  }

  [[nodiscard]] status wait(ticket t) noexcept {
    return holds(t) ? finish(t.slot) : failure_.code;  // see ticket
  }
  [[nodiscard]] bool holds(ticket t) const noexcept { return flights_[t.slot].holds(t); }

  COLLX_COLD void finish_all() noexcept {
    for (std::uint32_t i = 0; i < request_count; ++i)
      if (flights_[i].occupied) finish_(*this, i);
  }

  // Gives every request in flight a turn: as far as it goes without waiting, but one fragment at most.
  // Urgent ones get theirs first, and again after that of each other.
  COLLX_NEVER_INLINE void progress() noexcept {
    endpoint_.progress();
    if (urgent_in_flight_ != 0) give_urgent_turns();
    for (std::uint32_t i = 0; in_flight_ != 0 && i < request_count; ++i)
      if (!flights_[i].urgent && give_turn(flights_[i]) && urgent_in_flight_ != 0) {
        endpoint_.progress();
        give_urgent_turns();
      }
  }

  COLLX_COLD void abort(status code) noexcept {
    endpoint_.space().abort(code, endpoint_.world_rank(endpoint_.rank()), no_rank);
  }

  // Where everything in flight stands: calls f(collective, sequence, cursor) for each.
  template <class F>
  void for_each_in_flight(F const& f) const {
    for (flight_type const& slot : flights_)
      if (slot.in_flight()) f(slot.report.collective, slot.report.sequence, slot.where());
  }

  // The report of the collective that is about to run, for what finds a fault in its arguments.
  [[nodiscard]] failure_report report_for(call const& what) const noexcept {
    return report_of(what, sequence_);
  }

  // Keeps a failure, if it is the first, tells the other ranks, and takes all buffers back.
  // `lends`: peers may still be at this rank's buffers.
  COLLX_COLD void record(status outcome, failure_report const& begun, cursor const& at,
                         bool lends = true) noexcept {
    if (failure_.code != status::ok && reclaimed_) return;
    failure_report report = begun;
    say_where(report, outcome, at);
    report.rank = endpoint_.rank();
    if (outcome == status::aborted) {
      auto const first = endpoint_.space().first_failure();
      report.reported_by = first.reporter;
      if (first.culprit != no_rank) report.peer = first.culprit;
    } else {
      rank_t culprit = at.waits_for == no_rank ? no_rank : endpoint_.world_rank(at.waits_for);
      if constexpr (requires { endpoint_.suspect(at.waits_for); })
        if (outcome == status::timeout && culprit != no_rank)
          report.peer = culprit = endpoint_.suspect(at.waits_for);
      endpoint_.space().abort(outcome, endpoint_.world_rank(endpoint_.rank()), culprit);
    }
    // The caller may free his buffers.
    if constexpr (requires { endpoint_.reclaim(timeout_us_); })
      if (lends) endpoint_.reclaim(timeout_us_ < reclaim_us_min ? reclaim_us_min : timeout_us_);
    reclaimed_ = reclaimed_ || lends;
    if (failure_.code == status::ok) failure_ = report;
  }

 private:
  // Nothing else to move along, and a processor to wait on.
  [[nodiscard]] bool alone() const noexcept { return in_flight_ == 0 && awake_.spins >= looks_at_first; }

  template <class Executor>
  [[nodiscard]] status run_to_end(Executor& executor) noexcept {
    if constexpr (Endpoint::is_mapped) {
      if (COLLX_LIKELY(alone())) executor.looks(looks_at_first);
      executor.in_company(in_flight_ != 0);
    }
    status const outcome = at_peers(endpoint_, [&]() noexcept { return executor.advance(); });
    if (COLLX_LIKELY(outcome != status::pending)) return outcome;
    return wait_for(executor, &advance_as<Executor, Endpoint>);
  }

  COLLX_COLD void fail(status outcome, call const& what, cursor const& at) noexcept {
    failure_report report = report_for(what);
    report.elapsed_us = waited_us_;
    record(outcome, report, at);
  }

  COLLX_NEVER_INLINE status wait_for(machine_type& executor,
                                     status (*advance)(machine_type&) noexcept) noexcept {
    waiter patience(awake_, timeout_us_);
    auto const go_on = [&]() noexcept { return at_peers(endpoint_, [&] { return advance(executor); }); };
    auto const ended = [&](status outcome) noexcept {
      return waited_us_ = outcome == status::ok ? 0 : patience.elapsed_us(), outcome;
    };
    cursor last_seen = executor.where();
    for (;;) {
      std::uint64_t const moves = moves_;
      if (in_flight_ != 0) progress_(*this);
      else endpoint_.progress();
      if (COLLX_UNLIKELY(failure_.code != status::ok)) return failure_.code;  // of a request, meanwhile
      if (!executor.still_waits()) {
        status const outcome = go_on();
        if (outcome != status::pending) return ended(outcome);
        if (cursor const now = executor.where(); !now.same_place(last_seen)) {
          last_seen = now;
          patience.restart();
          if (now.waits_for == no_rank) continue;  // it has only let the others have their turns
        }
      }
      if (moves_ != moves) patience.stay_awake();
      status const why = patience.pause([&] { return interrupted(executor.where().waits_for); }, endpoint_);
      if (COLLX_UNLIKELY(why != status::ok)) {
        // What the peer did before it ended may have arrived in the meantime: it may even have done its part.
        cursor const before = executor.where();
        status const last = go_on();
        if (last != status::pending) return ended(last);
        if (why == status::aborted || executor.where().same_wait(before)) return ended(why);
        patience.restart();
      }
    }
  }

  // The same wait, for a request: everything in flight moves along.
  COLLX_NEVER_INLINE status finish(std::uint32_t index) noexcept {
    flight_type& slot = flights_[index];
    waiter patience(awake_, timeout_us_);
    cursor last_seen{};
    while (slot.outcome == status::pending) {
      std::uint64_t const moves = moves_;
      progress();
      if (slot.outcome != status::pending) break;
      cursor const now = observed(slot);
      if (!now.same_place(last_seen)) {
        last_seen = now;
        patience.restart();
      }
      if (moves_ != moves) patience.stay_awake();
      status const why = patience.pause([&] { return interrupted(now.waits_for, &slot); }, endpoint_);
      if (why == status::ok) continue;
      progress();  // as in wait_for
      if (slot.outcome != status::pending) break;
      if (why == status::aborted || observed(slot).same_wait(now)) give_up(slot, why);
    }
    slot.occupied = false;
    return slot.outcome;
  }

  // A program that only ever tests must notice deadlines and aborts too. The deadline is that of a
  // wait: it begins anew with the first of these looks that sees the request get on.
  COLLX_NEVER_INLINE void look_around(flight_type& slot) noexcept {
    cursor const at = observed(slot);
    status why = interrupted(at.waits_for, &slot);
    std::uint64_t const now = now_us();
    if (slot.moved_us == 0 || !at.same_place(slot.seen)) {
      slot.moved_us = now;
      slot.seen = at;
    }
    if (why == status::ok && now - slot.moved_us >= timeout_us_) why = status::timeout;
    if (why == status::ok) return;
    progress();  // as in wait_for
    if (slot.outcome != status::pending) return;
    if (why == status::aborted || observed(slot).same_wait(at)) give_up(slot, why);
  }

  // Whether to wait for a peer is pointless; asked also of requests in flight but `mine`. All ranks may wait
  // first for one that others hold up, and none for the one that a lost rank does. If it fails, so do all.
  COLLX_NEVER_INLINE status interrupted(rank_t peer, flight_type const* mine = nullptr) noexcept {
    if (in_flight_ > (mine != nullptr ? 1u : 0u))
      if (flight_type* const other = held_up_by_lost(flights_, request_count, mine, endpoint_)) {
        cursor const at = other->where();
        progress_(*this);  // as in wait_for
        if (other->in_flight() && other->where().same_wait(at)) complete(*other, status::peer_lost);
      }
    return failure_.code != status::ok ? status::ok : endpoint_.interrupted(peer);
  }

  // What a request waits for has failed: perhaps one ahead of it on its lane, which knows the peer.
  COLLX_NEVER_INLINE void give_up(flight_type& slot, status why) noexcept {
    if (flight_type& ahead = ahead_of(slot); &ahead != &slot) complete(ahead, why);
    complete(slot, why);
  }

  [[nodiscard]] flight_type& ahead_of(flight_type& slot) noexcept {
    return exec::ahead_of(flights_, request_count, slot);
  }

  // Whose getting on is that of this request: its own, or that of the one it waits for.
  [[nodiscard]] cursor observed(flight_type& slot) noexcept { return ahead_of(slot).where(); }

  void give_urgent_turns() noexcept {
    for (flight_type& slot : flights_)
      if (slot.urgent) (void)give_turn(slot);
  }

  // False: the request is not in flight.
  bool give_turn(flight_type& slot) noexcept {
    if (!slot.in_flight()) return false;
    // The first failure ends all that is in flight: peers may be gone, and what had come is dropped.
    if (COLLX_UNLIKELY(failure_.code != status::ok)) return complete(slot, failure_.code), true;
    if (slot.machine == nullptr) {
      if (&ahead_of(slot) != &slot) return false;
      slot.begin(slot);
      slot.machine->yields(true);
    }
    cursor const before = slot.where();
    status const outcome = at_peers(endpoint_, [&] { return slot.advance(*slot.machine); });
    if (outcome != status::pending) complete(slot, outcome);
    moves_ += outcome != status::pending || !slot.where().same_place(before);
    return true;
  }

  COLLX_NEVER_INLINE void complete(flight_type& slot, status outcome) noexcept {
    slot.outcome = outcome;
    --in_flight_;
    if (slot.running) urgent_in_flight_ -= slot.urgent;
    if (outcome == status::ok) {
      slot.running = false;
      return;
    }
    cursor const at = slot.running ? slot.where() : cursor{};
    slot.running = false;
    slot.report.elapsed_us = now_us() - slot.started_us;
    record(outcome, slot.report, at);
  }

  static constexpr std::uint32_t tests_per_look = 256;
  // However short the time-out: a peer that is just at work is no peer that has been held up.
  static constexpr std::uint64_t reclaim_us_min = 5'000'000;
  // A blocking call with nothing else to move along looks so often for a message before it gives up
  // its place: most arrive in that time, and then nothing has to be found out again. Some 0.5 us, or 4 with
  // a pause after each; where each look is a system call, 10 us.
  static constexpr std::uint32_t looks_at_first = Endpoint::is_mapped ? 256 : looks_by_system_call;

  Endpoint endpoint_;
  workspace work_[Endpoint::lane_count];
  kept_memory memory_;
  flight<Endpoint> flights_[request_count];
  failure_report failure_{};
  bool reclaimed_ = false;  // all buffers, once and for all
  std::uint64_t timeout_us_;
  std::uint64_t waited_us_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t moves_ = 0;  // turns in which a request got on: while they do, nobody sleeps
  exec::wakefulness awake_;
  std::uint32_t next_slot_ = 0;
  std::uint32_t started_ = 0;
  std::uint32_t in_flight_ = 0;
  std::uint32_t urgent_in_flight_ = 0;
  std::uint32_t tests_ = 0;
  check_function checker_ = nullptr;
  hints said_;
  // progress() and finish(), set by start(): who starts nothing need not compile them.
  void (*progress_)(engine&) noexcept = nullptr;
  void (*finish_)(engine&, std::uint32_t) noexcept = nullptr;
};

}  // namespace collx::inline abi_1::exec
