// SPDX-License-Identifier: Apache-2.0
// Calls of the collectives whose blocks have counts of their own, with what must come of them: random, skewed
// and empty counts, all to one, several fragments; blocks packed, and with gaps in between in another order.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/core/random.hpp"
#include "collx/schedule/type_list.hpp"

namespace uneven {

using collx::blocks;
using collx::known_counts;
using collx::rank_t;
using counts_t = std::vector<std::size_t>;
namespace contract = collx::contract;

enum class pattern { random, skewed, one_receiver, none, sparse, large, last };

// What rank s has for rank d: the same on every rank that asks.
inline std::size_t count_of(pattern how, rank_t size, rank_t s, rank_t d) {
  collx::replayable_random random(
      static_cast<std::uint64_t>(static_cast<int>(how) * 10000 + s * 100 + d + 1));
  switch (how) {
    case pattern::random: return random.below(200);
    case pattern::skewed: return s == d ? 3 : s == size - 1 ? 900 : 1;
    case pattern::one_receiver: return d == size / 2 ? 40 + static_cast<std::size_t>(s) : 0;
    case pattern::none: return 0;
    case pattern::sparse: return random.below(4) == 0 ? 1 + random.below(30) : 0;
    case pattern::large: return 5000 + random.below(9000);  // several fragments, not the same number for all
    case pattern::last: break;
  }
  return 0;
}

inline std::uint32_t value(rank_t from, rank_t to, std::size_t i) {
  return static_cast<std::uint32_t>(from * 1'000'003 + to * 10'007) + static_cast<std::uint32_t>(i) * 7 + 1;
}

// A buffer of blocks: packed, or from the last to the first with gaps. Guards are everywhere else.
struct buffer {
  counts_t counts, offsets;
  std::vector<std::uint32_t> data;
  bool packed = true;

  buffer() = default;
  buffer(counts_t each, bool in_order) : counts(std::move(each)), offsets(counts.size()), packed(in_order) {
    std::size_t end = 0;
    if (packed) {
      for (std::size_t r = 0; r < counts.size(); ++r) offsets[r] = end, end += counts[r];
    } else {
      for (std::size_t r = counts.size(); r-- > 0;) offsets[r] = end + 2, end += counts[r] + 5;
    }
    data.assign(end + 3, 0xdeadbeef);
  }
  // None where this rank has no blocks.
  template <class T>
  blocks<T> view() {
    if (counts.empty()) return {};
    if (packed) return {data, counts};
    return {data, counts, offsets};
  }
  std::span<std::uint32_t> block(rank_t r) {
    auto const at = static_cast<std::size_t>(r);
    return std::span(data).subspan(offsets[at], counts[at]);
  }
  template <class F>
  void fill(F const& f) {
    for (std::size_t r = 0; r < counts.size(); ++r) {
      std::uint32_t* const to = data.data() + offsets[r];
      for (std::size_t i = 0, n = counts[r]; i < n; ++i) to[i] = f(static_cast<rank_t>(r), i);
    }
  }
};

// One rank's buffers of one call, which stay where they are while it is in flight.
template <class Contract>
class call {
 public:
  static constexpr bool is_all_to_all = std::is_same_v<Contract, contract::all_to_all>;
  static constexpr bool is_all_gather = std::is_same_v<Contract, contract::all_gather>;
  static constexpr bool is_reduce_scatter = std::is_same_v<Contract, contract::reduce_scatter>;
  static constexpr bool is_gather = std::is_same_v<Contract, contract::gather>;
  static constexpr bool is_scatter = std::is_same_v<Contract, contract::scatter>;
  static_assert(is_all_to_all || is_all_gather || is_reduce_scatter || is_gather || is_scatter);

  // `in_place`: the side that has one block has it among those of the other, where there is such a side.
  call(collx::problem const& where, pattern how, bool packed, bool in_place)
      : me_(where.rank),
        size_(where.size),
        root_(where.root),
        how_(how),
        in_place_(in_place && (!Contract::rooted || me_ == root_)) {
    in_ = buffer(counts_in(), packed);
    out_ = buffer(counts_out(), is_all_to_all ? !packed : packed);
    in_.fill([&](rank_t d, std::size_t i) { return given(d, i); });
    if (in_place_ && takes_all) std::copy(in_.block(0).begin(), in_.block(0).end(), out_.block(me_).begin());
    before_ = should_ = target();
    if (in_place_ && !takes_all) {
      for (std::size_t i = 0; i < should_.block(me_).size(); ++i) should_.block(me_)[i] = result(me_, i);
    } else {
      should_.fill([&](rank_t r, std::size_t i) { return result(r, i); });
    }
  }
  call(call const&) = delete;

  // Calls the collective in the form `Form`, and returns what that returns.
  template <class Form>
  auto perform(auto& comm) {
    auto const from = in_.template view<std::uint32_t const>();
    auto const to = out_.template view<std::uint32_t>();
    if constexpr (is_all_to_all) {
      return Form::all_to_all_v(comm, from, to);
    } else if constexpr (takes_all) {
      auto const own = in_place_ ? out_.block(me_) : in_.block(0);
      if constexpr (is_gather) return Form::gather_v(comm, own, to, root_);
      else return Form::all_gather_v(comm, own, to);
    } else {
      auto const own = in_place_ ? in_.block(me_) : out_.block(0);
      if constexpr (is_scatter) return Form::scatter_v(comm, from, own, root_);
      else return Form::reduce_scatter_v(comm, from, own);
    }
  }

  // As it was before the call.
  void restore() { target() = before_; }

  void check(char const* algorithm, char const* form) const {
    std::vector<std::uint32_t> const& is = const_cast<call*>(this)->target().data;
    if (is == should_.data) return;
    for (std::size_t i = 0; i < is.size(); ++i)
      if (is[i] != should_.data[i])
        throw std::runtime_error(std::string(form) + ": " + Contract::name + "_v<" + algorithm + ">, rank " +
                                 std::to_string(me_) + " of " + std::to_string(size_) + ", pattern " +
                                 std::to_string(static_cast<int>(how_)) + (in_place_ ? ", in place" : "") +
                                 ": element " + std::to_string(i) + " of " + std::to_string(is.size()) +
                                 " is " + std::to_string(is[i]) + ", should be " +
                                 std::to_string(should_.data[i]));
  }

 private:
  static constexpr bool takes_all = is_all_to_all || is_all_gather || is_gather;

  std::size_t count(rank_t s, rank_t d) const { return count_of(how_, size_, s, d); }
  template <class F>
  counts_t counts(F const& of) const {
    counts_t all;
    for (rank_t r = 0; r < size_; ++r) all.push_back(of(r));
    return all;
  }
  counts_t counts_in() const {
    if constexpr (is_all_to_all) return counts([&](rank_t d) { return count(me_, d); });
    else if constexpr (is_reduce_scatter) return counts([&](rank_t d) { return count(0, d); });
    else if constexpr (is_all_gather) return {count(0, me_)};
    else if constexpr (is_gather) return {count(me_, root_)};
    else return me_ == root_ ? counts([&](rank_t d) { return count(root_, d); }) : counts_t{};
  }
  counts_t counts_out() const {
    if constexpr (is_all_to_all) return counts([&](rank_t s) { return count(s, me_); });
    else if constexpr (is_reduce_scatter) return {count(0, me_)};
    else if constexpr (is_all_gather) return counts([&](rank_t s) { return count(0, s); });
    else if constexpr (is_scatter) return {count(root_, me_)};
    else return me_ == root_ ? counts([&](rank_t s) { return count(s, root_); }) : counts_t{};
  }
  std::uint32_t given(rank_t block, std::size_t i) const {
    if constexpr (is_all_gather) return value(me_, 0, i);
    else if constexpr (is_gather) return value(me_, root_, i);
    else return value(me_, block, i);
  }
  std::uint32_t result(rank_t block, std::size_t i) const {
    if constexpr (is_all_to_all) return value(block, me_, i);
    else if constexpr (is_all_gather) return value(block, 0, i);
    else if constexpr (is_gather) return value(block, root_, i);
    else if constexpr (is_scatter) return value(root_, me_, i);
    std::uint32_t sum = 0;
    for (rank_t s = 0; s < size_; ++s) sum += value(s, me_, i);
    return sum;
  }
  buffer& target() { return in_place_ && !takes_all ? in_ : out_; }

  rank_t me_, size_, root_;
  pattern how_;
  bool in_place_;
  buffer in_, out_;  // on the side that has one block, of that only
  buffer before_, should_;
};

#define FORMS_OF_UNEVEN(form, prefix)                                                                  \
  template <class Algorithm>                                                                           \
  struct form {                                                                                        \
    static auto all_to_all_v(auto&... with) { return collx::prefix all_to_all_v<Algorithm>(with...); } \
    static auto all_gather_v(auto&... with) { return collx::prefix all_gather_v<Algorithm>(with...); } \
    static auto reduce_scatter_v(auto&... with) {                                                      \
      return collx::prefix reduce_scatter_v<Algorithm>(with...);                                       \
    }                                                                                                  \
    static auto gather_v(auto&... with) { return collx::prefix gather_v<Algorithm>(with...); }         \
    static auto scatter_v(auto&... with) { return collx::prefix scatter_v<Algorithm>(with...); }       \
  }
FORMS_OF_UNEVEN(blocking, );
FORMS_OF_UNEVEN(started, start::);
FORMS_OF_UNEVEN(repeated, persistent::);
#undef FORMS_OF_UNEVEN

// Whether Schedule runs the _v form of its collective Contract.
template <class Contract, class Schedule>
constexpr bool has_form() {
  constexpr known_counts counts = collx::counts_for<Schedule>();
  if (counts == known_counts::equal) return false;
  if (std::is_same_v<Contract, contract::all_gather> || std::is_same_v<Contract, contract::reduce_scatter>)
    return true;
  return counts == known_counts::pairwise &&
         (std::is_same_v<Contract, contract::all_to_all> || std::is_same_v<Contract, contract::gather> ||
          std::is_same_v<Contract, contract::scatter>);
}

// Calls f(where, packed, in place) for everything a call of this contract can be apart from its counts.
template <class Contract, class F>
void for_each_shape(rank_t rank, rank_t size, F const& f) {
  for (rank_t const root : {0, size - 1})
    for (bool const packed : {true, false})
      for (bool const in_place : {false, true}) {
        if (root != 0 && !Contract::rooted) continue;
        if (in_place && call<Contract>::is_all_to_all) continue;
        f(collx::problem{rank, size, root}, packed, in_place);
      }
}

// One rank's walk over all algorithms, in every form.
template <class Transport>
struct walk {
  collx::communicator<Transport>& comm;
  pattern how;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if constexpr (has_form<Contract, Schedule>()) {
      if (!collx::supports<Schedule>(comm.size())) return;
      for_each_shape<Contract>(comm.rank(), comm.size(),
                               [&](collx::problem const& where, bool packed, bool in_place) {
                                 call<Contract> mine(where, how, packed, in_place);
                                 in_every_form<Algorithm>(mine);
                               });
    }
  }

  template <class Algorithm, class Contract>
  void in_every_form(call<Contract>& mine) {
    mine.template perform<blocking<Algorithm>>(comm);
    mine.check(Algorithm::name, "blocking");
    mine.restore();
    mine.template perform<started<Algorithm>>(comm).wait();
    mine.check(Algorithm::name, "started");
    auto again = mine.template perform<repeated<Algorithm>>(comm);
    for (int round = 0; round < 2; ++round) {
      mine.restore();
      again.start();
      again.wait();
      mine.check(Algorithm::name, "set up once");
    }
  }
};

// All patterns with these algorithms, as the main function of a rank.
template <class Algorithms>
inline constexpr auto every_pattern = [](auto& comm) {
  using transport = typename std::remove_reference_t<decltype(comm)>::transport_type;
  for (int how = 0; how < static_cast<int>(pattern::last); ++how) {
    // Several fragments of many pairs of ranks take long, and show what those of few do.
    if (static_cast<pattern>(how) == pattern::large && comm.size() > 4) continue;
    collx::for_each_schedule<Algorithms, contract::all>(walk<transport>{comm, static_cast<pattern>(how)});
    collx::barrier(comm);
  }
};

}  // namespace uneven
