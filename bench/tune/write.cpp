// SPDX-License-Identifier: Apache-2.0
// Formatting only.
#include "write.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include <unistd.h>

#include "../perf/options.hpp"
#include "collx/algo/all.hpp"

namespace tuning {
namespace {

bool bounded(entry const& e) { return e.bytes_max != std::numeric_limits<std::int64_t>::max(); }

std::string json_rule(entry const& e) {
  std::string text =
      "    {\"collective\": \"" + e.collective + "\", \"transport\": \"" + e.where.transport + "\"";
  if (e.where.memory != "any") text += ", \"memory\": \"" + e.where.memory + "\"";
  text += ", \"ranks_max\": " + std::to_string(e.where.ranks);
  if (bounded(e)) text += ", \"bytes_max\": " + std::to_string(e.bytes_max);
  return text + ", \"algorithm\": \"" + e.algorithm + "\"}";
}

std::string json_model(fit const& f) {
  char text[400];
  std::snprintf(text, sizeof text,
                "    {\"transport\": \"%s\", \"memory\": \"%s\", \"round_us\": %.4g, \"gap_us\": %.4g, "
                "\"gap_us_per_byte\": %.4g, \"gamma_us_per_byte\": %.4g}",
                f.transport.c_str(), f.memory.c_str(), f.loggp.round_us, f.loggp.gap_us,
                f.loggp.gap_us_per_byte, f.loggp.gamma_us_per_byte);
  return text;
}

template <class Rows, class Line>
std::string lines(Rows const& rows, Line const& line, char const* separator) {
  std::string text;
  for (auto const& row : rows) text += (text.empty() ? "" : separator) + line(row);
  return text;
}

#if defined(COLLX_PERF_UNOPTIMISED)
constexpr char const* not_optimised = ", built without optimisation: not for use,";
#else
constexpr char const* not_optimised = "";
#endif

std::string written_by() {
  return "collx_tune " + std::to_string(COLLX_VERSION_MAJOR) + "." + std::to_string(COLLX_VERSION_MINOR) +
         "." + std::to_string(COLLX_VERSION_PATCH) + not_optimised;
}

std::string machine() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      std::string name = line.substr(line.find(": ") + 2);
      std::erase_if(name, [](char c) { return c == '"' || c == '\\'; });
      return std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " x " + name.substr(0, 100);
    }
  return std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " processors";
}

// The type's name as a compiler spells it: "collx::abi_1::algo::bruck<2>".
template <class T>
std::string spelled() {
  std::string const text = __PRETTY_FUNCTION__;
  std::size_t const begin = text.find("T = ") + 4;
  std::size_t const end = std::min(text.find_first_of(";", begin), text.rfind(']'));
  return text.substr(begin, end - begin);
}

std::string type_of(std::string const& algorithm) {
  std::string found;
  collx::algo::all::for_each([&]<class Algorithm>() {
    if (algorithm == Algorithm::name) found = spelled<Algorithm>();
  });
  return found;
}

std::string header_rule(entry const& e) {
  std::string text = "    collx::tune::fixed_rule<collx::contract::" + e.collective + ", " +
                     type_of(e.algorithm) + ",\n                            {";
  if (bounded(e)) text += ".bytes_max = " + std::to_string(e.bytes_max) + ", ";
  text += ".ranks_max = " + std::to_string(e.where.ranks);
  if (e.where.memory == "private") text += ", .memory = collx::tune::memory_kind::unshared";
  if (e.where.memory == "symmetric") text += ", .memory = collx::tune::memory_kind::symmetric";
  return text + ", .transport = \"" + e.where.transport + "\"}>";
}

}  // namespace

std::string json_of(std::vector<entry> const& table, std::vector<fit> const& fits) {
  return "{\n  \"format\": \"collx tuning 1\",\n  \"written_by\": \"" + written_by() +
         "\",\n  \"machine\": \"" + machine() + "\",\n  \"models\": [\n" + lines(fits, json_model, ",\n") +
         "\n  ],\n  \"rules\": [\n" + lines(table, json_rule, ",\n") + "\n  ]\n}\n";
}

std::string header_of(std::vector<entry> const& table, std::string const& name) {
  std::string text = "// Written by " + written_by() + " on " + machine() +
                     ".\n// An algorithm argument: all_reduce<" + name +
                     ">(comm, values). See docs/choice.md of collx.\n#pragma once\n\n";
  text += "#include \"collx/algo/all.hpp\"\n#include \"collx/tune/fixed_table.hpp\"\n\n";
  return text + "struct " + name + " : collx::tune::fixed_table<\n" + lines(table, header_rule, ",\n") +
         "> {\n  static constexpr char const* name = \"" + name + "\";\n};\n";
}

void write_file(std::string const& path, std::string const& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw perf::usage_error("cannot write " + path + "; give --out a folder that exists");
}

}  // namespace tuning
