// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of this host that meet by connect<transport::ucx>().
#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>

#include "collx/bootstrap/processes.hpp"
#include "collx/bootstrap/ucx.hpp"
#include "watched.hpp"

namespace ucx_ranks {

using collx::rank_t;

// A folder of a test's own, in which ranks meet.
class folder {
 public:
  folder() : path_("/tmp/collx_ucx_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder in /tmp");
  }
  folder(folder const&) = delete;
  ~folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  std::string path_;
};

// In a rank's process: another communicator of all ranks. `As`: ucx, or a decorator of it.
template <class As>
collx::communicator<As> join(folder const& where, rank_t rank, rank_t size,
                             collx::transport::settings const& chosen) {
  static int count = 0;
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
  setenv("COLLX_RENDEZVOUS", ("file:" + where.path() + "/meet" + std::to_string(++count)).c_str(), 1);
  return collx::bootstrap::start_of<collx::transport::ucx>::connect_as<As>(chosen);
}

// Each rank calls rank_main(communicator&, join) under a watchdog, where join(settings) gives it another.
template <class As, class RankMain>
collx::bootstrap::exit_codes run(rank_t size, RankMain const& rank_main,
                                 collx::transport::settings const& chosen) {
  folder const where;
  watched::limit_of_parent const limit;
  auto const main_of = [&](collx::communicator<As>& world) {
    watched::rank_of_process const here(world);
    return rank_main(world, [&, rank = world.rank()](collx::transport::settings const& how) {
      return join<As>(where, rank, size, how);
    });
  };
  return collx::bootstrap::detail::fork_ranks(
      size, [&](rank_t rank) { return join<As>(where, rank, size, chosen); }, main_of, [] {});
}

}  // namespace ucx_ranks
