// SPDX-License-Identifier: Apache-2.0
// Which step of a schedule sends which step what, and when at the earliest: what a drawing shows.
// Matches by position and assumes nothing else of the schedule, so that wrong ones can be drawn too.
#pragma once

#include <string>
#include <vector>

#include "collx/schedule/verify/subject.hpp"

namespace collx::inline abi_1::detail {

// "3", "4-7" for a run, "0, 4, 8" or "6-7, 0-1, ..." for several, "" for no chunks.
[[nodiscard]] inline std::string chunk_label(std::int32_t first, std::int32_t count) {
  if (count <= 0) return "";
  std::string label = std::to_string(first);
  if (count > 1) label += "-" + std::to_string(first + count - 1);
  return label;
}

[[nodiscard]] inline std::string chunk_label(region const& r, std::int32_t k, std::int32_t chunks) {
  constexpr std::int32_t shown = 4;
  std::int32_t const first = r.first_for(k, chunks);
  if (r.is_one_run()) return chunk_label(first, r.count);
  std::string label;
  for (std::int32_t i = 0, runs = 0, length = 0; i < r.count; i += length) {
    if (runs++ == shown) return label + ", ...";
    std::int32_t const begin = r.chunk(first, i, chunks);
    length = 1;
    while (i + length < r.count && r.chunk(first, i + length, chunks) == begin + length) ++length;
    label += (i == 0 ? "" : ", ") + chunk_label(begin, length);
  }
  return label;
}

struct drawn_message {
  rank_t sender = 0;
  std::int32_t send_step = 0;
  rank_t receiver = 0;
  std::int32_t receive_step = -1;  // -1: nobody takes it
  std::int32_t first_chunk = 0;
  std::string chunks;
  bool copied = false;
  bool pushed = false;
};

struct drawn_step {
  primitive what{};
  std::int32_t row = 0;  // a step is one row below everything it waits for
};

class flow {
 public:
  explicit flow(subject const& s) : subject_(s), steps_(static_cast<std::size_t>(s.size)) {
    for (rank_t r = 0; r < s.size; ++r)
      for (std::int32_t i = 0, count = s.step_count(s.of(r)); i < count; ++i)
        steps_[static_cast<std::size_t>(r)].push_back({s.step(s.of(r), i), 0});
    for (rank_t r = 0; r < s.size; ++r) collect_sends(r);
    match();
    while (move_down()) {
    }
  }

  [[nodiscard]] subject const& of() const { return subject_; }
  [[nodiscard]] std::vector<drawn_message> const& messages() const { return messages_; }
  [[nodiscard]] std::vector<drawn_step> const& steps(rank_t rank) const {
    return steps_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] drawn_step const& step(rank_t rank, std::int32_t index) const {
    return steps(rank)[static_cast<std::size_t>(index)];
  }

  [[nodiscard]] std::int32_t row_count() const {
    std::int32_t count = 0;
    for (auto const& steps : steps_)
      for (drawn_step const& step : steps) count = step.row + 1 > count ? step.row + 1 : count;
    return count;
  }

 private:
  void collect_sends(rank_t r) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(steps(r).size()); ++i) {
      primitive const& p = step(r, i).what;
      region const& payload = p.from.empty() ? p.operand : p.target;
      for (std::int32_t k = 0; k < p.to.count; ++k) {
        rank_t const peer = p.to.member(k, subject_.size);
        if (peer == r || peer < 0 || peer >= subject_.size) continue;
        std::int32_t const part = p.from.empty() ? k : 0;
        messages_.push_back({r, i, peer, -1, payload.first_for(part, subject_.chunks),
                             chunk_label(payload, part, subject_.chunks), p.copy, p.push});
      }
    }
  }

  // The k-th message from a to b belongs to the k-th step of b that takes from a.
  void match() {
    for (rank_t r = 0; r < subject_.size; ++r)
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(steps(r).size()); ++i) {
        peer_set const& from = step(r, i).what.from;
        for (std::int32_t k = 0; k < from.count; ++k) take(from.member(k, subject_.size), r, i);
      }
  }

  void take(rank_t sender, rank_t receiver, std::int32_t index) {
    for (drawn_message& m : messages_)
      if (m.sender == sender && m.receiver == receiver && m.receive_step < 0) {
        m.receive_step = index;
        return;
      }
  }

  // Whether anything had to move. The number of rows is bounded, also where ranks wait in a circle.
  bool move_down() {
    bool moved = false;
    std::int32_t limit = 0;
    for (auto const& steps : steps_) limit += static_cast<std::int32_t>(steps.size());
    auto const below = [&](drawn_step& step, std::int32_t row) {
      if (step.row > row || row + 1 > limit) return;
      step.row = row + 1;
      moved = true;
    };
    for (auto& steps : steps_)
      for (std::size_t i = 1; i < steps.size(); ++i) below(steps[i], steps[i - 1].row);
    for (drawn_message const& m : messages_)
      if (m.receive_step >= 0)
        below(steps_[static_cast<std::size_t>(m.receiver)][static_cast<std::size_t>(m.receive_step)],
              step(m.sender, m.send_step).row);
    return moved;
  }

  subject subject_;
  std::vector<std::vector<drawn_step>> steps_;
  std::vector<drawn_message> messages_;
};

}  // namespace collx::inline abi_1::detail
