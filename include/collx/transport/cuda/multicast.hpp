// SPDX-License-Identifier: Apache-2.0
// Memory of which every GPU of a group has a replica, and an address at which the switch between them adds up
// and spreads (NVLS): how ranks come to have it, all of them or none. Each rank has a GPU of its own; they
// may be threads of one process or processes of one host. Knows no CUDA: what the driver does is told by
// `Driver`.
#pragma once

#include <numeric>

#include "collx/core/array.hpp"
#include "collx/transport/cuda/process_name.hpp"
#include "collx/transport/cuda/virtual_memory.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// As virtual_memory_driver, and objects that devices are added to and memory is bound to, all of it of one
// length. An object is exported, imported and released as memory is.
template <class D>
concept multicast_driver = virtual_memory_driver<D> &&
    requires(D d, int device, int devices, bool is_shareable, std::size_t bytes, std::size_t unit,
             std::uint64_t object, std::uint64_t memory) {
  { d.can_multicast(device) }
  noexcept->std::same_as<bool>;
  { d.object_unit(bytes, devices, is_shareable, unit) }
  noexcept->std::same_as<int>;
  { d.create_object(bytes, devices, is_shareable, object) }
  noexcept->std::same_as<int>;
  { d.add_device(object, device) }
  noexcept->std::same_as<int>;
  { d.bind(object, memory, bytes) }
  noexcept->std::same_as<int>;
  { d.unbind(object, device, bytes) }
  noexcept->std::same_as<int>;
};

// The length of object and replicas, what the addresses of the object are multiples of, and whether object
// and memory are made so that they can be exported.
struct multicast_extent {
  std::size_t bytes = 0, object_unit = 0;
  bool is_shareable = false;
};

// A rank's part of it.
template <multicast_driver Driver>
class multicast_replica {
 public:
  multicast_replica() = default;
  multicast_replica(multicast_replica const&) = delete;
  ~multicast_replica() { undo(); }

  // Memory of `device`, bound to an object that all devices have been added to; `devices`: those of this
  // process, all of which reach this replica. False: refused, and nothing is left of it.
  [[nodiscard]] bool bind(Driver driver, std::uint64_t object, multicast_extent const& extent, int device,
                          int const* devices, std::size_t count) noexcept {
    std::size_t const bytes = extent.bytes;
    driver_ = driver, object_ = object, bytes_ = bytes, device_ = device;
    std::uint64_t memory = 0;
    if (driver.create(bytes, device, extent.is_shareable, memory) != 0) return false;
    memory_ = physical_memory<Driver>(driver, memory);
    is_bound_ = driver.bind(object, memory, bytes) == 0;
    using mapped = mapped_memory<Driver>;
    if (is_bound_ && mapped::map(driver, memory, bytes, devices, count, own_) &&
        mapped::map(driver, object, bytes, &device, 1, all_, extent.object_unit))
      return true;
    undo();
    return false;
  }

  // This rank's replica; and the address of all of them.
  [[nodiscard]] std::byte* own() const noexcept { return own_.data(); }
  [[nodiscard]] std::byte* all() const noexcept { return all_.data(); }

  // When no kernel of any rank looks at it any more.
  void undo() noexcept {
    all_.reset();
    own_.reset();
    if (is_bound_) (void)driver_.unbind(object_, device_, bytes_);
    is_bound_ = false;
    memory_.reset();
  }

 private:
  Driver driver_{};
  physical_memory<Driver> memory_;
  mapped_memory<Driver> own_, all_;
  std::uint64_t object_ = 0;
  std::size_t bytes_ = 0;
  int device_ = 0;
  bool is_bound_ = false;
};

// What a rank can do, and has done, as the others have to know it. Plain bytes.
struct multicast_offer {
  std::uint64_t object;      // of rank 0: the driver's handle, which is good for the whole process
  std::uint64_t bytes;       // that were asked for
  std::uint64_t whole;       // rounded up to the driver's units
  process_name process;      // that the rank is in
  std::uint64_t gpu[2];      // what its GPU is called everywhere
  std::int64_t device;       // and in its process
  std::int64_t works;

  [[nodiscard]] bool has_gpu_of(multicast_offer const& other) const noexcept {
    return gpu[0] == other.gpu[0] && gpu[1] == other.gpu[1];
  }
};

// Whole units of the object and of the memory; of 0 bytes if the driver refuses. Objects recommend units of
// their own, which may be large; those of the memory do as well.
template <multicast_driver Driver>
[[nodiscard]] multicast_extent multicast_extent_of(Driver driver, std::size_t bytes, int device, int devices,
                                                   bool is_shareable) noexcept {
  std::size_t of_object = 0, of_memory = 0;
  if (driver.object_unit(bytes, devices, is_shareable, of_object) != 0 ||
      driver.unit(device, is_shareable, of_memory) != 0 || of_object == 0 || of_memory == 0)
    return {};
  std::size_t const whole = in_units(bytes, std::lcm(of_object, of_memory));
  return whole == 0 ? multicast_extent{} : multicast_extent{whole, of_object, is_shareable};
}

// Where a rank is in a group that takes these steps.
struct multicast_place {
  rank_t rank;
  int device;
  std::uint64_t gpu[2];  // as in an offer
  process_name process;
};

// A group's steps. No rank goes on before it knows how a step went on all: or some would wait for others.
template <multicast_driver Driver, class Gather>
class multicast_steps {
 public:
  multicast_steps(Driver driver, multicast_place const& where, std::size_t bytes, Gather const& gather)
      : driver_(driver), where_(where), gather_(gather), told_{0,
                                                               bytes,
                                                               0,
                                                               where.process,
                                                               {where.gpu[0], where.gpu[1]},
                                                               where.device,
                                                               0} {}

  // Whether every rank can, each with a GPU of its own. Throws error (bad_argument) on all ranks if lengths
  // differ.
  [[nodiscard]] bool begin() {
    take(told_.bytes != 0 && driver_.can_multicast(where_.device));
    bool are_apart = all_.size() > 1;
    for (std::size_t r = 0; r < all_.size(); ++r) {
      if (all_[r].bytes != told_.bytes)
        throw error(status::bad_argument, "multicast_buffer: the count must be the same on all ranks");
      spans_processes_ = spans_processes_ || all_[r].process != all_[0].process;
      for (std::size_t other = 0; other < r; ++other)
        are_apart = are_apart && !all_[r].has_gpu_of(all_[other]);
    }
    return are_apart && all_work();
  }

  // The object, of rank 0, which the others round as it does. `held`: by rank 0.
  [[nodiscard]] bool make(physical_memory<Driver>& held) {
    auto const ranks = static_cast<int>(all_.size());
    extent_ = multicast_extent_of(driver_, told_.bytes, where_.device, ranks, spans_processes_);
    told_.whole = extent_.bytes;
    bool made = where_.rank != 0;
    if (!made && told_.whole != 0 &&
        driver_.create_object(told_.whole, ranks, spans_processes_, told_.object) == 0) {
      held = physical_memory<Driver>(driver_, told_.object);
      made = told_.object != 0;  // which would say that there is none
    }
    take(made && told_.whole != 0);
    for (multicast_offer const& each : all_)
      if (each.works == 0 || each.whole != all_[0].whole) return false;
    return true;
  }

  // This rank's handle of it, and its device among those of the object. `held`: by ranks of other processes
  // than rank 0's. `share(fd)`: see set_up_multicast.
  template <class Share>
  [[nodiscard]] bool join(physical_memory<Driver>& held, Share const& share) {
    told_.object = all_[0].object;
    bool const has_handle = !spans_processes_ || pass_on(held, share);
    return next(has_handle && driver_.add_device(told_.object, where_.device) == 0);
  }

  // Memory can be bound only when all devices are in.
  [[nodiscard]] bool bind(multicast_replica<Driver>& mine) {
    array<int> near(all_.size());
    std::size_t count = 0;
    for (multicast_offer const& each : all_)
      if (each.process == told_.process) near[count++] = static_cast<int>(each.device);
    return next(mine.bind(driver_, told_.object, extent_, where_.device, near.data(), count));
  }

  // How this rank's part went; whether that of all did.
  [[nodiscard]] bool next(bool went_well) {
    take(went_well);
    return all_work();
  }
  [[nodiscard]] std::uint64_t object() const noexcept { return told_.object; }

 private:
  void take(bool went_well) {
    told_.works = went_well ? 1 : 0;
    all_ = gather_(told_);
  }
  [[nodiscard]] bool all_work() const noexcept {
    bool works = true;
    for (multicast_offer const& each : all_) works = works && each.works != 0;
    return works;
  }

  // What goes wrong here on one rank must not keep it from the next step, where the others wait.
  template <class Share>
  [[nodiscard]] bool pass_on(physical_memory<Driver>& held, Share const& share) noexcept {
    try {
      net::owned_fd mine;
      int fd = -1;
      bool const exported = where_.rank != 0 || driver_.export_fd(told_.object, fd) == 0;
      mine.reset(fd);
      if (fd >= 0) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);  // as in shareable_memory
      net::owned_fd const theirs = share(mine.get());
      if (told_.process == all_[0].process) return exported;
      if (theirs.get() < 0 || driver_.import_fd(theirs.get(), told_.object) != 0) return false;
      held = physical_memory<Driver>(driver_, told_.object);
      return true;
    } catch (...) {
      return false;
    }
  }

  Driver driver_;
  multicast_place where_;
  Gather const& gather_;
  multicast_offer told_;
  array<multicast_offer> all_;
  multicast_extent extent_;
  bool spans_processes_ = false;
};

// Collective: every rank calls it and comes to the same answer. `gather(offer)`: all ranks' offers, as an
// array; a barrier, too. `share(fd)`: where ranks are in several processes, hands rank 0's descriptor to
// those of other processes than its own, and returns it there (net::owned_fd); it may throw. Returns this
// rank's handle of the object, with `mine` bound to it on every rank; or 0 on every rank, with nothing left
// on any, where one of them cannot do its part. `held`: the handle, where it is for this rank to release,
// when all are unbound. Throws error (bad_argument) on all ranks if `bytes` differ, and what gather() does:
// then this rank is bound to nothing, and the object is left if others may be.
template <multicast_driver Driver, class Gather, class Share>
[[nodiscard]] std::uint64_t set_up_multicast(Driver driver, multicast_place const& where, std::size_t bytes,
                                             Gather const& gather, Share const& share,
                                             multicast_replica<Driver>& mine, physical_memory<Driver>& held) {
  multicast_steps<Driver, Gather> steps(driver, where, bytes, gather);
  physical_memory<Driver> object;
  if (!steps.begin() || !steps.make(object) || !steps.join(object, share)) return 0;
  try {
    if (!steps.bind(mine)) {
      mine.undo();
      (void)steps.next(false);  // all are unbound before the object goes
      return 0;
    }
  } catch (...) {
    mine.undo();
    // Nobody knows whether others are bound to it, and unbind their memory by this handle.
    object.keep();
    throw;
  }
  held = std::move(object);
  return steps.object();
}

}  // namespace collx::inline abi_1::transport::cuda_parts
