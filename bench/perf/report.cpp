// SPDX-License-Identifier: Apache-2.0
// Printing. Bandwidths are 1e9 bytes per second, as in nccl-tests.
#include "report.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>

#include "collx/core/config.hpp"
#include "names.hpp"

namespace perf {
namespace {

double algorithm_gb_s(point const& p) {
  return p.median_us > 0 ? static_cast<double>(p.bytes) / p.median_us * 1e-3 : 0;
}

bool reduces(std::string const& collective) { return traits_of(collective).reduces; }
bool rooted(std::string const& collective) { return traits_of(collective).rooted; }

// Six characters of microseconds: as many digits as fit.
std::string short_us(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", us < 10 ? 3 : us < 1000 ? 2 : us < 100000 ? 1 : 0, us);
  return text;
}

void print_place(std::optional<point> const& p, double factor, bool checked) {
  if (!p) return static_cast<void>(std::printf("  %8s %7s %7s %6s", "-", "-", "-", "-"));
  double const gb_s = algorithm_gb_s(*p);
  std::printf("  %8s %7.2f %7.2f", short_us(p->median_us).c_str(), gb_s, gb_s * factor);
  if (checked) std::printf(" %6" PRId64, p->wrong);
  else std::printf(" %6s", "N/A");
}

void print_spread(std::optional<point> const& p) {
  std::printf("  %8s %8s", p ? short_us(p->min_us).c_str() : "-", p ? short_us(p->p99_us).c_str() : "-");
}

struct close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, close>;

open_file open(std::string const& path, char const* mode) {
  open_file file(std::fopen(path.c_str(), mode));
  if (!file) throw usage_error("cannot write " + path + "; give --json a file in a folder that exists");
  return file;
}

std::string json_point(row const& r, point const& p, options const& o, std::string const& congestion,
                       char const* place) {
  double const gb_s = algorithm_gb_s(p);
  char written[40] = "";
  if (o.state == "fresh") std::snprintf(written, sizeof written, ", \"write_us\": %.4f", p.write_us);
  char text[1024];
  std::snprintf(text, sizeof text,
                "{\"collective\": \"%s\", \"algorithm\": \"%s\", \"transport\": \"%s\", \"memory\": \"%s\", "
                "\"ranks\": %d, \"bytes_asked\": %" PRId64 ", \"bytes\": %" PRId64 ", \"count\": %" PRId64
                ", \"type\": \"%s\", \"redop\": \"%s\", \"root\": %d, \"place\": \"%s\", \"state\": \"%s\", "
                "\"buffers\": %" PRId64 ", \"iterations\": %" PRId64 ", \"batches\": %" PRId64
                ", \"min_us\": %.4f, \"median_us\": %.4f, \"p99_us\": %.4f, \"algbw_gb_s\": %.4f, "
                "\"busbw_gb_s\": %.4f, \"wrong\": %" PRId64 "%s%s}",
                r.asked.collective.c_str(), r.asked.algorithm.c_str(), o.transport.c_str(), o.memory.c_str(),
                o.ranks, r.asked.bytes, p.bytes, p.count, r.type.c_str(),
                reduces(r.asked.collective) ? r.asked.redop.c_str() : "none",
                rooted(r.asked.collective) ? r.asked.root : -1, place, o.state.c_str(), p.buffers,
                p.iterations, p.batches, p.min_us, p.median_us, p.p99_us, gb_s,
                gb_s * bus_factor(r.asked.collective, o.ranks), o.check ? p.wrong : -1, written,
                congestion.empty() ? "" : (", \"congestion\": \"" + congestion + "\"").c_str());
  return text;
}

}  // namespace

void require_writable(std::string const& json_path) {
  if (!json_path.empty()) open(json_path, "a");
}

double bus_factor(std::string const& collective, int ranks) {
  double const n = ranks;
  if (collective == "all_reduce") return 2 * (n - 1) / n;
  for (char const* const shared : {"reduce_scatter", "all_gather", "all_to_all", "gather", "scatter"})
    if (collective == shared) return (n - 1) / n;
  return 1;
}

report::report(options const& asked, surroundings where) : asked_(asked), where_(std::move(where)) {}

void report::header() const {
  print_setting();
  print_column_heads();
  std::fflush(stdout);
}

void report::print_setting() const {
  std::printf("# collx_perf %d.%d.%d: %s over %s, %d ranks, %s, %s memory\n", COLLX_VERSION_MAJOR,
              COLLX_VERSION_MINOR, COLLX_VERSION_PATCH, asked_.collective.c_str(), asked_.transport.c_str(),
              asked_.ranks, where_.pinned_to.c_str(), asked_.memory.c_str());
  if (!where_.congestion.empty()) std::printf("# congestion control: %s\n", where_.congestion.c_str());
  if (!where_.single_copy.empty())
    std::printf("# copied once by the system: %s\n", where_.single_copy.c_str());
#if defined(COLLX_PERF_UNOPTIMISED)
  std::printf("# NOT FOR MEASURING: built without optimisation; configure with --preset release\n");
#endif
  std::printf(
      "# method: all ranks meet in a barrier, then each reads its clock around a batch of calls;\n"
      "#         a sample is time / calls on the slowest rank; time is the median over batches\n");
  if (asked_.state == "fresh")
    return static_cast<void>(
        std::printf("# state:  fresh, one buffer, its input written before each call; what writing alone "
                    "takes is taken off\n"));
  if (asked_.pool_bytes == 0)
    return static_cast<void>(std::printf("# state:  hot, one buffer for all calls\n"));
  std::printf("# state:  calls rotate over at least 4 buffers and %" PRId64 " KiB in all\n",
              asked_.pool_bytes >> 10);
}

void report::print_column_heads() const {
  std::printf("#\n# %10s  %12s  %7s %6s %5s  %33s  %33s  %17s  %17s\n", "", "", "", "", "",
              "out-of-place          ", "in-place            ", "out-of-place   ", "in-place     ");
  std::printf("# %10s  %12s  %7s %6s %5s", "size", "count", "type", "redop", "root");
  for (int place = 0; place < 2; ++place)
    std::printf("  %8s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
  std::printf("  %8s %8s  %8s %8s  %s\n", "min", "p99", "min", "p99", "algorithm");
  std::printf("# %10s  %12s  %7s %6s %5s", "(B)", "(elements)", "", "", "");
  for (int place = 0; place < 2; ++place) std::printf("  %8s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
  std::printf("  %8s %8s  %8s %8s\n", "(us)", "(us)", "(us)", "(us)");
}

void report::add(row const& finished) {
  rows_.push_back(finished);
  job const& j = finished.asked;
  point const& any = finished.out_of_place ? *finished.out_of_place : *finished.in_place;
  double const factor = bus_factor(j.collective, asked_.ranks);
  std::printf("  %10" PRId64 "  %12" PRId64 "  %7s %6s %5d", any.bytes, any.count, finished.type.c_str(),
              reduces(j.collective) ? j.redop.c_str() : "none", rooted(j.collective) ? j.root : -1);
  print_place(finished.out_of_place, factor, asked_.check);
  print_place(finished.in_place, factor, asked_.check);
  print_spread(finished.out_of_place);
  print_spread(finished.in_place);
  std::printf("  %s\n", j.algorithm.c_str());
  std::fflush(stdout);
  if (finished.out_of_place) wrong_ += finished.out_of_place->wrong;
  if (finished.in_place) wrong_ += finished.in_place->wrong;
}

void report::footer() const {
  double sum_gb_s = 0;
  int counted = 0;
  for (row const& r : rows_)
    for (std::optional<point> const& p : {r.out_of_place, r.in_place})
      if (p) sum_gb_s += algorithm_gb_s(*p) * bus_factor(r.asked.collective, asked_.ranks), ++counted;
  if (asked_.check)
    std::printf("# Out of bounds values : %" PRId64 " %s\n", wrong_, wrong_ == 0 ? "OK" : "FAILED");
  else std::printf("# Out of bounds values : not checked (-c 0)\n");
  std::printf("# Avg bus bandwidth    : %.4f\n", counted > 0 ? sum_gb_s / counted : 0.0);
  std::fflush(stdout);
}

void report::write_json() const {
  if (asked_.json_path.empty()) return;
  open_file const file = open(asked_.json_path, "w");
  char const* separator = "[\n";
  for (row const& r : rows_) {
    if (r.out_of_place) {
      std::fprintf(file.get(), "%s%s", separator,
                   json_point(r, *r.out_of_place, asked_, where_.congestion, "out_of_place").c_str());
      separator = ",\n";
    }
    if (r.in_place) {
      std::fprintf(file.get(), "%s%s", separator,
                   json_point(r, *r.in_place, asked_, where_.congestion, "in_place").c_str());
      separator = ",\n";
    }
  }
  std::fprintf(file.get(), "%s\n]\n", rows_.empty() ? "[" : "");
}

}  // namespace perf
