// SPDX-License-Identifier: Apache-2.0
// Reading the command line of collx_tune.
#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../perf/method.h"
#include "../perf/names.hpp"
#include "../perf/options.hpp"

namespace tuning {
namespace {

using perf::parse_count;
using perf::usage_error;

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> some_of(char const* flag, std::string const& text,
                                 std::vector<std::string> const& known) {
  std::vector<std::string> const parts = split(text);
  for (std::string const& part : parts)
    if (std::find(known.begin(), known.end(), part) == known.end())
      throw usage_error(std::string(flag) + " does not know '" + part +
                        "'; say some of: " + perf::joined(known));
  return parts;
}

struct flag {
  char const* name;
  char const* value;  // empty: takes none
  char const* help;
  void (*set)(options&, char const* name, std::string const& value);
};

using name_of_flag = char const*;
using text_of_flag = std::string const&;
constexpr std::int64_t plenty = 1'000'000;

constexpr flag flags[] = {
    {"--collectives", "A,B,C", "which to tune (all)",
     [](options& o, name_of_flag n, text_of_flag v) {
       o.collectives = some_of(n, v, perf::names_of<perf::collectives>());
     }},
    {"--transports", "A,B", "shm, threads (both)",
     [](options& o, name_of_flag n, text_of_flag v) { o.transports = some_of(n, v, {"shm", "threads"}); }},
    {"--memory", "A,B", "private, symmetric (both); with threads there is one kind",
     [](options& o, name_of_flag n, text_of_flag v) {
       o.memories = some_of(n, v, {"private", "symmetric"});
     }},
    {"--ranks", "A,B,C", "numbers of ranks to start on this machine (2)",
     [](options& o, name_of_flag n, text_of_flag v) {
       o.ranks.clear();
       for (std::string const& part : split(v))
         o.ranks.push_back(static_cast<int>(parse_count(n, part, 2, 1024)));
       std::sort(o.ranks.begin(), o.ranks.end());
     }},
    {"--minbytes", "BYTES", "smallest block (8); a block is a vector, or one rank's part of a sharded one",
     [](options& o, name_of_flag n, text_of_flag v) { o.min_bytes = perf::parse_bytes(n, v); }},
    {"--maxbytes", "BYTES", "largest block (2M)",
     [](options& o, name_of_flag n, text_of_flag v) { o.max_bytes = perf::parse_bytes(n, v); }},
    {"--stepfactor", "FACTOR", "from size to size (2)",
     [](options& o, name_of_flag n, text_of_flag v) { o.factor = parse_count(n, v, 2, plenty); }},
    {"--between", "", "sizes between those instead: for --check",
     [](options& o, name_of_flag, text_of_flag) { o.between = true; }},
    {"--rounds", "COUNT", "how often every algorithm has its turn at a size (5)",
     [](options& o, name_of_flag n, text_of_flag v) {
       o.rounds = static_cast<int>(parse_count(n, v, 1, 1000));
     }},
    {"--more", "COUNT", "how often again those have theirs that are within a quarter of the best (10)",
     [](options& o, name_of_flag n, text_of_flag v) {
       o.more = static_cast<int>(parse_count(n, v, 0, 1000));
     }},
    {"--batches", "COUNT", "samples in a turn (10)",
     [](options& o, name_of_flag n, text_of_flag v) { o.batches = parse_count(n, v, 1, plenty); }},
    {"--iters", "COUNT", "calls in a sample (0: chosen by size)",
     [](options& o, name_of_flag n, text_of_flag v) { o.iterations = parse_count(n, v, 0, plenty); }},
    {"--pool", "BYTES", "size of the pool of buffers (twice the level-2 cache)",
     [](options& o, name_of_flag n, text_of_flag v) { o.pool_bytes = perf::parse_bytes(n, v); }},
    {"--resume", "", "go on where an earlier run stopped (it left OUT.jsonl)",
     [](options& o, name_of_flag, text_of_flag) { o.resume = true; }},
    {"--limit", "SECONDS", "stop measuring after so long, to go on with --resume (0: never)",
     [](options& o, name_of_flag n, text_of_flag v) { o.limit_seconds = parse_count(n, v, 0, plenty); }},
    {"--timeout", "SECONDS", "give up on a call that takes longer (30)",
     [](options& o, name_of_flag n, text_of_flag v) { o.timeout_seconds = parse_count(n, v, 1, plenty); }},
    {"--out", "PREFIX", "writes PREFIX.json, .hpp, .jsonl and a plot per setting (collx_tuning)",
     [](options& o, name_of_flag, text_of_flag v) { o.out = v; }},
    {"--name", "NAME", "of the type in the C++ header (my_tuning)",
     [](options& o, name_of_flag, text_of_flag v) { o.name = v; }},
    {"--check", "TABLE", "measure anew and say how good this table's choices are; writes no table",
     [](options& o, name_of_flag, text_of_flag v) { o.check = v; }},
};

void check(options const& o) {
  if (o.min_bytes < 1) throw usage_error("--minbytes wants at least 1");
  if (o.min_bytes > o.max_bytes) throw usage_error("--minbytes is above --maxbytes; swap them");
  if (o.sizes().empty())
    throw usage_error("--minbytes and --maxbytes leave no size --between them; choose a larger --maxbytes");
  bool const letters = std::all_of(o.name.begin(), o.name.end(), [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  if (o.name.empty() || !letters || (o.name[0] >= '0' && o.name[0] <= '9'))
    throw usage_error("--name wants a name as C++ has them, and got '" + o.name + "'");
}

}  // namespace

std::vector<std::int64_t> options::sizes() const {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = min_bytes; bytes <= max_bytes; bytes *= factor) {
    double const moved = static_cast<double>(bytes) * (between ? std::sqrt(static_cast<double>(factor)) : 1);
    std::int64_t const whole = bytes < 8 ? bytes : static_cast<std::int64_t>(moved) / 4 * 4;
    if (whole <= max_bytes) sizes.push_back(whole);
  }
  return sizes;
}

options parse(int argc, char const* const* argv) {
  options o;
  o.collectives = perf::names_of<perf::collectives>();
  o.pool_bytes = method_pool_bytes();
  for (int at = 1; at < argc; ++at) {
    std::string const word = argv[at];
    if (word == "--help" || word == "-h") return o.help = true, o;
    flag const* const f =
        std::find_if(std::begin(flags), std::end(flags), [&](flag const& each) { return word == each.name; });
    if (f == std::end(flags))
      throw usage_error("there is no flag " + word + "; collx_tune --help lists them");
    bool const takes_value = *f->value != '\0';
    if (takes_value && ++at == argc) throw usage_error(word + " wants a value: " + word + " " + f->value);
    f->set(o, f->name, takes_value ? argv[at] : "");
  }
  check(o);
  return o;
}

void print_help() {
  std::printf(
      "usage: collx_tune [flags]\n\n"
      "Measures every algorithm of every collective on this machine and writes a table of the fastest,\n"
      "which programs load (COLLX_TUNING=collx_tuning.json) or compile in. See docs/choice.md.\n\n");
  for (flag const& f : flags) std::printf("  %-14s %-8s %s\n", f.name, f.value, f.help);
  std::printf("\ncollectives: %s\n", perf::joined(perf::names_of<perf::collectives>()).c_str());
  std::printf("exit code: 0 all right, 1 a rank failed, 2 bad input, 3 stopped by --limit\n");
}

}  // namespace tuning
