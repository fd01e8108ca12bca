// SPDX-License-Identifier: Apache-2.0
// The name of an algorithm that is a template over a number, such as knomial_tree_4: the number is
// part of the name by which benches, tables and error messages know it.
#pragma once

#include <cstdint>

namespace collx::inline abi_1::algo::detail {

struct numbered_name {
  char text[48]{};

  // "stem_number". Requires a stem of at most 36 characters and number >= 0.
  constexpr numbered_name(char const* stem, std::int32_t number) {
    int length = 0;
    while (*stem != 0) text[length++] = *stem++;
    text[length++] = '_';
    std::int32_t place = 1;
    while (number / place >= 10) place *= 10;
    for (; place > 0; place /= 10) text[length++] = static_cast<char>('0' + number / place % 10);
  }
};

}  // namespace collx::inline abi_1::algo::detail
