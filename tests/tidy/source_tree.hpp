// SPDX-License-Identifier: Apache-2.0
// Reads the project's own files for the tidy tests. COLLX_SOURCE_DIR comes from CMake.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tidy {

struct source_file {
  std::string path;  // relative to the project's root, with forward slashes
  std::vector<std::string> lines;
};

inline std::vector<std::string> read_lines(std::filesystem::path const& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What editors and build systems leave in a checkout is not.
inline bool is_ours(std::filesystem::path const& directory) {
  std::string const name = directory.filename().string();
  auto const has = [&](char const* file) { return std::filesystem::exists(directory / file); };
  return !name.starts_with("build") && !name.starts_with("cmake-build") && name != "_deps" &&
         (!name.starts_with(".") || name == ".ci") && !has("CMakeCache.txt") && !has("pyvenv.cfg");
}

// Every file of the project whose extension is in `extensions`, sorted by path.
inline std::vector<source_file> files_with(std::set<std::string> const& extensions) {
  namespace fs = std::filesystem;
  fs::path const root = COLLX_SOURCE_DIR;
  std::vector<source_file> found;
  for (fs::recursive_directory_iterator it(root), end; it != end; ++it) {
    if (it->is_directory()) {
      if (!is_ours(it->path())) it.disable_recursion_pending();
    } else if (extensions.contains(it->path().extension().string())) {
      found.push_back({it->path().lexically_relative(root).generic_string(), read_lines(it->path())});
    }
  }
  std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
  return found;
}

inline std::set<std::string> const& code_extensions() {
  static std::set<std::string> const extensions{".hpp", ".cpp", ".cuh", ".cu", ".c", ".h"};
  return extensions;
}

// What an #include line names, without quotes or brackets; empty for any other line.
inline std::string_view included(std::string_view line) {
  if (!line.starts_with("#include ")) return {};
  line.remove_prefix(10);
  return line.substr(0, line.find_first_of("\">"));
}

}  // namespace tidy
