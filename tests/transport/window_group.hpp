// SPDX-License-Identifier: Apache-2.0
// GPUs played by threads of the host: every rank has a window in ordinary memory, every lane of it is a team
// of threads. What runs on them is the text that kernels run.
#pragma once

#include <barrier>
#include <cstdlib>
#include <memory>
#include <vector>

#include "collx/transport/windows/lane_port.hpp"
#include "device/host_team.hpp"

namespace window_group {

using collx::rank_t;
namespace windows = collx::transport::windows;

struct traits {
  rank_t size = 2;
  int lanes = 1;
  int threads = 1;  // of a lane
  std::size_t staging_bytes = 64 * 1024;
  std::size_t packet_bytes = 0;
  windows::packet_width width = windows::packet_width::narrow;
  bool reaches_all = true;  // peers can read all memory, not windows alone
  std::uint64_t timeout_ns = 30'000'000'000;
};

class group {
 public:
  explicit group(traits const& chosen)
      : traits_(chosen),
        layout_(chosen.size, chosen.lanes, chosen.staging_bytes, chosen.packet_bytes, chosen.width) {
    auto const n = static_cast<std::size_t>(chosen.size);
    views_.resize(n);
    peers_.resize(n);
    reports_.resize(n);
    for (std::size_t r = 0; r < n; ++r) {
      memory_.emplace_back(
          static_cast<std::byte*>(std::aligned_alloc(256, (layout_.bytes() + 255) / 256 * 256)));
      std::memset(memory_.back().get(), 0, layout_.bytes());
      peers_[r].window = memory_.back().get();
    }
    for (std::size_t r = 0; r < n; ++r) {
      windows::view& mine = views_[r];
      mine.rank = static_cast<rank_t>(r), mine.size = chosen.size;
      mine.where = layout_, mine.lanes = chosen.lanes;
      mine.own = memory_[r].get();
      mine.peers = peers_.data();
      mine.heap_end = chosen.reaches_all ? ~std::uintptr_t{0} : 0;
      mine.limits = {chosen.timeout_ns, &mine.own_head().stopped, &stopped_};
      mine.failure = &reports_[r];
    }
  }

  [[nodiscard]] traits const& chosen() const { return traits_; }
  [[nodiscard]] windows::view const& view(rank_t rank) const {
    return views_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] windows::report const& report(rank_t rank) const {
    return reports_[static_cast<std::size_t>(rank)];
  }
  // Peers reach this memory, and no other, `shift` bytes further on.
  void reach_only(std::byte const* begin, std::size_t bytes, std::ptrdiff_t shift) {
    for (std::size_t r = 0; r < views_.size(); ++r) {
      peers_[r].heap_shift = shift;
      views_[r].heap_begin = reinterpret_cast<std::uintptr_t>(begin);
      views_[r].heap_end = views_[r].heap_begin + bytes;
    }
  }
  // The same for a range that a rank has registered, which is `at` in its list; peers reach no heap then.
  void register_range(rank_t rank, int at, std::byte const* begin, std::size_t bytes, std::ptrdiff_t shift) {
    if (registered_.empty()) registered_.resize(views_.size());
    auto const r = static_cast<std::size_t>(rank);
    auto const address = reinterpret_cast<std::uintptr_t>(begin);
    registered_[r].ranges[at] = {address, address + bytes, shift};
    peers_[r].registered = registered_[r].ranges;
    peers_[r].heap_shift = std::int64_t{1} << 44;  // where nothing is
    for (windows::view& each : views_) each.heap_begin = each.heap_end = 0;
  }
  // How long this rank, unlike the others, waits.
  void timeout_ns(rank_t rank, std::uint64_t value) {
    views_[static_cast<std::size_t>(rank)].limits.timeout_ns = value;
  }
  void stop() { collx::device::store_relaxed(&stopped_, 1u); }

  // Calls f(rank, lane, team) on every thread of every lane of the ranks that `takes_part(rank)` names.
  template <class TakesPart, class F>
  void run(TakesPart const& takes_part, F const& f) {
    std::vector<std::unique_ptr<std::barrier<>>> meetings;
    std::vector<std::jthread> threads;
    for (rank_t r = 0; r < traits_.size; ++r)
      for (int lane = 0; lane < traits_.lanes && takes_part(r); ++lane) {
        meetings.push_back(std::make_unique<std::barrier<>>(traits_.threads));
        for (int t = 0; t < traits_.threads; ++t)
          threads.emplace_back([&f, r, lane, t, this, meeting = meetings.back().get()] {
            device_test::host_team team(t, traits_.threads, *meeting);
            f(r, lane, team);
          });
      }
  }

 private:
  struct frees {
    void operator()(std::byte* p) const { std::free(p); }
  };

  traits traits_;
  windows::layout layout_;
  std::vector<std::unique_ptr<std::byte, frees>> memory_;
  std::vector<windows::peer_view> peers_;
  struct registered_list {
    windows::registered_range ranges[windows::registered_list];
  };
  std::vector<registered_list> registered_;
  std::vector<windows::view> views_;
  std::vector<windows::report> reports_;
  std::uint32_t stopped_ = 0;
};

}  // namespace window_group
