// SPDX-License-Identifier: Apache-2.0
// How many blocks fit GPUs that ranks share, and who shares what.
#include <vector>

#include <doctest/doctest.h>

#include "collx/transport/windows/company.hpp"

namespace {

using namespace collx;
using transport::windows::company;
using transport::windows::company_of;

struct told {
  unsigned char device[16];
  int ordinal, processors, process;
  bool is_of_process_of(told const& other) const noexcept { return process == other.process; }
};

// A rank of that process on a device of 132 multiprocessors, which its process calls by that number.
told on(unsigned char device, int process, int ordinal) { return {{device}, ordinal, 132, process}; }

company of(std::vector<told> const& all, rank_t rank) { return company_of(std::span<told const>(all), rank); }

}  // namespace

TEST_CASE("blocks of all ranks that share a GPU fit it at once, threads or processes") {
  for (int ranks = 1; ranks <= 140; ++ranks) {
    std::vector<told> threads, processes;
    for (int r = 0; r < ranks; ++r) threads.push_back(on(1, 0, 0)), processes.push_back(on(1, r, 0));
    for (auto const& all : {threads, processes}) {
      int const lanes = of(all, ranks - 1).lanes_max;
      CHECK(lanes >= 1);
      if (ranks <= 132) CHECK(lanes * ranks <= 132);
      if (ranks <= 132) CHECK((lanes + 1) * ranks > 132);
    }
  }
}

TEST_CASE("the most crowded and the smallest GPU bound the blocks of all ranks alike") {
  std::vector<told> all{on(1, 0, 0), on(2, 0, 1), on(2, 1, 0), on(2, 1, 0), on(3, 2, 0)};
  for (rank_t r = 0; r < 5; ++r) CHECK(of(all, r).lanes_max == 44);
  all[4].processors = 10;
  for (rank_t r = 0; r < 5; ++r) CHECK(of(all, r).lanes_max == 3);
  all[4].processors = 2;
  for (rank_t r = 0; r < 5; ++r) CHECK(of(all, r).lanes_max == 1);
}

TEST_CASE("more threads on a GPU than it has multiprocessors are refused, and processes are not") {
  std::vector<told> threads, processes;
  for (int r = 0; r < 133; ++r) {
    std::span<told const> const all(threads), others(processes);
    for (rank_t each = 0; each < r; ++each) {
      CHECK_NOTHROW((void)transport::windows::working_company_of(all, each));
      CHECK_NOTHROW((void)transport::windows::working_company_of(others, each));
    }
    threads.push_back(on(1, 0, 0));
    processes.push_back(on(1, r, 0));
  }
  CHECK_THROWS_WITH_AS((void)transport::windows::working_company_of(std::span<told const>(threads), 5),
                       doctest::Contains("133 ranks of this process share a device of 132"), error);
  CHECK_NOTHROW((void)transport::windows::working_company_of(std::span<told const>(processes), 5));
}

TEST_CASE("a process's ranks on one device share it, and those on several span them") {
  auto const one = of({on(1, 7, 0)}, 0);
  CHECK((one.is_one_process && !one.shares_device && !one.spans_devices));
  auto const threads = of({on(1, 7, 0), on(1, 7, 0)}, 1);
  CHECK((threads.is_one_process && threads.shares_device && !threads.spans_devices));
  auto const gpus = of({on(1, 7, 0), on(2, 7, 1)}, 0);
  CHECK((gpus.is_one_process && !gpus.shares_device && gpus.spans_devices));
  // Processes that share a GPU need no streams of a kind, and number devices as they like.
  auto const processes = of({on(1, 7, 0), on(1, 8, 0), on(2, 9, 1)}, 0);
  CHECK((!processes.is_one_process && !processes.shares_device && !processes.spans_devices));
  auto const both = of({on(1, 7, 0), on(1, 7, 0), on(2, 7, 1), on(2, 8, 0)}, 2);
  CHECK((!both.is_one_process && !both.shares_device && both.spans_devices));
}
