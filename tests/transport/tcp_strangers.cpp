// SPDX-License-Identifier: Apache-2.0
// While a job runs, 10,000 connections that say anything: the same results, and nothing lost.
// component: tcp
#include <atomic>
#include <new>
#include <vector>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <signal.h>
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
constexpr rank_t ranks = 3;
constexpr int strangers = 10'000;

struct shared {
  std::atomic<int> ports[ranks];
  std::atomic<int> ended{0};
  std::atomic<std::uint64_t> refused{0};
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

// Most say nothing or something else, some begin like one of ours, and some stay for a while.
void besiege(shared& all) {
  collx::replayable_random random(7);
  int open[50];
  for (int& fd : open) fd = -1;
  for (int i = 0; i < strangers; ++i) {
    int& fd = open[i % 50];
    // Most end without a trace: a system remembers others for a minute, and may have no more ports.
    linger const at_once{i % 10 != 0, 0};
    if (fd >= 0) (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(all.ports[random.below(ranks)].load()));
    if (::connect(fd, reinterpret_cast<sockaddr const*>(&at), sizeof at) != 0) {
      ++all.refused;
      continue;
    }
    unsigned char text[200];
    for (unsigned char& c : text) c = static_cast<unsigned char>(random.below(256));
    if (random.below(4) == 0) std::memcpy(text, "collxtcp", 8);
    std::size_t const bytes = random.below(3) == 0 ? 0 : random.below(sizeof text);
    if (bytes != 0) (void)!::send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  for (int const fd : open)
    if (fd >= 0) close(fd);
}

}  // namespace

TEST_CASE("tcp: 10,000 strangers at the gates of a running job change nothing") {
  shared& all = shared_by_processes();
  pid_t const siege = fork();
  if (siege == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (auto const& port : all.ports)
      while (port == 0) sched_yield();
    besiege(all);
    all.ended = 1;
    _exit(0);
  }
  auto const codes = watched::on_tcp_processes(ranks, [&](communicator& comm) {
    all.ports[comm.rank()] = own_port();
    std::vector<std::int64_t> values(20'000);
    bool goes_on = true;
    for (int round = 0; goes_on || round < 100; ++round) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) + comm.rank();
      collx::all_reduce(comm, std::span(values), collx::sum);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != ranks * static_cast<std::int64_t>(i) + 3) return 2;
      int ended = all.ended;
      collx::all_reduce(comm, std::span(&ended, 1), collx::min);
      goes_on = ended == 0;
    }
    return 0;
  });
  int how = -1;
  while (waitpid(siege, &how, 0) < 0 && errno == EINTR) {
  }
  CHECK(how == 0);
  for (int const code : codes) CHECK(code == 0);
  CHECK(all.refused == 0);
}
