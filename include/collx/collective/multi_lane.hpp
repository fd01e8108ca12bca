// SPDX-License-Identifier: Apache-2.0
// One collective in several lanes at once: the vector is cut in equal parts, and each is a request of its
// own, so that they move independently. What a transport with several independent links between two ranks
// (rails, sockets) gains by; where memory is shared, one lane is as fast.
//
//   all_reduce<multi_lane<algo::ring, 2>>(comm, v, sum)
//   auto request = start::all_gather<multi_lane<algo::ring, 2>>(comm, in, out)
//
// A vector of one block is cut in as many parts; of one with a block per rank (all_gather, ...) every block
// is, and a lane moves the same part of all of them. For all forms of the collectives with equal blocks. More
// parts than the communicator has lanes for started requests queue behind each other; urgent ones all do, on
// their one lane. All ranks name the same number of lanes: parts that differ are status::mismatch, found by
// comparing calls (checking_level::communication) or when a message comes. Include this header where it is
// used; the others know nothing of it.
#pragma once

#include <utility>

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

template <class Algorithm, int Lanes>
struct multi_lane {
  static_assert(Lanes >= 1 && Lanes <= 8, "collx: multi_lane takes 1 to 8 lanes");
};

namespace detail {

// Part i of `parts`, beginning on a whole cache line of the vector: elements [begin, end).
struct lane_part {
  std::size_t begin, end;
};

[[nodiscard]] constexpr lane_part part_of_lanes(std::size_t count, std::size_t element_bytes, int i,
                                                int parts) {
  std::size_t const line = element_bytes < 64 ? 64 / element_bytes : 1;
  std::size_t const each =
      ((count + static_cast<std::size_t>(parts) - 1) / static_cast<std::size_t>(parts) + line - 1) / line *
      line;
  auto const at = [&](int part) {
    std::size_t const begin = static_cast<std::size_t>(part) * each;
    return begin < count ? begin : count;
  };
  return {at(i), at(i + 1)};
}

// What a lane does: the collective, on blocks that are parts of larger ones.
template <class Contract>
struct on_parts_of_blocks : Contract {
  using whole = Contract;
  static constexpr bool blocks_apart = true;
};
template <class Contract>
using part_contract = std::conditional_t<Contract::sharded, on_parts_of_blocks<Contract>, Contract>;

}  // namespace detail

// Several requests, or persistent collectives (`Each`), as one.
template <class Each, int Lanes>
class in_lanes {
 public:
  template <class Make>
  explicit in_lanes(Make const& make) : in_lanes(make, std::make_integer_sequence<int, Lanes>()) {}

  // Of persistent ones: starts all parts.
  void start()
    requires requires(Each& each) { each.start(); }
  {
    for (Each& each : parts_) each.start();
  }
  // As those of `request`. When one part has failed the others are waited for first: the buffers are theirs.
  [[nodiscard]] bool test() {
    bool done = true;
    try {
      for (Each& each : parts_) done = each.test() && done;
    } catch (...) {
      (void)try_wait();
      throw;
    }
    return done;
  }
  void wait() {
    try {
      for (Each& each : parts_) each.wait();
    } catch (...) {
      (void)try_wait();
      throw;
    }
  }
  [[nodiscard]] status try_test() noexcept {
    status all = status::ok;
    for (Each& each : parts_) {
      status const one = each.try_test();
      if (one != status::ok && one != status::pending) {
        (void)try_wait();
        return one;
      }
      if (one == status::pending) all = one;
    }
    return all;
  }
  [[nodiscard]] status try_wait() noexcept {
    status all = status::ok;
    for (Each& each : parts_)
      if (status const one = each.try_wait(); all == status::ok) all = one;
    return all;
  }
  // Of persistent ones: of the first part; others may be shorter by a cache line, and then choose another.
  [[nodiscard]] char const* algorithm() const noexcept
    requires requires(Each const& each) { each.algorithm(); }
  {
    return parts_[0].algorithm();
  }

 private:
  template <class Make, int... I>
  in_lanes(Make const& make, std::integer_sequence<int, I...>) : parts_{make(I)...} {}

  Each parts_[static_cast<std::size_t>(Lanes)];
};

template <class Contract, class T, class Op, class Endpoint, class Algorithm, int Lanes>
struct compiled_collective<Contract, T, Op, Endpoint, multi_lane<Algorithm, Lanes>> {
  static_assert(
      !detail::is_uneven<Contract>,
      "collx: multi_lane cuts blocks that are equally large; this collective's have counts of their own");
  using engine_type = exec::engine<Endpoint>;
  using arguments = detail::invocation<Contract, T, Op>;
  using whole_type = compiled_collective<Contract, T, Op, Endpoint, Algorithm>;
  using part_arguments = detail::invocation<detail::part_contract<Contract>, T, Op>;
  using part_type = compiled_collective<detail::part_contract<Contract>, T, Op, Endpoint, Algorithm>;

  // Throws error. Parts that were started before another failed have ended when it does.
  static void run_or_throw(engine_type& engine, arguments const& args) {
    if (args.is_wrong() || args.count == 0) return whole_type::run_or_throw(engine, args);
    begin(engine, args, priority::normal).wait();
  }

  // As above, noexcept. Arguments and algorithms are found out by the first part: the others are alike.
  [[nodiscard]] static status run(engine_type& engine, arguments const& args) noexcept {
    try {
      run_or_throw(engine, args);
      return status::ok;
    } catch (error const& failure) {
      return failure.code();
    }
  }

  [[nodiscard]] static auto begin(engine_type& engine, arguments const& args, priority how) {
    return in_lanes<request<Endpoint>, Lanes>(
        [&](int lane) { return part_type::begin(engine, part(args, lane), how); });
  }

  [[nodiscard]] static auto prepare(engine_type& engine, arguments const& args, priority how) {
    using each = decltype(part_type::prepare(engine, part(args, 0), how));
    return in_lanes<each, Lanes>([&](int lane) { return part_type::prepare(engine, part(args, lane), how); });
  }

 private:
  [[nodiscard]] static part_arguments part(arguments const& args, int i) noexcept {
    auto const [begin, end] = detail::part_of_lanes(args.count, sizeof(T), i, Lanes);
    part_arguments cut{args.input == nullptr ? nullptr : args.input + begin,
                       args.output == nullptr ? nullptr : args.output + begin,
                       end - begin,
                       args.root,
                       args.op,
                       args.in_place};
    if constexpr (Contract::sharded) cut.tables.pitch = args.count;
    cut.at = args.at;
    cut.fault = args.fault;
    cut.given = args.given;
    cut.needed = args.needed;
    return cut;
  }
};

}  // namespace collx::inline abi_1
