// SPDX-License-Identifier: Apache-2.0
// A schedule as text: one line per rank and step.
#pragma once

#include <string>

#include "collx/schedule/render/flow.hpp"

namespace collx::inline abi_1 {
namespace detail {

[[nodiscard]] inline std::string place_name(place where) {
  return where == place::input ? "input" : where == place::output ? "output" : "scratch";
}

[[nodiscard]] inline std::string run_name(region const& r, std::int32_t k, std::int32_t chunks) {
  return place_name(r.where) + "[" + chunk_label(r.first_for(k, chunks), r.count) + "]";
}

// Joins the words for the members of a set; of large sets, the first and the last.
template <class Word>
[[nodiscard]] std::string list_members(peer_set const& set, Word&& word) {
  constexpr std::int32_t shown = 8;
  std::string list;
  for (std::int32_t k = 0; k < set.count; ++k) {
    if (set.count > shown && k == shown - 2) {
      list += ", ...";
      k = set.count - 1;
    }
    std::string const next = word(k);
    if (!next.empty()) list += (list.empty() ? "" : ", ") + next;
  }
  return list;
}

[[nodiscard]] inline std::string describe_sends(subject const& s, rank_t rank, primitive const& p) {
  bool const own_runs = p.from.empty() && p.operand.per_peer != 0;
  return list_members(p.to, [&](std::int32_t k) -> std::string {
    rank_t const peer = p.to.member(k, s.size);
    if (peer == rank) return "";
    return (own_runs ? run_name(p.operand, k, s.chunks) + " to " : "") + std::to_string(peer);
  });
}

[[nodiscard]] inline std::string describe_receives(subject const& s, rank_t rank, primitive const& p) {
  std::string const operand = run_name(p.operand, 0, s.chunks);
  return list_members(p.from, [&](std::int32_t k) -> std::string {
    rank_t const peer = p.from.member(k, s.size);
    std::string const source = peer == rank ? operand : std::to_string(peer);
    if (p.reduce || !p.store) return source;
    return (peer == rank ? "copy " : "") + source + " to " + run_name(p.target, k, s.chunks);
  });
}

[[nodiscard]] inline std::string describe_step(subject const& s, rank_t rank, primitive const& p) {
  std::string const target = run_name(p.target, 0, s.chunks);
  std::string const sends = describe_sends(s, rank, p);
  std::string line;
  if (p.from.empty()) {
    std::string const operand = run_name(p.operand, 0, s.chunks);
    if (p.store) line = "copy " + operand + " to " + target;
    if (!sends.empty()) line += (line.empty() ? "send " : ", send ") + (p.operand.per_peer != 0 ? sends : operand + " to " + sends);
    if (line.empty()) line = "nothing";
  } else {
    line = (p.reduce ? "reduce " : "take from ") + describe_receives(s, rank, p);
    if (p.reduce && p.store) line += ", store to " + target;
    if (!sends.empty()) line += std::string(p.reduce && !p.store ? ", send " + chunk_label(p.target.first, p.target.count) : ", send") + " to " + sends;
  }
  if (p.copy) line += " (copied)";
  if (p.push) line += " (pushed)";
  if (p.complete) line += " (complete)";
  return line;
}

[[nodiscard]] inline std::string render_text(subject const& s) {
  std::string text;
  for (rank_t r = 0; r < s.size; ++r) {
    text += "rank " + std::to_string(r) + "\n";
    for (std::int32_t i = 0, count = s.step_count(s.of(r)); i < count; ++i)
      text += "  step " + std::to_string(i) + ": " + describe_step(s, r, s.step(s.of(r), i)) + "\n";
  }
  return text;
}

}  // namespace detail

// What every rank does, in order. A number alone is a rank; place[n] is a chunk of that buffer.
template <schedule S>
[[nodiscard]] std::string render_text(rank_t size, rank_t root = 0) {
  return detail::render_text(detail::erased<S>::of(size, root));
}

}  // namespace collx::inline abi_1
