// SPDX-License-Identifier: Apache-2.0
// What kernels run, run by threads: every schedule of the library against the reference, with memory that
// peers can read and without, with packets and without, several lanes and several threads each. And failures.
#include "collx/exec/lane_machine.hpp"

#include <array>
#include <mutex>
#include <string>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collx/algo/all.hpp"
#include "collx/exec/host_executor.hpp"
#include "collx/exec/lane_cut.hpp"
#include "exec/lane_call.hpp"
#include "sample.hpp"

namespace {

using namespace collx;
using team_t = device_test::host_team;

// Of the cases, those that need no more threads than two processors like.
template <class Contract>
bool takes(oracle::setting const& how) {
  return how.count <= static_cast<std::size_t>(how.size) + 1 ||
         how.count == cases::large_count<Contract>(how.size);
}

// Walks the matrix on one group, whose threads live as long as it does.
class walker {
 public:
  explicit walker(window_group::traits const& chosen)
      : all_(chosen),
        meeting_(chosen.size * chosen.lanes * chosen.threads),
        lanes_(static_cast<std::size_t>(chosen.size * chosen.lanes)),
        memory_(static_cast<std::size_t>(chosen.size)) {
    for (auto& each : memory_)
      each.resize(std::max(oracle::participant<contract::all_to_all, decltype(oracle::add)>::needed(
                               chosen.size, cases::large_count<contract::all_to_all>(chosen.size)),
                           oracle::participant<contract::all_reduce, decltype(oracle::add)>::needed(
                               1, cases::large_count<contract::all_reduce>(chosen.size))));
  }

  // Returns how many calls there were; `difference` says what was wrong first.
  std::size_t walk() {
    all_.run([](rank_t) { return true; },
             [this](rank_t rank, int lane, team_t& team) {
               member mine{*this, rank, lane, team};
               for_each_schedule<algo::all, contract::all>(mine);
             });
    return calls_;
  }

  std::string difference;

 private:
  struct member {
    walker& of;
    rank_t rank;
    int lane;
    team_t& team;

    template <class Algorithm, class Contract, class Schedule>
    void operator()() {
      rank_t const size = of.all_.chosen().size;
      if (!collx::supports<Schedule>(size)) return;
      cases::for_each<Contract>(size, [&](oracle::setting const& how) {
        if (takes<Contract>(how)) one<Algorithm, Contract, Schedule>(how);
      });
    }

    template <class Algorithm, class Contract, class Schedule>
    void one(oracle::setting const& how) {
      constexpr auto op = oracle::operator_for<Schedule>();
      using participant = oracle::participant<Contract, std::remove_const_t<decltype(op)>>;
      bool const leads = lane == 0 && team.rank() == 0;
      static thread_local std::unique_ptr<participant> mine;
      static std::array<participant*, 64> passed;  // every rank's
      auto& workspace = of.lanes_[static_cast<std::size_t>(rank * of.all_.chosen().lanes + lane)];
      if (leads) {
        mine = std::make_unique<participant>(how, rank, of.memory_[static_cast<std::size_t>(rank)].data());
        passed[static_cast<std::size_t>(rank)] = mine.get();
      }
      if (team.rank() == 0) workspace.failed = 0;
      of.meeting_.arrive_and_wait();
      participant const& buffers = *passed[static_cast<std::size_t>(rank)];
      bool const done = window_group::perform<Schedule>(of.all_, rank, lane, team, workspace,
                                                        buffers.in().data(), buffers.out().data(), how, op);
      of.meeting_.arrive_and_wait();
      if (leads) {
        std::string what = done ? buffers.difference() : "failed";
        if (!what.empty())
          of.complain(cases::describe<Algorithm, Contract>(how) + ", rank " + std::to_string(rank) + ": " +
                      what);
        if (rank == 0) ++of.calls_;
      }
    }
  };

  void complain(std::string const& what) {
    std::lock_guard const only_me(mutex_);
    if (difference.empty()) difference = what;
  }

  window_group::group all_;
  std::barrier<> meeting_;
  std::vector<exec::lane_workspace> lanes_;
  std::vector<std::vector<oracle::element>> memory_;
  std::mutex mutex_;
  std::size_t calls_ = 0;
};

void walk(window_group::traits const& chosen) {
  CAPTURE(chosen.size);
  CAPTURE(chosen.lanes);
  CAPTURE(chosen.threads);
  CAPTURE(chosen.packet_bytes);
  CAPTURE(static_cast<int>(chosen.width));
  CAPTURE(chosen.reaches_all);
  walker all(chosen);
  std::size_t const calls = all.walk();
  CHECK_MESSAGE(all.difference.empty(), all.difference);
  CHECK(calls > 100);
}

}  // namespace

TEST_CASE("kernels' text performs every schedule as the reference does") {
  for (rank_t size = 1; size <= (sample::is_sample ? 3 : 6); ++size) {
    walk({.size = size, .reaches_all = size % 2 == 0});
    walk({.size = size,
          .packet_bytes = 256,
          .width = size % 2 == 0 ? transport::windows::packet_width::wide
                                 : transport::windows::packet_width::narrow,
          .reaches_all = size % 2 == 1});
  }
}

TEST_CASE("lanes and threads share the work of a call") {
  for (rank_t size = 2; size <= (sample::is_sample ? 3 : 4); ++size) {
    walk({.size = size, .lanes = 3, .reaches_all = false});
    walk({.size = size, .threads = 2, .packet_bytes = 256});
    walk({.size = size, .threads = 2, .packet_bytes = 512, .width = transport::windows::packet_width::wide});
    walk({.size = size, .lanes = 2, .threads = 2, .packet_bytes = 1024, .reaches_all = size == 3});
  }
}
