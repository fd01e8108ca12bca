// SPDX-License-Identifier: Apache-2.0
// Blocks that are lent whole: one message for each, however many fragments it has, and the right data; also
// where some ranks are in place, and an error where ranks have blocks of different lengths.
#include "collx/exec/lent_blocks.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/scatter.hpp"
#include "collx/collective/send_receive.hpp"
#include "collx/transport/threads.hpp"
#include "exec/lent_calls.hpp"
#include "transport/counting.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::algo::direct_one_shot;
using collx::algo::pairwise;
using lent::block;
using lent::small_staging;
using transport = counting<collx::transport::threads>;

// The block of a rank in a vector of blocks.
std::span<int> block_of(std::span<int> all, rank_t rank) {
  return all.subspan(static_cast<std::size_t>(rank) * block, block);
}

template <class Algorithm = direct_one_shot, class Communicator>
void transpose(Communicator& comm, bool in_place) {
  auto const size = static_cast<std::size_t>(comm.size());
  std::vector<int> in(size * block), out(in_place ? 0 : size * block);
  for (rank_t r = 0; r < comm.size(); ++r) lent::fill(block_of(in, r), comm.rank(), r);
  if (in_place) collx::all_to_all<Algorithm>(comm, in, in);
  else collx::all_to_all<Algorithm>(comm, in, out);
  for (rank_t r = 0; r < comm.size(); ++r)
    lent::check(block_of(in_place ? in : out, r), r, comm.rank(), "all_to_all");
}

template <class Communicator>
void gather_all(Communicator& comm, bool in_place) {
  std::vector<int> own(block), out(static_cast<std::size_t>(comm.size()) * block);
  std::span<int> const in = in_place ? block_of(out, comm.rank()) : std::span(own);
  lent::fill(in, comm.rank(), 0);
  collx::all_gather<direct_one_shot>(comm, in, out);
  for (rank_t r = 0; r < comm.size(); ++r) lent::check(block_of(out, r), r, 0, "all_gather");
}

template <class Communicator>
void gather_at(Communicator& comm, rank_t root, bool in_place) {
  bool const is_root = comm.rank() == root;
  std::vector<int> own(block), out(is_root ? static_cast<std::size_t>(comm.size()) * block : 0);
  std::span<int> const in = is_root && in_place ? block_of(out, root) : std::span(own);
  lent::fill(in, comm.rank(), root);
  collx::gather<direct_one_shot>(comm, in, out, root);
  for (rank_t r = 0; is_root && r < comm.size(); ++r) lent::check(block_of(out, r), r, root, "gather");
}

template <class Communicator>
void scatter_from(Communicator& comm, rank_t root, bool in_place) {
  bool const is_root = comm.rank() == root;
  std::vector<int> in(is_root ? static_cast<std::size_t>(comm.size()) * block : 0), own(block);
  for (rank_t r = 0; is_root && r < comm.size(); ++r) lent::fill(block_of(in, r), root, r);
  std::span<int> const out = is_root && in_place ? block_of(in, root) : std::span(own);
  collx::scatter<direct_one_shot>(comm, in, out, root);
  lent::check(out, root, comm.rank(), "scatter");
}

}  // namespace

TEST_CASE("lent blocks: one message for each") {
  for (rank_t const size : {2, 3, 4, 5})
    watched::on_threads<transport>(
        size,
        [](collx::communicator<transport>& comm) {
          auto const sends = [&](char const* what, rank_t should, auto const& call) {
            std::uint64_t const before = comm.engine().endpoint().messages();
            call();
            std::uint64_t const sent = comm.engine().endpoint().messages() - before;
            require(sent == static_cast<std::uint64_t>(should),
                    std::string(what) + ": " + std::to_string(sent) + " messages");
          };
          rank_t const others = comm.size() - 1, root = others;
          bool const is_root = comm.rank() == root;
          sends("all_gather", others, [&] { gather_all(comm, false); });
          sends("all_to_all", others, [&] { transpose(comm, false); });
          sends("all_to_all, pairwise", others, [&] { transpose<pairwise>(comm, false); });
          sends("gather", !is_root, [&] { gather_at(comm, root, false); });
          sends("gather in place", !is_root, [&] { gather_at(comm, root, true); });
          sends("scatter", is_root ? others : 0, [&] { scatter_from(comm, root, false); });
          sends("scatter in place", is_root ? others : 0, [&] { scatter_from(comm, root, true); });
        },
        small_staging);
}

TEST_CASE("lent blocks: ranks in place and others fit together") {
  for (rank_t const size : {2, 3, 5})
    for (int const which : {0b00001, 0b00010, 0b10101, 0b11111})
      watched::on_threads<transport>(
          size,
          [&](collx::communicator<transport>& comm) {
            bool const in_place = (which >> comm.rank() & 1) != 0;
            gather_all(comm, in_place);
            transpose(comm, in_place);
            transpose<pairwise>(comm, in_place);
            gather_all(comm, !in_place);
          },
          small_staging);
}

TEST_CASE("lent blocks: of processes, each is copied once, and all at once") {
  system_copies::say_if_refused();
  auto const codes = watched::on_processes<fetching>(
      3,
      [](collx::communicator<fetching>& comm) {
        collx::barrier(comm);  // all have said by its end whether they can read the others
        auto& endpoint = comm.engine().endpoint();
        transpose(comm, false);
        require(!permitted(comm) || endpoint.fetched == comm.size() - 1,
                "fetched " + std::to_string(endpoint.fetched));
        transpose(comm, comm.rank() == 1);
        transpose<pairwise>(comm, comm.rank() == 1);
        return 0;
      },
      small_staging);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("lent blocks: where ranks call in different orders, nothing is stored behind an output") {
  constexpr std::size_t fragment = 64 * 1024 / 2 / sizeof(int);
  // What each calls, in fragments. Rank 1 lends; rank 0 stages, since nobody can reach its memory. While
  // rank 0 is in the middle of a call, rank 1 lends a block: of more fragments than are left of it, and of as
  // many.
  struct orders {
    std::vector<std::size_t> of[2];
  };
  for (orders const& calls : {orders{{{2, 1}, {1, 2}}}, orders{{{3}, {1, 2}}}}) {
    auto const codes = watched::on_processes(
        2,
        [&](collx::communicator<collx::transport::shm>& comm) {
          bool const lends = comm.rank() == 1;
          constexpr std::size_t most = 3 * fragment;
          auto const shared = comm.allocate<int>(2 * most);
          std::vector<int> own(2 * most, 1), out(2 * most + fragment, -1);
          std::span<int> const in = lends ? shared.span() : std::span(own);
          std::string said;
          std::size_t largest = 0;
          try {
            for (std::size_t const fragments : calls.of[comm.rank()]) {
              largest = std::max(largest, fragments);
              auto const elements = 2 * fragments * fragment;
              collx::all_to_all<direct_one_shot>(comm, in.first(elements), std::span(out).first(elements));
            }
          } catch (collx::error const& e) {
            said = e.what();
          }
          for (std::size_t i = 2 * largest * fragment; i < out.size(); ++i)
            require(out[i] == -1, "stored behind the output");
          require(said.find(lends ? "collx" : "mismatch") != std::string::npos, "no error, but: " + said);
          return 0;
        },
        {.staging_bytes = 64 * 1024, .single_copy_bytes = 0});
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("lent blocks: not by calls that begin while others are in flight") {
  watched::on_threads<transport>(
      3,
      [](collx::communicator<transport>& comm) {
        auto const& endpoint = comm.engine().endpoint();
        // Of two fragments: to start it does one at most, so that it is in flight when the next call begins,
        // also on the rank that comes last and finds all that it waits for.
        std::vector<int> in(3 * block, comm.rank()), out(3 * block), first(10'000), all(30'000);
        std::uint64_t const before = endpoint.messages();
        auto request = collx::start::all_gather<direct_one_shot>(comm, first, all);
        collx::all_to_all<direct_one_shot>(comm, in, out);
        std::uint64_t const sent = endpoint.messages() - before;
        // Two fragments, or three, and one message for each block that is lent would be 8 at most.
        require(sent >= 2 * 7, "messages beside another request: " + std::to_string(sent));
        request.wait();
        for (std::size_t i = 0; i < out.size(); ++i)
          require(out[i] == static_cast<int>(i / block), "element " + std::to_string(i));
      },
      small_staging);
}

TEST_CASE("lent blocks: of other lengths are an error, also where the first fragments are alike") {
  // Half of the staging memory: what a fragment of the one block that is sent may take.
  constexpr std::size_t fragment = 64 * 1024 / 2 / sizeof(int);
  std::vector<std::string> said(2);
  watched::on_threads<transport>(
      2,
      [&](collx::communicator<transport>& comm) {
        std::size_t const each = comm.rank() == 0 ? 3 * fragment : fragment;
        std::vector<int> in(2 * each), out(2 * each);
        try {
          collx::all_to_all<direct_one_shot>(comm, in, out);
        } catch (collx::error const& e) {
          said[static_cast<std::size_t>(comm.rank())] = e.what();
        }
      },
      small_staging);
  INFO(said[0] << '\n' << said[1]);
  CHECK(said[0] != "");
  CHECK(said[1].find("mismatch") != std::string::npos);
  CHECK(said[1].find(std::to_string(3 * fragment * sizeof(int))) != std::string::npos);
}

TEST_CASE("lent blocks: who calls something else, as long as a first fragment, is told") {
  // Half of the staging memory.
  constexpr std::size_t fragment = 64 * 1024 / 2 / sizeof(int);
  using communicator = collx::communicator<transport>;
  auto const told = [](auto const& lends, auto const& takes) {
    std::string said;
    watched::on_threads<transport>(
        2,
        [&](communicator& comm) {
          // Were it taken for what was waited for, both would go on, with half of what was sent.
          try {
            comm.rank() == 0 ? lends(comm) : takes(comm);
            collx::barrier(comm);
          } catch (collx::error const& e) {
            if (comm.rank() == 1) said = e.what();
          }
        },
        small_staging);
    INFO(said);
    CHECK(said.find("mismatch") != std::string::npos);
    CHECK(said.find(std::to_string(2 * fragment * sizeof(int))) != std::string::npos);
  };
  auto const scatters = [](communicator& comm) {
    std::vector<int> in(4 * fragment), own(2 * fragment);
    collx::scatter<direct_one_shot>(comm, in, own, 0);
  };
  auto const gathers = [](communicator& comm) {
    std::vector<int> own(2 * fragment);
    collx::gather<direct_one_shot>(comm, own, own, 1);
  };
  told(scatters, [](communicator& comm) {
    std::vector<int> all(fragment);
    collx::broadcast<direct_one_shot>(comm, all, 0);
  });
  told(gathers, [](communicator& comm) {
    std::vector<int> own(fragment), all(fragment);
    collx::reduce<direct_one_shot>(comm, own, all, collx::sum, 1);
  });
}

TEST_CASE("lent blocks: no piece of a single message, though as long") {
  // An eighth of the staging memory, as a fragment is where the root may have to stage four blocks.
  constexpr std::size_t piece = 64 * 1024 / 8 / sizeof(int);
  for (rank_t const size : {4, 5}) {
    std::string said;
    watched::on_threads<transport>(
        size,
        [&](collx::communicator<transport>& comm) {
          std::size_t const blocks = comm.rank() == 0 ? static_cast<std::size_t>(size) : 0;
          std::vector<int> in(2 * piece * blocks), own(2 * piece);
          try {
            if (comm.rank() != 1) collx::scatter<direct_one_shot>(comm, in, own, 0);
            else collx::receive(comm, std::span(own).first(piece), 0);
            collx::barrier(comm);
          } catch (collx::error const& e) {
            if (comm.rank() == 1) said = e.what();
          }
        },
        {.staging_bytes = 64 * 1024});
    INFO(said);
    CHECK(said.find("mismatch") != std::string::npos);
    CHECK(said.find(std::to_string(2 * piece * sizeof(int))) != std::string::npos);
  }
}
