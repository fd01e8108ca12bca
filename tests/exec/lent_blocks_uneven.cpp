// SPDX-License-Identifier: Apache-2.0
// Blocks of counts of their own that are lent whole: one message for each that has several fragments, of
// ranks that perhaps cut their calls in different numbers of them; and an error where two ranks disagree of
// one.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/transport/threads.hpp"
#include "exec/lent_calls.hpp"
#include "transport/counting.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::blocks;
using collx::rank_t;
using collx::algo::direct_one_shot;
using collx::algo::pairwise;
using transport = counting<collx::transport::threads>;
using counts_t = std::vector<std::size_t>;

// Of a block from one rank to another: none, a few, or some fragments.
std::size_t count_of(rank_t from, rank_t to) {
  auto const a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  return (a + 2 * b) % 5 == 3 ? 0 : (a + 2 * b) % 5 == 4 ? 7 + a : lent::block + 3001 * a + 977 * b;
}
template <class Of>
counts_t counts(rank_t size, Of const& of) {
  counts_t all;
  for (rank_t r = 0; r < size; ++r) all.push_back(of(r));
  return all;
}
std::size_t sum(counts_t const& counts, rank_t end) {
  std::size_t all = 0;
  for (rank_t r = 0; r < end; ++r) all += counts[static_cast<std::size_t>(r)];
  return all;
}
std::span<int> block_of(std::vector<int>& all, counts_t const& counts, rank_t rank) {
  return std::span(all).subspan(sum(counts, rank), counts[static_cast<std::size_t>(rank)]);
}
rank_t filled(counts_t const& counts, rank_t but) {
  rank_t n = 0;
  for (rank_t r = 0; r < static_cast<rank_t>(counts.size()); ++r)
    n += r != but && counts[static_cast<std::size_t>(r)] != 0;
  return n;
}

// These return how many messages there are to be, at least if nothing is staged.
template <class Algorithm, class Communicator>
rank_t transpose(Communicator& comm) {
  rank_t const rank = comm.rank(), size = comm.size();
  counts_t const given = counts(size, [&](rank_t r) { return count_of(rank, r); });
  counts_t const taken = counts(size, [&](rank_t r) { return count_of(r, rank); });
  std::vector<int> in(sum(given, size)), out(sum(taken, size));
  for (rank_t r = 0; r < size; ++r) lent::fill(block_of(in, given, r), rank, r);
  collx::all_to_all_v<Algorithm>(comm, blocks<int const>{in, given}, blocks<int>{out, taken});
  for (rank_t r = 0; r < size; ++r) lent::check(block_of(out, taken, r), r, rank, "all_to_all_v");
  return filled(given, rank);
}

// Everybody knows all counts, and where a block has fewer fragments than another its messages are empty.
template <class Communicator>
rank_t gather_all(Communicator& comm, bool in_place) {
  rank_t const rank = comm.rank(), size = comm.size();
  counts_t const given =
      counts(size, [&](rank_t r) { return lent::block + 9001 * static_cast<unsigned>(r); });
  std::vector<int> out(sum(given, size)), own(given[static_cast<std::size_t>(rank)]);
  std::span<int> const in = in_place ? block_of(out, given, rank) : std::span(own);
  lent::fill(in, rank, 0);
  collx::all_gather_v<direct_one_shot>(comm, in, blocks<int>{out, given});
  for (rank_t r = 0; r < size; ++r) lent::check(block_of(out, given, r), r, 0, "all_gather_v");
  return size - 1;
}

template <class Communicator>
rank_t gather_at(Communicator& comm, rank_t root, bool in_place) {
  rank_t const rank = comm.rank(), size = comm.size();
  bool const is_root = rank == root;
  counts_t const given = counts(size, [&](rank_t r) { return count_of(r, root); });
  std::vector<int> own(count_of(rank, root)), out(is_root ? sum(given, size) : 0);
  std::span<int> const in = is_root && in_place ? block_of(out, given, root) : std::span(own);
  lent::fill(in, rank, root);
  collx::gather_v<direct_one_shot>(comm, in, is_root ? blocks<int>{out, given} : blocks<int>{}, root);
  for (rank_t r = 0; is_root && r < size; ++r) lent::check(block_of(out, given, r), r, root, "gather_v");
  return !is_root && !own.empty();
}

template <class Communicator>
rank_t scatter_from(Communicator& comm, rank_t root, bool in_place) {
  rank_t const rank = comm.rank(), size = comm.size();
  bool const is_root = rank == root;
  counts_t const given = counts(size, [&](rank_t r) { return count_of(root, r); });
  std::vector<int> in(is_root ? sum(given, size) : 0), own(count_of(root, rank));
  for (rank_t r = 0; is_root && r < size; ++r) lent::fill(block_of(in, given, r), root, r);
  std::span<int> const out = is_root && in_place ? block_of(in, given, root) : std::span(own);
  collx::scatter_v<direct_one_shot>(comm, is_root ? blocks<int const>{in, given} : blocks<int const>{}, out,
                                    root);
  lent::check(out, root, rank, "scatter_v");
  return is_root ? filled(given, root) : 0;
}

// Calls which(name, call) for each.
template <class Communicator, class Which>
void each_call(Communicator& comm, Which const& which) {
  which("all_to_all_v", [&] { return transpose<direct_one_shot>(comm); });
  which("all_to_all_v, pairwise", [&] { return transpose<pairwise>(comm); });
  for (bool const in_place : {false, true}) {
    which("all_gather_v", [&] { return gather_all(comm, in_place); });
    for (rank_t root = 0; root < comm.size(); ++root) {
      which("gather_v", [&] { return gather_at(comm, root, in_place); });
      which("scatter_v", [&] { return scatter_from(comm, root, in_place); });
    }
  }
}

}  // namespace

TEST_CASE("lent blocks, uneven: one message for each") {
  for (rank_t const size : {2, 3, 5})
    watched::on_threads<transport>(
        size,
        [](collx::communicator<transport>& comm) {
          each_call(comm, [&](std::string const& what, auto const& call) {
            std::uint64_t const before = comm.engine().endpoint().messages();
            auto const should = static_cast<std::uint64_t>(call());
            std::uint64_t const sent = comm.engine().endpoint().messages() - before;
            require(sent == should,
                    what + ": " + std::to_string(sent) + " messages, not " + std::to_string(should));
          });
        },
        lent::small_staging);
}

TEST_CASE("lent blocks, uneven: of processes, the system copies each at once") {
  system_copies::say_if_refused();
  auto const codes = watched::on_processes<fetching>(
      3,
      [](collx::communicator<fetching>& comm) {
        collx::barrier(comm);  // all have said by its end whether they can read the others
        auto& endpoint = comm.engine().endpoint();
        rank_t large = 0;
        for (rank_t r = 0; r < 3; ++r) large += r != comm.rank() && count_of(r, comm.rank()) >= lent::block;
        (void)transpose<direct_one_shot>(comm);
        require(!permitted(comm) || endpoint.fetched == large, "fetched " + std::to_string(endpoint.fetched));
        each_call(comm, [](char const*, auto const& call) { (void)call(); });
        return 0;
      },
      lent::small_staging);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("lent blocks, uneven: of other lengths are an error, also where the first fragments are alike") {
  std::vector<std::string> said(2);
  watched::on_threads<transport>(
      2,
      [&](collx::communicator<transport>& comm) {
        // The root expects more of rank 1 than that has.
        counts_t const expected{lent::block, 2 * lent::block};
        std::vector<int> in(lent::block), out(3 * lent::block);
        try {
          collx::gather_v<direct_one_shot>(comm, in,
                                           comm.rank() == 0 ? blocks<int>{out, expected} : blocks<int>{}, 0);
        } catch (collx::error const& e) {
          said[static_cast<std::size_t>(comm.rank())] = e.what();
        }
      },
      lent::small_staging);
  INFO(said[0] << '\n' << said[1]);
  CHECK(said[0].find("mismatch") != std::string::npos);
  CHECK(said[0].find(std::to_string(2 * lent::block * sizeof(int))) != std::string::npos);
  CHECK(said[0].find(std::to_string(lent::block * sizeof(int))) != std::string::npos);
}
