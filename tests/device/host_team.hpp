// SPDX-License-Identifier: Apache-2.0
// Threads of the host as a team: what a kernel does as a CUDA block, it does here where sanitizers can watch.
#pragma once

#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

#include "collx/device/team.hpp"

namespace device_test {

class host_team {
 public:
  host_team(int rank, int size, std::barrier<>& meeting) : rank_(rank), size_(size), meeting_(&meeting) {}

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  void sync() noexcept { meeting_->arrive_and_wait(); }

 private:
  int rank_, size_;
  std::barrier<>* meeting_;
};

static_assert(collx::device::team<host_team>);
static_assert(collx::device::team<collx::device::solo_team>);

// Calls f(team) in `size` threads, of which the caller is the first, and returns when all have. A thread that
// throws ends the program: the others would wait for it.
template <class F>
void run_team(int size, F const& f) {
  std::barrier<> meeting(size);
  auto const member = [&](int rank) noexcept {
    host_team mine(rank, size, meeting);
    f(mine);
  };
  std::vector<std::jthread> others;
  others.reserve(static_cast<std::size_t>(size - 1));
  for (int rank = 1; rank < size; ++rank) others.emplace_back(member, rank);
  member(0);
}

}  // namespace device_test
