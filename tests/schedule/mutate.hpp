// SPDX-License-Identifier: Apache-2.0
// Schedules with one field of one step changed: is the verifier strict enough to notice?
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "collx/schedule/verify.hpp"

namespace mutate {

using namespace collx;

// One way to change a step.
struct change {
  char const* name;
  void (*apply)(primitive&);
};

inline constexpr change changes[] = {
    {"from.first+1", [](primitive& p) { ++p.from.first; }},
    {"from.first-1", [](primitive& p) { --p.from.first; }},
    {"from.stride+1", [](primitive& p) { ++p.from.stride; }},
    {"from.stride negated", [](primitive& p) { p.from.stride = -p.from.stride; }},
    {"from.count+1", [](primitive& p) { ++p.from.count; }},
    {"from.count-1", [](primitive& p) { --p.from.count; }},
    {"to.first+1", [](primitive& p) { ++p.to.first; }},
    {"to.first-1", [](primitive& p) { --p.to.first; }},
    {"to.stride+1", [](primitive& p) { ++p.to.stride; }},
    {"to.count+1", [](primitive& p) { ++p.to.count; }},
    {"to.count-1", [](primitive& p) { --p.to.count; }},
    {"operand in input", [](primitive& p) { p.operand.where = place::input; }},
    {"operand in output", [](primitive& p) { p.operand.where = place::output; }},
    {"operand in scratch", [](primitive& p) { p.operand.where = place::scratch; }},
    {"operand.first+1", [](primitive& p) { ++p.operand.first; }},
    {"operand.first-1", [](primitive& p) { --p.operand.first; }},
    {"operand.count+1", [](primitive& p) { ++p.operand.count; }},
    {"operand.count-1", [](primitive& p) { --p.operand.count; }},
    {"operand.pitch+1", [](primitive& p) { ++p.operand.pitch; }},
    {"operand.run+1", [](primitive& p) { ++p.operand.run; }},
    {"operand.wraps flipped", [](primitive& p) { p.operand.wraps = !p.operand.wraps; }},
    {"operand.per_peer+1", [](primitive& p) { ++p.operand.per_peer; }},
    {"operand.per_peer-1", [](primitive& p) { --p.operand.per_peer; }},
    {"target in input", [](primitive& p) { p.target.where = place::input; }},
    {"target in output", [](primitive& p) { p.target.where = place::output; }},
    {"target in scratch", [](primitive& p) { p.target.where = place::scratch; }},
    {"target.first+1", [](primitive& p) { ++p.target.first; }},
    {"target.first-1", [](primitive& p) { --p.target.first; }},
    {"target.count+1", [](primitive& p) { ++p.target.count; }},
    {"target.count-1", [](primitive& p) { --p.target.count; }},
    {"target.pitch+1", [](primitive& p) { ++p.target.pitch; }},
    {"target.run+1", [](primitive& p) { ++p.target.run; }},
    {"target.wraps flipped", [](primitive& p) { p.target.wraps = !p.target.wraps; }},
    {"target.per_peer+1", [](primitive& p) { ++p.target.per_peer; }},
    {"target.per_peer-1", [](primitive& p) { --p.target.per_peer; }},
    {"reduce flipped", [](primitive& p) { p.reduce = !p.reduce; }},
    {"store flipped", [](primitive& p) { p.store = !p.store; }},
    {"copy dropped", [](primitive& p) { p.copy = false; }},
    {"push set", [](primitive& p) { p.push = true; }},
    {"complete flipped", [](primitive& p) { p.complete = !p.complete; }},
    {"from and to exchanged",
     [](primitive& p) {
       peer_set const from = p.from;
       p.from = p.to;
       p.to = from;
     }},
    {"operand and target exchanged",
     [](primitive& p) {
       region const o = p.operand;
       p.operand = p.target;
       p.target = o;
     }},
    {"step dropped", [](primitive& p) { p = {}; }},
};

inline constexpr int change_count = static_cast<int>(sizeof(changes) / sizeof(changes[0]));

struct mutation {
  rank_t rank = no_rank;
  std::int32_t step = 0;
  int change = 0;
};

// The one in force; schedules are stateless types, so it cannot be theirs.
inline mutation active;

template <class S>
struct mutant : S {
  static primitive step(problem p, std::int32_t i) {
    primitive step = S::step(p, i);
    if (p.rank == active.rank && i == active.step) changes[active.change].apply(step);
    return step;
  }
};

// Where a changed region may not even be well formed.
inline std::int32_t chunk_of(region const& r, std::int32_t first, std::int32_t i, std::int32_t chunks) {
  return r.modulus < 0 || r.run < 0 ? -1 : r.chunk(first, i, chunks);
}

// What a step does, spelled out: peers with their runs instead of sets, and nothing that has no
// effect. Two steps with the same effects are one step.
template <class S>
std::vector<std::int32_t> effects(primitive p, problem where) {
  std::int32_t const chunks = S::chunk_count(where.size);
  bool const sends = detail::foreign_count(p.to, where.rank, where.size) > 0;
  // Taking only its own operand is the same as taking from nobody.
  if (!sends && !p.reduce && p.from.count == 1 && p.from.first == where.rank) p.from = {};
  bool const originates = p.from.empty();
  bool const has_home = sends && (p.store || originates);
  std::vector<std::int32_t> all{p.reduce, p.store, has_home && p.copy, sends && p.push,
                                p.reduce && p.complete};

  using run = std::array<std::int32_t, 6>;
  std::vector<run> taken, sent;
  auto const run_of = [&](region const& r, std::int32_t k) {
    if (r.count == 0) return run{};  // nothing lies nowhere
    std::int32_t const first = r.first_for(k, chunks);
    std::uint32_t list = 0;  // which chunks, in which order
    for (std::int32_t i = 0; i < r.count; ++i)
      list = list * 31 + static_cast<std::uint32_t>(chunk_of(r, first, i, chunks));
    return run{0, 0, static_cast<std::int32_t>(r.where), first, r.count, static_cast<std::int32_t>(list)};
  };
  auto const add = [&](run const& r) { all.insert(all.end(), r.begin(), r.end()); };
  bool const has_self = p.from.position(where.rank, where.size) >= 0;
  if ((p.reduce && has_self) || (originates && p.store)) add(run_of(p.operand, 0));
  if (p.store && (p.reduce || originates)) add(run_of(p.target, 0));

  for (std::int32_t k = 0; k < p.from.count; ++k) {
    bool const stores = p.store && !p.reduce;
    rank_t const peer = p.from.member(k, where.size);
    run const target = stores ? run_of(p.target, k) : run{0, 0, 0, 0, p.target.count, 0};
    run source{};
    if (!p.reduce && peer == where.rank) {
      source = run_of(p.operand, 0);
      if (source == target || !stores) continue;  // a copy of memory onto itself, or to nowhere
    }
    taken.push_back({peer, source[2] * chunks + source[3], target[2], target[3], target[4], target[5]});
  }
  // The order in which messages are taken matters where it is that of operands.
  if (!(p.reduce && keeps_rank_order<S>())) std::sort(taken.begin(), taken.end());
  for (std::int32_t k = 0; k < p.to.count; ++k) {
    rank_t const peer = p.to.member(k, where.size);
    if (peer == where.rank) continue;
    run of_peer = originates ? run_of(p.operand, k) : run{};
    of_peer[0] = peer;
    sent.push_back(of_peer);
  }
  std::sort(sent.begin(), sent.end());
  for (run const& r : taken) add(r);
  all.push_back(-1);
  for (run const& r : sent) add(r);
  return all;
}

}  // namespace mutate
