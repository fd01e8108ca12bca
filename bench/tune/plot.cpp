// SPDX-License-Identifier: Apache-2.0
// Draws time over the best time of each size, both axes logarithmic: where lines cross at 1, the choice
// changes. The strip under each panel shows the table's rows.
#include "plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace tuning {
namespace {

constexpr double panel_width = 300, panel_height = 150, left = 44, top = 96, gap_x = 56, gap_y = 78;
constexpr int columns = 3;
constexpr double ratio_most = 16;
constexpr char const* colours[] = {"#0b62c4", "#d9730d", "#12a594", "#a3443b", "#7b4fc9", "#8a6d00",
                                   "#c2298a", "#4d7c0f", "#0e7490", "#334155", "#b45309", "#be123c",
                                   "#1d4ed8", "#65a30d", "#9333ea", "#0f766e"};

template <class... Arguments>
std::string print(char const* format, Arguments... arguments) {
  char text[600];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

// Names of algorithms have < and > in them.
std::string escaped(std::string const& words) {
  std::string text;
  for (char const c : words) text += c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return text;
}

std::string words_at(double x, double y, std::string const& words, char const* anchor = "start",
                     int size = 11, char const* colour = "#1d2329") {
  return print("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"%s\" text-anchor=\"%s\">%s</text>\n", x,
               y, size, colour, anchor, escaped(words).c_str());
}

class picture {
 public:
  picture(results const& measured, std::vector<entry> const& table, setting const& where)
      : table_(table), where_(where) {
    for (auto const& [cell, of] : measured) {
      if (cell.where != where || cell.block_bytes == 0) continue;
      panels_[cell.collective][cell.block_bytes] = &of;
      for (auto const& [algorithm, us] : of) algorithms_.insert(algorithm);
      low_ = std::min(low_, cell.block_bytes);
      high_ = std::max(high_, cell.block_bytes);
    }
  }

  std::string draw() {
    if (panels_.empty()) return {};
    int const rows = (static_cast<int>(panels_.size()) + columns - 1) / columns;
    double const width = left + columns * (panel_width + gap_x), height = top + rows * (panel_height + gap_y);
    text_ = print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"%.0f\" height=\"%.0f\" "
        "fill=\"#ffffff\"/>\n",
        width, height, width, height, width, height);
    text_ +=
        words_at(left, 24, "Time over that of the fastest algorithm, by bytes of a block: " + words(where_),
                 "start", 15);
    legend();
    int index = 0;
    for (auto const& [collective, sizes] : panels_) {
      origin_x_ = left + index % columns * (panel_width + gap_x);
      origin_y_ = top + index / columns * (panel_height + gap_y);
      panel(collective, sizes);
      ++index;
    }
    return text_ + "</svg>\n";
  }

 private:
  using sizes_of = std::map<std::int64_t, times const*>;

  [[nodiscard]] double x(double bytes) const {
    double const span = std::max(1e-9, std::log(static_cast<double>(high_) / static_cast<double>(low_)));
    double const part = std::log(bytes / static_cast<double>(low_)) / span;
    return origin_x_ + std::clamp(part, 0.0, 1.0) * panel_width;
  }
  [[nodiscard]] double y(double ratio) const {
    double const part = std::log(std::clamp(ratio, 1.0, ratio_most)) / std::log(ratio_most);
    return origin_y_ + (1 - part) * panel_height;
  }
  [[nodiscard]] char const* colour(std::string const& algorithm) const {
    auto const at = std::distance(algorithms_.begin(), algorithms_.find(algorithm));
    return colours[static_cast<std::size_t>(at) % std::size(colours)];
  }

  void legend() {
    double at = left, line = 46;
    for (std::string const& algorithm : algorithms_) {
      double const room = 30 + 6.2 * static_cast<double>(algorithm.size());
      if (at + room > left + columns * (panel_width + gap_x)) at = left, line += 16;
      text_ += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"4\" fill=\"%s\"/>\n", at, line - 6,
                     colour(algorithm));
      text_ += words_at(at + 18, line, algorithm);
      at += room;
    }
  }

  void panel(std::string const& collective, sizes_of const& sizes) {
    text_ += words_at(origin_x_, origin_y_ - 6, collective, "start", 13);
    for (double const ratio : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      text_ += print("<path d=\"M%.1f %.1fh%.0f\" stroke=\"#e3e7eb\"/>\n", origin_x_, y(ratio), panel_width);
      text_ += words_at(origin_x_ - 5, y(ratio) + 4, print("%.0fx", ratio), "end", 10, "#66717c");
    }
    for (std::int64_t bytes = low_; bytes <= high_; bytes *= 16)
      text_ += words_at(x(static_cast<double>(bytes)), origin_y_ + panel_height + 28, human(bytes), "middle",
                        10, "#66717c");
    for (std::string const& algorithm : algorithms_) curve(algorithm, sizes);
    strip(collective);
  }

  void curve(std::string const& algorithm, sizes_of const& sizes) {
    std::string points;
    for (auto const& [bytes, of] : sizes) {
      auto const found = of->find(algorithm);
      if (found == of->end()) continue;
      double best = found->second;
      for (auto const& [name, us] : *of) best = std::min(best, us);
      points += print("%.1f,%.1f ", x(static_cast<double>(bytes)), y(found->second / best));
    }
    if (!points.empty())
      text_ += "<polyline points=\"" + points + "\" fill=\"none\" stroke-width=\"1.6\" stroke=\"" +
               colour(algorithm) + "\"/>\n";
  }

  void strip(std::string const& collective) {
    double from = origin_x_;
    for (entry const& e : table_) {
      if (e.where != where_ || e.collective != collective) continue;
      double const to = x(static_cast<double>(std::min(e.bytes_max, high_)));
      text_ += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"9\" fill=\"%s\"/>\n", from,
                     origin_y_ + panel_height + 5, std::max(0.0, to - from), colour(e.algorithm));
      from = to;
    }
  }

  std::vector<entry> const& table_;
  setting const& where_;
  std::map<std::string, sizes_of> panels_;
  std::set<std::string> algorithms_;
  std::int64_t low_ = std::numeric_limits<std::int64_t>::max(), high_ = 1;
  double origin_x_ = 0, origin_y_ = 0;
  std::string text_;
};

}  // namespace

std::string plot_of(results const& measured, std::vector<entry> const& table, setting const& where) {
  return picture(measured, table, where).draw();
}

}  // namespace tuning
