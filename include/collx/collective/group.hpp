// SPDX-License-Identifier: Apache-2.0
// group: several small collectives as one. What a small one costs is its messages, not its bytes, so k of
// them over one packed buffer cost little more than one:
//
//   group g(comm, 64 * 1024);                  packed buffer of so many bytes, symmetric memory
//   g.all_reduce(a, op); g.all_reduce(b, c, op); g.broadcast(d, root); g.all_gather(e, f); ...
//   g.run();                                   all done; the list is empty again
//
// Together go all_reduces of the same element type and operator, broadcasts of the same root and
// all_gathers, whatever order they were listed in. A call that is alone of its kind, or larger than the
// buffer, runs as it is; where the buffer is full another round follows. All ranks list the same calls in
// the same order. The calls of a group are independent: no output is another's input. Buffers are the
// caller's, and the group's from the listing until run() returns. An element of an all_reduce is combined
// as in one of the packed size, whose algorithm may be another than that of its own size: floating-point
// results may round differently (docs/reproducibility.md).
//
// Allocates when made and never again; must not outlive the communicator. Operators have no state. Errors
// as for the collectives: run() throws, try_run() returns the status; a group that has failed is empty.
#pragma once

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"

namespace collx::inline abi_1 {

// `Algorithm`: what all calls of the group are made with.
template <class Transport, class Algorithm = automatic>
class group {
 public:
  // `packed_bytes`: room for the calls that go together, per rank; an all_gather of count elements takes
  // size() * count. `calls_max`: how many calls may be listed. Collective, as communicator::allocate.
  group(communicator<Transport>& comm, std::size_t packed_bytes, std::size_t calls_max = 64)
      : comm_(comm), packed_(comm.template allocate<std::byte>(packed_bytes)), calls_(calls_max) {}
  group(group const&) = delete;
  group& operator=(group const&) = delete;

  template <buffer_like In, class Out, class Op = sum_t>
    requires buffer_like<std::remove_reference_t<Out>>
  void all_reduce(In const& in, Out&& out, Op const& op = {}) {
    using T = element_t<std::remove_reference_t<Out>>;
    static_assert(std::is_empty_v<Op> && std::is_default_constructible_v<Op>,
                  "collx: a group takes operators without state; call all_reduce itself with this one");
    refuse(detail::bind_all_reduce(detail::where(comm_), in, out, op), contract::all_reduce::name);
    list({in.data(), out.data(), out.size() * sizeof(T), &reduce_all<T, Op>, 0});
  }
  template <class InOut, class Op = sum_t>
    requires(buffer_like<std::remove_reference_t<InOut>> && !buffer_like<Op>)
  void all_reduce(InOut&& inout, Op const& op = {}) { all_reduce(inout, inout, op); }

  template <class InOut>
    requires buffer_like<std::remove_reference_t<InOut>>
  void broadcast(InOut&& inout, rank_t root = 0) {
    refuse(detail::bind_broadcast(detail::where(comm_), inout, root), contract::broadcast::name);
    using T = element_t<std::remove_reference_t<InOut>>;
    list({inout.data(), inout.data(), inout.size() * sizeof(T), &broadcast_all, root});
  }

  template <buffer_like In, class Out>
    requires buffer_like<std::remove_reference_t<Out>>
  void all_gather(In const& in, Out&& out) {
    refuse(detail::bind_all_gather(detail::where(comm_), in, out), contract::all_gather::name);
    list({in.data(), out.data(), in.size() * sizeof(element_t<In const>), &gather_all, 0});
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  void run() {
    if (status const outcome = try_run(); outcome != status::ok) {
      if (comm_.failure().code != status::ok) throw error(comm_.failure());
      throw error(outcome, "group: the algorithm does not run on so many ranks (docs/algorithms.md)");
    }
  }

  [[nodiscard]] status try_run() noexcept {
    status outcome = status::ok;
    for (std::size_t i = 0; i < count_ && outcome == status::ok; ++i)
      while (!calls_[i].done && outcome == status::ok) outcome = run_together(i);
    count_ = 0;
    return outcome;
  }

 private:
  // One of the collectives, on whole buffers or on the packed one.
  using perform = status (*)(group&, std::byte const* in, std::byte* out, std::size_t bytes, rank_t root);
  // What goes together has the same `how` and root.
  struct call {
    void const* in = nullptr;
    void* out = nullptr;
    std::size_t bytes = 0;  // of a rank's block
    perform how = nullptr;
    rank_t root = 0;
    bool done = false;
    bool packed = false;  // in this round
    std::size_t at = 0;   // in the packed block
  };

  template <class T, class Op>
  static status reduce_all(group& self, std::byte const* in, std::byte* out, std::size_t bytes, rank_t) {
    std::span const source(reinterpret_cast<T const*>(in), bytes / sizeof(T));
    return try_all_reduce<Algorithm>(self.comm_, source, std::span(reinterpret_cast<T*>(out), source.size()),
                                     Op{});
  }
  static status broadcast_all(group& self, std::byte const*, std::byte* out, std::size_t bytes, rank_t root) {
    return try_broadcast<Algorithm>(self.comm_, std::span(out, bytes), root);
  }
  static status gather_all(group& self, std::byte const* in, std::byte* out, std::size_t bytes, rank_t) {
    std::size_t const all_bytes = bytes * static_cast<std::size_t>(self.comm_.size());
    return try_all_gather<Algorithm>(self.comm_, std::span(in, bytes), std::span(out, all_bytes));
  }

  template <class Arguments>
  static void refuse(Arguments const& args, char const* collective) {
    if (args.fault != nullptr) detail::throw_refusal(collective, args.fault, args.given, args.needed);
  }

  void list(call const& what) {
    if (count_ == calls_.size())
      detail::throw_refusal("group", "too many calls; run() in between, or make it with a larger calls_max",
                            static_cast<std::int64_t>(count_) + 1, static_cast<std::int64_t>(calls_.size()));
    if (what.bytes != 0) calls_[count_++] = what;
  }

  // How many blocks of each rank's size the packed buffer holds.
  [[nodiscard]] std::size_t blocks(call const& c) const noexcept {
    return c.how == &gather_all ? static_cast<std::size_t>(comm_.size()) : 1;
  }

  // One round: the call `first`, and of those that go with it as many as there is room for.
  status run_together(std::size_t first) noexcept {
    call& leader = calls_[first];
    std::size_t const room = packed_.size() / blocks(leader);
    std::size_t used = 0, together = 0;
    for (std::size_t i = first; i < count_; ++i) {
      call& c = calls_[i];
      c.packed = !c.done && c.how == leader.how && c.root == leader.root && c.bytes <= room - used;
      if (!c.packed) continue;
      c.at = used;
      used += c.bytes;
      ++together;
    }
    if (together <= 1 || !leader.packed) {
      leader.done = true;
      return leader.how(*this, static_cast<std::byte const*>(leader.in), static_cast<std::byte*>(leader.out),
                        leader.bytes, leader.root);
    }
    std::byte* const own = packed_.data() + (blocks(leader) == 1 ? 0 : used * index(comm_.rank()));
    for_each_packed(first, [&](call const& c) { std::memcpy(own + c.at, c.in, c.bytes); });
    status const outcome = leader.how(*this, own, packed_.data(), used, leader.root);
    if (outcome != status::ok) return outcome;
    for_each_packed(first, [&](call& c) {
      for (std::size_t b = 0; b < blocks(c); ++b)
        std::memcpy(static_cast<std::byte*>(c.out) + b * c.bytes, packed_.data() + b * used + c.at, c.bytes);
      c.done = true;
    });
    return status::ok;
  }

  template <class F>
  void for_each_packed(std::size_t first, F const& f) noexcept {
    for (std::size_t i = first; i < count_; ++i)
      if (calls_[i].packed) f(calls_[i]);
  }
  [[nodiscard]] static std::size_t index(rank_t rank) noexcept { return static_cast<std::size_t>(rank); }

  communicator<Transport>& comm_;
  symmetric_buffer<std::byte, typename Transport::world> packed_;
  array<call> calls_;
  std::size_t count_ = 0;
};

template <class Transport, class... Rest>
group(communicator<Transport>&, Rest...) -> group<Transport>;

}  // namespace collx::inline abi_1
