// SPDX-License-Identifier: Apache-2.0
// What counts allocations of calls, and the calls: every schedule on one rank. For the one source file of a
// program that includes this (calls_of_new.hpp).
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "collective/schedules.hpp"
#include "exec/calls_of_new.hpp"

namespace {

// Counts what is allocated and freed while it lives.
class counted {
 public:
  // `what` by pointers: a text that is put together is allocated.
  void check(char const* what, char const* algorithm = "", std::size_t count = 0) const {
    std::size_t const made = calls_of_new - new_before_, freed = calls_of_delete - delete_before_;
    if (made != 0 || freed != 0)
      throw std::runtime_error(std::string(what) + " " + algorithm + ", count " + std::to_string(count) +
                               ": " + std::to_string(made) + " calls of new, " + std::to_string(freed) +
                               " of delete");
  }

 private:
  std::size_t new_before_ = calls_of_new, delete_before_ = calls_of_delete;
};

// Blocking and started calls of every schedule, with counts of one fragment and of several; `in` and `out`
// hold the largest.
template <class Algorithms, class Transport>
void count_every_schedule(collx::communicator<Transport>& comm, std::span<oracle::element> in,
                          std::span<oracle::element> out) {
  auto const& blocking = schedules::all<forms::blocking, Transport, Algorithms>();
  auto const& started = schedules::all<forms::started, Transport, Algorithms>();
  bool none = true;
  for (std::size_t i = 0; i < blocking.size(); ++i) {
    oracle::collective const& what = *blocking[i].collective;
    if (!blocking[i].supports(comm.size())) continue;
    for (std::size_t const count : {std::size_t{1}, std::size_t{61}, cases::large_count(what, comm.size())}) {
      counted const here;
      blocking[i].with_room(comm, 1, count, in, out);
      auto first = started[i].with_room(comm, 1, count, in, out);
      while (!first.test()) std::this_thread::yield();
      started[i].with_room(comm, 1, count, in, out).wait();
      here.check(what.name, blocking[i].algorithm, count);
      none = false;
    }
  }
  if (none) throw std::runtime_error("counted nothing");
}

}  // namespace
