// SPDX-License-Identifier: Apache-2.0
// Ranks are processes of one host that share memory. Symmetric memory is read and written in place.
// Private buffers are copied to staging memory that peers read, or, large ones where the system permits
// it, straight from the sender's memory to the receiver's.
#pragma once

#include "collx/transport/mapped/membership.hpp"
#include "collx/transport/mapped/retired_blocks.hpp"
#include "collx/transport/of_all.hpp"
#include "collx/transport/shared_memory/heap.hpp"
#include "collx/transport/shared_memory/peer_memory.hpp"
#include "collx/transport/shared_memory/process.hpp"
#include "collx/transport/shared_memory/segment.hpp"

namespace collx::inline abi_1::transport {

// One process's membership in the group that was started together. Freed with its last communicator.
class shm_world {
 public:
  static constexpr char const* transport_name = "shm";
  static constexpr bool fetches = true;
  static constexpr bool lends_memory = true;

  // Joins as `rank`. Returns when all ranks have joined; throws error (timeout) naming those that
  // have not. `fd` is the caller's.
  COLLX_COLD shm_world(int fd, rank_t rank)
      : segment_(shared_memory::segment::attach(fd)),
        heap_(segment_.heap(existing(rank)), segment_.chosen().heap_bytes),
        watches_(static_cast<std::size_t>(segment_.size())),
        blocks_(static_cast<std::size_t>(segment_.size())),
        rank_(rank) {
    for (rank_t r = 0; r < size(); ++r) blocks_[static_cast<std::size_t>(r)] = segment_.block(r);
    announce();
    wait_for_everybody();
    try_to_read_peers();
  }

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return segment_.size(); }
  [[nodiscard]] settings const& chosen() const noexcept { return segment_.chosen(); }
  [[nodiscard]] mapped::block_layout const& layout() const noexcept { return segment_.layout(); }
  [[nodiscard]] std::byte* const* blocks() const noexcept { return blocks_.data(); }
  // That the ranks may use, all together, as far as they were bound when they joined.
  [[nodiscard]] int processors() const noexcept { return segment_.head().processors.count(); }

  // In a child that was forked since: the rank is its parent, in whose name it would take leave.
  [[nodiscard]] COLLX_COLD bool is_copy() const noexcept { return getpid() != process_; }

  // Relaxed: taking a reference needs one already. Acquire-release: the last to drop sees all uses.
  void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    std::byte* const p = heap_.allocate(bytes);
    if (chosen().huge_pages != 0) shared_memory::use_huge_pages(p, bytes);
    return p;
  }
  // A forked child's copy of a buffer is the rank's own memory, which others read.
  void deallocate(std::byte* p, std::size_t bytes) noexcept {
    if (!is_copy()) heap_.deallocate(p, bytes);
  }
  [[nodiscard]] std::byte* allocate_block(std::size_t bytes) {
    retired_.release_unused([&](std::byte* block, std::size_t size) { deallocate(block, size); });
    return heap_.allocate(bytes);  // in small pages: most of a block is never touched
  }
  // The block of the world communicator is no part of the heap: it goes with the segment.
  COLLX_COLD void retire_block(mapped::farewell& last) noexcept {
    if (last.block == segment_.block(rank_)) return;
    retired_.add(last, [&](std::byte* block, std::size_t bytes) { deallocate(block, bytes); });
  }

  [[nodiscard]] std::uint64_t address_of(void const* p, std::size_t bytes) const noexcept {
    return segment_.offset_of(p, bytes);
  }
  [[nodiscard]] std::byte* at(std::uint64_t address) const noexcept { return segment_.at(address); }

  // Private payloads from this size on may be left where they are, for receivers to read them there.
  [[nodiscard]] std::size_t fetched_bytes_min() const noexcept {
    // Relaxed: nothing but the permission is learnt. Once everybody can read, it stays so.
    bool const permitted = segment_.head().readers.load(std::memory_order_relaxed) == size();
    return permitted ? single_copy_bytes_ : static_cast<std::size_t>(-1);
  }

  // What the system takes to copy a page, as one rank found of those that think it slow, or in doubt if none
  // does; the same for all ranks. Known once payloads may be fetched: by then all have looked.
  [[nodiscard]] COLLX_COLD mapped::system_page page_of_system() const noexcept {
    shared_memory::header& all = segment_.head();
    // Acquire: what each reader found before it was counted.
    (void)all.readers.load(std::memory_order_acquire);
    if (!looks_at_pages_) return {};
    std::uint32_t const slow_ns = all.slow_page_ns.load(std::memory_order_relaxed);
    if (slow_ns != 0) return {static_cast<double>(slow_ns), false, crowded_};
    return {static_cast<double>(all.doubtful_page_ns.load(std::memory_order_relaxed)), true, crowded_};
  }

  // Whether ranks share processors, and nothing was said of what is then worth to be copied once.
  [[nodiscard]] bool crowded() const noexcept { return crowded_; }

  // Whether the system can read this memory of ours for others.
  [[nodiscard]] bool readable(std::byte const* p, std::size_t bytes) noexcept {
    return own_memory_.readable(p, bytes);
  }

  // Copies from private memory of a rank that has said where it lies, and waits until it is read.
  [[nodiscard]] status read_private(rank_t rank, std::uint64_t from, std::byte* to,
                                    std::size_t bytes) noexcept {
    status const outcome = shared_memory::read_memory_of(process_of(rank), from, to, bytes);
    // Read from the peer, and not from a new process with its number: the peer still runs.
    bool const runs = watches_[static_cast<std::size_t>(rank)].runs();
    if (COLLX_LIKELY(outcome == status::ok && runs)) return status::ok;
    if (segment_.head().alarm.raised()) return status::aborted;
    return outcome == status::ok ? status::peer_lost : outcome;
  }

  // Copies to private memory of a rank that has offered it. Not to one that gave up: it may have freed it.
  [[nodiscard]] status write_private(rank_t rank, std::uint64_t to, std::byte const* from,
                                     std::size_t bytes) noexcept {
    atomic_word<std::uint32_t>& writing = segment_.of(rank_).writing;
    // Sequentially consistent, as is the question about the alarm: either this rank sees it, or who raised it
    // sees that this rank writes (wait_for_writers).
    writing.fetch_add(1, std::memory_order_seq_cst);
    status outcome = status::aborted;
    // Asked before: a number of a process that has ended may belong to another.
    bool const runs = watches_[static_cast<std::size_t>(rank)].runs();
    if (!segment_.head().alarm.raised_by_now())
      outcome = runs ? shared_memory::write_memory_of(process_of(rank), to, from, bytes) : status::peer_lost;
    // Release: who sees that the writing is over may use the memory.
    writing.fetch_sub(1, std::memory_order_release);
    bool const fell = outcome != status::ok && segment_.head().alarm.raised();
    return fell ? status::aborted : outcome;
  }

  // After the alarm, before a failed call returns: nobody writes to private memory of this rank any more.
  // One who is held up in the middle is waited for no longer than that.
  COLLX_COLD void wait_for_writers(std::uint64_t at_most_us) noexcept {
    std::uint64_t const begin_us = now_us();
    if (!segment_.head().alarm.raised_by_now()) return;
    for (rank_t r = 0; r < size(); ++r)
      // Sequentially consistent: see write_private(); and what was written there is over.
      while (r != rank_ && segment_.of(r).writing.load(std::memory_order_seq_cst) != 0 && !lost(r) &&
             now_us() - begin_us < at_most_us)
        sched_yield();
  }

  // Asks only about the peer waited for: a rank that has done its part may leave early. Whoever
  // waits for a lost rank raises the alarm, and that ends the waits for the one that waited.
  [[nodiscard]] COLLX_COLD status interrupted(rank_t peer) noexcept {
    if (segment_.head().alarm.raised()) return status::aborted;
    if (peer == no_rank || !lost(peer)) return status::ok;
    // A rank that fails raises the alarm and may end at once: then it is not the one that was lost.
    // Asked again, because the alarm may have been raised between the two questions.
    return segment_.head().alarm.raised() ? status::aborted : status::peer_lost;
  }

  // Whether a rank's process has ended: it does nothing any more, whatever it was at.
  [[nodiscard]] COLLX_COLD bool has_ended(rank_t rank) noexcept { return lost(rank); }

  void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    segment_.head().alarm.raise({code, reporter, culprit});
    for (rank_t r = 0; r < size(); ++r) bell(r).ring();
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept { return segment_.head().alarm.read(); }
  [[nodiscard]] mapped::doorbell& bell(rank_t rank) const noexcept { return segment_.of(rank).bell; }
  // Relaxed: who did not join said so before it announced itself.
  [[nodiscard]] bool fenced() const noexcept {
    return segment_.head().unfenced.load(std::memory_order_relaxed) == 0;
  }

 private:
  // Where ranks sleep until everybody has come. The last to come wakes them.
  struct entrance {
    atomic_word<std::uint32_t>& joined;
    std::uint32_t seen = 0;
    bool quiet = false;  // nobody came for a while

    // The kernel compares the count itself, and orders that: nothing to tell anybody.
    [[nodiscard]] bool prepare_to_sleep() noexcept {
      seen = joined.load(std::memory_order_relaxed);
      return true;
    }
    [[nodiscard]] bool sleep(std::uint64_t at_most_us) noexcept {
      quiet = !futex_sleep(joined, seen, at_most_us < 10'000 ? at_most_us : 10'000);
      return !quiet;
    }
  };

  [[nodiscard]] std::uint32_t everybody() const noexcept { return static_cast<std::uint32_t>(size()); }
  // Acquire: pairs with announce(), so that every member's record is complete.
  [[nodiscard]] bool all_joined() const noexcept {
    return segment_.head().joined.load(std::memory_order_acquire) >= everybody();
  }
  // 0: the rank has not joined. Acquire: its start time is there if it has.
  [[nodiscard]] std::int32_t process_of(rank_t rank) const noexcept {
    return segment_.of(rank).process.load(std::memory_order_acquire);
  }

  // Asked before the address of its heap: that of a rank there is not would lie outside of the segment.
  [[nodiscard]] COLLX_COLD rank_t existing(rank_t rank) const {
    if (rank < 0 || rank >= size())
      throw_error(status::bad_argument, "there is no rank %d of %d; ranks are counted from 0", rank, size());
    return rank;
  }

  // Differs from what any other process, of this world or not, has at that address; the same in all worlds of
  // this one.
  [[nodiscard]] COLLX_COLD static std::uint64_t known_word(std::uint64_t started) noexcept {
    constexpr std::uint64_t mark = 0x636f'6c6c'7872'6561ULL;
    auto const process = static_cast<std::uint32_t>(getpid());
    std::uint64_t const mine = (started << 32 | process) ^ mark;
    // Relaxed, here and below: nothing else is learnt from it. Peers, for whom the system reads it, look when
    // this rank has announced itself.
    std::uint64_t word = known_word_.load(std::memory_order_relaxed);
    bool const is_of_this = static_cast<std::uint32_t>(word ^ mark) == process;  // and not of who forked it
    // False: another thread joins as well, and has written the same, or what the system told it then.
    bool const is_written =
        !is_of_this &&
        known_word_.compare_exchange_strong(word, mine, std::memory_order_relaxed, std::memory_order_relaxed);
    return is_written ? mine : word;
  }

  COLLX_COLD void announce() {
    shared_memory::member& me = segment_.of(rank_);
    std::uint32_t nobody = 0;
    // Relaxed: it only chooses who. What follows is that one's to write.
    if (!me.claimed.compare_exchange_strong(nobody, 1, std::memory_order_relaxed, std::memory_order_relaxed))
      throw_error(status::bad_argument,
                  "rank %d is already taken by process %d; give every process a RANK of its own", rank_,
                  process_of(rank_));
    me.start_time = shared_memory::start_time(getpid());
    me.known_word = known_word(me.start_time);
    me.known_word_at = reinterpret_cast<std::uintptr_t>(&known_word_);
    // Release: the start time is there for whoever sees the pid.
    me.process.store(getpid(), std::memory_order_release);
    if (!join_fences()) segment_.head().unfenced.store(1, std::memory_order_relaxed);
    // Release: pairs with the acquire of those who wait for everybody.
    segment_.head().processors.add_those_of_this_thread();
    if (segment_.head().joined.fetch_add(1, std::memory_order_release) + 1 == everybody())
      futex_wake_all(segment_.head().joined);
  }

  COLLX_COLD void wait_for_everybody() {
    exec::waiter patience(exec::wakefulness{0, chosen().yield_us}, chosen().timeout_us);
    entrance door{segment_.head().joined};
    while (!all_joined()) {
      // To ask after everybody takes several system calls for each: not while ranks still come.
      status const why =
          patience.pause([&] { return interrupted(door.quiet ? first_lost() : no_rank); }, door);
      // The last to join may be done, and gone, before this rank looks again.
      if (why == status::ok || all_joined()) continue;
      // Who comes later would take this rank for one that takes part. Of those that give up, the first
      // counts: it may have ended by now, and was not lost.
      abort(why, rank_, why == status::peer_lost ? first_lost() : first_missing());
      throw_unmet(why);
    }
  }
  // Who has not joined. Rank 0 may serve all others before it joins itself.
  [[nodiscard]] COLLX_COLD rank_t first_missing() noexcept {
    for (rank_t r = 1; r < size(); ++r)
      if (process_of(r) == 0) return r;
    return 0;
  }
  [[noreturn]] COLLX_COLD void throw_unmet(status why) {
    mapped::first_failure const first = first_failure();
    char teller[32] = "";
    if (first.reporter != rank_) std::snprintf(teller, sizeof teller, ", says rank %d", first.reporter);
    throw_error(why,
                "rank %d of %d: start-up: %s: rank %d %s%s; start all %d ranks, or raise COLLX_TIMEOUT_US",
                rank_, size(), name(why), first.culprit,
                first.code == status::peer_lost ? "ended before all had joined" : "never joined", teller,
                size());
  }

  // Whether the system lets this rank read and write all others' memory, and how quickly, is found out once.
  // They learn of it by and by, and until then, or where it does not, payloads are staged.
  COLLX_COLD void try_to_read_peers() noexcept {
    single_copy_bytes_ = chosen().single_copy_bytes;
    bool const crowded = size() > processors();
    bool const said = single_copy_bytes_ != settings::by_processors;
    if (!said) {
      single_copy_bytes_ = single_copy_default;
      crowded_ = crowded;
    }
    if (single_copy_bytes_ == 0 || size() > mapped::fetched_ranks_max) return;
    looks_at_pages_ = !said;
    if (!said) look_at_pages();
    for (rank_t r = 0; r < size(); ++r) {
      if (r == rank_) continue;
      if (lost(r)) return;  // from now on it is watched
      shared_memory::member const& them = segment_.of(r);
      std::int32_t const process = process_of(r);
      std::uint64_t word = 0;
      auto* const bytes = reinterpret_cast<std::byte*>(&word);
      status const read = shared_memory::read_memory_of(process, them.known_word_at, bytes, sizeof word);
      if (read != status::ok || word != them.known_word) return;
      // What is written is what stands there.
      status const written = shared_memory::write_memory_of(process, them.known_word_at, bytes, sizeof word);
      if (written != status::ok) return;
    }
    // Release: what this rank found out is known to whoever counts it (page_of_system()).
    segment_.head().readers.fetch_add(1, std::memory_order_release);
  }

  COLLX_COLD void look_at_pages() const noexcept {
    try {
      shared_memory::page_copy const found = shared_memory::time_page_copy();
      double const slow = chosen().system_copy_cost_max, doubtful = doubtful_cost * slow;
      // At least 1: 0 says that nobody found it so. Relaxed: `readers` comes after it. Of several any does.
      std::uint32_t const page_ns = 1 + static_cast<std::uint32_t>(found.by_system_ns);
      shared_memory::header& all = segment_.head();
      if (found.cost > slow) all.slow_page_ns.store(page_ns, std::memory_order_relaxed);
      else if (found.cost > doubtful) all.doubtful_page_ns.store(page_ns, std::memory_order_relaxed);
    } catch (std::bad_alloc const&) {
      return;  // no memory to find out with
    }
  }

  [[nodiscard]] COLLX_COLD rank_t first_lost() noexcept {
    for (rank_t r = 0; r < size(); ++r)
      if (lost(r)) return r;
    return no_rank;
  }

  [[nodiscard]] COLLX_COLD bool lost(rank_t rank) noexcept {
    std::int32_t const process = process_of(rank);
    if (process == 0 || rank == rank_) return false;
    return watches_[static_cast<std::size_t>(rank)].ended(process, segment_.of(rank).start_time);
  }

  shared_memory::segment segment_;
  shared_memory::heap heap_;
  mapped::retired_blocks retired_;
  array<shared_memory::process_watch> watches_;
  array<std::byte*> blocks_;
  rank_t rank_;
  pid_t process_ = getpid();
  // Below this two copies are no slower. Measured for two ranks (docs/decisions.md).
  static constexpr std::size_t single_copy_default = 64 * 1024;
  // Of the highest cost at which the system counts as quick. Beside a busy neighbour a page cost 2.8 to 3.3
  // copies of one where it costs 4.05 in quiet (AMD EPYC).
  static constexpr double doubtful_cost = 0.85;
  std::size_t single_copy_bytes_ = 0;
  bool crowded_ = false, looks_at_pages_ = false;
  shared_memory::own_memory own_memory_;
  // Peers try to read it, and to write it as it was, perhaps when this rank has left already: memory of a
  // world might be somebody else's by then. So it is the process's, never freed, and the same for all its
  // worlds.
  static inline atomic_word<std::uint64_t> known_word_{};
  atomic_word<std::int32_t> references_{1};
};

struct shm {
  static constexpr char const* name = "shm";
  using world = shm_world;
  using endpoint = mapped::endpoint<shm_world>;
  template <class As>
  using membership_of = mapped::membership<As>;
  using membership = membership_of<shm>;

  // Rank `rank` of the segment behind `fd`, which stays the caller's and may be closed afterwards.
  // `As`: the transport itself, or a decorator of it. Throws error, or std::bad_alloc.
  template <class As = shm>
  [[nodiscard]] static communicator<As> join(int fd, rank_t rank) {
    auto* const world = new shm_world(fd, rank);
    return of_all<As>(world, [&] { return As::membership::join_world(*world, rank); });
  }
};

}  // namespace collx::inline abi_1::transport
