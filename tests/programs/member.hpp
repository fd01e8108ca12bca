// SPDX-License-Identifier: Apache-2.0
// One rank's membership in one group of a random program: what it calls there, in the order in which all
// members do, and what of that is in flight.
#pragma once

#include <deque>

#include <sched.h>

#include "collx/collective/barrier.hpp"
#include "collx/collective/send_receive.hpp"
#include "programs/calls.hpp"

namespace programs {

// What the member says before it does it.
using diary = std::vector<std::string>;

template <class Transport>
class member : drawn_calls<Transport> {
  using base = drawn_calls<Transport>;

 public:
  using communicator = collx::communicator<Transport>;

  // As drawn_calls.
  template <class Comm>
  member(Comm&& comm, std::uint64_t own_seed, diary& says)
      : base(std::forward<Comm>(comm), own_seed), says_(&says) {}

  [[nodiscard]] communicator& comm() { return comm_; }
  // Whether there are lines of its ranks, or it is one: what is said to it all of them would have to say, and
  // its requests wait in lanes behind those of ranks that are not in the line. So its member waits for none
  // of them while those might do something else: who holds them all does.
  void shares(bool now) { shares_ = now; }
  void says_to(diary& says) { says_ = &says; }

  // One call, or a wait for some. `same`: alike on all members.
  void act(replayable_random& same) {
    dawdle();
    if (!can_block<Transport> && flying_.size() > 2) return wait_for_all();
    switch (same.below(can_block<Transport> ? 20 : 14)) {
      case 0:
      case 1:
      case 2:
      case 3: return start_erased(same);
      case 4: return set_up(same);
      case 5:
      case 6: return start_again(same);
      case 7: return start_ordered(same);
      case 8: return start_exchange(same);
      case 9: return start_neighbours(same);
      case 10: return start_group(same);
      case 11: return wait_for_some(same);
      case 12: return start_compound(this->make_tree(same));
      case 13: return start_compound(this->make_cut(same));
      case 14:
      case 15: return call_erased(same);
      case 16: return call_ordered(same);
      case 17: return run_exchange(same);
      case 18: return send_one(same);
      default: return say_something(same);
    }
  }

  // False: what it waits for is not done, and somebody else must have a turn.
  [[nodiscard]] bool settle() {
    if constexpr (can_block<Transport>) {
      std::uint32_t const way = own_.below(4);
      if (way == 0 || way == 1)
        for (auto const& each : awaited_) require_ok(each->try_wait());
      else if (way == 2 && comm_.failure().code == status::ok)
        for (auto const& each : awaited_) drop(*each);
    }
    while (!awaited_.empty()) {
      std::size_t const before = awaited_.size();
      std::erase_if(awaited_, [&](auto const& each) { return is_done(each); });
      if (awaited_.empty()) break;
      if (!can_block<Transport>) return false;
      if (awaited_.size() == before) sched_yield();
    }
    return true;
  }

  void wait_for_all() {
    awaited_ = flying_;
    shuffle();
    say("wait for all (" + std::to_string(awaited_.size()) + ")");
  }

  // What has been done stays as the caller has left it.
  void require_untouched() {
    for (auto const& each : retired_)
      if (!each->is_untouched()) throw std::runtime_error(each->what + ": written to after it was done");
  }

 private:
  using base::any_, base::comm_, base::own_;
  using call_of = std::shared_ptr<flight>;

  void say(std::string text) { says_->push_back(std::move(text)); }

  // Not all ranks are equally fast.
  void dawdle() {
    if (!one_in(own_, 3)) return;
    if (one_in(own_, 2))
      for (std::uint32_t n = own_.below(8); n > 0; --n) sched_yield();
    else
      for (std::uint32_t n = own_.below(300); n > 0; --n) (void)collx::now_us();
  }

  void require_ok(status outcome) {
    if (outcome == status::ok) return;
    if (comm_.failure().code != status::ok) throw collx::error(comm_.failure());
    throw collx::error(outcome, "refused");
  }

  [[nodiscard]] bool is_done(call_of const& each) {
    status const outcome = each->try_test();
    if (outcome == status::pending) return false;
    require_ok(outcome);
    std::erase(flying_, each);
    finish(each);
    return true;
  }
  void drop(flight& each) {
    if (is_kept(each)) return;  // is started again
    each.drop();
    if (comm_.failure().code != status::ok) throw collx::error(comm_.failure());
  }
  [[nodiscard]] bool is_kept(flight const& each) const {
    return std::any_of(kept_.begin(), kept_.end(), [&](auto const& k) { return k.get() == &each; });
  }

  void finish(call_of const& each) {
    each->is_flying = false;
    try {
      each->check();
    } catch (std::exception const& wrong) {
      throw std::runtime_error(each->what + ": " + wrong.what());
    }
    if (is_kept(*each)) return;
    each->spoil();
    retired_.push_back(each);
    if (retired_.size() < 6) return;
    require_untouched();
    retired_.erase(retired_.begin(), retired_.begin() + 4);
  }

  void fly(call_of const& each) {
    each->is_flying = true;
    flying_.push_back(each);
  }

  // --- what is called ---

  void start_erased(replayable_random& same) {
    auto const made = this->make_erased(same);
    bool const urgent = one_in(same, 4);
    say((urgent ? "start urgent " : "start ") + made->what);
    collx::any_call call = made->call();
    if (urgent) call.options.how = collx::priority::urgent;
    made->moving.emplace(any_.start(call));
    fly(made);
  }
  void call_erased(replayable_random& same) {
    auto const made = this->make_erased(same);
    bool const tries = one_in(own_, 2);
    say((tries ? "try " : "") + made->what);
    if (tries) require_ok(any_.try_run(made->call()));
    else any_.run(made->call());
    finish(made);
  }
  void set_up(replayable_random& same) {
    auto const made = this->make_erased(same);
    bool const urgent = one_in(same, 4);
    say((urgent ? "set up urgent " : "set up ") + made->what);
    collx::any_call call = made->call();
    if (urgent) call.options.how = collx::priority::urgent;
    made->prepare(any_, call);
    // One that is in flight stays; all members have the same ones there.
    if (kept_.size() == 4 && !kept_.front()->is_flying) kept_.pop_front();
    kept_.push_back(made);
  }
  void start_again(replayable_random& same) {
    if (kept_.empty()) return set_up(same);
    auto const& chosen = kept_[same.below(static_cast<std::uint32_t>(kept_.size()))];
    if (chosen->is_flying) return wait_for_some(same);
    say("start again " + chosen->what);
    chosen->start_again();
    fly(chosen);
  }

  void start_ordered(replayable_random& same) {
    oracle::setting how;
    auto const entry = this->template draw_ordered<forms::started>(same, how);
    auto const made = this->make_ordered(entry, how);
    say("start " + made->what);
    made->moving.emplace(entry(comm_, how, made->with));
    fly(made);
  }
  void call_ordered(replayable_random& same) {
    oracle::setting how;
    auto const entry = this->template draw_ordered<forms::tried>(same, how);
    auto const made = this->make_ordered(entry, how);
    say("try " + made->what);
    require_ok(entry(comm_, how, made->with));
    finish(made);
  }

  // Calls that are two requests, or more.
  void start_compound(auto const& made) {
    say("start " + made->what);
    made->start();
    fly(made);
  }

  void start_exchange(replayable_random& same) {
    auto const made = this->make_exchange(same);
    say("start " + made->what);
    made->moving.emplace(
        made->with.list.start(one_in(same, 4) ? collx::priority::urgent : collx::priority::normal));
    fly(made);
  }
  void run_exchange(replayable_random& same) {
    auto const made = this->make_exchange(same);
    say("run " + made->what);
    if (made->with.list.size() != 0) made->with.list.run();
    finish(made);
  }

  void start_neighbours(replayable_random& same) {
    auto const made = this->make_neighbours(same);
    say("start " + made->what);
    made->start();
    fly(made);
  }

  void start_group(replayable_random& same) {
    std::size_t const packed[] = {0, 100, 4096, 1 << 16};
    // It starts up to twelve.
    bool const starts = !can_block<Transport> || (!shares_ && one_in(same, 2));
    if (!can_block<Transport> && !flying_.empty()) return wait_for_all();
    std::size_t const bytes = packed[same.below(4)], count = 1 + same.below(one_in(same, 5) ? 400 : 20);
    auto const made = make_flight<group_flight<Transport>>(comm_, bytes, count);
    say((starts ? "start " : "run ") + made->what);
    if (!starts) {
      require_ok(made->try_run());
      return finish(made);
    }
    made->start(one_in(same, 4) ? collx::priority::urgent : collx::priority::normal);
    fly(made);
    if (!can_block<Transport>) wait_for_all();
  }

  // From one rank to another, or to those behind it.
  void send_one(replayable_random& same) {
    auto const n = static_cast<std::uint32_t>(comm_.size());
    if (n == 1) return;
    auto const from = static_cast<rank_t>(same.below(n));
    auto const to = static_cast<rank_t>((static_cast<std::uint32_t>(from) + 1 + same.below(n - 1)) % n);
    std::vector<std::uint32_t> data(same.below(one_in(same, 4) ? 50'000 : 40));
    std::size_t const salt = same.below(1000);
    say("message of " + std::to_string(data.size()) + " from " + std::to_string(from) + " to " +
        std::to_string(to));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = graphs::value(salt, i);
    if (comm_.rank() == from) collx::send(comm_, data, to);
    if (comm_.rank() != to) return;
    std::vector<std::uint32_t> got(data.size());
    require_ok(collx::try_receive(comm_, got, from));
    if (got != data) throw std::runtime_error("another message");
  }

  // What is said to a communicator.
  void say_something(replayable_random& same) {
    if (shares_) return;
    std::uint32_t const what = same.below(4);
    say("say " + std::to_string(what));
    if (what < 2)
      comm_.checking(what == 0 ? collx::checking_level::communication : collx::checking_level::normal);
    else comm_.buffers(what == 2 ? collx::memory_kind::symmetric : collx::memory_kind::unshared);
  }

  void wait_for_some(replayable_random& same) {
    if (!can_block<Transport>) return wait_for_all();
    if (flying_.empty() || shares_) return;
    for (std::uint32_t n = 1 + same.below(static_cast<std::uint32_t>(flying_.size())); n > 0; --n) {
      auto const& each = flying_[same.below(static_cast<std::uint32_t>(flying_.size()))];
      if (std::find(awaited_.begin(), awaited_.end(), each) == awaited_.end()) awaited_.push_back(each);
    }
    shuffle();
    say("wait for " + std::to_string(awaited_.size()) + " of " + std::to_string(flying_.size()));
  }
  // Ranks wait in orders of their own.
  void shuffle() {
    for (std::size_t i = 1; i < awaited_.size(); ++i)
      std::swap(awaited_[i], awaited_[own_.below(static_cast<std::uint32_t>(i) + 1)]);
  }

  diary* says_;
  bool shares_ = false;
  std::deque<std::shared_ptr<erased_flight<Transport>>> kept_;
  std::vector<call_of> retired_, flying_, awaited_;
};

}  // namespace programs
