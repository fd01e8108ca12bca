// SPDX-License-Identifier: Apache-2.0
// collx_tune: measures every algorithm of every collective on this machine and writes down which to
// choose. The parts are in tune/; how a call is timed is perf/.
#include <cstdio>

#include "collx/tune/load.hpp"
#include "perf/options.hpp"
#include "tune/fit.hpp"
#include "tune/judge.hpp"
#include "tune/measure.hpp"
#include "tune/options.hpp"
#include "tune/plot.hpp"
#include "tune/write.hpp"

namespace tuning {
namespace {

ending measure_all(options const& o, state& known) {
  // Which are measured more often is known later; a bar that counts on all of them never goes back.
  std::size_t total = 0;
  for (setting const& where : settings_of(o))
    total += items_of(o, where, 0).size() * static_cast<std::size_t>(o.rounds + o.more);
  progress so_far(total);
  ending outcome = ending::finished;
  for (setting const& where : settings_of(o))
    if (outcome == ending::finished) outcome = measure(o, where, known, so_far);
  so_far.finish();
  return outcome;
}

// Of what the file holds, only what was asked for now.
results asked_for(options const& o, results const& all) {
  results some;
  for (setting const& where : settings_of(o))
    for (item const& i : items_of(o, where, 0))
      if (auto const found = all.find(i.cell); found != all.end()) some.insert(*found);
  return some;
}

void print_crossovers(std::vector<entry> const& table) {
  std::printf("# crossovers (bytes of a block)\n");
  for (std::size_t i = 0; i < table.size(); ++i) {
    entry const& e = table[i];
    bool const first = i == 0 || table[i - 1].where != e.where || table[i - 1].collective != e.collective;
    if (first) std::printf("%s%-15s %-36s", i == 0 ? "" : "\n", e.collective.c_str(), words(e.where).c_str());
    bool const last = e.bytes_max == std::numeric_limits<std::int64_t>::max();
    std::printf(" %s%s", e.algorithm.c_str(), last ? "" : (" to " + human(e.bytes_max) + ",").c_str());
  }
  std::printf("\n");
}

void print_error(char const* name, error_of_model const& e) {
  std::printf("  %-18s off by %3.0f %% (median), %3.0f %% (90th percentile)\n", name, 100 * e.median,
              100 * e.ninetieth_percentile);
}

void print_fits(std::vector<fit> const& fits) {
  std::printf("# cost models, fitted: error against the measurement\n");
  for (fit const& f : fits) {
    std::printf("%s, %s memory, %zu times\n", f.transport.c_str(), f.memory.c_str(), f.points);
    print_error("alpha-beta-gamma", f.hockney_error);
    std::printf("    alpha %.3g us, beta %.3g us/KiB, gamma %.3g us/KiB\n", f.hockney.alpha_us,
                1024 * f.hockney.beta_us_per_byte, 1024 * f.hockney.gamma_us_per_byte);
    print_error("LogGP", f.loggp_error);
    std::printf("    L + 2o %.3g us, g %.3g us, G %.3g us/KiB, gamma %.3g us/KiB\n", f.loggp.round_us,
                f.loggp.gap_us, 1024 * f.loggp.gap_us_per_byte, 1024 * f.loggp.gamma_us_per_byte);
  }
}

void print_verdicts(std::vector<verdict> const& verdicts) {
  std::printf("# chosen algorithm within 10 %% of the best measured one\n");
  for (verdict const& v : verdicts) {
    double const part = v.points == 0 ? 0 : static_cast<double>(v.within) / static_cast<double>(v.points);
    std::printf("%-15s %4zu of %4zu points, %5.1f %%", v.name.c_str(), v.within, v.points, 100 * part);
    if (v.worst > 1) std::printf("; worst %.2f times, %s", v.worst, v.worst_at.c_str());
    std::printf("\n");
  }
}

void write_table(options const& o, results const& measured) {
  std::vector<entry> const table = table_of(measured);
  std::vector<fit> const fits = fit_models(measured);
  std::string const json = json_of(table, fits);
  write_file(o.out + ".json", json);
  write_file(o.out + ".hpp", header_of(table, o.name));
  std::string plots;
  for (setting const& where : settings_of(o)) {
    std::string const path = o.out + "_" + where.transport + "_" +
                             (where.memory == "any" ? "" : where.memory + "_") + std::to_string(where.ranks) +
                             ".svg";
    if (std::string const text = plot_of(measured, table, where); !text.empty())
      write_file(path, text), plots += " " + path;
  }
  print_crossovers(table);
  print_fits(fits);
  collx::tune::settings said;
  said.table(collx::tune::parse(json.c_str(), o.out.c_str()));
  print_verdicts(judge(measured, said));
  std::printf("# wrote %s.json, %s.hpp,%s; load it with COLLX_TUNING=%s.json\n", o.out.c_str(), o.out.c_str(),
              plots.c_str(), o.out.c_str());
}

int run(options const& o) {
#if defined(COLLX_PERF_UNOPTIMISED)
  std::fprintf(stderr,
               "collx_tune: NOT FOR USE: built without optimisation; configure with --preset release\n");
#endif
  collx::tune::settings said;
  if (!o.check.empty()) said.table(collx::tune::load(o.check.c_str()));
  state known(o.state_path(), o.resume);
  ending const outcome = measure_all(o, known);
  if (outcome == ending::failed) return 1;
  if (outcome == ending::stopped_by_limit) {
    std::fprintf(stderr, "collx_tune: stopped by --limit; the same command with --resume goes on\n");
    return 3;
  }
  results const measured = asked_for(o, known.summary());
  if (o.check.empty()) write_table(o, measured);
  else print_verdicts(judge(measured, said));
  return 0;
}

}  // namespace
}  // namespace tuning

int main(int argc, char** argv) {
  try {
    tuning::options const asked = tuning::parse(argc, argv);
    if (asked.help) return tuning::print_help(), 0;
    return tuning::run(asked);
  } catch (perf::usage_error const& problem) {
    std::fprintf(stderr, "collx_tune: %s\n", problem.what());
    return 2;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "collx_tune: %s\n", problem.what());
    return 1;
  }
}
