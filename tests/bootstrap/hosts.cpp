// SPDX-License-Identifier: Apache-2.0
// What the hosts of all ranks say: how many ranks each has, and whether those share processors.
#include "collx/bootstrap/hosts.hpp"

#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace collx;
using summary = processor_set::summary;

template <class T>
array<T> array_of(std::vector<T> const& from) {
  array<T> made(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) made[i] = from[i];
  return made;
}

rank_t per_host(std::vector<std::uint64_t> const& hosts) {
  return bootstrap::ranks_per_host(array_of(hosts));
}

bool share(std::vector<std::uint64_t> const& machines, std::vector<summary> const& processors) {
  return bootstrap::share_processors(array_of(machines), array_of(processors));
}

}  // namespace

TEST_CASE("hosts: equally many ranks that follow each other, or one") {
  CHECK(per_host({7}) == 1);
  CHECK(per_host({7, 7, 7}) == 3);
  CHECK(per_host({7, 7, 9, 9}) == 2);
  CHECK(per_host({7, 7, 9}) == 1);
  CHECK(per_host({7, 9, 7, 9}) == 1);
  CHECK(per_host({7, 7, 9, 9, 7, 7}) == 1);
}

TEST_CASE("hosts: ranks share processors where they are more than those, on any machine") {
  summary const two{2, 10};
  CHECK_FALSE(share({7}, {{1, 10}}));
  CHECK_FALSE(share({7, 7}, {two, two}));
  CHECK(share({7, 7, 7}, {two, two, two}));
  CHECK_FALSE(share({7, 7, 9, 9}, {two, two, two, two}));
  CHECK(share({7, 7, 9, 9, 9}, {two, two, two, two, two}));
  // Ranks of one machine that do not follow each other.
  CHECK(share({7, 9, 7, 9, 7}, {two, two, two, two, two}));
  CHECK_FALSE(share({7, 9, 7, 9}, {two, two, two, two}));
}

TEST_CASE("hosts: ranks that are bound each to a processor of its own share none") {
  CHECK_FALSE(share({7, 7, 7}, {{1, 10}, {1, 11}, {1, 12}}));
  CHECK(share({7, 7, 7}, {{1, 10}, {1, 11}, {1, 10}}));
  CHECK_FALSE(share({7, 7, 7, 7}, {{2, 10}, {2, 11}, {2, 10}, {2, 11}}));
  CHECK(share({7, 7, 7, 7, 7}, {{2, 10}, {2, 11}, {2, 10}, {2, 11}, {2, 10}}));
}
