// SPDX-License-Identifier: Apache-2.0
// Combinations by teams of host threads, compared with what host_combine.hpp makes of the same values.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "collx/core/random.hpp"
#include "collx/device/combine.hpp"
#include "collx/device/host_combine.hpp"
#include "device/host_team.hpp"
#include "device/strip.hpp"

namespace device_test {

// What differs from trial to trial. The vectors lie `shift_bytes` behind a cache line, each one
// `spread_bytes` further than the one before.
struct outline {
  std::size_t count = 0;
  int source_count = 2, destination_count = 1;
  std::size_t shift_bytes = 0, spread_bytes = 0;
  int in_place = -1;  // the source that the first destination is, if any
  bool finish = false;
  int prepared = -1;

  collx::rank_t size() const { return static_cast<collx::rank_t>(source_count); }
};

// An operator on an element type, of which the trials need know no more: they are compiled once.
struct subject {
  std::size_t element_bytes;
  void const* op;
  void (*fill)(std::byte* to, std::size_t count, collx::replayable_random& random);
  void (*by_team)(host_team&, outline const&, void const* op, std::byte* const* to, std::byte* const* from);
  void (*by_host)(outline const&, void const* op, std::byte* to, std::byte* const* from);
  bool (*same)(std::byte const* a, std::byte const* b, std::size_t count);
};

inline constexpr std::size_t vectors_max = 16;

template <class To>
struct typed {
  To* pointers[vectors_max] = {};
  typed(std::byte* const* list, int count) {
    for (int i = 0; i < count; ++i) pointers[i] = reinterpret_cast<To*>(list[i]);
  }
};

template <class T, class Op>
void combine_by_team(host_team& mine, outline const& how, void const* op, std::byte* const* to,
                     std::byte* const* from) {
  typed<T> const out(to, how.destination_count);
  typed<T const> const in(from, how.source_count);
  collx::device::combine(mine, out.pointers, how.destination_count, in.pointers, how.source_count, how.count,
                         *static_cast<Op const*>(op), how.finish, how.size(), how.prepared);
}

template <class T, class Op>
void combine_by_host(outline const& how, void const* op_given, std::byte* to, std::byte* const* from) {
  Op const& op = *static_cast<Op const*>(op_given);
  typed<T const> in(from, how.source_count);
  std::vector<std::byte> own(how.count * sizeof(T));
  if constexpr (collx::prepares<Op, T>) {
    if (how.prepared >= 0) {
      T* const prepared = reinterpret_cast<T*>(own.data());
      T const*& given = in.pointers[how.prepared];
      for (std::size_t i = 0; i < how.count; ++i) prepared[i] = static_cast<T>(op.prepare(given[i]));
      given = prepared;
    }
  }
  T* const out = reinterpret_cast<T*>(to);
  collx::device::combine(&out, 1, in.pointers, how.source_count, how.count, op, how.finish, how.size());
}

// In bits, but for types with padding.
template <class T>
bool same(std::byte const* a, std::byte const* b, std::size_t count) {
  if constexpr (std::is_same_v<T, long double>) {
    for (std::size_t i = 0; i < count; ++i)
      if (!(reinterpret_cast<T const*>(a)[i] == reinterpret_cast<T const*>(b)[i])) return false;
    return true;
  } else {
    return std::memcmp(a, b, count * sizeof(T)) == 0;
  }
}

// Fill: T(replayable_random&), without state.
template <class T, class Op, class Fill>
subject subject_of(Op const& op, Fill) {
  auto const fill = [](std::byte* to, std::size_t count, collx::replayable_random& random) {
    for (std::size_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i] = Fill{}(random);
  };
  return {sizeof(T), &op, fill, combine_by_team<T, Op>, combine_by_host<T, Op>, same<T>};
}

class trial {
 public:
  trial(subject const& what, outline const& how) : what_(what), how_(how), expected_(bytes(), 0) {
    collx::replayable_random random(how.count * 64 + static_cast<std::size_t>(how.source_count));
    for (int i = 0; i < how.source_count + how.destination_count; ++i) {
      std::size_t const shift = how.shift_bytes + static_cast<std::size_t>(i) * how.spread_bytes;
      vectors_.emplace_back(bytes(), shift % 64);
      (i < how.source_count ? from_ : to_).push_back(vectors_.back().data());
    }
    for (std::byte* const each : from_) what.fill(each, how.count, random);
    if (how.in_place >= 0) to_[0] = from_[static_cast<std::size_t>(how.in_place)];
    what.by_host(how, what.op, expected_.data(), from_.data());
  }

  void run(host_team& mine) const { what_.by_team(mine, how_, what_.op, to_.data(), from_.data()); }

  // Every destination holds what it should, and nothing was written beside.
  bool is_right() {
    for (std::byte const* const each : to_)
      if (!what_.same(each, expected_.data(), how_.count)) return false;
    for (auto const& each : vectors_)
      if (!each.guards_intact()) return false;
    return true;
  }

 private:
  std::size_t bytes() const { return how_.count * what_.element_bytes; }

  subject what_;
  outline how_;
  strip<std::byte> expected_;
  std::vector<strip<std::byte>> vectors_;
  std::vector<std::byte*> from_, to_;
};

// Runs the trial of each outline in a team of so many threads; the number of those that went wrong.
inline std::size_t wrong_trials(int threads, std::vector<outline> const& outlines, subject const& what) {
  std::optional<trial> current;
  std::size_t wrong = 0;
  run_team(threads, [&](host_team& mine) {
    for (outline const& each : outlines) {
      if (mine.rank() == 0) current.emplace(what, each);
      mine.sync();
      current->run(mine);
      mine.sync();
      if (mine.rank() == 0) wrong += !current->is_right();
    }
  });
  return wrong;
}

}  // namespace device_test
