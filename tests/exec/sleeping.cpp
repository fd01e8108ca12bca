// SPDX-License-Identifier: Apache-2.0
// Ranks that wait long sleep: they cost nothing, and whatever they wait for wakes them, however close it
// comes to their falling asleep.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/core/random.hpp"
#include "require.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::settings;
namespace mapped = collx::transport::mapped;

constexpr int slower = COLLX_SANITIZED ? 10 : 1;

constexpr settings sleeps_at_once{.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .yield_us = 0};

// Runs what both transports must do, with messages and failures of either.
template <class Everything>
void on_both(rank_t size, Everything const& everything, settings const& chosen) {
  watched::on_threads(size, everything, chosen);
  for (int const code : watched::on_processes(size, everything, chosen)) CHECK(code == 0);
}

std::uint64_t own_processor_us() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  auto const us = [](timeval const& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

// One of two who write to each other in turns, and what the other writes for it.
struct side {
  mapped::doorbell bell{};
  alignas(64) std::atomic<int> letter{0};
  alignas(64) std::atomic<int> finished{0};  // the sender is done with this letter, bell and all

  void send(int number) {
    letter.store(number, std::memory_order_release);
    bell.ring_if_asleep();
    finished.store(number, std::memory_order_release);
  }

  // Looks so often, then sleeps until letter `number` is there. Returns how many wake-ups were lost: the
  // sender was done, this side slept on to the end of its nap, and nobody had rung.
  int receive(mapped::sleeper& me, int number, std::uint32_t looks) {
    auto const here = [&] { return letter.load(std::memory_order_acquire) == number; };
    while (looks-- != 0)
      if (here()) return 0;
    int lost = 0;
    for (;;) {
      std::uint32_t const rings = bell.rings.load(std::memory_order_relaxed);
      me.announce();
      if (here()) return lost;
      while (!me.sleep(1'000'000)) {
        lost += finished.load(std::memory_order_acquire) == number &&
                bell.rings.load(std::memory_order_relaxed) == rings;
        if (here()) return lost;
      }
      if (here()) return lost;
    }
  }
};

// One of two ranks that send to each other: tells wake-ups that were lost from naps that last because the
// sender has no processor, which a machine with other work sees to.
template <class Endpoint>
class wary_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;
  // Letters that each rank has sent, the bell and all.
  std::atomic<std::uint64_t>* own_sent = nullptr;
  std::atomic<std::uint64_t> const* peers_sent = nullptr;

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    Endpoint::send(lane, peer, payload, bytes, how);
    own_sent->fetch_add(1, std::memory_order_release);
  }
  void consume(int lane, rank_t peer) noexcept {
    Endpoint::consume(lane, peer);
    ++taken_;
  }
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    rings_ = rings();
    return Endpoint::prepare_to_sleep();
  }
  [[nodiscard]] bool sleep(std::uint64_t at_most_us) noexcept {
    bool const rung = Endpoint::sleep(at_most_us);
    // As in side::receive(). Acquire: what was rung before is seen.
    if (!rung) lost_ += peers_sent->load(std::memory_order_acquire) > taken_ && rings() == rings_;
    return rung;
  }
  [[nodiscard]] int lost() const noexcept { return lost_; }

 private:
  [[nodiscard]] std::uint32_t rings() const noexcept {
    return this->space().bell(this->rank()).rings.load(std::memory_order_relaxed);
  }

  std::uint64_t taken_ = 0;
  std::uint32_t rings_ = 0;
  int lost_ = 0;
};
struct wary_threads {
  using world = collx::transport::threads::world;
  using endpoint = wary_endpoint<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<wary_threads>;
};

}  // namespace

TEST_CASE("doorbell: 100,000 letters that come when their receiver falls asleep lose no wake-up") {
  if (!collx::join_fences()) {
    MESSAGE("SKIPPED: this system offers no fences");
    return;
  }
  constexpr int rounds = 100'000 / slower;
  side sides[2];
  int lost[2] = {};
  std::uint64_t naps[2] = {};
  auto const play = [&](std::size_t me) {
    mapped::sleeper sleeper(sides[me].bell, true);
    collx::replayable_random random(me + 1);
    for (int round = 1; round <= rounds; ++round) {
      // From at once to some 20 us later: what announcing takes, and then some.
      for (std::uint32_t delay = random.below(1u << random.below(13)); delay != 0; --delay)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      if (me == 0) sides[1].send(round);
      lost[me] += sides[me].receive(sleeper, round, random.below(1u << random.below(17)));
      if (me == 1) sides[0].send(round);
    }
    naps[me] = sleeper.naps();
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  MESSAGE("naps: " << naps[0] << " and " << naps[1]);
  CHECK(naps[0] + naps[1] > 0);
  CHECK(lost[0] == 0);
  CHECK(lost[1] == 0);
}

TEST_CASE("doorbell: a ring after the announcement ends the nap, also when it comes before it") {
  mapped::doorbell bell{};
  mapped::sleeper sleeper(bell, collx::join_fences());
  sleeper.announce();
  CHECK(!sleeper.sleep(1));
  bell.ring_if_asleep();
  CHECK(sleeper.sleep(1'000'000));
  sleeper.announce();
  bell.ring();  // what raising the alarm does
  CHECK(sleeper.sleep(1'000'000));
  CHECK(sleeper.naps() == 3);
  CHECK(sleeper.late_naps() == 1);
  bell.asleep.store(0);
  std::uint32_t const before = bell.rings.load();
  bell.ring_if_asleep();
  CHECK(bell.rings.load() == before);  // nobody sleeps: no system call
}

TEST_CASE("a rank that waits a second for a late one uses hardly any processor time") {
  shared_with_forks<std::atomic<bool>> measuring;
  on_both(
      2,
      [&](auto& comm) {
        float value = 1;
        collx::all_reduce(comm, std::span(&value, 1));
        if (comm.rank() == 1) {
          while (!measuring->exchange(false)) sched_yield();
          std::this_thread::sleep_for(std::chrono::seconds(1));  // the lateness measured
          return collx::all_reduce(comm, std::span(&value, 1));
        }
        std::uint64_t const began = collx::now_us(), used = own_processor_us();
        *measuring = true;
        collx::all_reduce(comm, std::span(&value, 1));
        std::uint64_t const used_us = own_processor_us() - used, waited_us = collx::now_us() - began;
        require(waited_us >= 1'000'000, "it did not wait");
        require(used_us < waited_us / 20 * slower, "more than 5 % of a processor (of a sanitizer, half)");
      },
      settings{});
}

TEST_CASE("with ranks that sleep at once everything wakes them: letters, credits, staging, lent memory") {
  for (rank_t const size : {2, 3, 5})
    on_both(
        size,
        [](auto& comm) {
          auto const n = static_cast<std::size_t>(comm.size());
          auto const expected = static_cast<int>(n * (n + 1) / 2);
          auto lent = comm.template allocate<int>(5000);
          for (int round = 0; round < 20 / slower + 1; ++round) {
            std::vector<int> small(1, comm.rank() + 1), large(100'000, comm.rank() + 1);
            std::vector<int> to(n * 3000, comm.rank()), from(n * 3000);
            std::fill(lent.begin(), lent.end(), comm.rank() + 1);
            auto first = collx::start::all_reduce(comm, large);
            auto urgent = collx::start::all_reduce(comm, small);
            collx::all_to_all(comm, to, from);
            collx::all_reduce(comm, lent.span());
            urgent.wait();
            first.wait();
            collx::barrier(comm);
            require(small[0] == expected && large.back() == expected && lent[4999] == expected, "sums");
            require(from.back() == comm.size() - 1, "blocks");
          }
        },
        sleeps_at_once);
}

TEST_CASE("two ranks whose messages come when the other falls asleep are never left to a nap's end") {
  // Sleeping at once; and after what a rank with a processor of its own spins and yields, 300 us and more.
  for (std::uint32_t const yield_us : {0u, 20u}) {
    settings chosen = sleeps_at_once;
    chosen.yield_us = yield_us;
    int const rounds = (yield_us == 0 ? 20'000 : 2'000) / slower;
    std::uint32_t const longest_delay_us = yield_us == 0 ? 20 : 1000;
    std::vector<std::uint64_t> waited_us;
    std::uint64_t naps = 0, late = 0;
    std::atomic<std::uint64_t> sent[2] = {};
    std::atomic<int> lost{0};
    bool fenced = false;
    watched::on_threads<wary_threads>(
        2,
        [&](auto& comm) {
          auto& endpoint = comm.engine().endpoint();
          endpoint.own_sent = &sent[comm.rank()];
          endpoint.peers_sent = &sent[1 - comm.rank()];
          collx::replayable_random random(static_cast<std::uint64_t>(comm.rank()));
          std::vector<std::uint64_t> each;
          for (int round = 0; round < rounds; ++round) {
            std::uint64_t const starts_us = collx::now_us() + random.below(longest_delay_us + 1);
            while (collx::now_us() < starts_us) {}
            int value = comm.rank();
            std::uint64_t const began = collx::now_us();
            collx::all_reduce(comm, std::span(&value, 1));
            each.push_back(collx::now_us() - began);
            require(value == 1, "sum");
          }
          lost += endpoint.lost();
          if (comm.rank() != 0) return;
          waited_us = each;
          naps = endpoint.slept().naps();
          late = endpoint.slept().late_naps();
          fenced = comm.world().fenced();
        },
        chosen);
    std::sort(waited_us.begin(), waited_us.end());
    std::uint64_t const median_us = waited_us[waited_us.size() / 2];
    MESSAGE("yields for " << yield_us << " us: " << naps << " naps, " << late << " to their end");
    MESSAGE("a call takes " << median_us << " us, the longest " << waited_us.back());
    if (yield_us == 0) CHECK(naps > 0);
    if (fenced) CHECK(lost == 0);  // else some are, and naps are short
  }
}

TEST_CASE("an abort wakes those who sleep, and so does the end of the rank they wait for") {
  on_both(
      3,
      [](auto& comm) {
        int value = 1;
        if (comm.rank() == 0) {
          // Both others have said that they sleep.
          for (rank_t const peer : {1, 2})
            while (comm.world().bell(peer).asleep.load() == 0) std::this_thread::yield();
          comm.abort();
          return;
        }
        status const outcome = collx::try_all_reduce(comm, std::span(&value, 1));
        require(outcome == status::aborted, "aborted");  // and not only when the deadline had passed
      },
      sleeps_at_once);
  auto const codes = watched::on_processes(
      2,
      [](auto& comm) {
        if (comm.rank() == 1) {
          while (comm.world().bell(0).asleep.load() == 0) std::this_thread::yield();
          kill(getpid(), SIGKILL);
        }
        int value = 1;
        require(collx::try_all_reduce(comm, std::span(&value, 1)) == status::peer_lost, "noticed");
      },
      sleeps_at_once);
  CHECK(codes[0] == 0);
}

TEST_CASE("where the system gives no fences ranks nap shortly and everything works") {
  // What one rank says, all go by.
  mapped::doorbell bell{};
  mapped::sleeper sleeper(bell, false);
  sleeper.announce();
  std::uint64_t const began = collx::now_us();
  CHECK(!sleeper.sleep(3'600'000'000));
  CHECK(collx::now_us() - began >= 1'000);
  bell.ring_if_asleep();
  CHECK(sleeper.sleep(3'600'000'000));
}
