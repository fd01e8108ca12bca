// SPDX-License-Identifier: Apache-2.0
// Plain rules on the text of every file: licence line, length, leftovers.
#include <cstdio>

#include <doctest/doctest.h>

#include "tidy/source_tree.hpp"

namespace {

constexpr std::size_t line_length_max = 110;
constexpr std::size_t file_lines_max = 400;
constexpr std::string_view spdx = "SPDX-License-Identifier: Apache-2.0";

std::vector<tidy::source_file> code() { return tidy::files_with(tidy::code_extensions()); }

std::vector<tidy::source_file> text() {
  std::set<std::string> extensions = tidy::code_extensions();
  extensions.insert({".cmake", ".txt", ".sh", ".md", ".json", ".py", ".in", ".yml"});
  return tidy::files_with(extensions);
}

// Characters, not bytes: continuation bytes of UTF-8 do not count.
std::size_t length(std::string const& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string at(tidy::source_file const& file, std::size_t index) {
  return file.path + ":" + std::to_string(index + 1);
}

bool is_comment(std::string const& line) {
  return line.starts_with("//") || line.starts_with("/*") || line.starts_with(" *");
}

}  // namespace

TEST_CASE("every source file opens with its licence, and says in its second line what it is") {
  REQUIRE(!code().empty());
  for (tidy::source_file const& file : code()) {
    REQUIRE_MESSAGE(file.lines.size() > 1, file.path << " is empty");
    CHECK_MESSAGE(file.lines[0].find(spdx) != std::string::npos, file.path << " lacks the line // " << spdx);
    CHECK_MESSAGE(is_comment(file.lines[1]), file.path << " does not say what it is");
  }
}

// CMake passes over one that stands elsewhere.
TEST_CASE("what a test's comments tell CMake begins a line") {
  std::string const to_ctest = "ctest: ", to_sanitizers = "sanitizers: no",
                    to_one_of_them = "thread sanitizer: no", to_another = "address sanitizer: no",
                    to_linker = "component: ", to_compiler = "compiled: as users do";
  for (tidy::source_file const& file : tidy::files_with({".cpp"}))
    for (std::size_t i = 0; i < file.lines.size() && file.lines[i].starts_with("//"); ++i)
      for (std::string const& word :
           {to_ctest, to_sanitizers, to_one_of_them, to_another, to_linker, to_compiler}) {
        std::size_t const found = file.lines[i].find(word);
        CHECK_MESSAGE((!file.path.starts_with("tests/") || found == std::string::npos || found == 3),
                      at(file, i) << " holds \"" << word << "\" further on, where CMake does not see it");
      }
}

TEST_CASE("a test that sanitizers do not see says why") {
  std::string const all = std::string("// sanitizers") + ": no";
  std::string const threads = std::string("// thread sanitizer") + ": no";
  std::string const addresses = std::string("// address sanitizer") + ": no";
  for (std::string const& marker : {all, threads, addresses})
    for (tidy::source_file const& file : tidy::files_with({".cpp"}))
      for (std::size_t i = 0; i < file.lines.size(); ++i)
        CHECK_MESSAGE((!file.lines[i].starts_with(marker) || file.lines[i].starts_with(marker + ", ")),
                      at(file, i) << ": \"" << marker << ", REASON\"");
}

// Two versions of the library may meet in one program.
TEST_CASE("the library's names stand in the namespace of its binary interface") {
  std::size_t opened = 0;
  for (tidy::source_file const& file : tidy::files_with({".hpp", ".cuh"})) {
    if (!file.path.starts_with("include/collx/")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (!file.lines[i].starts_with("namespace collx")) continue;
      ++opened;
      CHECK_MESSAGE(file.lines[i].starts_with("namespace collx::inline abi_1"), at(file, i));
    }
  }
  CHECK(opened > 100);
}

TEST_CASE("headers are guarded by #pragma once") {
  for (tidy::source_file const& file : tidy::files_with({".hpp", ".cuh"})) {
    bool const guarded = std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
    CHECK_MESSAGE(guarded, file.path);
  }
}

TEST_CASE("lines of code have at most 110 characters") {
  for (tidy::source_file const& file : code())
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      CHECK_MESSAGE(length(file.lines[i]) <= line_length_max, at(file, i) << ": " << length(file.lines[i]));
}

TEST_CASE("no line ends in white space, and no line of code holds a tab") {
  for (tidy::source_file const& file : text())
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::string const& line = file.lines[i];
      bool const trailing =
          !line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r');
      CHECK_MESSAGE(!trailing, at(file, i));
      CHECK_MESSAGE(line.find('\t') == std::string::npos, at(file, i) << " holds a tab");
    }
}

TEST_CASE("no leftovers: notes to oneself and paths of one machine belong in no file") {
  // Joined here, so that this file passes its own test.
  std::string const slash = "/";
  std::vector<std::string> const banned{std::string("TO") + "DO", std::string("FIX") + "ME", slash + "work/",
                                        slash + "home/", slash + "root/"};
  for (tidy::source_file const& file : text())
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      for (std::string const& word : banned)
        CHECK_MESSAGE(file.lines[i].find(word) == std::string::npos, at(file, i) << " holds " << word);
}

TEST_CASE("tests run ranks under a watchdog") {
  // On the line or on the one before it, a comment lets a use through.
  std::string const marker = "// unwatched", ours = "tests/watched", name = "bootstrap::on_";
  std::string const everything = "using namespace collx::" + std::string("bootstrap;");
  for (tidy::source_file const& file : code()) {
    if (!file.path.starts_with("tests/") || file.path.starts_with(ours)) continue;
    bool const unqualified = std::find(file.lines.begin(), file.lines.end(), everything) != file.lines.end();
    auto const holds = [&](std::size_t i, std::string const& text) {
      return file.lines[i].find(text) != std::string::npos;
    };
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      bool const runs_ranks = holds(i, name + "threads") || holds(i, name + "processes") ||
                              holds(i, name + "tcp_processes") ||
                              (unqualified && (holds(i, " on_threads(") || holds(i, "on_processes(")));
      bool const says_why = holds(i, marker) || (i != 0 && holds(i - 1, marker));
      CHECK_MESSAGE((!runs_ranks || says_why), at(file, i)
                                                   << ": call what tests/watched.hpp offers, or say after \""
                                                   << marker << "\" why not");
    }
  }
}

TEST_CASE("no source file is longer than 400 lines") {
  std::vector<std::size_t> lengths;
  for (tidy::source_file const& file : code()) {
    lengths.push_back(file.lines.size());
    CHECK_MESSAGE(file.lines.size() <= file_lines_max, file.path << ": " << file.lines.size() << " lines");
  }
  std::sort(lengths.begin(), lengths.end());
  std::printf("source files: %zu; lines: median %zu, nine tenths below %zu, longest %zu\n", lengths.size(),
              lengths[lengths.size() / 2], lengths[lengths.size() * 9 / 10], lengths.back());
}
