// SPDX-License-Identifier: Apache-2.0
// The staging ring against a model, over random payloads, fragments and late readers: memory that
// somebody may still read is never handed out, and what fits is never refused for ever.
#include "collx/transport/staging_ring.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "device/line_speed.hpp"

namespace {

using collx::rank_t;
using collx::transport::staging_ring;

constexpr std::size_t capacity = 16 * 1024;
// What small payloads that are kept close turn round after, whatever the capacity.
constexpr std::size_t close_bytes = staging_ring::mark_count * 4096;

struct payload {
  std::size_t begin, bytes;
  rank_t reader;
  std::uint64_t letter;  // the number, at its reader, of the letter that refers to it
};

// One sender, some readers that acknowledge when they like.
class model {
 public:
  model(std::uint64_t seed, rank_t readers, std::size_t capacity_bytes)
      : random_(seed),
        capacity_(capacity_bytes),
        memory_(capacity_ + 64),
        sent_(static_cast<std::size_t>(readers)),
        acknowledged_(static_cast<std::size_t>(readers)),
        snapshots_(staging_ring::mark_count * static_cast<std::size_t>(readers)) {
    base_ = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
    ring_.attach(base_, capacity_, snapshots_.data(), readers);
  }

  // A fragment of payloads that together, rounded to lines, fit half of the ring: the geometry's rule.
  void send_fragment() {
    std::size_t budget = capacity_ / 2;
    for (std::uint32_t i = 0, count = 1 + random_.below(6); i < count; ++i) {
      std::size_t const most = random_.below(3) == 0 ? budget : std::min<std::size_t>(budget, 700);
      if (most < 64) break;
      std::size_t const bytes = 1 + random_.below(static_cast<std::uint32_t>(most / 64 * 64));
      budget -= (bytes + 63) / 64 * 64;
      send(bytes);
    }
    ring_.mark([&](rank_t peer) { return sent_[static_cast<std::size_t>(peer)]; });
  }

 private:
  void send(std::size_t bytes) {
    std::byte* place = nullptr;
    for (int attempts = 0; (place = allocate(bytes)) == nullptr; ++attempts) {
      // Whatever was sent in earlier fragments is read some time: then it must fit.
      REQUIRE(attempts < 100'000);
      REQUIRE(std::any_of(unread_.begin(), unread_.end(),
                          [&](payload const& p) { return p.reader == ring_.held_by(); }));
      read_one();
    }
    REQUIRE(place >= base_);
    REQUIRE(place + bytes <= base_ + capacity_);
    REQUIRE(reinterpret_cast<std::uintptr_t>(place) % 64 == 0);
    auto const begin = static_cast<std::size_t>(place - base_);
    for (payload const& unread : unread_)
      REQUIRE((begin + bytes <= unread.begin || unread.begin + unread.bytes <= begin));
    // One payload may go to several readers.
    for (std::size_t r = 0; r < sent_.size(); ++r)
      if (r == 0 || random_.below(2) == 0)
        unread_.push_back({begin, bytes, static_cast<rank_t>(r), ++sent_[r]});
    while (random_.below(3) != 0) read_one();
  }

  std::byte* allocate(std::size_t bytes) {
    return ring_.allocate(bytes, [&](rank_t peer, std::uint64_t count) {
      return acknowledged_[static_cast<std::size_t>(peer)] >= count;
    });
  }

  // A random reader reads its oldest letter.
  void read_one() {
    if (unread_.empty()) return;
    rank_t const reader = unread_[random_.below(static_cast<std::uint32_t>(unread_.size()))].reader;
    for (auto it = unread_.begin(); it != unread_.end(); ++it)
      if (it->reader == reader) {
        acknowledged_[static_cast<std::size_t>(reader)] = it->letter;
        unread_.erase(it);
        return;
      }
  }

  collx::replayable_random random_;
  std::size_t capacity_;
  std::vector<std::byte> memory_;
  std::vector<std::uint64_t> sent_, acknowledged_, snapshots_;
  std::byte* base_ = nullptr;
  staging_ring ring_;
  std::deque<payload> unread_;
};

}  // namespace

TEST_CASE("staging ring: what is unread is never handed out again, and what is read is") {
  device_test::on_slow_and_quick_lines([](bool) {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      CAPTURE(seed);
      // Only in the larger one do some turn round early.
      model ring(seed, 1 + static_cast<rank_t>(seed % 4), seed % 8 < 4 ? capacity : 2 * close_bytes);
      for (int fragment = 0; fragment < 100; ++fragment) ring.send_fragment();
    }
  });
}

TEST_CASE("staging ring: small payloads stay close, but where lines are slow to come the smallest alone") {
  constexpr std::size_t all = 512 * 1024;
  std::vector<std::byte> memory(all + 64);
  std::byte* const base = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  device_test::on_slow_and_quick_lines([&](bool slowly) {
    for (unsigned const bytes : {512u, 1024u, 1088u, 4096u, 4160u}) {
      CAPTURE(bytes);
      std::vector<std::uint64_t> snapshots(staging_ring::mark_count);
      staging_ring ring;
      ring.attach(base, all, snapshots.data(), 1);
      std::size_t farthest = 0;
      for (std::uint64_t sent = 1; sent <= 2 * all / bytes; ++sent) {
        // The reader is one behind.
        auto const all_but_last = [&](rank_t, std::uint64_t count) { return count + 1 < sent; };
        std::byte* const place = ring.allocate(bytes, all_but_last);
        REQUIRE(place != nullptr);
        farthest = std::max(farthest, static_cast<std::size_t>(place - base));
        ring.mark([&](rank_t) { return sent; });
      }
      if (bytes <= (slowly ? 1024u : 4096u)) CHECK(farthest < close_bytes);
      else CHECK(farthest > all - 2 * close_bytes);
    }
  });
}

TEST_CASE(
    "staging ring: while one small payload is unread, all of the ring serves others, asked for often or "
    "not") {
  constexpr std::size_t all = 1 << 20, bytes = 600;
  std::vector<std::byte> memory(all);
  std::vector<std::uint64_t> snapshots(2 * staging_ring::mark_count);
  device_test::on_slow_and_quick_lines([&](bool) {
    staging_ring ring;
    ring.attach(memory.data(), all, snapshots.data(), 2);
    bool is_read = false;
    std::uint64_t sent = 0;
    auto const acknowledged = [&](rank_t peer, std::uint64_t count) {
      return peer == 1 || count == 0 || is_read;
    };
    auto const send = [&] {
      if (ring.allocate(bytes, acknowledged) == nullptr) return false;
      ++sent;
      // The first goes to reader 0, who does not look, all others to reader 1.
      ring.mark([&](rank_t peer) { return peer == 0 ? 1 : sent - 1; });
      return true;
    };
    while (sent < 10'000 && send()) {
    }
    CHECK(sent > 350);
    CHECK(sent < all / bytes);
    CHECK(ring.held_by() == 0);
    for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(send());
    is_read = true;
    for (int i = 0; i < 1000; ++i) REQUIRE(send());
  });
}

TEST_CASE("staging ring: a payload as large as a fragment may stage, again and again") {
  std::vector<std::byte> memory(capacity);
  std::vector<std::uint64_t> snapshots(staging_ring::mark_count);
  staging_ring ring;
  ring.attach(memory.data(), capacity, snapshots.data(), 1);
  std::uint64_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    // The reader is always two fragments behind: that is when the oldest half is free.
    auto const two_behind = [&](rank_t, std::uint64_t count) { return count + 2 <= sent + 1; };
    REQUIRE(ring.allocate(capacity / 2, two_behind) != nullptr);
    ++sent;
    ring.mark([&](rank_t) { return sent; });
  }
}

TEST_CASE("staging ring: with nobody reading, it fills up and refuses") {
  std::vector<std::byte> memory(capacity);
  std::vector<std::uint64_t> snapshots(staging_ring::mark_count);
  staging_ring ring;
  ring.attach(memory.data(), capacity, snapshots.data(), 1);
  auto const nobody_reads = [](rank_t, std::uint64_t) { return false; };
  std::uint64_t sent = 0;
  std::size_t handed_out = 0;
  while (ring.allocate(1024, nobody_reads) != nullptr) {
    handed_out += 1024;
    ++sent;
    ring.mark([&](rank_t) { return sent; });
    REQUIRE(handed_out <= capacity);
  }
  CHECK(ring.allocate(64, nobody_reads) == nullptr);
  auto const everything_is_read = [](rank_t, std::uint64_t) { return true; };
  CHECK(ring.allocate(capacity / 2, everything_is_read) != nullptr);
}
