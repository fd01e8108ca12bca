// SPDX-License-Identifier: Apache-2.0
// How tests run ranks: as bootstrap/local.hpp does, with every rank under a watchdog. A rank that is a
// process has one of its own; the process that waits for all of them waits a little longer.
#pragma once

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>

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

// While it lives, so many bytes of address space are taken, there where they would be next.
class taken_space {
 public:
  explicit taken_space(std::size_t bytes)
      : bytes_(bytes),
        begin_(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  taken_space(taken_space&& other) noexcept
      : bytes_(other.bytes_), begin_(std::exchange(other.begin_, MAP_FAILED)) {}
  ~taken_space() {
    if (begin_ != MAP_FAILED) munmap(begin_, bytes_);
  }

 private:
  std::size_t bytes_;
  void* begin_;
};

// For the time in which a rank attaches to a segment: odd ranks then have it at other addresses than even
// ones, and their own memory where those have it, as ranks of a launcher may. Forked ranks have one layout,
// in which an address of another rank's that is taken for one's own is often right.
[[nodiscard]] inline std::optional<taken_space> layout_of_its_own(collx::rank_t rank, int segment) {
  std::optional<taken_space> space;
  struct stat found {};
  if (rank % 2 == 0 || fstat(segment, &found) != 0) return space;
  (void)mallopt(M_MMAP_THRESHOLD, 16 * 1024);  // vectors of more are mapped, there then
  space.emplace(static_cast<std::size_t>(found.st_size));
  return space;
}

// As bootstrap::on_processes(), each rank with a layout of its own.
template <class Transport = collx::transport::shm, class RankMain>
collx::bootstrap::exit_codes on_processes(
    collx::rank_t size, RankMain&& rank_main,
    collx::transport::settings const& chosen = collx::transport::settings::from_environment()) {
  limit_of_parent const limit;
  collx::net::owned_fd segment(collx::transport::shared_memory::segment::create(size, chosen));
  auto const join = [&](collx::rank_t rank) {
    auto const space = layout_of_its_own(rank, segment.get());
    return collx::transport::shm::join<Transport>(segment.get(), rank);
  };
  auto main_of_rank = in_process(rank_main);
  return collx::bootstrap::detail::fork_ranks(size, join, main_of_rank, [&] { segment.reset(); });
}

}  // namespace watched
