// SPDX-License-Identifier: Apache-2.0
// Binding to cores, by Linux's scheduler calls.
#include "pin.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include <sched.h>

#include "options.hpp"

namespace perf {

std::vector<int> spread_over_cores(std::vector<int> cpus, std::string const& folder) {
  std::map<std::string, int> seen;              // list of siblings -> how many of them so far
  std::vector<std::tuple<int, int, int>> order;  // how many of its core come before it, socket, CPU
  for (int const cpu : cpus) {
    std::string const topology = folder + "/cpu" + std::to_string(cpu) + "/topology/";
    std::string siblings;
    std::ifstream file(topology + "thread_siblings_list");
    if (!std::getline(file, siblings)) siblings = "alone " + std::to_string(cpu);
    int socket = 0;
    std::ifstream(topology + "physical_package_id") >> socket;
    order.emplace_back(seen[siblings]++, socket, cpu);
  }
  std::sort(order.begin(), order.end());
  std::transform(order.begin(), order.end(), cpus.begin(),
                 [](auto const& each) { return std::get<2>(each); });
  return cpus;
}

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) cores.push_back(core);
  return spread_over_cores(std::move(cores), "/sys/devices/system/cpu");
}

bool shall_pin(std::string const& wish, int ranks) {
  bool const enough = static_cast<std::size_t>(ranks) <= usable_cores().size();
  if (wish == "on" && !enough)
    throw usage_error("--pin on wants a core for each of the " + std::to_string(ranks) +
                      " ranks and there are " + std::to_string(usable_cores().size()) +
                      "; use fewer --ranks or --pin off");
  return wish != "off" && enough;
}

void pin_to(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace perf
