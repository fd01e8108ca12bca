// SPDX-License-Identifier: Apache-2.0
// Every schedule for 1 to 33 ranks on the mailbox transport, in one thread: counts around the number
// of ranks, several fragments, every kind of buffer, against the sequential reference. With more than 9
// ranks, 16 and 33 of them (sample.hpp: 16); asked for, others (asked_for.hpp).
// compiled: as users do, since here every algorithm runs as optimised code
// thread sanitizer: no, one thread steps all ranks
#include <malloc.h>

#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collective/schedules.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "sample.hpp"

namespace {

using collx::rank_t;
using collx::transport::mailbox;
using request = collx::request<mailbox::endpoint>;

// One world, used for everything with its number of ranks: what one collective leaves behind, the
// next one finds.
struct all_ranks {
  explicit all_ranks(rank_t n)
      : size(n),
        ranks(n, static_cast<std::uint64_t>(n), {.staging_bytes = cases::staging_bytes}),
        deep_ranks(n, static_cast<std::uint64_t>(n), {.staging_bytes = cases::staging_bytes}, 8),
        memory(static_cast<std::size_t>(n),
               std::vector<oracle::element>(oracle::reference::index_count * 2)) {}

  void run_all() {
    for (auto const& each : schedules::all<forms::started, mailbox>()) {
      if (!each.supports(size)) continue;
      cases::for_each(*each.collective, size, [&](oracle::setting const& how) { run(each, how); });
    }
  }

  void run(schedules::entry<forms::started, mailbox> const& called, oracle::setting const& how) {
    std::string const what = called.describe(how);
    CAPTURE(what);
    std::vector<oracle::participant> all;
    collx::array<request> requests(static_cast<std::size_t>(size));
    for (rank_t r = 0; r < size; ++r)
      all.push_back(called.participant(how, r, memory[static_cast<std::size_t>(r)].data()));
    auto& world = called.depth(size) > 2 ? deep_ranks : ranks;
    for (rank_t r = 0; r < size; ++r) {
      auto const i = static_cast<std::size_t>(r);
      requests[i] = called(world[r], how, all[i]);
    }
    REQUIRE(world.drive(requests) == collx::status::ok);
    for (auto const& each : all) REQUIRE(each.difference() == "");
    ++done;
  }

  rank_t size;
  collx::bootstrap::mailbox_ranks<> ranks, deep_ranks;  // as few messages in flight as most need; or more
  std::vector<std::vector<oracle::element>> memory;
  std::size_t done = 0;
};

// On a barrier of all but one nobody gets through; with the last one, everybody does.
void check_barrier(schedules::entry<forms::started, mailbox> const& barrier,
                   collx::bootstrap::mailbox_ranks<>& ranks, rank_t size) {
  CAPTURE(barrier.algorithm);
  rank_t const last = size / 2;
  collx::array<request> requests(static_cast<std::size_t>(size));
  auto const start = [&](rank_t r) {
    requests[static_cast<std::size_t>(r)] = barrier.perform(ranks[r], {}, {}, {});
  };
  for (rank_t r = 0; r < size; ++r)
    if (r != last) start(r);
  for (int look = 0; look < 20 * size; ++look)
    for (rank_t r = 0; r < size; ++r)
      if (r != last) REQUIRE(requests[static_cast<std::size_t>(r)].try_test() == collx::status::pending);
  start(last);
  REQUIRE(ranks.drive(requests) == collx::status::ok);
}

constexpr bool is_always_taken(rank_t size) {
  return size <= 9 || size == 16 || (size == 33 && !sample::is_sample);
}

// Returns how many collectives there were.
template <class Takes>
std::size_t run_with(Takes const& takes) {
  // Images of what must come out come and go: memory that the system gives anew takes a fifth of the time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::size_t done = 0;
  for (rank_t size = 1; size <= 33; ++size) {
    if (!takes(size)) continue;
    all_ranks with(size);
    with.run_all();
    done += with.done;
  }
  return done;
}

}  // namespace

TEST_CASE("mailbox: every schedule of 1 to 9, 16 and 33 ranks gives what the reference gives") {
  std::size_t const done = run_with(is_always_taken);
  MESSAGE("collectives: " << done);
  CHECK(done > 5'000);
}

TEST_CASE("wide: mailbox, every schedule of 10 to 33 ranks") {
  if (!is_wide_asked_for()) return;
  CHECK(run_with([](rank_t size) { return takes_wide(size) && !is_always_taken(size); }) > 3'000);
}

TEST_CASE("mailbox: nobody leaves a barrier before everybody has come") {
  for (rank_t size = 1; size <= 33; ++size) {
    if (!sample::takes(size)) continue;
    CAPTURE(size);
    collx::bootstrap::mailbox_ranks<> ranks(size, 1);
    for (auto const& each : schedules::barriers<forms::started, mailbox>())
      if (each.supports(size)) check_barrier(each, ranks, size);
  }
}
