// SPDX-License-Identifier: Apache-2.0
// Short calls beside the run that proves their schedule, message by message: endpoints write down what short
// calls take and send, and what lies in the rank's memory by then; and the steps of the proof, played in its
// order on the same elements, say what that has to be.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "collx/exec/short_call.hpp"
#include "collx/transport/threads.hpp"
#include "exec/traced.hpp"

namespace traced {

using elements = std::vector<oracle::element>;

// A message that a rank sends, or is done with. Which block it was, where it was stored, and in what order
// messages were combined shows in the elements: of the operator the order matters, whatever the schedule.
struct deed {
  char const* what;
  rank_t peer;
  elements payload;  // of what is sent
  elements memory;   // of the rank, by then
};
inline constexpr char const *takes_from = "takes from ", *sends_to = "sends to ";
inline constexpr auto in_order = oracle::apply_in_order;
using in_order_t = std::remove_const_t<decltype(in_order)>;

inline bool are_same(elements const& a, elements const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

// Empty, or the first difference.
inline std::string difference(std::vector<deed> const& found, std::vector<deed> const& proved) {
  auto const name = [](std::vector<deed> const& of, std::size_t i) {
    return i < of.size() ? of[i].what + std::to_string(of[i].peer) : "nothing";
  };
  for (std::size_t i = 0; i < std::max(found.size(), proved.size()); ++i) {
    std::string const here = "message " + std::to_string(i) + ": " + name(found, i);
    if (name(found, i) != name(proved, i)) return here + ", and in the proof: " + name(proved, i);
    if (!are_same(found[i].payload, proved[i].payload)) return here + " other elements than in the proof";
    if (!are_same(found[i].memory, proved[i].memory)) return here + " with other results than in the proof";
  }
  return {};
}

// One rank's buffers, apart or the smaller one within the larger one.
struct rank_memory {
  rank_memory(oracle::collective const& what, oracle::setting const& how, rank_t rank) {
    collx::problem const p{rank, how.size, how.root};
    auto const room = [&](collx::block_window const& of) {
      return static_cast<std::size_t>(of.count) * how.count;
    };
    std::size_t const inputs = room(what.input(p)), outputs = room(what.output(p));
    all.resize(how.in_place ? std::max(inputs, outputs) : inputs + outputs);
    if (!how.in_place) output_at = inputs;
    else if (inputs != outputs && inputs != 0 && outputs != 0)
      (inputs < outputs ? input_at : output_at) = static_cast<std::size_t>(what.in_place_at(p)) * how.count;
    collx::replayable_random random(static_cast<std::uint64_t>(rank) + 1);
    for (oracle::element& e : all)
      e = {static_cast<std::uint32_t>(random.next()) | 1, static_cast<std::uint32_t>(random.next())};
  }

  std::size_t input_at = 0, output_at = 0;
  elements all;
};

// What a proof comes to on elements: its steps, of all ranks, in the order in which it took them.
class played_proof {
 public:
  played_proof(proof const& proved, collx::detail::subject const& of, std::size_t count,
               std::vector<rank_memory> begin)
      : memory(std::move(begin)), deeds(memory.size()), of_(of), count_(count) {
    REQUIRE(of_.chunks == of_.blocks);
    for (event const& each : proved.steps()) perform(each.where.rank, each.step);
  }

  std::vector<rank_memory> memory;
  std::vector<std::vector<deed>> deeds;

 private:
  using block = std::span<oracle::element>;

  void perform(rank_t r, collx::primitive const& step) {
    if (step.from.empty()) return originate(r, step);
    REQUIRE(step.to.empty());
    elements result;
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, of_.size);
      elements const next = peer == r ? copy_of(find(r, step.operand, 0)) : receive(peer, r);
      if (step.reduce) {
        if (k == 0) result = next;
        else
          for (std::size_t i = 0; i < count_; ++i) result[i] = in_order(result[i], next[i]);
      } else {
        if (step.store) store(next, find(r, step.target, k));
        if (peer != r) note(r, takes_from, peer);
      }
    }
    if (!step.reduce) return;
    if (step.store) store(result, find(r, step.target, 0));
    for (std::int32_t k = 0; k < step.from.count; ++k)
      if (rank_t const peer = step.from.member(k, of_.size); peer != r) note(r, takes_from, peer);
  }

  void originate(rank_t r, collx::primitive const& step) {
    if (step.store) store(copy_of(find(r, step.operand, 0)), find(r, step.target, 0));
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, of_.size);
      if (peer == r) continue;
      elements const payload = copy_of(find(r, step.operand, k));
      note(r, sends_to, peer, payload);
      under_way_[{r, peer}].push_back(payload);
    }
  }

  elements receive(rank_t from, rank_t to) {
    auto& messages = under_way_[{from, to}];
    REQUIRE(!messages.empty());
    elements const next = std::move(messages.front());
    messages.pop_front();
    return next;
  }

  block find(rank_t r, collx::region const& region, std::int32_t k) {
    REQUIRE(region.count == 1);
    bool const given = region.where == collx::place::input;
    auto const window = given ? of_.input(of_.of(r)) : of_.output(of_.of(r));
    std::int32_t const at = of_.position(window, region.first_for(k, of_.chunks));
    REQUIRE(at >= 0);
    rank_memory& mine = memory[static_cast<std::size_t>(r)];
    std::size_t const begin =
        (given ? mine.input_at : mine.output_at) + static_cast<std::size_t>(at) * count_;
    return block(mine.all).subspan(begin, count_);
  }
  static elements copy_of(block from) { return {from.begin(), from.end()}; }
  static void store(elements const& from, block to) { std::copy(from.begin(), from.end(), to.begin()); }

  void note(rank_t r, char const* what, rank_t peer, elements const& payload = {}) {
    auto const i = static_cast<std::size_t>(r);
    deeds[i].push_back({what, peer, payload, memory[i].all});
  }

  collx::detail::subject of_;
  std::size_t count_;
  std::map<std::pair<rank_t, rank_t>, std::deque<elements>> under_way_;
};

// All ranks are in one thread: who waits for one that has not begun has it begin. Memory is as if private to
// processes, so that blocks of every length are staged; or, if it `lends`, not, so that long ones are lent.
class noting_endpoint : public collx::transport::threads::endpoint {
  using base = collx::transport::threads::endpoint;

 public:
  using base::base;

  [[nodiscard]] bool arrived(int lane, rank_t peer, collx::transport::arrival& what) noexcept {
    if (is_refused()) return false;
    if (!base::arrived(lane, peer, what)) begin_at(peer);
    return base::arrived(lane, peer, what);
  }
  [[nodiscard]] bool can_send(int lane, rank_t peer) noexcept {
    return !is_refused() && base::can_send(lane, peer);
  }
  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    return is_refused() ? nullptr : base::stage(lane, bytes);
  }
  [[nodiscard]] bool reachable(std::byte const*, std::size_t) const noexcept { return lends; }

  void consume(int lane, rank_t peer) noexcept {
    deeds.push_back({takes_from, peer, {}, memory->all});
    base::consume(lane, peer);
  }
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    elements sent(bytes / sizeof(oracle::element));
    if (bytes != 0) std::memcpy(static_cast<void*>(sent.data()), payload, bytes);
    deeds.push_back({sends_to, peer, std::move(sent), memory->all});
    base::send(lane, peer, payload, bytes, how);
  }

  static constexpr int never = -1;
  bool lends = false;
  rank_memory* memory = nullptr;
  std::vector<deed> deeds;
  std::function<void(rank_t)> begin_at;
  int refused_ask = never;  // the one of its questions that is answered with no
  int asks = 0;

 private:
  [[nodiscard]] bool is_refused() noexcept { return asks++ == refused_ask; }
};

// A schedule that has short calls, and one of them.
struct short_entry {
  entry called;
  collx::exec::stopped_at (*perform)(noting_endpoint&, collx::exec::workspace&, collx::problem const&,
                                     oracle::element const* in, oracle::element* out, std::size_t count,
                                     bool in_place);
};

template <class Schedule>
collx::exec::stopped_at perform_shortly(noting_endpoint& endpoint, collx::exec::workspace& work,
                                        collx::problem const& where, oracle::element const* in,
                                        oracle::element* out, std::size_t count, bool in_place) {
  using call = collx::exec::short_call<Schedule, oracle::element, in_order_t, noting_endpoint>;
  std::size_t const bytes = count * sizeof(oracle::element);
  bool const stages = bytes > endpoint.short_bytes();
  return call(endpoint, work, where, in, out, bytes, in_order, 1, stages, in_place).run();
}

template <class Algorithms>
std::vector<short_entry> every_short_schedule() {
  std::vector<short_entry> list;
  collx::for_each_schedule<Algorithms, collx::contract::all>(
      [&]<class Algorithm, class Contract, class Schedule>() {
        if constexpr (collx::exec::may_be_short<Schedule, oracle::element, in_order_t, noting_endpoint>)
          list.push_back({entry_of<Algorithm, Contract, Schedule>(in_order), &perform_shortly<Schedule>});
      });
  return list;
}

// The ranks of one thread.
class short_world {
 public:
  explicit short_world(rank_t size) : world_(*new collx::transport::threads_world(size, roomy)) {
    for (rank_t r = 0; r < size; ++r) {
      collx::array<rank_t> members(static_cast<std::size_t>(size));
      for (rank_t m = 0; m < size; ++m) members[static_cast<std::size_t>(m)] = m;
      ends_.push_back(
          std::make_unique<noting_endpoint>(world_, r, std::move(members), world_.blocks(), world_.layout()));
      work_.emplace_back(size);
    }
    late_.resize(ends_.size());
  }
  short_world(short_world const&) = delete;
  ~short_world() {
    for (auto const& each : ends_) each->leave();
    ends_.clear();
    world_.drop();
  }

  // Whether a short call came to its end on every rank but `refused`, if there is one: there it was told no
  // at its `ask`-th question, and an executor went on. So it did where what was lent had not been read by
  // all: those who come first cannot wait for it here. Results and deeds are those of the proof.
  void run(short_entry const& what, oracle::setting const& how, rank_t refused = collx::no_rank,
           int ask = noting_endpoint::never) {
    std::vector<rank_memory> memory;
    for (rank_t r = 0; r < how.size; ++r) memory.emplace_back(*what.called.collective, how, r);
    auto const subject = what.called.of(how.size, how.root);
    played_proof const proved(proof::of(what.called, how.size, how.root), subject, how.count, memory);
    std::vector<bool> begun(memory.size()), done(memory.size());
    auto const begin_at = [&](rank_t r) {
      auto const i = static_cast<std::size_t>(r);
      if (begun[i]) return;
      begun[i] = true;
      done[i] = perform(what, how, r, memory[i], r == refused);
    };
    for (rank_t r = 0; r < how.size; ++r) {
      noting_endpoint& end = at(r);
      end.memory = &memory[static_cast<std::size_t>(r)];
      end.begin_at = begin_at;
      end.refused_ask = r == refused ? ask : noting_endpoint::never;
      end.asks = 0;
      end.deeds.clear();
    }
    for (rank_t r = 0; r < how.size; ++r) begin_at(r);
    for (std::size_t i = 0; i < late_.size(); ++i) {
      if (late_[i] != nullptr && !done[i]) done[i] = late_[i]->advance() == collx::status::ok;
      late_[i].reset();
    }
    for (rank_t r = 0; r < how.size; ++r) {
      auto const i = static_cast<std::size_t>(r);
      CAPTURE(r);
      REQUIRE(difference(at(r).deeds, proved.deeds[i]) == "");
      REQUIRE(are_same(memory[i].all, proved.memory[i].all));
      REQUIRE(done[i]);
    }
  }

  // Whether memory can be lent.
  void lends(bool value) {
    for (auto const& each : ends_) each->lends = value;
  }
  [[nodiscard]] noting_endpoint& at(rank_t r) { return *ends_[static_cast<std::size_t>(r)]; }

 private:
  using executor_type = collx::exec::host_executor<noting_endpoint>;

  // In which blocks of 16 KiB stay whole.
  static constexpr collx::transport::settings roomy{.staging_bytes = 512 * 1024};

  bool perform(short_entry const& what, oracle::setting const& how, rank_t r, rank_memory& memory,
               bool may_stop) {
    oracle::element* const in = memory.all.data() + memory.input_at;
    oracle::element* const out = memory.all.data() + memory.output_at;
    collx::problem const where{r, how.size, how.root};
    collx::exec::workspace& work = work_[static_cast<std::size_t>(r)];
    auto const stopped = what.perform(at(r), work, where, in, out, how.count, how.in_place);
    if (stopped.step == collx::exec::stopped_at::at_the_end) return true;
    if (!may_stop && !stopped.lent) return false;
    collx::exec::scheduled_call const call = what.called.call(where, in, out, how.count, how.in_place);
    auto& executor = late_[static_cast<std::size_t>(r)];
    executor = std::make_unique<executor_type>(at(r), 0, work, call);
    executor->go_on_from(stopped);
    return executor->advance() == collx::status::ok;
  }

  collx::transport::threads_world& world_;
  std::vector<std::unique_ptr<noting_endpoint>> ends_;
  std::deque<collx::exec::workspace> work_;
  std::vector<std::unique_ptr<executor_type>> late_;  // of each rank, if it has one
};

}  // namespace traced
