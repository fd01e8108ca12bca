// SPDX-License-Identifier: Apache-2.0
// connect() as a launcher's processes call it: forked processes with an environment of their own,
// in any order, late, missing, doubled, wrong, and among strangers at the rendezvous.
// ctest: LABELS waits
#include "collx/bootstrap/connect.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "bootstrap/connecting.hpp"
#include "bootstrap/folder.hpp"
#include "collx/core/random.hpp"

using namespace connecting;

TEST_CASE("connect: without a launcher there is one rank") {
  CHECK(said_with({}) == "joined as 0 of 1");
  CHECK(said_with({{"RANK", "0"}, {"WORLD_SIZE", "1"}}) == "joined as 0 of 1");
}

TEST_CASE("connect: ranks started in any order meet, again and again at one path") {
  folder const place;
  std::string const path = place.at("meet");
  collx::replayable_random random(1);
  for (rank_t const size : {2, 2, 3, 5, 8}) {
    std::vector<rank_t> order;
    for (rank_t r = 0; r < size; ++r)
      order.insert(order.begin() + random.below(static_cast<std::uint32_t>(r) + 1), r);
    std::vector<process> ranks;
    for (rank_t const r : order) ranks.emplace_back(of_rank(r, size, path));
    check_all_joined(ranks, order, size);
    CHECK_FALSE(exists(path));
  }
}

TEST_CASE("connect: processes connect again, while they have worlds that failed") {
  folder const place;
  std::vector<process> ranks;
  for (rank_t r = 0; r < 3; ++r) ranks.emplace_back(of_rank(r, 3, place.at("meet")), 4);
  check_all_joined(ranks, {0, 1, 2}, 3);
}

TEST_CASE("connect: rank 0 may come last, and so may another") {
  folder const place;
  std::string const path = place.at("meet");
  for (std::vector<rank_t> const& order : {std::vector<rank_t>{1, 2, 0}, std::vector<rank_t>{0, 1, 2}}) {
    std::vector<process> ranks;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + 1 == order.size()) poll(nullptr, 0, 50);  // the others are waiting by then, or will be
      ranks.emplace_back(of_rank(order[i], 3, path));
    }
    check_all_joined(ranks, order, 3);
  }
}

TEST_CASE("connect: a rank that never comes is named when the time is over") {
  folder const place;
  std::string const path = place.at("meet");
  // Rank 2's time begins later: unless rank 0 is held up, it hears it from that one.
  process zero(of_rank(0, 3, path, "300000")), two(of_rank(2, 3, path, "300000"));
  check_error(zero.said(), {"rank 1 never came", "start all 3 ranks", "COLLX_TIMEOUT_US"});
  check_error(two.said(), {"rank 2 of 3: start-up:", "rank 1 never joined", "start all 3 ranks"});
  CHECK_FALSE(exists(path));
}

TEST_CASE("connect: without rank 0 the others say so") {
  folder const place;
  check_error(said_with(of_rank(1, 2, place.at("meet"), "100000")),
              {"rank 1 of 2", "rank 0 does not answer", "COLLX_RENDEZVOUS"});
}

TEST_CASE("connect: a second process with the same RANK is refused and told why") {
  folder const place;
  std::string const path = place.at("meet");
  process zero(of_rank(0, 3, path)), one(of_rank(1, 3, path)), again(of_rank(1, 3, path));
  // While rank 2 is missing, the only one to end is the one that was refused.
  pollfd both[] = {{one.text(), POLLIN, 0}, {again.text(), POLLIN, 0}};
  REQUIRE(poll(both, 2, -1) == 1);
  bool const first_refused = both[0].revents != 0;
  check_error((first_refused ? one : again).said(), {"rank 1 of 3", "taken", "a RANK of its own"});
  process two(of_rank(2, 3, path));
  CHECK((first_refused ? again : one).said() == "joined as 1 of 3");
  CHECK(two.said() == "joined as 2 of 3");
  CHECK(zero.said() == "joined as 0 of 3");
}

TEST_CASE("connect: another WORLD_SIZE is refused and named") {
  folder const place;
  std::string const path = place.at("meet");
  process zero(of_rank(0, 2, path)), wrong(of_rank(1, 3, path));
  check_error(wrong.said(), {"WORLD_SIZE", "give all ranks the same"});
  process right(of_rank(1, 2, path));
  CHECK(zero.said() == "joined as 0 of 2");
  CHECK(right.said() == "joined as 1 of 2");
}

TEST_CASE("connect: wrong numbers in the environment are refused by name, with what would be right") {
  auto const with = [](environment changes) {
    environment all = of_rank(0, 2, "/tmp/never_used");
    for (auto const& [name, value] : changes) all[name] = value;
    return said_with(all);
  };
  for (char const* wrong : {"", "one", "1x", " ", "0x", "-1", "2", "99999999999999999999", "1.0"}) {
    CAPTURE(wrong);
    check_error(with({{"RANK", wrong}}), {"RANK", "whole number from 0 to 1"});
  }
  for (char const* wrong : {"0", "-2", "1000000000", "two", ""}) {
    CAPTURE(wrong);
    check_error(with({{"WORLD_SIZE", wrong}}), {"WORLD_SIZE", "whole number from 1 to 4096"});
  }
  check_error(with({{"COLLX_TIMEOUT_US", "0"}}), {"COLLX_TIMEOUT_US"});
  check_error(with({{"COLLX_TIMEOUT_US", "soon"}}), {"COLLX_TIMEOUT_US"});
  check_error(with({{"COLLX_STAGING_BYTES", "1"}}), {"COLLX_STAGING_BYTES"});
  check_error(with({{"COLLX_HEAP_BYTES", "1 GiB"}}), {"COLLX_HEAP_BYTES"});
  check_error(with({{"LOCAL_RANK", "1"}}), {"LOCAL_RANK differs from RANK", "one host"});
}

TEST_CASE("connect: a missing variable is named") {
  environment all = of_rank(0, 2, "unused");
  all.erase("COLLX_RENDEZVOUS");
  check_error(said_with(all), {"COLLX_RENDEZVOUS is not set"});
  all = of_rank(0, 2, "unused");
  all.erase("RANK");
  check_error(said_with(all), {"WORLD_SIZE is set but RANK is not"});
  all = of_rank(0, 2, "unused");
  all.erase("WORLD_SIZE");
  check_error(said_with(all), {"RANK is set but WORLD_SIZE is not"});
}

TEST_CASE("connect: paths that cannot be a rendezvous are refused with the path") {
  folder const place;
  for (rank_t const rank : {0, 1}) {
    CAPTURE(rank);
    check_error(said_with(of_rank(rank, 2, "/tmp/" + std::string(200, 'x'), "100000")),
                {"COLLX_RENDEZVOUS is \"/tmp/xxx", "set it to a path of 1 to 107"});
    check_error(said_with(of_rank(rank, 2, "", "100000")), {"COLLX_RENDEZVOUS is \"\""});
    check_error(said_with(of_rank(rank, 2, place.at("no/such/folder"), "100000")),
                {place.at("no/such/folder")});
  }
  check_error(said_with(of_rank(0, 2, "/proc/meet", "100000")), {"/proc/meet"});  // not even for root
  for (char const* network : {"tcp:node0:29500", "file:/shared/x"})
    check_error(said_with(of_rank(0, 2, network)),
                {network, "ranks of transport::tcp meet", "path of a socket"});
}

TEST_CASE("connect: a file that is no socket is never deleted") {
  folder const place;
  std::string const path = place.at("meet");
  std::ofstream(path) << "precious";
  check_error(said_with(of_rank(0, 2, path, "200000")), {path, "COLLX_RENDEZVOUS"});
  std::string content;
  std::ifstream(path) >> content;
  CHECK(content == "precious");
}

TEST_CASE("connect: the socket of a job that was killed is in nobody's way") {
  folder const place;
  std::string const path = place.at("meet");
  {
    process killed(of_rank(0, 2, path));
    wait_until_bound(path);
    close(connected_to(path));
  }  // SIGKILL
  CHECK(exists(path));
  std::vector<process> ranks;
  ranks.emplace_back(of_rank(0, 2, path));
  ranks.emplace_back(of_rank(1, 2, path));
  check_all_joined(ranks, {0, 1}, 2);
}

TEST_CASE("connect: a path on which another job waits is refused, and that job goes on") {
  folder const place;
  std::string const path = place.at("meet");
  process zero(of_rank(0, 2, path));
  close(connected_to(path));
  check_error(said_with(of_rank(0, 2, path, "500000")), {path, "of its own for each job"});
  process one(of_rank(1, 2, path));
  CHECK(zero.said() == "joined as 0 of 2");
  CHECK(one.said() == "joined as 1 of 2");
}

TEST_CASE("connect: strangers who send nonsense, or nothing, or leave, only cost time") {
  folder const place;
  std::string const path = place.at("meet");
  process zero(of_rank(0, 3, path));
  collx::replayable_random random(5);
  std::vector<int> strangers;
  for (std::size_t const bytes : {1u, 4u, 24u, 24u, 200u, 0u, 0u}) {
    strangers.push_back(connected_to(path));
    std::string nonsense(bytes, '\0');
    for (char& each : nonsense) each = static_cast<char>(random.next());
    (void)!send(strangers.back(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
  }
  // A right greeting with a rank that is not there.
  for (rank_t const rank : {-1, 0, 3, 1'000'000}) {
    strangers.push_back(connected_to(path));
    collx::bootstrap::detail::hello wrong{};
    wrong.rank = rank;
    wrong.size = 3;
    (void)!send(strangers.back(), &wrong, sizeof wrong, MSG_NOSIGNAL);
  }
  close(connected_to(path));
  std::vector<process> others;
  others.emplace_back(of_rank(1, 3, path));
  others.emplace_back(of_rank(2, 3, path));
  check_all_joined(others, {1, 2}, 3);
  CHECK(zero.said() == "joined as 0 of 3");
  for (int const fd : strangers) close(fd);
}
