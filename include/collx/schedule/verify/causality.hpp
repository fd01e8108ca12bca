// SPDX-License-Identifier: Apache-2.0
// Happens-before between steps: vector clocks, carried by messages. Only the data flow of the
// schedule counts; that an executor may also wait for credits is no promise to rely on.
#pragma once

#include "collx/schedule/verify/table.hpp"

namespace collx::inline abi_1::detail {

// What a message carries: the sender's clock (a shared row) and the number of steps the sender
// had begun, the sending one included.
struct stamp {
  std::int32_t row = 0;
  std::int32_t begun = 0;
};

// A clock says, per rank, how many of that rank's steps lie in the causal past. A rank's row
// changes only when it receives, so all messages sent in between share it, counted; row 0 is the
// clock of a rank that has received nothing.
class causality {
 public:
  constexpr explicit causality(rank_t size) : size_(size), begun_(size), row_of_(size), rows_(size) {
    users_.push(size + 1);
  }

  constexpr void begin(rank_t rank, std::int32_t step) { begun_[rank] = step + 1; }

  // Whether step `step` of `other` happened before the current step of `rank`, or is that step.
  [[nodiscard]] constexpr bool knows(rank_t rank, rank_t other, std::int32_t step) const {
    if (rank == other) return begun_[rank] > step;
    if (rows_[at(row_of_[rank], other)] > step) return true;
    if (!considers_) return false;
    return other == considered_sender_ ? considered_.begun > step : rows_[at(considered_.row, other)] > step;
  }

  // Until forget(), knows() also looks at a message that is not received yet: what is done with one
  // message of several may rely on that one, but not on the others having arrived.
  constexpr void consider(rank_t sender, stamp sent) {
    considers_ = true;
    considered_sender_ = sender;
    considered_ = sent;
  }
  constexpr void forget() { considers_ = false; }

  // `early`: the step may do more after it has sent this, which does not prove that it is over.
  [[nodiscard]] constexpr stamp send(rank_t rank, bool early) {
    ++users_[row_of_[rank]];
    return {row_of_[rank], begun_[rank] - early};
  }

  constexpr void receive(rank_t rank, rank_t sender, stamp sent) {
    own_row(rank);
    std::int64_t const mine = at(row_of_[rank], 0);
    if (sent.row != 0) {
      std::int64_t const theirs = at(sent.row, 0);
      for (rank_t r = 0; r < size_; ++r)
        if (rows_[mine + r] < rows_[theirs + r]) rows_[mine + r] = rows_[theirs + r];
    }
    if (rows_[mine + sender] < sent.begun) rows_[mine + sender] = sent.begun;
    release(sent.row);
  }

 private:
  [[nodiscard]] constexpr std::int64_t at(std::int32_t row, rank_t rank) const {
    return std::int64_t{row} * size_ + rank;
  }

  constexpr void own_row(rank_t rank) {
    std::int32_t const old = row_of_[rank];
    if (users_[old] == 1) return;
    std::int32_t const row = new_row();
    for (rank_t r = 0; r < size_; ++r) rows_[at(row, r)] = rows_[at(old, r)];
    row_of_[rank] = row;
    release(old);
  }

  constexpr std::int32_t new_row() {
    if (free_.size() > 0) {
      std::int32_t const row = free_[free_.size() - 1];
      free_.shrink(free_.size() - 1);
      users_[row] = 1;
      return row;
    }
    for (rank_t r = 0; r < size_; ++r) rows_.push(0);
    return users_.push(1);
  }

  constexpr void release(std::int32_t row) {
    if (--users_[row] == 0) free_.push(row);
  }

  rank_t size_;
  bool considers_ = false;
  rank_t considered_sender_ = no_rank;
  stamp considered_{};
  table<std::int32_t> begun_;
  table<std::int32_t> row_of_;
  table<std::int32_t> rows_;
  table<std::int32_t> users_;
  table<std::int32_t> free_;
};

}  // namespace collx::inline abi_1::detail
