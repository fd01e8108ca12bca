// SPDX-License-Identifier: Apache-2.0
// A test of transport::ucx: ucx_ranks SCENARIO RANKS starts so many processes. Ends with 0 if all was as it
// should be in each.
#include <cstdio>
#include <string_view>

#include "transport/matched_scenarios.hpp"
#include "ucx/start.hpp"

using collx::rank_t;
using collx::status;
using collx::transport::settings;
using collx::transport::ucx;
using namespace matched_scenarios;

static_assert(collx::transport::endpoint<ucx::endpoint>);
static_assert(collx::transport::endpoint<collx::transport::faulty<ucx>::endpoint>);
static_assert(!ucx::endpoint::is_mapped && ucx::endpoint::lane_count >= 3);

namespace {

// Settings that differ are found when ranks join, on all of them.
template <class Join>
void different_settings(rank_t rank, Join const& join) {
  settings chosen = small_staging();
  if (rank == 1) chosen.staging_bytes *= 2;
  status how = status::ok;
  try {
    (void)join(chosen);
  } catch (collx::error const& failure) {
    how = failure.code();
  }
  require(how == status::bad_argument, "different sizes of staging are not refused");
}

// What the environment asks for is refused, not left out; and the message says what to do.
template <class Join>
void refused(Join const& join, char const* variable, char const* value, std::string_view advice) {
  setenv(variable, value, 1);
  status how = status::ok;
  try {
    (void)join(settings::from_environment());
  } catch (collx::error const& failure) {
    how = failure.code();
    require(std::string_view(failure.what()).find(advice) != std::string_view::npos, "no advice");
  }
  require(how == status::bad_argument, variable);
  unsetenv(variable);
}

// Who has done its part may end its communicator while others are not there yet.
template <class Join>
void leaving_early(rank_t size, Join const& join) {
  for (int round = 0; round < 10; ++round) {
    collx::communicator<ucx> one = join(settings::from_environment());
    std::vector<double> data(round % 2 == 0 ? 3 : 100'000, 1.0);
    collx::broadcast<collx::algo::pipelined_chain<8>>(one, data, 0);
    for (rank_t r = 1; r < size && one.rank() == 0; ++r) collx::send(one, std::span<double const>(data), r);
    if (one.rank() != 0) collx::receive(one, std::span(data), 0);
    require(data.front() == 1.0 && data.back() == 1.0, "something else came");
  }
}

template <class Join>
void perform(std::string_view scenario, collx::communicator<ucx>& world, Join const& join_with) {
  auto const join = [&] { return join_with(settings::from_environment()); };
  if (scenario == "matrix") matrix(world);
  else if (scenario == "groups") different_settings(world.rank(), join_with), groups(world);
  else if (scenario == "mismatch") mismatch(world, join);
  else if (scenario == "aborted") aborted(world, join);
  else if (scenario == "no_secret") {
    refused(join_with, "UCX_NET_DEVICES", "eth0", "COLLX_SECRET_FILE");
    refused(join_with, "COLLX_TLS", "1", "use transport::tcp");
  } else if (scenario == "leaving") leaving_early(world.size(), join_with);
  else throw std::runtime_error("no such scenario");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string_view const scenario = argv[1];
  if (scenario == "no_secret") unsetenv("COLLX_SECRET"), unsetenv("COLLX_SECRET_FILE");
  settings const chosen = scenario == "matrix" ? small_staging() : settings::from_environment();
  auto const codes = ucx_ranks::run<ucx>(
      std::atoi(argv[2]), [&](auto& world, auto const& join) { perform(scenario, world, join); }, chosen);
  int worst = 0;
  for (int const code : codes) worst = code > worst ? code : worst;
  return worst;
}
