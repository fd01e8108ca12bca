// SPDX-License-Identifier: Apache-2.0
// The library's own choice of algorithm, as tables. A row holds while its bounds hold; the last row
// of a table has none. Measured with collx_tune, for 2 ranks on 2 cores and 4 that share them; see
// docs/choice.md.
#pragma once

#include "collx/algo/chain.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/tune/message_tables.hpp"

namespace collx::inline abi_1::tune {

// Where peers' memory can be read, fan-in beats every chain of messages; but for long vectors that one
// rank alone would read or write.
template <class Contract>
struct mapped_table { using type = table<row<algo::direct_one_shot>>; };
template <>
struct mapped_table<contract::all_reduce> {
  using type = table<row<algo::direct_one_shot, 16384, 4>, row<algo::direct_one_shot, 4096, 8>,
                     row<algo::direct_two_shot>>;
};
// Each rank reads its own block only, and stores it to all outputs. Below, the greeting costs more; later
// where something has to be copied for ranks that cannot be reached.
template <>
struct mapped_table<contract::all_gather> {
  using type = table<row<algo::direct_one_shot, 32767>, row<algo::push_pull, any_bytes, 2, symmetric_only>,
                     row<algo::direct_one_shot, 262144>, row<algo::push_pull>>;
};
// Two ranks: each copies a half. Below, the message that it takes costs more than that gains.
template <>
struct mapped_table<contract::broadcast> {
  using type = table<row<algo::direct_one_shot, 16383>, row<algo::push_pull, any_bytes, 2, symmetric_only>,
                     row<algo::direct_one_shot, 65535>, row<algo::push_pull, any_bytes, 2>,
                     row<algo::direct_one_shot>>;
};
// All ranks take a part of a long one, and store it to the root's output. Where that cannot be reached, the
// part would be copied once more than in a chain.
template <>
struct mapped_table<contract::reduce> {
  using type =
      table<row<algo::direct_one_shot, 16383>, row<algo::direct_two_shot, any_bytes, 2, symmetric_only>,
            row<algo::direct_one_shot, 131072>,
            row<algo::direct_two_shot, any_bytes, any_size, symmetric_only>, row<algo::chain>>;
};
// The last of more than two ranks would read all vectors alone.
template <>
struct mapped_table<contract::scan> {
  using type =
      table<row<algo::direct_one_shot, 262144>, row<algo::direct_one_shot, any_bytes, 2>, row<algo::chain>>;
};

// Of GPUs: lanes do not push what a step only sends (exec/lane_machine.hpp), so to be greeted gains nothing.
template <class Contract>
struct gpu_table : mapped_table<Contract> {};
// Measured with ranks on one GPU (H200): a step costs some 5 us, so in one shot up to 4 MiB, and more with
// two ranks, of which each reads no more that way. Between GPUs what n ranks read counts, (n - 1) times the
// vector instead of twice: at 450 GB/s that is those 10 to 20 us more at 3.6 MiB (4 ranks) and 1.7 MiB (8).
template <>
struct gpu_table<contract::all_reduce> {
  using type = table<row<algo::direct_one_shot, 8388608, 2>, row<algo::direct_one_shot, 2097152, 4>,
                     row<algo::direct_one_shot, 1048576, 8>, row<algo::direct_one_shot, 131072>,
                     row<algo::direct_two_shot>>;
};
template <>
struct gpu_table<contract::all_gather> {
  using type = table<row<algo::direct_one_shot>>;
};
template <>
struct gpu_table<contract::broadcast> : gpu_table<contract::all_gather> {};
template <>
struct gpu_table<contract::reduce> {
  using type = table<row<algo::direct_one_shot, 131072>, row<algo::chain>>;
};
template <>
struct gpu_table<contract::scan> : gpu_table<contract::all_gather> {};  // a chain was never measured there

// Of peers some of whom, here all, are reached by shared memory: what a step only sends is not pushed there,
// so to be greeted gains nothing.
template <class Contract>
struct near_table : mapped_table<Contract> {};
template <>
struct near_table<contract::all_gather> { using type = table<row<algo::direct_one_shot>>; };
template <>
struct near_table<contract::broadcast> : near_table<contract::all_gather> {};
template <>
struct near_table<contract::reduce> {
  using type = table<row<algo::direct_one_shot, 8191>, row<algo::chain>>;
};

// Rows whose algorithm does not combine in rank order are passed over for operators that need it.
template <class Contract, bool Commutative, class Row>
[[nodiscard]] constexpr bool may_choose() {
  return Commutative || keeps_rank_order<schedule_for<Contract, typename Row::algorithm>>();
}

template <class Contract, bool Commutative, class F, class First, class... Rest>
[[nodiscard]] auto choose_from(table<First, Rest...>, std::size_t bytes, rank_t size, situation with,
                               F const& f) {
  if constexpr (sizeof...(Rest) == 0) {
    static_assert(may_choose<Contract, Commutative, First>(),
                  "collx: the last row of a table must combine in rank order, for operators that need it");
    return f.template operator()<typename First::algorithm>();
  } else {
    if constexpr (may_choose<Contract, Commutative, First>())
      if (First::applies(bytes, size, with)) return f.template operator()<typename First::algorithm>();
    return choose_from<Contract, Commutative>(table<Rest...>{}, bytes, size, with, f);
  }
}

namespace detail {
// By which contract tables know it: one of parts of blocks (multi_lane) goes by the rows of the whole.
template <class Contract>
struct listed { using type = Contract; };
template <class Contract>
  requires requires { typename Contract::whole; }
struct listed<Contract> { using type = typename Contract::whole; };

template <class Contract, class Endpoint>
[[nodiscard]] consteval auto find_table() {
  if constexpr (Endpoint::is_mapped) return mapped_table<Contract>{};
  else if constexpr (has_near_peers<Endpoint>) return combined_table<Contract>{};
  else if constexpr (tells_sharing<Endpoint>) return sharing_table<Contract>{};
  else return message_table<Contract>{};
}
}  // namespace detail

template <class Contract>
using listed_contract = typename detail::listed<Contract>::type;

template <class Contract, class Endpoint>
using table_of = decltype(detail::find_table<listed_contract<Contract>, Endpoint>());

// Calls f(table) with the one that calls in this situation go by.
template <class Contract, class Endpoint, class F>
[[nodiscard]] auto with_table([[maybe_unused]] situation with, F const& f) {
  if constexpr (has_near_peers<Endpoint>)
    if (with.all_near) return f(typename near_table<listed_contract<Contract>>::type{});
  return f(typename table_of<Contract, Endpoint>::type{});
}

// Calls f.template operator()<Algorithm>() with the first row that applies.
template <class Contract, class Endpoint, bool Commutative, class F>
[[nodiscard]] auto choose(std::size_t bytes, rank_t size, situation with, F const& f) {
  return with_table<Contract, Endpoint>(
      with, [&](auto rows) { return choose_from<Contract, Commutative>(rows, bytes, size, with, f); });
}

}  // namespace collx::inline abi_1::tune
