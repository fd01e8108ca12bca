// SPDX-License-Identifier: Apache-2.0
// Every link of every page leads somewhere: to a file of the project, and to a heading that it has.
#include <doctest/doctest.h>

#include <cctype>

#include "tidy/source_tree.hpp"

namespace {

namespace fs = std::filesystem;

// What GitHub makes of a heading: small letters, no punctuation, spaces to hyphens.
std::string anchor_of(std::string const& heading) {
  std::string anchor;
  for (char const c : heading) {
    auto const u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || c == '_' || c == '-') anchor += static_cast<char>(std::tolower(u));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

// Calls f(line number, line) for the lines that are text and not an example.
template <class F>
void for_each_line_of_text(std::vector<std::string> const& lines, F const& f) {
  bool in_example = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("```")) in_example = !in_example;
    else if (!in_example && !lines[i].starts_with("    ")) f(i + 1, lines[i]);
  }
}

bool has_heading(std::vector<std::string> const& lines, std::string const& anchor) {
  bool found = false;
  for_each_line_of_text(lines, [&](std::size_t, std::string const& line) {
    std::size_t const text = line.find_first_not_of('#');
    if (text == 0 || text == std::string::npos || line[text] != ' ') return;
    found = found || anchor_of(line.substr(text + 1)) == anchor;
  });
  return found;
}

// The targets of [text](target) in a line, but for what stands between backquotes.
std::vector<std::string> links_of(std::string const& with_code) {
  std::string line;
  bool in_code = false;
  for (char const c : with_code) {
    if (c == '`') in_code = !in_code;
    else if (!in_code) line += c;
  }
  std::vector<std::string> targets;
  for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 2)) {
    std::size_t const end = line.find(')', at);
    if (end != std::string::npos) targets.push_back(line.substr(at + 2, end - at - 2));
  }
  return targets;
}

void check_link(std::string const& from, std::size_t line, std::string const& link) {
  CAPTURE(from);
  CAPTURE(line);
  CAPTURE(link);
  if (link.starts_with("https://") || link.starts_with("http://")) return;  // needs a network
  std::size_t const hash = link.find('#');
  fs::path const root = COLLX_SOURCE_DIR;
  std::string const file = link.substr(0, hash);
  fs::path const target = file.empty() ? root / from : (root / from).parent_path() / file;
  CHECK(fs::exists(target));
  if (hash != std::string::npos && fs::exists(target))
    CHECK(has_heading(tidy::read_lines(target), link.substr(hash + 1)));
}

}  // namespace

TEST_CASE("links between pages resolve") {
  std::size_t count = 0;
  for (tidy::source_file const& page : tidy::files_with({".md"}))
    for_each_line_of_text(page.lines, [&](std::size_t number, std::string const& line) {
      for (std::string const& link : links_of(line)) check_link(page.path, number, link), ++count;
    });
  CHECK(count > 20);
}

TEST_CASE("pages that programs and error messages name exist") {
  std::string const folder = "docs/";
  std::set<std::string> named = tidy::code_extensions();
  named.insert({".cmake", ".txt", ".sh", ".py", ".md"});
  for (tidy::source_file const& file : tidy::files_with(named))
    for (std::string const& line : file.lines)
      for (std::size_t at = line.find(folder); at != std::string::npos; at = line.find(folder, at + 1)) {
        std::size_t const end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + folder.size());
        if (end == std::string::npos || line.compare(end, 3, ".md") != 0 || line[end - 1] == '/') continue;
        std::string const page = line.substr(at, end + 3 - at);
        CHECK_MESSAGE(fs::exists(fs::path(COLLX_SOURCE_DIR) / page), file.path << " names " << page);
      }
}

TEST_CASE("the front page leads to every page") {
  std::set<std::string> linked;
  for (std::string const& line : tidy::read_lines(fs::path(COLLX_SOURCE_DIR) / "README.md"))
    for (std::string const& link : links_of(line)) linked.insert(link);
  for (tidy::source_file const& page : tidy::files_with({".md"}))
    if (page.path.starts_with("docs/")) CHECK_MESSAGE(linked.contains(page.path), page.path);
}
