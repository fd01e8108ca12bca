// SPDX-License-Identifier: Apache-2.0
// Which congestion control TCP is under here: it decides as much as code, so it stands beside the figures.
#pragma once

#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace perf {

// Of a socket for which nobody chose one: what the system, or this network namespace, gives. "unknown" where
// it does not say.
[[nodiscard]] inline std::string congestion_control() {
  int const any = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (any < 0) return "unknown";
  char name[16] = {};
  socklen_t bytes = sizeof name - 1;
  bool const known = getsockopt(any, IPPROTO_TCP, TCP_CONGESTION, name, &bytes) == 0;
  close(any);
  return known ? name : "unknown";
}

}  // namespace perf
