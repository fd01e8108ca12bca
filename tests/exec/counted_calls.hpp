// SPDX-License-Identifier: Apache-2.0
// What counts allocations of calls, and the calls: every schedule on one rank. For the one source file of a
// program that includes this (calls_of_new.hpp).
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "collective/cases.hpp"
#include "collective/forms.hpp"
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

// With counts of one fragment and of several, blocking and started; `in` and `out` hold the largest.
template <class Transport>
struct every_schedule_counted {
  collx::communicator<Transport>& comm;
  std::span<oracle::element> in, out;
  std::size_t done = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (!collx::supports<Schedule>(comm.size())) return;
    for (std::size_t const count :
         {std::size_t{1}, std::size_t{61}, cases::large_count<Contract>(comm.size())}) {
      counted const here;
      call<forms::blocking<Algorithm>, Contract, Schedule>(count);
      auto first = call<forms::started<Algorithm>, Contract, Schedule>(count);
      while (!first.test()) std::this_thread::yield();
      call<forms::started<Algorithm>, Contract, Schedule>(count).wait();
      here.check(Contract::name, Algorithm::name, count);
      ++done;
    }
  }

  template <class Form, class Contract, class Schedule>
  auto call(std::size_t count) {
    return forms::call_with<Form, Contract>(comm, collx::rank_t{1}, count, in, out,
                                            oracle::operator_for<Schedule>());
  }
};

template <class Algorithms, class Transport>
void count_every_schedule(collx::communicator<Transport>& comm, std::span<oracle::element> in,
                          std::span<oracle::element> out) {
  every_schedule_counted<Transport> all{comm, in, out};
  collx::for_each_schedule<Algorithms, collx::contract::all>(all);
  if (all.done == 0) throw std::runtime_error("counted nothing");
}

}  // namespace
