// SPDX-License-Identifier: Apache-2.0
// first error: collx: what a rank's function returns is the exit code of its process
#include <string>

#include "collx/bootstrap/processes.hpp"

collx::bootstrap::exit_codes codes() {
  return collx::bootstrap::on_processes(2, [](auto&) {  // unwatched: it never runs
#ifdef FIXED
    return 1;
#else
    return std::string("1");
#endif
  });
}
