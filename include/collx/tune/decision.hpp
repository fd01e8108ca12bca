// SPDX-License-Identifier: Apache-2.0
// How the run-time choice is made: who is asked, in which order, and what came out of it. No template:
// algorithms are rows of a candidate table here.
//
//   1. code          tune::settings of the communicator, by name
//   2. a variable    COLLX_<COLLECTIVE>_ALGORITHM, COLLX_ALGORITHM
//   3. a table       of the communicator's settings, else that of COLLX_TUNING
//   4. the built-in table, where it was measured: on transports that map memory
//   5. the cost model
//
// What 1 and 2 name must be able to do it, or the call is refused. Rows of tables that cannot (too few
// ranks, a wrong order of combining) are passed over: a table serves many calls.
#pragma once

#include <initializer_list>

#include "collx/tune/candidate.hpp"
#include "collx/tune/settings.hpp"

namespace collx::inline abi_1::tune {

enum class source : std::uint8_t { call, code, variable, loaded_table, built_in_table, cost_model };

enum class refusal : std::uint8_t {
  none,
  settings_fault,  // the environment's settings do not make sense
  unknown_name,
  ranks,  // no schedule for so many, or it needs more credits than there are
  order,  // does not combine in rank order, and the operator is not commutative
  nothing_fits,
};

// What was chosen, and why. `index` counts in the candidate table, `row` in the table of rules.
struct decision {
  source from = source::cost_model;
  refusal why = refusal::none;
  int index = -1;
  int row = -1;
  word named{};                  // what 1, 2 or 3 said
  char const* origin = nullptr;  // the variable, or the table's file
};

// The first row of the built-in table that applies: its number, or -1.
struct built_in_row {
  int row = -1;
  word algorithm;
};

// The way between ranks of a group, or between groups: what it is called, and its model where no table has
// one.
struct level {
  word const* transport;
  bool is_mapped;
  log_gp default_model;
};

// One call, with all that can be chosen from.
struct selection {
  candidate const* candidates;
  int count;
  word collective;
  bool commutative;
  level near, far;
  built_in_row (*built_in)(question const&) noexcept;
  level_factors const* (*counted)(shape) noexcept;  // of each candidate; computed once per shape
};

namespace detail {

[[nodiscard]] inline int index_of(selection const& s, word const& name) noexcept {
  for (int i = 0; i < s.count; ++i)
    if (s.candidates[i].name == name) return i;
  return -1;
}

[[nodiscard]] inline refusal obstacle(selection const& s, int index, question const& q) noexcept {
  if (index < 0) return refusal::unknown_name;
  candidate const& c = s.candidates[index];
  if (!c.supports(q.ranks) || static_cast<std::uint64_t>(c.depth(q.ranks)) > q.credits) return refusal::ranks;
  return s.commutative || c.keeps_order ? refusal::none : refusal::order;
}

[[nodiscard]] inline bool by_name(selection const& s, question const& q, settings const& said, source from,
                                  decision& d) noexcept {
  settings::override const* const named = said.find(s.collective);
  if (named == nullptr) return false;
  int const index = index_of(s, named->algorithm);
  d = {from, obstacle(s, index, q), index, -1, named->algorithm, named->variable};
  return true;
}

[[nodiscard]] inline bool by_table(selection const& s, question const& q, tuning const& table,
                                   decision& d) noexcept {
  for (std::size_t row = 0; row < table.rules.size(); ++row) {
    rule const& r = table.rules[row];
    if (!(r.collective == s.collective) || !r.when.holds(q)) continue;
    int const index = index_of(s, r.algorithm);
    refusal const why = obstacle(s, index, q);
    if (why != refusal::none && why != refusal::unknown_name) continue;
    d = {source::loaded_table, why, index, static_cast<int>(row), r.algorithm, table.origin()};
    return true;
  }
  return false;
}

[[nodiscard]] inline bool by_built_in(selection const& s, question const& q, decision& d) noexcept {
  built_in_row const found = s.built_in(q);
  int const index = found.row < 0 ? -1 : index_of(s, found.algorithm);
  if (index < 0 || obstacle(s, index, q) != refusal::none) return false;
  d = {source::built_in_table, refusal::none, index, found.row, found.algorithm, nullptr};
  return true;
}

// A model of the call's transport goes before one of the transport that it uses on this level.
[[nodiscard]] inline log_gp model_for(level const& on, question const& q, settings const* own) noexcept {
  question of_level = q;
  of_level.transport = on.transport;
  for (settings const* const said : {own, &settings_of_environment()}) {
    if (said == nullptr) continue;
    for (question const* const asked : {&q, static_cast<question const*>(&of_level)})
      for (fitted_model const& model : said->table().models)
        if (model.holds(*asked)) return model.parameters;
  }
  return on.default_model;
}

}  // namespace detail

// What the cost model expects of each candidate of one call, in us. Models are looked for in tables, and
// counts by shape: once for a call, not for each of its candidates.
class estimates {
 public:
  estimates(selection const& s, question const& q, settings const* own) noexcept
      : estimates(s, q.with.all_near ? s.near : s.far, q, own) {}

  [[nodiscard]] double operator()(int index) const noexcept {
    return models_(counted_[index], bytes_, fragments_);
  }

 private:
  estimates(selection const& s, level const& far, question const& q, settings const* own) noexcept
      : models_{{detail::model_for(s.near, q, own), !s.near.is_mapped},
                {detail::model_for(far, q, own), !far.is_mapped}},
        counted_(s.counted(q.ranks)),
        bytes_(q.bytes),
        fragments_(q.fragments()) {}

  level_models models_;
  level_factors const* counted_;
  std::size_t bytes_;
  double fragments_;
};

// The candidate that the cost model expects to be fastest; of equals, the first.
[[nodiscard]] inline decision cheapest(selection const& s, question const& q, settings const* own) noexcept {
  decision best{.from = source::cost_model, .why = refusal::nothing_fits};
  double best_us = 0;
  estimates const expected_us(s, q, own);
  for (int i = 0; i < s.count; ++i) {
    if (detail::obstacle(s, i, q) != refusal::none) continue;
    double const us = expected_us(i);
    if (best.index >= 0 && us >= best_us) continue;
    best_us = us;
    best = {source::cost_model, refusal::none, i, -1, s.candidates[i].name, nullptr};
  }
  return best;
}

// `own`: the communicator's settings, or null.
[[nodiscard]] inline decision decide(selection const& s, question const& q, settings const* own) noexcept {
  decision d;
  if (own != nullptr && detail::by_name(s, q, *own, source::code, d)) return d;
  settings const& environment = settings_of_environment();
  if (environment.fault() != nullptr)
    return {.from = source::variable, .why = refusal::settings_fault, .origin = environment.fault()};
  if (detail::by_name(s, q, environment, source::variable, d)) return d;
  if (own != nullptr && detail::by_table(s, q, own->table(), d)) return d;
  if (detail::by_table(s, q, environment.table(), d)) return d;
  if (detail::by_built_in(s, q, d)) return d;
  return cheapest(s, q, own);
}

}  // namespace collx::inline abi_1::tune
