// SPDX-License-Identifier: Apache-2.0
// How the ranks of a measurement meet and put their figures together: with collx itself.
// Compiled once per transport (COLLX_PERF_TRANSPORT).
#include "case.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "transports.hpp"

namespace perf {

template <class Transport>
void meet(collx::communicator<Transport>& world) {
  collx::barrier(world);
}

template <class Transport>
void slowest(collx::communicator<Transport>& world, std::span<double> samples) {
  collx::all_reduce(world, samples, collx::max);
}

template <class Transport>
std::int64_t total(collx::communicator<Transport>& world, std::int64_t mine) {
  std::int64_t sum = mine;
  collx::all_reduce(world, std::span<std::int64_t>(&sum, 1), collx::sum);
  return sum;
}

using measured = collx::communicator<COLLX_PERF_TRANSPORT>;
template void meet(measured&);
template void slowest(measured&, std::span<double>);
template std::int64_t total(measured&, std::int64_t);

}  // namespace perf
