// SPDX-License-Identifier: Apache-2.0
// Binding to cores, by Linux's scheduler calls.
#include "pin.hpp"

#include <sched.h>

#include "options.hpp"

namespace perf {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) cores.push_back(core);
  return cores;
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
