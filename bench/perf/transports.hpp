// SPDX-License-Identifier: Apache-2.0
// The transports collx_perf offers, with how each starts its ranks and which types are measured over it.
#pragma once

#include "collx/transport/shm.hpp"
#include "collx/transport/threads.hpp"
#include "names.hpp"

#if defined(COLLX_PERF_TCP_TYPES)
#include "collx/bootstrap/tcp.hpp"
#include "collx/bootstrap/tcp_processes.hpp"
#endif

namespace perf {

template <class Transport>
struct measured_types {
  using list = types;
};
#if defined(COLLX_PERF_TCP_TYPES)
template <>
struct measured_types<collx::transport::tcp> {
  using list = tcp_types;
};
#endif

template <class Transport>
using types_over = typename measured_types<Transport>::list;

}  // namespace perf
