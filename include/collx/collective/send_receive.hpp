// SPDX-License-Identifier: Apache-2.0
// send, receive: one message from one rank to another, in order with the others of that pair.
//
//   send(comm, data, peer)     receive(comm, out, peer)     and try_send, try_receive
//
// Only the two ranks take part. send returns when data may be changed: small messages may still be on
// their way then, while for large ones it waits for the receiver; so two ranks that first send to each
// other and then receive may wait for each other, and time out. Of up to 64 bytes (on threads, shm, tcp and
// composite of less than 1 KiB) nine messages to one peer wait for no receive, once the two are connected:
// docs/collectives.md, "Which sends wait". What must move at the same time belongs in an exchange
// (exchange.hpp); so do messages of a rank to itself, and there is no started form but its. Sizes, buffers
// and errors: as there.
#pragma once

#include "collx/collective/exchange.hpp"

namespace collx::inline abi_1 {
namespace detail {

// What is wrong with a message of this rank; null: nothing.
[[nodiscard]] constexpr char const* fault_of(problem p, exec::message const& what) noexcept {
  rank_t const peer = what.peer;
  if (peer < 0 || peer >= p.size) return "the peer must be a rank of the communicator, less than its size";
  if (peer == p.rank) return "a rank sends to itself in an exchange only, together with the receive";
  return fault_of_memory(what);
}

template <class Endpoint>
[[nodiscard]] status run_one(exec::engine<Endpoint>& engine, exec::standing const& at,
                             exec::message what) noexcept {
  what.peer = at.along.rank_of(what.peer);
  auto const describe = [&]() noexcept {
    return exec::call{.collective = what.outgoing ? "send" : "receive", .algorithm = "one message", .at = at};
  };
  listed_messages const list{exec::single_message, &what};
  return engine.run_uncounted(describe, [&](int lane) noexcept { return make_exchange(engine, lane, list); });
}

template <class Transport>
[[nodiscard]] status try_one(communicator<Transport>& comm, exec::message const& what) noexcept {
  if (fault_of(where(comm), what) != nullptr) return status::bad_argument;
  return run_one(comm.engine(), comm.standing(), what);
}

template <class Transport>
void run_one_or_throw(communicator<Transport>& comm, exec::message const& what) {
  if (char const* const fault = fault_of(where(comm), what); fault != nullptr) {
    bool const of_memory = fault == fault_of_memory(what), absurd = fault == absurd_count;
    throw_wrong_argument(what.outgoing ? "send" : "receive", where(comm), fault,
                         !of_memory ? what.peer : absurd ? static_cast<std::int64_t>(what.bytes) : 0,
                         !of_memory ? said_already
                         : absurd   ? PTRDIFF_MAX
                                    : static_cast<std::int64_t>(what.bytes));
  }
  if (run_one(comm.engine(), comm.standing(), what) != status::ok) throw error(comm.failure());
}

}  // namespace detail

template <class Transport, class R>
void send(communicator<Transport>& comm, R const& data, detail::rank_argument peer) {
  detail::require_message<R const>();
  detail::run_one_or_throw(comm, detail::message_to(data, peer.nearest()));
}
template <class Transport, class R>
[[nodiscard]] status try_send(communicator<Transport>& comm, R const& data,
                              detail::rank_argument peer) noexcept {
  detail::require_message<R const>();
  return detail::try_one(comm, detail::message_to(data, peer.nearest()));
}

template <class Transport, class R>
void receive(communicator<Transport>& comm, R&& out, detail::rank_argument peer) {
  detail::require_message<R>();
  detail::run_one_or_throw(comm, detail::message_from(out, peer.nearest()));
}
template <class Transport, class R>
[[nodiscard]] status try_receive(communicator<Transport>& comm, R&& out,
                                 detail::rank_argument peer) noexcept {
  detail::require_message<R>();
  return detail::try_one(comm, detail::message_from(out, peer.nearest()));
}

}  // namespace collx::inline abi_1
