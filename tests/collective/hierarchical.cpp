// SPDX-License-Identifier: Apache-2.0
// Two-level algorithms on real buffers: ranks on as many pretended hosts as their number has divisors.
#include "collx/algo/hierarchical.hpp"

#include <doctest/doctest.h>

#include "collective/two_levels.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using two_levels::combinations;

// Runs everything on one rank after the other, from one seed.
struct on_mailbox {
  rank_t size, inner;
  collx::bootstrap::mailbox_ranks<> ranks;
  std::vector<std::vector<oracle::element>> memory;
  int done = 0;

  on_mailbox(rank_t n, rank_t per_group)
      : size(n),
        inner(per_group),
        ranks(n, static_cast<std::uint64_t>(n), {.staging_bytes = cases::staging_bytes}),
        memory(static_cast<std::size_t>(n),
               std::vector<oracle::element>(oracle::reference::index_count * 2)) {
    for (rank_t r = 0; r < n; ++r) ranks[r].ranks_per_group(per_group);
  }

  void run_all() {
    for (auto const& each : schedules::all<forms::started, collx::transport::mailbox, combinations>()) {
      if (!each.supports({size, inner})) continue;
      cases::for_each(*each.collective, size, [&](oracle::setting const& how) {
        std::string const what = each.describe(how);
        CAPTURE(what);
        CAPTURE(inner);
        std::vector<oracle::participant> all;
        collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(
            static_cast<std::size_t>(size));
        for (rank_t r = 0; r < size; ++r)
          all.push_back(each.participant(how, r, memory[static_cast<std::size_t>(r)].data()));
        for (rank_t r = 0; r < size; ++r) {
          auto const i = static_cast<std::size_t>(r);
          requests[i] = each(ranks[r], how, all[i]);
        }
        REQUIRE(ranks.drive(requests) == collx::status::ok);
        for (auto const& with : all) REQUIRE(with.difference() == "");
        ++done;
      });
    }
  }
};

constexpr std::pair<rank_t, rank_t> shapes[] = {{2, 2}, {4, 2}, {6, 2},  {6, 3},
                                                {8, 4}, {9, 3}, {12, 4}, {16, 4}};

}  // namespace

TEST_CASE("hierarchical: on the mailbox, every shape gives what the reference gives") {
  int done = 0;
  for (auto const& [size, inner] : shapes) {
    on_mailbox all(size, inner);
    all.run_all();
    done += all.done;
  }
  CHECK(done > 1000);
}

TEST_CASE("hierarchical: on threads and processes") {
  for (auto const& [size, inner] : shapes) {
    if (size > 8) continue;
    auto const everything = [per_group = inner](auto& comm) {
      two_levels::walk<combinations>(comm, per_group);
    };
    watched::on_threads(size, everything, {.staging_bytes = cases::staging_bytes});
    for (int const code : watched::on_processes(size, everything, {.staging_bytes = cases::staging_bytes}))
      CHECK(code == 0);
  }
}

TEST_CASE("hierarchical: groups must divide the ranks") {
  watched::on_threads(4, [](auto& comm) {
    for (rank_t const wrong : {0, -1, 3, 5}) {
      try {
        comm.ranks_per_group(wrong);
        throw std::runtime_error("accepted");
      } catch (collx::error const& refused) {
        if (refused.code() != collx::status::bad_argument) throw;
      }
    }
    comm.ranks_per_group(2);
    if (comm.ranks_per_group() != 2) throw std::runtime_error("not kept");
  });
}
