// SPDX-License-Identifier: Apache-2.0
// A rank that is lost while the others meet is named by all, at whatever point of the meeting it was.
// component: tcp
// ctest: LABELS waits
#include <vector>

#include <doctest/doctest.h>

#include "bootstrap/meeting_process.hpp"
#include "collx/bootstrap/network.hpp"

using namespace meeting;

TEST_CASE("meet_over_network: a rank that is lost while the others meet is named by all") {
  std::string const place = free_place();
  process zero(ordinary(0, 8, place)), one(ordinary(1, 8, place));
  // 2, 3 and 4 are children of rank 0; 5 and 6 of rank 1; 7 never comes.
  std::vector<net::owned_fd> by_hand;
  for (rank_t const r : {2, 3, 4, 5}) by_hand.push_back(enter_tree(r, 8, place));
  (void)enter_tree(6, 8, place);  // and leaves
  for (net::owned_fd const& each : by_hand) {
    auto const what = heard<bootstrap::news>(each);
    CHECK(what.kind == bootstrap::news_kind::left);
    CHECK(what.rank == 6);
    CHECK(what.at.version == 4);
  }
  for (std::string const& said : {zero.said(), one.said()})
    CHECK_MESSAGE((holds(said, "rank 6 at 127.0.0.1:") &&
                   holds(said, " was lost before everybody had met; look at its own output")),
                  said);
}

TEST_CASE("meet_over_network: a child that is lost while its parent waits for his own is named by all") {
  std::string const place = free_place();
  process zero(ordinary(0, 22, place)), five(ordinary(5, 22, place));  // 1, the parent of 5, never comes
  auto const two = enter_tree(2, 22, place);
  (void)enter_tree(21, 22, place);  // a child of 5, and leaves
  CHECK(heard<bootstrap::news>(two).rank == 21);
  for (std::string const& said : {zero.said(), five.said()})
    CHECK_MESSAGE((holds(said, "rank 21 at 127.0.0.1:") && holds(said, " was lost before everybody had met")),
                  said);
}

TEST_CASE("meet_over_network: a rank that leaves the store without its answers is lost") {
  std::string const place = free_place();
  process zero(ordinary(0, 8, place));
  auto const two = enter_tree(2, 8, place);
  auto five = register_by_hand(5, 8, place);  // waits for the address of rank 1
  CHECK(heard<bootstrap::receipt>(five).what.kind == bootstrap::news_kind::good);
  five.reset();
  CHECK(heard<bootstrap::news>(two).rank == 5);
  std::string const said = zero.said();
  CHECK_MESSAGE((holds(said, "rank 5 at 127.0.0.1:") && holds(said, " was lost before everybody had met")),
                said);
}
