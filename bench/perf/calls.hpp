// SPDX-License-Identifier: Apache-2.0
// One call of each collective, out of place and in place, under one signature.
#pragma once

#include <span>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/contract.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"

namespace perf {

// The memory of one call. In place, `in` and `out` are the same memory, except that a side that
// holds one block is the rank's own block of the other, as in NCCL.
template <class T>
struct arguments {
  std::span<T> in, out;
  collx::rank_t root;

  [[nodiscard]] std::span<T const> input() const { return in; }
};

template <class Contract>
struct call;

template <>
struct call<collx::contract::all_reduce> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto op, bool in_place) {
    if (in_place) collx::all_reduce<Algorithm>(world, a.out, op);
    else collx::all_reduce<Algorithm>(world, a.input(), a.out, op);
  }
};

template <>
struct call<collx::contract::reduce_scatter> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto op, bool) {
    collx::reduce_scatter<Algorithm>(world, a.input(), a.out, op);
  }
};

template <>
struct call<collx::contract::all_gather> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto, bool) {
    collx::all_gather<Algorithm>(world, a.input(), a.out);
  }
};

template <>
struct call<collx::contract::broadcast> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto, bool in_place) {
    if (in_place) collx::broadcast<Algorithm>(world, a.out, a.root);
    else collx::broadcast<Algorithm>(world, a.input(), a.out, a.root);
  }
};

template <>
struct call<collx::contract::reduce> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto op, bool in_place) {
    if (in_place) collx::reduce<Algorithm>(world, a.out, op, a.root);
    else collx::reduce<Algorithm>(world, a.input(), a.out, op, a.root);
  }
};

template <>
struct call<collx::contract::all_to_all> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto, bool in_place) {
    if (in_place) collx::all_to_all<Algorithm>(world, a.out);
    else collx::all_to_all<Algorithm>(world, a.input(), a.out);
  }
};

// In place, only the root's buffers are in one another; the other ranks have one.
template <>
struct call<collx::contract::gather> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto, bool) {
    collx::gather<Algorithm>(world, a.input(), a.out, a.root);
  }
};

template <>
struct call<collx::contract::scatter> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto, bool) {
    collx::scatter<Algorithm>(world, a.input(), a.out, a.root);
  }
};

template <>
struct call<collx::contract::scan> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto op, bool in_place) {
    if (in_place) collx::scan<Algorithm>(world, a.out, op);
    else collx::scan<Algorithm>(world, a.input(), a.out, op);
  }
};

template <>
struct call<collx::contract::exclusive_scan> {
  template <class Algorithm>
  static void make(auto& world, auto const& a, auto op, bool in_place) {
    if (in_place) collx::exclusive_scan<Algorithm>(world, a.out, op);
    else collx::exclusive_scan<Algorithm>(world, a.input(), a.out, op);
  }
};

template <>
struct call<collx::contract::barrier> {
  template <class Algorithm>
  static void make(auto& world, auto const&, auto, bool) {
    collx::barrier<Algorithm>(world);
  }
};

}  // namespace perf
