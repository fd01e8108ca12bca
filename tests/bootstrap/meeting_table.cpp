// SPDX-License-Identifier: Apache-2.0
// Rank 0 when all have come: it has but the table to send, and nobody is late or comes twice.
// component: tcp
// ctest: LABELS waits
#include <doctest/doctest.h>

#include "bootstrap/meeting_process.hpp"
#include "collx/bootstrap/meeting.hpp"

using namespace meeting;

namespace {

// What a rank 0 says that has met: it calls the next rank, which nobody plays.
constexpr char const* has_met = "the next rank does not let this one in";

}  // namespace

TEST_CASE("meeting: where all have come by the time that rank 0 looks, the deadline is not missed") {
  std::string const place = free_place();
  plan its = ordinary(0, 2, place);
  its.timeout_us = 6'000'000;  // this test's length
  process zero(its);
  auto const to_store = register_by_hand(1, 2, place);
  auto const answer = heard<bootstrap::receipt>(to_store);
  std::uint64_t const deadline_us = now_us() + answer.rest_us;
  auto const to_parent = reach({heard<bootstrap::direction>(to_store).parent,
                                {net::purpose::tree, 1, 0, 2, 0},
                                keys().for_job(answer.session),
                                {},
                                now_us() + long_us});
  zero.stop();
  tell(to_store, {});
  while (now_us() < deadline_us + 1'000) poll(nullptr, 0, 10);
  zero.go_on();
  CHECK(heard<bootstrap::news>(to_parent).kind == bootstrap::news_kind::good);
  std::string const said = zero.said();
  CHECK_MESSAGE(said == has_met, said);
}

TEST_CASE("meeting: who has the table while rank 0 still sends it to others may come to the next one") {
  std::string const place = free_place();
  net::host_and_port where;
  REQUIRE(net::host_and_port::parse(place.c_str() + 4, where));
  plan its = ordinary(0, 3, place);
  its.protects = net::protection::tls;
  process zero(its);
  encrypted_child one(1, 3, place), two(2, 3, place);
  REQUIRE(bootstrap::greet(one.to_parent, now_us() + long_us));
  // Rank 2 says that it has reached rank 0, and takes nothing from it.
  for (encrypted_child* const each : {&one, &two}) encrypted_child::say(each->to_store, bootstrap::news{});
  REQUIRE(heard<bootstrap::news>(one.to_parent).kind == bootstrap::news_kind::good);
  net::caller again(net::address::loopback(where.port), {net::purpose::store, 1, 0, 3, 0, 1, its.protects},
                    keys(), {}, now_us() + long_us);
  auto const wait_until = [&](std::uint64_t until_us) {
    bootstrap::wait_for(bootstrap::ready_for(again), bootstrap::readable(-1),
                        again.due_us() < until_us ? again.due_us() : until_us);
  };
  for (std::uint64_t const until_us = now_us() + 200'000; now_us() < until_us; wait_until(until_us))
    REQUIRE(again.progress() == status::pending);
  CHECK(again.attempts() == 1);
  REQUIRE(bootstrap::greet(two.to_parent, now_us() + long_us));
  CHECK(heard<bootstrap::news>(two.to_parent).kind == bootstrap::news_kind::good);
  std::string const said = zero.said();
  CHECK_MESSAGE(said == has_met, said);
  process const next(its);
  while (again.progress() == status::pending) wait_until(now_us() + long_us);
  CHECK(again.progress() == status::ok);
  CHECK(again.attempts() > 1);
}
