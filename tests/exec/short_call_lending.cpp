// SPDX-License-Identifier: Apache-2.0
// From what length on short calls lend what peers can reach, whatever processor the test runs on; and the
// right data on both sides of each bound.
#include "collx/exec/short_call.hpp"

#include <atomic>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/transport/threads.hpp"
#include "require.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::algo::direct_one_shot;
using transport = counting<collx::transport::threads>;
using communicator = collx::communicator<transport>;
using numbers = std::vector<std::uint8_t>;

constexpr std::uint64_t ranks = 2, calls = 3;

// How many payloads both ranks lend in some calls of `call(communicator, bytes)`.
template <class Call>
std::uint64_t lent_by(std::size_t bytes, Call const& call) {
  std::atomic<std::uint64_t> lent{0};
  watched::on_threads<transport>(static_cast<collx::rank_t>(ranks), [&](communicator& comm) {
    for (std::uint64_t i = 0; i < calls; ++i) call(comm, bytes);
    lent += comm.engine().endpoint().lent();
  });
  return lent;
}

void broadcasts(communicator& comm, std::size_t bytes) {
  numbers all(bytes, comm.rank() == 0 ? 7 : 0);
  collx::broadcast<direct_one_shot>(comm, std::span(all), 0);
  require(all == numbers(bytes, 7), "broadcast");
}

void reduces(communicator& comm, std::size_t bytes) {
  numbers own(bytes, static_cast<std::uint8_t>(comm.rank() + 1)), sum(bytes);
  collx::reduce<direct_one_shot>(comm, own, sum, collx::sum, 0);
  require(comm.rank() != 0 || sum == numbers(bytes, 3), "reduce");
}

void gathers_all(communicator& comm, std::size_t bytes) {
  numbers own(bytes, static_cast<std::uint8_t>(comm.rank())), all(2 * bytes);
  collx::all_gather<direct_one_shot>(comm, own, all);
  require(all.front() == 0 && all.back() == 1 && all[bytes - 1] == 0 && all[bytes] == 1, "all_gather");
}

}  // namespace

TEST_CASE("short calls: what a root sends is lent above 8 KiB, or 4 where lines come slowly") {
  bool const before = collx::device::cpu::takes_lines_slowly;
  for (bool const slowly : {false, true}) {
    collx::device::cpu::takes_lines_slowly = slowly;
    unsigned const most_staged = slowly ? 4096 : 8192;
    for (unsigned const bytes : {2048u, 4095u, 4096u, 4097u, 8192u, 8193u}) {
      CAPTURE(slowly);
      CAPTURE(bytes);
      CHECK(lent_by(bytes, broadcasts) == (bytes > most_staged ? calls : 0));
      CHECK(lent_by(bytes, reduces) == (bytes > most_staged ? calls : 0));
      CHECK(lent_by(bytes, gathers_all) == (bytes >= 4096 ? ranks * calls : 0));
    }
  }
  collx::device::cpu::takes_lines_slowly = before;
}
