// SPDX-License-Identifier: Apache-2.0
// collx_perf COLLECTIVE: times a collective the way nccl-tests does, on ranks that it starts itself.
// This file walks over what was asked and lets rank 0 report; perf/case.cpp measures.
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>

#include <sys/mman.h>

#include "collx/bootstrap/local.hpp"
#include "collx/collective/barrier.hpp"
#include "perf/case.hpp"
#include "perf/congestion.hpp"
#include "perf/names.hpp"
#include "perf/options.hpp"
#include "perf/own_host.hpp"
#include "perf/pin.hpp"
#include "perf/report.hpp"
#include "perf/transports.hpp"

namespace perf {
namespace {

// What a run ends with, in memory that forked ranks share with the program that started them.
struct verdict {
  bool finished = false;
  std::int64_t wrong = 0;
};

struct unmap {
  void operator()(verdict* v) const { munmap(v, sizeof(verdict)); }
};

std::unique_ptr<verdict, unmap> shared_verdict() {
  void* const memory =
      mmap(nullptr, sizeof(verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return std::unique_ptr<verdict, unmap>(new (memory) verdict);
}

std::vector<std::string> algorithms_asked(options const& o) {
  if (o.algorithm != "all") return {o.algorithm};
  std::vector<std::string> names{"auto"};
  for (algorithm_entry const& entry : algorithms_for(o))
    if (entry.supported) names.emplace_back(entry.name);
  return names;
}

// Every job in the order of the table: f(type name, job without its place).
template <class F>
void for_each_job(options const& o, F&& f) {
  std::vector<std::string> const operators =
      traits_of(o.collective).reduces ? o.operators : std::vector<std::string>{"sum"};
  for (std::string const& type : o.types)
    for (std::string const& redop : operators)
      for (std::string const& algorithm : algorithms_asked(o))
        for (std::int64_t const bytes : o.bytes)
          f(type, job{.collective = o.collective,
                      .algorithm = algorithm,
                      .redop = redop,
                      .bytes = bytes,
                      .symmetric = o.memory == "symmetric",
                      .check = o.check,
                      .fresh = o.state == "fresh",
                      .pool_bytes = o.pool_bytes,
                      .iterations = o.iterations,
                      .batches = o.batches,
                      .warmup = o.warmup,
                      .root = o.root});
}

template <class Transport>
std::optional<point> measure_place(collx::communicator<Transport>& world, options const& o,
                                   std::string const& type, job& asked, bool in_place) {
  if (o.places != "both" && (o.places == "in_place") != in_place) return std::nullopt;
  asked.in_place = in_place;
  point result;
  if (!with_type<types_over<Transport>>(type, [&]<class T>() { result = run_case<T>(world, asked); }))
    throw std::logic_error("elements of type " + type + " are not compiled for this transport");
  return result;
}

// Known to all ranks once they have been in a barrier.
template <class Transport>
std::string single_copy(collx::communicator<Transport>& world) {
  if constexpr (requires { world.engine().endpoint().space().fetched_bytes_min(); }) {
    collx::barrier(world);
    std::size_t const least = world.engine().endpoint().space().fetched_bytes_min();
    char text[100];
    if (least == static_cast<std::size_t>(-1)) return "nothing";  // it does not permit it, or was not asked
    auto const page = world.engine().endpoint().space().page_of_system();
    std::snprintf(text, sizeof text, "private payloads of %zu KiB or more%s", least >> 10,
                  page.ns == 0       ? ""
                  : page.is_doubtful ? ", where staging is not quick"
                                     : ", where staging is slow");
    return text;
  }
  return {};
}

// What every rank runs. Only rank 0 prints.
template <class Transport>
void run_rank(collx::communicator<Transport>& world, options const& o, std::vector<int> const& cores,
              verdict& end) {
  if (!cores.empty()) pin_to(cores[static_cast<std::size_t>(world.rank())]);
  world.timeout_us(static_cast<std::uint64_t>(o.timeout_seconds) * 1'000'000);
  bool const reports = world.rank() == 0;
  report table(o, {.pinned_to = cores.empty() ? "not pinned" : "one per core",
                   .congestion = is_networked(o) ? congestion_control() : "",
                   .single_copy = single_copy(world)});
  if (reports) table.header();
  for_each_job(o, [&](std::string const& type, job asked) {
    row finished{asked, type, {}, {}};
    finished.out_of_place = measure_place(world, o, type, asked, false);
    finished.in_place = measure_place(world, o, type, asked, true);
    if (reports) table.add(finished);
  });
  if (!reports) return;
  table.footer();
  table.write_json();
  end.wrong = table.wrong();
  end.finished = true;
}

#if defined(COLLX_PERF_TCP_TYPES)
// As on_tcp_processes(), in the network namespaces that are their hosts: they meet as ranks of many hosts do.
template <class Transport, class RankMain>
collx::bootstrap::exit_codes on_several_hosts(collx::rank_t ranks, RankMain const& rank_main) {
  setenv("COLLX_RENDEZVOUS", ("tcp:" + address_of_host(0) + ":29400").c_str(), 1);
  setenv("COLLX_LAUNCHER", "torchrun", 1);
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  auto const join = [](collx::rank_t rank) {
    enter_host(rank);
    setenv("RANK", std::to_string(rank).c_str(), 1);
    return collx::connect<Transport>();
  };
  return collx::bootstrap::detail::fork_ranks(ranks, join, rank_main, [] {});
}
#endif

int run(options const& o) {
  require_writable(o.json_path);
  std::vector<int> cores;
  if (shall_pin(o.pin, o.ranks)) cores = usable_cores();
  std::unique_ptr<verdict, unmap> const end = shared_verdict();
  bool all_ended_well = true;
  if (o.transport == "shm") {
    auto const codes = collx::bootstrap::on_processes(
        o.ranks, [&](collx::communicator<collx::transport::shm>& world) { run_rank(world, o, cores, *end); });
    for (int const code : codes) all_ended_well = all_ended_well && code == 0;
#if defined(COLLX_PERF_THREADS)
  } else if (o.transport == "threads") {
    collx::bootstrap::on_threads(o.ranks, [&](collx::communicator<collx::transport::threads>& world) {
      run_rank(world, o, cores, *end);
    });
#endif
#if defined(COLLX_PERF_TCP_TYPES)
  } else if (o.transport == "tcp") {
    using communicator = collx::communicator<collx::transport::tcp>;
    auto const run_one = [&](communicator& world) { run_rank(world, o, cores, *end); };
    auto const codes = has_own_hosts() ? on_several_hosts<collx::transport::tcp>(o.ranks, run_one)
                                       : collx::bootstrap::on_tcp_processes(o.ranks, run_one);
    for (int const code : codes) all_ended_well = all_ended_well && code == 0;
#endif
#if defined(COLLX_PERF_COMPOSITE)
  } else if (o.transport == "composite") {
    if (!has_own_hosts())
      throw usage_error("--transport composite wants hosts: bench/compare --transport composite makes them");
    auto const codes = on_several_hosts<composite>(
        o.ranks, [&](collx::communicator<composite>& world) { run_rank(world, o, cores, *end); });
    for (int const code : codes) all_ended_well = all_ended_well && code == 0;
#endif
  }
  return end->finished && end->wrong == 0 && all_ended_well ? 0 : 1;
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  try {
    perf::options const asked = perf::parse(argc, argv);
    if (asked.help) return perf::print_help(), 0;
    return perf::run(asked);
  } catch (perf::usage_error const& problem) {
    std::fprintf(stderr, "collx_perf: %s\n", problem.what());
    return 2;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "collx_perf: %s\n", problem.what());
    return 1;
  }
}
