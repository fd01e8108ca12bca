// SPDX-License-Identifier: Apache-2.0
// A decision in words: why an algorithm was taken, or why none could be.
#pragma once

#include "collx/tune/decision.hpp"

namespace collx::inline abi_1::tune {

namespace detail {

COLLX_COLD inline void add_valid_names(message& text, selection const& s, question const& q) {
  text.add("; say one of:");
  for (int i = 0; i < s.count; ++i)
    if (obstacle(s, i, q) == refusal::none) text.add(" %s", s.candidates[i].name.text);
}

COLLX_COLD inline void add_origin(message& text, decision const& d) {
  if (d.from == source::code) text.add("the code (tune::settings of the communicator)");
  else if (d.from == source::variable) text.add("environment variable %s", d.origin);
  else if (d.from == source::loaded_table) text.add("rule %d of %s", d.row + 1, d.origin);
  else if (d.from == source::built_in_table) text.add("row %d of the built-in table", d.row + 1);
  else text.add("the cost model");
}

COLLX_COLD inline void add_refusal(message& text, selection const& s, question const& q, decision const& d) {
  if (d.why == refusal::settings_fault) return text.add("%s", d.origin);
  text.add("%s: ", s.collective.text);
  if (d.why == refusal::nothing_fits) {
    text.add(
        "of the algorithms that may be chosen, none runs on %d ranks with this operator; give "
        "tune::selected_from a longer list",
        q.ranks.size);
    return;
  }
  add_origin(text, d);
  text.add(" names '%s', which ", d.named.text);
  if (d.why == refusal::unknown_name) text.add("is no algorithm of this collective here");
  if (d.why == refusal::ranks) text.add("has no schedule for %d ranks here", q.ranks.size);
  if (d.why == refusal::order)
    text.add("does not combine in rank order, and this operator is not commutative");
  add_valid_names(text, s, q);
}

COLLX_COLD inline void add_estimates(message& text, selection const& s, question const& q,
                                     settings const* own) {
  text.add(", which expects");
  estimates const expected_us(s, q, own);
  for (int i = 0, shown = 0; i < s.count; ++i)
    if (obstacle(s, i, q) == refusal::none)
      text.add("%s %s %.3g us", shown++ == 0 ? "" : ",", s.candidates[i].name.text, expected_us(i));
}

}  // namespace detail

[[noreturn]] COLLX_COLD inline void throw_refusal(selection const& s, question const& q,
                                                  settings const* own) {
  message text;
  detail::add_refusal(text, s, q, decide(s, q, own));
  throw error(status::bad_argument, text.text());
}

// "all_reduce of 4096 bytes on 2 ranks over shm, private memory: ring, by ..."
COLLX_COLD inline void add_question(message& text, word const& collective, question const& q) {
  text.add("%s of %zu bytes on %d ranks", collective.text, q.bytes, q.ranks.size);
  if (q.ranks.inner > 1) text.add(" in groups of %d", q.ranks.inner);
  text.add(" over %s, %s memory: ", q.transport->text, name(q.memory));
}

COLLX_COLD inline void describe(message& text, selection const& s, question const& q, settings const* own,
                                decision const& d) {
  if (d.why != refusal::none) return detail::add_refusal(text, s, q, d);
  add_question(text, s.collective, q);
  text.add("%s, by ", s.candidates[d.index].name.text);
  detail::add_origin(text, d);
  if (d.from == source::cost_model) detail::add_estimates(text, s, q, own);
}

}  // namespace collx::inline abi_1::tune
