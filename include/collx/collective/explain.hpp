// SPDX-License-Identifier: Apache-2.0
// tune::explain: which algorithm a call would take, and why. Asks nobody else and sends nothing.
//
//   auto const why = tune::explain<contract::all_reduce>(comm, bytes);             as all_reduce(comm, ...)
//   auto const why = tune::explain<contract::all_reduce, selected>(comm, bytes);   as all_reduce<selected>
//   auto const why = tune::explain<contract::all_reduce, reproducible<level>, int>(comm, bytes);
//   std::puts(why.text());
//
// bytes: of one block: the vector, or where it is sharded what one rank holds of it. The further
// arguments are the operator (sum) and the kind of the buffers (private). Of the element type (float) only
// `reproducible` asks whether the operator is exact on it.
#pragma once

#include "collx/collective/forms.hpp"
#include "collx/tune/fixed_table.hpp"
#include "collx/tune/selector.hpp"

namespace collx::inline abi_1::tune {

struct explanation {
  char const* algorithm = "";  // empty: the call would be refused, and the text says why
  source from = source::call;
  int row = -1;                // in the table that decided, from 0; -1: in none, or a part of one did
  message words;

  // One sentence: the call, the algorithm, the reason.
  [[nodiscard]] char const* text() const noexcept { return words.text(); }
};

namespace detail {

// What the built-in table says, in the way of `automatic`.
template <class Contract, class Endpoint, bool Commutative>
void explain_automatic(question const& q, explanation& e) {
  e.from = source::built_in_table;
  e.row = with_table<Contract, Endpoint>(
      q.with, [&](auto rows) { return first_row<Contract, Commutative>(rows, q).row; });
  e.algorithm = choose<Contract, Endpoint, Commutative>(
      q.bytes, q.ranks.size, q.with, []<class Chosen>() -> char const* { return Chosen::name; });
  add_question(e.words, word(Contract::name), q);
  e.words.add("%s, by row %d of the built-in table", e.algorithm, e.row + 1);
}

template <class Contract, class Endpoint, bool Commutative, class Chooser>
void explain_chooser(settings const* own, question const& q, explanation& e) {
  decision const d = Chooser::template explain<Contract, Endpoint, Commutative>(own, q, e.words);
  e.from = d.from;
  e.row = d.row;
  e.algorithm = Chooser::template choose<Contract, Endpoint, Commutative>(
      own, q, []<class Chosen>() -> char const* { return Chosen::name; }, []() -> char const* { return ""; });
}

// What is chosen where the call requires a level.
template <class Contract, class Endpoint, bool Commutative, reproducibility Level, bool Exact>
void explain_reproducible(question const& q, explanation& e) {
  if constexpr (Exact || !Contract::from_all) {
    explain_automatic<Contract, Endpoint, Commutative>(q, e);
    e.words.add("; %s, so every algorithm gives the same bits",
                Contract::from_all ? "the operator is exact on these elements" : "nothing is combined");
  } else {
    e.from = source::built_in_table;
    e.algorithm = choose_reproducible<Contract, Endpoint, Commutative, Level, Exact>(
        q.bytes, q.ranks.size, q.with, []<class Chosen>() -> char const* { return Chosen::name; });
    constexpr char const* levels[] = {"none", "same_on_every_rank", "run_to_run", "any_transport",
                                      "any_size"};
    add_question(e.words, word(Contract::name), q);
    e.words.add("%s, by the rows of the built-in table%s whose algorithms are reproducible: %s", e.algorithm,
                Level >= reproducibility::any_transport ? " of all transports" : "",
                levels[static_cast<int>(Level)]);
  }
}

}  // namespace detail

template <class Contract, class Algorithm = default_algorithm, class T = float, class Transport,
          class Op = sum_t>
[[nodiscard]] explanation explain(communicator<Transport>& comm, std::size_t bytes, Op const& = {},
                                  memory_kind memory = memory_kind::unshared) {
  using endpoint = typename Transport::endpoint;
  constexpr bool commutative = is_commutative<Op>();
  auto& engine = comm.engine();
  // As calls ask (question_of()): some rank may have nothing, and of counts that only two ranks share none is
  // everybody's.
  if constexpr (collx::detail::is_uneven<Contract>) {
    memory = memory_kind::unshared;
    if (Contract::counts == known_counts::pairwise) bytes = 0;
  }
  shape const ranks = comm.standing().where.shape();
  question const q{bytes, ranks, &transport_of<endpoint>, memory, engine.endpoint().depth(),
                   engine.endpoint().staging_bytes(),
                   situation_of(engine.endpoint(), engine.said().buffers, ranks)};
  explanation e;
  if constexpr (std::is_same_v<Algorithm, automatic>) {
    detail::explain_automatic<Contract, endpoint, commutative>(q, e);
  } else if constexpr (collx::detail::is_reproducible<Algorithm>) {
    detail::explain_reproducible<Contract, endpoint, commutative, Algorithm::level, is_exact<Op, T>()>(q, e);
  } else if constexpr (chooser<Algorithm>) {
    detail::explain_chooser<Contract, endpoint, commutative, Algorithm>(engine.said().tuning, q, e);
  } else {
    e.algorithm = collx::detail::algorithm_name<Algorithm>();
    add_question(e.words, word(Contract::name), q);
    e.words.add("%s, named in the call", e.algorithm);
  }
  return e;
}

}  // namespace collx::inline abi_1::tune
