// SPDX-License-Identifier: Apache-2.0
// The all_to_all with a stage in between: bit-equal to the flat one without a stage, and what is sent.
#include "collx/collective/staged_all_to_all.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "collx/mesh.hpp"
#include "meeting.hpp"
#include "require.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using transport = counting<collx::transport::threads>;
using communicator = collx::communicator<transport>;

struct local {};
struct host {};

std::vector<float> data_of(rank_t rank, std::size_t size) {
  std::vector<float> v(size);
  for (std::size_t i = 0; i < size; ++i)
    v[i] = 1.0f / static_cast<float>(1 + rank * 7919 + static_cast<int>(i));
  return v;
}

template <class Algorithm>
void compare(rank_t locals, rank_t hosts, std::size_t count) {
  watched::on_threads<transport>(
      locals * hosts,
      [&](communicator& world) {
        collx::mesh<transport, local, host> grid(world, {locals, hosts});
        auto const in = data_of(world.rank(), count * static_cast<std::size_t>(world.size()));
        std::vector<float> flat(in.size()), out(in.size()), gathered(in.size()), produced(in.size());
        collx::all_to_all<Algorithm>(world, in, flat);
        std::uint64_t const before = world.engine().endpoint().messages();
        collx::staged_all_to_all<Algorithm>(grid.along<local>(), grid.along<host>(), in, gathered, produced,
                                            out);
        std::uint64_t const sent = world.engine().endpoint().messages() - before;
        require(out.empty() || std::memcmp(out.data(), flat.data(), out.size() * sizeof(float)) == 0,
                "differs from all_to_all");
        // Of several fragments each sends so many; of nothing, nobody does.
        std::uint64_t const fewest = count == 0 ? 0 : static_cast<std::uint64_t>(locals - 1 + hosts - 1);
        require(count > 1000 || sent == fewest, "not one message per rank of the host and per other host");
      },
      {.staging_bytes = 64 * 1024});
}

// A start sends as many messages as the blocking call.
void persist(communicator& world, communicator& near, communicator& far, std::vector<float> const& in,
             std::vector<float> const& flat) {
  std::vector<float> changing(in.size()), gathered(in.size()), produced(in.size()), out(in.size());
  auto again = collx::persistent::staged_all_to_all<collx::algo::direct_one_shot>(near, far, changing,
                                                                                  gathered, produced, out);
  for (int turn = 0; turn < 3; ++turn) {
    changing = in;
    std::uint64_t const before = world.engine().endpoint().messages();
    again.start();
    again.wait();
    std::uint64_t const sent = world.engine().endpoint().messages() - before;
    require(out == flat, "a persistent one differs from all_to_all");
    auto const fewest = in.empty() ? 0u : static_cast<std::uint64_t>(near.size() - 1 + far.size() - 1);
    require(in.size() > 1000 || sent == fewest, "a start sends what the algorithm does not need");
    std::fill(out.begin(), out.end(), -1.0f);
  }
}

}  // namespace

TEST_CASE("staged_all_to_all: without a stage it is all_to_all, bit for bit, with few messages") {
  for (auto const& [locals, hosts] :
       {std::pair<rank_t, rank_t>{1, 1}, {1, 4}, {4, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 2}})
    for (std::size_t const count : {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{6000}}) {
      compare<collx::algo::direct_one_shot>(locals, hosts, count);
      compare<collx::algo::pairwise>(locals, hosts, count);
    }
}

TEST_CASE("staged_all_to_all: a stage that pools its host's values sends less between hosts") {
  watched::on_threads<transport>(6, [](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {3, 2});
    // Four ints of each rank for each rank; a tower keeps the sum of its host's, of every four values one.
    std::vector<int> in(6 * 4), gathered(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = world.rank() * 100 + static_cast<int>(i);
    std::vector<long> produced(6), out(6);
    auto const pool = [](std::span<int const> have, std::span<long> make, rank_t locals, rank_t hosts) {
      for (rank_t h = 0; h < hosts; ++h)
        for (rank_t l = 0; l < locals; ++l) {
          long sum = 0;
          for (std::size_t i = 0; i < 4; ++i) sum += have[static_cast<std::size_t>(l * hosts + h) * 4 + i];
          make[static_cast<std::size_t>(h * locals + l)] = sum;
        }
    };
    collx::staged_all_to_all(grid.along<local>(), grid.along<host>(), in, gathered, produced, out, pool);
    for (int s = 0; s < 6; ++s) {
      int const first = s * 100 + world.rank() * 4;
      require(out[static_cast<std::size_t>(s)] == 4L * first + 6, "a wrong sum");
    }
  });
}

TEST_CASE("staged_all_to_all: several started ones, and persistent ones, give what blocking ones do") {
  for (auto const& [locals, hosts] : {std::pair<rank_t, rank_t>{1, 3}, {3, 1}, {2, 2}, {2, 3}})
    watched::on_threads<transport>(
        locals * hosts,
        [per_host = locals, number = hosts](communicator& world) {
          collx::mesh<transport, local, host> grid(world, {per_host, number});
          auto& near = grid.along<local>();
          auto& far = grid.along<host>();
          for (std::size_t const count : {std::size_t{0}, std::size_t{3}, std::size_t{6000}}) {
            auto const in = data_of(world.rank(), count * static_cast<std::size_t>(world.size()));
            std::vector<float> flat(in.size());
            collx::all_to_all(world, in, flat);
            std::vector<std::vector<float>> gathered(3, flat), produced(3, flat), out(3);
            for (auto& each : out) each.resize(flat.size());
            auto const begin = [&](std::size_t k) {
              return collx::start::staged_all_to_all(near, far, in, gathered[k], produced[k], out[k]);
            };
            {
              auto first = begin(0);
              // Requests of one host alone: lanes of the two groups are no longer counted alike.
              std::vector<int> ones(4, 1);
              if (far.rank() == 0) collx::start::all_reduce(near, ones).wait();
              auto second = begin(1);
              auto third = begin(2);
              third.wait();
              while (!first.test()) std::this_thread::yield();
            }  // the second is waited for here
            for (auto const& each : out) require(each == flat, "a started one differs from all_to_all");
            persist(world, near, far, in, flat);
          }
        },
        {.staging_bytes = 64 * 1024});
}

TEST_CASE("staged_all_to_all: a stage runs once for every start, when its host's values have come") {
  watched::on_threads<transport>(4, [](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {2, 2});
    std::vector<int> in(4), gathered(4), produced(4), out(4);
    int stages = 0;
    auto const negate = [&stages](std::span<int const> have, std::span<int> make, rank_t l, rank_t h) {
      ++stages;
      collx::no_stage()(have, make, l, h);
      for (int& value : make) value = -value;
    };
    auto again = collx::persistent::staged_all_to_all(grid.along<local>(), grid.along<host>(), in, gathered,
                                                      produced, out, negate);
    for (int turn = 1; turn <= 5; ++turn) {
      for (std::size_t d = 0; d < 4; ++d) in[d] = turn * 100 + world.rank() * 10 + static_cast<int>(d);
      again.start();
      again.wait();
      require(stages == turn, "the stage did not run once");
      for (int s = 0; s < 4; ++s)
        require(out[static_cast<std::size_t>(s)] == -(turn * 100 + s * 10 + world.rank()), "a wrong value");
    }
  });
}

TEST_CASE("staged_all_to_all: what fails between two, fails the request; communicators apart are refused") {
  meeting after_split(4);
  watched::on_threads<transport>(4, [&](communicator& world) {
    communicator apart = world.split(world.rank() / 2, 0);
    collx::mesh<transport, local, host> grid(world, {2, 2});
    std::vector<int> in(4), gathered(4), produced(4), out(4);
    try {
      (void)collx::start::staged_all_to_all(apart, grid.along<host>(), in, gathered, produced, out);
      require(false, "not refused");
    } catch (collx::error const& failure) {
      require(std::string(failure.what()).find("along axes of one communicator") != std::string::npos,
              failure.what());
    }
    after_split.attend(world);
    if (world.rank() == 0) return world.abort();
    auto request =
        collx::start::staged_all_to_all(grid.along<local>(), grid.along<host>(), in, gathered, produced, out);
    require(request.try_wait() == collx::status::aborted, "not aborted");
  });
}

TEST_CASE("staged_all_to_all: buffers that do not fit are refused by name") {
  watched::on_threads<transport>(2, [](communicator& world) {
    collx::mesh<transport, local, host> grid(world, {2, 1});
    std::vector<int> fits(4), odd(5), large(6);
    auto const refused = [&](auto&... buffers) {
      try {
        collx::staged_all_to_all(grid.along<local>(), grid.along<host>(), buffers...);
      } catch (collx::error const& failure) {
        return failure.code() == collx::status::bad_argument;
      }
      return false;
    };
    require(refused(odd, odd, fits, fits), "an odd input");
    require(refused(fits, large, fits, fits), "too large a buffer");
    require(refused(fits, fits, large, fits), "too large a product");
    require(refused(fits, fits, odd, odd), "an odd output");
    require(refused(large, large, fits, fits), "a smaller output without a stage");
    // What is sorted would be overwritten before it is read.
    std::vector<int> gathered(4), produced(4), out(4);
    require(refused(fits, fits, produced, out), "an input that is gathered in place");
    require(refused(fits, gathered, gathered, out), "no stage, in place");
    std::vector<int> long_one(7);
    std::span<int> const front(long_one.data(), 4), behind(long_one.data() + 3, 4);
    require(refused(fits, front, behind, out), "a part of it");
    require(!refused(fits, gathered, produced, out), "memory of their own");
    require(!refused(fits, gathered, produced, fits), "an output where the input was");
  });
}
