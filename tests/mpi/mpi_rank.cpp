// SPDX-License-Identifier: Apache-2.0
// One rank of a test of transport::mpi: mpi_rank SCENARIO, under mpirun. Ends with 0 if all was as it should
// be.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "collective/each_rank.hpp"
#include "collx/bootstrap/mpi.hpp"
#include "collx/collective/send_receive.hpp"
#include "collx/collective/split.hpp"
#include "collx/transport/faulty.hpp"
#include "sample.hpp"

using collx::rank_t;
using collx::status;
using collx::transport::mpi;
using world_type = collx::communicator<mpi>;

static_assert(collx::transport::endpoint<mpi::endpoint>);
static_assert(collx::transport::endpoint<collx::transport::faulty<mpi>::endpoint>);
static_assert(!mpi::endpoint::is_mapped && mpi::endpoint::lane_count >= 3);

namespace {

void require(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(what);
}

collx::transport::settings small_staging() {
  collx::transport::settings chosen = collx::transport::settings::from_environment();
  chosen.staging_bytes = cases::staging_bytes;
  return chosen;
}

// Every contract with each algorithm of the sample.
void matrix(world_type& world) {
  std::vector<oracle::element> memory(each_rank::memory_count(world.size()));
  auto const all = [](oracle::setting const&) { return true; };
  std::size_t const done = each_rank::walk<forms::blocking, sample::algorithms>(world, memory.data(), all);
  require(done > 100, "walked next to nothing");
  if (world.rank() == 0) std::printf("%d ranks: %zu collectives\n", world.size(), done);
}

// Settings that differ are found when ranks join, on all of them.
void different_settings() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  collx::transport::settings chosen = small_staging();
  if (rank == 1) chosen.staging_bytes *= 2;
  status how = status::ok;
  try {
    (void)mpi::join(MPI_COMM_WORLD, chosen);
  } catch (collx::error const& failure) {
    how = failure.code();
  }
  require(how == status::bad_argument, "different sizes of staging are not refused");
}

// More messages one way than there are credits, of sizes on both sides of what MPI sends at once.
void stream_one_way(world_type& world) {
  std::vector<std::uint32_t> block(50'000);
  for (std::size_t const count : {std::size_t{1}, std::size_t{200}, block.size()})
    for (std::uint32_t round = 0; round < 50; ++round) {
      if (world.rank() == 0) {
        std::fill(block.begin(), block.end(), round);
        collx::send(world, std::span<std::uint32_t const>(block).first(count), 1);
      } else if (world.rank() == 1) {
        collx::receive(world, std::span(block).first(count), 0);
        require(block[0] == round && block[count - 1] == round, "a message came out of order");
      }
    }
}

// Halves, and pairs across them, all in flight at once; and more of them one after the other than have
// numbers.
void groups(world_type& world) {
  different_settings();
  stream_one_way(world);
  world_type half = world.split(world.rank() / 2, 0);
  world_type across = world.split(world.rank() % 2, -world.rank());
  require(across.rank() == (world.rank() < 2 ? 1 : 0), "the key does not order ranks");
  std::vector<double> a(3000, world.rank()), b(3000, world.rank()), c(3000, world.rank());
  auto first = collx::start::all_reduce(half, a, collx::sum);
  auto second = collx::start::all_reduce(across, b, collx::sum);
  auto third = collx::start::all_reduce(world, c, collx::sum);
  third.wait();
  second.wait();
  first.wait();
  require(a[2999] == (world.rank() < 2 ? 1 : 5), "wrong sum in a half");
  require(b[2999] == (world.rank() % 2 == 0 ? 2 : 4), "wrong sum across");
  require(c[2999] == 6, "wrong sum of all");
  for (int round = 0; round < 70; ++round) {
    world_type const again = world.split(0, 0);
    require(again.size() == 4, "wrong size");
  }
  std::vector<world_type> kept;
  status how = status::ok;
  try {
    while (kept.size() < 100) kept.push_back(world.split(0, 0));
  } catch (collx::error const& failure) {
    how = failure.code();
  }
  require(how == status::out_of_memory && kept.size() == 61, "the number of communicators has another bound");
}

// Rank 0 sends more than rank 1 expects: nothing behind the buffer is written, and all hear of it.
void mismatch(world_type& world) {
  for (std::size_t const count : {std::size_t{4}, std::size_t{30'000}}) {
    world_type one = mpi::join(MPI_COMM_WORLD);
    one.timeout_us(20'000'000);
    std::vector<std::int32_t> memory(count + 8, one.rank());
    if (one.rank() == 0) {
      (void)collx::try_send(one, std::span<std::int32_t const>(memory), 1);
      (void)collx::try_barrier(one);
    } else if (one.rank() == 1) {
      status const how = collx::try_receive(one, std::span(memory).first(count), 0);
      require(how == status::mismatch, "rank 1 did not find that the message is too long");
      require(one.failure().peer == 0 && one.failure().bytes == 4 * count,
              "wrong peer or size in the report");
      require(one.failure().peer_bytes == 4 * memory.size(), "wrong size of the message");
      for (std::size_t i = count; i < memory.size(); ++i)
        require(memory[i] == 1, "written behind the buffer");
    } else {
      require(collx::try_barrier(one) == status::aborted, "rank 2 did not hear of it");
      require(one.failure().reported_by == 1 && one.failure().peer == 0, "rank 2 heard of something else");
    }
  }
  collx::barrier(world);
}

// Rank 0 gives up; the others, who wait for it, end at once. Then one that nobody hears from.
void aborted(world_type& world) {
  {
    world_type one = mpi::join(MPI_COMM_WORLD);
    if (one.rank() == 0) one.abort();
    std::vector<double> data(100'000, 1.0);
    require(collx::try_all_reduce(one, data, collx::sum) == status::aborted, "not aborted");
  }
  {
    world_type one = mpi::join(MPI_COMM_WORLD);
    one.timeout_us(100'000);
    if (one.rank() != 0) {
      status const how = collx::try_barrier(one);
      require(how == status::timeout || how == status::aborted, "no deadline");
    }
    collx::barrier(world);  // rank 0 has not called anything on it until now
    // What the others sent for their barrier may end its first one.
    if (one.rank() == 0 && collx::try_barrier(one) == status::ok)
      require(collx::try_barrier(one) == status::aborted, "rank 0 did not hear of it");
  }
  collx::barrier(world);
}

int run(std::string_view scenario) {
  try {
    world_type world =
        scenario == "matrix" ? mpi::join(MPI_COMM_WORLD, small_staging()) : collx::connect<mpi>();
    if (scenario == "matrix") matrix(world);
    else if (scenario == "groups") groups(world);
    else if (scenario == "mismatch") mismatch(world);
    else if (scenario == "aborted") aborted(world);
    else throw std::runtime_error("no such scenario");
    return 0;
  } catch (std::exception const& failure) {
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(scenario.size()), scenario.data(), failure.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool refused = false;
  try {
    (void)mpi::join(MPI_COMM_WORLD);
  } catch (collx::error const& failure) {
    refused = failure.code() == status::bad_argument;
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int const outcome = refused && argc == 2 ? run(argv[1]) : 1;
  if (outcome != 0) MPI_Abort(MPI_COMM_WORLD, outcome);
  MPI_Finalize();
  return outcome;
}
