// SPDX-License-Identifier: Apache-2.0
// What ranks say of a meeting that fails: the same whether it is encrypted or not.
// component: tcp
// ctest: LABELS waits
#include "collx/bootstrap/meeting.hpp"

#include <doctest/doctest.h>

#include "bootstrap/meeting_process.hpp"

using namespace meeting;

namespace {

// A gate of rank 0 that this test plays.
net::gate gate_for(net::owned_fd door, net::credentials const& mine, rank_t size, net::purpose what,
                   net::protection protects) {
  return {std::move(door), mine, {0, size, net::mask_of(what), 1, protects}};
}

plan rank_at(net::address const& zero, rank_t rank, rank_t size, net::protection protects) {
  plan its = ordinary(rank, size, std::string("tcp:") + net::address_text(zero).text);
  its.protects = protects;
  return its;
}

}  // namespace

TEST_CASE("meeting: a rank 0 that stops behind the handshake does not answer, and is not lost") {
  for (net::protection const protects : {net::protection::none, net::protection::tls}) {
    CAPTURE(static_cast<int>(protects));
    net::owned_fd door = net::listen_at(net::address::loopback(0), {});
    plan its = rank_at(net::local_address(door.get()), 1, 2, protects);
    its.timeout_us = 4'000'000;  // this test's length
    net::gate at_zero = gate_for(std::move(door), keys(), 2, net::purpose::store, protects);
    process one(its);
    net::guest who;
    while (!at_zero.poll(who)) one.let_go_on();
    std::string const said = one.said();
    CHECK_MESSAGE(holds(said, "rank 1 of 2: rank 0 does not answer; look at its own output"), said);
  }
}

TEST_CASE("meeting: a parent that leaves while it greets is lost, and named with its address") {
  auto const protects = net::protection::tls;
  auto const tls = net::tls_context::create();
  net::owned_fd door = net::listen_at(net::address::loopback(0), {}),
                tree_door = net::listen_at(net::address::loopback(0), {});
  net::address const at = net::local_address(door.get());
  bootstrap::registration mine;
  mine.entry = {at, 7};
  mine.tree_gate = net::local_address(tree_door.get());
  bootstrap::store serves(gate_for(std::move(door), keys(), 2, net::purpose::store, protects), 2, mine, 99,
                          now_us() + long_us, &tls);
  net::gate tree_gate = gate_for(std::move(tree_door), keys().for_job(99), 2, net::purpose::tree, protects);
  process one(rank_at(at, 1, 2, protects));
  net::guest who;
  while (!tree_gate.poll(who)) serves.progress();
  who.socket.reset();
  std::string const said = one.said();
  CHECK_MESSAGE(holds(said, std::string("rank 0 at ") + net::address_text(mine.tree_gate).text +
                                " was lost before everybody had met; look at its own output"),
                said);
}

TEST_CASE(
    "meeting: a parent that refuses, and is not known to be lost, is no reason to wait for the deadline") {
  for (net::protection const protects : {net::protection::none, net::protection::tls}) {
    CAPTURE(static_cast<int>(protects));
    auto const tls = net::tls_context::create();
    net::owned_fd door = net::listen_at(net::address::loopback(0), {});
    net::address const at = net::local_address(door.get());
    reserved_port const nobody;
    bootstrap::registration mine;
    mine.entry = {at, 7};
    mine.tree_gate = nobody.where();
    bootstrap::store serves(gate_for(std::move(door), keys(), 2, net::purpose::store, protects), 2, mine, 99,
                            now_us() + long_us, net::encrypts(protects) ? &tls : nullptr);
    std::uint64_t const begun_us = now_us();
    process one(rank_at(at, 1, 2, protects));
    while (serves.failure().kind == bootstrap::news_kind::good) serves.progress();
    CHECK(serves.failure().kind == bootstrap::news_kind::never_reached_parent);
    CHECK(serves.failure().rank == 1);
    std::string const said = one.said();
    CHECK(now_us() < begun_us + long_us / 4);
    CHECK_MESSAGE(holds(said, std::string("rank 0 at ") + net::address_text(mine.tree_gate).text +
                                  " has come, and does not answer (Connection refused); look at its own"),
                  said);
  }
}

TEST_CASE("meeting: a child that is still greeting when the meeting fails hears of it") {
  std::string const place = free_place();
  plan its = ordinary(0, 3, place);
  its.protects = net::protection::tls;
  its.timeout_us = 6'000'000;  // of this test, most of the length
  process zero(its);
  encrypted_child one(1, 3, place);
  CHECK(heard<bootstrap::direction>(one.to_store).what.kind == bootstrap::news_kind::never_came);
  REQUIRE(bootstrap::greet(one.to_parent, now_us() + long_us));
  auto const word = heard<bootstrap::news>(one.to_parent);
  CHECK(word.kind == bootstrap::news_kind::never_came);
  CHECK(word.rank == 2);
  CHECK(holds(zero.said(), "rank 2 never came"));
}
