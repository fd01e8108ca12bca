// SPDX-License-Identifier: Apache-2.0
// Blocks that are lent whole: one message for each, however many fragments it has, and the right data; also
// where some ranks are in place, and an error where ranks have blocks of different lengths.
#include "collx/exec/lent_blocks.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/transport/threads.hpp"
#include "../transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::algo::direct_one_shot;
using collx::transport::handover;

// Counts what a rank sends.
template <class Endpoint>
struct counting_endpoint : Endpoint {
  using Endpoint::Endpoint;
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover how) noexcept {
    ++sent;
    Endpoint::send(lane, peer, payload, bytes, how);
  }
  int sent = 0;
};

struct counting {
  using world = collx::transport::threads::world;
  using endpoint = counting_endpoint<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<counting>;
};

// A block is then of 7 fragments and more.
collx::transport::settings const small_staging{.staging_bytes = 64 * 1024, .single_copy_bytes = 1024};
constexpr std::size_t block = 57'001;

void require(bool holds, std::string const& what) {
  if (!holds) throw std::runtime_error(what);
}

// What rank `from` has for rank `to` at `i`; of an all_gather for everybody.
int value(rank_t from, rank_t to, std::size_t i) {
  return from * 7919 + to * 101 + static_cast<int>(i % 4099);
}

template <class Communicator>
void transpose(Communicator& comm, bool in_place) {
  auto const size = static_cast<std::size_t>(comm.size());
  std::vector<int> in(size * block), out(in_place ? 0 : size * block);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = value(comm.rank(), static_cast<rank_t>(i / block), i % block);
  if (in_place) collx::all_to_all<direct_one_shot>(comm, in, in);
  else collx::all_to_all<direct_one_shot>(comm, in, out);
  std::vector<int> const& result = in_place ? in : out;
  for (std::size_t i = 0; i < result.size(); ++i)
    require(result[i] == value(static_cast<rank_t>(i / block), comm.rank(), i % block),
            "all_to_all, element " + std::to_string(i));
}

template <class Communicator>
void gather_all(Communicator& comm, bool in_place) {
  auto const size = static_cast<std::size_t>(comm.size());
  std::vector<int> own(block), out(size * block);
  auto const mine = std::span(out).subspan(static_cast<std::size_t>(comm.rank()) * block, block);
  std::span<int> const in = in_place ? mine : std::span(own);
  for (std::size_t i = 0; i < block; ++i) in[i] = value(comm.rank(), 0, i);
  collx::all_gather<direct_one_shot>(comm, in, out);
  for (std::size_t i = 0; i < out.size(); ++i)
    require(out[i] == value(static_cast<rank_t>(i / block), 0, i % block),
            "all_gather, element " + std::to_string(i));
}

}  // namespace

TEST_CASE("lent blocks: one message for each") {
  for (rank_t const size : {2, 3, 5})
    watched::on_threads<counting>(
        size,
        [](collx::communicator<counting>& comm) {
          int& sent = comm.engine().endpoint().sent;
          for (bool const gathers : {false, true}) {
            sent = 0;
            gathers ? gather_all(comm, false) : transpose(comm, false);
            std::string const what = gathers ? "messages of all_gather: " : "messages of all_to_all: ";
            require(sent == comm.size() - 1, what + std::to_string(sent));
          }
        },
        small_staging);
}

TEST_CASE("lent blocks: ranks in place and others fit together") {
  for (rank_t const size : {2, 3, 5})
    for (int const which : {0b00001, 0b00010, 0b10101, 0b11111})
      watched::on_threads<counting>(
          size,
          [&](collx::communicator<counting>& comm) {
            bool const in_place = (which >> comm.rank() & 1) != 0;
            gather_all(comm, in_place);
            transpose(comm, in_place);
            gather_all(comm, !in_place);
          },
          small_staging);
}

TEST_CASE("lent blocks: of processes, each is copied once, and all at once") {
  auto const codes = watched::on_processes<fetching>(
      3,
      [](collx::communicator<fetching>& comm) {
        collx::barrier(comm);  // all have said by its end whether they can read the others
        auto& endpoint = comm.engine().endpoint();
        bool const permitted = endpoint.space().fetched_bytes_min() != static_cast<std::size_t>(-1);
        transpose(comm, false);
        require(!permitted || endpoint.fetched == comm.size() - 1,
                "fetched " + std::to_string(endpoint.fetched));
        transpose(comm, comm.rank() == 1);
        return 0;
      },
      small_staging);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("lent blocks: where ranks call in different orders, nothing is stored behind an output") {
  constexpr std::size_t fragment = 64 * 1024 / 2 / sizeof(int);
  auto const codes = watched::on_processes(
      2,
      [](collx::communicator<collx::transport::shm>& comm) {
        // Rank 0 lends; rank 1 stages, since nobody can reach its memory, two fragments, of which rank 0
        // takes the first for a call of its own.
        bool const lends = comm.rank() == 0;
        auto const shared = comm.allocate<int>(2 * 2 * fragment);
        std::vector<int> own(2 * 2 * fragment, 1), out(2 * 2 * fragment + fragment, -1);
        std::span<int> const in = lends ? shared.span() : std::span(own);
        auto const call = [&](std::size_t each) {
          collx::all_to_all<direct_one_shot>(comm, in.first(2 * each), std::span(out).first(2 * each));
        };
        std::string said;
        try {
          call(lends ? fragment : 2 * fragment);
          call(lends ? 2 * fragment : fragment);
        } catch (collx::error const& e) {
          said = e.what();
        }
        for (std::size_t i = 2 * 2 * fragment; i < out.size(); ++i)
          require(out[i] == -1, "stored behind the output");
        require(said.find(lends ? "collx" : "mismatch") != std::string::npos, "no error, but: " + said);
        return 0;
      },
      {.staging_bytes = 64 * 1024, .single_copy_bytes = 0});
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("lent blocks: not by calls that begin while others are in flight") {
  watched::on_threads<counting>(
      3,
      [](collx::communicator<counting>& comm) {
        int& sent = comm.engine().endpoint().sent;
        std::vector<int> in(3 * block, comm.rank()), out(3 * block), first(1000), all(3000);
        // The first is in flight on this rank until it is waited for.
        auto request = collx::start::all_gather<direct_one_shot>(comm, first, all);
        sent = 0;
        collx::all_to_all<direct_one_shot>(comm, in, out);
        require(sent > 2 * 2 + 2, "messages beside another request: " + std::to_string(sent));
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
  watched::on_threads<counting>(
      2,
      [&](collx::communicator<counting>& comm) {
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
