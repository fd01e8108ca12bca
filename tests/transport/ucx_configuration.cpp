// SPDX-License-Identifier: Apache-2.0
// What is concluded from UCX_TLS, and from what UCX says of a peer.
// component: ucx
// When it is loaded, UCX writes jumps over the first instructions of mmap and others. Those of clang's
// address sanitizer lie in the program itself and do not survive that; this test needs no memory hooks.
// ctest: ENVIRONMENT UCX_MEM_MMAP_HOOK_MODE=none
#include <doctest/doctest.h>

#include "collx/transport/ucx/configuration.hpp"

using namespace collx::transport::ucx_parts;
using collx::status;

TEST_CASE("ucx: a transport is in use if UCX_TLS names it, or names what is left out and not it") {
  auto const uses = [](char const* all) {
    bool const tcp = is_among_transports(all, {"tcp"});
    bool const shared = is_among_transports(all, {"posix", "sysv", "shm", "sm", "mm"});
    return (tcp ? 1 : 0) + (shared ? 2 : 0);
  };
  CHECK(uses(nullptr) == 3);
  CHECK(uses("all") == 3);
  CHECK(uses("tcp") == 1);
  CHECK(uses("rc,self") == 0);
  CHECK(uses("rc,shm,self") == 2);
  CHECK(uses("tcp,posix") == 3);
  CHECK(uses("^ib") == 3);
  CHECK(uses("^tcp") == 2);
  CHECK(uses("^shm,rc") == 1);
  CHECK(uses("^sm,tcp") == 0);
}

TEST_CASE("ucx: a peer that cannot be reached is lost; what was set up wrongly is the system's failure") {
  for (ucs_status_t const code : {UCS_ERR_UNREACHABLE, UCS_ERR_CONNECTION_RESET, UCS_ERR_ENDPOINT_TIMEOUT})
    CHECK(status_of(code) == status::peer_lost);
  for (ucs_status_t const code : {UCS_ERR_NO_DEVICE, UCS_ERR_INVALID_PARAM})
    CHECK(status_of(code) == status::system_failure);
  CHECK(status_of(UCS_ERR_NO_MEMORY) == status::out_of_memory);
}
