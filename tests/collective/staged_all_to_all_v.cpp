// SPDX-License-Identifier: Apache-2.0
// The staged all_to_all with counts of its own: what all_to_all_v gives, without a stage; what a stage makes
// of it; and how many messages go between each two hosts, of this form and the one with equal blocks.
#include "collx/collective/staged_all_to_all_v.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/collective/staged_all_to_all.hpp"
#include "collx/collx.hpp"
#include "collx/mesh.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::blocks;
using collx::rank_t;
using counts_t = std::vector<std::size_t>;

struct local {};
struct host {};

// Counts messages by receiver.
template <class Endpoint>
struct counts_receivers : Endpoint {
  using Endpoint::Endpoint;
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    ++messages[static_cast<std::size_t>(peer)];
    Endpoint::send(lane, peer, payload, bytes, how);
  }
  std::array<int, 16> messages{};
};
struct transport {
  using world = collx::transport::threads::world;
  using endpoint = counts_receivers<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<transport>;
};
using communicator = collx::communicator<transport>;

// What rank s has for rank d; about one in four is empty.
std::size_t count_of(rank_t s, rank_t d, std::size_t scale) {
  auto const k = static_cast<std::size_t>(s * 7 + d * 3 + s * d);
  return k % 4 == 1 ? 0 : k % 5 * scale;
}
std::size_t sum_of(counts_t const& counts) {
  std::size_t sum = 0;
  for (std::size_t const each : counts) sum += each;
  return sum;
}
template <class F>
counts_t counts(rank_t n, F const& of) {
  counts_t all;
  for (rank_t r = 0; r < n; ++r) all.push_back(of(r));
  return all;
}

// One rank's side: blocks of every kind for L ranks on each of H hosts.
struct side {
  side(rank_t rank, rank_t locals, rank_t hosts, std::size_t scale) {
    rank_t const n = locals * hosts, lane = rank % locals, home = rank / locals;
    to = counts(n, [&](rank_t d) { return count_of(rank, d, scale); });
    from = counts(n, [&](rank_t s) { return count_of(s, rank, scale); });
    gathered = counts(
        n, [&](rank_t b) { return count_of(home * locals + b / hosts, b % hosts * locals + lane, scale); });
    produced = counts(
        n, [&](rank_t b) { return count_of(home * locals + b % locals, b / locals * locals + lane, scale); });
    for (rank_t d = 0; d < n; ++d)
      for (std::size_t i = 0; i < to[static_cast<std::size_t>(d)]; ++i)
        in.push_back(static_cast<int>(i) + 1000 * d + 100'000 * rank);
  }
  counts_t to, from, gathered, produced;
  std::vector<int> in;
};

void compare(communicator& world, rank_t locals, std::size_t scale) {
  rank_t const hosts = world.size() / locals;
  collx::mesh<transport, local, host> grid(world, {locals, hosts});
  side const mine(world.rank(), locals, hosts, scale);
  std::vector<int> flat(sum_of(mine.from)), out(flat.size(), -1), packed(mine.in.size()),
      gathered(sum_of(mine.gathered)), produced(gathered.size());
  blocks<int const> const in(mine.in, mine.to);
  collx::all_to_all_v<collx::algo::direct_one_shot>(world, in, blocks<int>(flat, mine.from));
  auto const before = world.engine().endpoint().messages;
  collx::staged_all_to_all_v<collx::algo::direct_one_shot>(
      grid.along<local>(), grid.along<host>(), in, packed, blocks<int>(gathered, mine.gathered),
      blocks<int>(produced, mine.produced), blocks<int>(out, mine.from));
  require(out == flat, "differs from all_to_all_v");
  auto const& after = world.engine().endpoint().messages;
  for (rank_t r = 0; r < world.size(); ++r) {
    auto const at = static_cast<std::size_t>(r);
    bool const near = r / locals == world.rank() / locals, same_lane = r % locals == world.rank() % locals;
    int const sent = after[at] - before[at];
    require(scale > 1000 || sent <= ((near || same_lane) && r != world.rank() ? 1 : 0),
            "a message to a rank of another host and lane, or more than one");
  }
}

// Started, with another one in flight, and set up once.
void compare_started(communicator& world, rank_t locals, std::size_t scale) {
  collx::mesh<transport, local, host> grid(world, {locals, world.size() / locals});
  side mine(world.rank(), locals, world.size() / locals, scale);
  std::vector<int> flat(sum_of(mine.from)), out(flat.size(), -1), other(flat.size(), -1),
      packed(mine.in.size()), gathered(sum_of(mine.gathered)), produced(gathered.size()), packed_too(packed),
      gathered_too(gathered), produced_too(produced);
  blocks<int const> const in(mine.in, mine.to);
  collx::all_to_all_v(world, in, blocks<int>(flat, mine.from));
  auto again = collx::persistent::staged_all_to_all_v(
      grid.along<local>(), grid.along<host>(), in, packed, blocks<int>(gathered, mine.gathered),
      blocks<int>(produced, mine.produced), blocks<int>(out, mine.from));
  for (int turn = 0; turn < 2; ++turn) {
    std::fill(out.begin(), out.end(), -1);
    again.start();
    auto once = collx::start::staged_all_to_all_v(
        grid.along<local>(), grid.along<host>(), in, packed_too, blocks<int>(gathered_too, mine.gathered),
        blocks<int>(produced_too, mine.produced), blocks<int>(other, mine.from));
    once.wait();
    again.wait();
    require(out == flat && other == flat, "differs from all_to_all_v");
  }
  ++mine.to[0];
  try {
    again.start();
    require(false, "other counts are not refused");
  } catch (collx::error const& failure) {
    require(failure.code() == collx::status::bad_argument, failure.what());
  }
}

}  // namespace

TEST_CASE("staged_all_to_all_v: without a stage it is all_to_all_v") {
  for (auto const& [locals, hosts] :
       {std::pair<rank_t, rank_t>{1, 1}, {1, 4}, {4, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 2}})
    watched::on_threads<transport>(
        locals * hosts,
        [per_host = locals](communicator& world) {
          for (std::size_t const scale : {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{4001}})
            compare(world, per_host, scale);
          for (std::size_t const scale : {std::size_t{0}, std::size_t{1}, std::size_t{4001}})
            compare_started(world, per_host, scale);
        },
        {.staging_bytes = 64 * 1024});
}

TEST_CASE("staged_all_to_all: between two hosts go L messages each way, where a flat one sends L x L") {
  rank_t const locals = 3, hosts = 3;
  watched::on_threads<transport>(locals * hosts, [&](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {locals, hosts});
    std::vector<int> in(9, world.rank()), flat(9), out(9), gathered(9), produced(9);
    auto const to_hosts = [&](auto const& call) {
      auto const before = world.engine().endpoint().messages;
      call();
      std::vector<int> sent(hosts);
      for (std::size_t r = 0; r < 9; ++r) sent[r / 3] += world.engine().endpoint().messages[r] - before[r];
      sent[static_cast<std::size_t>(world.rank() / locals)] = 0;
      // Of all ranks of this host.
      collx::all_reduce(grid.along<local>(), sent);
      return sent;
    };
    std::vector<int> few(hosts, locals), many(hosts, locals * locals);
    few[static_cast<std::size_t>(world.rank() / locals)] =
        many[static_cast<std::size_t>(world.rank() / locals)] = 0;
    require(to_hosts([&] { collx::all_to_all<collx::algo::direct_one_shot>(world, in, flat); }) == many,
            "flat");
    require(to_hosts([&] {
              collx::staged_all_to_all<collx::algo::direct_one_shot>(grid.along<local>(), grid.along<host>(),
                                                                     in, gathered, produced, out);
            }) == few,
            "staged");
    require(out == flat, "another result");
    counts_t const one(9, 1);
    std::vector<int> packed(9), other(9);
    require(to_hosts([&] {
              collx::staged_all_to_all_v<collx::algo::direct_one_shot>(
                  grid.along<local>(), grid.along<host>(), blocks<int const>(in, one), packed,
                  blocks<int>(gathered, one), blocks<int>(produced, one), blocks<int>(other, one));
            }) == few,
            "staged, with counts");
    require(other == flat, "another result with counts");
  });
}

TEST_CASE("staged_all_to_all_v: a stage that pools sends less; the number depends on the receiver") {
  watched::on_threads<transport>(4, [](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {2, 2});
    // d + 1 values for rank d, of which its host's tower keeps the sum, h + 1 times for host h.
    side mine(world.rank(), 2, 2, 0);
    auto const lane = static_cast<std::size_t>(world.rank() % 2),
               home = static_cast<std::size_t>(world.rank() / 2);
    mine.to = {1, 2, 3, 4};
    mine.in.assign(10, world.rank() + 1);
    mine.gathered = {lane + 1, lane + 3, lane + 1, lane + 3};
    mine.produced = {1, 1, 2, 2};
    mine.from = counts_t(4, home + 1);
    std::vector<int> packed(10), gathered(sum_of(mine.gathered));
    std::vector<long> produced(6), out(4 * (home + 1), -1);
    collx::staged_all_to_all_v(grid.along<local>(), grid.along<host>(), blocks<int const>(mine.in, mine.to),
                               packed, blocks<int>(gathered, mine.gathered),
                               blocks<long>(produced, mine.produced), blocks<long>(out, mine.from),
                               [](auto const& have, auto const& make, rank_t, rank_t hosts) {
                                 std::size_t at = 0;
                                 std::array<long, 4> sums{};
                                 for (std::size_t b = 0; b < 4; ++b)
                                   for (std::size_t i = 0; i < have.counts[b]; ++i)
                                     sums[b] += have.data[at++];
                                 at = 0;
                                 for (std::size_t b = 0; b < 4; ++b)  // block h * 2 + l of what is made
                                   for (std::size_t i = 0; i < make.counts[b]; ++i)
                                     make.data[at++] = sums[b % 2 * static_cast<std::size_t>(hosts) + b / 2];
                               });
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto const sender = static_cast<long>(i / (home + 1));
      require(out[i] == (sender + 1) * (world.rank() + 1), "a wrong sum");
    }
  });
}

TEST_CASE("staged_all_to_all_v: blocks that do not fit are refused by name") {
  watched::on_threads<transport>(2, [](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {2, 1});
    std::vector<int> memory(4), small(1);
    counts_t const fits{2, 2}, large{2, 3}, three{1, 1, 1};
    auto const refused = [&](counts_t const& in, std::vector<int>& packed, counts_t const& out,
                             char const* words, counts_t const& made = {2, 2}) {
      std::vector<int> gathered(4), produced(4), result(4);
      try {
        collx::staged_all_to_all_v(grid.along<local>(), grid.along<host>(), blocks<int const>(memory, in),
                                   packed, blocks<int>(gathered, fits), blocks<int>(produced, made),
                                   blocks<int>(result, out));
      } catch (collx::error const& failure) {
        return failure.code() == collx::status::bad_argument &&
               std::string(failure.what()).find(words) != std::string::npos;
      }
      return false;
    };
    require(refused(three, memory, fits, "the input must have a count for every rank"), "three counts");
    require(refused(large, memory, fits, "the input must hold its blocks"), "too large a block");
    require(refused(fits, small, fits, "`packed`"), "too small a buffer");
    require(refused(fits, memory, large, "the output must hold"), "too large an output");
    require(refused(fits, memory, fits, "without a stage block h * L + l", {1, 3}), "other blocks than came");
    // The blocks count, not the buffer around them.
    counts_t const less{1, 1};
    std::vector<int> two(2), none;
    require(refused(less, none, fits, "`packed`"), "no buffer");
    require(!refused(less, two, less, "`packed`"), "a larger input than its blocks");
    require(refused(fits, memory, fits, "`packed` overlaps the input"), "packed in place");
  });
}

TEST_CASE("staged_all_to_all_v: sums that two ranks do not share are a mismatch that names both") {
  watched::on_threads<transport>(2, [](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {2, 1});
    // Rank 0 sends three to rank 1, which expects two.
    bool const sends_more = world.rank() == 0;
    counts_t const to = sends_more ? counts_t{2, 3} : counts_t{2, 2}, from{2, 2};
    std::vector<int> in(5), packed(5), gathered(4), produced(4), out(4);
    try {
      collx::staged_all_to_all_v(grid.along<local>(), grid.along<host>(), blocks<int const>(in, to), packed,
                                 blocks<int>(gathered, from), blocks<int>(produced, from),
                                 blocks<int>(out, from));
      require(sends_more, "two elements of three were taken for all");
    } catch (collx::error const& failure) {
      if (sends_more) return require(failure.code() == collx::status::aborted, failure.what());
      require(failure.code() == collx::status::mismatch, failure.what());
      for (char const* part : {"rank 1", "peer 0", "8 bytes", "12"})
        require(std::string(failure.what()).find(part) != std::string::npos, failure.what());
    }
  });
}
