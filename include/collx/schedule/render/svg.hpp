// SPDX-License-Identifier: Apache-2.0
// A schedule as a drawing: ranks are columns, time runs down, a box is a step and an arrow a
// message. Every chunk of the vector has a colour, which its arrows and boxes carry.
#pragma once

#include <string>

#include "collx/schedule/render/flow.hpp"

namespace collx::inline abi_1 {
namespace detail {

// Lengths in SVG units.
struct drawing_sizes {
  std::int32_t column = 170;
  std::int32_t row = 104;
  std::int32_t box_width = 112;
  std::int32_t box_height = 42;
  std::int32_t left = 30;
  std::int32_t top = 56;
  std::int32_t bottom = 34;
};

class svg_drawing {
 public:
  explicit svg_drawing(flow const& f) : flow_(f), rows_(f.row_count()) {
    rank_t const n = f.of().size;
    is_ring_ = n > 2;
    for (drawn_message const& m : f.messages()) {
      rank_t const hop = (m.receiver - m.sender + n) % n;
      is_ring_ = is_ring_ && (hop == 1 || hop == n - 1);
      copies_ = copies_ || m.copied;
      pushes_ = pushes_ || m.pushed;
      if (flow_.step(m.sender, m.send_step).what.to.count > 2) sizes_.row = 150;  // room for a fan-out
    }
  }

  [[nodiscard]] std::string draw(std::string const& title) {
    open(title);
    for (rank_t r = 0; r < flow_.of().size; ++r) draw_column(r);
    for (drawn_message const& m : flow_.messages())
      if (m.receive_step >= 0) draw_message(m);
    for (rank_t r = 0; r < flow_.of().size; ++r)
      for (drawn_step const& step : flow_.steps(r)) draw_step(r, step);
    svg_ += labels_;
    draw_legend();
    return svg_ + "</svg>\n";
  }

 private:
  struct point {
    double x = 0, y = 0;
  };

  [[nodiscard]] static char const* colour(std::int32_t chunk) {
    constexpr char const* palette[] = {"#2f6fb5", "#c8552b", "#2e8b57", "#8457a8",
                                       "#a8862a", "#c0417c", "#3b8f9e", "#6b6b6b"};
    return palette[(chunk % 8 + 8) % 8];
  }

  [[nodiscard]] static std::string number(double value) {
    std::int64_t const tenths = static_cast<std::int64_t>(value * 10 + (value < 0 ? -0.5 : 0.5));
    std::string text = std::to_string(tenths / 10);
    if (tenths % 10 != 0) text += "." + std::to_string(tenths < 0 ? -(tenths % 10) : tenths % 10);
    return text;
  }

  [[nodiscard]] static std::string attribute(char const* name, double value) {
    return std::string(" ") + name + "=\"" + number(value) + "\"";
  }

  [[nodiscard]] double centre(rank_t r) const { return sizes_.left + sizes_.column * (r + 0.5); }
  [[nodiscard]] double box_top(std::int32_t row) const { return sizes_.top + sizes_.row * double(row); }
  [[nodiscard]] double width() const { return 2 * sizes_.left + sizes_.column * double(flow_.of().size); }
  [[nodiscard]] double height() const {
    return box_top(rows_ > 0 ? rows_ - 1 : 0) + sizes_.box_height + sizes_.bottom;
  }

  void text(point at, std::string const& what, char const* style) {
    svg_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + " " + style + ">" + what + "</text>\n";
  }

  // Of a title: names of algorithms that are made of others have brackets.
  [[nodiscard]] static std::string escaped(std::string const& title) {
    std::string made;
    for (char const c : title) {
      if (c == '<') made += "&lt;";
      else if (c == '>') made += "&gt;";
      else if (c == '&') made += "&amp;";
      else made += c;
    }
    return made;
  }

  void open(std::string const& title) {
    std::string const w = number(width()), h = number(height());
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
           "\" viewBox=\"0 0 " + w + " " + h +
           "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n";
    svg_ += "<title>" + escaped(title) + "</title>\n<rect width=\"" + w + "\" height=\"" + h +
            "\" fill=\"#ffffff\"/>\n<defs>\n";
    for (std::int32_t c = 0; c < 8; ++c)
      svg_ += "<marker id=\"head" + std::to_string(c) +
              "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
              "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8 L8 4 L0 7.2 z\" fill=\"" +
              std::string(colour(c)) + "\"/></marker>\n";
    svg_ += "</defs>\n";
  }

  void draw_column(rank_t r) {
    text({centre(r), 26}, "rank " + std::to_string(r),
         "text-anchor=\"middle\" font-weight=\"bold\" font-size=\"14\" fill=\"#222222\"");
    svg_ += "<line" + attribute("x1", centre(r)) + attribute("y1", 36) + attribute("x2", centre(r)) +
            attribute("y2", height() - sizes_.bottom + 8) + " stroke=\"#d5d5d5\" stroke-width=\"1\"/>\n";
  }

  // What a box says: what becomes of the messages, or of the operand.
  [[nodiscard]] std::string caption(rank_t rank, primitive const& p) const {
    std::string const target = chunk_label(p.target, 0, flow_.of().chunks);
    if (p.reduce) return "reduce " + target;
    bool const sends = foreign_count(p.to, rank, flow_.of().size) > 0;
    if (p.from.empty()) return sends ? "send" : p.store ? "copy " + target : "nothing";
    return p.from.count > 1 ? "gather" : p.store ? "receive " + target : sends ? "pass on" : "receive";
  }

  void draw_step(rank_t r, drawn_step const& step) {
    primitive const& p = step.what;
    bool const one_chunk = !p.from.empty() && (p.reduce || p.from.count == 1);
    char const* const line = one_chunk ? colour(p.target.first) : "#777777";
    double const x = centre(r) - sizes_.box_width / 2.0, y = box_top(step.row);
    auto const box = [&](char const* fill, char const* opacity) {
      svg_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", sizes_.box_width) +
              attribute("height", sizes_.box_height) + " rx=\"6\" fill=\"" + fill + "\" fill-opacity=\"" +
              opacity + "\" stroke=\"" + line + "\" stroke-width=\"" + (p.store ? "2.2" : "1.2") + "\"/>\n";
    };
    box("#ffffff", "1");
    if (one_chunk) box(line, p.reduce ? "0.16" : "0.05");
    point const middle{centre(r), y + (p.store ? 18.0 : 26.0)};
    text(middle, caption(r, p), "text-anchor=\"middle\" fill=\"#111111\"");
    if (p.store) {
      std::string where = p.target.where == place::output ? "store in output" : "store in scratch";
      text({centre(r), y + 33}, where, "text-anchor=\"middle\" font-size=\"10.5\" fill=\"#444444\"");
    }
  }

  // Arrows leave and arrive side by side, in the order of the ranks at their other ends.
  [[nodiscard]] point port(drawn_message const& m, bool sending) const {
    std::int32_t before = 0, all = 0;
    for (drawn_message const& other : flow_.messages()) {
      bool const same = sending ? other.sender == m.sender && other.send_step == m.send_step
                                : other.receiver == m.receiver && other.receive_step == m.receive_step;
      if (!same || other.receive_step < 0) continue;
      ++all;
      if (sending ? side(other, true) < side(m, true) : side(other, false) < side(m, false)) ++before;
    }
    double const share = (before + 1.0) / (all + 1.0);
    rank_t const rank = sending ? m.sender : m.receiver;
    double const x = centre(rank) + (share - 0.5) * sizes_.box_width;
    std::int32_t const row = flow_.step(rank, sending ? m.send_step : m.receive_step).row;
    return {x, box_top(row) + (sending ? sizes_.box_height : 0.0)};
  }

  // The rank at the other end, where the ring's edge is crossed as a neighbour beyond it.
  [[nodiscard]] rank_t side(drawn_message const& m, bool sending) const {
    rank_t const n = flow_.of().size;
    rank_t const from = sending ? m.sender : m.receiver, to = sending ? m.receiver : m.sender;
    if (!wraps(m)) return to;
    return from == 0 ? to - n : to + n;
  }

  [[nodiscard]] bool wraps(drawn_message const& m) const {
    rank_t const distance = m.sender > m.receiver ? m.sender - m.receiver : m.receiver - m.sender;
    return is_ring_ && distance == flow_.of().size - 1;
  }

  void draw_message(drawn_message const& m) {
    point const from = port(m, true), to = port(m, false);
    if (!wraps(m)) return draw_arrow(m, from, to, true);
    // Out at one edge and in again at the other.
    double const shift = (m.sender > m.receiver ? 1.0 : -1.0) * sizes_.column * flow_.of().size;
    draw_arrow(m, from, {to.x + shift, to.y}, true);
    draw_arrow(m, {from.x - shift, from.y}, to, false);
  }

  void draw_arrow(drawn_message const& m, point from, point to, bool labelled) {
    std::string const stroke = colour(m.first_chunk);
    svg_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
            attribute("y2", to.y - 1) + " stroke=\"" + stroke + "\" stroke-width=\"" +
            (m.pushed ? "2.6" : "1.5") + "\"" + (m.copied ? " stroke-dasharray=\"6 3\"" : "") +
            " marker-end=\"url(#head" + std::to_string((m.first_chunk % 8 + 8) % 8) + ")\"/>\n";
    if (!labelled || m.chunks.empty()) return;
    // Near the sender: in the middle, arrows cross.
    double const across = to.x > from.x ? to.x - from.x : from.x - to.x;
    double const label_at = across > 290 ? 70 / across : 0.24;
    point const at{from.x + (to.x - from.x) * label_at, from.y + (to.y - from.y) * label_at};
    std::string const& label = m.chunks;
    double const half = 5.0 + 3.4 * static_cast<double>(label.size());
    labels_ += "<rect" + attribute("x", at.x - half) + attribute("y", at.y - 8) +
               attribute("width", 2 * half) + " height=\"16\" rx=\"8\" fill=\"" + stroke + "\"/>\n<text" +
               attribute("x", at.x) + attribute("y", at.y + 4) +
               " text-anchor=\"middle\" font-size=\"11\" font-weight=\"bold\" fill=\"#ffffff\">" + label +
               "</text>\n";
  }

  void draw_legend() {
    std::string legend = "number on an arrow: the chunk it carries";
    if (pushes_) legend += "; thick: may be stored straight into the receiver's output";
    if (copies_) legend += "; dashed: sent as a copy";
    text({sizes_.left + 0.0, height() - 10}, legend, "font-size=\"11\" fill=\"#555555\"");
  }

  flow const& flow_;
  std::int32_t rows_;
  drawing_sizes sizes_{};
  bool is_ring_ = false, copies_ = false, pushes_ = false;
  std::string svg_, labels_;
};

}  // namespace detail

// An SVG document. `title` is its accessible name; nothing else depends on it.
template <schedule S>
[[nodiscard]] std::string render_svg(shape size, rank_t root = 0, std::string const& title = "schedule") {
  detail::flow const f(detail::erased<S>::of(size, root));
  return detail::svg_drawing(f).draw(title);
}

}  // namespace collx::inline abi_1
