// SPDX-License-Identifier: Apache-2.0
// exchange: sends and receives between any ranks, put together in a list that then moves all at once.
//
//   exchange ex(comm);                        room for 2 messages per rank; exchange(comm, n): for n
//   ex.send(data, peer);  ex.receive(out, peer);  ...
//   ex.run();                                 blocks; as often as wanted
//   auto request = ex.start();                returns at once
//
// The k-th message of a rank to a peer is the k-th one that the peer receives from it, of the same number
// of bytes; apart from that the order in which ranks list their messages means nothing, and cannot
// deadlock. Nor does what one rank does not take yet keep messages from others. Any sizes, 0 included (such a
// message is sent as well); several messages to one peer; messages of a rank to itself. Buffers belong to the
// caller. They must not overlap, but for sends among each other, and are the library's while the exchange
// runs. The exchange allocates when it is made and never again; it must not outlive the communicator. Nothing
// is listed or taken off while its request is in flight: that throws error (bad_argument). Its destructor and
// the next start() wait for that.
//
// run() concerns the ranks whose messages it moves: nobody else need call anything. It is done when all
// receives are complete and all data sent may be changed, which may be before the peers have received it.
// start() is a collective: all ranks of the communicator start an exchange, if need be an empty one, in the
// same order as their other requests.
//
// Errors: send(), receive() throw error (bad_argument) naming the message; a message of another size than
// expected is status::mismatch on the receiver, with the peer and both numbers of bytes: that expected, and
// that sent, or, of a message longer than expected and than one piece of it (an eighth of the staging memory
// or less), what of it had come by then. run() throws, try_run() returns the status, and the request has what
// comes after start().
#pragma once

#include "collx/collective/forms.hpp"
#include "collx/exec/exchange_executor.hpp"

namespace collx::inline abi_1 {
namespace detail {

// The list of an exchange.
struct listed_messages {
  exec::message_chains order{};
  exec::message const* all = nullptr;

  [[nodiscard]] exec::message_chains const& chains() const noexcept { return order; }
  [[nodiscard]] exec::message const& operator[](std::int32_t i) const noexcept { return all[i]; }
};

template <class List, class Endpoint>
[[nodiscard]] auto make_exchange(exec::engine<Endpoint>& engine, int lane, List const& list) noexcept {
  return exec::exchange_executor<List, Endpoint>(engine.endpoint(), lane, engine.work(lane), list);
}

// Before the first list of messages on a communicator.
template <class Endpoint>
void reserve_chains(exec::engine<Endpoint>& engine) {
  for (int lane = 0; lane < Endpoint::lane_count; ++lane) engine.work(lane).reserve_chains();
}

template <class R>
constexpr void require_message() noexcept {
  static_assert(
      buffer_like<std::remove_reference_t<R>>,
      "collx: a message lies in a buffer, which has data(), size() and trivially copyable elements; "
      "write std::span(pointer, count), std::span(array), std::span(&value, 1)");
}

template <class R>
[[nodiscard]] exec::message message_to(R& data, rank_t peer) noexcept {
  // Only read.
  return {reinterpret_cast<std::byte*>(const_cast<element_t<R>*>(data.data())),
          exec::bytes_or_most(data.size(), sizeof(element_t<R>)), peer, true};
}
template <class R>
[[nodiscard]] exec::message message_from(R& out, rank_t peer) noexcept {
  static_assert(!std::is_const_v<std::remove_pointer_t<decltype(out.data())>>,
                "collx: the output must not be const");
  return {reinterpret_cast<std::byte*>(out.data()), exec::bytes_or_most(out.size(), sizeof(element_t<R>)),
          peer, false};
}

[[nodiscard]] inline bool overlap(exec::message const& a, exec::message const& b) noexcept {
  auto const at = reinterpret_cast<std::uintptr_t>(a.data), other = reinterpret_cast<std::uintptr_t>(b.data);
  return a.bytes != 0 && b.bytes != 0 && at < other + b.bytes && other < at + a.bytes;
}

// What is wrong with the memory of a message; null: nothing.
[[nodiscard]] constexpr char const* fault_of_memory(exec::message const& what) noexcept {
  if (what.bytes > PTRDIFF_MAX) return absurd_count;
  return what.data == nullptr && what.bytes != 0 ? "its memory is null, and must have elements" : nullptr;
}

// Why messages cannot be listed. `number`: which of the list it is.
struct refused_message {
  exec::message const& what;
  std::int32_t number;
};

[[noreturn]] COLLX_COLD inline void throw_bad_message(refused_message const& bad, problem const& where,
                                                      char const* reason) {
  throw_error(status::bad_argument, "exchange on rank %d of %d: message %d, %zu bytes %s rank %d, %s",
              where.rank, where.size, bad.number, bad.what.bytes, bad.what.outgoing ? "to" : "from",
              bad.what.peer, reason);
}

[[noreturn]] COLLX_COLD inline void throw_overlap(refused_message const& bad, problem const& where,
                                                  refused_message const& with) {
  char reason[200];
  std::snprintf(reason, sizeof reason,
                "overlaps message %d, %zu bytes %s rank %d; give every receive memory of its own",
                with.number, with.what.bytes, with.what.outgoing ? "to" : "from", with.what.peer);
  throw_bad_message(bad, where, reason);
}

}  // namespace detail

template <class Transport>
class exchange {
 public:
  using endpoint = typename Transport::endpoint;

  // Throws error (bad_argument) for a negative capacity.
  explicit exchange(communicator<Transport>& comm) : exchange(comm, 2 * comm.size()) {}
  exchange(communicator<Transport>& comm, std::int32_t capacity)
      : engine_(comm.engine()),
        at_(comm.standing()),
        order_(comm.size(), capacity < 0 ? 0 : capacity),
        messages_(static_cast<std::size_t>(capacity < 0 ? 0 : capacity)) {
    if (capacity < 0)
      detail::throw_wrong_argument("exchange", at_.where, "the capacity must not be negative", capacity, 0);
    detail::reserve_chains(engine_);
  }
  exchange(exchange const&) = delete;
  exchange& operator=(exchange const&) = delete;
  ~exchange() {
    if (started_ && !is_of_forked_child(engine_.endpoint())) finish();
  }

  template <class R>
  void send(R&& data, detail::rank_argument peer) {
    detail::require_message<R>();
    detail::require_listed_buffers_stay<R>();
    append(detail::message_to(data, peer.nearest()));
  }
  template <class R>
  void receive(R&& out, detail::rank_argument peer) {
    detail::require_message<R>();
    detail::require_listed_buffers_stay<R>();
    append(detail::message_from(out, peer.nearest()));
  }
  [[nodiscard]] std::int32_t size() const noexcept { return order_.count(); }
  // Takes all messages off the list.
  void clear() {
    require_at_rest();
    order_.clear();
  }

  void run() {
    if (try_run() != status::ok) throw error(engine_.failure());
  }
  [[nodiscard]] status try_run() noexcept {
    auto const list = messages();
    return engine_.run_uncounted(
        [&]() noexcept { return describe(); },
        [&](int lane) noexcept { return detail::make_exchange(engine_, lane, list); });
  }
  [[nodiscard]] request<endpoint> start(priority how = priority::normal) {
    finish();
    auto const list = messages();
    // By value: it is called when the lane is free.
    auto const make = [&engine = engine_, list](int lane) noexcept {
      return detail::make_exchange(engine, lane, list);
    };
    started_ = true;
    ticket_ = engine_.start(describe(), make, how);
    return {engine_, ticket_};
  }

 private:
  [[nodiscard]] exec::call describe() const noexcept {
    return {.collective = "exchange", .algorithm = "all at once", .at = at_};
  }
  [[nodiscard]] detail::listed_messages messages() const noexcept {
    return {order_.chains(), messages_.data()};
  }
  void finish() noexcept {
    if (std::exchange(started_, false)) (void)engine_.wait(ticket_);
  }

  // The list is read until the request has ended.
  void require_at_rest() const {
    if (started_ && engine_.holds(ticket_))
      detail::throw_wrong_argument("exchange", at_.where,
                                   "its request is in flight; wait for it before its list is changed",
                                   order_.count(), detail::said_already);
  }
  // Listed messages have the numbers that ranks have where the lanes are.
  [[nodiscard]] exec::message as_given(exec::message listed) const noexcept {
    axis const& line = at_.along;
    if (!line.is_whole()) listed.peer = (listed.peer - line.base) / line.pitch;
    return listed;
  }
  void append(exec::message const& what) {
    require_at_rest();
    problem const& where = at_.where;
    std::int32_t const number = order_.count();
    if (char const* const fault = detail::fault_of_memory(what); fault != nullptr)
      detail::throw_bad_message({what, number}, where, fault);
    if (what.peer < 0 || what.peer >= where.size)
      detail::throw_bad_message({what, number}, where, "names no rank of the communicator");
    if (static_cast<std::size_t>(number) == messages_.size())
      detail::throw_bad_message({what, number}, where,
                                "is one more than the exchange was made for; give its constructor a larger "
                                "capacity");
    for (std::int32_t i = 0; i < number; ++i) {
      exec::message const& other = messages_[static_cast<std::size_t>(i)];
      if (!(what.outgoing && other.outgoing) && detail::overlap(what, other))
        detail::throw_overlap({what, number}, where, {as_given(other), i});
    }
    exec::message& listed = messages_[static_cast<std::size_t>(number)] = what;
    listed.peer = at_.along.rank_of(what.peer);
    order_.append(what.peer, what.outgoing);
  }

  exec::engine<endpoint>& engine_;
  exec::standing at_;
  exec::message_order order_;
  array<exec::message> messages_;
  exec::ticket ticket_{};
  bool started_ = false;
};

}  // namespace collx::inline abi_1
