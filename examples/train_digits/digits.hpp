// SPDX-License-Identifier: Apache-2.0
// Reads examples/data/digits.csv and splits it into training and test images. Strict: whatever is
// not exactly the data set is refused, with the line and what to do. Never guesses, never skips.
#pragma once

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "random.hpp"

namespace train_digits {

inline constexpr int pixel_count = 64;  // 8x8
inline constexpr int class_count = 10;
inline constexpr int pixel_max = 16;
inline constexpr std::size_t image_count = 1797;

struct image {
  std::array<float, pixel_count> pixels{};  // 0 (white) to 1 (black)
  int digit = 0;
};

struct data_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

[[noreturn]] inline void refuse(std::string const& origin, std::size_t line, std::string const& what) {
  throw data_error(origin + ":" + std::to_string(line) + ": " + what +
                   ". The file is not the data set that examples/data/README.md describes; "
                   "restore it (git checkout examples/data/digits.csv) or give another one with --data");
}

// One integer in 0..max from the front of `line`. Takes a comma behind it, unless it is the last.
inline int take_number(std::string_view& line, int max, bool last, std::string const& origin,
                       std::size_t number) {
  int value = -1;
  auto const [end, failed] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (failed != std::errc{})
    refuse(origin, number,
           "expected an integer, found '" + std::string(line.substr(0, line.find(','))) + "'");
  if (value < 0 || value > max)
    refuse(origin, number, "value " + std::to_string(value) + " is outside 0.." + std::to_string(max));
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (last) {
    if (!line.empty()) refuse(origin, number, "something stands behind the 65th value");
  } else {
    if (line.empty() || line.front() != ',') refuse(origin, number, "expected 65 values separated by commas");
    line.remove_prefix(1);
  }
  return value;
}

inline image take_image(std::string_view line, std::string const& origin, std::size_t number) {
  image result;
  for (float& pixel : result.pixels)
    pixel = static_cast<float>(take_number(line, pixel_max, false, origin, number)) / float{pixel_max};
  result.digit = take_number(line, class_count - 1, true, origin, number);
  return result;
}

}  // namespace detail

// `origin` names the text in errors. Throws data_error unless the text is `expected` whole lines.
inline std::vector<image> parse_digits(std::string_view text, std::string const& origin,
                                       std::size_t expected = image_count) {
  std::vector<image> images;
  images.reserve(expected);
  while (!text.empty()) {
    std::size_t const line = images.size() + 1;
    std::size_t const length = text.find('\n');
    // A last line without its newline may have lost digits of its last value: never accepted.
    if (length == std::string_view::npos)
      detail::refuse(origin, line, "the file ends in the middle of a line");
    if (line > expected) detail::refuse(origin, line, "more than " + std::to_string(expected) + " images");
    images.push_back(detail::take_image(text.substr(0, length), origin, line));
    text.remove_prefix(length + 1);
  }
  if (images.size() != expected)
    detail::refuse(origin, images.size() + 1,
                   "the file ends after " + std::to_string(images.size()) + " of " +
                       std::to_string(expected) + " images");
  return images;
}

inline std::vector<image> load_digits(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw data_error("cannot open " + path + ": " + std::strerror(errno) +
                     ". Give the path of examples/data/digits.csv with --data");
  std::ostringstream text;
  if (!(text << file.rdbuf()))  // also where there is nothing: an empty file, a directory
    throw data_error("cannot read anything from " + path +
                     ". Give the path of examples/data/digits.csv with --data");
  return parse_digits(text.str(), path);
}

struct digits {
  std::vector<image> training;
  std::vector<image> test;
};

// The same seed gives the same split on every rank and every machine.
inline digits split(std::vector<image> images, std::size_t test_count, std::uint64_t seed) {
  shuffle(images, seed);
  auto const middle = images.end() - static_cast<std::ptrdiff_t>(test_count);
  return {{images.begin(), middle}, {middle, images.end()}};
}

}  // namespace train_digits
