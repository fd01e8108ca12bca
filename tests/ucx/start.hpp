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

inline int meetings = 0;  // that this rank has come to, whatever for

// In a rank's process: another communicator of all ranks. `As`: ucx, or a decorator of it.
template <class As>
collx::communicator<As> join(folder const& where, rank_t rank, rank_t size,
                             collx::transport::settings const& chosen) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
  setenv("COLLX_RENDEZVOUS", ("file:" + where.path() + "/meet" + std::to_string(++meetings)).c_str(), 1);
  return collx::bootstrap::start_of<collx::transport::ucx>::connect_as<As>(chosen);
}

// Gives a rank another communicator of all ranks: join(settings), or join.as<Decorator>(settings).
template <class As>
struct joining {
  folder const& where;
  rank_t rank, size;
  collx::communicator<As> operator()(collx::transport::settings const& how) const {
    return join<As>(where, rank, size, how);
  }
  template <class Other>
  collx::communicator<Other> as(collx::transport::settings const& how) const {
    return join<Other>(where, rank, size, how);
  }
};

// Each rank calls rank_main(communicator&, joining) under a watchdog.
template <class As, class RankMain>
collx::bootstrap::exit_codes run(rank_t size, RankMain const& rank_main,
                                 collx::transport::settings const& chosen) {
  folder const where;
  watched::limit_of_parent const limit;
  auto const main_of = [&](collx::communicator<As>& world) {
    watched::rank_of_process const here(world);
    return rank_main(world, joining<As>{where, world.rank(), size});
  };
  return collx::bootstrap::detail::fork_ranks(
      size, [&](rank_t rank) { return join<As>(where, rank, size, chosen); }, main_of, [] {});
}

}  // namespace ucx_ranks
