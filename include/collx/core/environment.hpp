// SPDX-License-Identifier: Apache-2.0
// Numbers from environment variables, read strictly: a typo is an error that names the variable,
// never a silent default.
#pragma once

#include <cerrno>
#include <cstdlib>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::environment {

[[noreturn]] COLLX_COLD inline void refuse(char const* variable, char const* value, std::int64_t low,
                                           std::int64_t high) {
  throw_error(status::bad_argument,
              "environment variable %s is \"%.120s\"; set it to a whole number from %lld to %lld, "
              "or unset it",
              variable, value, static_cast<long long>(low), static_cast<long long>(high));
}

// The variable's value, or `absent` when it is not set. Throws error (bad_argument) for anything
// that is not a whole number from `low` to `high`.
[[nodiscard]] inline std::int64_t number(char const* variable, std::int64_t absent, std::int64_t low,
                                         std::int64_t high) {
  char const* const text = std::getenv(variable);
  if (text == nullptr) return absent;
  char* end = nullptr;
  errno = 0;
  long long const value = std::strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
    refuse(variable, text, low, high);
  return value;
}

}  // namespace collx::inline abi_1::environment
