// SPDX-License-Identifier: Apache-2.0
// What kind of memory is this address? Every call with a pointer asks, and asking CUDA's driver each time
// costs small messages dearly. So what it said is kept, one record per allocation, and found again in O(1).
//
// The hazard: memory is freed, and another allocation gets the address. Two ways out:
//
// - Checked (the beginning): a record counts only after one short question to the driver, for the identity of
//   the allocation that lies there now. Identities are never used twice, so the same identity is the same
//   allocation. Nobody has to tell of anything. *Guarantee*: what find() says was true at some moment between
//   its call and its return, whatever other threads allocate and free. (Memory without an identity, should a
//   driver have such, is described anew each time, and nobody can vouch for it while others free it.)
// - Told (after trust_hits()): a record counts. Whoever frees calls forget(pointer) first, for all memory of
//   CUDA's; first, since afterwards another thread could have the address already, and ask. From then until
//   the memory is freed nobody asks for an address in it: what find() said would be kept, and outlive it.
//   *Guarantee*: what find() says is true, for memory that nobody frees during the call. After a free that
//   nobody told of there is none, until something is found that overlaps.
//
// Memory that CUDA does not know (place_kind::host) has no allocation to keep a record of, and is asked for
// each time: one question. Where all buffers are host memory, a program says so and does not come here.
//
// Without CUDA: `Driver` asks it (driver.hpp), or pretends to (the tests).
#pragma once

#include <concepts>
#include <memory>

#include "collx/core/mutex.hpp"
#include "collx/transport/cuda/place_record.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// Called by any number of threads at once.
template <class D>
concept memory_driver = requires(D& driver, std::uintptr_t address, memory_place& place) {
  // One question: the identity of the allocation around the address; 0 if there is none, or it has none.
  { driver.id_of(address) } noexcept -> std::same_as<std::uint64_t>;
  // Everything; `place` comes empty and stays so for memory that CUDA does not know. Its parts may be of
  // several moments: find() sees to it. 0, or the driver's error.
  { driver.describe(address, place) } noexcept -> std::same_as<int>;
};

// For any number of threads. All memory is taken when it is made.
template <memory_driver Driver>
class memory_kinds {
 public:
  static constexpr std::size_t default_capacity = 512;

  // Keeps up to `capacity` allocations; of more, those not asked for lately are dropped. Throws bad_alloc.
  explicit memory_kinds(Driver driver = {}, std::size_t capacity = default_capacity)
      : driver_(static_cast<Driver&&>(driver)),
        capacity_(capacity == 0 ? 1 : capacity),
        records_(std::make_unique<place_record[]>(capacity_)),
        hints_(std::make_unique<std::atomic<std::uint32_t>[]>(hint_count_of(capacity_))),
        hint_mask_(hint_count_of(capacity_) - 1) {}

  // What lies at `pointer`, and whether `bytes` from there on are one allocation. (Of host memory only the
  // first byte is looked at.) Never allocates. For memory asked for before: no wait, O(1) for an address
  // asked for before, else one pass over the records; and one question to the driver, or none once hits are
  // trusted.
  [[nodiscard]] memory_answer find(void const* pointer, std::size_t bytes) noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    if (pointer == nullptr) return {};
    // Acquire: who sees that hits are trusted sees that what was kept before is gone.
    bool const told = told_.load(std::memory_order_acquire);
    memory_place known;
    if (recall(address, known)) {
      if (told || driver_.id_of(address) == known.id) return judged(known, address, bytes);
      drop(known);
    }
    return ask(address, bytes);
  }

  // The same where neighbouring allocations may be one buffer, as with memory that is mapped piece by piece
  // (cuMemMap): visit(memory_place const&) for each that the range touches, in order. The answer is of the
  // last one asked for: ok; bad_argument, where the range runs into memory that CUDA does not know; or a
  // failure. The visitor does not throw.
  template <class Visit>
  [[nodiscard]] memory_answer find_each(void const* pointer, std::size_t bytes, Visit const& visit) noexcept {
    auto address = reinterpret_cast<std::uintptr_t>(pointer);
    for (bool first = true;; first = false) {
      memory_answer answer = find(reinterpret_cast<void const*>(address), 0);
      if (answer.code != status::ok) return answer;
      memory_place const& place = answer.place;
      if (place.kind == place_kind::host && !first) answer.code = status::bad_argument;
      else visit(place);
      if (!place.contains(address) || place.reaches(address, bytes)) return answer;
      std::size_t const here = place.bytes - (address - place.base);
      address += here;
      bytes -= here;
    }
  }

  // The allocation that `pointer` lies in is about to be freed, unregistered or unmapped; until it is, nobody
  // asks for an address in it.
  void forget(void const* pointer) noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    posix_lock const only_me(mutex_);
    note_end();
    drop_if([&](memory_place const& place) { return place.contains(address); });
  }

  // From here on somebody calls forget() before each free. What is known is dropped: it was never told of.
  void trust_hits() noexcept {
    posix_lock const only_me(mutex_);
    note_end();
    drop_if([](memory_place const&) { return true; });
    // Release: see find().
    told_.store(true, std::memory_order_release);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] Driver& driver() noexcept { return driver_; }

 private:
  // How often memory may change hands during one question before that is the caller's fault.
  static constexpr int attempts_max = 16;
  // And how often what has no identity is described alike before it is believed to have none: it may have
  // been freed between the parts of each description.
  static constexpr int without_identity_min = 3;

  [[nodiscard]] static std::size_t hint_count_of(std::size_t capacity) noexcept {
    std::size_t count = 16;
    while (count < 4 * capacity) count *= 2;
    return count;
  }

  // CUDA's allocations begin at multiples of 256 bytes, so addresses nearer than that are mostly of one.
  [[nodiscard]] std::atomic<std::uint32_t>& hint_of(std::uintptr_t address) noexcept {
    std::uint64_t const mixed = (address >> 8) * 0x9e3779b97f4a7c15ULL;
    return hints_[(mixed >> 32) & hint_mask_];
  }

  [[nodiscard]] bool recall_from(std::size_t at, std::uintptr_t address, memory_place& known) noexcept {
    if (!records_[at].read(known) || !known.contains(address)) return false;
    records_[at].note_use();
    return true;
  }

  // A hint may be wrong in any way: only what the record says counts. So dropping a record is all there is to
  // do.
  [[nodiscard]] bool recall(std::uintptr_t address, memory_place& known) noexcept {
    std::atomic<std::uint32_t>& hint = hint_of(address);
    // Relaxed, here and below: it is an index into an array that is always there, nothing more.
    if (COLLX_LIKELY(recall_from(hint.load(std::memory_order_relaxed), address, known))) return true;
    // Relaxed: too small, and a record just made is not found; it is asked for once more.
    std::size_t const end = used_count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < end; ++i) {
      if (!recall_from(i, address, known)) continue;
      hint.store(static_cast<std::uint32_t>(i), std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  [[nodiscard]] static memory_answer judged(memory_place const& place, std::uintptr_t address,
                                            std::size_t bytes) noexcept {
    bool const inside = !place.contains(address) || place.reaches(address, bytes);
    return {inside ? status::ok : status::bad_argument, 0, place};
  }

  // Two descriptions alike are one of a single allocation: each part of one of them was read between the two
  // times that the identity was, and an identity never comes again.
  [[nodiscard]] COLLX_COLD memory_answer ask(std::uintptr_t address, std::size_t bytes) noexcept {
    for (int attempt = 0, without_identity = 0; attempt < attempts_max; ++attempt) {
      // Acquire: the driver is asked afterwards.
      std::uint64_t const ends = ends_.load(std::memory_order_acquire);
      memory_place first, second;
      if (int const error = driver_.describe(address, first)) return {status::system_failure, error, {}};
      if (first.kind == place_kind::host) return {};
      if (int const error = driver_.describe(address, second)) return {status::system_failure, error, {}};
      if (first != second || (first.id == 0 && ++without_identity < without_identity_min)) continue;
      // Nobody could tell it from its successor, or it is not around the address: good for this time only.
      if (first.id != 0 && first.contains(address)) keep(first, ends, address);
      return judged(first, address, bytes);
    }
    return {status::bad_argument, 0, {}};
  }

  // `ends`: how many had been told of before the driver was asked. If there were more since, this may be of
  // one of them.
  void keep(memory_place const& place, std::uint64_t ends, std::uintptr_t address) noexcept {
    posix_lock const only_me(mutex_);
    // Relaxed: written with the mutex held.
    if (ends_.load(std::memory_order_relaxed) != ends) return;
    // What overlaps one that is there now is not there any more; and this one may have been kept meanwhile.
    drop_if([&](memory_place const& other) { return other.overlaps(place); });
    std::size_t const at = vacancy();
    records_[at].write(place);
    (void)records_[at].take_use();  // what is asked for once does not stay for long
    // Relaxed: see recall().
    hint_of(address).store(static_cast<std::uint32_t>(at), std::memory_order_relaxed);
  }

  COLLX_COLD void drop(memory_place const& gone) noexcept {
    posix_lock const only_me(mutex_);
    drop_if([&](memory_place const& place) { return place.id == gone.id; });
  }

  // With the mutex held; so no record is being written by somebody else, and read() succeeds.
  template <class Condition>
  void drop_if(Condition const& condition) noexcept {
    // Relaxed: written with the mutex held.
    std::size_t const end = used_count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < end; ++i) {
      memory_place place;
      if (records_[i].read(place) && place.bytes != 0 && condition(place)) records_[i].write({});
    }
  }

  // With the mutex held. Relaxed: keep() looks at it with the mutex held, and find() before it asks the
  // driver, about memory that lives.
  void note_end() noexcept { ends_.fetch_add(1, std::memory_order_relaxed); }

  // A record that is empty or, if there is none, has not been asked for since the hand passed it last.
  [[nodiscard]] std::size_t vacancy() noexcept {
    std::size_t const end = used_count_.load(std::memory_order_relaxed);  // written with the mutex held
    for (std::size_t i = 0; i < end; ++i) {
      memory_place place;
      if (records_[i].read(place) && place.bytes == 0) return i;
    }
    if (end < capacity_) {
      used_count_.store(end + 1, std::memory_order_relaxed);
      return end;
    }
    // Bounded: other threads may mark records as fast as the hand goes round.
    for (std::size_t i = 0; i < capacity_ && records_[hand_].take_use(); ++i) hand_ = (hand_ + 1) % capacity_;
    std::size_t const found = hand_;
    hand_ = (hand_ + 1) % capacity_;
    return found;
  }

  Driver driver_;
  std::size_t capacity_;
  std::unique_ptr<place_record[]> records_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> hints_;  // by address: which record
  std::size_t hint_mask_;
  std::atomic<bool> told_{false};
  std::atomic<std::size_t> used_count_{0};  // records from here on were never written
  std::atomic<std::uint64_t> ends_{0};      // frees told of
  std::size_t hand_ = 0;
  posix_mutex mutex_;  // of those who write records
};

}  // namespace collx::inline abi_1::transport::cuda_parts
