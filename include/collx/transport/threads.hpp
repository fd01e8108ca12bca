// SPDX-License-Identifier: Apache-2.0
// Ranks are threads of one process. Everybody's memory is reachable, so nothing is ever staged for
// want of access: private buffers are read in place. Also the transport for tests and for trying an
// algorithm out.
#pragma once

#include "collx/core/processors.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/mapped/doorbell.hpp"
#include "collx/transport/mapped/membership.hpp"
#include "collx/transport/mapped/retired_blocks.hpp"
#include "collx/transport/settings.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport {

class threads_world {
 public:
  static constexpr char const* transport_name = "threads";
  static constexpr bool lends_memory = true;
  static constexpr bool is_open = true;

  // Throws error (out_of_memory, bad_argument).
  threads_world(rank_t size, settings const& chosen) : threads_world(chosen, size) {
    // It exists since the other constructor has ended: where a block cannot be had, it is destroyed.
    for (std::byte*& block : blocks_) block = map_zeroed(layout_.block_bytes());
    processors_.add_those_of_this_thread();
  }
  threads_world(threads_world const&) = delete;

  [[nodiscard]] rank_t size() const noexcept { return layout_.size; }
  [[nodiscard]] settings const& chosen() const noexcept { return settings_; }
  [[nodiscard]] mapped::block_layout const& layout() const noexcept { return layout_; }
  [[nodiscard]] std::byte* const* blocks() const noexcept { return blocks_.data(); }
  // That the thread which made the world may use; the ranks' threads, unless somebody binds them later.
  [[nodiscard]] int processors() const noexcept { return processors_.count(); }

  // Relaxed: taking a reference needs one already. Acquire-release: the last to drop sees all uses.
  void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) { return map_zeroed(bytes); }
  void deallocate(std::byte* p, std::size_t bytes) noexcept { unmap_zeroed(p, bytes); }
  [[nodiscard]] std::byte* allocate_block(std::size_t bytes) { return allocate(bytes); }
  void retire_block(mapped::farewell& last) noexcept {
    retired_.add(last, [&](std::byte* block, std::size_t bytes) {
      all_have_left_ = all_have_left_ || block == blocks_[0];
      deallocate(block, bytes);
    });
  }

  [[nodiscard]] std::uint64_t address_of(void const* p, std::size_t) const noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
  }
  [[nodiscard]] std::byte* at(std::uint64_t address) const noexcept {
    return reinterpret_cast<std::byte*>(address);
  }

  [[nodiscard]] status interrupted(rank_t) const noexcept {
    return alarm_.raised() ? status::aborted : status::ok;
  }
  void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    alarm_.raise({code, reporter, culprit});
    for (mapped::doorbell& bell : bells_) bell.ring();
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept { return alarm_.read(); }
  [[nodiscard]] mapped::doorbell& bell(rank_t rank) noexcept {
    return bells_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] bool fenced() const noexcept { return fenced_; }

 private:
  threads_world(settings const& chosen, rank_t size)
      : settings_(chosen.checked()),
        layout_{size, settings_.staging_bytes},
        blocks_(static_cast<std::size_t>(size)),
        bells_(static_cast<std::size_t>(size)) {}
  // Blocks are given back when all ranks have left: none of them, if there is one that could not join.
  COLLX_COLD ~threads_world() {
    if (all_have_left_) return;
    for (std::byte* const block : blocks_)
      if (block != nullptr) deallocate(block, layout_.block_bytes());
  }

  settings settings_;
  mapped::block_layout layout_;
  array<std::byte*> blocks_;  // each retired by the communicator that owns it
  bool all_have_left_ = false;
  mapped::retired_blocks retired_;
  mapped::alarm alarm_;
  processor_set processors_;
  array<mapped::doorbell> bells_;
  bool fenced_ = join_fences();  // before there are threads, or it takes the kernel milliseconds
  atomic_word<std::int32_t> references_{1};
};

struct threads {
  static constexpr char const* name = "threads";
  using world = threads_world;
  using endpoint = mapped::endpoint<threads_world>;
  template <class As>
  using membership_of = mapped::membership<As>;
  using membership = membership_of<threads>;

  // Rank `rank` of a world that somebody made for all its threads; called once per rank. `As`: the
  // transport itself, or a decorator of it.
  template <class As = threads>
  [[nodiscard]] static communicator<As> join(threads_world& world, rank_t rank) {
    auto* const engine = As::membership::join_world(world, rank);
    world.keep();
    return {&world, engine};
  }
};

}  // namespace collx::inline abi_1::transport
