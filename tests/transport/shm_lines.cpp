// SPDX-License-Identifier: Apache-2.0
// Which cache lines of the shared memory a call writes to: every line of the segment is compared before and
// after it, while no rank is in one. A small message is one line of its receiver's inbox, one a little larger
// so many, and a receipt is one line, where there is one (docs/transports.md). What is stored once more, as
// it was, is not seen.
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
constexpr std::uint64_t inbox_lines = mapped::lines_in(0, 2);
static_assert(rounds > inbox_lines);

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

  static std::string letter(rank_t of, std::uint64_t line) {
    return "inbox of " + std::to_string(of) + ", line " + std::to_string(line % inbox_lines);
  }
  static std::string receipt(rank_t by) { return "receipt by " + std::to_string(by); }
  static std::string staging(rank_t of) { return "staging of " + std::to_string(of); }

 private:
  [[nodiscard]] std::string name(std::ptrdiff_t line_at) const {
    if (line_at < 0) return "header";
    auto const rank = static_cast<rank_t>(line_at / region_bytes_);
    auto const at = static_cast<std::size_t>(line_at % region_bytes_);
    std::size_t const inbox = block_.inbox(0, 1 - rank), staged = block_.staging(0);
    if (at >= inbox && at < inbox + inbox_lines * mapped::line_bytes)
      return letter(rank, (at - inbox) / mapped::line_bytes);
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

struct size_in_lines {
  std::size_t bytes;
  std::uint64_t lines;
};
constexpr size_in_lines sizes[] = {{4, 1}, {8, 1}, {16, 1}, {32, 1}, {48, 2}, {80, 2}, {84, 3}, {272, 6}};

}  // namespace

TEST_CASE("shm: where letters go both ways, each rank writes to its peer's inbox, and nowhere else") {
  for (auto const [bytes, lines] : sizes) {
    CAPTURE(bytes);
    shared_with_forks<notes> all;
    watch_calls(*all, bytes, all_reduce);
    places const where(*all);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      CAPTURE(round);
      std::vector<std::string> expected;
      for (rank_t const r : {0, 1})
        for (std::uint64_t line = 0; line < lines; ++line)
          expected.push_back(places::letter(r, round * lines + line));
      REQUIRE(where.of(all->of[round]) == text(expected));
    }
  }
}

TEST_CASE("shm: of letters that go one way, a receipt is one line, after half an inbox less five lines") {
  for (auto const [bytes, lines] : sizes) {
    CAPTURE(bytes);
    shared_with_forks<notes> all;
    watch_calls(*all, bytes, broadcast);
    places const where(*all);
    std::uint64_t unsaid = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      CAPTURE(round);
      std::vector<std::string> expected;
      for (std::uint64_t line = 0; line < lines; ++line)
        expected.push_back(places::letter(1, round * lines + line));
      unsaid += lines;
      if (unsaid >= inbox_lines / 2 - 5) {
        expected.push_back(places::receipt(1));
        unsaid = 0;
      }
      REQUIRE(where.of(all->of[round]) == text(expected));
    }
  }
}

TEST_CASE("shm: of what is staged a letter is one line, and its receipt, at once, another") {
  constexpr std::size_t bytes = 512;
  shared_with_forks<notes> all;
  watch_calls(*all, bytes, broadcast);
  places const where(*all);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::vector<std::string> expected(bytes / mapped::line_bytes, places::staging(0));
    expected.push_back(places::letter(1, round));
    expected.push_back(places::receipt(1));
    REQUIRE(where.of(all->of[round]) == text(expected));
  }
}
