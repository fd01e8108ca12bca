// SPDX-License-Identifier: Apache-2.0
// Memory of which every GPU of a group has a replica, and an address at which the switch between them adds up
// and spreads (NVLS): how ranks come to have it, all of them or none. For ranks of one process, each with a
// GPU of its own. Knows no CUDA: what the driver does is told by `Driver`.
#pragma once

#include <numeric>

#include "collx/core/array.hpp"
#include "collx/transport/cuda/virtual_memory.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// As virtual_memory_driver, and objects that devices are added to and memory is bound to, all of it of one
// length. An object is released as memory is.
template <class D>
concept multicast_driver = virtual_memory_driver<D> &&
    requires(D d, int device, int devices, std::size_t bytes, std::size_t unit, std::uint64_t object,
             std::uint64_t memory) {
  { d.can_multicast(device) }
  noexcept->std::same_as<bool>;
  { d.object_unit(bytes, devices, unit) }
  noexcept->std::same_as<int>;
  { d.create_object(bytes, devices, object) }
  noexcept->std::same_as<int>;
  { d.add_device(object, device) }
  noexcept->std::same_as<int>;
  { d.bind(object, memory, bytes) }
  noexcept->std::same_as<int>;
  { d.unbind(object, device, bytes) }
  noexcept->std::same_as<int>;
};

// The length of object and replicas, and what the addresses of the object are multiples of.
struct multicast_extent {
  std::size_t bytes = 0, object_unit = 0;
};

// A rank's part of it.
template <multicast_driver Driver>
class multicast_replica {
 public:
  multicast_replica() = default;
  multicast_replica(multicast_replica const&) = delete;
  ~multicast_replica() { undo(); }

  // Memory of `device`, bound to an object that all devices have been added to; `devices` of them, all of
  // which reach this replica. False: refused, and nothing is left of it.
  [[nodiscard]] bool bind(Driver driver, std::uint64_t object, multicast_extent const& extent, int device,
                          int const* devices, std::size_t count) noexcept {
    std::size_t const bytes = extent.bytes;
    driver_ = driver, object_ = object, bytes_ = bytes, device_ = device;
    std::uint64_t memory = 0;
    if (driver.create(bytes, device, false, memory) != 0) return false;
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
  std::uint64_t object;  // of rank 0: the driver's handle, which is good for the whole process
  std::uint64_t bytes;   // that were asked for
  std::uint64_t whole;   // rounded up to the driver's units
  std::int64_t device;
  std::int64_t works;
};

// Whole units of the object and of the memory; of 0 bytes if the driver refuses. Objects recommend units of
// their own, which may be large; those of the memory do as well.
template <multicast_driver Driver>
[[nodiscard]] multicast_extent multicast_extent_of(Driver driver, std::size_t bytes, int device,
                                                   int devices) noexcept {
  std::size_t of_object = 0, of_memory = 0;
  if (driver.object_unit(bytes, devices, of_object) != 0 || driver.unit(device, false, of_memory) != 0 ||
      of_object == 0 || of_memory == 0)
    return {};
  std::size_t const whole = in_units(bytes, std::lcm(of_object, of_memory));
  return whole == 0 ? multicast_extent{} : multicast_extent{whole, of_object};
}

// How a group takes these steps.
struct multicast_place {
  rank_t rank;
  int device;
  bool is_one_process;  // all ranks are
};

// Collective: every rank calls it and comes to the same answer, or some would wait for others; so no rank
// goes on before it knows how the step went on all. `gather(offer)`: all ranks' offers, as an array; a
// barrier, too. Returns the object, with `mine` bound to it on every rank; or 0 on every rank, with nothing
// left on any, where one of them cannot do its part. Throws error (bad_argument) on all ranks if `bytes`
// differ, and what gather() does: then this rank is bound to nothing, and the object is left if others may
// be.
template <multicast_driver Driver, class Gather>
[[nodiscard]] std::uint64_t set_up_multicast(Driver driver, multicast_place const& where, std::size_t bytes,
                                             Gather const& gather, multicast_replica<Driver>& mine) {
  auto const all_work = [](array<multicast_offer> const& all) {
    bool works = true;
    for (multicast_offer const& each : all) works = works && each.works != 0;
    return works;
  };
  multicast_offer told{0, bytes, 0, where.device, 0};
  auto const step = [&](bool went_well) {
    told.works = went_well ? 1 : 0;
    return gather(told);
  };
  auto all = step(bytes != 0 && where.is_one_process && driver.can_multicast(where.device));
  bool are_apart = all.size() > 1;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].bytes != bytes)
      throw error(status::bad_argument, "multicast_buffer: the count must be the same on all ranks");
    for (std::size_t other = 0; other < r; ++other)
      are_apart = are_apart && all[r].device != all[other].device;
  }
  if (!are_apart || !all_work(all)) return 0;  // the same on all: it follows from what all know

  // One rank makes the object, and the others must round as it does.
  auto const ranks = static_cast<int>(all.size());
  multicast_extent const extent = multicast_extent_of(driver, bytes, where.device, ranks);
  told.whole = extent.bytes;
  physical_memory<Driver> object;
  bool const is_maker = where.rank == 0;
  bool made = !is_maker;
  if (is_maker && told.whole != 0 && driver.create_object(told.whole, ranks, told.object) == 0) {
    object = physical_memory<Driver>(driver, told.object);
    made = told.object != 0;  // which would say that there is none
  }
  all = step(made && told.whole != 0);
  for (multicast_offer const& each : all)
    if (each.works == 0 || each.whole != all[0].whole) return 0;
  told.object = all[0].object;

  array<int> devices(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) devices[r] = static_cast<int>(all[r].device);
  // Memory can be bound only when all devices are in; and is unbound by all before the object goes.
  bool works = all_work(step(driver.add_device(told.object, where.device) == 0));
  if (!works) return 0;
  try {
    works =
        all_work(step(mine.bind(driver, told.object, extent, where.device, devices.data(), devices.size())));
    if (!works) {
      mine.undo();
      (void)step(false);
    }
  } catch (...) {
    mine.undo();
    // Nobody knows whether others are bound to it, and unbind their memory by this handle.
    object.keep();
    throw;
  }
  if (!works) return 0;
  if (is_maker) object.keep();
  return told.object;
}

}  // namespace collx::inline abi_1::transport::cuda_parts
