// SPDX-License-Identifier: Apache-2.0
// What is made once per allocation and used by many calls: an exported or opened IPC handle, a registration
// with a network. Keyed by the identity of the allocation, not by its address alone: memory that is freed and
// allocated again at the same address gets a value of its own, and the old one is undone.
//
// When a value is undone: as soon as nobody uses it and its allocation is known to be gone, because another
// one was found at its addresses (acquire), because somebody said so (forget), or because the driver did
// (sweep); or because its room is needed and nobody uses it. An allocation that nobody says anything of keeps
// its value.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include "collx/core/mutex.hpp"
#include "collx/transport/cuda/memory_place.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

template <class M, class Value>
concept registration_maker = requires(M& maker, memory_place const& place, Value& value) {
  // ok, and `value` is made; or what went wrong, and nothing is left to undo.
  { maker.make(place, value) } noexcept -> std::same_as<status>;
  { maker.undo(place, value) } noexcept -> std::same_as<void>;
};

// For any number of threads. Values are made and undone with a mutex held, one at a time and each once: other
// threads wait for as long as that takes, and a maker must not call back. For set-up, and the first call with
// a buffer; a value that is there costs a lock and one look. All memory is taken when it is made.
template <class Value, registration_maker<Value> Maker>
class registrations {
  static_assert(std::is_nothrow_default_constructible_v<Value> && std::is_nothrow_move_assignable_v<Value>);

  struct entry {
    Value value{};
    memory_place place;
    std::uint64_t owner = 0;
    std::uint64_t last_use = 0;
    std::uint32_t users = 0;
    bool kept = false;   // holds a value
    bool found = false;  // ... for those who come: the allocation is not known to be gone
  };

 public:
  // Identities are of one process. Whoever keeps values for memory of other processes numbers those.
  static constexpr std::uint64_t this_process = 0;

  // The right to use a value. It stays as it is until this ends. Ends before the registrations do.
  class lease {
   public:
    lease() noexcept = default;
    lease(lease&& other) noexcept : of_(other.of_), entry_(other.entry_) { other.entry_ = nullptr; }
    lease& operator=(lease&& other) noexcept {
      if (this == &other) return *this;
      end();
      of_ = other.of_;
      entry_ = other.entry_;
      other.entry_ = nullptr;
      return *this;
    }
    ~lease() { end(); }

    [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
    [[nodiscard]] Value const& value() const noexcept { return entry_->value; }
    [[nodiscard]] memory_place const& place() const noexcept { return entry_->place; }
    void end() noexcept {
      if (entry_ != nullptr) of_->release(*entry_);
      entry_ = nullptr;
    }

   private:
    friend registrations;
    registrations* of_ = nullptr;
    entry* entry_ = nullptr;
  };

  // Keeps up to `capacity` values. Throws bad_alloc.
  explicit registrations(Maker maker = {}, std::size_t capacity = 256)
      : maker_(static_cast<Maker&&>(maker)),
        capacity_(capacity == 0 ? 1 : capacity),
        entries_(std::make_unique<entry[]>(capacity_)),
        hints_(std::make_unique<std::uint32_t[]>(4 * capacity_)) {}
  registrations(registrations const&) = delete;
  ~registrations() {
    for (std::size_t i = 0; i < capacity_; ++i)
      if (entries_[i].kept) undo(entries_[i]);
  }

  // The value of the allocation, made now if there is none. Not ok: what the maker said, which is not kept,
  // so the next call tries again; or out_of_memory, where `capacity` values are in use. `mine` is then empty.
  // For an allocation without an identity, a value is made each time and undone with its lease.
  [[nodiscard]] status acquire(memory_place const& place, lease& mine,
                               std::uint64_t owner = this_process) noexcept {
    mine.end();
    posix_lock const only_me(mutex_);
    entry* at = place.id == 0 ? nullptr : look(place, owner);
    if (at == nullptr) {
      retire_if([&](entry const& e) { return e.owner == owner && e.place.overlaps(place); });
      at = vacancy();
      if (at == nullptr) return status::out_of_memory;
      if (status const made = make(*at, place, owner); made != status::ok) return made;
    }
    ++at->users;
    at->last_use = ++clock_;
    mine.of_ = this;
    mine.entry_ = at;
    return status::ok;
  }

  // The allocation that the address lies in is about to be freed, or was.
  void forget(std::uintptr_t address, std::uint64_t owner = this_process) noexcept {
    posix_lock const only_me(mutex_);
    retire_if([&](entry const& e) { return e.owner == owner && e.place.contains(address); });
  }

  // Everything of an owner: a process that is gone.
  void forget_owner(std::uint64_t owner) noexcept {
    posix_lock const only_me(mutex_);
    retire_if([&](entry const& e) { return e.owner == owner; });
  }

  // Asks a driver (memory_kinds.hpp) after each allocation of this process that has a value: one question
  // each.
  template <class Driver>
  void sweep(Driver& driver) noexcept {
    posix_lock const only_me(mutex_);
    retire_if(
        [&](entry const& e) { return e.owner == this_process && driver.id_of(e.place.base) != e.place.id; });
  }

  // Values there are, used or not.
  [[nodiscard]] std::size_t size() noexcept {
    posix_lock const only_me(mutex_);
    std::size_t count = 0;
    for (std::size_t i = 0; i < capacity_; ++i) count += entries_[i].kept;
    return count;
  }

 private:
  // All of these with the mutex held.
  [[nodiscard]] static bool is_of(entry const& e, memory_place const& place, std::uint64_t owner) noexcept {
    return e.found && e.owner == owner && e.place.base == place.base && e.place.id == place.id;
  }

  [[nodiscard]] std::uint32_t& hint_of(memory_place const& place, std::uint64_t owner) noexcept {
    std::uint64_t mixed = place.id ^ (owner << 48);
    mixed = (mixed ^ place.base >> 8) * 0x9e3779b97f4a7c15ULL;
    return hints_[(mixed >> 32) % (4 * capacity_)];
  }

  // A hint that is wrong costs one pass.
  [[nodiscard]] entry* look(memory_place const& place, std::uint64_t owner) noexcept {
    std::uint32_t& hint = hint_of(place, owner);
    if (is_of(entries_[hint], place, owner)) return &entries_[hint];
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (!is_of(entries_[i], place, owner)) continue;
      hint = static_cast<std::uint32_t>(i);
      return &entries_[i];
    }
    return nullptr;
  }

  [[nodiscard]] status make(entry& e, memory_place const& place, std::uint64_t owner) noexcept {
    if (status const made = maker_.make(place, e.value); made != status::ok) {
      e.value = Value{};
      return made;
    }
    e.place = place;
    e.owner = owner;
    e.kept = true;
    e.found = place.id != 0;
    hint_of(place, owner) = static_cast<std::uint32_t>(&e - entries_.get());
    return status::ok;
  }

  void undo(entry& e) noexcept {
    maker_.undo(e.place, e.value);
    e = entry{};
  }

  void release(entry& e) noexcept {
    posix_lock const only_me(mutex_);
    if (--e.users == 0 && !e.found) undo(e);
  }

  // Who uses it goes on; nobody finds it any more.
  template <class Condition>
  void retire_if(Condition const& condition) noexcept {
    for (std::size_t i = 0; i < capacity_; ++i) {
      entry& e = entries_[i];
      if (!e.found || !condition(e)) continue;
      e.found = false;
      if (e.users == 0) undo(e);
    }
  }

  // An empty entry, else the one that has not been used for longest, undone; null if all are in use.
  [[nodiscard]] entry* vacancy() noexcept {
    entry* oldest = nullptr;
    for (std::size_t i = 0; i < capacity_; ++i) {
      entry& e = entries_[i];
      if (!e.kept) return &e;
      if (e.users == 0 && (oldest == nullptr || e.last_use < oldest->last_use)) oldest = &e;
    }
    if (oldest != nullptr) undo(*oldest);
    return oldest;
  }

  Maker maker_;
  std::size_t capacity_;
  std::unique_ptr<entry[]> entries_;
  std::unique_ptr<std::uint32_t[]> hints_;  // by key: which entry
  std::uint64_t clock_ = 0;
  posix_mutex mutex_;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
