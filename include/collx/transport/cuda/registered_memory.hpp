// SPDX-License-Identifier: Apache-2.0
// Memory that users have allocated themselves and that all ranks of a group register together: each exports
// the allocation around its part, and maps those of ranks in other processes, so that kernels read and store
// there in place. Knows no CUDA: what the driver does is told by `Driver`.
#pragma once

#include <optional>
#include <span>

#include "collx/core/array.hpp"
#include "collx/core/error.hpp"
#include "collx/transport/cuda/process_name.hpp"
#include "collx/transport/cuda/registrations.hpp"
#include "collx/transport/windows/view.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// What names an allocation in other processes (cudaIpcMemHandle_t). Plain bytes.
struct ipc_handle {
  unsigned char bytes[64];
};

// Every function returns the runtime's code, of which 0 is success.
template <class D>
concept ipc_driver = std::copyable<D> &&
    requires(D d, std::uintptr_t address, ipc_handle& made, ipc_handle const& handle) {
  // Of the allocation that begins at the address.
  { d.export_handle(address, made) }
  noexcept->std::same_as<int>;
  // Where the allocation of another process begins here.
  { d.open_handle(handle, address) }
  noexcept->std::same_as<int>;
  { d.close_handle(address) }
  noexcept->std::same_as<int>;
};

// What a rank tells the others of memory that it registers. Plain bytes. No bytes: it has none.
struct registration_offer {
  process_name process;        // that it is in
  std::uint64_t begin, bytes;  // of what is registered
  std::uint64_t base, whole;   // of the allocation around it
  std::uint64_t id;            // which one of all that ever lay there
  ipc_handle handle;
};

// Why memory cannot be exported; null if it can. `is_plain`: it is of cudaMalloc, and neither of a pool nor
// a mapping.
[[nodiscard]] constexpr char const* not_exported(memory_place const& place, int device,
                                                 bool is_plain) noexcept {
  switch (place.kind) {
    case place_kind::host: return "is not memory that CUDA knows: memory of the host, or freed";
    case place_kind::pinned: return "is memory of the host";
    case place_kind::managed: return "is managed memory (cudaMallocManaged), which no other process can map";
    case place_kind::device: break;
  }
  if (place.device != device) return "lies on another GPU than the group's";
  if (!is_plain || place.bytes == 0 || place.id == 0)
    return "is of a pool (cudaMallocAsync) or a mapping (cuMemMap), of which CUDA gives no handle; or this "
           "GPU, a virtual one, gives none at all";
  return nullptr;
}

// One rank's part. All ranks call the same in the same order, so that places in the lists are the same; who
// asks sees to it that no kernel looks at the lists while they change. Not movable.
template <ipc_driver Driver>
class registered_memory {
  // What is being opened: registrations hand their makers a place, and no more.
  struct pending {
    ipc_handle const* handle = nullptr;
    int code = 0;
  };
  struct opener {
    Driver driver;
    pending* now;

    [[nodiscard]] status make(memory_place const&, std::uintptr_t& address) noexcept {
      now->code = driver.open_handle(*now->handle, address);
      return now->code == 0 ? status::ok : status::system_failure;
    }
    void undo(memory_place const&, std::uintptr_t& address) noexcept { (void)driver.close_handle(address); }
  };
  using opened = registrations<std::uintptr_t, opener>;

  struct mapping {
    typename opened::lease lease;  // empty for ranks of this process
    std::uint64_t owner = 0;
  };
  struct slot {
    bool is_used = false;
    memory_place own;
    array<mapping> theirs;  // by rank
  };

 public:
  // `is_alone`: all ranks are in this process. Not every virtual GPU gives handles, and none are needed.
  registered_memory(Driver driver, rank_t rank, rank_t size, bool is_alone)
      : driver_(driver),
        rank_(rank),
        size_(static_cast<std::size_t>(size)),
        is_alone_(is_alone),
        lists_(size_ * windows::registered_list),
        opened_(opener{driver, &pending_}, size_ * windows::registrations_max) {}
  registered_memory(registered_memory const&) = delete;

  // What the others have to know of `bytes` from `begin`, in the allocation `place`. Throws error
  // (bad_argument, system_failure).
  [[nodiscard]] registration_offer describe(process_name const& process, memory_place const& place,
                                            std::uintptr_t begin, std::size_t bytes) {
    for (slot const& each : slots_)
      if (each.is_used && each.own.overlaps(place) && each.own.id != place.id)
        throw_error(status::bad_argument,
                    "register_memory, rank %d: memory at %p was registered before and freed since; destroy "
                    "that registration, on all ranks, and then register what lies there now",
                    rank_, reinterpret_cast<void*>(each.own.base));
    registration_offer told{process, begin, bytes, place.base, place.bytes, place.id, {}};
    int const code = is_alone_ ? 0 : driver_.export_handle(place.base, told.handle);
    if (code != 0)
      throw_error(status::system_failure,
                  "register_memory, rank %d: CUDA gives no handle of the memory at %p (cudaIpcGetMemHandle: "
                  "error %d); use allocate() of the group, which may have other ways",
                  rank_, reinterpret_cast<void*>(place.base), code);
    return told;
  }

  // Maps what all ranks have told, and enters it into the lists. `mine`: the place that was described.
  // Returns its number. Throws error (out_of_memory, system_failure); nothing is left then.
  [[nodiscard]] int open(std::span<registration_offer const> all, memory_place const& mine) {
    int at = 0;
    while (at < windows::registrations_max && slots_[at].is_used) ++at;
    if (at == windows::registrations_max)
      throw_error(
          status::out_of_memory,
          "register_memory, rank %d: this group has %d registrations, as many as it may have; destroy "
          "one on all ranks, or register larger pieces of memory",
          rank_, windows::registrations_max);
    array<mapping> theirs(size_);
    array<windows::registered_range> found(size_);
    try {
      for (std::size_t r = 0; r < size_; ++r) found[r] = range_of(all, r, theirs[r]);
    } catch (...) {
      for (mapping& each : theirs) give_up(each);  // to end a lease does not close what it is of
      throw;
    }
    for (std::size_t r = 0; r < size_; ++r) entry(r, at) = found[r];
    slots_[at].is_used = true;
    ++used_;
    slots_[at].own = mine;
    slots_[at].theirs = std::move(theirs);
    return at;
  }

  // No kernel looks at it any more, on any rank, and nobody frees before all have come here.
  void close(int at) noexcept {
    slot& gone = slots_[at];
    gone.is_used = false;
    --used_;
    for (std::size_t r = 0; r < size_; ++r) {
      entry(r, at) = vacant;
      for (int last = windows::registrations_max - 1; last >= 0 && entry(r, last).begin <= 1; --last)
        if (!slots_[last].is_used) entry(r, last) = {};
        else break;
    }
    for (std::size_t r = 0; r < size_; ++r) give_up(gone.theirs[r]);
    gone.theirs = {};
  }

  // Of all ranks, one behind the other; what kernels are given.
  [[nodiscard]] std::span<windows::registered_range const> lists() const noexcept {
    return {lists_.data(), lists_.size()};
  }
  // Whether this rank registered something of the allocation that lies at an address now when another one
  // lay there. One may begin before what was registered: kernels would take the part in it for the old one.
  [[nodiscard]] bool is_stale(std::uintptr_t address, memory_place const& now) const noexcept {
    for (slot const& each : slots_)
      if (each.is_used && each.own.id != now.id && (each.own.contains(address) || each.own.overlaps(now)))
        return true;
    return false;
  }
  [[nodiscard]] bool is_empty() const noexcept { return used_ == 0; }

 private:
  // In a list that goes on behind it.
  static constexpr windows::registered_range vacant{1, 1, 0};

  [[nodiscard]] windows::registered_range& entry(std::size_t rank, int at) noexcept {
    return lists_[rank * windows::registered_list + static_cast<std::size_t>(at)];
  }

  // Of a peer's part, as this rank sees it.
  [[nodiscard]] windows::registered_range range_of(std::span<registration_offer const> all, std::size_t peer,
                                                   mapping& made) {
    registration_offer const& theirs = all[peer];
    if (theirs.bytes == 0) return vacant;
    windows::registered_range range{theirs.begin, theirs.begin + theirs.bytes, 0};
    if (theirs.process == all[static_cast<std::size_t>(rank_)].process) return range;
    // Identities are of one process: of the first of its ranks, to whom they are given.
    std::size_t owner = 0;
    while (all[owner].process != theirs.process) ++owner;
    memory_place const place{place_kind::device, 0, static_cast<std::uintptr_t>(theirs.base),
                             static_cast<std::size_t>(theirs.whole), theirs.id};
    pending_ = {&theirs.handle, 0};
    made.owner = owner + 1;
    status const met = opened_.acquire(place, made.lease, made.owner);
    if (met != status::ok)
      throw_error(met,
                  "register_memory, rank %d: mapping memory of rank %zu failed (cudaIpcOpenMemHandle: error "
                  "%d); containers need one IPC namespace, and CUDA_VISIBLE_DEVICES must let each see both "
                  "GPUs",
                  rank_, peer, pending_.code);
    range.shift = static_cast<std::int64_t>(made.lease.value()) - static_cast<std::int64_t>(theirs.base);
    return range;
  }

  // Memory of others must not stay mapped when nobody uses it: they could not free it.
  void give_up(mapping& gone) noexcept {
    if (!gone.lease) return;
    std::uintptr_t const address = gone.lease.value(), base = gone.lease.place().base;
    gone.lease.end();
    for (slot const& each : slots_)
      for (std::size_t r = 0; each.is_used && r < size_; ++r)
        if (each.theirs[r].lease && each.theirs[r].lease.value() == address) return;
    opened_.forget(base, gone.owner);
  }

  Driver driver_;
  rank_t rank_;
  std::size_t size_;
  bool is_alone_;
  pending pending_;
  array<windows::registered_range> lists_;
  opened opened_;
  int used_ = 0;
  slot slots_[windows::registrations_max];  // ends before what it leases
};

}  // namespace collx::inline abi_1::transport::cuda_parts
