// SPDX-License-Identifier: Apache-2.0
// Short calls over messages that come only while somebody looks for them: ranks take turns at random, a short
// call looks a few times and stops wherever its messages are not there yet, and an executor goes on from
// there. Results are those of the proof, each message is expected once, and nothing is left behind.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/core/random.hpp"
#include "collx/exec/short_call.hpp"
#include "collx/transport/mailbox.hpp"
#include "exec/traced_short.hpp"

namespace {

using collx::rank_t;
using collx::exec::stopped_at;
using collx::transport::mailbox;

// As one over connections: it has short calls, which end when everything is sent, from where it lies.
class messenger : public mailbox::endpoint {
  using base = mailbox::endpoint;

 public:
  using base::base;
  static constexpr bool finishes_sends = true;
  static constexpr bool lends_at_once = true;
  static constexpr std::size_t short_bytes() noexcept { return inline_bytes; }

  void expect(int lane, rank_t peer, std::byte* destination, std::size_t bytes) noexcept {
    straight += destination != nullptr;
    base::expect(lane, peer, destination, bytes);
  }

  int straight = 0;  // messages that are wanted in the user's memory
};

using executor_type = collx::exec::host_executor<messenger>;

struct short_entry {
  traced::entry called;
  stopped_at (*perform)(messenger&, collx::exec::workspace&, collx::problem const&,
                        oracle::element const* in, oracle::element* out, std::size_t count,
                        std::uint32_t looks, bool in_place);
};

template <class Schedule>
stopped_at perform_shortly(messenger& end, collx::exec::workspace& work, collx::problem const& where,
                           oracle::element const* in, oracle::element* out, std::size_t count,
                           std::uint32_t looks, bool in_place) {
  using call = collx::exec::short_call<Schedule, oracle::element, traced::in_order_t, messenger>;
  std::size_t const bytes = count * sizeof(oracle::element);
  return call(end, work, where, in, out, bytes, traced::in_order, looks, bytes > end.short_bytes(), in_place)
      .run();
}

std::vector<short_entry> every_short_schedule() {
  std::vector<short_entry> list;
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(
      [&]<class Algorithm, class Contract, class Schedule>() {
        if constexpr (collx::exec::may_be_short<Schedule, oracle::element, traced::in_order_t, messenger>)
          list.push_back({traced::entry_of<Algorithm, Contract, Schedule>(traced::in_order),
                          &perform_shortly<Schedule>});
      });
  return list;
}

// The ranks of one thread, and the mailbox that has their messages.
class turns {
 public:
  turns(rank_t size, std::uint64_t seed)
      : random_(seed), world_(*new collx::transport::mailbox_world(size, seed, roomy)) {
    auto* const everybody = world_.open(size);
    for (rank_t r = 0; r < size; ++r) {
      ends_.push_back(
          std::make_unique<messenger>(world_, *everybody, collx::transport::everybody(size), r));
      ends_.back()->enter();
      work_.emplace_back(size);
    }
  }
  turns(turns const&) = delete;
  ~turns() {
    for (auto const& each : ends_) each->leave();
    ends_.clear();
    world_.drop();
  }

  // One call on all ranks. How many of them needed an executor.
  int run(short_entry const& what, oracle::setting const& how) {
    std::vector<traced::rank_memory> memory;
    for (rank_t r = 0; r < how.size; ++r) memory.emplace_back(*what.called.collective, how, r);
    traced::played_proof const proved(traced::proof::of(what.called, how.size, how.root),
                                      what.called.of(how.size, how.root), how.count, memory);
    std::vector<std::unique_ptr<executor_type>> late(ends_.size());
    std::vector<traced::elements> results(ends_.size());
    std::vector<bool> begun(ends_.size()), done(ends_.size());
    int stopped = 0;
    std::size_t left = ends_.size();
    for (int turn = 0; left != 0; ++turn) {
      REQUIRE(turn < 100'000);
      std::size_t const i = random_.below(static_cast<std::uint32_t>(ends_.size()));
      if (done[i]) continue;
      if (!begun[i]) {
        begun[i] = true;
        late[i] = begin(what, how, static_cast<rank_t>(i), memory[i]);
        done[i] = late[i] == nullptr;
        stopped += !done[i];
      } else {
        ends_[i]->progress();
        done[i] = late[i]->advance() == collx::status::ok;
      }
      if (!done[i]) continue;
      // Buffers are the user's again, who writes to them at once.
      results[i] = memory[i].all;
      for (oracle::element& each : memory[i].all) each = {};
      --left;
    }
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      CAPTURE(i);
      REQUIRE(traced::are_same(results[i], proved.memory[i].all));
    }
    require_nothing_left();
    return stopped;
  }

  [[nodiscard]] messenger& at(std::size_t rank) { return *ends_[rank]; }

 private:
  // In which blocks of 16 KiB stay whole.
  static constexpr collx::transport::settings roomy{.staging_bytes = 512 * 1024};

  // The executor that goes on from where the short call stopped; null: it did not.
  std::unique_ptr<executor_type> begin(short_entry const& what, oracle::setting const& how, rank_t r,
                                       traced::rank_memory& memory) {
    auto const i = static_cast<std::size_t>(r);
    oracle::element* const in = memory.all.data() + memory.input_at;
    oracle::element* const out = memory.all.data() + memory.output_at;
    collx::problem const where{r, how.size, how.root};
    stopped_at const stopped = what.perform(*ends_[i], work_[i], where, in, out, how.count,
                                            1 + random_.below(4), how.in_place);
    if (stopped.step == stopped_at::at_the_end) return nullptr;
    collx::exec::scheduled_call const call = what.called.call(where, in, out, how.count, how.in_place);
    auto executor = std::make_unique<executor_type>(*ends_[i], 0, work_[i], call);
    executor->go_on_from(stopped);
    return executor;
  }

  void require_nothing_left() {
    for (rank_t from = 0; from < world_.size(); ++from)
      for (rank_t to = 0; to < world_.size(); ++to) {
        auto const& channel = ends_[0]->group().between(0, from, to);
        CAPTURE(from);
        CAPTURE(to);
        REQUIRE(channel.expected == channel.sent);
        REQUIRE(channel.delivered == channel.sent);
        REQUIRE(channel.consumed == channel.sent);
      }
  }

  collx::replayable_random random_;
  collx::transport::mailbox_world& world_;
  std::vector<std::unique_ptr<messenger>> ends_;
  std::deque<collx::exec::workspace> work_;
};

}  // namespace

TEST_CASE("short calls over messages: wherever they stop, executors go on, and expect nothing twice") {
  auto const list = every_short_schedule();
  REQUIRE(list.size() >= 5);
  int stopped = 0, ended = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (rank_t size = 2; size <= 5; ++size) {
      turns ranks(size, seed);
      for (short_entry const& each : list)
        for (std::size_t const count : {1u, 4u, 5u, 300u})  // letters, the longest one, and beyond
          for (bool const in_place : {false, true}) {
            if (!each.called.supports(size)) continue;
            rank_t const root = static_cast<rank_t>(seed) % size;
            CAPTURE(each.called.algorithm);
            CAPTURE(each.called.collective->name);
            CAPTURE(seed);
            CAPTURE(size);
            CAPTURE(count);
            CAPTURE(in_place);
            oracle::setting const how{.size = size, .count = count, .in_place = in_place, .root = root};
            int const now = ranks.run(each, how);
            stopped += now;
            ended += size - now;
          }
    }
  // Both must have been seen.
  CHECK(stopped > 1000);
  CHECK(ended > 1000);
}

TEST_CASE("short calls over messages: results that are messages are received where they belong") {
  for (short_entry const& each : every_short_schedule()) {
    CAPTURE(each.called.algorithm);
    CAPTURE(each.called.collective->name);
    turns ranks(3, 7);
    (void)ranks.run(each, {.size = 3, .count = 64, .root = 1});
    std::string const name = each.called.collective->name;
    int straight = 0;
    for (std::size_t r = 0; r < 3; ++r) straight += ranks.at(r).straight;
    if (name == "all_gather" || name == "all_to_all") CHECK(straight == 6);
    if (name == "broadcast" || name == "gather" || name == "scatter") CHECK(straight == 2);
    if (name == "all_reduce" || name == "reduce" || name == "reduce_scatter") CHECK(straight == 0);
  }
}
