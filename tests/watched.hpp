// SPDX-License-Identifier: Apache-2.0
// How tests run ranks: as bootstrap/local.hpp does, with every rank under a watchdog. A rank that is a
// process has one of its own; the process that waits for all of them waits a little longer.
#pragma once

#include <signal.h>
#include <unistd.h>

#include "collx/bootstrap/local.hpp"
#include "watchdog.hpp"

namespace watched {

// The rank of a process that has no other: watched while this lives.
template <class Transport>
class rank_of_process {
 public:
  explicit rank_of_process(collx::communicator<Transport>& comm) : seen_(dog_.watch(comm)) {}
  rank_of_process(rank_of_process const&) = delete;

 private:
  watchdog dog_;
  watchdog::watching seen_;
};

// What a process calls for its rank: rank_main, watched.
template <class RankMain>
[[nodiscard]] auto in_process(RankMain& rank_main) {
  return [&rank_main](auto& comm) {
    rank_of_process const here(comm);
    return rank_main(comm);
  };
}

// Ends this process, and with it the ranks it has forked, if they do not end: by a signal, because the thread
// sanitizer wants no thread in a process that forks.
class limit_of_parent {
 public:
  limit_of_parent() {
    struct sigaction at_limit {};
    at_limit.sa_handler = [](int) {
      char const text[] = "watchdog: processes that are ranks have not ended\n";
      (void)!write(STDERR_FILENO, text, sizeof text - 1);
      abort();
    };
    sigaction(SIGALRM, &at_limit, &before_);
    alarm(static_cast<unsigned>(time_left(watchdog::spare_of_parent_s).count()));
  }
  limit_of_parent(limit_of_parent const&) = delete;
  ~limit_of_parent() {
    alarm(0);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

// As bootstrap::on_threads().
template <class Transport = collx::transport::threads, class RankMain>
void on_threads(collx::rank_t size, RankMain&& rank_main,
                collx::transport::settings const& chosen = collx::transport::settings::from_environment()) {
  watchdog dog;
  collx::bootstrap::on_threads<Transport>(
      size,
      [&](collx::communicator<Transport>& comm) {
        auto const seen = dog.watch(comm);
        rank_main(comm);
      },
      chosen);
}

// As bootstrap::on_processes().
template <class Transport = collx::transport::shm, class RankMain>
collx::bootstrap::exit_codes on_processes(
    collx::rank_t size, RankMain&& rank_main,
    collx::transport::settings const& chosen = collx::transport::settings::from_environment()) {
  limit_of_parent const limit;
  return collx::bootstrap::on_processes<Transport>(size, in_process(rank_main), chosen);
}

}  // namespace watched
