// SPDX-License-Identifier: Apache-2.0
// What the matrices rely on: that a walk which fails says in which call, that ranks have memory for every
// case, and that a run which takes a part of the cases takes each with some number of ranks.
#include <doctest/doctest.h>

#include "collective/each_rank.hpp"
#include "watched.hpp"

using namespace each_rank;
using collx::transport::threads;

namespace {

using entry = schedules::entry<forms::blocking, threads>;
using ring = collx::type_list<collx::algo::ring>;

// The sixth case of three ranks: two elements, in place.
constexpr cases::some sixth{1000, 5};

entry all_reduce() {
  for (entry const& each : schedules::all<forms::blocking, threads, ring>())
    if (each.collective == &oracle::collective_of<collx::contract::all_reduce>) return each;
  throw std::runtime_error("there is none");
}

// What rank 0 of three throws. `come`: the ranks that walk; the others abort.
std::string words_of_rank_0(entry const& called, rank_t come) {
  std::string words;
  watched::on_threads(3, [&](collx::communicator<threads>& comm) {
    std::vector<oracle::element> memory(memory_count(3));
    if (comm.rank() >= come) return comm.abort();
    try {
      walk_one(called, comm, memory.data(), sixth);
    } catch (std::runtime_error const& failed) {
      if (comm.rank() == 0) words = failed.what();
    }
  });
  return words;
}

void check_case(std::string const& words) {
  CAPTURE(words);
  for (char const* const part : {"all_reduce<ring>", "3 ranks", "count 2", "in place", "root 0",
                                 "pairs of uint32", "sums", "over threads", "rank 0"})
    CHECK_MESSAGE(words.find(part) != std::string::npos, "lacks: " << part);
}

// Whether each case of a schedule is met with one of the numbers of ranks.
bool are_all_met(oracle::collective const& what, rank_t first, rank_t last, std::size_t every) {
  std::vector<bool> met;
  for (rank_t size = first; size <= last; ++size) {
    cases::some const wanted{every, static_cast<std::size_t>(size)};
    std::size_t number = 0;
    cases::for_each(what, size, [&](oracle::setting const& how) {
      if (number == met.size()) met.push_back(false);
      if (wanted(how)) met[number] = true;
      ++number;
    });
  }
  return std::find(met.begin(), met.end(), false) == met.end();
}

}  // namespace

TEST_CASE("a walk that finds a wrong result says in which call") {
  entry wrong = all_reduce();
  wrong.perform = [](entry::communicator&, oracle::setting const&, std::span<oracle::element const>,
                     std::span<oracle::element> out) { out[1].a ^= 1; };
  std::string const words = words_of_rank_0(wrong, 3);
  check_case(words);
  CHECK(words.find("should be") != std::string::npos);
}

TEST_CASE("a walk whose call fails says in which") {
  std::string const words = words_of_rank_0(all_reduce(), 2);
  check_case(words);
  CHECK(words.find("aborted") != std::string::npos);
}

TEST_CASE("ranks have memory for every case") {
  collx::contract::all::for_each([&]<class Contract>() {
    oracle::collective const& what = oracle::collective_of<Contract>;
    for (rank_t size = 1; size <= oracle::reference::size_max; ++size)
      for (std::size_t const count : cases::counts(what, size))
        CHECK(oracle::participant::needed(what, size, count) <= memory_count(size));
  });
}

TEST_CASE("of one case in so many, as many numbers of ranks in a row walk all") {
  for (std::size_t const every : {std::size_t{1}, std::size_t{5}, std::size_t{7}}) {
    rank_t const last = 9 + static_cast<rank_t>(every) - 1;
    CHECK(are_all_met(oracle::collective_of<collx::contract::all_reduce>, 9, last, every));
    CHECK(are_all_met(oracle::collective_of<collx::contract::gather>, 9, last, every));
    if (every > 1) CHECK(!are_all_met(oracle::collective_of<collx::contract::gather>, 9, last - 1, every));
  }
}
