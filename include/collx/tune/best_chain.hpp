// SPDX-License-Identifier: Apache-2.0
// `best_chain`: an algorithm argument that takes, in every call, the pipelined chain with as many chunks as
// its law wants (algo/pipelined_chain.hpp), for what a message and a byte cost by the cost model: that of a
// table (collx_tune fits one) or the built-in one. For broadcast, reduce, scan and exclusive_scan of large
// vectors.
//
//   broadcast<collx::best_chain>(comm, values, root);
//   broadcast<collx::tune::best_chain_of<1, 4, 16>>(comm, values, root);    these counts, and no others
//
// A chain per count is compiled. A vector longer than half the staging memory moves in fragments, which
// follow each other along the chain as chunks do: a fragment is cut in its share of the chunks.
#pragma once

#include "collx/algo/pipelined_chain.hpp"
#include "collx/tune/report.hpp"
#include "collx/tune/transport_levels.hpp"

namespace collx::inline abi_1 {
namespace tune {

// The chunks that the law wants of one fragment. `model`: of the way from rank to rank.
[[nodiscard]] constexpr std::int32_t chunks_of_fragment(question const& q, log_gp const& model) {
  if (!(model.gap_us_per_byte > 0)) return 1;
  std::int32_t const all = algo::best_chunk_count(static_cast<double>(q.bytes), model.round_us,
                                                  1 / model.gap_us_per_byte, q.ranks.size);
  double const each = all / q.fragments();
  return each > 1 ? static_cast<std::int32_t>(each) : 1;
}

// The place in a list of counts, in ascending order, of the one that a chain loses least with in place of
// `wanted`: the time is made of a term that grows as the count and one that falls as it, so ratios decide.
template <std::size_t N>
[[nodiscard]] constexpr int nearest_count(std::int32_t const (&counts)[N], std::int32_t wanted) {
  std::size_t at = 0;
  while (at + 1 < N && std::int64_t{counts[at]} * counts[at + 1] <= std::int64_t{wanted} * wanted) ++at;
  return static_cast<int>(at);
}

template <std::int32_t... Counts>
struct best_chain_of {
  static_assert(sizeof...(Counts) > 0, "collx: best_chain_of needs a count of chunks to choose from");
  static constexpr char const* name = "best_chain";
  static constexpr bool chooses_algorithms = true;

  template <class Contract, class Endpoint, bool Commutative, class F, class Otherwise>
  [[nodiscard]] static auto choose(settings const* own, question const& q, F const& f,
                                   Otherwise const& otherwise) {
    static_assert(offers<algo::pipelined_chain<1>, Contract>(),
                  "collx: a chain offers no schedule for this collective; docs/algorithms.md lists which do");
    // A rank whose variables are wrong would choose by another table than its peers.
    int const at = settings_of_environment().fault() != nullptr ? -1 : index<Endpoint>(own, q);
    return with_number(type_list<algo::pipelined_chain<Counts>...>{}, at, f, otherwise);
  }

  // Chains run on any number of ranks, in rank order.
  template <class Contract, class Endpoint, bool Commutative>
  [[noreturn]] static void refuse(settings const*, question const&) {
    throw error(status::bad_argument, settings_of_environment().fault());
  }

  template <class Contract, class Endpoint, bool Commutative>
  static decision explain(settings const* own, question const& q, message& text) {
    if (char const* const fault = settings_of_environment().fault()) {
      text.add("%s", fault);
      return {.from = source::variable, .why = refusal::settings_fault, .origin = fault};
    }
    decision d{.from = source::cost_model, .index = index<Endpoint>(own, q)};
    add_question(text, word(Contract::name), q);
    text.add("a chain of %d chunks per fragment, by its law, which wants %d", counts[d.index],
             chunks_of_fragment(q, model<Endpoint>(own, q)));
    return d;
  }

 private:
  static constexpr std::int32_t counts[] = {Counts...};

  template <class Endpoint>
  [[nodiscard]] static int index(settings const* own, question const& q) {
    return nearest_count(counts, chunks_of_fragment(q, model<Endpoint>(own, q)));
  }

  // A chain is as fast as its slowest hop.
  template <class Endpoint>
  [[nodiscard]] static log_gp model(settings const* own, question const& q) {
    return detail::model_for(q.with.all_near ? near_level<Endpoint>() : far_level<Endpoint>(), q, own);
  }
};

}  // namespace tune

using best_chain = tune::best_chain_of<1, 2, 4, 8, 16, 32>;

}  // namespace collx::inline abi_1
