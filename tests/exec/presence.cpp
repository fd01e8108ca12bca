// SPDX-License-Identifier: Apache-2.0
// Ranks of one process read and write each other's private memory, which the caller of a failed call may free
// at once. The operator below stops a rank in the middle of that, and the other one gives up meanwhile.
// ctest: LABELS waits
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/barrier.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/split.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;

// Tells when its rank has learnt that somebody gave up: from then on its call fails; and how long it is ready
// to wait for peers that are at its buffers.
template <class Endpoint>
class noticing_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;
  std::atomic<bool>* noticed = nullptr;
  std::uint64_t* waits_at_most_us = nullptr;

  void reclaim(std::uint64_t at_most_us) noexcept {
    if (waits_at_most_us != nullptr) *waits_at_most_us = at_most_us;
    Endpoint::reclaim(at_most_us);
  }
  [[nodiscard]] status interrupted(rank_t peer) noexcept {
    status const why = Endpoint::interrupted(peer);
    if (why != status::ok && noticed != nullptr) *noticed = true;
    return why;
  }
};
struct noticing_threads {
  using world = collx::transport::threads::world;
  using endpoint = noticing_endpoint<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<noticing_threads>;
};
using communicator = collx::communicator<noticing_threads>;

// Large enough to be lent, not staged: by calls that have an executor for every rank, and by those that are
// short for who receives. (Short ones of a reduce are staged: it has a root.)
constexpr std::size_t count = 16 * 1024, short_count = 1024;
static_assert(short_count * sizeof(int) >= 4 * collx::exec::lend_bytes_min &&
              short_count * sizeof(int) <= collx::exec::short_staged_bytes);

struct kind {
  std::size_t elements;
  bool started;
};
constexpr kind kinds[] = {{count, false}, {count, true}, {short_count, false}};

// Told by value what to do while it is at the peer's memory, so that it can be an operator.
struct scene {
  communicator* reader = nullptr;
  std::atomic<bool> inside{false}, noticed{false}, returned{false}, too_early{false};
  std::atomic<int> combined{0};
  void (*meanwhile)(scene&) = nullptr;
};
struct stops_once {
  scene* at;
  int operator()(int a, int b) const {
    if (at->combined.fetch_add(1, std::memory_order_relaxed) == 0 && at->meanwhile != nullptr)
      at->meanwhile(*at);
    return a + b;
  }
};
using flat = collx::algo::direct_one_shot;

// Makes the other rank give up, and sees whether it returns although this one is at its memory. How long it
// looks decides only how surely a fault is found.
void fail_the_other_and_look(scene& s) {
  s.reader->abort();
  while (!s.noticed.load()) std::this_thread::yield();
  auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < end && !s.returned.load()) std::this_thread::yield();
  if (s.returned.load()) s.too_early = true;
}
// Does not leave before the other one has returned.
void stay_until_it_returned(scene& s) {
  s.reader->abort();
  s.returned.wait(false);
}

// Rank 1 combines both inputs.
[[nodiscard]] status combine_on(communicator& comm, std::vector<int> const& in, std::vector<int>& out,
                                scene& s, kind of) {
  if (of.elements == short_count) return collx::try_scan<flat>(comm, in, out, stops_once{&s});
  if (of.started) return collx::start::reduce<flat>(comm, in, out, stops_once{&s}, 1).try_wait();
  return collx::try_reduce<flat>(comm, in, out, stops_once{&s}, 1);
}

// Rank 0 lends its input to rank 1, and frees it when its call has failed.
[[nodiscard]] status lend_and_free(communicator& comm, scene& s, kind of) {
  auto input = std::make_unique<std::vector<int>>(of.elements, 1);
  std::vector<int> output(of.elements == short_count ? short_count : 0);
  comm.engine().endpoint().noticed = &s.noticed;
  status const outcome = combine_on(comm, *input, output, s, of);
  comm.engine().endpoint().noticed = nullptr;
  s.returned = true;
  input.reset();
  return outcome;
}

collx::transport::settings const patient{.timeout_us = 60'000'000};

}  // namespace

TEST_CASE("a call that fails does not return while a peer reads the buffers it was given") {
  for (kind const of : kinds) {
    CAPTURE(of.elements);
    CAPTURE(of.started);
    scene s;
    s.meanwhile = &fail_the_other_and_look;
    watched::on_threads<noticing_threads>(
        2,
        [&](communicator& comm) {
          if (comm.rank() == 0) {
            if (lend_and_free(comm, s, of) != status::aborted)
              throw std::runtime_error("rank 0 did not fail");
            return;
          }
          s.reader = &comm;
          std::vector<int> const input(of.elements, 2);
          std::vector<int> output(of.elements);
          (void)combine_on(comm, input, output, s, of);
        },
        patient);
    CHECK(s.combined.load() > 0);
    CHECK_FALSE(s.too_early.load());
  }
}

TEST_CASE("who comes after a peer has given up does not touch what that peer lent") {
  for (kind const of : kinds) {
    CAPTURE(of.elements);
    CAPTURE(of.started);
    scene s;
    std::atomic<bool> sent{false};
    status late = status::ok;
    watched::on_threads<noticing_threads>(
        2,
        [&](communicator& comm) {
          if (comm.rank() == 0) {
            comm.timeout_us(50'000);
            if (lend_and_free(comm, s, of) != status::timeout)
              throw std::runtime_error("rank 0 did not time out");
            sent = true;
            sent.notify_one();
            return;
          }
          sent.wait(false);
          std::vector<int> const input(of.elements, 2);
          std::vector<int> output(of.elements);
          late = combine_on(comm, input, output, s, of);
          CHECK_THROWS_WITH_AS(collx::reduce<flat>(comm, input, output, stops_once{&s}, 1),
                               doctest::Contains("first reported by rank 0"), collx::error);
        },
        patient);
    CHECK(late == status::aborted);
    CHECK(s.combined.load() == 0);
  }
}

TEST_CASE("a call that fails waits for a peer at its buffers no longer than its time-out") {
  scene s;
  s.meanwhile = &stay_until_it_returned;
  status failed = status::ok;
  watched::on_threads<noticing_threads>(
      2,
      [&](communicator& comm) {
        if (comm.rank() == 0) {
          comm.timeout_us(100'000);
          auto input = std::make_unique<std::vector<int>>(count, 1);
          std::vector<int> none;
          failed = combine_on(comm, *input, none, s, kinds[0]);
          s.returned = true;
          s.returned.notify_all();
          s.inside.wait(true);  // the input is still read
          return;
        }
        s.reader = &comm;
        s.inside = true;
        std::vector<int> const input(count, 2);
        std::vector<int> output(count);
        (void)combine_on(comm, input, output, s, kinds[0]);
        s.inside = false;
        s.inside.notify_all();
      },
      patient);
  CHECK(failed != status::ok);
}

TEST_CASE("what failed in one group bars nobody from the buffers of another") {
  watched::on_threads<noticing_threads>(
      4,
      [&](communicator& comm) {
        communicator pair = comm.split(comm.rank() / 2, comm.rank());
        communicator other = comm.split(comm.rank() / 2, comm.rank());
        std::vector<int> const input(count, 1);
        std::vector<int> output(count);
        // Any failure: rank 3 has given up on `pair`, and says so to rank 2 only.
        if (comm.rank() == 3) pair.engine().endpoint().reclaim(0);
        if (comm.rank() >= 2) {
          collx::barrier(other);
          if (comm.rank() == 2 && pair.engine().endpoint().approach()) throw std::runtime_error("not barred");
        }
        collx::reduce<flat>(other, input, output, collx::sum, 0);
        if (other.rank() == 0 && output != std::vector<int>(count, 2)) throw std::runtime_error("wrong sum");
        if (comm.rank() < 2) collx::barrier(pair);
      },
      patient);
}

TEST_CASE("a short time-out is no reason to return while a peer is just at work at this rank's buffers") {
  for (std::uint64_t const timeout_us : {0u, 1'000u, 5'100'000u}) {
    std::uint64_t noted = 0;
    watched::on_threads<noticing_threads>(
        2,
        [&](communicator& comm) {
          if (comm.rank() == 1) return;
          comm.engine().endpoint().waits_at_most_us = &noted;
          std::vector<int> const input(count, 1);
          comm.timeout_us(timeout_us);
          std::vector<int> none;
          if (collx::try_reduce<flat>(comm, input, none, collx::sum, 1) == status::ok)
            throw std::runtime_error("nobody was there, and all went well");
        },
        patient);
    CHECK(noted >= 5'000'000);
    CHECK(noted >= timeout_us);
  }
}
