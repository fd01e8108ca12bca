// SPDX-License-Identifier: Apache-2.0
// Ranks that are to be on several hosts, which are network namespaces: bench/compare makes them, and says so
// in variables. COLLX_BENCH_HOSTS: the name of each one's file, with %d for its number;
// COLLX_BENCH_ADDRESSES: its address, with %d for the number + 1. Unset: all are on this host.
// COLLX_BENCH_RANKS_PER_HOST: 1, if it is unset.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace perf {

inline bool has_own_hosts() {
  return std::getenv("COLLX_BENCH_HOSTS") != nullptr && std::getenv("COLLX_BENCH_ADDRESSES") != nullptr;
}

namespace detail {

inline std::string filled_in(char const* variable, int number) {
  std::string text = std::getenv(variable);
  std::size_t const at = text.find("%d");
  if (at != std::string::npos) text.replace(at, 2, std::to_string(number));
  return text;
}

inline void enter_namespace(std::string const& path) {
  int const file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool const entered = file >= 0 && setns(file, CLONE_NEWNET) == 0;
  if (file >= 0) close(file);
  if (!entered) throw std::runtime_error("cannot enter the network namespace " + path);
}

}  // namespace detail

inline int host_of(int rank) {
  char const* const each = std::getenv("COLLX_BENCH_RANKS_PER_HOST");
  return each == nullptr ? rank : rank / std::max(1, std::atoi(each));
}

inline std::string address_of_host(int rank) {
  return detail::filled_in("COLLX_BENCH_ADDRESSES", host_of(rank) + 1);
}

// This thread, and those that it starts, make their sockets on a rank's host from now on.
inline void enter_host(int rank) {
  if (has_own_hosts()) detail::enter_namespace(detail::filled_in("COLLX_BENCH_HOSTS", host_of(rank)));
}

// The same as long as the object lives.
class visit_to_host {
 public:
  explicit visit_to_host(int rank) : home_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    enter_host(rank);
  }
  visit_to_host(visit_to_host const&) = delete;
  ~visit_to_host() {
    if (home_ < 0) return;
    if (setns(home_, CLONE_NEWNET) != 0) std::perror("setns");
    close(home_);
  }

 private:
  int home_;
};

}  // namespace perf
