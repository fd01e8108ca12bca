// SPDX-License-Identifier: Apache-2.0
// Tables of choices as data: what collx_tune measures and load.hpp reads. The same rules as types, for
// a table that is compiled in, are in fixed_table.hpp.
#pragma once

#include "collx/core/array.hpp"
#include "collx/tune/cost_model.hpp"

namespace collx::inline abi_1::tune {

// "For this collective, under this condition, that algorithm."
struct rule {
  word collective;
  word algorithm;
  condition when;
};

// The cost model's parameters for one kind of memory on one transport.
struct fitted_model {
  word transport;  // empty: any
  memory_kind memory = memory_kind::any;
  log_gp parameters;

  [[nodiscard]] constexpr bool holds(question const& q) const {
    return (transport.empty() || transport == *q.transport) &&
           (memory == memory_kind::any || memory == q.memory);
  }
};

// A whole table. `file` is where it came from, for messages.
struct tuning {
  array<rule> rules;
  array<fitted_model> models;
  array<char> file;

  [[nodiscard]] char const* origin() const { return file.size() == 0 ? "a table" : file.data(); }
};

}  // namespace collx::inline abi_1::tune
