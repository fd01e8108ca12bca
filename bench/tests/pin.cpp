// SPDX-License-Identifier: Apache-2.0
// Which CPUs ranks take: one of each core first.
#include "../perf/pin.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

// A folder as /sys/devices/system/cpu, made up: for each CPU, its list of siblings.
struct made_up_sysfs {
  fs::path folder = fs::temp_directory_path() / ("collx_bench_cpus_" + std::to_string(getpid()));

  explicit made_up_sysfs(std::vector<std::string> const& siblings, std::vector<int> const& sockets = {}) {
    for (std::size_t cpu = 0; cpu < siblings.size(); ++cpu) {
      fs::path const topology = folder / ("cpu" + std::to_string(cpu)) / "topology";
      fs::create_directories(topology);
      std::ofstream(topology / "thread_siblings_list") << siblings[cpu] << '\n';
      if (cpu < sockets.size()) std::ofstream(topology / "physical_package_id") << sockets[cpu] << '\n';
    }
  }
  made_up_sysfs(made_up_sysfs const&) = delete;
  made_up_sysfs& operator=(made_up_sysfs const&) = delete;
  ~made_up_sysfs() { fs::remove_all(folder); }

  [[nodiscard]] std::vector<int> order(std::vector<int> cpus) const {
    return perf::spread_over_cores(std::move(cpus), folder.string());
  }
};

}  // namespace

TEST_CASE("siblings of a core are taken last") {
  SUBCASE("neighbours") {
    made_up_sysfs const two_by_two({"0-1", "0-1", "2-3", "2-3"});
    CHECK(two_by_two.order({0, 1, 2, 3}) == std::vector<int>{0, 2, 1, 3});
    CHECK(two_by_two.order({1, 2, 3}) == std::vector<int>{1, 2, 3});  // not all may be used
    CHECK(two_by_two.order({2, 3}) == std::vector<int>{2, 3});
  }
  SUBCASE("one half behind the other") {
    made_up_sysfs const halves({"0,2", "1,3", "0,2", "1,3"});
    CHECK(halves.order({0, 1, 2, 3}) == std::vector<int>{0, 1, 2, 3});
    CHECK(halves.order({0, 2, 3}) == std::vector<int>{0, 3, 2});
  }
  SUBCASE("four threads of a core") {
    made_up_sysfs const wide({"0-3", "0-3", "0-3", "0-3", "4-7", "4-7", "4-7", "4-7"});
    CHECK(wide.order({0, 1, 2, 4, 5, 6}) == std::vector<int>{0, 4, 1, 5, 2, 6});
  }
  SUBCASE("sockets that number theirs in turn: one after the other, then the siblings") {
    made_up_sysfs const in_turn({"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"},
                                {0, 1, 0, 1, 0, 1, 0, 1});
    CHECK(in_turn.order({0, 1, 2, 3, 4, 5, 6, 7}) == std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7});
  }
  SUBCASE("nobody says") {
    made_up_sysfs const nothing({});
    CHECK(nothing.order({0, 1, 2}) == std::vector<int>{0, 1, 2});
  }
}
