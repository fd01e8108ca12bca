// SPDX-License-Identifier: Apache-2.0
// Rank 0's descriptor, handed over between processes: those of others get it, those of its own do not, and
// who gets none, or fails on the way, keeps nobody waiting.
#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_or_none.hpp"
#include "collx/transport/cuda/hand_over.hpp"
#include "net/desks.hpp"
#include "watched.hpp"

namespace {

using namespace collx;
using namespace desks;
using transport::cuda_parts::hand_over;
using transport::cuda_parts::process_name;

// `near`: ranks up to this one are told to be of one process.
template <class Comm>
int content_handed_over(Comm& comm, rank_t near, bool has_any, bool makes_desk = true) {
  owned_fd const own = comm.rank() == 0 && has_any ? memory_of(42) : owned_fd();
  process_name const process{comm.rank() <= near ? 0 : comm.rank(), 7};
  auto const agree = [&](status mine) noexcept { return detail::outcome_of_all(comm, mine); };
  auto const together = [&](auto const& make) {
    detail::all_or_none("a test", comm.rank(), agree, [&] {
      if (!makes_desk) throw error(status::system_failure, "a test");
      make();
    });
  };
  auto const gather = [&](auto const& mine, auto& all) { all_gather(comm, std::span(&mine, 1), all); };
  owned_fd const got = hand_over("a test", comm.rank(), static_cast<std::size_t>(comm.size()), process,
                                 own.get(), long_us, together, gather);
  return content_of(got);
}

void check_all(rank_t size, auto const& run) {
  auto const codes = watched::on_processes(size, [&](auto& comm) {
    if (int const wrong = run(comm); wrong != 0) throw error(status::mismatch, "a rank got something else");
  });
  for (int const code : codes) CHECK(code == 0);
}

}  // namespace

TEST_CASE("ranks of other processes get what rank 0 has, and those of its own need nothing") {
  for (rank_t const near : {0, 1, 3}) {
    CAPTURE(near);
    check_all(4, [&](auto& comm) {
      return content_handed_over(comm, near, true) != (comm.rank() <= near ? -1 : 42);
    });
  }
}

TEST_CASE("where rank 0 has none, the others get none") {
  check_all(3, [](auto& comm) { return content_handed_over(comm, 0, false) != -1; });
}

TEST_CASE("a rank that cannot make its desk ends it on all, before anybody waits") {
  check_all(3, [](auto& comm) {
    try {
      (void)content_handed_over(comm, 0, true, comm.rank() != 1);
    } catch (error const& e) {
      return e.code() != status::system_failure;
    }
    return true;
  });
}
