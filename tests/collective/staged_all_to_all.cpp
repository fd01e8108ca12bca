// SPDX-License-Identifier: Apache-2.0
// The all_to_all with a stage in between: bit-equal to the flat one without a stage, and what is sent.
#include "collx/collective/staged_all_to_all.hpp"

#include <cstring>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "collx/mesh.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using transport = counting<collx::transport::threads>;
using communicator = collx::communicator<transport>;

struct local {};
struct host {};

void require(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(what);
}

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
  });
}
