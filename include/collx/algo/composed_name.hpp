// SPDX-License-Identifier: Apache-2.0
// The name of an algorithm that is a template, such as knomial_tree_4: what it is made of is part of
// the name by which benches, tables and error messages know it.
#pragma once

#include <cstdint>

namespace collx::inline abi_1::algo::detail {

// Requires names of at most 95 characters, and numbers >= 0.
struct composed_name {
  char text[96]{};

  // "stem_number"
  constexpr composed_name(char const* stem, std::int32_t number) {
    char* at = put(put(text, stem), "_");
    std::int32_t place = 1;
    while (number / place >= 10) place *= 10;
    for (; place > 0; place /= 10) *at++ = static_cast<char>('0' + number / place % 10);
  }

  // "stem_part"
  constexpr composed_name(char const* stem, char const* part) { put(put(put(text, stem), "_"), part); }

  // "stem<first, second>"
  constexpr composed_name(char const* stem, char const* first, char const* second) {
    put(put(put(put(put(put(text, stem), "<"), first), ", "), second), ">");
  }

 private:
  static constexpr char* put(char* at, char const* word) {
    while (*word != 0) *at++ = *word++;
    return at;
  }
};

}  // namespace collx::inline abi_1::algo::detail
