// SPDX-License-Identifier: Apache-2.0
// The lists of ranks that PMIx hands out.
#include "collx/bootstrap/rank_list.hpp"

#include <string>

#include <doctest/doctest.h>

namespace {

std::string read_all(char const* list, collx::rank_t size) {
  std::string found;
  for (collx::rank_t rank; (rank = collx::bootstrap::next_of_rank_list(list, size)) != collx::no_rank;)
    found += std::to_string(rank) + ' ';
  return found + (*list == '\0' ? "end" : list);
}

}  // namespace

TEST_CASE("rank lists: ranks in their order, up to what is none") {
  CHECK(read_all("0,1,5", 6) == "0 1 5 end");
  CHECK(read_all("12", 4096) == "12 end");
  CHECK(read_all("", 4) == "end");
  CHECK(read_all("1,x", 4) == "1 x");
  CHECK(read_all("-1", 4) == "-1");
  CHECK(read_all("2,4", 4).starts_with("2 "));
  CHECK(read_all("2,4", 4) != "2 4 end");
  CHECK(read_all("1;2", 4).find("2 ") == std::string::npos);
  CHECK(read_all("99999999999999999999999999,1", 4).find(' ') == std::string::npos);
}
