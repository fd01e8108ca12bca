// SPDX-License-Identifier: Apache-2.0
// Which cache lines of the shared memory a call writes to: every line of the segment is compared before and
// after it, while no rank is in one. A small message is one line of its receiver's inbox, a larger one
// besides so many of an enclosure, and a receipt is one line, where there is one (docs/transports.md). What
// is stored once more, as it was, is not seen.
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::transport::mapped::block_layout;
using communicator = collx::communicator<collx::transport::shm>;
namespace mapped = collx::transport::mapped;

// Nobody sleeps: that is told in shared memory, too.
constexpr collx::transport::settings awake{.timeout_us = 60'000'000,
                                           .staging_bytes = 64 * 1024,
                                           .heap_bytes = 64 * 1024,
                                           .yield_us = 60'000'000,
                                           .single_copy_bytes = 0};

// Once round an inbox, and a little further.
constexpr std::size_t rounds = 200, lines_noted = 32;
constexpr mapped::inbox_shape inbox_shape = mapped::inbox_for(0, 2);
static_assert(rounds > inbox_shape.letters);

// What rank 0 has seen, for the test: lines by their distance from where rank 0's block begins.
struct notes {
  arrivals met;
  std::ptrdiff_t region_bytes = 0;  // from one rank's block to the next one's
  struct changes {
    std::size_t count;
    std::ptrdiff_t line_at[lines_noted];
  } of[rounds];
};

class observer {
 public:
  explicit observer(communicator& comm) {
    auto& space = comm.engine().endpoint().space();
    begin_ = space.at(0);
    std::byte* const* const blocks = space.blocks();
    first_block_ = blocks[0] - begin_;
    region_bytes_ = blocks[1] - blocks[0];
    before_.resize(static_cast<std::size_t>(first_block_ + 2 * region_bytes_));
  }
  [[nodiscard]] std::ptrdiff_t region_bytes() const { return region_bytes_; }

  void look() { std::memcpy(before_.data(), begin_, before_.size()); }
  void note(notes::changes& into) const {
    for (std::size_t at = 0; at < before_.size(); at += mapped::line_bytes)
      if (std::memcmp(before_.data() + at, begin_ + at, mapped::line_bytes) != 0)
        if (into.count++ < lines_noted)
          into.line_at[into.count - 1] = static_cast<std::ptrdiff_t>(at) - first_block_;
  }

 private:
  std::byte* begin_ = nullptr;  // of the segment
  std::ptrdiff_t first_block_ = 0, region_bytes_ = 0;
  std::vector<std::byte> before_;
};

// Makes so many calls, each of elements that no other one has, with nobody in a call before and after it.
template <class Call>
void watch_calls(notes& all, std::size_t bytes, Call const& call) {
  auto const codes = watched::on_processes(
      2,
      [&](communicator& comm) {
        int times = 0;
        auto const meet = [&] {
          all.met.come();
          all.met.wait_for(2 * ++times);
        };
        observer seen(comm);
        all.region_bytes = seen.region_bytes();
        std::vector<int> in(bytes / sizeof(int)), out(in.size());
        for (std::size_t round = 0; round < rounds; ++round) {
          std::fill(in.begin(), in.end(), static_cast<int>(round) + 1);
          meet();
          if (comm.rank() == 0) seen.look();
          meet();
          call(comm, std::span(in), std::span(out));
          meet();
          if (comm.rank() == 0) seen.note(all.of[round]);
        }
        meet();  // who leaves says so in every rank's memory
      },
      awake);
  for (int const code : codes) REQUIRE(code == 0);
}

// In an order of its own, since memory has another one.
std::string text(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string all;
  for (std::string const& each : names) all += (all.empty() ? "" : "; ") + each;
  return all;
}

// Where lines lie, in words.
class places {
 public:
  explicit places(notes const& all) : region_bytes_(all.region_bytes) {}

  [[nodiscard]] std::string of(notes::changes const& changed) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(changed.count, lines_noted); ++i)
      names.push_back(name(changed.line_at[i]));
    if (changed.count > lines_noted) names.push_back("and more");
    return text(std::move(names));
  }

  // The number-th letter to a rank, and what is enclosed.
  static void append(std::vector<std::string>& names, rank_t to, std::uint64_t number, std::size_t bytes) {
    std::uint64_t const index = number % inbox_shape.letters;
    names.push_back(letter(to, index));
    if (bytes > mapped::inline_bytes)
      for (std::size_t at = 0; at < bytes; at += mapped::line_bytes)
        names.push_back(enclosed(to, inbox_shape.enclosure(index) + at));
  }
  static std::string receipt(rank_t by) { return "receipt by " + std::to_string(by); }
  static std::string staging(rank_t of) { return "staging of " + std::to_string(of); }

 private:
  static std::string letter(rank_t of, std::uint64_t index) {
    return "inbox of " + std::to_string(of) + ", letter " + std::to_string(index);
  }
  static std::string enclosed(rank_t of, std::size_t at) {
    return "inbox of " + std::to_string(of) + ", enclosed at " + std::to_string(at);
  }
  [[nodiscard]] std::string name(std::ptrdiff_t line_at) const {
    if (line_at < 0) return "header";
    auto const rank = static_cast<rank_t>(line_at / region_bytes_);
    auto const at = static_cast<std::size_t>(line_at % region_bytes_);
    std::size_t const inbox = block_.inbox(0, 1 - rank), staged = block_.staging(0);
    std::size_t const enclosures = inbox + inbox_shape.letters * mapped::line_bytes;
    if (at >= inbox && at < enclosures) return letter(rank, (at - inbox) / mapped::line_bytes);
    if (at >= enclosures && at < inbox + inbox_shape.bytes()) return enclosed(rank, at - enclosures);
    if (at == block_.acknowledgement_of(0, 1 - rank)) return receipt(rank);
    if (at >= staged && at < staged + block_.ring_bytes(0)) return staging(rank);
    return "byte " + std::to_string(at) + " of rank " + std::to_string(rank);
  }

  block_layout const block_{2, awake.staging_bytes};
  std::ptrdiff_t region_bytes_;
};

using direct = collx::algo::direct_one_shot;
constexpr auto all_reduce = [](communicator& comm, std::span<int> in, std::span<int> out) {
  collx::all_reduce<direct>(comm, std::span<int const>(in), out);
};
constexpr auto broadcast = [](communicator& comm, std::span<int> in, std::span<int>) {
  collx::broadcast<direct>(comm, in, 0);
};

constexpr std::size_t sizes[] = {4, 8, 16, 32, 48, 64, 68, 256, 512};
static_assert(inbox_shape.enclosed_bytes_max == 512);

}  // namespace

TEST_CASE("shm: where letters go both ways, each rank writes to its peer's inbox, and nowhere else") {
  for (std::size_t const bytes : sizes) {
    CAPTURE(bytes);
    shared_with_forks<notes> all;
    watch_calls(*all, bytes, all_reduce);
    places const where(*all);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      CAPTURE(round);
      std::vector<std::string> expected;
      for (rank_t const r : {0, 1}) places::append(expected, r, round, bytes);
      REQUIRE(where.of(all->of[round]) == text(expected));
    }
  }
}

TEST_CASE("shm: of letters that go one way, a receipt is one line, after half an inbox") {
  for (std::size_t const bytes : sizes) {
    CAPTURE(bytes);
    shared_with_forks<notes> all;
    watch_calls(*all, bytes, broadcast);
    places const where(*all);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      CAPTURE(round);
      std::vector<std::string> expected;
      places::append(expected, 1, round, bytes);
      if ((round + 1) % (inbox_shape.letters / 2) == 0) expected.push_back(places::receipt(1));
      REQUIRE(where.of(all->of[round]) == text(expected));
    }
  }
}

TEST_CASE("shm: of what is staged a letter is one line, and its receipt, at once, another") {
  constexpr std::size_t bytes = 1024;
  shared_with_forks<notes> all;
  watch_calls(*all, bytes, broadcast);
  places const where(*all);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::vector<std::string> expected(bytes / mapped::line_bytes, places::staging(0));
    places::append(expected, 1, round, 0);
    expected.push_back(places::receipt(1));
    REQUIRE(where.of(all->of[round]) == text(expected));
  }
}
