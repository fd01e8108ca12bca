// SPDX-License-Identifier: Apache-2.0
// What a lane of a GPU reads and writes: where the chunks of a step lie, and how a team copies and combines
// them. Used by lane_machine.hpp.
//
// What is long is out of line and no member: it is compiled once for all steps, and what it is given by value
// stays in registers elsewhere.
#pragma once

#include "collx/device/combine.hpp"
#include "collx/exec/lane_traffic.hpp"

namespace collx::inline abi_1::exec {

// Where the chunks of a fragment lie. The map is that of all lanes: its scratch memory begins at address 0.
struct lane_place {
  chunk_map const* map;
  std::size_t fragment;
  std::byte* scratch;

  [[nodiscard]] COLLX_HD_INLINE run find(region const& r, std::int32_t k) const noexcept {
    run found = map->find(r, k, fragment);
    if (found.whole) found.data = moved(r, found.data);
    return found;
  }
  [[nodiscard]] COLLX_HD piece chunk(run const& of, region const& r, std::int32_t i) const noexcept {
    piece found = map->chunk(of, r, i, fragment);
    found.data = moved(r, found.data);
    return found;
  }

 private:
  [[nodiscard]] COLLX_HD_INLINE std::byte* moved(region const& r, std::byte* data) const noexcept {
    return r.where == place::scratch ? scratch + reinterpret_cast<std::uintptr_t>(data) : data;
  }
};

// What a team does with elements of a type and an operator. By all threads, with the same arguments.
template <bool Combines, class T, class Op, device::team Team>
struct lane_work {
  // The sources of the workspace to its destinations. `prepared`: which source the operator is to prepare, or
  // -1.
  COLLX_HD COLLX_NEVER_INLINE static void combine(Team& team, lane_workspace& shared, Op const& op,
                                                  int destinations, int sources, std::size_t bytes,
                                                  bool complete, rank_t size, int prepared) noexcept {
    if constexpr (Combines)
      device::combine(team, reinterpret_cast<T* const*>(shared.destinations), destinations,
                      reinterpret_cast<T const* const*>(shared.sources), sources, bytes / sizeof(T), op,
                      complete, size, prepared);
  }

  // The same where a target, or this rank's own contribution, is several pieces: one by one, and all sources
  // but the own one move on. `own`: its place among them, or -1; `raw`: it is to be prepared.
  COLLX_HD COLLX_NEVER_INLINE static void combine_pieces(Team& team, lane_workspace& shared, Op const& op,
                                                         lane_place where, region operand, run from,
                                                         region target, run to, int sources, int own,
                                                         bool stores, bool complete, std::byte* staged,
                                                         rank_t size, bool raw) noexcept {
    for (std::int32_t i = 0; i < target.count; ++i) {
      piece const result = where.chunk(to, target, i);
      std::byte const* const mine = own < 0 ? nullptr : where.chunk(from, operand, i).data;
      int const count = note_destinations(team, shared, stores, own, result.data, staged, mine);
      team.sync();
      combine(team, shared, op, count, sources, result.bytes, complete, size, raw ? own : -1);
      team.sync();
      if (team.rank() == 0)
        for (std::int32_t k = 0; k < sources; ++k)
          if (k != own) shared.sources[k] += result.bytes;
      if (staged != nullptr) staged += result.bytes;
    }
  }

  // Where a result goes, but for pushes, and where this rank's own contribution lies: written by one thread.
  // Returns how many destinations there are.
  COLLX_HD_INLINE static int note_destinations(Team const& team, lane_workspace& shared, bool stores, int own,
                                               std::byte* target, std::byte* staged,
                                               std::byte const* mine) noexcept {
    int const stored = stores ? 1 : 0;
    if (team.rank() == 0) {
      if (stored != 0) shared.destinations[0] = target;
      if (staged != nullptr) shared.destinations[stored] = staged;
      if (own >= 0) shared.sources[own] = mine;
    }
    return stored + (staged != nullptr ? 1 : 0);
  }

  // One source to one destination, or two where `also` is none; prepared, if that is due, for one.
  COLLX_HD COLLX_NEVER_INLINE static void copy(Team& team, std::byte* to, std::byte* also,
                                               std::byte const* from, std::size_t bytes, Op const& op,
                                               bool prepares_now, rank_t size) noexcept {
    if (bytes == 0 || (to == from && also == nullptr && !prepares_now)) return;
    T* const destinations[] = {reinterpret_cast<T*>(to), reinterpret_cast<T*>(also)};
    T const* const source = reinterpret_cast<T const*>(from);  // messages consist of whole elements
    if constexpr (Combines && prepares<Op, T>)
      if (prepares_now)
        return device::combine(team, destinations, 1, &source, 1, bytes / sizeof(T), op, false, size, 0);
    device::copy(team, destinations, also == nullptr ? 1 : 2, source, bytes / sizeof(T));
  }

  // Chunks to a message, one behind the other; and back.
  COLLX_HD COLLX_NEVER_INLINE static void pack(Team& team, lane_place where, region what, run from,
                                               std::byte* message, Op const& op, bool raw,
                                               rank_t size) noexcept {
    if (from.whole) return copy(team, message, nullptr, from.data, from.bytes, op, raw, size);
    for (std::int32_t i = 0; i < what.count; ++i) {
      piece const part = where.chunk(from, what, i);
      copy(team, message, nullptr, part.data, part.bytes, op, raw, size);
      message += part.bytes;
    }
  }
  COLLX_HD COLLX_NEVER_INLINE static void unpack(Team& team, lane_place where, region what, run to,
                                                 std::byte const* message, Op const& op,
                                                 rank_t size) noexcept {
    for (std::int32_t i = 0; i < what.count; ++i) {
      piece const part = where.chunk(to, what, i);
      copy(team, part.data, nullptr, message, part.bytes, op, false, size);
      message += part.bytes;
    }
  }

  // The operand of a step to a target of it.
  COLLX_HD COLLX_NEVER_INLINE static void copy_locally(Team& team, lane_place where, region operand, run from,
                                                       region target, run to, Op const& op, bool raw,
                                                       rank_t size) noexcept {
    if (from.whole && to.whole) return copy(team, to.data, nullptr, from.data, to.bytes, op, raw, size);
    for (std::int32_t i = 0; i < target.count; ++i) {
      piece const part = where.chunk(to, target, i);
      copy(team, part.data, nullptr, where.chunk(from, operand, i).data, part.bytes, op, raw, size);
    }
  }
};

}  // namespace collx::inline abi_1::exec
