// SPDX-License-Identifier: Apache-2.0
// One rank of a test of transport::mpi: mpi_rank SCENARIO, under mpirun. Ends with 0 if all was as it should
// be.
#include <sched.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "collx/bootstrap/mpi.hpp"
#include "scarce_memory.hpp"
#include "transport/matched_scenarios.hpp"
#include "watched.hpp"

using collx::status;
using collx::transport::mpi;
using namespace matched_scenarios;
using world_type = collx::communicator<mpi>;

static_assert(collx::transport::endpoint<mpi::endpoint>);
static_assert(collx::transport::endpoint<collx::transport::faulty<mpi>::endpoint>);
static_assert(!mpi::endpoint::is_mapped && mpi::endpoint::lane_count >= 3);

namespace {

int duplicates = 0;  // and other communicators made of those of MPI, that are not freed

}  // namespace

// Calls of MPI come by here: its profiling interface.
int MPI_Comm_dup(MPI_Comm given, MPI_Comm* made) {
  ++duplicates;
  return PMPI_Comm_dup(given, made);
}
int MPI_Comm_split_type(MPI_Comm given, int type, int key, MPI_Info info, MPI_Comm* made) {
  ++duplicates;
  return PMPI_Comm_split_type(given, type, key, info, made);
}
int MPI_Comm_free(MPI_Comm* which) {
  --duplicates;
  return PMPI_Comm_free(which);
}

namespace {

// Settings that differ are found when ranks join, on all of them.
void refused(std::size_t staging_bytes, std::size_t staging_bytes_of_rank_1) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  collx::transport::settings chosen = small_staging();
  chosen.staging_bytes = rank == 1 ? staging_bytes_of_rank_1 : staging_bytes;
  status how = status::ok;
  try {
    (void)mpi::join(MPI_COMM_WORLD, chosen);
  } catch (collx::error const& failure) {
    how = failure.code();
  }
  require(how == status::bad_argument, "sizes of staging that cannot be are not refused");
  require(duplicates == 1, "a communicator of MPI is left");  // that of the world there is
}

// On all ranks, whichever has them.
void refused_settings() {
  std::size_t const usual = small_staging().staging_bytes;
  refused(usual, 2 * usual);
  refused(usual, 256);
  refused(std::size_t{1} << 40, usual);
  refused(usual, usual + (std::size_t{1} << 32));
}

// Each allocation of rank 1 fails once as ranks join: then none has joined, and nothing is left behind.
void no_memory_to_join(world_type& world) {
  int const kept = duplicates;
  bool enough = false;
  int allocations = 0;
  for (; !enough; ++allocations) {
    require(allocations < 1000, "no end");
    status how = status::ok;
    long const taken = scarce_memory::in_use;
    try {
      scarce_memory::allowance const few(world.rank() == 1 ? allocations : -1);
      (void)mpi::join(MPI_COMM_WORLD);
    } catch (collx::error const& failure) {
      how = failure.code();
      require(std::string_view(failure.what()).find(": rank 1 has no memory") != std::string_view::npos,
              failure.what());
    }
    require(how == status::ok || how == status::out_of_memory, "refused for something else");
    require(scarce_memory::in_use == taken, "not all memory is given back");
    require(duplicates == kept, "a communicator of MPI is left");
    enough = how == status::ok;
    int said = enough ? 1 : -1;
    collx::all_reduce(world, std::span(&said, 1), collx::sum);
    require(said == (enough ? world.size() : -world.size()), "some have joined, and others have not");
  }
  require(allocations > 10, "memory was never scarce");
}

// Ranks of one host share processors if they are more than those that they may use together, however a
// launcher has bound them.
void sharing(world_type& world) {
  cpu_set_t given;
  require(sched_getaffinity(0, sizeof given, &given) == 0, "sched_getaffinity");
  std::array<std::uint64_t, CPU_SETSIZE / 64> all{};
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &given)) all[i / 64] |= std::uint64_t{1} << (i % 64);
  collx::all_reduce(world, std::span(all), collx::bit_or);
  int count = 0;
  for (std::uint64_t const bits : all) count += std::popcount(bits);
  auto const found = [] { return mpi::join(MPI_COMM_WORLD).engine().endpoint().space().chosen().sharing; };
  require(found() == (world.size() > count), "the processors of all ranks are miscounted");

  // All on the first that any may use, where the system lets them.
  std::size_t first = 0;
  while ((all[first / 64] >> (first % 64) & 1) == 0) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  int bound = sched_setaffinity(0, sizeof one, &one) == 0 ? 1 : 0;
  collx::all_reduce(world, std::span(&bound, 1), collx::min);
  if (bound == 1) require(found(), "ranks on one processor do not share it");
  (void)sched_setaffinity(0, sizeof given, &given);
}

// What the environment asks for is refused, not left out.
void encryption() {
  setenv("COLLX_TLS", "1", 1);
  bool refused = false;
  try {
    (void)collx::connect<mpi>();
  } catch (collx::error const& failure) {
    refused = failure.code() == status::bad_argument &&
              std::string_view(failure.what()).find("use transport::tcp") != std::string_view::npos;
  }
  require(refused, "COLLX_TLS is not refused");
  unsetenv("COLLX_TLS");
}

int run(std::string_view scenario) {
  try {
    world_type world =
        scenario == "matrix" ? mpi::join(MPI_COMM_WORLD, small_staging()) : collx::connect<mpi>();
    watched::rank_of_process const here(world);
    auto const join = [] { return mpi::join(MPI_COMM_WORLD); };
    if (scenario == "matrix") {
      matrix(world);
      if (world.size() == 2) no_memory_to_join(world);  // a processor each: they join some thirty times
      sharing(world);
    } else if (scenario == "groups") refused_settings(), encryption(), groups(world);
    else if (scenario == "mismatch") mismatch(world, join);
    else if (scenario == "aborted") aborted(world, join);
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
