// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is listed must stay until run() or wait() returns; give it a name
#include <array>
#include <span>

#include "collx/collective/exchange.hpp"
#include "collx/transport/threads.hpp"

void list(collx::exchange<collx::transport::threads>& messages, std::array<int, 4>& values) {
#ifdef FIXED
  messages.send(std::span<int const>(values), 0);
#else
  messages.send(std::array<int, 4>(values), 0);
#endif
}
