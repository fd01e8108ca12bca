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
#if defined(COLLX_PERF_COMPOSITE)
#include "collx/bootstrap/composite.hpp"
#endif

namespace perf {

template <class Transport>
struct measured_types {
  using list = types;
};
template <class Transport>
struct measured_algorithms {
  using list = collx::algo::all;
};
#if defined(COLLX_PERF_TCP_TYPES)
template <>
struct measured_types<collx::transport::tcp> {
  using list = tcp_types;
};
#endif

#if defined(COLLX_PERF_COMPOSITE)
using composite = collx::transport::composite<collx::transport::shm, collx::transport::tcp>;
template <>
struct measured_types<composite> {
  using list = tcp_types;
};
template <>
struct measured_algorithms<composite> {
  using list = grouped_algorithms;
};
#endif

template <class Transport>
using types_over = typename measured_types<Transport>::list;
template <class Transport>
using algorithms_over = typename measured_algorithms<Transport>::list;

}  // namespace perf
