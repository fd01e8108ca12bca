// SPDX-License-Identifier: Apache-2.0
// One collective in several lanes at once: the vector is cut in equal parts, and each is a request of its
// own, so that they move independently. What a transport with several independent links between two ranks
// (rails, sockets) gains by; where memory is shared, one lane is as fast.
//
//   all_reduce<multi_lane<algo::ring, 2>>(comm, v, sum)
//
// For the blocking forms of collectives whose vector is one block (all_reduce, broadcast, reduce, the
// scans). More parts than the communicator has lanes for started requests queue behind each other. Include
// this header where it is used; the others know nothing of it.
#pragma once

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
  std::size_t const each = ((count + static_cast<std::size_t>(parts) - 1) / static_cast<std::size_t>(parts) +
                            line - 1) / line * line;
  auto const at = [&](int part) {
    std::size_t const begin = static_cast<std::size_t>(part) * each;
    return begin < count ? begin : count;
  };
  return {at(i), at(i + 1)};
}

}  // namespace detail

template <class Contract, class T, class Op, class Endpoint, class Algorithm, int Lanes>
struct compiled_collective<Contract, T, Op, Endpoint, multi_lane<Algorithm, Lanes>> {
  static_assert(!Contract::sharded,
                "collx: multi_lane cuts vectors of one block; this collective's vector has one per rank");
  using engine_type = exec::engine<Endpoint>;
  using arguments = detail::invocation<Contract, T, Op>;
  using part_type = compiled_collective<Contract, T, Op, Endpoint, Algorithm>;

  // Throws error. Parts that were started before another failed have ended when it does.
  static void run_or_throw(engine_type& engine, arguments const& args) {
    if (args.fault != nullptr || args.count == 0) return part_type::run_or_throw(engine, args);
    request<Endpoint> parts[Lanes];
    for (int i = 0; i < Lanes; ++i)
      parts[i] = part_type::begin(engine, part(args, i), priority::normal);
    for (request<Endpoint>& each : parts) each.wait();
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

 private:
  [[nodiscard]] static arguments part(arguments args, int i) noexcept {
    auto const [begin, end] = detail::part_of_lanes(args.count, sizeof(T), i, Lanes);
    if (args.input != nullptr) args.input += begin;
    if (args.output != nullptr) args.output += begin;
    args.count = end - begin;
    return args;
  }
};

}  // namespace collx::inline abi_1
