// SPDX-License-Identifier: Apache-2.0
// A step that all ranks need: where one fails, all hear of it, at once and by whose fault.
#include "collx/collective/all_or_none.hpp"

#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "collx/collective/barrier.hpp"
#include "watched.hpp"

namespace {

using namespace collx;

// What a rank has met with.
struct met {
  bool made = false;
  status code = status::ok;
  std::string text;
};

// Every rank does `make(rank)` as a part of what all need.
template <class Make>
std::vector<met> on_ranks(rank_t size, Make const& make) {
  std::vector<met> all(static_cast<std::size_t>(size));
  watched::on_threads(size, [&](auto& comm) {
    met& mine = all[static_cast<std::size_t>(comm.rank())];
    auto const agree = [&](status outcome) noexcept { return detail::outcome_of_all(comm, outcome); };
    try {
      detail::all_or_none("a thing", comm.rank(), agree, [&] { make(comm.rank()); });
      mine.made = true;
    } catch (error const& e) {
      mine.code = e.code(), mine.text = e.what();
    } catch (std::exception const& e) {
      mine.text = e.what();
    }
    // Nobody is left behind in it: the communicator is as good as before.
    barrier(comm);
  });
  return all;
}

bool says(met const& one, char const* what) { return one.text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("what works on every rank is made") {
  for (rank_t const size : {1, 3})
    for (met const& each : on_ranks(size, [](rank_t) {})) CHECK(each.made);
}

TEST_CASE("what fails on one rank fails on all, at once, and names it") {
  auto const all = on_ranks(4, [](rank_t r) {
    if (r == 2) throw error(status::not_supported, "my own problem");
  });
  CHECK(says(all[2], "my own problem"));
  for (std::size_t const r : {0u, 1u, 3u}) {
    CHECK(says(all[r], "a thing on rank"));
    CHECK(says(all[r], "rank 2 could not do its part (not supported)"));
  }
  for (met const& each : all) {
    CHECK_FALSE(each.made);
    CHECK(each.code == status::not_supported);
  }
}

TEST_CASE("of several that fail the lowest is named, and each keeps its own exception") {
  auto const all = on_ranks(3, [](rank_t r) {
    if (r == 1) throw std::bad_alloc();
    if (r == 2) throw std::runtime_error("something else");
  });
  CHECK(all[0].code == status::out_of_memory);
  CHECK(says(all[0], "rank 1 could not do its part (out of memory)"));
  CHECK(all[1].text == std::bad_alloc().what());
  CHECK(all[2].text == "something else");
}

TEST_CASE("ranks that cannot ask each other are told so") {
  watched::on_threads(2, [](auto& comm) {
    if (comm.rank() == 1) return comm.abort();  // and never comes
    auto const agree = [&](status outcome) noexcept { return detail::outcome_of_all(comm, outcome); };
    try {
      detail::all_or_none("a thing", comm.rank(), agree, [] {});
      FAIL_CHECK("nobody else has made it");
    } catch (error const& e) {
      CHECK(e.code() == status::aborted);
      CHECK(std::string(e.what()).find("did not meet") != std::string::npos);
    }
  });
}
