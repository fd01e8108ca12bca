// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that is taken, mapped and given back in steps of their own, as the driver's functions for
// virtual memory have it (cuMemCreate and its like): what other processes can map by a descriptor. Each step
// may fail, and nothing is left then. Knows no CUDA: what the driver does is told by `Driver`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fcntl.h>

#include "collx/core/error.hpp"
#include "collx/net/fd.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// Every function returns the driver's code, of which 0 is success; what it gives is valid only then.
template <class D>
concept virtual_memory_driver = std::copyable<D> && std::default_initializable<D> &&
    requires(D d, int device, bool is_shareable, std::size_t bytes, std::uint64_t memory,
             std::uint64_t address, std::size_t alignment, int fd, int const* devices, std::size_t count) {
  // What sizes are multiples of.
  { d.unit(device, is_shareable, bytes) }
  noexcept->std::same_as<int>;
  // Memory, without an address. `is_shareable`: it can be exported.
  { d.create(bytes, device, is_shareable, memory) }
  noexcept->std::same_as<int>;
  // Mappings of it last longer.
  { d.release(memory) }
  noexcept->std::same_as<int>;
  // A descriptor of it, to be closed by who gets it, and that programs may inherit; and, elsewhere, the
  // memory of a descriptor, which stays the caller's.
  { d.export_fd(memory, fd) }
  noexcept->std::same_as<int>;
  { d.import_fd(fd, memory) }
  noexcept->std::same_as<int>;
  // An address that is a multiple of `alignment`, a power of two; 0: what ordinary memory needs.
  { d.reserve(bytes, alignment, address) }
  noexcept->std::same_as<int>;
  { d.free_address(address, bytes) }
  noexcept->std::same_as<int>;
  { d.map(address, bytes, memory) }
  noexcept->std::same_as<int>;
  { d.unmap(address, bytes) }
  noexcept->std::same_as<int>;
  // To read and to write. Others than these have no access.
  { d.grant(address, bytes, devices, count) }
  noexcept->std::same_as<int>;
};

// Which of the driver's functions failed, and with which code; nothing if all went well.
struct driver_outcome {
  char const* failed = nullptr;
  int code = 0;

  [[nodiscard]] explicit operator bool() const noexcept { return failed == nullptr; }
};
[[nodiscard]] inline driver_outcome outcome_of(char const* function, int code) noexcept {
  return code == 0 ? driver_outcome{} : driver_outcome{function, code};
}

// CUDA_ERROR_OUT_OF_MEMORY, without its header.
inline constexpr int driver_out_of_memory = 2;

// Memory without an address, as long as this lives.
template <virtual_memory_driver Driver>
class physical_memory {
 public:
  physical_memory() = default;
  physical_memory(Driver driver, std::uint64_t memory) noexcept
      : driver_(driver), memory_(memory), is_held_(true) {}
  physical_memory(physical_memory&& other) noexcept { swap(other); }
  physical_memory& operator=(physical_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~physical_memory() { reset(); }

  [[nodiscard]] std::uint64_t get() const noexcept { return memory_; }
  void reset() noexcept {
    if (is_held_) (void)driver_.release(memory_);
    is_held_ = false;
  }
  // From here on it is for somebody else to release.
  void keep() noexcept { is_held_ = false; }

 private:
  void swap(physical_memory& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(memory_, other.memory_);
    std::swap(is_held_, other.is_held_);
  }

  Driver driver_{};
  std::uint64_t memory_ = 0;
  bool is_held_ = false;
};

// An address range with memory behind it, as long as this lives.
template <virtual_memory_driver Driver>
class mapped_memory {
 public:
  mapped_memory() = default;
  mapped_memory(mapped_memory&& other) noexcept { swap(other); }
  mapped_memory& operator=(mapped_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~mapped_memory() { reset(); }

  // Maps `memory`, of which the mapping holds on to what lies behind it; `devices`, `count` of them, get
  // access. `alignment`: of the address. Where it fails, `made` is as it was.
  [[nodiscard]] static driver_outcome map(Driver driver, std::uint64_t memory, std::size_t bytes,
                                          int const* devices, std::size_t count, mapped_memory& made,
                                          std::size_t alignment = 0) noexcept {
    mapped_memory fresh;
    fresh.driver_ = driver, fresh.bytes_ = bytes;
    driver_outcome met = outcome_of("cuMemAddressReserve", driver.reserve(bytes, alignment, fresh.address_));
    if (!met) return met;
    fresh.is_reserved_ = true;
    if (met = outcome_of("cuMemMap", driver.map(fresh.address_, bytes, memory)); !met) return met;
    fresh.is_mapped_ = true;
    if (met = fresh.grant(devices, count); !met) return met;
    made = std::move(fresh);
    return {};
  }

  // Gives these devices access, and those that had it keep it.
  [[nodiscard]] driver_outcome grant(int const* devices, std::size_t count) noexcept {
    return outcome_of("cuMemSetAccess", driver_.grant(address_, bytes_, devices, count));
  }

  [[nodiscard]] std::byte* data() const noexcept {
    return is_mapped_ ? reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address_)) : nullptr;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // It stays mapped until the process ends, and belongs to nobody: for who cannot know that nothing on a GPU
  // looks at it.
  void leave() noexcept {
    is_mapped_ = is_reserved_ = false;
    bytes_ = 0;
  }
  void reset() noexcept {
    if (is_mapped_) (void)driver_.unmap(address_, bytes_);
    if (is_reserved_) (void)driver_.free_address(address_, bytes_);
    is_mapped_ = is_reserved_ = false;
    bytes_ = 0;
  }

 private:
  void swap(mapped_memory& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(is_reserved_, other.is_reserved_);
    std::swap(is_mapped_, other.is_mapped_);
  }

  Driver driver_{};
  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
  bool is_reserved_ = false, is_mapped_ = false;
};

// `bytes` as whole units; 0 if there is no such length.
[[nodiscard]] constexpr std::size_t in_units(std::size_t bytes, std::size_t unit) noexcept {
  constexpr std::size_t size_max = PTRDIFF_MAX;
  return unit != 0 && unit < size_max && bytes <= size_max - unit ? (bytes + unit - 1) / unit * unit : 0;
}

// `bytes` as whole units of the driver's. `rounded`: 0 where that fails, or so much there is not.
template <virtual_memory_driver Driver>
[[nodiscard]] driver_outcome whole_units(Driver driver, std::size_t bytes, int device, bool is_shareable,
                                         std::size_t& rounded) noexcept {
  std::size_t unit = 0;
  driver_outcome const met =
      outcome_of("cuMemGetAllocationGranularity", driver.unit(device, is_shareable, unit));
  rounded = met ? in_units(bytes, unit) : 0;
  return rounded != 0 || !met ? met : driver_outcome{"cuMemGetAllocationGranularity", driver_out_of_memory};
}

// Memory of this process, and a descriptor by which others can map it. It is there for as long as anybody
// maps it or has a descriptor of it.
template <virtual_memory_driver Driver>
class shareable_memory {
 public:
  // At least `bytes`, not cleared. Where it fails, nothing is left, and `made` is as it was.
  [[nodiscard]] static driver_outcome make(Driver driver, std::size_t bytes, int device,
                                           shareable_memory& made) noexcept {
    std::size_t whole = 0;
    driver_outcome met = whole_units(driver, bytes, device, true, whole);
    if (!met) return met;
    std::uint64_t memory = 0;
    if (met = outcome_of("cuMemCreate", driver.create(whole, device, true, memory)); !met) return met;
    physical_memory<Driver> const held(driver, memory);
    int fd = -1;
    if (met = outcome_of("cuMemExportToShareableHandle", driver.export_fd(memory, fd)); !met) return met;
    shareable_memory fresh;
    fresh.descriptor_.reset(fd);
    // A program that another thread starts must not hold the memory. If it cannot be said, nothing else goes
    // wrong.
    (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (met = mapped_memory<Driver>::map(driver, memory, whole, &device, 1, fresh.here_); !met) return met;
    made = std::move(fresh);
    return {};
  }

  [[nodiscard]] mapped_memory<Driver>& here() noexcept { return here_; }
  [[nodiscard]] mapped_memory<Driver> const& here() const noexcept { return here_; }
  // For others; -1 once it is closed, which is when they have it.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  void close_descriptor() noexcept { descriptor_.reset(); }

 private:
  mapped_memory<Driver> here_;
  net::owned_fd descriptor_;
};

// Maps what another process has exported, `bytes` of it (as that one's mapping has), for one device of this
// one. The descriptor stays the caller's, and may be closed. Where it fails, `made` is as it was.
template <virtual_memory_driver Driver>
[[nodiscard]] driver_outcome map_descriptor(Driver driver, int fd, std::size_t bytes, int device,
                                            mapped_memory<Driver>& made) noexcept {
  std::uint64_t memory = 0;
  driver_outcome const met = outcome_of("cuMemImportFromShareableHandle", driver.import_fd(fd, memory));
  if (!met) return met;
  physical_memory<Driver> const held(driver, memory);
  return mapped_memory<Driver>::map(driver, memory, bytes, &device, 1, made);
}

// For gpu_communicator: `peer` is whose window was to be had, which may be this rank's own. Throws error
// (out_of_memory, system_failure).
inline void require_window(driver_outcome const& met, rank_t rank, rank_t peer) {
  if (COLLX_LIKELY(static_cast<bool>(met))) return;
  status const code = met.code == driver_out_of_memory ? status::out_of_memory : status::system_failure;
  if (peer == rank)
    throw_error(
        code,
        "gpu_communicator, rank %d: memory for its window: %s failed (CUDA driver error %d); make lanes, "
        "staging or heap smaller (COLLX_CUDA_...), or free memory; if COLLX_CUDA_HANDLES is fd, unset it",
        rank, met.failed, met.code);
  throw_error(
      code,
      "gpu_communicator, rank %d: mapping the window of rank %d: %s failed (CUDA driver error %d); the GPUs "
      "must reach each other's memory, and CUDA_VISIBLE_DEVICES must let each process see both",
      rank, peer, met.failed, met.code);
}

}  // namespace collx::inline abi_1::transport::cuda_parts
