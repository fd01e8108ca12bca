// SPDX-License-Identifier: Apache-2.0
// Ranks as forked processes that need no communication library to be timed: a shared page in which they
// meet before a batch and in which the slowest sample is found. For the programs that bench/compare
// starts beside collx_perf and that bring no launcher of their own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../perf/pin.hpp"

namespace plain {

class team {
 public:
  static constexpr int samples_most = 128;

  // `pinned`: one rank per core, where there are enough cores.
  team(int ranks, bool pinned)
      : ranks_(ranks), samples_bytes_(row_bytes() * static_cast<std::size_t>(ranks)) {
    if (pinned && perf::shall_pin("auto", ranks)) cores_ = perf::usable_cores();
    void* const memory = mmap(nullptr, sizeof(page) + samples_bytes_, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    page_ = new (memory) page;
  }
  ~team() { munmap(page_, sizeof(page) + samples_bytes_); }
  team(team const&) = delete;
  team& operator=(team const&) = delete;

  // Runs body(rank) once per rank, each in a process; 0, or 1 when one of them ended badly.
  template <class Body>
  int run(Body const& body) {
    for (int rank = 0; rank < ranks_; ++rank) {
      pid_t const child = fork();
      if (child < 0) throw std::runtime_error("cannot start " + std::to_string(ranks_) + " processes");
      if (child == 0) _exit(run_rank(rank, body));
    }
    int failures = 0, status = 0;
    while (wait(&status) > 0) {
      if (status == 0) continue;
      ++failures;
      page_->failed.store(1, std::memory_order_relaxed);  // whoever waits for it gives up
    }
    return failures == 0 ? 0 : 1;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return ranks_; }

  // Returns when every rank has called it.
  void meet() {
    // Acquire and release: what a rank wrote into its samples before, the others read behind.
    std::uint32_t const before = page_->meetings.load(std::memory_order_acquire);
    if (page_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(ranks_)) {
      page_->arrived.store(0, std::memory_order_relaxed);
      page_->meetings.store(before + 1, std::memory_order_release);
      return;
    }
    for (int polls = 0; page_->meetings.load(std::memory_order_acquire) == before; ++polls)
      if (polls > polls_before_yield) give_way();
  }

  // Throws where one has ended badly, for who waits by other means than meet().
  void require_all() const {
    // Relaxed: a sign, nothing is read behind it.
    if (page_->failed.load(std::memory_order_relaxed) != 0)
      throw std::runtime_error("another rank has ended; see its message");
  }

  // Each sample becomes that of the slowest rank, everywhere.
  void slowest(std::span<double> samples) {
    for (std::size_t i = 0; i < samples.size(); ++i) row(rank_)[i] = samples[i];
    meet();
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (int other = 0; other < ranks_; ++other) samples[i] = std::max(samples[i], row(other)[i]);
    meet();  // nobody overwrites a row that another still reads
  }

  [[nodiscard]] std::int64_t total(std::int64_t mine) {
    row(rank_)[0] = static_cast<double>(mine);
    meet();
    double sum = 0;
    for (int other = 0; other < ranks_; ++other) sum += row(other)[0];
    meet();
    return static_cast<std::int64_t>(sum);
  }

 private:
  static constexpr int polls_before_yield = 1000;

  struct alignas(64) page {
    alignas(64) std::atomic<std::uint32_t> arrived = 0;
    alignas(64) std::atomic<std::uint32_t> meetings = 0;
    alignas(64) std::atomic<std::uint32_t> failed = 0;
  };

  static constexpr std::size_t row_bytes() { return samples_most * sizeof(double); }

  [[nodiscard]] double* row(int rank) const {
    return reinterpret_cast<double*>(page_ + 1) + static_cast<std::ptrdiff_t>(rank) * samples_most;
  }

  template <class Body>
  int run_rank(int rank, Body const& body) {
    rank_ = rank;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted parent leaves nothing running
    try {
      if (!cores_.empty()) perf::pin_to(cores_[static_cast<std::size_t>(rank)]);
      body(rank);
      std::fflush(nullptr);
      return 0;
    } catch (std::exception const& problem) {
      std::fprintf(stderr, "rank %d: %s\n", rank, problem.what());
      return 1;
    }
  }

  void give_way() const {
    require_all();
    sched_yield();
  }

  int ranks_, rank_ = 0;
  std::size_t samples_bytes_;
  std::vector<int> cores_;
  page* page_ = nullptr;
};

}  // namespace plain
