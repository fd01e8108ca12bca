// SPDX-License-Identifier: Apache-2.0
// A schedule as text: one line per rank and step.
#pragma once

#include <string>
#include <utility>

#include "collx/schedule/render/flow.hpp"

namespace collx::inline abi_1 {
namespace detail {

[[nodiscard]] inline std::string place_name(place where) {
  return where == place::input ? "input" : where == place::output ? "output" : "scratch";
}

[[nodiscard]] inline std::string run_name(region const& r, std::int32_t k, std::int32_t chunks) {
  if (r.count == 0) return "nothing";
  return place_name(r.where) + "[" + chunk_label(r, k, chunks) + "]";
}

// Joins the words for the members of a set; of large sets, the first ones and the last.
template <class Word>
[[nodiscard]] std::string list_members(peer_set const& set, char const* between, Word&& word) {
  constexpr std::int32_t shown = 8;
  std::string list;
  for (std::int32_t k = 0; k < set.count; ++k) {
    if (set.count > shown && k == shown - 2) {
      list += std::string(between) + "...";
      k = set.count - 1;
    }
    std::string const next = word(k);
    if (!next.empty()) list += (list.empty() ? "" : between) + next;
  }
  return list;
}

[[nodiscard]] inline std::string describe_sends(subject const& s, rank_t rank, primitive const& p) {
  bool const own_runs = p.from.empty() && p.operand.per_peer != 0;
  return list_members(p.to, ", ", [&](std::int32_t k) -> std::string {
    rank_t const peer = p.to.member(k, s.size);
    if (peer == rank) return "";
    return (own_runs ? run_name(p.operand, k, s.chunks) + " to " : "") + std::to_string(peer);
  });
}

[[nodiscard]] inline std::string describe_operands(subject const& s, rank_t rank, primitive const& p) {
  return list_members(p.from, " + ", [&](std::int32_t k) {
    rank_t const peer = p.from.member(k, s.size);
    return peer == rank ? run_name(p.operand, 0, s.chunks) : "rank " + std::to_string(peer);
  });
}

[[nodiscard]] inline std::string describe_messages(subject const& s, rank_t rank, primitive const& p) {
  return list_members(p.from, ", ", [&](std::int32_t k) {
    rank_t const peer = p.from.member(k, s.size);
    std::string const source =
        peer == rank ? "own " + run_name(p.operand, 0, s.chunks) : std::to_string(peer);
    std::string const chunks =
        p.target.count == 0 ? "nothing" : "[" + chunk_label(p.target, k, s.chunks) + "]";
    return (p.store ? run_name(p.target, k, s.chunks) : chunks) + " from " + source;
  });
}

// The verbs of a step, without its sends.
[[nodiscard]] inline std::string describe_result(subject const& s, rank_t rank, primitive const& p) {
  std::string const target = run_name(p.target, 0, s.chunks);
  if (p.reduce) return "reduce " + describe_operands(s, rank, p) + (p.store ? ", store in " + target : "");
  if (!p.from.empty()) return "take " + describe_messages(s, rank, p);
  return p.store ? "copy " + run_name(p.operand, 0, s.chunks) + " to " + target : "";
}

[[nodiscard]] inline std::string describe_step(subject const& s, rank_t rank, primitive const& p) {
  std::string line = describe_result(s, rank, p);
  if (std::string const sends = describe_sends(s, rank, p); !sends.empty()) {
    line += line.empty() ? "send " : ", send ";
    if (p.from.empty() && p.operand.per_peer == 0) line += run_name(p.operand, 0, s.chunks) + " ";
    if (p.reduce) line += "[" + chunk_label(p.target, 0, s.chunks) + "] ";
    line += (p.from.empty() && p.operand.per_peer != 0 ? ""
             : p.from.empty() || p.reduce              ? "to "
                                                       : "on to ") +
            sends;
  }
  if (line.empty()) line = "nothing";
  for (auto const& [flag, word] :
       {std::pair{p.complete, "complete"}, {p.copy, "as a copy"}, {p.push, "pushed"}})
    if (flag) line += std::string("; ") + word;
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

// What every rank does, in order. [n] is chunk n, output[n] is chunk n in the output.
template <schedule S>
[[nodiscard]] std::string render_text(shape size, rank_t root = 0) {
  return detail::render_text(detail::erased<S>::of(size, root));
}

}  // namespace collx::inline abi_1
