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

TEST_CASE("meet_over_network: a rank that knows where its parent is, and is lost on the way there, is lost") {
  // Rank 3 is a child of rank 0, and rank 6 of rank 1, which rank 0 could pass the table to all the same.
  for (rank_t const lost : {3, 6}) {
    CAPTURE(lost);
    std::string const place = free_place();
    std::uint64_t const begun_us = now_us();
    process zero(ordinary(0, 7, place)), one(ordinary(1, 7, place));
    std::vector<net::owned_fd> by_hand;
    for (rank_t const r : {2, 3, 4, 5, 6})
      if (r != lost) by_hand.push_back(enter_tree(r, 7, place));
    {
      auto const leaves = register_by_hand(lost, 7, place);
      (void)heard<bootstrap::receipt>(leaves);
      CHECK(heard<bootstrap::direction>(leaves).what.kind == bootstrap::news_kind::good);
    }
    for (net::owned_fd const& each : by_hand) {
      auto const what = heard<bootstrap::news>(each);
      CHECK(what.kind == bootstrap::news_kind::left);
      CHECK(what.rank == lost);
    }
    std::string const name = "rank " + std::to_string(lost) + " at 127.0.0.1:";
    for (std::string const& said : {zero.said(), one.said()})
      CHECK_MESSAGE((holds(said, name) && holds(said, " was lost before everybody had met")), said);
    CHECK(now_us() < begun_us + long_us / 2);
  }
}

TEST_CASE("meet_over_network: a rank that does not reach its parent is named at the deadline, and told") {
  std::string const place = free_place();
  plan its = ordinary(0, 4, place);
  its.timeout_us = 6'000'000;  // this test's length
  process zero(its);
  auto const one = enter_tree(1, 4, place), three = enter_tree(3, 4, place);
  auto const two = register_by_hand(2, 4, place);
  (void)heard<bootstrap::receipt>(two);
  (void)heard<bootstrap::direction>(two);
  CHECK(heard<bootstrap::direction>(two).what.kind == bootstrap::news_kind::never_reached_parent);
  for (net::owned_fd const* each : {&one, &three}) {
    auto const what = heard<bootstrap::news>(*each);
    CHECK(what.kind == bootstrap::news_kind::never_reached_parent);
    CHECK(what.rank == 2);
  }
  std::string const said = zero.said();
  CHECK_MESSAGE((holds(said, "rank 0 of 4: rank 2 at 127.0.0.1:") &&
                 holds(said, " has come, but not to its parent in the tree, rank 0; look at its own output")),
                said);
}

TEST_CASE("meet_over_network: a rank whose parent has gone names it, or whom it has gone because of") {
  for (bool const says_why : {false, true}) {
    CAPTURE(says_why);
    std::string const place = free_place();
    std::uint64_t const begun_us = now_us();
    process zero(ordinary(0, 22, place));
    net::owned_fd const gate = net::listen_at(net::address::loopback(0), {});
    auto const one = register_by_hand(1, 22, place, gate);
    (void)heard<bootstrap::receipt>(one);
    (void)heard<bootstrap::direction>(one);
    process five(ordinary(5, 22, place));
    REQUIRE(net::ready_before(gate.get(), POLLIN, now_us() + long_us));
    // Rank 5, a fork, has both as well.
    REQUIRE(shutdown(gate.get(), SHUT_RDWR) == 0);
    if (says_why) tell(one, {bootstrap::news_kind::left, 7, 1});
    REQUIRE(shutdown(one.get(), SHUT_WR) == 0);
    for (std::string const& said : {zero.said(), five.said()}) {
      CHECK_MESSAGE(holds(said, says_why ? "rank 7" : "rank 1 at 127.0.0.1:"), said);
      CHECK_MESSAGE(holds(said, " was lost before everybody had met"), said);
    }
    CHECK(now_us() < begun_us + long_us / 2);
  }
}

TEST_CASE(
    "meet_over_network: that rank 0 is lost is also told by a rank which waits for its parent's address") {
  std::string const place = free_place();
  process zero(ordinary(0, 22, place)), five(ordinary(5, 22, place));  // 1, the parent of 5, never comes
  auto const of_21 = enter_tree(21, 22, place);
  zero.end();
  auto const what = heard<bootstrap::news>(of_21);
  CHECK(what.kind == bootstrap::news_kind::left);
  CHECK(what.rank == 0);
  std::string const said = five.said();
  CHECK_MESSAGE(holds(said, "rank 5 of 22: rank 0 was lost before everybody had met"), said);
}

TEST_CASE("meet_over_network: who gives up at the deadline tells those below whom it has waited for") {
  for (bool const has_parent : {false, true}) {
    CAPTURE(has_parent);
    std::string const place = free_place();
    process zero(ordinary(0, 22, place));
    net::owned_fd listening = net::listen_at(net::address::loopback(0), {}), to_store, from_five;
    auto const patient = [&](rank_t rank) {
      plan its = ordinary(rank, 22, place);
      // This test's length. Each counts from when it has come; what is below must not give up first.
      its.timeout_us = rank == 5 ? 2'000'000 : 6'000'000;
      return its;
    };
    process five(patient(5)), below(patient(21));
    if (has_parent) {
      to_store = register_by_hand(1, 22, place, listening);
      auto const session = heard<bootstrap::receipt>(to_store).session;
      net::gate gate(std::move(listening), keys().for_job(session),
                     {1, 22, net::mask_of(net::purpose::tree)});
      net::guest who;
      while (!gate.poll(who)) five.let_go_on();
      CHECK(who.who.from == 5);
      from_five = std::move(who.socket);
    }
    std::string const said = five.said(), said_below = below.said();
    CHECK_MESSAGE(holds(said, has_parent ? "rank 5 of 22: rank 1 has not sent the table of all ranks"
                                         : "rank 5 of 22: rank 0 fell silent; look at its own output"),
                  said);
    CHECK_MESSAGE(
        holds(said_below, has_parent ? "rank 21 of 22: rank 1 at 127.0.0.1:" : "rank 21 of 22: rank 0"),
        said_below);
    CHECK_MESSAGE(holds(said_below, " was lost before everybody had met"), said_below);
  }
}

TEST_CASE(
    "meet_over_network: the lower a rank is in the tree, the longer it waits to be told who is silent") {
  std::string const place = free_place();
  process const zero(ordinary(0, 22, place));
  plan its = ordinary(21, 22, place);  // its parent, 5, never comes, nor does that one's, 1
  its.timeout_us = 2'000'000;
  std::uint64_t const begun_us = now_us();
  process one(its);
  CHECK(holds(one.said(), "rank 0 fell silent"));
  CHECK(now_us() >= begun_us + its.timeout_us + 2'000'000 + 3 * 250'000);
}
