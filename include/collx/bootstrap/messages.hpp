// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other while they meet, byte by byte. Every message has a length that both sides know
// beforehand; numbers are in the order of the network.
#pragma once

#include "collx/core/processors.hpp"
#include "collx/net/address.hpp"
#include "collx/net/bytes.hpp"

namespace collx::inline abi_1::bootstrap {

// How a meeting goes on.
enum class news_kind : std::uint32_t {
  good = 1,              // what was asked for follows
  never_came,            // `rank` did, and with it `count` ranks in all
  left,                  // `rank` did, before everybody had come
  rank_taken,            // another process is `rank` already
  never_reached_parent,  // all have come, but `rank`, and with it `count` ranks in all, not to its parent
};

struct news {
  news_kind kind = news_kind::good;
  rank_t rank = no_rank;
  std::uint32_t count = 0;
  net::address at = {};  // where a rank that had come is, or was; of version 0: not known

  static constexpr std::size_t bytes_count = 16 + net::address::wire_bytes;

  void encode(std::byte* out) const noexcept {
    net::put_u32(out, static_cast<std::uint32_t>(kind));
    net::put_u32(out + 4, static_cast<std::uint32_t>(rank));
    net::put_u32(out + 8, count);
    net::put_u32(out + 12, 0);
    at.encode(out + 16);
  }
  // False for anything that encode() does not write.
  [[nodiscard]] static bool decode(std::byte const* in, news& out) noexcept {
    std::uint32_t const kind = net::get_u32(in);
    if (kind < 1 || kind > 5 || net::get_u32(in + 12) != 0) return false;
    bool has_address = false;
    for (std::size_t i = 16; i < bytes_count; ++i) has_address = has_address || in[i] != std::byte{0};
    net::address at;
    if (has_address && !net::address::decode(in + 16, at)) return false;
    auto const rank = static_cast<rank_t>(net::get_u32(in + 4));
    if (rank < no_rank) return false;
    out = {static_cast<news_kind>(kind), rank, net::get_u32(in + 8), at};
    return true;
  }
};

// A rank's line of the table that everybody gets: where its gate is, on which host, and which processors of
// which machine it may use.
struct table_entry {
  net::address gate;
  std::uint64_t host = 0, machine = 0;
  processor_set::summary processors{};

  static constexpr std::size_t bytes_count = net::address::wire_bytes + 24;

  friend bool operator==(table_entry const&, table_entry const&) = default;

  void encode(std::byte* out) const noexcept {
    gate.encode(out);
    net::put_u64(out + net::address::wire_bytes, host);
    net::put_u64(out + net::address::wire_bytes + 8, machine);
    net::put_u32(out + net::address::wire_bytes + 16, processors.count);
    net::put_u32(out + net::address::wire_bytes + 20, processors.mark);
  }
  [[nodiscard]] static bool decode(std::byte const* in, table_entry& out) noexcept {
    out.host = net::get_u64(in + net::address::wire_bytes);
    out.machine = net::get_u64(in + net::address::wire_bytes + 8);
    out.processors = {net::get_u32(in + net::address::wire_bytes + 16),
                      net::get_u32(in + net::address::wire_bytes + 20)};
    return net::address::decode(in, out.gate);
  }
};

// To the store: who I am is in the introduction; this is where I am.
struct registration {
  table_entry entry;
  net::address tree_gate;  // where this rank's children in the tree will find it

  static constexpr std::size_t bytes_count = table_entry::bytes_count + net::address::wire_bytes;

  friend bool operator==(registration const&, registration const&) = default;

  void encode(std::byte* out) const noexcept {
    entry.encode(out);
    tree_gate.encode(out + table_entry::bytes_count);
  }
  [[nodiscard]] static bool decode(std::byte const* in, registration& out) noexcept {
    return table_entry::decode(in, out.entry) &&
           net::address::decode(in + table_entry::bytes_count, out.tree_gate);
  }
};

// The store's first answer, at once.
struct receipt {
  news what;
  std::uint64_t session = 0;  // this meeting's number, which rank 0 drew; it tells the gates of jobs apart
  std::uint64_t rest_us = 0;  // how long rank 0 goes on waiting
  std::uint64_t told = 0;     // by rank 0, for all: network_settings::told

  static constexpr std::size_t bytes_count = news::bytes_count + 24;

  void encode(std::byte* out) const noexcept {
    what.encode(out);
    net::put_u64(out + news::bytes_count, session);
    net::put_u64(out + news::bytes_count + 8, rest_us);
    net::put_u64(out + news::bytes_count + 16, told);
  }
  [[nodiscard]] static bool decode(std::byte const* in, receipt& out) noexcept {
    out.session = net::get_u64(in + news::bytes_count);
    out.rest_us = net::get_u64(in + news::bytes_count + 8);
    out.told = net::get_u64(in + news::bytes_count + 16);
    return news::decode(in, out.what);
  }
};

// The store's second answer, as soon as the parent has registered.
struct direction {
  news what;
  net::address parent;  // its tree gate; only with good news

  static constexpr std::size_t bytes_count = news::bytes_count + net::address::wire_bytes;

  void encode(std::byte* out) const noexcept {
    what.encode(out);
    parent.encode(out + news::bytes_count);
  }
  [[nodiscard]] static bool decode(std::byte const* in, direction& out) noexcept {
    return news::decode(in, out.what) &&
           (out.what.kind != news_kind::good || net::address::decode(in + news::bytes_count, out.parent));
  }
};

}  // namespace collx::inline abi_1::bootstrap
