// SPDX-License-Identifier: Apache-2.0
// Whether a program writes its input anew before each call, as far as that can be seen.
#include "collx/exec/input_history.hpp"

#include <array>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

using collx::exec::input_history;

namespace {

constexpr std::size_t bytes = input_history::bytes_min;

// Begins on a page, so that the next but seven has the same place.
struct alignas(4096) page {
  std::byte memory[4096]{};
};

// So often asked that it has words to compare.
void make_known(input_history& history, std::byte const* input, std::size_t how_many = bytes) {
  for (int i = 0; i < 2; ++i) CHECK_FALSE(history.is_rewritten(input, how_many));
}

}  // namespace

TEST_CASE("inputs: what is not written again is not said to be") {
  std::vector<page> const buffer(1);
  input_history history;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(history.is_rewritten(buffer[0].memory, bytes));
}

TEST_CASE("inputs: what is written before each call is, from the third on") {
  std::vector<page> buffer(1);
  input_history history;
  for (int i = 0; i < 10; ++i) {
    std::memset(buffer[0].memory, i, bytes);
    CHECK(history.is_rewritten(buffer[0].memory, bytes) == (i > 1));
  }
  CHECK_FALSE(history.is_rewritten(buffer[0].memory, bytes));  // not before this one
}

TEST_CASE("inputs: a word shows it in each of four places, from begin to end") {
  for (std::size_t const size : {bytes, bytes + 1, bytes + 3, std::size_t{3000}, sizeof(page)}) {
    CAPTURE(size);
    std::size_t const third = (size - 8) / 3;
    for (std::size_t const place : {std::size_t{0}, third, 2 * third, 3 * third}) {
      CAPTURE(place);
      std::vector<page> buffer(1);
      input_history history;
      make_known(history, buffer[0].memory, size);
      buffer[0].memory[place] = std::byte{1};
      CHECK(history.is_rewritten(buffer[0].memory, size));
    }
  }
}

TEST_CASE("inputs: eight buffers are known at a time, and of another length none") {
  std::vector<page> buffers(9);
  input_history history;
  for (std::size_t i = 0; i < 8; ++i) make_known(history, buffers[i].memory);
  for (std::size_t i = 0; i < 8; ++i) {
    buffers[i].memory[0] = std::byte{1};
    CHECK(history.is_rewritten(buffers[i].memory, bytes));
  }
  make_known(history, buffers[8].memory);
  buffers[0].memory[0] = std::byte{2};
  CHECK_FALSE(history.is_rewritten(buffers[0].memory, bytes));  // its place was taken
  make_known(history, buffers[1].memory);
  buffers[1].memory[0] = std::byte{2};
  CHECK_FALSE(history.is_rewritten(buffers[1].memory, 2 * bytes));
  buffers[1].memory[0] = std::byte{3};
  CHECK_FALSE(history.is_rewritten(buffers[1].memory, 2 * bytes));  // nothing was read before
  buffers[1].memory[0] = std::byte{4};
  CHECK(history.is_rewritten(buffers[1].memory, 2 * bytes));
}

// Nothing is read of a buffer that was not asked about just before: it may lie far away, or in no memory yet.
TEST_CASE("inputs: nothing is read at the first question") {
  input_history history;
  auto* const nowhere = reinterpret_cast<std::byte const*>(std::uintptr_t{4096});
  CHECK_FALSE(history.is_rewritten(nowhere, bytes));
}
