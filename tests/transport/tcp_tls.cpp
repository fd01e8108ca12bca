// SPDX-License-Identifier: Apache-2.0
// Two ranks, and somebody on the path between them who reads all, changes a byte, cuts the line, or lets
// nothing through.
// component: tcp
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/tcp_processes.hpp"
#include "collx/collx.hpp"
#include "sample.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::tcp;
using collx::transport::tcp_settings;
namespace net = collx::net;
using communicator = collx::communicator<tcp>;

constexpr char the_secret[] = "the secret of these tests";
constexpr std::uint64_t deadline_us = 80'000'000;

// Stands between callers and a gate: what it accepts it dials on, and carries bytes both ways.
class middleman {
 public:
  struct plan {
    std::size_t flips_at = ~std::size_t{0};  // of all bytes that go to the gate
    std::size_t cuts_at = ~std::size_t{0};
    std::size_t keeps_from = ~std::size_t{0};  // of what a connection says to the gate; then nothing goes on
  };

  middleman(net::address const& gate, plan const& how)
      : gate_(gate),
        how_(how),
        door_(net::listen_at(net::address::loopback(0), {})),
        thread_([this] { work(); }) {}
  ~middleman() { stop(); }
  void stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] net::address where() const { return net::local_address(door_.get()); }
  struct account {
    std::string seen;           // both ways
    std::size_t forwarded = 0;  // bytes that went to the gate
    std::size_t kept = 0;       // that went nowhere
  };
  // After stop().
  [[nodiscard]] account const& did() const { return did_; }

 private:
  struct connection {
    net::owned_fd end[2];  // towards the caller, towards the gate
    std::size_t said = 0;  // to the gate
  };

  void work() {
    while (!done_) {
      std::vector<pollfd> what{{door_.get(), POLLIN, 0}};
      for (connection const& each : all_)
        for (net::owned_fd const& end : each.end) what.push_back({end.get(), POLLIN, 0});
      if (::poll(what.data(), what.size(), 10) <= 0) continue;
      if (what[0].revents != 0) accept();
      for (std::size_t i = 1; i < what.size(); ++i)
        if (what[i].revents != 0) carry(all_[(i - 1) / 2], (i - 1) % 2);
    }
  }
  void accept() {
    net::owned_fd caller(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    net::owned_fd gate = net::begin_connect(gate_, {});
    while (gate && net::connect_outcome(gate.get()) == EINPROGRESS) sched_yield();
    if (caller && gate) all_.push_back({{std::move(caller), std::move(gate)}, 0});
  }
  // What one end says goes to the other one, all of it: a middleman waits.
  void carry(connection& its, std::size_t from) {
    char some[16'384];
    ssize_t const got = its.end[from] ? recv(its.end[from].get(), some, sizeof some, MSG_DONTWAIT) : 0;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return its.end[0].reset(), its.end[1].reset();
    auto const bytes = static_cast<std::size_t>(got);
    if (from == 0) its.said += bytes;
    if (its.said > how_.keeps_from) return void(did_.kept += bytes);
    if (from == 0) {
      if (did_.forwarded <= how_.flips_at && how_.flips_at < did_.forwarded + bytes)
        some[how_.flips_at - did_.forwarded] ^= 4;
      did_.forwarded += bytes;
      if (did_.forwarded > how_.cuts_at)
        for (connection& each : all_) each.end[0].reset(), each.end[1].reset();
    }
    did_.seen.append(some, bytes);
    for (std::size_t sent = 0; its.end[1 - from] && sent < bytes;) {
      ssize_t const n = send(its.end[1 - from].get(), some + sent, bytes - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      else if (errno == EAGAIN)
        (void)net::ready_before(its.end[1 - from].get(), POLLOUT, collx::now_us() + 10'000);
      else its.end[1 - from].reset();
    }
  }

  net::address gate_;
  plan how_;
  net::owned_fd door_;
  std::vector<connection> all_;
  account did_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

net::credentials keys() { return {net::secret::of(std::span(the_secret, sizeof the_secret - 1)), 1}; }

// Of rank `r` of two. `known`: where it looks for the other one.
auto* connector_of(rank_t r, net::owned_fd door, net::address const& known, tcp_settings const& chosen) {
  auto const protects = chosen.protection();
  collx::array<net::address> addresses(2);
  addresses[static_cast<std::size_t>(1 - r)] = known;
  net::expectation const whom{r, 2, net::mask_of(net::purpose::link),
                              static_cast<std::uint32_t>(chosen.limits.connections()), protects};
  return new collx::transport::sockets::network_connector(r, std::move(addresses),
                                                          net::gate(std::move(door), keys(), whom), keys(),
                                                          {}, chosen.common.timeout_us, protects);
}

// Two ranks, threads of this process; all that rank 0 says to rank 1 and hears from it goes through the hands
// of a middleman. Returns what he has done.
template <class RankMain>
middleman::account with_middleman(tcp_settings const& chosen, middleman::plan const& how,
                                  RankMain const& rank_main) {
  net::owned_fd doors[2];
  for (net::owned_fd& door : doors) door = net::listen_at(net::address::loopback(0), {});
  net::address const gates[2] = {net::local_address(doors[0].get()), net::local_address(doors[1].get())};
  middleman between(gates[1], how);
  std::thread ranks[2];
  watchdog dog;
  for (rank_t r = 0; r < 2; ++r)
    ranks[r] = std::thread([&, r] {
      // Only rank 0 dials.
      auto* const links = connector_of(r, std::move(doors[r]), r == 0 ? between.where() : gates[0], chosen);
      communicator comm = tcp::join(r, 2, chosen, links);
      rank_main(comm);
    });
  for (std::thread& rank : ranks) rank.join();
  between.stop();
  return between.did();
}

tcp_settings with(bool tls, int flows = 1) {
  tcp_settings chosen;
  chosen.common.timeout_us = deadline_us;
  chosen.common.staging_bytes = 256 * 1024;
  if (flows > 1) chosen.limits = {.flows = flows, .slice_bytes = 32 * 1024, .slices_per_flow = 2};
  chosen.tls = tls;
  return chosen;
}

constexpr char pattern[] = "what only these two ranks may read";

// Rank 0's message to rank 1, and back; short ones, and ones of many records.
void say_pattern(communicator& comm) {
  for (std::size_t const bytes : {sizeof pattern, std::size_t{300'000}}) {
    std::string text;
    while (text.size() < bytes) text += pattern;
    for (rank_t root : {0, 1}) {
      std::string here = comm.rank() == root ? text : std::string(text.size(), ' ');
      collx::broadcast(comm, std::span(here.data(), here.size()), root);
      if (here != text) throw std::runtime_error("something else has come");
    }
  }
}

struct ending {
  status code = status::ok;
  bool was_right = true;
  std::uint64_t took_us = 0;
};

// All-reduces until it fails, and says how.
ending until_it_fails(communicator& comm) {
  ending how;
  std::vector<int> values(50'000);
  for (int round = 0; round < 500; ++round) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i) + comm.rank();
    std::uint64_t const before_us = collx::now_us();
    try {
      collx::all_reduce(comm, std::span(values), collx::sum);
    } catch (collx::error const& failure) {
      how.code = failure.report().code;
      how.took_us = collx::now_us() - before_us;
      return how;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      how.was_right = how.was_right && values[i] == 2 * static_cast<int>(i) + 1;
  }
  return how;
}

// `place`: of the byte that was changed, or before which the line was cut, if so many were sent at all.
void check_lost(ending const& one, ending const& other, middleman::account const& his, std::size_t place) {
  CHECK(his.forwarded > place);
  for (ending const& each : {one, other}) {
    CHECK(each.was_right);
    CHECK((each.code == status::peer_lost || each.code == status::aborted));
    CHECK(each.took_us < deadline_us / 2);
  }
}

}  // namespace

TEST_CASE("tcp: with TLS nobody on the path reads what ranks tell each other; without, everybody does") {
  for (bool const tls : {false, true}) {
    std::string const seen = with_middleman(with(tls), {}, say_pattern).seen;
    CHECK(seen.size() > 600'000);
    CHECK((seen.find(pattern) == std::string::npos) == tls);
    CHECK((seen.find("e two ran") == std::string::npos) == tls);
    // Extension 43 of TLS's greetings: all that the dialler can speak, and what the listener chose, is 1.3.
    for (std::string const& version : {std::string("\0\x2b\0\3\2\3\4", 7), std::string("\0\x2b\0\2\3\4", 6)})
      CHECK((seen.find(version) != std::string::npos) == tls);
  }
  CHECK(with_middleman(with(true, 3), {}, say_pattern).seen.find(pattern) == std::string::npos);
}

TEST_CASE("tcp: with TLS a byte that is changed on the path is noticed by both ranks, and never used") {
  for (std::size_t const place : {1'000u, 2'000u, 50'000u, 777'777u}) {
    CAPTURE(place);
    ending how[2];
    middleman::account const his = with_middleman(with(true), {.flips_at = place}, [&](communicator& comm) {
      how[comm.rank()] = until_it_fails(comm);
    });
    check_lost(how[0], how[1], his, place);
  }
}

TEST_CASE("tcp: with TLS a line that is cut is a lost peer") {
  for (std::size_t const place : {3'000u, 333'333u}) {
    CAPTURE(place);
    ending how[2];
    middleman::account const his = with_middleman(with(true, 2), {.cuts_at = place}, [&](communicator& comm) {
      how[comm.rank()] = until_it_fails(comm);
    });
    check_lost(how[0], how[1], his, place);
  }
}

// Each connection stands, to the kernel, and the other side has proved who it is: TLS's handshake is ended by
// the deadline alone.
TEST_CASE("tcp: with TLS a handshake that does not go on ends at the deadline, on both ranks") {
  constexpr std::size_t proven = net::conversation::proof_at - 48 + net::digest::bytes_count;
  tcp_settings chosen = with(true);
  chosen.common.timeout_us = 3'000'000;  // time for a busy machine to come to TLS
  ending how[2];
  middleman::account const his = with_middleman(chosen, {.keeps_from = proven}, [&](communicator& comm) {
    how[comm.rank()] = until_it_fails(comm);
  });
  CHECK(his.forwarded >= proven);
  CHECK(his.kept > 0);
  for (ending const& each : how) {
    CHECK(each.was_right);
    CHECK((each.code == status::timeout || each.code == status::peer_lost || each.code == status::aborted));
    CHECK(each.took_us < deadline_us / 2);
  }
}

// Messages may then be answered while one behind them, encrypted with them, is stuck.
TEST_CASE("tcp: with TLS and sockets that hold little, no answer comes before its message") {
  setenv("COLLX_SECRET", the_secret, 1);
  setenv("COLLX_TCP_BUFFER_BYTES", "4096", 1);
  tcp_settings chosen = with(true);
  chosen.common.staging_bytes = 48 * 1024;  // so several messages are on their way at once
  auto const codes = watched::on_tcp_processes(
      2,
      [](communicator& comm) {
        std::vector<int> values(250'000);
        // Each takes hundreds of turns, of ranks that wait for each other: minutes where the machine is busy.
        constexpr int rounds = sample::is_sample ? 4 : 20;
        for (int round = 0; round < rounds; ++round) {
          std::fill(values.begin(), values.end(), comm.rank() == round % 2 ? round : -1);
          collx::broadcast(comm, std::span(values), round % 2);
          for (int const each : values)
            if (each != round) throw std::runtime_error("something else has come");
        }
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
  unsetenv("COLLX_TCP_BUFFER_BYTES");
  unsetenv("COLLX_SECRET");
}

// Then it lies where no epoll set sees it, and nothing else may come for long.
TEST_CASE("tcp: with TLS what comes with the end of the handshake is heard") {
  tcp_settings const chosen = with(true);
  net::owned_fd doors[2];
  for (net::owned_fd& door : doors) door = net::listen_at(net::address::loopback(0), {});
  net::address const gates[2] = {net::local_address(doors[0].get()), net::local_address(doors[1].get())};
  communicator one = tcp::join(1, 2, chosen, connector_of(1, std::move(doors[1]), gates[0], chosen));
  auto& end = one.engine().endpoint();
  // Rank 0 by hand: its connection for control, and at once, before rank 1 looks again, an alarm.
  std::unique_ptr<collx::transport::sockets::network_connector> const zero(
      connector_of(0, std::move(doors[0]), gates[1], chosen));
  zero->dial(1, 0, 1);
  collx::transport::sockets::connection to_one;
  std::uint64_t const until_us = collx::now_us() + deadline_us;
  while (!zero->poll(to_one) && collx::now_us() < until_us) end.progress();
  REQUIRE(to_one.secured);
  CHECK(end.interrupted(collx::no_rank) == status::ok);
  collx::transport::sockets::frame alarm;
  alarm.kind = collx::transport::sockets::frame_kind::alarm;
  alarm.message = static_cast<std::uint32_t>(status::aborted);
  std::byte head[collx::transport::sockets::frame_bytes];
  encode(alarm, head);
  iovec part{head, sizeof head};
  REQUIRE(to_one.secured->send(&part, 1) == sizeof head);
  while (end.interrupted(collx::no_rank) == status::ok && collx::now_us() < until_us) end.progress();
  CHECK(end.interrupted(collx::no_rank) == status::aborted);
}

TEST_CASE("tcp: TLS is what COLLX_TLS says, and nobody's wish by default") {
  unsetenv("COLLX_TLS");
  CHECK_FALSE(tcp_settings::from_environment().tls);
  for (char const* const value : {"0", "1", "yes"}) {
    setenv("COLLX_TLS", value, 1);
    if (value[0] == 'y') CHECK_THROWS_AS((void)tcp_settings::from_environment(), collx::error);
    else CHECK(tcp_settings::from_environment().tls == (value[0] == '1'));
  }
  unsetenv("COLLX_TLS");
}

TEST_CASE("tcp: TLS without a secret is refused before anything is sent") {
  unsetenv("COLLX_SECRET");
  unsetenv("COLLX_SECRET_FILE");
  try {
    (void)watched::on_tcp_processes(
        2, [](communicator&) {}, with(true));
    FAIL("it was not refused");
  } catch (collx::error const& refused) {
    CHECK(refused.report().code == status::bad_argument);
    CHECK(std::string(refused.what()).find("COLLX_TLS is 1, but there is no secret") != std::string::npos);
  }
}
