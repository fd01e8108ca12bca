// SPDX-License-Identifier: Apache-2.0
// Memory of another process that it does not share, copied by the system straight to where it is wanted
// (Linux: cross-memory attach). One copy instead of two, where the system permits it: processes of one
// user that may be debugged, or a privileged reader.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collx/core/array.hpp"
#include "collx/core/atomic_word.hpp"
#include "collx/core/clock.hpp"
#include "collx/core/status.hpp"
#include "collx/core/types.hpp"
#include "collx/device/copy_cached.hpp"

namespace collx::inline abi_1::transport::shared_memory {

namespace detail {

// ok: so many bytes of it are there.
[[nodiscard]] inline status read_once(std::int32_t process, std::uint64_t from, std::byte* to,
                                      std::size_t bytes) noexcept {
  while (bytes != 0) {
    iovec const here{to, bytes};
    iovec const there{reinterpret_cast<void*>(from), bytes};
    ssize_t const got = process_vm_readv(process, &here, 1, &there, 1, 0);
    // Less than asked for is no error: what is wrong with the rest, the next call says.
    if (got <= 0) return got < 0 && errno == ESRCH ? status::peer_lost : status::system_failure;
    from += static_cast<std::size_t>(got);
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return status::ok;
}

[[nodiscard]] inline status write_once(std::int32_t process, std::uint64_t to, std::byte const* from,
                                       std::size_t bytes) noexcept {
  while (bytes != 0) {
    iovec const here{const_cast<std::byte*>(from), bytes};  // the system only reads it
    iovec const there{reinterpret_cast<void*>(to), bytes};
    ssize_t const put = process_vm_writev(process, &here, 1, &there, 1, 0);
    if (put <= 0) return put < 0 && errno == ESRCH ? status::peer_lost : status::system_failure;
    to += static_cast<std::uint64_t>(put);
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return status::ok;
}

#if defined(COLLX_AVX2)
// The system copies strings, too. What would crawl goes through memory that lies otherwise, and stays in the
// first-level cache: 5 GB/s instead of 2 on Zen 3. Only with vectors, or the detour would crawl itself.
inline constexpr std::size_t detour_bytes = 16 * 1024, detour_bytes_min = 2048;

[[nodiscard]] inline bool wants_detour(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept {
  return bytes >= detour_bytes_min && device::cpu::copies_strings_slowly && device::string_crawls(to, from);
}

// `rooms` has 64 bytes more than a detour: with those it may lie where nothing crawls.
[[nodiscard]] COLLX_NEVER_INLINE inline status read_by_detour(std::int32_t process, std::uint64_t from,
                                                              std::byte* to, std::size_t bytes) noexcept {
  alignas(64) std::byte rooms[detour_bytes + 64];
  std::byte* const room =
      rooms + (device::string_crawls(reinterpret_cast<std::uintptr_t>(rooms), from) ? 64 : 0);
  for (std::size_t at = 0; at < bytes; at += detour_bytes) {
    std::size_t const n = bytes - at < detour_bytes ? bytes - at : detour_bytes;
    status const outcome = read_once(process, from + at, room, n);
    if (outcome != status::ok) return outcome;
    device::copy_cached(to + at, room, n);
  }
  return status::ok;
}

[[nodiscard]] COLLX_NEVER_INLINE inline status write_by_detour(std::int32_t process, std::uint64_t to,
                                                               std::byte const* from,
                                                               std::size_t bytes) noexcept {
  alignas(64) std::byte rooms[detour_bytes + 64];
  std::byte* const room =
      rooms + (device::string_crawls(to, reinterpret_cast<std::uintptr_t>(rooms)) ? 64 : 0);
  for (std::size_t at = 0; at < bytes; at += detour_bytes) {
    std::size_t const n = bytes - at < detour_bytes ? bytes - at : detour_bytes;
    device::copy_cached(room, from + at, n);
    status const outcome = write_once(process, to + at, room, n);
    if (outcome != status::ok) return outcome;
  }
  return status::ok;
}

#endif

}  // namespace detail

// `from` is an address in the other process. peer_lost: there is no such process. system_failure: it does
// not let this one read, or there is no memory at one of the addresses.
[[nodiscard]] inline status read_memory_of(std::int32_t process, std::uint64_t from, std::byte* to,
                                           std::size_t bytes) noexcept {
#if defined(COLLX_AVX2)
  if (COLLX_UNLIKELY(detail::wants_detour(reinterpret_cast<std::uintptr_t>(to), from, bytes)))
    return detail::read_by_detour(process, from, to, bytes);
#endif
  return detail::read_once(process, from, to, bytes);
}

// The other way. `to` is an address in the other process.
[[nodiscard]] inline status write_memory_of(std::int32_t process, std::uint64_t to, std::byte const* from,
                                            std::size_t bytes) noexcept {
#if defined(COLLX_AVX2)
  if (COLLX_UNLIKELY(detail::wants_detour(to, reinterpret_cast<std::uintptr_t>(from), bytes)))
    return detail::write_by_detour(process, to, from, bytes);
#endif
  return detail::write_once(process, to, from, bytes);
}

// How long it takes to copy one more page of memory that is in the cache.
struct page_copy {
  double by_system_ns;
  double cost;  // how many times as long that is as a copy of one's own takes
};

// Reads its own memory, for some 60 us; of several times the shortest counts, since others are at work.
[[nodiscard]] COLLX_COLD inline page_copy time_page_copy_once() {
  using device::page_bytes;
  constexpr std::size_t pages = 16;
  constexpr int times = 6;
  array<std::uint64_t> words(2 * (pages + 1) * page_bytes / 8);
  auto* const memory = reinterpret_cast<std::byte*>(words.data());
  // Wherever that lies: the one is 16 bytes into a page, as much memory is, and the other where no processor
  // crawls (device/copy_cached.hpp).
  std::uintptr_t const in_page = reinterpret_cast<std::uintptr_t>(memory) % page_bytes;
  std::byte* const from = memory + (page_bytes + 16 - in_page) % page_bytes;
  std::byte* const to = from + pages * page_bytes + 48;
  auto const own = reinterpret_cast<std::uintptr_t>(from);
  // The library's: compilers put in copies of their own, some of them slow, where they see a call.
  void* (*volatile const copy)(void*, void const*, std::size_t) = std::memcpy;
  // How much longer all pages take than one.
  double more_pages_ns[2];
  for (int by_system = 0; by_system < 2; ++by_system) {
    std::uint64_t least[2] = {~std::uint64_t{0}, ~std::uint64_t{0}};
    for (int i = 0; i < 2 * times; ++i) {
      int const all = i % 2;
      std::size_t const bytes = all == 0 ? page_bytes : pages * page_bytes;
      std::uint64_t const begin = now_ns();
      // A refusal takes no time, and is met again when peers are asked.
      if (by_system != 0) (void)read_memory_of(getpid(), own, to, bytes);
      else copy(to, from, bytes);
      std::uint64_t const took = now_ns() - begin;
      least[all] = took < least[all] ? took : least[all];
    }
    std::uint64_t const more = least[1] > least[0] ? least[1] - least[0] : 1;
    more_pages_ns[by_system] = static_cast<double>(more) / (pages - 1);
  }
  return {more_pages_ns[1], more_pages_ns[1] / more_pages_ns[0]};
}
// Of some attempts the shortest time, and the highest cost: a busy thread of the same core slows down a copy
// within the cache more than a call.
[[nodiscard]] COLLX_COLD inline page_copy time_page_copy() {
  page_copy all = time_page_copy_once();
  for (int attempt = 1; attempt < 4; ++attempt) {
    page_copy const one = time_page_copy_once();
    if (one.by_system_ns < all.by_system_ns) all.by_system_ns = one.by_system_ns;
    if (one.cost > all.cost) all.cost = one.cost;
  }
  return all;
}

// Which of this process's memory others can read so: all that is ordinary, and not what the driver of a
// device has mapped. Found out by reading it the same way, and remembered by regions.
class own_memory {
 public:
  // Looks at both ends. A region where memory of the other kind has taken the place of ordinary one is
  // still taken for readable: to read it is then an error, and no wrong result.
  [[nodiscard]] bool readable(std::byte const* begin, std::size_t bytes) noexcept {
    return is_known(begin) && is_known(begin + bytes - 1);
  }

 private:
  static constexpr std::size_t region_bytes = std::size_t{1} << 21;
  static constexpr std::size_t remembered = 128;

  [[nodiscard]] bool is_known(std::byte const* p) noexcept {
    std::uint64_t const region = reinterpret_cast<std::uintptr_t>(p) / region_bytes;
    atomic_word<std::uint64_t>& entry = known_[region % remembered];
    // Relaxed: threads may find out the same twice.
    if (COLLX_LIKELY(entry.load(std::memory_order_relaxed) == region)) return true;
    if (!can_be_read(p)) return false;
    entry.store(region, std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] COLLX_NEVER_INLINE static bool can_be_read(std::byte const* p) noexcept {
    std::byte unused;
    return read_memory_of(getpid(), reinterpret_cast<std::uintptr_t>(p), &unused, 1) == status::ok;
  }

  atomic_word<std::uint64_t> known_[remembered]{};  // nobody's memory lies in region 0
};

}  // namespace collx::inline abi_1::transport::shared_memory
