// SPDX-License-Identifier: Apache-2.0
// Forked processes meet over the loopback interface: in any order, late, missing, doubled, among strangers.
// component: tcp
// ctest: LABELS waits
#include "collx/bootstrap/network.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include <doctest/doctest.h>
#include <sys/inotify.h>

#include "bootstrap/folder.hpp"
#include "bootstrap/meeting_process.hpp"
#include "collx/core/random.hpp"

using namespace meeting;

namespace {

// Checks that all said they know the same table.
void check_met(std::vector<process>& ranks, std::vector<rank_t> const& order, rank_t size) {
  std::string table;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::string const said = ranks[i].said();
    std::string const begin = std::to_string(order[i]) + " of " + std::to_string(size) + " knows ";
    CHECK_MESSAGE(said.starts_with(begin), said);
    if (table.empty()) table = said.substr(begin.size());
    CHECK(said.substr(begin.size()) == table);
  }
}

void check_all_meet(std::string const& place, std::vector<rank_t> const& order, std::string const& secret,
                    net::protection protects = net::protection::none) {
  std::vector<process> ranks;
  auto const size = static_cast<rank_t>(order.size());
  for (rank_t const r : order) {
    plan its = ordinary(r, size, place);
    its.secret = secret;
    its.protects = protects;
    ranks.emplace_back(its);
  }
  check_met(ranks, order, size);
}

// Ranks of which the last comes behind so many strangers.
void check_met_among_strangers(int count, net::protection protects) {
  std::string const place = free_place();
  net::host_and_port at;
  REQUIRE(net::host_and_port::parse(place.c_str() + 4, at));
  net::address const door = net::address::loopback(at.port);
  std::vector<process> ranks;
  std::vector<rank_t> order;
  auto const patient = [&](rank_t rank) {
    plan its = ordinary(rank, 8, place);
    its.protects = protects;
    its.timeout_us = 4 * long_us;  // however long the strangers take
    // The last are there yet when the ranks have met. Others have been gone before they were let in, most of
    // them where rank 0 is held up: the queue of its socket holds a tenth.
    if (rank == 0) its.strangers_min = static_cast<std::uint64_t>(count) / 10;
    return its;
  };
  for (rank_t r = 0; r < 7; ++r) {
    ranks.emplace_back(patient(r));
    order.push_back(r);
  }
  while (net::connect_outcome(net::begin_connect(door, {}).get()) != 0) ranks[0].let_go_on();
  collx::replayable_random random(8);
  std::vector<net::owned_fd> lingering(100);
  for (int i = 0; i < count; ++i) {
    net::owned_fd one = net::begin_connect(door, {});
    if (!one) continue;
    std::byte nonsense[200];
    for (std::byte& each : nonsense) each = static_cast<std::byte>(random.next());
    if (i % 3 == 0) std::memcpy(nonsense, "collxtcp\0\0\0\1", 12);
    (void)!send(one.get(), nonsense, random.below(sizeof nonsense), MSG_NOSIGNAL | MSG_DONTWAIT);
    linger const at_once{1, 0};  // leaves no connection that waits for its end
    setsockopt(one.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    lingering[static_cast<std::size_t>(i) % lingering.size()] = std::move(one);
  }
  ranks.emplace_back(patient(7));
  order.push_back(7);
  check_met(ranks, order, 8);
}

}  // namespace

TEST_CASE("meet_over_network: ranks in any order meet, and can reach each other") {
  collx::replayable_random random(1);
  for (rank_t const size : {1, 2, 3, 6, 22}) {
    std::vector<rank_t> order;
    for (rank_t r = 0; r < size; ++r)
      order.insert(order.begin() + random.below(static_cast<std::uint32_t>(r) + 1), r);
    check_all_meet(free_place(), order, the_secret);
  }
}

TEST_CASE("meet_over_network: ranks meet encrypted") {
  for (rank_t const size : {1, 2, 6, 22}) {
    std::vector<rank_t> order;
    for (rank_t r = 0; r < size; ++r) order.insert(order.begin() + (r % 2 == 0 ? 0 : r / 2), r);
    check_all_meet(free_place(), order, the_secret, net::protection::tls);
  }
}

TEST_CASE("meet_over_network: over IPv6, by name, and on one host without a secret") {
  for (std::uint8_t const version : versions_here())
    check_all_meet(free_place(version), {1, 0, 2}, the_secret);
  std::string const place = free_place();
  check_all_meet("tcp:localhost" + place.substr(place.rfind(':')), {0, 1, 2}, "");
}

TEST_CASE("meet_over_network: by a file, of which an old one is in nobody's way") {
  folder const here;
  check_all_meet("file:" + here.at("meet"), {2, 1, 0}, "");
  CHECK(access(here.at("meet").c_str(), F_OK) != 0);
  for (char const* const old : {"collx 1 127.0.0.1:1 0", "nonsense", ""}) {
    std::ofstream(here.at("meet")) << old;
    check_all_meet("file:" + here.at("meet"), {1, 2, 0}, the_secret);
  }
}

TEST_CASE("meet_over_network: whoever has the address of an old file now, it is in nobody's way") {
  enum class owner { nobody, another_job, somebody_silent };
  for (owner const whose : {owner::nobody, owner::another_job, owner::somebody_silent}) {
    CAPTURE(static_cast<int>(whose));
    folder const here;
    net::owned_fd listening = net::listen_at(net::address::loopback(0), {});
    std::ofstream(here.at("meet")) << "collx 1 "
                                   << net::address_text(net::local_address(listening.get())).text
                                   << " 0123456789abcdef\n";
    std::vector<process> ranks;
    ranks.emplace_back(ordinary(1, 2, "file:" + here.at("meet")));
    // Rank 1 has read it when it dials.
    REQUIRE(net::ready_before(listening.get(), POLLIN, now_us() + long_us));
    net::owned_fd taken;
    net::gate other;
    net::guest unused;
    if (whose == owner::another_job) {
      other = net::gate(std::move(listening), keys().for_job(7), {0, 2, net::mask_of(net::purpose::store)});
      for (auto const until_us = now_us() + long_us; other.count().refused == 0 && now_us() < until_us;)
        CHECK_FALSE(other.poll(unused));
    } else {
      taken.reset(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      REQUIRE(taken);
    }
    if (whose == owner::nobody) {
      taken.reset();
      REQUIRE(shutdown(listening.get(), SHUT_RDWR) == 0);  // rank 1, a fork, has it as well
    }
    std::uint64_t const begun_us = now_us();
    ranks.emplace_back(ordinary(0, 2, "file:" + here.at("meet")));
    pollfd met{ranks[0].text(), POLLIN, 0};
    while (poll(&met, 1, 1) == 0 && now_us() < begun_us + long_us / 4)
      if (whose == owner::another_job) CHECK_FALSE(other.poll(unused));
    CHECK(now_us() < begun_us + long_us / 4);
    check_met(ranks, {1, 0}, 2);
  }
}

TEST_CASE("meet_over_network: nor is one that names the network, where no rank goes without a secret") {
  folder const here;
  std::string old = "192.0.2.77:9";  // an address for documentation
  net::address const own = net::choose_interface(net::local_interfaces(), nullptr, true);
  net::owned_fd const trap = own.version == 0 ? net::owned_fd() : net::listen_at(own.with_port(0), {});
  if (trap) old = net::address_text(net::local_address(trap.get())).text;
  std::ofstream(here.at("meet")) << "collx 1 " << old << " 0123456789abcdef\n";
  net::owned_fd const reads(inotify_init1(IN_CLOEXEC));
  REQUIRE(inotify_add_watch(reads.get(), here.at("meet").c_str(), IN_CLOSE_NOWRITE) >= 0);
  std::vector<process> ranks;
  for (rank_t const r : {1, 0}) {
    plan its = ordinary(r, 2, "file:" + here.at("meet"));
    its.secret = "";
    ranks.emplace_back(its);
    REQUIRE(net::ready_before(reads.get(), POLLIN, now_us() + long_us));  // rank 1 has read it
  }
  check_met(ranks, {1, 0}, 2);
  if (trap) CHECK_FALSE(net::ready_before(trap.get(), POLLIN, now_us()));
}

TEST_CASE("meet_over_network: at the ports that a firewall lets pass") {
  folder const here;
  std::vector<process> ranks;
  for (rank_t const r : {2, 0, 1, 3}) {
    plan its = ordinary(r, 4, "file:" + here.at("meet"));
    its.ports = ports_of_a_job(100);
    ranks.emplace_back(its);
  }
  check_met(ranks, {2, 0, 1, 3}, 4);
}

TEST_CASE("meet_over_network: rank 0 may come last") {
  std::string const place = free_place();
  std::vector<process> ranks;
  for (rank_t const r : {1, 2, 3, 0}) {
    if (r == 0) poll(nullptr, 0, 60);  // the others have been refused by then, or will be
    ranks.emplace_back(ordinary(r, 4, place));
  }
  check_met(ranks, {1, 2, 3, 0}, 4);
}

TEST_CASE("meet_over_network: everybody is told which rank never came") {
  std::string const place = free_place();
  plan its = ordinary(0, 11, place);
  // This test's length: on a busy machine three connections have to come before it ends.
  its.timeout_us = 6'000'000;
  process zero(its);
  // Two are in the tree, one waits for the address of rank 1.
  std::vector<net::owned_fd> told;
  for (rank_t const r : {2, 3}) told.push_back(enter_tree(r, 11, place));
  auto const five = register_by_hand(5, 11, place);
  CHECK(heard<bootstrap::receipt>(five).rest_us <= its.timeout_us);
  for (net::owned_fd const& each : told) {
    auto const what = heard<bootstrap::news>(each);
    CHECK(what.kind == bootstrap::news_kind::never_came);
    CHECK(what.rank == 1);
  }
  CHECK(heard<bootstrap::direction>(five).what.rank == 1);
  std::string const said = zero.said();
  CHECK_MESSAGE(holds(said, "rank 0 of 11: rank 1 never came, nor did"), said);
  CHECK_MESSAGE(holds(said, "others; start all 11 ranks"), said);
}

TEST_CASE("meet_over_network: without rank 0 the others say so") {
  plan its = ordinary(1, 2, free_place());
  its.timeout_us = 2'000'000;
  std::string const said = process(its).said();
  CHECK_MESSAGE(holds(said, "rank 1 of 2: rank 0 at 127.0.0.1:"), said);
  CHECK_MESSAGE(holds(said, "does not answer (Connection refused)"), said);
  folder const here;
  its.place = "file:" + here.at("meet");
  CHECK(holds(process(its).said(), "rank 0 is not to be found: its file is not there yet"));
}

TEST_CASE("meet_over_network: who does not belong is told why, and the job goes on waiting") {
  std::string const place = free_place();
  std::vector<process> ranks;
  ranks.emplace_back(ordinary(0, 3, place));
  ranks.emplace_back(ordinary(1, 3, place));
  plan wrong = ordinary(2, 3, place);
  wrong.secret = "another secret of 24 bytes";
  std::string const refused = process(wrong).said();
  CHECK(holds(refused, "it has another secret; give all ranks the same COLLX_SECRET_FILE"));
  CHECK_FALSE(holds(refused, wrong.secret));
  wrong.secret = "";
  CHECK(holds(process(wrong).said(), "it has another secret"));
  CHECK(holds(process(ordinary(2, 4, place)).said(), "another number of ranks; give all ranks the same"));
  // One of the two is refused: the other has registered before.
  process again(ordinary(1, 3, place));
  pollfd both[] = {{ranks[1].text(), POLLIN, 0}, {again.text(), POLLIN, 0}};
  REQUIRE(poll(both, 2, -1) == 1);
  bool const first_refused = both[0].revents != 0;
  std::string const said = (first_refused ? ranks[1] : again).said();
  CHECK_MESSAGE(holds(said, "another process is rank 1 already; give every process a rank of its own"), said);
  process right(ordinary(2, 3, place));
  std::vector<process> met;
  met.push_back(std::move(ranks[0]));
  met.push_back(std::move(first_refused ? again : ranks[1]));
  met.push_back(std::move(right));
  check_met(met, {0, 1, 2}, 3);
}

// `differ`: in what two ranks are alike, and the third is not.
void check_agreed_on(auto const& differ, char const* advice) {
  std::string const place = free_place();
  std::vector<process> ranks;
  for (rank_t const r : {0, 1}) {
    plan its = ordinary(r, 3, place);
    differ(its);
    ranks.emplace_back(its);
  }
  std::string const said = process(ordinary(2, 3, place)).said();
  CHECK_MESSAGE(holds(said, "rank 0 at 127.0.0.1:"), said);
  CHECK_MESSAGE(holds(said, advice), said);
  plan right = ordinary(2, 3, place);
  differ(right);
  ranks.emplace_back(right);
  check_met(ranks, {0, 1, 2}, 3);
}

TEST_CASE("meet_over_network: what connections are like is agreed on when ranks meet") {
  check_agreed_on([](plan& its) { its.protects = net::protection::tls; },
                  "one of the two encrypts and the other does not; give all ranks the same COLLX_TLS");
  check_agreed_on(
      [](plan& its) { its.protects = net::protection::checksums; },
      "one of the two sends checksums and the other does not; give all ranks the same COLLX_TCP_CHECK");
  check_agreed_on(
      [](plan& its) { its.flow_count = 5; },
      "one of the two has more connections than the other; give all ranks the same COLLX_TCP_FLOWS");
}

TEST_CASE("meet_over_network: nobody encrypts without a secret") {
  plan its = ordinary(0, 2, free_place());
  its.secret = "";
  its.protects = net::protection::tls;
  std::string const said = process(its).said();
  CHECK_MESSAGE(holds(said, "COLLX_TLS is 1, but there is no secret"), said);
  CHECK_MESSAGE(holds(said, "set COLLX_SECRET_FILE"), said);
}

TEST_CASE("network_settings: ranks that are given those of the environment encrypt if COLLX_TLS says so") {
  auto const protects = [](char const* value) {
    if (value == nullptr) unsetenv("COLLX_TLS");
    else setenv("COLLX_TLS", value, 1);
    return bootstrap::network_settings::from_environment().protects;
  };
  CHECK(protects("1") == net::protection::tls);
  CHECK(protects("0") == net::protection::none);
  CHECK_THROWS_WITH_AS((void)protects("2"), doctest::Contains("COLLX_TLS"), collx::error);
  CHECK(protects(nullptr) == net::protection::none);
}

TEST_CASE("meet_over_network: the network is not used without a secret") {
  for (rank_t const r : {0, 1}) {
    plan its = ordinary(r, 2, "tcp:192.0.2.77:9999");  // an address for documentation: nobody is there
    its.secret = "";
    std::string const said = process(its).said();
    CHECK_MESSAGE(holds(said, "would use the network (192.0.2.77) without a secret; set COLLX_SECRET_FILE"),
                  said);
  }
}

TEST_CASE("meet_over_network: 10,000 strangers change nothing") {
  check_met_among_strangers(10'000, net::protection::none);
  check_met_among_strangers(1'000, net::protection::tls);
}

TEST_CASE("meet_over_network: who is no rank comes no further with TLS, and is counted") {
  bootstrap::registration mine;
  net::owned_fd listening = net::listen_at(net::address::loopback(0), {});
  net::address const at = net::local_address(listening.get());
  mine.entry = {at, 7};
  mine.tree_gate = at;
  auto const tls = net::tls_context::create();
  bootstrap::store serves(net::gate(std::move(listening), keys(),
                                    {0, 2, net::mask_of(net::purpose::store), 1, net::protection::tls}),
                          2, mine, 1, now_us() + long_us, &tls);
  auto const call = [&](char const* secret) {
    return net::caller(at, {net::purpose::store, 1, 0, 2, 0, 1, net::protection::tls},
                       {net::secret::of(std::span(secret, std::strlen(secret))), net::job_number("")}, {},
                       now_us() + long_us);
  };
  auto const outcome = [&](net::caller& of) {
    status now = of.progress();
    for (; now == status::pending; now = of.progress()) serves.progress();
    return now;
  };
  net::owned_fd const nonsense = net::begin_connect(at, {});
  while (net::connect_outcome(nonsense.get()) == EINPROGRESS) sched_yield();
  REQUIRE(send(nonsense.get(), "\x16\x03\x01\x02", 4, MSG_NOSIGNAL) == 4);  // TLS at once
  auto stranger = call("the secret of somebody else");
  CHECK(outcome(stranger) == status::mismatch);
  while (serves.door().count().refused < 2) serves.progress();
  CHECK(serves.door().count().welcomed == 0);

  // Who has the secret, but does not encrypt, says nothing that is believed; who does both is a rank.
  auto one = call(the_secret), other = call(the_secret);
  REQUIRE(outcome(one) == status::ok);
  std::byte said[bootstrap::registration::bytes_count];
  mine.encode(said);
  net::owned_fd const plain = one.take();
  REQUIRE(send(plain.get(), said, sizeof said, MSG_NOSIGNAL) == sizeof said);
  while (!net::ready_before(plain.get(), POLLIN, now_us() + 1'000)) serves.progress();
  CHECK(serves.missing().kind == bootstrap::news_kind::never_came);
  REQUIRE(outcome(other) == status::ok);
  net::line encrypted(other, &tls);
  while (encrypted.greet() == status::pending) serves.progress();
  REQUIRE(encrypted.send(said) == sizeof said);
  while (serves.missing().kind == bootstrap::news_kind::never_came) serves.progress();
}
