// SPDX-License-Identifier: Apache-2.0
// What kernels run, run by threads: every schedule of the library against the reference, with memory that
// peers can read and without, with packets and without, several lanes and several threads each. And failures.
// ctest: PROCESSORS 2
#include "collx/exec/lane_machine.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

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
bool takes(oracle::collective const& what, oracle::setting const& how) {
  return how.count <= static_cast<std::size_t>(how.size) + 1 ||
         how.count == cases::large_count(what, how.size);
}

// A schedule, and what a lane of a rank does in one call of it (exec/lane_call.hpp).
struct entry {
  char const* algorithm;
  oracle::collective const* collective;
  bool in_order;
  bool (*supports)(shape);
  bool (*perform)(window_group::group&, rank_t, int lane, team_t&, exec::lane_workspace&,
                  oracle::participant const&, oracle::setting const&);
};

std::vector<entry> const& every_schedule() {
  static std::vector<entry> const found = [] {
    std::vector<entry> list;
    for_each_schedule<algo::all, contract::all>([&]<class Algorithm, class Contract, class Schedule>() {
      list.push_back(
          {Algorithm::name, &oracle::collective_of<Contract>, keeps_rank_order<Schedule>(),
           &supports<Schedule>,
           [](window_group::group& all, rank_t rank, int lane, team_t& team, exec::lane_workspace& workspace,
              oracle::participant const& with, oracle::setting const& how) {
             return window_group::perform<Schedule>(all, rank, lane, team, workspace, with.in().data(),
                                                    with.out().data(), how, oracle::operator_for<Schedule>());
           }});
    });
    return list;
  }();
  return found;
}

// Walks the matrix on one group, whose threads live as long as it does.
class walker {
 public:
  explicit walker(window_group::traits const& chosen)
      : all_(chosen),
        meeting_(chosen.size * chosen.lanes * chosen.threads),
        lanes_(static_cast<std::size_t>(chosen.size * chosen.lanes)),
        memory_(static_cast<std::size_t>(chosen.size)),
        passed_(memory_.size()) {
    for (auto& each : memory_) each.resize(cases::memory_count(chosen.size));
  }

  // Returns how many calls there were; `difference` says what was wrong first.
  std::size_t walk() {
    all_.run([](rank_t) { return true; },
             [this](rank_t rank, int lane, team_t& team) {
               for (entry const& each : every_schedule()) {
                 rank_t const size = all_.chosen().size;
                 if (!each.supports(size)) continue;
                 cases::for_each(*each.collective, size, [&](oracle::setting const& how) {
                   if (takes(*each.collective, how)) perform(each, how, rank, lane, team);
                 });
               }
             });
    return calls_;
  }

  std::string difference;

 private:
  // One thread's part in one call.
  void perform(entry const& called, oracle::setting const& how, rank_t rank, int lane, team_t& team) {
    bool const leads = lane == 0 && team.rank() == 0;
    auto& mine = passed_[static_cast<std::size_t>(rank)];
    auto& workspace = lanes_[static_cast<std::size_t>(rank * all_.chosen().lanes + lane)];
    if (leads)
      mine.emplace(*called.collective, called.in_order, how, rank,
                   memory_[static_cast<std::size_t>(rank)].data());
    meeting_.arrive_and_wait();
    bool const done = called.perform(all_, rank, lane, team, workspace, *mine, how);
    meeting_.arrive_and_wait();
    if (!leads) return;
    std::string const what = done ? mine->difference() : "failed";
    if (!what.empty())
      complain(cases::describe(called.collective->name, called.algorithm, how) + ", rank " +
               std::to_string(rank) + ": " + what);
    if (rank == 0) ++calls_;
  }

  void complain(std::string const& what) {
    std::lock_guard const only_me(mutex_);
    if (difference.empty()) difference = what;
  }

  window_group::group all_;
  std::barrier<> meeting_;
  std::vector<exec::lane_workspace> lanes_;
  std::vector<std::vector<oracle::element>> memory_;
  std::vector<std::optional<oracle::participant>> passed_;  // by every rank to the call that is made
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
