// SPDX-License-Identifier: Apache-2.0
// The library's own choice of algorithm, as tables. A row holds while its bounds hold; the last row
// of a table has none. Measured with collx_tune, for 2 ranks on 2 cores and 4 that share them, and those of
// message transports with bench/compare over TCP; see docs/choice.md.
#pragma once

#include "collx/algo/chain.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/tune/question.hpp"

namespace collx::inline abi_1::algo {

// What only message transports choose is declared here, so that others need not compile it;
// message_algorithms.hpp, which those transports include, defines it.
struct binomial_tree;
template <std::int32_t K>
struct bruck;
struct dissemination;
struct recursive_doubling;
struct recursive_halving_doubling;
struct ring;

}  // namespace collx::inline abi_1::algo

namespace collx::inline abi_1::tune {

// Bytes (as question::bytes counts them) and ranks up to which a row applies. Rows do not look at the memory
// of a call, since ranks may call with different kinds; those of `symmetric_only` apply where all of it is
// within reach of peers: with threads, and where the program said so (communicator::buffers).
inline constexpr bool symmetric_only = true;
template <class Algorithm, std::size_t BytesMax = any_bytes, rank_t SizeMax = any_size,
          bool SymmetricOnly = false>
struct row {
  using algorithm = Algorithm;
  [[nodiscard]] static constexpr bool applies(std::size_t bytes, rank_t size, bool symmetric) {
    return bytes <= BytesMax && size <= SizeMax && (!SymmetricOnly || symmetric);
  }
};

template <class... Rows>
struct table {};

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

// Where every byte is a message: what several ranks send one is received one after the other, and two ranks
// that exchange messages keep a connection. So with more than a few ranks, steps that are few for short
// vectors and bytes that are few for long ones, and no rank that has to do with all others. Measured over
// TCP, for 2 ranks on 2 cores and 4 that share them; beyond, by the number of steps and bytes.
// Without a table of their own: all_to_all, of everybody with everybody; gather and scatter, where each rank
// has to do with the root alone and every block travels once.
template <class Contract>
struct message_table { using type = table<row<algo::direct_one_shot>>; };
template <>
struct message_table<contract::all_reduce> {
  using type = table<row<algo::direct_one_shot, any_bytes, 2>, row<algo::direct_one_shot, 32768, 4>,
                     row<algo::direct_two_shot, any_bytes, 4>, row<algo::recursive_doubling, 16384>,
                     row<algo::recursive_halving_doubling, 262144>, row<algo::ring>,
                     row<algo::direct_two_shot, any_bytes, 8>, row<algo::recursive_halving_doubling>>;
};
template <>
struct message_table<contract::reduce_scatter> {
  // The last one for operators that need rank order, which no other keeps.
  using type = table<row<algo::direct_one_shot, any_bytes, 8>, row<algo::ring>, row<algo::direct_one_shot>>;
};
template <>
struct message_table<contract::reduce_scatter_v> : message_table<contract::reduce_scatter> {};
template <>
struct message_table<contract::all_gather> {
  using type = table<row<algo::direct_one_shot, any_bytes, 8>, row<algo::bruck<2>, 65536>, row<algo::ring>>;
};
// By the largest block.
template <>
struct message_table<contract::all_gather_v> : message_table<contract::all_gather> {};
template <>
struct message_table<contract::broadcast> {
  using type =
      table<row<algo::direct_one_shot, any_bytes, 2>, row<algo::binomial_tree, 65536>, row<algo::chain>>;
};
template <>
struct message_table<contract::reduce> {
  using type =
      table<row<algo::direct_one_shot, any_bytes, 2>, row<algo::binomial_tree, 65536>, row<algo::chain>>;
};
template <>
struct message_table<contract::scan> {
  using type =
      table<row<algo::direct_one_shot, any_bytes, 4>, row<algo::recursive_doubling, 65536>, row<algo::chain>>;
};
template <>
struct message_table<contract::exclusive_scan> {
  using type = table<row<algo::direct_one_shot, any_bytes, 4>, row<algo::recursive_doubling>>;
};
template <>
struct message_table<contract::barrier> {
  using type = table<row<algo::direct_one_shot, any_bytes, 4>, row<algo::dissemination>>;
};

// Rows whose algorithm does not combine in rank order are passed over for operators that need it.
template <class Contract, bool Commutative, class Row>
[[nodiscard]] constexpr bool may_choose() {
  return Commutative || keeps_rank_order<schedule_for<Contract, typename Row::algorithm>>();
}

template <class Contract, bool Commutative, class F, class First, class... Rest>
[[nodiscard]] auto choose_from(table<First, Rest...>, std::size_t bytes, rank_t size, bool symmetric,
                               F const& f) {
  if constexpr (sizeof...(Rest) == 0) {
    static_assert(may_choose<Contract, Commutative, First>(),
                  "collx: the last row of a table must combine in rank order, for operators that need it");
    return f.template operator()<typename First::algorithm>();
  } else {
    if constexpr (may_choose<Contract, Commutative, First>())
      if (First::applies(bytes, size, symmetric)) return f.template operator()<typename First::algorithm>();
    return choose_from<Contract, Commutative>(table<Rest...>{}, bytes, size, symmetric, f);
  }
}

namespace detail {
template <class Contract, class Endpoint>
[[nodiscard]] consteval auto find_table() {
  if constexpr (Endpoint::is_mapped) return mapped_table<Contract>{};
  else return message_table<Contract>{};
}
}  // namespace detail

template <class Contract, class Endpoint>
using table_of = decltype(detail::find_table<Contract, Endpoint>());

// Whether all memory that calls are given is within reach of peers, as far as all ranks know it. `buffers`:
// what the program said of them (communicator::buffers).
template <class Endpoint>
[[nodiscard]] constexpr bool all_symmetric(memory_kind buffers) {
  if constexpr (requires { requires Endpoint::is_open; }) return true;
  else return buffers == memory_kind::symmetric;
}

// Calls f.template operator()<Algorithm>() with the first row that applies.
template <class Contract, class Endpoint, bool Commutative, class F>
[[nodiscard]] auto choose(std::size_t bytes, rank_t size, memory_kind buffers, F const& f) {
  return choose_from<Contract, Commutative>(typename table_of<Contract, Endpoint>::type{}, bytes, size,
                                            all_symmetric<Endpoint>(buffers), f);
}

}  // namespace collx::inline abi_1::tune
