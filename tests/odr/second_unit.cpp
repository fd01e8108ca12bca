// SPDX-License-Identifier: Apache-2.0
// The other unit. It uses what first_unit.cpp uses, so that both emit it.
#include <vector>

#include "every_header.hpp"

int algorithm_count_of_second_unit() { return collx::algo::all::size; }
char const* status_name_of_second_unit() { return collx::name(collx::status::timeout); }

std::vector<int> sums_of_second_unit(collx::communicator<collx::transport::threads>& comm) {
  std::vector<int> values(1000, comm.rank() + 1);
  collx::all_reduce(comm, values);
  collx::start::all_reduce<collx::algo::ring>(comm, values, collx::max).wait();
  collx::broadcast(comm, values, 1);
  collx::barrier(comm);
  return values;
}
