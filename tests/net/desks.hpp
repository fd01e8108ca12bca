// SPDX-License-Identifier: Apache-2.0
// Ranks that hand descriptors over, as tests play them: in processes of their own, which end when they
// should, or at desks that answer anything.
#pragma once

#include <string>

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collx/net/descriptor_exchange.hpp"
#include "shared_with_forks.hpp"

namespace desks {

namespace net = collx::net;
using collx::error;
using collx::now_us;
using collx::rank_t;
using collx::status;
using net::descriptor_desk;
using net::descriptor_exchange;
using net::owned_fd;

inline constexpr std::uint64_t long_us = 60'000'000;

// Memory with a number in it, behind a descriptor.
inline owned_fd memory_of(int content) {
  owned_fd fd(static_cast<int>(syscall(SYS_memfd_create, "collx test", 1u)));
  if (!fd || pwrite(fd.get(), &content, sizeof content, 0) != static_cast<ssize_t>(sizeof content))
    std::abort();
  return fd;
}
inline int content_of(owned_fd const& fd) {
  int content = -1;
  return fd && pread(fd.get(), &content, sizeof content, 0) == static_cast<ssize_t>(sizeof content) ? content
                                                                                                    : -1;
}

// Sockets, and files of memory: a transport opens others whenever it likes.
inline int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 512; ++fd) {
    struct stat found {};
    count += fstat(fd, &found) == 0 && (S_ISSOCK(found.st_mode) || S_ISREG(found.st_mode));
  }
  return count;
}

// A process that does `what`, and is killed at the end if that has not ended it.
class other_process {
 public:
  template <class What>
  explicit other_process(What const& what) : id_(fork()) {
    if (id_ != 0) return;
    what();
    _exit(0);
  }
  other_process(other_process const&) = delete;
  ~other_process() {
    if (id_ <= 0) return;
    (void)kill(id_, SIGKILL);
    (void)end();
  }

  [[nodiscard]] int id() const { return id_; }
  // Its exit status.
  int end() {
    int how = -1;
    (void)waitpid(id_, &how, 0);
    id_ = 0;
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  }

 private:
  pid_t id_;
};

// Rank 1 of two, as a process that makes a desk of its own and then does `then` there.
class rank_one {
 public:
  template <class Then>
  explicit rank_one(Then const& then, uid_t user = geteuid())
      : process_([&] {
          if (user != geteuid() && setresuid(user, user, user) != 0) _exit(9);
          descriptor_exchange exchange("a test", 1);
          *desk_ = exchange.mine();
          ready_->come();
          then(exchange);
        }) {
    ready_->wait_for(1);
  }

  [[nodiscard]] descriptor_desk const& desk() const { return *desk_; }
  [[nodiscard]] other_process& process() { return process_; }

 private:
  shared_with_forks<descriptor_desk> desk_;
  shared_with_forks<arrivals> ready_;
  other_process process_;
};
inline void stay(descriptor_exchange&) {
  for (;;) pause();
}

// A desk that a test plays: what comes there, and what it says, is for the test.
class played_desk {
 public:
  played_desk() : listens_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    desk_ = {static_cast<std::uint64_t>(now_us()) << 20 | static_cast<std::uint64_t>(getpid()), {1, 2}, 4711};
    sockaddr_un at;
    socklen_t const length = desk_.address(at);
    REQUIRE(::bind(listens_.get(), reinterpret_cast<sockaddr const*>(&at), length) == 0);
    REQUIRE(::listen(listens_.get(), 8) == 0);
  }
  [[nodiscard]] descriptor_desk const& desk() const { return desk_; }
  // Waits for one who asks. In the process that plays.
  [[nodiscard]] owned_fd hear(descriptor_exchange::question& asked) const {
    owned_fd guest(::accept4(listens_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (::recv(guest.get(), &asked, sizeof asked, 0) != static_cast<ssize_t>(sizeof asked)) _exit(9);
    return guest;
  }
  // Waits for one who asks, and gives it `answer` and a descriptor of no interest.
  owned_fd answer(descriptor_exchange::answer const& said) const {
    descriptor_exchange::question asked;
    owned_fd guest = hear(asked);
    if (!net::send_with_fd(guest.get(), &said, sizeof said, STDERR_FILENO)) _exit(9);
    return guest;
  }
  void close() { listens_.reset(); }

 private:
  owned_fd listens_;
  descriptor_desk desk_{};
};

struct outcome {
  status code = status::ok;
  std::string text;
  owned_fd got;

  [[nodiscard]] bool says(std::string const& part) const { return text.find(part) != std::string::npos; }
};

// Rank `rank` of two, whose desks these are.
inline outcome run_as(descriptor_exchange& exchange, rank_t rank, descriptor_desk const& zero,
                      descriptor_desk const& one, int fd, std::uint64_t within_us = long_us) {
  descriptor_desk const all[] = {zero, one};
  bool const with[] = {true, true};
  owned_fd theirs[2];
  outcome met;
  try {
    exchange.run(fd, all, with, theirs, now_us() + within_us);
  } catch (error const& e) {
    met.code = e.code(), met.text = e.what();
  }
  met.got = std::move(theirs[1 - rank]);
  return met;
}
inline outcome run_as_zero(descriptor_exchange& mine, descriptor_desk const& one,
                           std::uint64_t within_us = long_us) {
  owned_fd const own = memory_of(7);
  return run_as(mine, 0, mine.mine(), one, own.get(), within_us);
}

// What a rank with that desk expects from others.
inline descriptor_exchange::answer right_answer(descriptor_desk const& asker) {
  return {{asker.secret[0], asker.secret[1]}};
}

}  // namespace desks
