// SPDX-License-Identifier: Apache-2.0
// Every transport's endpoint, decorated or not, models the concept that the executor is written for.
#include "collx/transport/concept.hpp"

#include <doctest/doctest.h>

#include "collx/transport/faulty.hpp"
#include "collx/transport/mailbox.hpp"
#include "collx/transport/shm.hpp"
#include "collx/transport/threads.hpp"

namespace transport = collx::transport;

TEST_CASE_TEMPLATE("endpoints model the concept", Transport, transport::threads, transport::shm,
                   transport::mailbox) {
  static_assert(transport::endpoint<typename Transport::endpoint>);
  static_assert(transport::endpoint<typename transport::faulty<Transport>::endpoint>);
  static_assert(Transport::endpoint::lane_count >= 2);
  CHECK(Transport::name != nullptr);
}

TEST_CASE("which transports map their peers' memory") {
  static_assert(transport::threads::endpoint::is_mapped);
  static_assert(transport::shm::endpoint::is_mapped);
  static_assert(!transport::mailbox::endpoint::is_mapped);
  CHECK(true);
}
