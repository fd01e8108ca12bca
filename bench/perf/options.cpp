// SPDX-License-Identifier: Apache-2.0
// The command line of collx_perf: one table from which parsing and --help both come.
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "method.h"
#include "names.hpp"

namespace perf {
namespace {

constexpr std::int64_t ranks_most = 1024;
constexpr std::int64_t sizes_most = 10'000;
// More is a mistake. Times as many bytes as --maxbytes may say, or microseconds, it fits 64 bits.
constexpr std::int64_t plenty = 1'000'000;

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string one_of(char const* flag, std::string const& text, std::vector<std::string> const& allowed) {
  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
    throw usage_error(std::string(flag) + " does not know '" + text + "'; say one of: " + joined(allowed));
  return text;
}

constexpr char const* transports_help =
    "shm: ranks are processes"
#if defined(COLLX_PERF_THREADS)
    "; threads: ranks are threads"
#endif
#if defined(COLLX_PERF_TCP_TYPES)
    "; tcp: processes, over loopback"
#endif
#if defined(COLLX_PERF_COMPOSITE)
    "; composite: processes of the hosts that bench/compare makes"
#endif
    " (shm)";
std::vector<std::string> transports() {
  return {
      "shm",
#if defined(COLLX_PERF_THREADS)
      "threads",
#endif
#if defined(COLLX_PERF_TCP_TYPES)
      "tcp",
#endif
#if defined(COLLX_PERF_COMPOSITE)
      "composite",
#endif
  };
}

struct flag {
  char const* letter;  // as in nccl-tests; empty where it has none
  char const* name;
  char const* value;
  char const* help;
  void (*set)(options&, char const* name, std::string const& value);
};

constexpr flag flags[] = {
    {"-b", "--minbytes", "BYTES", "smallest size (8); K, M and G are binary multiples",
     [](options& o, char const* n, std::string const& v) { o.min_bytes = parse_bytes(n, v); }},
    {"-e", "--maxbytes", "BYTES", "largest size (32M)",
     [](options& o, char const* n, std::string const& v) { o.max_bytes = parse_bytes(n, v); }},
    {"-i", "--stepbytes", "BYTES", "add this much from size to size",
     [](options& o, char const* n, std::string const& v) { o.step_bytes = parse_bytes(n, v); }},
    {"-f", "--stepfactor", "FACTOR", "multiply by this from size to size (4)",
     [](options& o, char const* n, std::string const& v) { o.step_factor = parse_count(n, v, 0, plenty); }},
    {"", "--bytes", "A,B,C", "exactly these sizes instead of a range",
     [](options& o, char const* n, std::string const& v) {
       for (std::string const& part : split(v)) o.bytes.push_back(parse_bytes(n, part));
     }},
    {"-n", "--iters", "COUNT", "calls in a batch (0: chosen by size)",
     [](options& o, char const* n, std::string const& v) { o.iterations = parse_count(n, v, 0, plenty); }},
    {"", "--batches", "COUNT", "batches, each of which is one sample (0: chosen by size)",
     [](options& o, char const* n, std::string const& v) { o.batches = parse_count(n, v, 0, plenty); }},
    {"-w", "--warmup_iters", "COUNT", "calls before the rotation is walked once, untimed (20)",
     [](options& o, char const* n, std::string const& v) { o.warmup = parse_count(n, v, 0, plenty); }},
    {"-c", "--check", "0|1", "compare every element with a reference (1)",
     [](options& o, char const* n, std::string const& v) { o.check = one_of(n, v, {"0", "1"}) == "1"; }},
    {"-d", "--datatype", "TYPE|all", "element type (float)",
     [](options& o, char const*, std::string const& v) { o.types = {v}; }},
    {"-o", "--op", "OP|all", "operator of a reduction (sum)",
     [](options& o, char const*, std::string const& v) { o.operators = {v}; }},
    {"-r", "--root", "RANK", "root of broadcast, reduce, gather and scatter (0)",
     [](options& o, char const* n, std::string const& v) {
       o.root = static_cast<int>(parse_count(n, v, 0, ranks_most - 1));
     }},
    {"", "--ranks", "COUNT", "how many ranks to start on this machine (2)",
     [](options& o, char const* n, std::string const& v) {
       o.ranks = static_cast<int>(parse_count(n, v, 1, ranks_most));
     }},
    {"", "--transport", "NAME", transports_help,
     [](options& o, char const* n, std::string const& v) { o.transport = one_of(n, v, transports()); }},
    {"", "--algorithm", "NAME|auto|all",
     "auto: the library chooses (auto); selected: by tables and variables; all: each in turn",
     [](options& o, char const*, std::string const& v) { o.algorithm = v; }},
    {"", "--memory", "KIND", "private: malloc; symmetric: allocated through the communicator (private)",
     [](options& o, char const* n, std::string const& v) {
       o.memory = one_of(n, v, {"private", "symmetric"});
     }},
    {"", "--places", "WHICH", "out_of_place, in_place or both (both)",
     [](options& o, char const* n, std::string const& v) {
       o.places = one_of(n, v, {"both", "out_of_place", "in_place"});
     }},
    {"", "--state", "STATE",
     "rotating: calls walk over a pool of buffers; hot: one buffer; fresh: one, written before each call "
     "(rotating)",
     [](options& o, char const* n, std::string const& v) {
       o.state = one_of(n, v, {"rotating", "hot", "fresh"});
     }},
    {"", "--pool", "BYTES", "size of that pool (twice the level-2 cache), at least 4 buffers",
     [](options& o, char const* n, std::string const& v) { o.pool_bytes = parse_bytes(n, v); }},
    {"", "--pin", "auto|on|off", "one rank per core; auto: if there are enough cores (auto)",
     [](options& o, char const* n, std::string const& v) { o.pin = one_of(n, v, {"auto", "on", "off"}); }},
    {"-T", "--timeout", "SECONDS", "give up on a call that takes longer (30)",
     [](options& o, char const* n, std::string const& v) {
       o.timeout_seconds = parse_count(n, v, 1, plenty);
     }},
    {"-J", "--json", "FILE", "write every point to FILE too",
     [](options& o, char const*, std::string const& v) { o.json_path = v; }},
};

flag const* find(std::string const& text) {
  for (flag const& f : flags)
    if (text == f.name || (*f.letter != '\0' && text == f.letter)) return &f;
  return nullptr;
}

void parse_flag(options& o, int argc, char const* const* argv, int& at) {
  std::string name = argv[at];
  std::size_t const equals = name.find('=');
  bool const attached = name.starts_with("--") && equals != std::string::npos;
  std::string value = attached ? name.substr(equals + 1) : "";
  if (attached) name.resize(equals);
  flag const* const f = find(name);
  if (f == nullptr) throw usage_error("there is no flag " + name + "; collx_perf --help lists them");
  if (!attached) {
    if (++at == argc) throw usage_error(name + " wants a value: " + f->name + " " + f->value);
    value = argv[at];
  }
  f->set(o, f->name, value);
}

void check_algorithm(options const& o) {
  std::vector<std::string> offered{"auto", "selected", "all"};
  for (std::string const& each : offered)
    if (o.algorithm == each) return;
  for (algorithm_entry const& entry : algorithms_for(o)) {
    offered.emplace_back(entry.name);
    if (o.algorithm != entry.name) continue;
    if (entry.supported) return;
    throw usage_error("algorithm " + o.algorithm + " does not run " + o.collective + " on " +
                      std::to_string(o.ranks) + " ranks; choose another count or --algorithm auto");
  }
  throw usage_error("no algorithm '" + o.algorithm + "' for " + o.collective +
                    "; say one of: " + joined(offered));
}

// What the build chose, for one transport.
struct compiled {
  std::vector<std::string> names;
  std::string variable;  // of CMake, that chooses them
};

compiled types_for([[maybe_unused]] options const& o) {
#if defined(COLLX_PERF_TCP_TYPES)
  if (is_networked(o)) return {type_names<tcp_types>(), "COLLX_PERF_TCP_TYPES"};
#endif
  return {type_names(), "COLLX_PERF_TYPES"};
}

compiled operators_for([[maybe_unused]] options const& o) {
#if defined(COLLX_PERF_TCP_TYPES)
  if (is_networked(o)) return {names_of<tcp_operators>(), "COLLX_PERF_TCP_OPERATORS"};
#endif
  return {names_of<operators>(), "COLLX_PERF_OPERATORS"};
}

// The names that `asked` stands for, whether the user said it or it is the flag's default.
std::vector<std::string> those_asked(options const& o, char const* flag, std::string const& asked,
                                     std::string const& usual, compiled const& there) {
  if (asked == "all") return there.names;
  if (std::find(there.names.begin(), there.names.end(), asked) != there.names.end()) return {asked};
  throw usage_error(std::string(flag) + " does not know '" + asked + "'" +
                    (asked == usual ? ", its default" : "") + (is_networked(o) ? " over TCP" : "") +
                    "; say one of: " + joined(there.names) + ", or build with more (cmake -D" +
                    there.variable + "=...)");
}

// What is not compiled is refused here: who measures it would find nothing to run.
void choose_what_is_compiled(options& o) {
  std::string const usual_type = options{}.types.front(), usual_operator = options{}.operators.front();
  compiled const types = types_for(o), ops = operators_for(o);
  bool const is_typeless = o.collective == "barrier", reduces = traits_of(o.collective).reduces;
  if (!is_typeless || o.types.front() != usual_type)
    o.types = those_asked(o, "--datatype", o.types.front(), usual_type, types);
  if (is_typeless) o.types = {types.names.front()};  // the one that it is compiled with
  if (reduces || o.operators.front() != usual_operator)
    o.operators = those_asked(o, "--op", o.operators.front(), usual_operator, ops);
}

// Of "all" operators, those that mean something remain; one that was named and does not is refused.
void check_operators(options& o) {
  if (!traits_of(o.collective).scans) return;
  if (o.operators == std::vector<std::string>{"avg"})
    throw usage_error("--op avg has no meaning in a " + o.collective +
                      ": whose number of ranks? Use --op sum and divide");
  std::erase(o.operators, "avg");
}

void check_ranges(options const& o) {
  if (o.root >= o.ranks)
    throw usage_error("--root " + std::to_string(o.root) + " is not a rank; with --ranks " +
                      std::to_string(o.ranks) + " say 0 to " + std::to_string(o.ranks - 1));
  if (!o.bytes.empty()) return;
  if (o.min_bytes > o.max_bytes) throw usage_error("--minbytes is above --maxbytes; swap them");
  if (o.step_bytes == 0 && o.step_factor < 2 && o.min_bytes != o.max_bytes)
    throw usage_error("--stepfactor wants 2 or more, or use --stepbytes");
  if (o.step_bytes == 0 && o.min_bytes == 0 && o.max_bytes != 0)
    throw usage_error("--minbytes 0 times a factor stays 0; use --stepbytes, or --bytes 0,8,...");
  if (o.step_bytes > 0 && (o.max_bytes - o.min_bytes) / o.step_bytes >= sizes_most)
    throw usage_error("--stepbytes " + std::to_string(o.step_bytes) + " makes more than " +
                      std::to_string(sizes_most) + " sizes of this range; use a larger one, or --stepfactor");
}

void fill_sizes(options& o) {
  if (!o.bytes.empty()) return;
  for (std::int64_t bytes = o.min_bytes; bytes <= o.max_bytes;) {
    o.bytes.push_back(bytes);
    if (bytes == o.max_bytes) break;
    bytes = o.step_bytes > 0 ? bytes + o.step_bytes : bytes * o.step_factor;
  }
}

}  // namespace

bool is_networked(options const& asked) { return asked.transport == "tcp" || asked.transport == "composite"; }

std::vector<algorithm_entry> algorithms_for(options const& asked) {
#if defined(COLLX_PERF_COMPOSITE)
  if (asked.transport == "composite")
    return algorithms_for<grouped_algorithms>(asked.collective, asked.ranks);
#endif
  return algorithms_for(asked.collective, asked.ranks);
}

std::int64_t parse_count(char const* flag, std::string const& text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    throw usage_error(std::string(flag) + " wants a whole number from " + std::to_string(low) + " to " +
                      std::to_string(high) + ", and got '" + text + "'");
  return value;
}

std::int64_t parse_bytes(char const* flag, std::string const& text) {
  std::int64_t value = 0;
  char const* const last = text.data() + text.size();
  auto const [end, problem] = std::from_chars(text.data(), last, value);
  std::string const suffix(end, last);
  int const shift = suffix.empty()                   ? 0
                    : suffix == "K" || suffix == "k" ? 10
                    : suffix == "M" || suffix == "m" ? 20
                    : suffix == "G" || suffix == "g" ? 30
                                                     : -1;
  if (problem != std::errc{} || shift < 0 || value < 0)
    throw usage_error(std::string(flag) + " wants a size such as 8, 32K, 1M or 2G, and got '" + text + "'");
  if (value > (std::int64_t{1} << 40) >> shift)
    throw usage_error(std::string(flag) + " " + text +
                      " is more than 1024G, which no machine rank here can hold");
  return value << shift;
}

options parse(int argc, char const* const* argv) {
  options o;
  o.pool_bytes = method_pool_bytes();
  for (int at = 1; at < argc; ++at) {
    std::string const word = argv[at];
    if (word == "--help" || word == "-h") return o.help = true, o;
    if (word.starts_with("-")) parse_flag(o, argc, argv, at);
    else if (o.collective.empty()) o.collective = word;
    else throw usage_error("one collective at a time: '" + word + "' comes after '" + o.collective + "'");
  }
  if (o.collective.empty()) throw usage_error("name a collective first: " + joined(names_of<collectives>()));
  std::vector<std::string> const known = names_of<collectives>();
  if (std::find(known.begin(), known.end(), o.collective) == known.end())
    throw usage_error("there is no collective '" + o.collective + "'; say one of: " + joined(known));
  if (o.collective == "barrier") o.bytes = {0};
  check_ranges(o);
  check_algorithm(o);
  choose_what_is_compiled(o);
  check_operators(o);
  fill_sizes(o);
  if (o.state != "rotating") o.pool_bytes = 0;
  return o;
}

void print_help() {
  std::printf(
      "usage: collx_perf COLLECTIVE [flags]\n\n"
      "Times a collective on ranks that it starts on this machine. COLLECTIVE is one of\n  %s\n\n",
      joined(names_of<collectives>()).c_str());
  for (flag const& f : flags) std::printf("  %-3s %-15s %-14s %s\n", f.letter, f.name, f.value, f.help);
  std::printf("\ntypes:     %s\noperators: %s\n", joined(type_names()).c_str(),
              joined(names_of<operators>()).c_str());
  std::printf("exit code: 0 all right, 1 a wrong element or a failed rank, 2 bad input\n");
}

}  // namespace perf
