// SPDX-License-Identifier: Apache-2.0
// Somebody between a rank and rank 0 reads or changes what they say while they meet. With TLS he reads
// nothing, and what he changes ends the meeting. Without, the job may not start, but what it does after that
// is right.
// component: tcp
// ctest: LABELS waits
// thread sanitizer: no, each rank is a process of one thread
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/tcp.hpp"
#include "collx/collective/broadcast.hpp"
#include "net/reserved_port.hpp"
#include "shared_with_forks.hpp"

namespace {

using collx::rank_t;
namespace bootstrap = collx::bootstrap;
namespace net = collx::net;

// One bit of all that goes one way.
struct change {
  char const* of;
  bool tls;
  bool by_rank_0;
  std::size_t place;
  bool is_fatal;  // it ends the job, at its deadline perhaps; else nothing
};
constexpr std::size_t nowhere = ~std::size_t{0};

// Behind the handshake: 72 + 32 bytes of the rank, 48 + 36 of rank 0 (net/handshake.hpp).
constexpr std::size_t to_0 = 104, from_0 = 84, port_at = 3;
constexpr std::size_t direction_at = from_0 + bootstrap::receipt::bytes_count + bootstrap::news::bytes_count;
constexpr std::size_t host_at = net::address::wire_bytes + 7, random_at = 20;  // in a hello of TLS
constexpr change changes[] = {
    {"the port of the rank's gate", false, false, to_0 + port_at, true},
    {"the number of the rank's host", false, false, to_0 + host_at, false},
    {"the meeting's number", false, true, from_0 + bootstrap::news::bytes_count + 7, true},
    {"the port of the rank's parent", false, true, direction_at + port_at, true},
    {"the rank's hello", true, false, to_0 + random_at, true},
    {"rank 0's hello", true, true, from_0 + random_at, true},
    {"what follows that", true, true, from_0 + 200, true},
};

// What somebody who listens finds out.
struct overheard {
  std::atomic<std::size_t> bytes{0}, hosts{0};  // all, and how often the number of this host is among them
};

// Everything that goes one way, searched for the number of this host.
class ear {
 public:
  explicit ear(overheard& into) : into_(into) { net::put_u64(wanted_, bootstrap::sharing_identity()); }
  void hear(std::string_view more) {
    std::string_view const wanted(reinterpret_cast<char const*>(wanted_), sizeof wanted_);
    into_.bytes += more.size();
    seen_.append(more);
    for (std::size_t at; (at = seen_.find(wanted)) != std::string::npos; ++into_.hosts)
      seen_.erase(0, at + wanted.size());
  }

 private:
  overheard& into_;
  std::byte wanted_[8];
  std::string seen_;
};

// A process that ends with this one, and may say something to it.
struct process {
  pid_t pid = 0;
  net::owned_fd text;

  template <class Main>
  explicit process(Main const& its_main) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    text.reset(ends[0]);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(100);
      std::string const said = its_main();
      (void)!write(ends[1], said.data(), said.size());
      _exit(0);
    }
    close(ends[1]);
  }
  process(process&& other) noexcept : pid(std::exchange(other.pid, 0)), text(std::move(other.text)) {}
  ~process() {
    if (pid != 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  }
  // All that it says until its end.
  std::string said() {
    std::string all;
    char part[512];
    for (ssize_t got; (got = read(text.get(), part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(got));
    return all;
  }
};

// What one end says goes to the other one, but for one bit. Never ends.
std::string sit_between(net::owned_fd const& door, net::address const& zero, change const& what,
                        overheard& heard) {
  ear ears[2] = {ear(heard), ear(heard)};
  std::vector<net::owned_fd> ends;  // of rank 1 and of rank 0, in turn
  std::size_t passed = 0;
  for (;;) {
    std::vector<pollfd> all{{door.get(), POLLIN, 0}};
    for (net::owned_fd const& each : ends) all.push_back({each.get(), POLLIN, 0});
    (void)::poll(all.data(), all.size(), -1);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      if (all[i + 1].revents == 0) continue;
      char some[1000];
      ssize_t const got = recv(ends[i].get(), some, sizeof some, MSG_DONTWAIT);
      if (got <= 0) {
        ends[i].reset(), ends[i ^ 1].reset();
        continue;
      }
      auto const bytes = static_cast<std::size_t>(got);
      ears[i % 2].hear({some, bytes});
      if ((i % 2 == 1) == what.by_rank_0) {
        if (passed <= what.place && what.place < passed + bytes) some[what.place - passed] ^= 1;
        passed += bytes;
      }
      (void)!send(ends[i ^ 1].get(), some, bytes, MSG_NOSIGNAL);
    }
    if (all[0].revents == 0) continue;
    net::owned_fd caller(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    net::owned_fd gate = net::begin_connect(zero, {});
    int outcome = gate ? EINPROGRESS : errno;
    while (outcome == EINPROGRESS && (outcome = net::connect_outcome(gate.get())) == EINPROGRESS)
      sched_yield();
    if (!caller || outcome != 0) continue;  // rank 1 dials again
    ends.push_back(std::move(caller));
    ends.push_back(std::move(gate));
  }
}

// "right", or the error.
std::string live(rank_t rank, net::address const& zero, change const& what) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("COLLX_RENDEZVOUS", (std::string("tcp:") + net::address_text(zero).text).c_str(), 1);
  setenv("COLLX_SECRET", "the secret of these tests", 1);
  setenv("COLLX_TLS", what.tls ? "1" : "0", 1);
  setenv("COLLX_TIMEOUT_US", what.is_fatal ? "4000000" : "60000000", 1);
  try {
    auto world = collx::connect<collx::transport::tcp>();
    std::vector<int> values(1000, rank == 0 ? 77 : 0);
    collx::broadcast(world, std::span(values), 0);
    for (int const each : values)
      if (each != 77) return "wrong";
    return "right";
  } catch (std::exception const& failure) {
    return failure.what();
  }
}

}  // namespace

TEST_CASE("tampering: a meeting that somebody changes ends in an error, or in a job that is right") {
  shared_with_forks<overheard> const heard;
  std::vector<reserved_port> ports(std::size(changes));
  std::vector<process> between, ranks;
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    net::owned_fd const door = net::listen_at(net::address::loopback(0), {});
    net::address const zero = ports[i].where(), changed = net::local_address(door.get());
    between.emplace_back([&] { return sit_between(door, zero, changes[i], *heard); });
    ranks.emplace_back([&] { return live(0, zero, changes[i]); });
    ranks.emplace_back([&] { return live(1, changed, changes[i]); });
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    change const& what = changes[i / 2];
    std::string const said = ranks[i].said();
    CAPTURE(std::string(what.of));
    CHECK_MESSAGE((what.is_fatal ? said.starts_with("collx: ") : said == "right"), said);
  }
}

TEST_CASE("tampering: with TLS nobody between two ranks reads what they say while they meet") {
  for (bool const tls : {false, true}) {
    CAPTURE(tls);
    change const nothing{"nothing", tls, false, nowhere, false};
    shared_with_forks<overheard> const heard;
    reserved_port const port;
    net::owned_fd const door = net::listen_at(net::address::loopback(0), {});
    net::address const zero = port.where(), listened = net::local_address(door.get());
    process const between([&] { return sit_between(door, zero, nothing, *heard); });
    process first([&] { return live(0, zero, nothing); });
    process second([&] { return live(1, listened, nothing); });
    CHECK(first.said() == "right");
    CHECK(second.said() == "right");
    CHECK(heard->bytes > 188 + 100);  // the handshake and more
    CHECK((heard->hosts != 0) == !tls);
  }
}
