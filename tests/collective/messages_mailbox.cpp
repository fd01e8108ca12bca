// SPDX-License-Identifier: Apache-2.0
// Blocks of different counts, calls set up once, and groups, on messages that a seed delivers in any order:
// ranks of one thread. (Exchanges and graphs there: exchange.cpp, neighbours.cpp.)
// thread sanitizer: no, one thread steps all ranks
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "collective/group_mixture.hpp"
#include "collective/uneven_calls.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "sample.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::mailbox;
using request = collx::request<mailbox::endpoint>;
using ranks_of_one_thread = collx::bootstrap::mailbox_ranks<>;
constexpr collx::transport::settings small_staging{.staging_bytes = 64 * 1024};

// All ranks, with every algorithm: started, and set up once.
struct uneven_on_mailbox {
  rank_t size;
  uneven::pattern how;
  ranks_of_one_thread& ranks;
  std::size_t done = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if constexpr (uneven::has_form<Contract, Schedule>())
      if (collx::supports<Schedule>(size) &&
          static_cast<std::uint64_t>(collx::depth<Schedule>(size)) <= ranks[0].engine().endpoint().depth())
        uneven::for_each_shape<Contract>(0, size,
                                         [&](collx::problem const& where, bool packed, bool in_place) {
                                           run<Algorithm, Contract>(where.root, packed, in_place);
                                         });
  }

  template <class Algorithm, class Contract>
  void run(rank_t root, bool packed, bool in_place) {
    std::vector<std::unique_ptr<uneven::call<Contract>>> calls;
    for (rank_t r = 0; r < size; ++r)
      calls.push_back(
          std::make_unique<uneven::call<Contract>>(collx::problem{r, size, root}, how, packed, in_place));
    collx::array<request> requests(calls.size());
    for (rank_t r = 0; r < size; ++r) {
      auto const i = static_cast<std::size_t>(r);
      requests[i] = calls[i]->template perform<uneven::started<Algorithm>>(ranks[r]);
    }
    REQUIRE(ranks.drive(requests) == status::ok);
    for (auto const& each : calls) each->check(Algorithm::name, "started");

    using made = decltype(calls[0]->template perform<uneven::repeated<Algorithm>>(ranks[0]));
    struct started_again {  // what drive() drives
      made* it;
      status try_test() noexcept { return it->try_test(); }
    };
    std::vector<made> all;
    for (rank_t r = 0; r < size; ++r)
      all.push_back(
          calls[static_cast<std::size_t>(r)]->template perform<uneven::repeated<Algorithm>>(ranks[r]));
    for (int round = 0; round < 2; ++round) {
      collx::array<started_again> moving(calls.size());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        calls[i]->restore();
        all[i].start();
        moving[i] = {&all[i]};
      }
      REQUIRE(ranks.drive(moving) == status::ok);
      for (auto const& each : calls) each->check(Algorithm::name, "set up once");
    }
    ++done;
  }
};

}  // namespace

TEST_CASE("messages, mailbox: every algorithm that takes uneven blocks") {
  std::size_t done = 0;
  for (rank_t size = 1; size <= 17; ++size) {
    if (size > 9 && size != 16 && size != 17) continue;
    for (int how = 0; how < static_cast<int>(uneven::pattern::last); ++how) {
      CAPTURE(size);
      CAPTURE(how);
      // Several fragments of hundreds of pairs of ranks: where their number makes no difference any more.
      if (size > 9 && static_cast<uneven::pattern>(how) == uneven::pattern::large) continue;
      auto const seed = static_cast<std::uint64_t>(size * 10 + how);
      ranks_of_one_thread ranks(size, seed, small_staging, how % 2 == 0 ? 2 : 8);
      uneven_on_mailbox all{size, static_cast<uneven::pattern>(how), ranks};
      collx::for_each_schedule<sample::algorithms, collx::contract::all>(all);
      done += all.done;
    }
  }
  MESSAGE("collectives: " << done);
  CHECK(done > 100);
}

TEST_CASE("messages, mailbox: groups of every size, in any order of delivery") {
  using group = collx::group<mailbox>;
  for (rank_t size = 1; size <= 9; ++size) {
    std::uint64_t seed = 0;
    mixtures::for_each_size([&](std::size_t packed_bytes, std::size_t count) {
      CAPTURE(size);
      CAPTURE(packed_bytes);
      CAPTURE(count);
      ++seed;
      ranks_of_one_thread ranks(size, seed, small_staging, 2 + seed % 3);
      std::vector<std::unique_ptr<group>> groups;
      for (rank_t r = 0; r < size; ++r) groups.push_back(std::make_unique<group>(ranks[r], packed_bytes));
      for (int round = 0; round < 2; ++round) {
        std::vector<std::unique_ptr<mixtures::mixture>> calls;
        struct started_group {
          collx::group_request<group>* it;
          status try_test() noexcept { return it->try_test(); }
        };
        std::vector<collx::group_request<group>> requests;
        collx::array<started_group> moving(groups.size());
        for (rank_t r = 0; r < size; ++r) {
          auto const i = static_cast<std::size_t>(r);
          calls.push_back(std::make_unique<mixtures::mixture>(r, size, count));
          calls[i]->list(*groups[i]);
          requests.push_back(groups[i]->start());
        }
        for (std::size_t i = 0; i < requests.size(); ++i) moving[i] = {&requests[i]};
        REQUIRE(ranks.drive(moving) == status::ok);
        for (auto const& each : calls) each->check();
      }
    });
  }
}

TEST_CASE("mailbox: what a rank has sent arrives after its communicator has ended") {
  collx::bootstrap::mailbox_ranks<> ranks(2, 1, small_staging);
  std::vector<int> sent(25), came(25);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int>(i) + 1;
  auto spread = collx::start::broadcast(ranks[0], sent, 0);
  while (spread.try_test() == status::pending) {}
  { auto const gone = std::move(ranks[0]); }
  auto taken = collx::start::broadcast(ranks[1], came, 0);
  while (taken.try_test() == status::pending) {}
  CHECK(came == sent);
}
