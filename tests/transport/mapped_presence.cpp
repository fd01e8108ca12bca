// SPDX-License-Identifier: Apache-2.0
// A rank that was at its peers' buffers while one of them gave up learns of it when it withdraws: that peer
// may have waited in vain, and what was read may be what its caller wrote since.
#include <doctest/doctest.h>

#include "collx/exec/presence.hpp"
#include "collx/transport/mapped/presence.hpp"

namespace {

using collx::status;
using collx::transport::mapped::presence;

struct endpoint {
  static constexpr bool lends_memory = true;
  presence& own;
  bool fenced;
  bool approach() noexcept { return own.approach(fenced); }
  bool withdraw() noexcept { return own.withdraw(); }
};

}  // namespace

TEST_CASE("mapped presence: work that a peer's giving up disturbs has not worked, whatever it says") {
  for (bool const fenced : {false, true}) {
    presence own{};
    endpoint mine{own, fenced};
    auto const at_work = [&](auto const& meanwhile) {
      return collx::exec::at_peers(mine, [&]() noexcept {
        CHECK(own.is_at_peers());
        meanwhile();
        return status::ok;
      });
    };
    CHECK(at_work([] {}) == status::ok);
    CHECK_FALSE(own.is_at_peers());
    CHECK(at_work([&] { own.bar(); }) == status::aborted);
    CHECK_FALSE(own.is_at_peers());
    bool was_there = false;
    CHECK(at_work([&] { was_there = true; }) == status::aborted);
    CHECK_FALSE(was_there);
    CHECK_FALSE(own.is_at_peers());
  }
}
