// SPDX-License-Identifier: Apache-2.0
// All ranks walk the same list; rank 0 writes down what came out and decides when time is up.
#include "measure.hpp"

#include <algorithm>

#include "../perf/case.hpp"
#include "../perf/names.hpp"
#include "../perf/pin.hpp"
#include "../perf/transports.hpp"
#include "collx/bootstrap/local.hpp"

namespace tuning {
namespace {

// perf counts the bytes of whole vectors.
std::int64_t whole_bytes(cell_key const& cell) {
  std::int64_t blocks = 1;
  perf::collectives::for_each([&]<class Contract>() {
    if (cell.collective == Contract::name && Contract::sharded) blocks = cell.where.ranks;
  });
  return cell.block_bytes * blocks;
}

perf::job job_of(options const& o, item const& i) {
  constexpr std::int64_t large_bytes = std::int64_t{256} << 10;
  return {.collective = i.cell.collective,
          .algorithm = i.algorithm,
          .redop = perf::names_of<perf::operators>().front(),
          .bytes = whole_bytes(i.cell),
          .symmetric = i.cell.where.memory == "symmetric",
          .check = false,
          .pool_bytes = o.pool_bytes,
          .iterations = o.iterations,
          .batches = o.batches,
          .warmup = i.cell.block_bytes > large_bytes ? 2 : 20};
}

template <class Transport>
void run_rank(collx::communicator<Transport>& world, options const& o, std::vector<item> const& todo,
              std::vector<int> const& cores, state& known, progress& so_far) {
  if (!cores.empty()) perf::pin_to(cores[static_cast<std::size_t>(world.rank())]);
  world.timeout_us(static_cast<std::uint64_t>(o.timeout_seconds) * 1'000'000);
  bool const reports = world.rank() == 0;
  double const limit_s = static_cast<double>(o.limit_seconds);
  for (item const& i : todo) {
    bool const late = reports && limit_s > 0 && so_far.seconds() > limit_s;
    if (perf::total(world, late) != 0) return;
    perf::point const result = perf::run_case<perf::first_of<perf::types>>(world, job_of(o, i));
    if (!reports) continue;
    known.add(i, result.median_us);
    so_far.step(i.cell.collective + " " + human(i.cell.block_bytes) + " " + i.algorithm + " (" +
                words(i.cell.where) + ")");
  }
}

// What is missing, on ranks started for it; whether they all ended well.
bool start_ranks(options const& o, setting const& where, std::vector<item> const& todo, state& known,
                 progress& so_far) {
  std::vector<int> cores;
  if (perf::shall_pin("auto", where.ranks)) cores = perf::usable_cores();
  if (where.transport == "threads") {
    collx::bootstrap::on_threads(where.ranks, [&](collx::communicator<collx::transport::threads>& world) {
      run_rank(world, o, todo, cores, known, so_far);
    });
    return true;
  }
  auto const codes =
      collx::bootstrap::on_processes(where.ranks, [&](collx::communicator<collx::transport::shm>& world) {
        run_rank(world, o, todo, cores, known, so_far);
      });
  known.read();  // rank 0 was another process
  so_far.count(static_cast<std::size_t>(
      std::count_if(todo.begin(), todo.end(), [&](item const& i) { return known.has(i); })));
  return std::all_of(codes.begin(), codes.end(), [](int code) { return code == 0; });
}

}  // namespace

// Every round has ranks of its own: where the system puts them, and their memory, makes a difference
// that more samples of the same ranks would not show.
ending measure(options const& o, setting const& where, state& known, progress& so_far) {
  for (int round = 0; round < o.rounds + o.more; ++round) {
    std::vector<item> all = items_of(o, where, round);
    if (round >= o.rounds) {
      std::size_t const could_be = all.size();
      all = close_ones(all, known.summary(round));
      so_far.spare(could_be - all.size());
    }
    std::vector<item> todo;
    for (item const& i : all) {
      if (known.has(i)) so_far.skip(1);
      else todo.push_back(i);
    }
    if (todo.empty()) continue;
    if (!start_ranks(o, where, todo, known, so_far)) return ending::failed;
    if (!std::all_of(todo.begin(), todo.end(), [&](item const& i) { return known.has(i); }))
      return ending::stopped_by_limit;
  }
  return ending::finished;
}

}  // namespace tuning
