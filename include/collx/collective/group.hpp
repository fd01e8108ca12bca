// SPDX-License-Identifier: Apache-2.0
// group: several small collectives as one. What a small one costs is its messages, not its bytes, so k of
// them over one packed buffer cost little more than one:
//
//   group g(comm, 64 * 1024);                  packed buffer of so many bytes (the default), symmetric memory
//   g.all_reduce(a, op); g.all_reduce(b, c, op); g.broadcast(d, root); g.all_gather(e, f); ...
//   g.run();                                   all done; the list is empty again
//   auto request = g.start();                  or: returns at once; the list is empty when it is done
//
// Together go all_reduces of the same element type and operator, broadcasts of the same root and
// all_gathers, whatever order they were listed in. A call that is alone of its kind, or larger than the
// buffer, runs as it is; where the buffer is full another round follows. Started, all rounds move at once, so
// they share the buffer, and a call for which it has no room left runs as it is. All ranks list the same
// calls in the same order, and start groups in the same order as their other requests. The calls of a group
// are independent: no output is another's input. Buffers are the caller's, and the group's from the listing
// until run() returns or the request is done. An element of an all_reduce is combined as in one of the packed
// size, whose algorithm may be another than that of its own size: floating-point results may round
// differently (docs/reproducibility.md). Where ranks compare their calls (checking), they compare broadcasts
// and all_gathers as bytes: packed ones may be of several element types.
//
// Allocates when made and never again; must not outlive the communicator, which must not be moved meanwhile:
// a group refers to it where it is. Operators have no state. Errors
// as for the collectives: run() throws, try_run() returns the status, the request has what comes after
// start(); a group that has failed is empty. Nothing is listed while its request is in flight: that throws
// error (bad_argument). Its destructor waits.
#pragma once

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"

namespace collx::inline abi_1 {

template <class Group>
class group_request;

// `Algorithm`: what all calls of the group are made with.
template <class Transport, class Algorithm = default_algorithm>
class group {
 public:
  using endpoint = typename Transport::endpoint;
  using request_type = group_request<group>;

  // `packed_bytes`: room for the calls that go together, per rank; an all_gather of count elements takes
  // size() * count. `calls_max`: how many calls may be listed. Made by every rank, as communicator::allocate
  // is called by every rank.
  explicit group(communicator<Transport>& comm, std::size_t packed_bytes = 64 * 1024,
                 std::size_t calls_max = 64)
      : comm_(comm),
        packed_(comm.template allocate<std::byte>(packed_bytes)),
        calls_(calls_max),
        rounds_(calls_max) {}
  group(group const&) = delete;
  group& operator=(group const&) = delete;
  ~group() {
    if (in_flight_ && !is_of_forked_child(comm_.engine().endpoint())) (void)finish();
  }

  template <class In, class Out, class Op = sum_t>
    requires(buffer_like<std::remove_reference_t<In>> && buffer_like<std::remove_reference_t<Out>>)
  void all_reduce(In&& in, Out&& out, Op const& op = {}) {
    detail::require_listed_buffers_stay<In, Out>();
    using T = element_t<std::remove_reference_t<Out>>;
    static_assert(std::is_empty_v<Op> && std::is_default_constructible_v<Op>,
                  "collx: a group takes operators without state; call all_reduce itself with this one");
    refuse(detail::called_on(comm_, detail::bind_all_reduce(detail::where(comm_), in, out, op)));
    list({in.data(), out.data(), out.size() * sizeof(T), &kind_of<reduce_all<T, Op>>, 0});
  }
  template <class InOut, class Op = sum_t>
    requires(buffer_like<std::remove_reference_t<InOut>> && !buffer_like<Op>)
  void all_reduce(InOut&& inout, Op const& op = {}) {
    detail::require_listed_buffers_stay<InOut>();
    all_reduce(inout, inout, op);
  }

  template <class InOut>
    requires buffer_like<std::remove_reference_t<InOut>>
  void broadcast(InOut&& inout, detail::rank_argument root = 0) {
    detail::require_listed_buffers_stay<InOut>();
    refuse(detail::called_on(comm_, detail::bind_broadcast(detail::where(comm_), inout, root)));
    using T = element_t<std::remove_reference_t<InOut>>;
    list({inout.data(), inout.data(), inout.size() * sizeof(T), &kind_of<broadcast_all>,
          static_cast<rank_t>(root.value)});
  }

  template <class In, class Out>
    requires(buffer_like<std::remove_reference_t<In>> && buffer_like<std::remove_reference_t<Out>>)
  void all_gather(In&& in, Out&& out) {
    detail::require_listed_buffers_stay<In, Out>();
    refuse(detail::called_on(comm_, detail::bind_all_gather(detail::where(comm_), in, out)));
    using T = element_t<std::remove_reference_t<Out>>;
    list({in.data(), out.data(), in.size() * sizeof(T), &kind_of<gather_all>, 0});
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  void run() {
    std::size_t rounds = 0;
    status const outcome = run_rounds(rounds);
    if (outcome == status::ok) return;
    if (comm_.failure().code != status::ok) throw error(comm_.failure());
    // The last round, which is still where it was, was refused: as its call would have been by itself.
    round const& refused = rounds_[rounds - 1];
    call const& leader = calls_[refused.first];
    leader.what->throw_outcome(*this, source(refused), target(refused), refused.bytes, leader.root, outcome);
  }

  [[nodiscard]] status try_run() noexcept {
    std::size_t rounds = 0;
    return run_rounds(rounds);
  }

  // Waits for the last start first; one at a time. Throws error for what an algorithm cannot do, when what
  // was started before that is done.
  [[nodiscard]] request_type start(priority how = priority::normal) {
    (void)finish();
    in_flight_ = true;
    try {
      std::size_t room_begin = 0;
      for (std::size_t i = 0; i < count_; ++i)
        if (!calls_[i].done) room_begin = start_together(i, room_begin, how);
    } catch (...) {
      (void)finish();
      throw;
    }
    return request_type(*this);
  }

 private:
  friend request_type;

  // One of the collectives, on whole buffers or on the packed one: blocking and started.
  struct kind {
    status (*run)(group&, std::byte const* in, std::byte* out, std::size_t bytes, rank_t root) noexcept;
    request<endpoint> (*start)(group&, std::byte const* in, std::byte* out, std::size_t bytes, rank_t root,
                               priority how);
    void (*throw_outcome)(group&, std::byte const* in, std::byte* out, std::size_t bytes, rank_t root,
                          status outcome);
    bool gathers;
  };
  // What goes together has the same kind and root.
  struct call {
    void const* in = nullptr;
    void* out = nullptr;
    std::size_t bytes = 0;  // of a rank's block
    kind const* what = nullptr;
    rank_t root = 0;
    bool done = false;      // or in a round that was started
    std::size_t round = 0;  // which, and where it lies in the packed block
    std::size_t at = 0;
  };
  // Calls that go together, or one that goes alone.
  struct round {
    std::size_t first = 0, calls = 0;
    std::size_t bytes = 0;        // of a rank's packed block
    std::byte* packed = nullptr;  // where the blocks are; null: alone
    request<endpoint> moving{};
  };

  template <class T, class Op>
  struct reduce_all {
    static constexpr bool gathers = false;
    static auto bind(group& self, std::byte const* in, std::byte* out, std::size_t bytes, rank_t) noexcept {
      std::span const source(reinterpret_cast<T const*>(in), bytes / sizeof(T));
      std::span const target(reinterpret_cast<T*>(out), source.size());
      return detail::bind_all_reduce(detail::where(self.comm_), source, target, Op{});
    }
  };
  struct broadcast_all {
    static constexpr bool gathers = false;
    static auto bind(group& self, std::byte const*, std::byte* out, std::size_t bytes, rank_t root) noexcept {
      std::span const data(out, bytes);
      return detail::bind_broadcast(detail::where(self.comm_), data, root);
    }
  };
  struct gather_all {
    static constexpr bool gathers = true;
    static auto bind(group& self, std::byte const* in, std::byte* out, std::size_t bytes, rank_t) noexcept {
      std::span const own(in, bytes);
      std::span const all(out, bytes * index(self.comm_.size()));
      return detail::bind_all_gather(detail::where(self.comm_), own, all);
    }
  };

  template <class What>
  static status run_one(group& self, std::byte const* in, std::byte* out, std::size_t bytes,
                        rank_t root) noexcept {
    auto const args = detail::called_on(self.comm_, What::bind(self, in, out, bytes, root));
    return detail::run<Algorithm>(self.comm_.engine(), args);
  }
  template <class What>
  static request<endpoint> start_one(group& self, std::byte const* in, std::byte* out, std::size_t bytes,
                                     rank_t root, priority how) {
    auto const args = detail::called_on(self.comm_, What::bind(self, in, out, bytes, root));
    return detail::begin<Algorithm>(self.comm_.engine(), args, how);
  }
  template <class What>
  COLLX_COLD static void throw_of_one(group& self, std::byte const* in, std::byte* out, std::size_t bytes,
                                      rank_t root, status outcome) {
    auto const args = detail::called_on(self.comm_, What::bind(self, in, out, bytes, root));
    detail::throw_outcome<Algorithm>(self.comm_.engine(), args, outcome);
  }
  template <class What>
  static constexpr kind kind_of{&run_one<What>, &start_one<What>, &throw_of_one<What>, What::gathers};

  template <class Arguments>
  static void refuse(Arguments const& args) {
    if (args.is_wrong()) detail::throw_wrong(args);
  }

  void list(call const& what) {
    if (in_flight_)
      detail::throw_wrong_argument("group", detail::where(comm_),
                                   "its request is in flight; wait for it before calls are listed",
                                   static_cast<std::int64_t>(count_), 0);
    if (count_ == calls_.size())
      detail::throw_wrong_argument("group", detail::where(comm_),
                                   "too many calls; run() in between, or make it with a larger calls_max",
                                   static_cast<std::int64_t>(count_) + 1,
                                   static_cast<std::int64_t>(calls_.size()));
    if (what.bytes != 0) calls_[count_++] = what;
  }

  // How many blocks of each rank's size the packed buffer holds.
  [[nodiscard]] std::size_t blocks(call const& c) const noexcept {
    return c.what->gathers ? index(comm_.size()) : 1;
  }

  // The next round: the call `first`, and of those that go with it as many as the buffer has room for from
  // `begin` on. Their inputs are packed.
  round& pack(std::size_t first, std::size_t begin) noexcept {
    call& leader = calls_[first];
    std::size_t const number = round_count_++, room = (packed_.size() - begin) / blocks(leader);
    round& made = rounds_[number];
    made = {first, 0, 0, packed_.data() + begin, {}};
    bool const leads = leader.bytes <= room;
    for (std::size_t i = first; leads && i < count_; ++i) {
      call& c = calls_[i];
      if (c.done || c.what != leader.what || c.root != leader.root || c.bytes > room - made.bytes) continue;
      c.done = true;
      c.round = number;
      c.at = made.bytes;
      made.bytes += c.bytes;
      ++made.calls;
    }
    if (made.calls <= 1) {
      leader.done = true;
      leader.round = number;
      made = {first, 1, leader.bytes, nullptr, {}};
      return made;
    }
    std::byte* const own = own_block(made);
    for_each_packed(made, [&](call const& c) { device::copy_cached(own + c.at, c.in, c.bytes); });
    return made;
  }
  void unpack(round const& r) noexcept {
    for_each_packed(r, [&](call const& c) {
      for (std::size_t b = 0; b < blocks(c); ++b)
        device::copy_cached(static_cast<std::byte*>(c.out) + b * c.bytes, r.packed + b * r.bytes + c.at,
                            c.bytes);
    });
  }

  // `rounds`: how many there were; none follows the first that is not ok.
  [[nodiscard]] status run_rounds(std::size_t& rounds) noexcept {
    status outcome = finish();
    for (std::size_t i = 0; i < count_ && outcome == status::ok; ++i)
      while (!calls_[i].done && outcome == status::ok) outcome = run_together(i);
    rounds = round_count_;
    count_ = round_count_ = 0;
    return outcome;
  }

  status run_together(std::size_t first) noexcept {
    round const& r = pack(first, 0);
    call const& leader = calls_[first];
    status const outcome = leader.what->run(*this, source(r), target(r), r.bytes, leader.root);
    if (outcome == status::ok) unpack(r);
    return outcome;
  }

  // Returns where the buffer is free behind it.
  std::size_t start_together(std::size_t first, std::size_t begin, priority how) {
    round& r = pack(first, begin);
    call const& leader = calls_[first];
    std::byte const* const from = source(r);
    std::byte* const to = target(r);
    // Should start throw, there is nothing to unpack.
    std::byte* const packed = std::exchange(r.packed, nullptr);
    r.moving = leader.what->start(*this, from, to, r.bytes, leader.root, how);
    r.packed = packed;
    if (packed == nullptr) return begin;
    std::size_t const end = begin + r.bytes * blocks(leader), line = 64;
    return end + line - 1 < packed_.size() ? (end + line - 1) / line * line : packed_.size();
  }

  // pending, or how the group ended. Everything that is done goes to where it belongs.
  [[nodiscard]] status advance(bool waits) noexcept {
    if (!in_flight_) return comm_.failure().code;
    bool pending = false;
    for (std::size_t k = 0; k < round_count_; ++k) {
      round& r = rounds_[k];
      if (r.calls == 0) continue;  // done
      status const outcome = waits ? r.moving.try_wait() : r.moving.try_test();
      pending = pending || outcome == status::pending;
      if (outcome == status::pending) continue;
      if (outcome == status::ok) unpack(r);
      r.calls = 0;
    }
    if (pending) return status::pending;
    in_flight_ = false;
    count_ = round_count_ = 0;
    return comm_.failure().code;
  }
  status finish() noexcept { return advance(true); }

  template <class F>
  void for_each_packed(round const& r, F const& f) noexcept {
    if (r.packed == nullptr) return;
    std::size_t const number = static_cast<std::size_t>(&r - rounds_.data());
    for (std::size_t i = r.first; i < count_; ++i)
      if (calls_[i].done && calls_[i].round == number) f(calls_[i]);
  }
  [[nodiscard]] std::byte* own_block(round const& r) const noexcept {
    return r.packed + (calls_[r.first].what->gathers ? r.bytes * index(comm_.rank()) : 0);
  }
  [[nodiscard]] std::byte const* source(round const& r) const noexcept {
    return r.packed == nullptr ? static_cast<std::byte const*>(calls_[r.first].in) : own_block(r);
  }
  [[nodiscard]] std::byte* target(round const& r) const noexcept {
    return r.packed == nullptr ? static_cast<std::byte*>(calls_[r.first].out) : r.packed;
  }
  [[nodiscard]] static std::size_t index(rank_t rank) noexcept { return static_cast<std::size_t>(rank); }

  communicator<Transport>& comm_;
  symmetric_buffer<std::byte, typename Transport::world> packed_;
  array<call> calls_;
  array<round> rounds_;
  std::size_t count_ = 0, round_count_ = 0;
  bool in_flight_ = false;
};

template <class Transport, class... Rest>
group(communicator<Transport>&, Rest...) -> group<Transport>;

// A started group; as `request` (communicator.hpp). Belongs to the group, and must not outlive it.
template <class Group>
class group_request {
 public:
  explicit group_request(Group& of) noexcept : of_(&of) {}
  group_request(group_request&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  group_request& operator=(group_request&& other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~group_request() {
    if (of_ != nullptr && !is_of_forked_child(of_->comm_.engine().endpoint())) (void)try_wait();
  }

  [[nodiscard]] bool test() {
    Group* const of = of_;
    status const outcome = try_test();
    if (outcome != status::ok && outcome != status::pending) throw error(of->comm_.failure());
    return outcome == status::ok;
  }
  void wait() {
    Group* const of = of_;
    if (try_wait() != status::ok) throw error(of->comm_.failure());
  }
  [[nodiscard]] status try_test() noexcept { return advance(false); }
  [[nodiscard]] status try_wait() noexcept { return advance(true); }

 private:
  [[nodiscard]] status advance(bool waits) noexcept {
    if (of_ == nullptr) return status::ok;
    status const outcome = of_->advance(waits);
    if (outcome != status::pending) of_ = nullptr;
    return outcome;
  }

  Group* of_;
};

}  // namespace collx::inline abi_1
