// SPDX-License-Identifier: Apache-2.0
// While a job runs, 10,000 connections that say anything: the same results, and nothing lost. And strangers
// of every kind, each of which is counted as what it is.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "collx/bootstrap/tcp_processes.hpp"
#include "collx/collx.hpp"
#include "collx/core/random.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::tcp>;
namespace net = collx::net;
constexpr std::uint64_t patience_us = 30'000'000;
constexpr rank_t ranks = 3, ranks_most = 6;
constexpr int strangers = 10'000;
constexpr std::uint64_t crowd = 300;

struct shared {
  std::atomic<int> ports[ranks_most];
  std::atomic<int> ended{0};
  std::atomic<bool> is_over{false};  // nobody need come any more
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> came[ranks_most];     // to each gate
  std::atomic<std::uint64_t> counted[ranks_most];  // by it

  bool has_counted_all(rank_t rank) const { return counted[rank] >= came[rank]; }
};

shared& shared_by_processes() {
  static shared* const all =
      new (mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) shared;
  return *all;
}

// Where this process listens.
int own_port() {
  for (int fd = 3; fd < 200; ++fd) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
    return collx::net::local_address(fd).port;
  }
  return 0;
}

net::owned_fd knock(int port) {
  net::owned_fd fd = net::begin_connect(net::address::loopback(static_cast<std::uint16_t>(port)), {});
  if (!fd || !net::ready_before(fd.get(), POLLOUT, collx::now_us() + patience_us)) _exit(9);
  return fd;
}

// Most say nothing or something else, some begin like one of ours, and some stay for a while. A crowd stands
// at each gate, but never more than its queue holds: whom the system turns away nobody counts.
void besiege(shared& all, rank_t size, int count) {
  collx::replayable_random random(7);
  for (rank_t r = 0; r < size; ++r)
    while (all.ports[r] == 0 && !all.is_over) sched_yield();
  int open[50];
  for (int& fd : open) fd = -1;
  for (int i = 0; i < count && !all.is_over; ++i) {
    auto const gate = static_cast<rank_t>(random.below(static_cast<std::uint32_t>(size)));
    for (std::uint64_t const until_us = collx::now_us() + patience_us;
         all.came[gate] - all.counted[gate] >= crowd && !all.is_over; sched_yield())
      if (collx::now_us() >= until_us) _exit(8);
    int& fd = open[i % 50];
    // Most end without a trace: a system remembers others for a minute, and may have no more ports.
    linger const at_once{i % 10 != 0, 0};
    if (fd >= 0) (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(all.ports[gate].load()));
    if (::connect(fd, reinterpret_cast<sockaddr const*>(&at), sizeof at) != 0) {
      ++all.refused;
      continue;
    }
    ++all.came[gate];
    unsigned char text[200];
    for (unsigned char& c : text) c = static_cast<unsigned char>(random.below(256));
    if (random.below(4) == 0) std::memcpy(text, "collxtcp", 8);
    std::size_t const bytes = random.below(3) == 0 ? 0 : random.below(sizeof text);
    if (bytes != 0) (void)!::send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  for (int const fd : open)
    if (fd >= 0) close(fd);
}

// ---- a scan, in every way there is ----------------------------------------------------------------

constexpr char job_secret[] = "the secret of this running job";
constexpr std::uint64_t closed = 10, reset = 10, half_closed = 5, silent = 3, halting = 2, slow = 2;
constexpr std::uint64_t late_in_all = silent + halting + slow;
// Of single bytes only one could begin a handshake.
constexpr std::uint64_t left_in_all = closed + reset + half_closed + 1, refused_in_all = 255 + 5;

net::dialling_side begin_of(net::credentials const& with, rank_t from, rank_t to) {
  std::byte nonce[net::conversation::nonce_bytes];
  if (!net::random_bytes(nonce)) _exit(9);
  return {with, net::introduction{net::purpose::link, from, to, 2, 0, 2}, nonce};
}

// Says and hears what belongs to a handshake, `part` bytes at a time, to its end; returns all that it said.
std::vector<std::byte> converse(int port, net::dialling_side side, net::credentials const& with,
                                std::size_t part) {
  net::owned_fd const fd = knock(port);
  std::vector<std::byte> said;
  for (;;) {
    auto const out = side.to_send().first(std::min(part, side.to_send().size()));
    if (!out.empty()) {
      if (send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
        return said;
      said.insert(said.end(), out.begin(), out.end());
      side.moved(out.size(), with);
      continue;
    }
    auto const in = side.to_receive();
    if (in.empty() || !net::ready_before(fd.get(), POLLIN, collx::now_us() + patience_us)) return said;
    ssize_t const got = recv(fd.get(), in.data(), in.size(), 0);
    if (got <= 0) return said;
    side.moved(static_cast<std::size_t>(got), with);
  }
}

void say(net::owned_fd const& fd, std::span<std::byte const> what) {
  if (send(fd.get(), what.data(), what.size(), MSG_NOSIGNAL) < 0) _exit(9);
}

// Until the system at the other side has it: to that the connection stands by then.
void say_heard(net::owned_fd const& fd, std::byte what) {
  say(fd, {&what, 1});
  std::uint64_t const until_us = collx::now_us() + patience_us;
  for (int unheard = 1; unheard != 0; sched_yield())
    if (ioctl(fd.get(), TIOCOUTQ, &unheard) != 0 || collx::now_us() >= until_us) _exit(9);
}

// Until the other side has closed.
void hear_out(net::owned_fd const& fd) {
  char some[64];
  while (net::ready_before(fd.get(), POLLIN, collx::now_us() + patience_us) &&
         recv(fd.get(), some, sizeof some, 0) > 0) {
  }
}

// Those who say nothing, who stop in the middle of a right greeting, and (at the end) who will say it byte by
// byte, and would take longer for it than a gate waits.
void come_to_stay(int port, rank_t rank, std::uint64_t job, std::vector<net::owned_fd>& stay) {
  net::credentials const right(net::secret::of(std::span(job_secret, std::strlen(job_secret))), job);
  auto const side = begin_of(right, static_cast<rank_t>(1 - rank), rank);
  for (std::uint64_t i = 0; i < late_in_all; ++i) stay.push_back(knock(port));
  for (std::uint64_t i = silent; i < silent + halting; ++i)
    say(stay[stay.size() - late_in_all + i], side.to_send().first(36));
}

// Says a part of a right greeting, ten bytes a second, to all of these, until none listens.
void dawdle(std::vector<net::owned_fd> const& slow_ones) {
  net::dialling_side const side = begin_of({net::secret(), 1}, 0, 1);
  for (std::byte const& each : side.to_send().first(70)) {
    for (net::owned_fd const& fd : slow_ones) (void)!send(fd.get(), &each, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)net::ready_before(slow_ones.back().get(), POLLIN, collx::now_us() + 100'000);
  }
}

void scan_silently(int port) {
  for (std::uint64_t i = 0; i < closed; ++i) knock(port);
  for (std::uint64_t i = 0; i < reset; ++i) {
    net::owned_fd const fd = knock(port);
    say_heard(fd, std::byte{'c'});  // a reset that overtakes the end of TCP's handshake is nobody's
    linger const at_once{1, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  for (std::uint64_t i = 0; i < half_closed; ++i) {
    net::owned_fd const fd = knock(port);
    shutdown(fd.get(), SHUT_WR);
    hear_out(fd);
  }
}

void scan_with_words(int port, rank_t rank, std::uint64_t job) {
  for (int byte = 0; byte < 256; ++byte) {
    std::byte const one[] = {static_cast<std::byte>(byte)};
    say(knock(port), one);
  }
  auto const peer = static_cast<rank_t>(1 - rank);
  auto const keys_of = [&](char const* secret) {
    return net::credentials(net::secret::of(std::span(secret, std::strlen(secret))), job);
  };
  net::credentials const right = keys_of(job_secret), wrong = keys_of("another secret of this length");
  (void)converse(port, begin_of(wrong, peer, rank), wrong, 1000);
  (void)converse(port, begin_of(wrong, peer, rank), wrong, 1);
  // One who knows the secret, and is no rank of this job; and one who has listened to him.
  auto const said = converse(port, begin_of(right, 7, rank), right, 1000);
  net::owned_fd const parrot = knock(port);
  say(parrot, said);
  hear_out(parrot);
  std::byte hello[72];
  auto const side = begin_of(right, peer, rank);
  std::memcpy(hello, side.to_send().data(), sizeof hello);
  hello[11] ^= std::byte{2};  // of the version
  net::owned_fd const newer = knock(port);
  say(newer, hello);
  hear_out(newer);
}

// 0: its gate has counted everybody as what he is.
int judge(net::gate::counters const& counted, rank_t rank) {
  if (counted.welcomed != (rank == 0 ? 0 : 2)) return 3;
  if (counted.left != left_in_all) return 4;
  if (counted.refused != refused_in_all) return 5;
  if (counted.late != late_in_all) return 6;
  return counted.pushed_out == 0 ? 0 : 7;
}

net::gate::counters const* counted = nullptr;

// Ranks that show there what the gate of their process has counted.
template <class RankMain>
collx::bootstrap::exit_codes on_counting_processes(collx::bootstrap::detail::loopback_doors& doors,
                                                   rank_t size, collx::transport::tcp_settings const& chosen,
                                                   RankMain&& rank_main) {
  auto const join = [&](rank_t rank) {
    auto* const links = static_cast<collx::transport::sockets::network_connector*>(doors.connector_of(rank));
    counted = &links->guests();
    return collx::transport::tcp::join(rank, size, chosen, links);
  };
  watched::limit_of_parent const limit;
  auto main_of_rank = watched::in_process(rank_main);
  return collx::bootstrap::detail::fork_ranks(size, join, main_of_rank, [&] { doors.close(); });
}

}  // namespace

TEST_CASE("tcp: 10,000 strangers at the gates of a running job change nothing") {
  shared& all = shared_by_processes();
  pid_t const siege = fork();
  if (siege == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    besiege(all, ranks, strangers);
    all.ended = 1;
    _exit(0);
  }
  auto chosen = collx::transport::tcp_settings::from_environment();
  chosen.common.timeout_us = 200'000'000;  // so none asks after another one, which would be counted, too
  collx::bootstrap::detail::loopback_doors doors(ranks, chosen);
  auto const codes = on_counting_processes(doors, ranks, chosen, [&](communicator& comm) {
    all.ports[comm.rank()] = own_port();
    std::vector<std::int64_t> values(20'000);
    bool goes_on = true;
    std::uint64_t ended_us = 0;
    for (int round = 0; goes_on || round < 100; ++round) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) + comm.rank();
      collx::all_reduce(comm, std::span(values), collx::sum);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != ranks * static_cast<std::int64_t>(i) + 3) return 2;
      // Everybody is counted by and by: a gate that nobody looks at would change nothing either.
      all.counted[comm.rank()] = comm.strangers();
      if (all.ended != 0 && ended_us == 0) ended_us = collx::now_us();
      bool const waits = ended_us != 0 && collx::now_us() - ended_us < patience_us;
      int ended = all.ended != 0 && (all.has_counted_all(comm.rank()) || !waits);
      collx::all_reduce(comm, std::span(&ended, 1), collx::min);
      goes_on = ended == 0;
    }
    return 0;
  });
  all.is_over = true;  // for one that still waits for ranks which have failed
  int how = -1;
  while (waitpid(siege, &how, 0) < 0 && errno == EINTR) {
  }
  CHECK(how == 0);
  for (int const code : codes) CHECK(code == 0);
  CHECK(all.refused.load() == 0);
  for (rank_t r = 0; r < ranks; ++r) CHECK(all.counted[r].load() == all.came[r].load());
  CHECK(all.came[0] + all.came[1] + all.came[2] == std::uint64_t{strangers});
}

TEST_CASE(
    "tcp: ranks that first have to do with each other while strangers crowd at their gates meet all the "
    "same") {
  setenv("COLLX_SECRET", job_secret, 1);
  for (bool const encrypts : {false, true}) {
    CAPTURE(encrypts);
    shared& all = *new (&shared_by_processes()) shared;
    auto chosen = collx::transport::tcp_settings::from_environment();
    chosen.tls = encrypts;
    chosen.common.timeout_us = 200'000'000;
    collx::bootstrap::detail::loopback_doors doors(ranks_most, chosen);
    pid_t const siege = fork();
    if (siege == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      doors.close();
      besiege(all, ranks_most, strangers);
      _exit(0);
    }
    auto const codes = on_counting_processes(doors, ranks_most, chosen, [&](communicator& comm) {
      rank_t const me = comm.rank();
      all.ports[me] = own_port();
      // More than a gate has room for stand there before the first of the job's.
      while (all.came[me] < 2 * net::gate::guests_max) sched_yield();
      std::vector<std::int64_t> given(ranks_most), taken(ranks_most);
      for (int round = 0; round < 20; ++round) {
        for (rank_t r = 0; r < ranks_most; ++r) given[static_cast<std::size_t>(r)] = 100 * me + r + round;
        collx::all_to_all<collx::algo::pairwise>(comm, std::span<std::int64_t const>(given),
                                                 std::span(taken));
        for (rank_t r = 0; r < ranks_most; ++r)
          if (taken[static_cast<std::size_t>(r)] != 100 * r + me + round) return 2;
        all.counted[me] = comm.strangers();
      }
      return comm.strangers() == 0 ? 3 : 0;
    });
    all.is_over = true;
    int how = -1;
    while (waitpid(siege, &how, 0) < 0 && errno == EINTR) {
    }
    CHECK(how == 0);
    for (int const code : codes) CHECK(code == 0);
  }
  unsetenv("COLLX_SECRET");
}

TEST_CASE("tcp: whoever scans the gates of a running job is counted as what he is, and changes nothing") {
  setenv("COLLX_SECRET", job_secret, 1);
  shared& all = shared_by_processes();
  for (auto& port : all.ports) port = 0;
  all.is_over = false;
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 200'000'000;  // so none asks after the other one, which would be counted, too
  collx::bootstrap::detail::loopback_doors doors(2, chosen);
  auto const job = static_cast<std::uint64_t>(getpid());
  pid_t const siege = fork();
  if (siege == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    doors.close();
    std::vector<net::owned_fd> stay, slow_ones;
    for (rank_t r = 0; r < 2; ++r) {
      while (all.ports[r] == 0 && !all.is_over) sched_yield();
      if (all.is_over) _exit(8);
      come_to_stay(all.ports[r], r, job, stay);
      for (std::uint64_t i = 0; i < slow; ++i) {
        slow_ones.push_back(std::move(stay.back()));
        stay.pop_back();
      }
      scan_silently(all.ports[r]);
      scan_with_words(all.ports[r], r, job);
    }
    dawdle(slow_ones);
    for (net::owned_fd const& each : stay) hear_out(each);
    for (net::owned_fd const& each : slow_ones) hear_out(each);
    _exit(0);
  }
  auto const rank_main = [&](communicator& comm) {
    rank_t const me = comm.rank();
    all.ports[me] = own_port();
    std::vector<std::int64_t> values(20'000);
    for (int ended = 0; ended == 0;) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) + me;
      collx::all_reduce(comm, std::span(values), collx::sum);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != 2 * static_cast<std::int64_t>(i) + 1) return 2;
      ended = counted->strangers() >= left_in_all + refused_in_all + late_in_all;
      collx::all_reduce(comm, std::span(&ended, 1), collx::min);
    }
    return judge(*counted, me);
  };
  auto const codes = on_counting_processes(doors, 2, chosen, rank_main);
  all.is_over = true;
  unsetenv("COLLX_SECRET");
  int how = -1;
  while (waitpid(siege, &how, 0) < 0 && errno == EINTR) {
  }
  CHECK(how == 0);
  for (int const code : codes) CHECK(code == 0);
}
