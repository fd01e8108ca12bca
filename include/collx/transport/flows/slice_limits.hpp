// SPDX-License-Identifier: Apache-2.0
// How many slices a flow may have under way: by how far away the peer is, and by the collective that they are
// of. As in NCCLX (arXiv:2510.20171): a limit bounds what one collective piles up in front of the others, and
// what a long way needs is too much for a short one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collx/collective/contract.hpp"
#include "collx/core/error.hpp"

namespace collx::inline abi_1::transport::flows {

enum class distance : std::uint8_t {
  host,     // the peer runs on this host
  network,  // it can be reached without a router
  far,
};
inline constexpr int distance_count = 3;
inline constexpr char const* distance_names[distance_count] = {"host", "network", "far"};

// Rules, of which the most special that fits counts: distance and collective, collective, distance, neither.
class slice_limits {
 public:
  static constexpr std::uint32_t limit_max = 16;
  static constexpr int rules_max = 16;

  constexpr slice_limits() = default;

  // "4", or "far=8,all_to_all=2,far/all_to_all=1": rules parted by commas. Throws error (bad_argument) that
  // names `variable`.
  [[nodiscard]] COLLX_COLD static slice_limits parse(char const* variable, char const* text) {
    slice_limits made;
    for (char const* at = text; *at != '\0';) {
      std::size_t const length = std::strcspn(at, ",");
      if (!made.add(at, length)) refuse(variable, text);
      at += length + (at[length] == ',');
    }
    return made;
  }

  // `otherwise`: where no rule fits.
  [[nodiscard]] std::uint32_t of(distance how_far, char const* collective,
                                 std::uint32_t otherwise) const noexcept {
    rule const* best = nullptr;
    for (int i = 0; i < count_; ++i) {
      rule const& each = rules_[i];
      bool const fits = (each.how_far < 0 || each.how_far == static_cast<int>(how_far)) &&
                        (each.collective[0] == '\0' || std::strcmp(each.collective, collective) == 0);
      if (fits && (best == nullptr || each.rank() >= best->rank())) best = &each;
    }
    return best == nullptr ? otherwise : best->limit;
  }

  // Whether it matters which collective it is.
  [[nodiscard]] bool tells_collectives_apart() const noexcept {
    for (int i = 0; i < count_; ++i)
      if (rules_[i].collective[0] != '\0') return true;
    return false;
  }

 private:
  struct rule {
    char collective[32] = {};  // empty: any
    int how_far = -1;          // -1: any
    std::uint32_t limit = 0;
    [[nodiscard]] int rank() const noexcept { return 2 * (collective[0] != '\0') + (how_far >= 0); }
  };

  [[nodiscard]] bool add(char const* at, std::size_t length) {
    if (count_ == rules_max) return false;
    rule made;
    char const* const end = at + length;
    auto const* value = static_cast<char const*>(std::memchr(at, '=', length));
    if (value != nullptr) {
      auto const* slash =
          static_cast<char const*>(std::memchr(at, '/', static_cast<std::size_t>(value - at)));
      char const* const first_end = slash == nullptr ? value : slash;
      made.how_far = distance_named(at, static_cast<std::size_t>(first_end - at));
      if (slash != nullptr && made.how_far < 0) return false;
      char const* const name = slash != nullptr ? slash + 1 : at;
      auto const name_length = static_cast<std::size_t>(value - name);
      if (slash != nullptr || made.how_far < 0) {
        if (name_length >= sizeof made.collective || !is_collective(name, name_length)) return false;
        std::memcpy(made.collective, name, name_length);
      }
    }
    char* stop = nullptr;
    char const* const number = value == nullptr ? at : value + 1;
    if (number == end || *number < '0' || *number > '9') return false;
    unsigned long const limit = std::strtoul(number, &stop, 10);
    if (stop != end || limit < 1 || limit > limit_max) return false;
    made.limit = static_cast<std::uint32_t>(limit);
    rules_[count_++] = made;
    return true;
  }

  [[nodiscard]] static bool is_collective(char const* name, std::size_t length) {
    return contract::any_name([&](char const* known) {
      return std::strlen(known) == length && std::memcmp(known, name, length) == 0;
    });
  }
  [[nodiscard]] static int distance_named(char const* name, std::size_t length) noexcept {
    for (int d = 0; d < distance_count; ++d)
      if (std::strlen(distance_names[d]) == length && std::memcmp(distance_names[d], name, length) == 0)
        return d;
    return -1;
  }

  [[noreturn]] COLLX_COLD static void refuse(char const* variable, char const* text) {
    // Too many rules are a long text, of which the beginning will do: what to write comes behind it.
    constexpr int shown_max = 120;
    char what[400];
    std::snprintf(what, sizeof what,
                  "environment variable %s is \"%.*s%s\"; write at most %d of N, DISTANCE=N, COLLECTIVE=N or "
                  "DISTANCE/COLLECTIVE=N with commas between them, where DISTANCE is host, network or far, "
                  "and N 1 to %u",
                  variable, shown_max, text, std::strlen(text) > shown_max ? "..." : "", rules_max,
                  static_cast<unsigned>(limit_max));
    throw error(status::bad_argument, what);
  }

  rule rules_[rules_max];
  int count_ = 0;
};

}  // namespace collx::inline abi_1::transport::flows
