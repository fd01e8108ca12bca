// SPDX-License-Identifier: Apache-2.0
// Which folder of include/collx may include which: the data flow of docs/tour.md, as a test.
#include <map>

#include <doctest/doctest.h>

#include "tidy/source_tree.hpp"

namespace {

using folder_set = std::set<std::string>;

// A folder may always include itself. "." is the headers directly under include/collx.
std::map<std::string, folder_set> const& allowed() {
  static folder_set const below_exec{"schedule", "transport", "device", "op", "wire", "trace", "core"};
  static std::map<std::string, folder_set> const table{
      {"core", {}},
      {"schedule", {"core"}},
      {"algo", {"schedule", "core"}},
      {"op", {"core"}},
      {"wire", {"op", "core"}},
      {"trace", {"schedule", "core"}},
      {"device", {"op", "core"}},
      {"net", {"core"}},
      {"transport", {"net", "device", "core"}},
      {"tune", {"algo", "schedule", "core"}},
      {"exec", below_exec},
      {"sim", {"exec", "schedule", "transport", "device", "op", "wire", "trace", "core"}},
      {"bootstrap", {".", "transport", "net", "core"}},
      {"collective",
       {".", "algo", "exec", "tune", "schedule", "transport", "device", "op", "wire", "trace", "core"}},
      {"any", {".", "collective", "algo", "tune", "exec", "schedule", "op", "core"}},
      {"ft",
       {".", "collective", "algo", "exec", "schedule", "transport", "bootstrap", "op", "trace", "core"}},
  };
  return table;
}

// A transport says how its ranks come together, and so hands out a communicator. The circle of folders
// (communicator, exec, transport) is none of headers: exec sees concept.hpp alone, tested below.
bool hands_out_communicators(std::string const& from, std::string_view header) {
  return from == "transport" && header == "collx/communicator.hpp";
}

// The choice of algorithms names more of them for transports of messages than others should have to compile.
bool brings_algorithms(std::string const& from, std::string_view header) {
  return from == "transport" && (header == "collx/tune/message_algorithms.hpp" ||
                                 header == "collx/tune/grouped_algorithms.hpp");
}

// contract.hpp is pure data and stands for "what must hold" everywhere.
bool is_shared_vocabulary(std::string_view header) { return header == "collx/collective/contract.hpp"; }

// "collx/exec/host.hpp" -> "exec", "collx/communicator.hpp" -> "."
std::string folder_of(std::string_view header) {
  header.remove_prefix(std::string_view("collx/").size());
  std::size_t const slash = header.find('/');
  return slash == std::string_view::npos ? "." : std::string(header.substr(0, slash));
}

bool may_include(std::string const& from, std::string_view header) {
  std::string const to = folder_of(header);
  if (from == to || from == "." || from == "interop" || is_shared_vocabulary(header) ||
      hands_out_communicators(from, header) || brings_algorithms(from, header))
    return true;
  auto const row = allowed().find(from);
  return row != allowed().end() && row->second.contains(to);
}

std::vector<tidy::source_file> headers() {
  std::vector<tidy::source_file> files = tidy::files_with({".hpp", ".cuh"});
  std::erase_if(files, [](auto const& file) { return !file.path.starts_with("include/collx/"); });
  return files;
}

}  // namespace

TEST_CASE("headers include in the direction of the data flow only") {
  REQUIRE(!headers().empty());
  for (tidy::source_file const& file : headers()) {
    std::string const from = folder_of(file.path.substr(std::string_view("include/").size()));
    bool const known = from == "." || from == "interop" || allowed().contains(from);
    CHECK_MESSAGE(known, file.path << ": folder '" << from << "' is not in the table of this test; add it");
    for (std::string const& line : file.lines) {
      std::string_view const header = tidy::included(line);
      if (!header.starts_with("collx/")) continue;
      CHECK_MESSAGE(may_include(from, header), file.path << " must not include " << header);
    }
  }
}

TEST_CASE("contract.hpp, which everybody may include, includes core only") {
  for (tidy::source_file const& file : headers()) {
    if (file.path != "include/collx/collective/contract.hpp") continue;
    for (std::string const& line : file.lines) {
      std::string_view const header = tidy::included(line);
      if (header.starts_with("collx/")) CHECK_MESSAGE(folder_of(header) == "core", line);
    }
  }
}

TEST_CASE("executors know the concept of a transport, and no transport") {
  for (tidy::source_file const& file : headers()) {
    if (!file.path.starts_with("include/collx/exec/")) continue;
    for (std::string const& line : file.lines) {
      std::string_view const header = tidy::included(line);
      bool const fine = !header.starts_with("collx/transport/") || header == "collx/transport/concept.hpp";
      CHECK_MESSAGE(fine, file.path << ": " << line);
    }
  }
}

TEST_CASE("the concept of a transport stands on core alone") {
  for (tidy::source_file const& file : headers()) {
    if (file.path != "include/collx/transport/concept.hpp") continue;
    for (std::string const& line : file.lines) {
      std::string_view const header = tidy::included(line);
      if (header.starts_with("collx/")) CHECK_MESSAGE(folder_of(header) == "core", line);
    }
  }
}

// For queue pairs it would do as well: whatever loses nothing, over several ways that keep no order among
// each other.
TEST_CASE("spreading messages over flows knows no sockets") {
  bool found = false;
  for (tidy::source_file const& file : headers()) {
    if (!file.path.starts_with("include/collx/transport/flows/")) continue;
    found = true;
    for (std::string const& line : file.lines) {
      std::string_view const header = tidy::included(line);
      bool const is_of_transport = header.starts_with("collx/transport/");
      bool const foreign = header.starts_with("collx/net/") || header.starts_with("sys/") ||
                           (is_of_transport && !header.starts_with("collx/transport/flows/"));
      CHECK_MESSAGE(!foreign, file.path << ": " << line);
    }
  }
  CHECK(found);
}

TEST_CASE("schedules and algorithms know neither CUDA nor the operating system") {
  for (tidy::source_file const& file : headers()) {
    if (!file.path.starts_with("include/collx/algo/") && !file.path.starts_with("include/collx/schedule/"))
      continue;
    for (std::string const& line : file.lines) {
      std::string_view const header = tidy::included(line);
      bool const foreign = header.starts_with("cuda") || header.starts_with("sys/") || header == "unistd.h";
      CHECK_MESSAGE(!foreign, file.path << ": " << line);
    }
  }
}

// They cost every user compile time (about a quarter of a second each).
TEST_CASE("no header includes a heavy standard header") {
  std::set<std::string_view> const banned{"iostream", "format", "regex", "functional"};
  for (tidy::source_file const& file : headers())
    for (std::string const& line : file.lines)
      CHECK_MESSAGE(!banned.contains(tidy::included(line)), file.path << ": " << line);
}

TEST_CASE("headers include each other as \"collx/...\", from the root") {
  for (tidy::source_file const& file : headers())
    for (std::string const& line : file.lines)
      if (line.starts_with("#include \""))
        CHECK_MESSAGE(line.starts_with("#include \"collx/"), file.path << ": " << line);
}
