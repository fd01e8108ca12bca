// SPDX-License-Identifier: Apache-2.0
// A transport whose ranks have joined its world, and then lack memory for its communicator.
#pragma once

#include <new>

#include "collx/communicator.hpp"

template <class Transport>
struct unable {
  static constexpr char const* name = "unable";
  using world = typename Transport::world;
  using endpoint = typename Transport::endpoint;
  struct membership {
    template <class... Arguments>
    static collx::exec::engine<endpoint>* join_world(Arguments const&...) {
      throw std::bad_alloc();
    }
  };
};
