// SPDX-License-Identifier: Apache-2.0
// What ranks check that run as threads or processes, where doctest's macros do not reach.
#pragma once

#include <stdexcept>
#include <string>

// Two: of every element some ask, and a text would be made of `what` each time.
inline void require(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(what);
}
inline void require(bool holds, std::string const& what) {
  if (!holds) throw std::runtime_error(what);
}
