// SPDX-License-Identifier: Apache-2.0
// What a world over TCP is made with. Every rank must agree on it, but for `slices`; of staging memory rank
// 0's size holds for all that meet over a network.
#pragma once

#include "collx/net/protection.hpp"
#include "collx/transport/flows/flow_choice.hpp"
#include "collx/transport/flows/slice_limits.hpp"
#include "collx/transport/flows/slice_window.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::transport {

struct tcp_settings {
  // Of one lane to one peer, that the receiver has not read: its credit; and how many of them may be large.
  static constexpr std::uint32_t messages_in_flight = 64;
  static constexpr std::uint32_t large_messages_in_flight = 16;
  // Up to how many bytes a message is small, where the longest has `longest_bytes`. A receipt costs a root as
  // much as a third of sending 8 KiB: up to 32 KiB, if that is a sixteenth of the longest. (With 4 KiB a
  // broadcast of 8 to 32 KiB takes 1.03 to 1.04 of the time.)
  [[nodiscard]] static constexpr std::size_t small_bytes_max(std::size_t longest_bytes) noexcept {
    std::size_t const share = longest_bytes / 16;
    return share < 4096 ? 4096 : share > 32768 ? 32768 : share;
  }

  settings common;
  flows::flow_limits limits{};   // COLLX_TCP_FLOWS, COLLX_TCP_SLICE_BYTES
  flows::slice_limits slices{};  // COLLX_TCP_SLICES: limits by distance and collective; need not agree
  bool checks = false;           // COLLX_TCP_CHECK: 1: frames carry a CRC-32C, which receivers demand
  bool tls = false;              // COLLX_TLS: 1: connections are encrypted; needs a secret

  // `common.staging_bytes` where COLLX_STAGING_BYTES is not set: as it is best for so many ranks. Fragments
  // are larger than between processes of one host, since a system call costs as much as copying tens of
  // kilobytes. Two ranks send whole ones: with 4 MiB instead of 1, under the congestion control bbr, an
  // all_reduce of 8 MiB took 1.5 times as long and a broadcast 2. Of four, each sends parts of them: with 1
  // MiB instead of 2, under reno, a broadcast took 1.35 times as long.
  static constexpr std::size_t by_ranks = 0;
  static constexpr std::size_t staging_per_rank = std::size_t{1} << 19, staging_max = std::size_t{4} << 20;

  // The same with sizes that suit a world of so many ranks, all of whom must ask for the same. `paced`:
  // whether their connections are (net::are_paced); true where nobody knows. Where they are not, two ranks do
  // better with 2 MiB than with 1: under reno an all_reduce, all_to_all or broadcast of 8 and 32 MiB takes
  // 0.92 to 1.00 of its time. With 4 MiB it takes longer again.
  [[nodiscard]] tcp_settings for_ranks(rank_t ranks, bool paced = true) const noexcept {
    tcp_settings chosen = *this;
    if (common.staging_bytes != by_ranks) {
      // In whole pages, as settings::checked() has it.
      if (common.staging_bytes >= settings::staging_min && common.staging_bytes <= settings::staging_max)
        chosen.common.staging_bytes = (common.staging_bytes + 4095) / 4096 * 4096;
      return chosen;
    }
    std::size_t const each = paced || ranks != 2 ? staging_per_rank : 2 * staging_per_rank;
    std::size_t const wanted = static_cast<std::size_t>(ranks) * each;
    chosen.common.staging_bytes = wanted < staging_max ? wanted : staging_max;
    return chosen;
  }

  // Throws error (bad_argument) naming the variable that is wrong.
  [[nodiscard]] COLLX_COLD static tcp_settings from_environment() {
    tcp_settings chosen;
    chosen.common = settings::from_environment();
    if (std::getenv("COLLX_STAGING_BYTES") == nullptr) chosen.common.staging_bytes = by_ranks;
    chosen.limits.flows = static_cast<int>(environment::number("COLLX_TCP_FLOWS", 1, 1, flows::flows_max));
    // With one connection there is nobody to share a message with.
    std::int64_t const slice_default = chosen.limits.flows == 1 ? std::int64_t{1} << 30 : 256 * 1024;
    chosen.limits.slice_bytes = static_cast<std::uint32_t>(
        environment::number("COLLX_TCP_SLICE_BYTES", slice_default, 16 * 1024, std::int64_t{1} << 30));
    if (char const* const rules = std::getenv("COLLX_TCP_SLICES"))
      chosen.slices = flows::slice_limits::parse("COLLX_TCP_SLICES", rules);
    (void)chosen.checked(size_max, "COLLX_TCP_SLICE_BYTES", "COLLX_STAGING_BYTES");
    chosen.checks = environment::number("COLLX_TCP_CHECK", 0, 0, 1) != 0;
    chosen.tls = net::asks_for_tls();
    return chosen;
  }

  [[nodiscard]] net::protection protection() const noexcept {
    using net::protection;
    if (tls) return checks ? protection::tls_and_checksums : protection::tls;
    return checks ? protection::checksums : protection::none;
  }

  // As worlds of so many ranks take them, whoever has made them. Throws error (bad_argument) for what no
  // message could be sent with, with the names of what must change: those of variables, or the members.
  COLLX_COLD tcp_settings const& checked(rank_t ranks,
                                         char const* slice_name = "tcp_settings::limits.slice_bytes",
                                         char const* staging_name = "common.staging_bytes") const {
    if (limits.flows < 1 || limits.flows > flows::flows_max)
      throw_error(status::bad_argument, "tcp_settings::limits.flows is %d; set it to 1 to %d", limits.flows,
                  flows::flows_max);
    if (limits.slices_per_flow == 0)
      throw_error(status::bad_argument, "tcp_settings::limits.slices_per_flow is 0; set it to at least 1");
    std::size_t const staging = for_ranks(ranks).common.staging_bytes;
    if (staging < settings::staging_min || staging > settings::staging_max)
      throw_error(status::bad_argument, "%s is %zu; set it to %zu to %zu", staging_name, staging,
                  settings::staging_min, settings::staging_max);
    require_window(staging, slice_name, staging_name);
    return *this;
  }

 private:
  // A receiver remembers so many slices of a channel that came out of order, and takes a rank that sends more
  // for one that is lost.
  COLLX_COLD void require_window(std::size_t staging, char const* slice_name,
                                 char const* staging_name) const {
    if (limits.slice_bytes == 0)
      throw_error(status::bad_argument, "%s is 0; set it to at least 1", slice_name);
    // Those of one connection come in order.
    if (limits.flows == 1) return;
    auto const fits = [&](std::size_t slice_bytes) {
      return slices_under_way(staging / 2, slice_bytes) <= flows::slice_window::capacity;
    };
    if (fits(limits.slice_bytes)) return;
    std::size_t too_small = limits.slice_bytes, enough = staging / 2;
    while (enough - too_small > 1) {
      std::size_t const middle = too_small + (enough - too_small) / 2;
      (fits(middle) ? enough : too_small) = middle;
    }
    throw_error(status::bad_argument, "%s is %u; set it to at least %zu, or %s (%zu) to less", slice_name,
                limits.slice_bytes, enough, staging_name, staging);
  }

  // As many as there may be with all credit used, of messages that are as long as they may be.
  [[nodiscard]] static constexpr std::size_t slices_under_way(std::size_t longest_bytes,
                                                              std::size_t slice_bytes) noexcept {
    auto const of = [&](std::size_t bytes) { return (bytes + slice_bytes - 1) / slice_bytes; };
    std::size_t const small_bytes = small_bytes_max(longest_bytes);
    if (longest_bytes <= small_bytes) return messages_in_flight * of(longest_bytes);
    return large_messages_in_flight * of(longest_bytes) +
           (messages_in_flight - large_messages_in_flight) * of(small_bytes);
  }
};

}  // namespace collx::inline abi_1::transport
