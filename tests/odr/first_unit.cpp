// SPDX-License-Identifier: Apache-2.0
// One of two translation units that include every header, and call the same collectives on the same
// communicator; see second_unit.cpp.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "every_header.hpp"
#include "watched.hpp"

using communicator = collx::communicator<collx::transport::threads>;

int algorithm_count_of_second_unit();
char const* status_name_of_second_unit();
std::vector<int> sums_of_second_unit(communicator& comm);

namespace {

std::vector<int> sums_of_first_unit(communicator& comm) {
  std::vector<int> values(1000, comm.rank() + 1);
  collx::all_reduce(comm, values);
  collx::start::all_reduce<collx::algo::ring>(comm, values, collx::max).wait();
  collx::broadcast(comm, values, 1);
  collx::barrier(comm);
  return values;
}

}  // namespace

TEST_CASE("two translation units that include everything link and agree") {
  CHECK(algorithm_count_of_second_unit() == collx::algo::all::size);
  CHECK(status_name_of_second_unit() == std::string(collx::name(collx::status::timeout)));
}

TEST_CASE("two translation units call collectives in turn, and on different ranks at once") {
  watched::on_threads(3, [](communicator& comm) {
    std::vector<int> const expected(1000, 6);
    for (int round = 0; round < 4; ++round) {
      bool const by_first = round < 2 ? round == 0 : (comm.rank() + round) % 2 == 0;
      if ((by_first ? sums_of_first_unit(comm) : sums_of_second_unit(comm)) != expected)
        throw std::runtime_error("wrong sums");
    }
  });
}
