// SPDX-License-Identifier: Apache-2.0
// Results that kernels store straight to their receivers' outputs: that they do, and where peers see memory
// at other addresses than its owner, as processes do; and that none stores behind the end of an output.
#include <atomic>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collx/algo/direct.hpp"
#include "exec/lane_call.hpp"

namespace {

using namespace collx;
using window_group::team_t;

// One piece of memory at two addresses.
class mapped_twice {
 public:
  explicit mapped_twice(std::size_t bytes) : bytes_(bytes) {
    int const file = memfd_create("lane_push", 0);
    REQUIRE(file >= 0);
    REQUIRE(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    for (void*& each : at_) {
      each = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      REQUIRE(each != MAP_FAILED);
    }
    close(file);
  }
  mapped_twice(mapped_twice const&) = delete;
  ~mapped_twice() {
    for (void* const each : at_) munmap(each, bytes_);
  }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(at_[0]); }
  [[nodiscard]] std::ptrdiff_t shift() const {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(at_[1]) -
                                       reinterpret_cast<std::uintptr_t>(at_[0]));
  }

 private:
  std::size_t bytes_;
  void* at_[2];
};

// Letters that say that the payload is there already, in all windows. Their addresses are the receivers' own.
std::size_t pushed_letters(window_group::group const& all, std::byte const* memory, std::size_t bytes) {
  std::size_t pushed = 0, elsewhere = 0;
  for (rank_t r = 0; r < all.chosen().size; ++r)
    for (rank_t peer = 0; peer < all.chosen().size; ++peer)
      for (int lane = 0; lane < all.chosen().lanes; ++lane) {
        auto const& view = all.view(r);
        auto const& from =
            *reinterpret_cast<transport::windows::channel const*>(view.own + view.where.from(lane, peer));
        for (auto const& letter : from.letters) {
          if (letter.where != transport::windows::letter_place::receiver) continue;
          ++pushed;
          elsewhere += letter.address - reinterpret_cast<std::uintptr_t>(memory) >= bytes;
        }
      }
  CHECK(elsewhere == 0);
  return pushed;
}

// What peers reach of the buffers, and as what.
enum class reach { heap, registered, inputs, nothing };

// Inputs and outputs of all ranks, in ranges of their own, behind one that was given up.
void register_all(window_group::group& all, int* first, std::size_t count, std::ptrdiff_t shift, reach how) {
  auto const n = static_cast<std::size_t>(all.chosen().size), bytes = count * sizeof(int);
  for (std::size_t r = 0; r < n; ++r) {
    auto const rank = static_cast<rank_t>(r);
    all.register_range(rank, 0, reinterpret_cast<std::byte*>(std::uintptr_t{1}), 0, 1 << 20);
    all.register_range(rank, 1, reinterpret_cast<std::byte*>(first + r * count), bytes, shift);
    if (how != reach::registered) continue;
    all.register_range(rank, 2, reinterpret_cast<std::byte*>(first + (n + r) * count), bytes, shift);
  }
}

// An all_reduce, or a reduce to rank 1, of ints on all ranks. Returns how many letters told of a push.
template <schedule S>
std::size_t pushes(window_group::traits const& chosen, std::size_t count, bool in_place,
                   reach how_reached = reach::heap) {
  CAPTURE(chosen.size);
  CAPTURE(count);
  CAPTURE(in_place);
  auto const n = static_cast<std::size_t>(chosen.size);
  bool const rooted = S::contract::rooted;
  window_group::group all(chosen);
  std::size_t const room = (2 * n * count * sizeof(int) + 4095) / 4096 * 4096;
  mapped_twice const memory(room);
  auto* const first = reinterpret_cast<int*>(memory.data());
  if (how_reached == reach::heap) all.reach_only(memory.data(), room, memory.shift());
  else if (how_reached != reach::nothing) register_all(all, first, count, memory.shift(), how_reached);
  auto const in = [&](std::size_t r) { return first + r * count; };
  auto const out = [&](std::size_t r) { return in_place ? in(r) : first + (n + r) * count; };
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i) in(r)[i] = static_cast<int>(i * (r + 1));
  std::vector<exec::lane_workspace> workspaces(n * static_cast<std::size_t>(chosen.lanes));
  std::atomic<int> failed{0};
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            auto& mine = workspaces[static_cast<std::size_t>(r * chosen.lanes + lane)];
            auto const at = static_cast<std::size_t>(r);
            oracle::setting how{chosen.size, count};
            how.in_place = in_place;
            how.root = rooted ? 1 : 0;
            // Relaxed: read after all threads have ended.
            if (!window_group::perform<S>(all, r, lane, team, mine, in(at), out(at), how, sum))
              failed.fetch_add(1, std::memory_order_relaxed);
          });
  CHECK(failed.load(std::memory_order_relaxed) == 0);
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count && (!rooted || r == 1); ++i)
      wrong += out(r)[i] != static_cast<int>(i * n * (n + 1) / 2);
  CHECK(wrong == 0);
  return pushed_letters(all, memory.data(), room);
}

// A call to which rank r comes with counts[r] ints, the last one when messages of all others wait for it:
// what it stores, it stores before anybody can tell it that counts differ. With these, the part of the vector
// that it reduces has the same length on all ranks, and lies elsewhere.
template <schedule S>
void disagree(std::vector<std::size_t> const& counts) {
  auto const n = counts.size();
  auto const last = static_cast<rank_t>(n) - 1;
  CAPTURE(n);
  constexpr std::size_t room = 2048;
  constexpr int guard = -7;
  window_group::group all({.size = last + 1});
  std::vector<std::vector<int>> in(n, std::vector<int>(room, 1)), out(n, std::vector<int>(room, guard));
  std::vector<exec::lane_workspace> workspaces(n);
  std::atomic<int> succeeded{0};
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            auto const at = static_cast<std::size_t>(r);
            transport::windows::lane_port const port(all.view(r), lane);
            transport::windows::delivery letter;
            for (rank_t peer = 0; r == last && peer < last; ++peer)
              while (!port.arrived(peer, letter) && !port.is_stopped()) sched_yield();
            oracle::setting const how{last + 1, counts[at]};
            // Relaxed: read after all threads have ended.
            if (window_group::perform<S>(all, r, lane, team, workspaces[at], in[at].data(), out[at].data(),
                                         how, sum))
              succeeded.fetch_add(1, std::memory_order_relaxed);
          });
  std::size_t behind = 0, told = 0;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = counts[r]; i < room; ++i) behind += out[r][i] != guard;
    told += all.report(static_cast<rank_t>(r)).code == static_cast<std::uint32_t>(status::mismatch);
  }
  CHECK(behind == 0);
  CHECK(told != 0);
  // All ranks of an all_reduce need each other.
  if (!S::contract::rooted) CHECK(succeeded.load(std::memory_order_relaxed) == 0);
}

}  // namespace

TEST_CASE("results are stored to the outputs of their receivers, wherever peers see those") {
  for (rank_t const size : {2, 3, 4})
    for (std::size_t const count : {std::size_t{500}, std::size_t{30'000}})
      for (bool const in_place : {false, true}) {
        window_group::traits const two_threads{.size = size, .threads = 2, .packet_bytes = 256};
        window_group::traits const two_lanes{.size = size, .lanes = 2};
        CHECK(pushes<algo::direct_two_shot::all_reduce>(two_threads, count, in_place) != 0);
        CHECK(pushes<algo::direct_two_shot::all_reduce>(two_lanes, count, in_place) != 0);
        CHECK(pushes<algo::direct_two_shot::reduce>(two_lanes, count, false) != 0);
      }
}

TEST_CASE("what nobody reaches, and what goes as packets, is not stored to") {
  window_group::traits const apart{.size = 3, .reaches_all = false};
  CHECK(pushes<algo::direct_two_shot::all_reduce>(apart, 5000, false, reach::nothing) == 0);
  CHECK(pushes<algo::direct_two_shot::all_reduce>(apart, 5000, false, reach::inputs) == 0);
  window_group::traits const packets{.size = 3, .packet_bytes = 1024};
  CHECK(pushes<algo::direct_two_shot::all_reduce>(packets, 30, false) == 0);
}

TEST_CASE("ranges that were registered are read and stored to in place, in whichever mapping they are") {
  for (rank_t const size : {2, 3, 4})
    for (std::size_t const count : {std::size_t{500}, std::size_t{30'000}})
      for (bool const in_place : {false, true}) {
        window_group::traits const two_lanes{.size = size, .lanes = 2};
        auto const how = reach::registered;
        CHECK(pushes<algo::direct_two_shot::all_reduce>(two_lanes, count, in_place, how) != 0);
        CHECK(pushes<algo::direct_two_shot::reduce>(two_lanes, count, false, how) != 0);
      }
}

TEST_CASE("nobody stores behind the end of an output that is shorter than his own") {
  disagree<algo::direct_two_shot::all_reduce>({530, 546});
  disagree<algo::direct_two_shot::all_reduce>({794, 794, 826});
  disagree<algo::direct_two_shot::all_reduce>({826, 826, 794});
  disagree<algo::direct_two_shot::reduce>({794, 794, 826});
}
