// SPDX-License-Identifier: Apache-2.0
// Forked processes that connect as a launcher's do, with an environment of their own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "collx/bootstrap/connect.hpp"
#include "collx/collective/all_gather.hpp"
#include "watched.hpp"

namespace connecting {

using collx::rank_t;
using environment = std::map<std::string, std::string>;

// Of all launchers, and of ours those that these tests set.
inline void forget_variables() {
  for (collx::bootstrap::launcher const& each : collx::bootstrap::launchers)
    for (char const* name :
         {each.rank, each.also, each.size[0], each.size[1], each.local_rank, each.local_size, each.host_count,
          each.job[0], each.job[1], each.apart[0], each.apart[1], each.socket})
      if (name != nullptr) unsetenv(name);
  for (char const* name :
       {"COLLX_LAUNCHER", "COLLX_RENDEZVOUS", "COLLX_TIMEOUT_US", "COLLX_HEAP_BYTES", "COLLX_STAGING_BYTES"})
    unsetenv(name);
}

// A process that connects, and what became of it.
class process {
 public:
  explicit process(environment const& variables_of_it, int times = 1) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) live(variables_of_it, ends[1], times);
    close(ends[1]);
    text_ = ends[0];
  }
  process(process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), text_(std::exchange(other.text_, -1)) {}
  process& operator=(process&&) = delete;
  ~process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (text_ >= 0) close(text_);
  }

  // Readable once it has something to say.
  [[nodiscard]] int text() const { return text_; }

  // Waits for its end and returns what it said: "joined as RANK of SIZE", or its error.
  std::string said() {
    std::string all;
    char part[512];
    for (ssize_t got; (got = read(text_, part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(got));
    int how = 0;
    waitpid(pid_, &how, 0);
    pid_ = 0;
    if (!WIFEXITED(how)) all += "(killed by signal " + std::to_string(WTERMSIG(how)) + ")";
    return all;
  }

 private:
  [[noreturn]] static void live(environment const& mine, int out, int times) {
    forget_variables();
    for (auto const& [name, value] : mine) setenv(name.c_str(), value.c_str(), 1);
    std::string text;
    {
      try {
        std::vector<collx::communicator<collx::transport::shm>> worlds;
        for (int i = 0; i < times; ++i) {
          worlds.push_back(collx::connect<collx::transport::shm>());
          if (i > 0) worlds[static_cast<std::size_t>(i) - 1].abort();  // nobody waits there any more
          text = join(worlds.back());
        }
      } catch (std::exception const& failure) {
        text = failure.what();
      }
    }
    (void)!write(out, text.data(), text.size());
    _exit(0);
  }

  [[nodiscard]] static std::string join(collx::communicator<collx::transport::shm>& world) {
    watched::rank_of_process const here(world);
    rank_t const me = world.rank();
    std::vector<rank_t> all(static_cast<std::size_t>(world.size()), -1);
    collx::all_gather(world, std::span<rank_t const>(&me, 1), all);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r] != static_cast<rank_t>(r)) throw std::runtime_error("gathered something else");
    return "joined as " + std::to_string(me) + " of " + std::to_string(world.size());
  }

  pid_t pid_ = 0;
  int text_ = -1;
};

inline environment of_rank(rank_t rank, rank_t size, std::string const& path,
                           std::string const& timeout_us = "100000000") {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"COLLX_RENDEZVOUS", path},
          {"COLLX_HEAP_BYTES", std::to_string(1 << 20)},
          {"COLLX_TIMEOUT_US", timeout_us}};
}

inline std::string said_with(environment const& mine) { return process(mine).said(); }

inline bool holds(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

// Checks that the text is an error that holds all the parts.
inline void check_error(std::string const& text, std::vector<std::string> const& parts) {
  CAPTURE(text);
  CHECK(text.starts_with("collx: "));
  for (std::string const& part : parts) CHECK_MESSAGE(holds(text, part), "lacks: " << part);
}

inline bool exists(std::string const& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0;
}

// Waits until something is bound at the path: rank 0 has begun to listen.
inline void wait_until_bound(std::string const& path) {
  while (!exists(path)) sched_yield();
}

inline int connected_to(std::string const& path) {
  int const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un const address = collx::bootstrap::detail::address_of(path.c_str());
  // Bound is not yet listening: refused until then.
  while (connect(fd, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) sched_yield();
  return fd;
}

inline void check_all_joined(std::vector<process>& ranks, std::vector<rank_t> const& order, rank_t size) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    CHECK(ranks[i].said() == "joined as " + std::to_string(order[i]) + " of " + std::to_string(size));
}

}  // namespace connecting
