// SPDX-License-Identifier: Apache-2.0
// Graphs, and collectives on them with what must come of them: random graphs from seeds (several edges
// between two ranks, and of a rank to itself), rings, stars, everybody to everybody, nobody.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collx/collective/neighbour_all_gather.hpp"
#include "collx/collective/neighbour_all_to_all.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/settings.hpp"
#include "require.hpp"

namespace graphs {

using collx::blocks;
using collx::rank_t;
using collx::status;
using counts_t = std::vector<std::size_t>;

inline collx::transport::settings const small_staging{.staging_bytes = 64 * 1024};

struct edge {
  rank_t from, to;
};
using edges_t = std::vector<edge>;

enum class kind { random, ring, star, one_receiver, all_to_all, none, last };

inline edges_t make_edges(kind how, rank_t size, std::uint64_t seed) {
  edges_t all;
  collx::replayable_random random(seed);
  auto const any = [&] { return static_cast<rank_t>(random.below(static_cast<std::uint32_t>(size))); };
  switch (how) {
    case kind::random:
      for (std::uint32_t k = random.below(4 * static_cast<std::uint32_t>(size)); k > 0; --k)
        all.push_back({any(), any()});
      break;
    case kind::ring:
      for (rank_t r = 0; r < size; ++r) {
        all.push_back({r, (r + 1) % size});
        all.push_back({r, (r + size - 1) % size});
      }
      break;
    case kind::star:
      for (rank_t r = 0; r < size; ++r) {
        all.push_back({0, r});
        all.push_back({r, 0});
      }
      break;
    case kind::one_receiver:
      for (rank_t r = 0; r < size; ++r) all.push_back({r, size - 1});
      break;
    case kind::all_to_all:
      for (rank_t r = 0; r < size * size; ++r) all.push_back({r / size, r % size});
      break;
    case kind::none:
    case kind::last: break;
  }
  return all;
}

inline std::uint32_t value(std::size_t edge_number, std::size_t i) {
  return static_cast<std::uint32_t>(edge_number * 100'003 + i * 7 + 1);
}

// One rank's side of the calls: its edges by their number in the whole graph.
struct side {
  side(edges_t const& all, rank_t rank, std::size_t count) {
    collx::replayable_random random(count + 17);
    for (std::size_t e = 0; e < all.size(); ++e) {
      // The same on both ends of the edge.
      std::size_t const own = count == 0 ? 0 : random.below(static_cast<std::uint32_t>(2 * count));
      if (all[e].from == rank)
        outgoing.push_back(e), destinations.push_back(all[e].to), out_counts.push_back(own);
      if (all[e].to == rank) incoming.push_back(e), sources.push_back(all[e].from), in_counts.push_back(own);
    }
  }
  std::vector<std::size_t> outgoing, incoming;
  std::vector<rank_t> sources, destinations;
  counts_t out_counts, in_counts;
};

template <class Transport>
struct calls {
  collx::communicator<Transport>& comm;
  side const mine;
  collx::graph edges;
  std::size_t count;
  std::vector<std::uint32_t> in, out;

  calls(collx::communicator<Transport>& c, edges_t const& all, std::size_t n)
      : comm(c), mine(all, c.rank(), n), edges(c, mine.sources, mine.destinations), count(n) {}

  // The block of rank r in an all_gather is that of edge number r.
  auto gather() {
    in.resize(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = value(static_cast<std::size_t>(comm.rank()), i);
    out.assign(mine.sources.size() * count, 0);
    return collx::start::neighbour_all_gather(comm, edges, in, out);
  }
  void check_gather() const {
    for (std::size_t k = 0; k < mine.sources.size(); ++k)
      for (std::size_t i = 0; i < count; ++i)
        require(out[k * count + i] == value(static_cast<std::size_t>(mine.sources[k]), i), "all_gather");
  }

  auto to_all() {
    in.resize(mine.outgoing.size() * count);
    for (std::size_t k = 0; k < mine.outgoing.size(); ++k)
      for (std::size_t i = 0; i < count; ++i) in[k * count + i] = value(mine.outgoing[k], i);
    out.assign(mine.sources.size() * count, 0);
    return collx::start::neighbour_all_to_all(comm, edges, in, out);
  }
  void check_to_all() const {
    for (std::size_t k = 0; k < mine.incoming.size(); ++k)
      for (std::size_t i = 0; i < count; ++i)
        require(out[k * count + i] == value(mine.incoming[k], i), "all_to_all");
  }

  // The input packed, the output from the last block to the first with gaps.
  counts_t offsets;
  blocks<std::uint32_t const> packed_input() {
    in.clear();
    for (std::size_t k = 0; k < mine.outgoing.size(); ++k)
      for (std::size_t i = 0; i < mine.out_counts[k]; ++i) in.push_back(value(mine.outgoing[k], i));
    return {in, mine.out_counts};
  }
  blocks<std::uint32_t> scattered_output(counts_t const& counts) {
    offsets.assign(counts.size(), 0);
    std::size_t end = 1;
    for (std::size_t k = counts.size(); k-- > 0;) offsets[k] = end, end += counts[k] + 2;
    out.assign(end, 0xdead);
    return {out, counts, offsets};
  }
  auto to_all_v() {
    return collx::start::neighbour_all_to_all_v(comm, edges, packed_input(),
                                                scattered_output(mine.in_counts));
  }
  void check_to_all_v() const {
    std::size_t untouched = 0;
    for (std::uint32_t const each : out) untouched += each == 0xdead;
    require(untouched >= 1 + 2 * mine.incoming.size(), "all_to_all_v writes between blocks");
    for (std::size_t k = 0; k < mine.incoming.size(); ++k)
      for (std::size_t i = 0; i < mine.in_counts[k]; ++i)
        require(out[offsets[k] + i] == value(mine.incoming[k], i), "all_to_all_v");
  }

  // Of a persistent call.
  void check_twice(auto& to_all_v) {
    for (int turn = 0; turn < 2; ++turn) {
      std::fill(out.begin(), out.end(), 0xdead);
      to_all_v.start();
      to_all_v.wait();
      check_to_all_v();
    }
  }

  counts_t gathered;
  auto gather_v() {
    auto const count_of = [&](rank_t r) { return count + 3 * static_cast<std::size_t>(r); };
    in.resize(count_of(comm.rank()));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(static_cast<std::size_t>(comm.rank()), i);
    gathered.clear();
    for (rank_t const r : mine.sources) gathered.push_back(count_of(r));
    return collx::start::neighbour_all_gather_v(comm, edges, in, scattered_output(gathered));
  }
  void check_gather_v() const {
    for (std::size_t k = 0; k < mine.sources.size(); ++k)
      for (std::size_t i = 0; i < gathered[k]; ++i)
        require(out[offsets[k] + i] == value(static_cast<std::size_t>(mine.sources[k]), i), "all_gather_v");
  }
};

template <class F>
void for_each_graph(rank_t size, std::uint64_t seeds, F const& f) {
  for (int how = 0; how < static_cast<int>(kind::last); ++how)
    for (std::uint64_t seed = 1; seed <= (how == 0 ? seeds : 1); ++seed)
      for (std::size_t const count : {std::size_t{0}, std::size_t{1}, std::size_t{37}, std::size_t{6001}})
        f(make_edges(static_cast<kind>(how), size, seed), count);
}

inline constexpr auto every_graph = [](auto& comm) {
  using transport = typename std::remove_reference_t<decltype(comm)>::transport_type;
  for_each_graph(comm.size(), 8, [&](edges_t const& all, std::size_t count) {
    calls<transport> c(comm, all, count);
    c.gather().wait();
    c.check_gather();
    c.to_all().wait();
    c.check_to_all();
    c.to_all_v().wait();
    c.check_to_all_v();
    c.gather_v().wait();
    c.check_gather_v();
    // The blocking forms, and two requests on one graph at once.
    c.to_all().wait();
    std::fill(c.out.begin(), c.out.end(), 0);
    collx::neighbour_all_to_all(comm, c.edges, c.in, c.out);
    c.check_to_all();
    std::vector<std::uint32_t> again(c.out.size());
    auto first = collx::start::neighbour_all_to_all(comm, c.edges, c.in, again);
    std::fill(c.out.begin(), c.out.end(), 0);
    auto second = collx::start::neighbour_all_to_all<collx::automatic, collx::priority::urgent>(comm, c.edges,
                                                                                                c.in, c.out);
    second.wait();
    first.wait();
    c.check_to_all();
    require(again == c.out, "two at once");
    // Set up once, and started with what is in the buffers then.
    auto kept = collx::persistent::neighbour_all_to_all(comm, c.edges, c.in, again);
    auto kept_v = collx::persistent::neighbour_all_to_all_v(comm, c.edges, c.packed_input(),
                                                            c.scattered_output(c.mine.in_counts));
    collx::graph const moved = std::move(c.edges);  // they go on
    c.check_twice(kept_v);
    c.in.resize(c.mine.outgoing.size() * count);
    for (std::uint32_t const salt : {1u, 2u}) {
      for (std::size_t k = 0; k < c.in.size(); ++k)
        c.in[k] = value(c.mine.outgoing[k / count], k % count) + salt;
      kept.start();
      kept.wait();
      for (std::size_t k = 0; k < again.size(); ++k)
        require(again[k] == value(c.mine.incoming[k / count], k % count) + salt, "all_to_all, set up once");
    }
  });
};

}  // namespace graphs
