// SPDX-License-Identifier: Apache-2.0
// socket_limit COLLECTIVE [--flag value]...: how long plain TCP sockets on loopback need for the bytes that
// each rank must send and receive, with no frames, no checks and no sums. The ranks are processes in a ring,
// pinned like the libraries' ranks; a call is as many steps as the collective needs at least, and a step
// sends to the right while it receives from the left (traffic.hpp). By the method of ../perf/method.h, so
// that bench/compare can start it in the same rounds as the libraries.
#include <cerrno>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../perf/congestion.hpp"
#include "../perf/own_host.hpp"
#include "../plain/options.hpp"
#include "../plain/team.hpp"
#include "../plain/timing.hpp"
#include "traffic.hpp"

namespace {

using limit::traffic;
using plain::options;
using plain::team;

int checked(int result, char const* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

struct connection {
  int near = -1, far = -1;
};

// A door of a rank, at the loopback address or, if ranks have hosts of their own, at that of its host.
int open_door(int rank, sockaddr_in& here) {
  perf::visit_to_host const there(rank);
  int const door = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (perf::has_own_hosts())
    checked(inet_pton(AF_INET, perf::address_of_host(rank).c_str(), &here.sin_addr) - 1, "inet_pton");
  return door;
}

// Both ends of a connection from one rank to another, made by one process before it forks.
connection connect_ranks(int from, int to) {
  sockaddr_in here{};
  int const door = open_door(to, here);
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  socklen_t size = sizeof here;
  checked(bind(door, address, size), "bind");
  checked(listen(door, 1), "listen");
  checked(getsockname(door, address, &size), "getsockname");
  connection made;
  {
    perf::visit_to_host const there(from);
    made.near = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
  }
  checked(connect(made.near, address, size), "connect");
  made.far = checked(accept(door, nullptr, nullptr), "accept");
  close(door);
  int const on = 1;
  for (int const end : {made.near, made.far})
    checked(setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
  return made;
}

// Connection r leads from rank r to the next. Two ranks have one, which carries both directions.
class ring {
 public:
  explicit ring(int ranks) : ranks_(ranks) {
    int const connections = ranks < 2 ? 0 : ranks == 2 ? 1 : ranks;
    for (int i = 0; i < connections; ++i) all_.push_back(connect_ranks(i, (i + 1) % ranks));
  }
  [[nodiscard]] int to_the_right(int rank) const {
    return ranks_ == 2 && rank == 1 ? all_[0].far : at(rank).near;
  }
  [[nodiscard]] int from_the_left(int rank) const {
    return ranks_ == 2 && rank == 1 ? all_[0].far
           : ranks_ == 2            ? all_[0].near
                                    : at((rank + ranks_ - 1) % ranks_).far;
  }

 private:
  [[nodiscard]] connection const& at(int index) const { return all_[static_cast<std::size_t>(index)]; }

  int ranks_;
  std::vector<connection> all_;
};

// How a rank moves one step's bytes: without blocking, in large pieces, both ways at once.
class mover {
 public:
  // `yields`: where there are more ranks than cores, a rank that waits must let another run.
  mover(int out, int in, bool yields) : out_(out), in_(in), yields_(yields) {}

  // `follows`: what is sent is what came in, no faster.
  void move(char const* from, std::int64_t send_bytes, char* to, std::int64_t receive_bytes,
            bool follows) const {
    std::int64_t sent = 0, received = 0;
    while (sent < send_bytes || received < receive_bytes) {
      std::int64_t const ready = follows ? received : send_bytes;
      std::int64_t const out = sent < ready ? push(from + sent, ready - sent) : 0;
      std::int64_t const in = received < receive_bytes ? pull(to + received, receive_bytes - received) : 0;
      sent += out;
      received += in;
      if (out == 0 && in == 0 && yields_) sched_yield();
    }
  }

 private:
  static constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

  static std::size_t piece(std::int64_t rest) {
    return static_cast<std::size_t>(std::min(rest, piece_bytes));
  }

  static std::int64_t moved(ssize_t result, char const* what) {
    if (result > 0) return result;
    if (result < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    throw std::runtime_error(std::string(what) +
                             (result == 0 ? ": another rank has ended" : std::strerror(errno)));
  }
  std::int64_t push(char const* from, std::int64_t rest) const {
    return moved(send(out_, from, piece(rest), MSG_DONTWAIT | MSG_NOSIGNAL), "send");
  }
  std::int64_t pull(char* to, std::int64_t rest) const {
    return moved(recv(in_, to, piece(rest), MSG_DONTWAIT), "recv");
  }

  int out_, in_;
  bool yields_;
};

// Inputs and outputs of one rank: calls rotate over `buffers` pairs, as those of the libraries do.
class rank_memory {
 public:
  rank_memory(options const& o, std::int64_t bytes)
      : stride_(method_stride_bytes(bytes)), buffers_(method_buffers(2 * stride_, o.pool_bytes)) {
    bytes_ = static_cast<std::size_t>(2 * stride_ * buffers_);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("out of memory; use smaller --bytes");
    std::memset(memory, 0, bytes_);
    memory_ = static_cast<char*>(memory);
  }
  ~rank_memory() { munmap(memory_, bytes_); }
  rank_memory(rank_memory const&) = delete;
  rank_memory& operator=(rank_memory const&) = delete;

  [[nodiscard]] std::int64_t buffers() const { return buffers_; }
  [[nodiscard]] char* input(std::int64_t slot) const { return memory_ + slot * 2 * stride_; }
  [[nodiscard]] char* output(std::int64_t slot) const { return input(slot) + stride_; }

 private:
  std::int64_t stride_, buffers_;
  std::size_t bytes_ = 0;
  char* memory_ = nullptr;
};

class job {
 public:
  job(options const& o, int rank, mover const& with, std::int64_t bytes)
      : rank_(rank),
        ranks_(o.ranks),
        what_(limit::traffic_of(o.collective, rank, o.ranks, bytes)),
        with_(with),
        memory_(o, bytes) {}

  [[nodiscard]] std::int64_t buffers() const { return memory_.buffers(); }

  void call(std::int64_t slot) const {
    char* const out = memory_.output(slot);
    char const* const in = what_.follows ? out : memory_.input(slot);
    for (int step = 0; step < what_.steps; ++step)
      with_.move(in, what_.send_bytes, out, what_.receive_bytes, what_.follows);
  }

  // How many of the bytes received are not what was sent.
  [[nodiscard]] std::int64_t wrong() const {
    bool const passes_on = what_.one_way;
    char* const mine = memory_.input(0);
    for (std::int64_t i = 0; i < what_.send_bytes; ++i) mine[i] = value(i, passes_on ? 0 : rank_);
    call(0);
    std::int64_t wrong_count = 0;
    int const left = passes_on ? 0 : (rank_ + ranks_ - 1) % ranks_;
    for (std::int64_t i = 0; i < what_.receive_bytes; ++i)
      wrong_count += memory_.output(0)[i] != value(i, left);
    return wrong_count;
  }

 private:
  static char value(std::int64_t index, int rank) { return static_cast<char>(method_value(index, rank)); }

  int rank_, ranks_;
  traffic what_;
  mover const& with_;
  rank_memory memory_;
};

void run_size(options const& o, team& ranks, mover const& with, std::int64_t bytes) {
  job const work(o, ranks.rank(), with, bytes);
  method_rotation turns{work.buffers(), 0};
  auto const call = [&work](std::int64_t slot) { work.call(slot); };
  method_plan const plan = plain::warm_up(ranks, o, bytes, turns, call);
  plain::timing const t = plain::time_batches(ranks, plan.iterations, plan.batches, turns, call);
  std::int64_t const wrong = ranks.total(o.check ? work.wrong() : 0);
  if (ranks.rank() == 0) plain::print_point(o, bytes, work.buffers(), t, wrong);
}

int run(options const& o) {
  if (o.fresh) throw std::invalid_argument("no limit is known for fresh inputs; leave out --fresh");
  (void)limit::traffic_of(o.collective, 0, o.ranks, 8);  // refuses what it does not know before it forks
  ring const connected(o.ranks);
  bool const crowded = static_cast<std::size_t>(o.ranks) > perf::usable_cores().size();
  std::printf("# %s over plain sockets on loopback, congestion control: %s\n", o.collective.c_str(),
              perf::congestion_control().c_str());
  std::fflush(stdout);
  team ranks(o.ranks, o.pinned);
  return ranks.run([&](int rank) {
    mover const with(connected.to_the_right(rank), connected.from_the_left(rank), crowded);
    for (std::int64_t const bytes : o.bytes) run_size(o, ranks, with, bytes);
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(plain::parse(argc, argv));
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "socket_limit: %s\n", problem.what());
    return 2;
  }
}
