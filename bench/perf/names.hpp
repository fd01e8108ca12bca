// SPDX-License-Identifier: Apache-2.0
// The names a user may say. Collectives and algorithms are read from the library's own lists, so
// that a new algorithm needs no line in the bench.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "collx/algo/all.hpp"
#include "collx/collective/contract.hpp"
#include "collx/op/reduction.hpp"
#include "collx/schedule/type_list.hpp"
#if defined(COLLX_PERF_COMPOSITE)
#include "collx/tune/selector.hpp"
#endif

namespace perf {

using collectives =
    collx::type_list<collx::contract::all_reduce, collx::contract::reduce_scatter,
                     collx::contract::all_gather, collx::contract::all_to_all, collx::contract::broadcast,
                     collx::contract::reduce, collx::contract::gather, collx::contract::scatter,
                     collx::contract::scan, collx::contract::exclusive_scan, collx::contract::barrier>;
// The build chooses types and operators: each pair costs compile time per transport.
using types = collx::type_list<COLLX_PERF_TYPES>;
template <class... Ts>
std::tuple_element_t<0, std::tuple<Ts...>> first_in(collx::type_list<Ts...>);
template <class List>
using first_of = decltype(first_in(List{}));
#if defined(COLLX_PERF_TCP_TYPES)
using tcp_types = collx::type_list<COLLX_PERF_TCP_TYPES>;
using tcp_operators = collx::type_list<COLLX_PERF_TCP_OPERATORS>;
#endif
using operators = collx::type_list<COLLX_PERF_OPERATORS>;
#if defined(COLLX_PERF_COMPOSITE)
// Of ranks on several hosts.
using grouped_algorithms = collx::joined<collx::algo::all, collx::tune::two_level_algorithms>;
#endif

// What a collective is, by its name.
struct traits {
  bool reduces = false, scans = false, rooted = false;
};

[[nodiscard]] inline traits traits_of(std::string_view collective) {
  traits found;
  collectives::for_each([&]<class Contract>() {
    if (collective != Contract::name) return;
    found.reduces = Contract::from_all && collective != collx::contract::barrier::name;
    found.scans = found.reduces && collective.ends_with("scan");
    found.rooted = Contract::rooted;
  });
  return found;
}

// avg has no meaning in a scan: whose number of ranks? (collective/scan.hpp)
template <class Contract, class Op>
inline constexpr bool has_meaning =
    !(std::is_same_v<Op, collx::avg_t> && (std::is_same_v<Contract, collx::contract::scan> ||
                                           std::is_same_v<Contract, collx::contract::exclusive_scan>));

// NCCL's names of the element types, and of the same kind for those of two bytes, which it has not.
template <class T>
[[nodiscard]] constexpr char const* type_name() {
  if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? "int8" : "uint8";
  else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? "int16" : "uint16";
  else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? "int32" : "uint32";
  else return std::is_signed_v<T> ? "int64" : "uint64";
}

// Calls f.template operator()<T>() for the one type of that name; false: there is none.
template <class List = types, class F>
bool with_type(std::string_view name, F&& f) {
  bool found = false;
  List::for_each([&]<class T>() {
    if (name == type_name<T>()) found = true, f.template operator()<T>();
  });
  return found;
}

struct algorithm_entry {
  char const* name;
  bool supported;  // on this many ranks
};

// The algorithms that offer the collective, in the order of the list.
template <class List = collx::algo::all>
[[nodiscard]] std::vector<algorithm_entry> algorithms_for(std::string_view collective, collx::rank_t ranks) {
  std::vector<algorithm_entry> entries;
  collectives::for_each([&]<class Contract>() {
    if (collective != Contract::name) return;
    collx::for_each_serving<List, Contract>([&]<class Algorithm, class, class Schedule>() {
      entries.push_back({Algorithm::name, collx::supports<Schedule>(ranks)});
    });
  });
  return entries;
}

template <class List>
[[nodiscard]] std::vector<std::string> names_of() {
  std::vector<std::string> names;
  List::for_each([&]<class T>() { names.emplace_back(T::name); });
  return names;
}

template <class List = types>
[[nodiscard]] std::vector<std::string> type_names() {
  std::vector<std::string> names;
  List::for_each([&]<class T>() { names.emplace_back(type_name<T>()); });
  return names;
}

[[nodiscard]] inline std::string joined(std::vector<std::string> const& names) {
  std::string text;
  for (std::string const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace perf
