// SPDX-License-Identifier: Apache-2.0
// The collectives whose blocks have counts of their own, on every transport: random, skewed and empty
// counts, all to one, several fragments; blocks packed, and with gaps in between in another order.
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/core/random.hpp"
#include "watched.hpp"

namespace {

using collx::blocks;
using collx::known_counts;
using collx::rank_t;
using counts_t = std::vector<std::size_t>;

enum class pattern { random, skewed, one_receiver, none, sparse, large, last };

// What rank s has for rank d: the same on every rank that asks.
std::size_t count_of(pattern how, rank_t size, rank_t s, rank_t d) {
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

std::uint32_t value(rank_t from, rank_t to, std::size_t i) {
  return static_cast<std::uint32_t>(from * 1'000'003 + to * 10'007) + static_cast<std::uint32_t>(i) * 7 + 1;
}

// A buffer of blocks: packed, or from the last to the first with gaps. Guards are everywhere else.
struct buffer {
  counts_t counts, offsets;
  std::vector<std::uint32_t> data;
  bool packed;

  buffer(counts_t each, bool in_order) : counts(std::move(each)), offsets(counts.size()), packed(in_order) {
    std::size_t end = 0;
    if (packed) {
      for (std::size_t r = 0; r < counts.size(); ++r) offsets[r] = end, end += counts[r];
    } else {
      for (std::size_t r = counts.size(); r-- > 0;) offsets[r] = end + 2, end += counts[r] + 5;
    }
    data.assign(end + 3, 0xdeadbeef);
  }
  template <class T>
  blocks<T> view() {
    if (packed) return {data, counts};
    return {data, counts, offsets};
  }
  template <class F>
  void fill(F const& f) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t i = 0; i < counts[r]; ++i) data[offsets[r] + i] = f(static_cast<rank_t>(r), i);
  }
};

void require_same(std::vector<std::uint32_t> const& is, std::vector<std::uint32_t> const& should,
                  std::string const& what) {
  for (std::size_t i = 0; i < should.size(); ++i)
    if (is[i] != should[i])
      throw std::runtime_error(what + ": element " + std::to_string(i) + " of " +
                               std::to_string(should.size()) + " is " + std::to_string(is[i]) +
                               ", should be " + std::to_string(should[i]));
}

template <class Transport>
struct one_rank {
  collx::communicator<Transport>& comm;
  pattern how;
  bool packed;

  rank_t me() const { return comm.rank(); }
  counts_t row(rank_t s) const {
    counts_t all;
    for (rank_t d = 0; d < comm.size(); ++d) all.push_back(count_of(how, comm.size(), s, d));
    return all;
  }
  counts_t column(rank_t d) const {
    counts_t all;
    for (rank_t s = 0; s < comm.size(); ++s) all.push_back(count_of(how, comm.size(), s, d));
    return all;
  }
  std::string describe(char const* algorithm, char const* name) const {
    return std::string(name) + "<" + algorithm + ">, rank " + std::to_string(me()) + " of " +
           std::to_string(comm.size()) + ", pattern " + std::to_string(static_cast<int>(how));
  }

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (!collx::supports<Schedule>(comm.size())) return;
    constexpr known_counts counts = collx::counts_for<Schedule>();
    namespace contract = collx::contract;
    if constexpr (counts == known_counts::equal) return;
    else if constexpr (std::is_same_v<Contract, contract::all_gather>) all_gather<Algorithm>();
    else if constexpr (std::is_same_v<Contract, contract::reduce_scatter>) reduce_scatter<Algorithm>();
    else if constexpr (counts != known_counts::pairwise) return;
    else if constexpr (std::is_same_v<Contract, contract::all_to_all>) all_to_all<Algorithm>();
    else if constexpr (std::is_same_v<Contract, contract::gather>) gather<Algorithm>();
    else if constexpr (std::is_same_v<Contract, contract::scatter>) scatter<Algorithm>();
  }

  template <class Algorithm>
  void all_to_all() {
    buffer in(row(me()), packed), out(column(me()), !packed);
    in.fill([&](rank_t d, std::size_t i) { return value(me(), d, i); });
    buffer should = out;
    should.fill([&](rank_t s, std::size_t i) { return value(s, me(), i); });
    collx::all_to_all_v<Algorithm>(comm, in.template view<std::uint32_t const>(),
                                   out.template view<std::uint32_t>());
    require_same(out.data, should.data, describe(Algorithm::name, "all_to_all_v"));
    auto request = collx::start::all_to_all_v<Algorithm>(comm, in.template view<std::uint32_t const>(),
                                                         out.template view<std::uint32_t>());
    request.wait();
    require_same(out.data, should.data, describe(Algorithm::name, "start::all_to_all_v"));
  }

  template <class Algorithm>
  void all_gather() {
    buffer out(row(0), packed);
    std::vector<std::uint32_t> in(out.counts[static_cast<std::size_t>(me())] + 1);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(me(), 0, i);
    buffer should = out;
    should.fill([&](rank_t r, std::size_t i) { return value(r, 0, i); });
    collx::all_gather_v<Algorithm>(comm, std::span(in).first(in.size() - 1),
                                   out.template view<std::uint32_t>());
    require_same(out.data, should.data, describe(Algorithm::name, "all_gather_v"));
    // In place: the own block is there already.
    buffer again(row(0), packed);
    std::size_t const at = again.offsets[static_cast<std::size_t>(me())];
    for (std::size_t i = 0; i + 1 < in.size(); ++i) again.data[at + i] = value(me(), 0, i);
    collx::all_gather_v<Algorithm>(comm, std::span(again.data).subspan(at, in.size() - 1),
                                   again.template view<std::uint32_t>());
    require_same(again.data, should.data, describe(Algorithm::name, "all_gather_v in place"));
  }

  template <class Algorithm>
  void reduce_scatter() {
    buffer in(row(0), packed);
    in.fill([&](rank_t d, std::size_t i) { return value(me(), d, i); });
    std::vector<std::uint32_t> out(in.counts[static_cast<std::size_t>(me())]), should(out.size());
    for (std::size_t i = 0; i < should.size(); ++i)
      for (rank_t s = 0; s < comm.size(); ++s) should[i] += value(s, me(), i);
    collx::reduce_scatter_v<Algorithm>(comm, in.template view<std::uint32_t const>(), out);
    require_same(out, should, describe(Algorithm::name, "reduce_scatter_v"));
  }

  template <class Algorithm>
  void gather() {
    for (rank_t const root : {0, comm.size() - 1}) {
      std::vector<std::uint32_t> in(count_of(how, comm.size(), me(), root));
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(me(), root, i);
      if (me() != root) {
        collx::gather_v<Algorithm>(comm, in, blocks<std::uint32_t>{}, root);
        continue;
      }
      buffer out(column(root), packed);
      buffer should = out;
      should.fill([&](rank_t s, std::size_t i) { return value(s, root, i); });
      collx::gather_v<Algorithm>(comm, in, out.template view<std::uint32_t>(), root);
      require_same(out.data, should.data, describe(Algorithm::name, "gather_v"));
    }
  }

  template <class Algorithm>
  void scatter() {
    for (rank_t const root : {0, comm.size() - 1}) {
      std::vector<std::uint32_t> out(count_of(how, comm.size(), root, me())), should(out.size());
      for (std::size_t i = 0; i < should.size(); ++i) should[i] = value(root, me(), i);
      if (me() == root) {
        buffer in(row(root), packed);
        in.fill([&](rank_t d, std::size_t i) { return value(root, d, i); });
        collx::scatter_v<Algorithm>(comm, in.template view<std::uint32_t const>(), out, root);
      } else {
        collx::scatter_v<Algorithm>(comm, blocks<std::uint32_t const>{}, out, root);
      }
      require_same(out, should, describe(Algorithm::name, "scatter_v"));
    }
  }
};

auto const every_pattern = [](auto& comm) {
  using transport = typename std::remove_reference_t<decltype(comm)>::transport_type;
  for (int how = 0; how < static_cast<int>(pattern::last); ++how)
    for (bool const packed : {true, false}) {
      one_rank<transport> all{comm, static_cast<pattern>(how), packed};
      collx::for_each_schedule<collx::algo::all, collx::contract::all>(all);
      collx::barrier(comm);
    }
};

// The name of the argument, and that nothing was sent: the next call works.
template <class Call>
void refuses(char const* what, Call const& call) {
  try {
    call();
  } catch (collx::error const& refused) {
    if (refused.code() != collx::status::bad_argument) throw;
    if (std::string(refused.what()).find(what) == std::string::npos)
      throw std::runtime_error(std::string("says \"") + refused.what() + "\" instead of " + what);
    return;
  }
  throw std::runtime_error(std::string("accepted: ") + what);
}

}  // namespace

TEST_CASE("uneven: every algorithm that takes uneven blocks, on threads") {
  for (rank_t size = 1; size <= 9; ++size)
    watched::on_threads(size, every_pattern, {.staging_bytes = 64 * 1024});
}

TEST_CASE("uneven: and on processes") {
  for (rank_t const size : {2, 3, 4, 8})
    for (int const code : watched::on_processes(size, every_pattern, {.staging_bytes = 64 * 1024}))
      CHECK(code == 0);
}

TEST_CASE("uneven: wrong arguments are named, and change nothing") {
  watched::on_threads(2, [](auto& comm) {
    std::vector<int> in(10), out(10);
    counts_t const fits{5, 5}, too_many{5, 6}, three{3, 3, 3}, huge{5, ~std::size_t{0}};
    counts_t const apart{0, 5}, overlapping{0, 4}, far{0, ~std::size_t{0} - 2};
    auto const call = [&](auto const& given, auto const& taken) { collx::all_to_all_v(comm, given, taken); };
    blocks<int const> const good_in{in, fits};
    refuses("the output needs a count", [&] { call(good_in, blocks<int>{out, three}); });
    refuses("behind the end of the output", [&] { call(good_in, blocks<int>{out, too_many}); });
    refuses("behind the end of the output", [&] { call(good_in, blocks<int>{out, huge}); });
    refuses("behind the end of the output", [&] { call(good_in, blocks<int>{out, fits, far}); });
    refuses("two blocks of the output overlap", [&] { call(good_in, blocks<int>{out, fits, overlapping}); });
    refuses("no in-place form", [&] { call(blocks<int const>{out, fits}, blocks<int>{out, fits}); });
    refuses("as many elements as it takes from itself", [&] {
      call(good_in, blocks<int>{out, comm.rank() == 0 ? counts_t{4, 5} : counts_t{5, 4}});
    });
    refuses("own block", [&] { collx::all_gather_v(comm, in, blocks<int>{out, fits}); });
    refuses("the root", [&] { collx::gather_v(comm, in, blocks<int>{out, fits}, 2); });
    call(good_in, blocks<int>{out, fits, apart});
  });
}

TEST_CASE("uneven: counts that disagree end in an error that names the peer and the bytes") {
  watched::on_threads(2, [](auto& comm) {
    std::vector<int> in(20), out(20);
    counts_t const mine = comm.rank() == 0 ? counts_t{2, 8} : counts_t{3, 2};
    counts_t const theirs = comm.rank() == 0 ? counts_t{2, 3} : counts_t{9, 2};  // rank 1 expects 9 of rank 0
    collx::status const outcome =
        collx::try_all_to_all_v(comm, blocks<int const>{in, mine}, blocks<int>{out, theirs});
    if (comm.rank() == 1) {
      if (outcome != collx::status::mismatch) throw std::runtime_error("no mismatch");
      if (comm.failure().peer != 0 || comm.failure().bytes != 36 || comm.failure().peer_bytes != 32)
        throw std::runtime_error("a wrong report");
    } else if (outcome != collx::status::ok && outcome != collx::status::aborted) {
      throw std::runtime_error("neither ok nor aborted");
    }
  });
}
