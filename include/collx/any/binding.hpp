// SPDX-License-Identifier: Apache-2.0
// From an any_call to the bound arguments of a collective, in bytes: checked by the code that checks the
// static calls.
#pragma once

#include "collx/any/uneven.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"

namespace collx::inline abi_1::detail {

// A call on buffers of bytes.
struct byte_call {
  std::span<std::byte const> in;
  std::span<std::byte> out;
  exec::erased_reduction const* op = nullptr;
  exec::standing at{};
  rank_t root = 0;
};

// How many elements of a buffer are one rank's; a combining contract has its result as one block.
template <class Contract>
[[nodiscard]] byte_call in_bytes(any_call const& call, exec::erased_reduction const* op,
                                 exec::standing const& at) noexcept {
  problem p = at.where;
  p.root = call.root;
  std::size_t const block = call.count * bytes_of(call.type);
  auto const ins = static_cast<std::size_t>(Contract::input(p).count);
  auto const outs = Contract::from_all ? std::size_t{1} : static_cast<std::size_t>(Contract::output(p).count);
  return {{static_cast<std::byte const*>(call.in), ins * block},
          {static_cast<std::byte*>(call.out), outs * block},
          op,
          at,
          call.root};
}

[[nodiscard]] inline auto bind_bytes(contract::all_reduce, problem p, byte_call const& c) noexcept {
  return bind_all_reduce(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::reduce_scatter, problem p, byte_call const& c) noexcept {
  return bind_reduce_scatter(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::reduce, problem p, byte_call const& c) noexcept {
  return bind_reduce(p, c.in, c.out, *c.op, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::scan, problem p, byte_call const& c) noexcept {
  return bind_scan(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::exclusive_scan, problem p, byte_call const& c) noexcept {
  return bind_exclusive_scan(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::all_gather, problem p, byte_call const& c) noexcept {
  return bind_all_gather(p, c.in, c.out);
}
[[nodiscard]] inline auto bind_bytes(contract::all_to_all, problem p, byte_call const& c) noexcept {
  return bind_all_to_all(p, c.in, c.out);
}
[[nodiscard]] inline auto bind_bytes(contract::broadcast, problem p, byte_call const& c) noexcept {
  return bind_broadcast(p, c.in, c.out, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::gather, problem p, byte_call const& c) noexcept {
  return bind_gather(p, c.in, c.out, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::scatter, problem p, byte_call const& c) noexcept {
  return bind_scatter(p, c.in, c.out, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::barrier, problem p, byte_call const&) noexcept {
  return bind_barrier(p);
}

// Whatever was found: of such a count nothing is known but that its bytes cannot be counted.
template <class Contract, class Invocation>
void refuse_absurd_bytes(Invocation& args, any_call const& call, rank_t size) noexcept {
  if (std::is_same_v<Contract, contract::barrier>) return;
  std::size_t const blocks = Contract::sharded ? static_cast<std::size_t>(size) : 1;
  std::size_t const most = most_elements(bytes_of(call.type), blocks);
  if (call.count <= most) return;
  args.fault = nullptr;
  args.refuse(absurd_count, call.count, most);
}

template <class Contract>
[[nodiscard]] auto bind_any(any_call const& call, exec::erased_reduction const* op,
                            exec::standing const& at) noexcept {
  if constexpr (is_uneven<Contract>) {
    return bind_uneven<Contract>(call, op, at.where);
  } else {
    auto args = bind_bytes(Contract{}, at.where, in_bytes<Contract>(call, op, at));
    refuse_absurd_bytes<Contract>(args, call, at.where.size);
    if constexpr (Contract::from_all || !needs_elements<Contract>) return args;
    else return in_bytes_of(args, unreduced_bytes{{}, element_kind_in(any_types{}, call.type)});
  }
}

}  // namespace collx::inline abi_1::detail
