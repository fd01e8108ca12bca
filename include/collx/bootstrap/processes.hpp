// SPDX-License-Identifier: Apache-2.0
// Runs ranks as processes: forks them, waits for them, and says how each ended.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "collx/net/fd.hpp"
#include "collx/transport/shm.hpp"

namespace collx::inline abi_1::bootstrap {

// How each rank ended: its exit code, or 128 + the signal that killed it, as shells say it.
using exit_codes = array<int>;

namespace detail {

// While it lives the system keeps how this process's children end. Some programs are started by others that
// ignore SIGCHLD, and inherit that; then it would be forgotten, and a rank that was killed pass for one that
// ended well.
class children_are_heard {
 public:
  children_are_heard() noexcept {
    struct sigaction const usual{};  // SIG_DFL
    sigaction(SIGCHLD, nullptr, &before_);
    is_changed_ = before_.sa_handler == SIG_IGN || (before_.sa_flags & SA_NOCLDWAIT) != 0;
    if (is_changed_) sigaction(SIGCHLD, &usual, nullptr);
  }
  children_are_heard(children_are_heard const&) = delete;
  // What somebody else has set meanwhile stays.
  ~children_are_heard() {
    struct sigaction now {};
    if (is_changed_ && sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
      sigaction(SIGCHLD, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
  bool is_changed_ = false;
};

// What a rank's function says of how it went, for the process that started it.
template <class RankMain, class World>
[[nodiscard]] int exit_code_of(RankMain& rank_main, World& world) {
  using result = decltype(rank_main(world));
  if constexpr (std::is_void_v<result>) {
    rank_main(world);
    return 0;
  } else {
    static_assert(std::is_convertible_v<result, int> && !std::is_same_v<result, bool>,
                  "collx: what a rank's function returns is the exit code of its process: let it return "
                  "nothing, or what can become an int (and is no bool, of which true would be a failure)");
    return static_cast<int>(rank_main(world));
  }
}

// A forked rank's whole life. `join(rank)` returns its communicator. Never returns into the parent's program.
template <class Join, class RankMain>
[[noreturn]] void live_as_rank(rank_t rank, Join const& join, RankMain& rank_main) {
  int code = 0;
  try {
    auto world = join(rank);
    try {
      code = exit_code_of(rank_main, world);
    } catch (...) {
      world.abort();  // the others must not wait for this one
      throw;
    }
  } catch (std::exception const& failure) {
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
    code = 1;
  } catch (...) {
    std::fprintf(stderr, "rank %d: ended by an exception that is no std::exception\n", rank);
    code = 1;
  }
  std::fflush(nullptr);
  // Not exit(): the parent's static objects are not this process's to destroy.
  _exit(code);
}

// Waits for all ranks. Throws error if how one ended is not to be known.
COLLX_COLD inline exit_codes ends_of(array<pid_t> const& ranks) {
  exit_codes codes(ranks.size());
  int unknown = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    int how = 0;
    pid_t ended = -1;
    do ended = waitpid(ranks[i], &how, 0);
    while (ended < 0 && errno == EINTR);
    if (ended < 0) unknown = errno;
    codes[i] = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  }
  if (unknown == 0) return codes;
  errno = unknown;
  transport::shared_memory::throw_system(
      "waitpid", "somebody else waited for a rank; let nobody wait for children that are not his own");
}

// Forks `size` processes; each joins and calls rank_main(communicator&). Returns how they ended. `forked()`
// is called here when all have been.
template <class Join, class RankMain, class Forked>
exit_codes fork_ranks(rank_t size, Join const& join, RankMain& rank_main, Forked const& forked) {
  std::fflush(nullptr);  // or every child prints what is still buffered
  children_are_heard const heard;
  array<pid_t> ranks(static_cast<std::size_t>(size));
  pid_t const parent = getpid();
  for (rank_t r = 0; r < size; ++r) {
    pid_t const child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);  // it died before the line above
      live_as_rank(r, join, rank_main);
    }
    if (child < 0) {
      for (rank_t started = 0; started < r; ++started)
        kill(ranks[static_cast<std::size_t>(started)], SIGKILL);
      for (rank_t started = 0; started < r; ++started)
        waitpid(ranks[static_cast<std::size_t>(started)], nullptr, 0);
      transport::shared_memory::throw_system("fork", "start fewer ranks or raise the limit on processes");
    }
    ranks[static_cast<std::size_t>(r)] = child;
  }
  forked();
  return ends_of(ranks);
}

}  // namespace detail

// Forks `size` processes; each calls rank_main(communicator&) and ends. Returns their exit codes
// when all have ended: what rank_main returned, as an int of which the system keeps 8 bits (0 if it returns
// nothing), 1 for an exception (whose text goes to stderr), or 128 + signal. A rank dies with this process.
// Nothing is left behind, whatever happens: the shared memory has no name.
// `Transport`: shm or a decorator of it. Throws error for a wrong size and when the system refuses
// memory or processes.
template <class Transport = transport::shm, class RankMain>
[[nodiscard]] exit_codes on_processes(rank_t size, RankMain&& rank_main,
                        transport::settings const& chosen = transport::settings::from_environment()) {
  transport::require_size("on_processes", size);
  net::owned_fd segment(transport::shared_memory::segment::create(size, chosen));
  // What does not fit one address space fails here, once, and not in every rank.
  (void)transport::shared_memory::segment::attach(segment.get());
  return detail::fork_ranks(
      size, [&](rank_t rank) { return transport::shm::join<Transport>(segment.get(), rank); }, rank_main,
      [&] { segment.reset(); });
}

}  // namespace collx::inline abi_1::bootstrap
