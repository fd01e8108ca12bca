// SPDX-License-Identifier: Apache-2.0
// The memory that the processes of one host share: one anonymous file (memfd) whose only names are
// file descriptors. When the last process is gone, however it went, so is the memory.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collx/core/processors.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/mapped/doorbell.hpp"
#include "collx/transport/mapped/layout.hpp"
#include "collx/transport/shared_memory/huge_pages.hpp"
#include "collx/transport/shared_memory/process.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::transport::shared_memory {

[[noreturn]] COLLX_COLD inline void throw_system(char const* what, char const* advice) {
  throw_error(status::system_failure, "%s: %s; %s", what, std::strerror(errno), advice);
}

// What one rank tells the others about itself.
struct alignas(mapped::line_bytes) member {
  atomic_word<std::int32_t> process;       // pid, 0 until it has joined; stored last
  atomic_word<std::uint32_t> claimed;      // 1: some process joins, or has joined, as this rank
  std::uint64_t start_time;                // tells a process from a later one with its pid
  mapped::doorbell bell;
  std::uint64_t known_word_at;             // where, in the process's own memory, a word lies
  std::uint64_t known_word;                // and what it says: who reads it there may read private memory
  atomic_word<std::uint32_t> writing;      // threads that write to private memory of others just now
};

// At the begin of the segment. Everything is zero when it is made.
struct header {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t size;
  settings chosen;
  std::uint64_t pid_namespace;  // of who made it; see process_namespace()
  mapped::alarm alarm;
  atomic_word<std::uint32_t> joined;    // so many ranks have; what those who wait for the others sleep on
  atomic_word<std::uint32_t> unfenced;  // 1: the system refused some rank to join the fences
  processor_set processors;             // that the ranks which have joined may use, all together
  atomic_word<std::int32_t> readers;    // ranks that can read and write the private memory of all others
  atomic_word<std::uint32_t> slow_page_ns;      // what a page takes the system, if a reader found that slow
  atomic_word<std::uint32_t> doubtful_page_ns;  // the same, if one was in doubt
  // followed by `size` members

  static constexpr std::uint64_t magic_value = 0x636f'6c6c'7873'686dULL;  // "collxshm"
  static constexpr std::uint32_t version_value = 14;
};

// A process's view of the segment: [header and members][rank 0's region][rank 1's region]...
// A region is the rank's block of the world communicator, then its heap.
class segment {
 public:
  // Makes the memory; the descriptor is passed on by fork or by a rendezvous.
  [[nodiscard]] COLLX_COLD static int create(rank_t size, settings const& given) {
    settings const chosen = given.checked();
    int const fd = static_cast<int>(syscall(SYS_memfd_create, "collx", 1u /* MFD_CLOEXEC */));
    if (fd < 0) throw_system("memfd_create", "the kernel must be 3.17 or newer and allow it");
    segment const shape(size, chosen);
    // Sparse: a page takes memory when it is touched.
    if (ftruncate(fd, static_cast<off_t>(shape.total_bytes_)) != 0) {
      close(fd);
      throw_system("reserving the shared segment", "set COLLX_HEAP_BYTES to less");
    }
    void* const p = mmap(nullptr, sizeof(header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
      close(fd);
      throw_system("mapping the shared segment", "free memory");
    }
    header* const head = ::new (p) header{};
    head->version = header::version_value;
    head->size = size;
    head->chosen = chosen;
    head->pid_namespace = process_namespace();
    head->magic = header::magic_value;
    munmap(p, sizeof(header));
    return fd;
  }

  // Maps the segment behind `fd`, which stays the caller's.
  [[nodiscard]] COLLX_COLD static segment attach(int fd) {
    header head{};
    if (pread(fd, static_cast<void*>(&head), sizeof head, 0) != static_cast<ssize_t>(sizeof head) ||
        head.magic != header::magic_value || head.version != header::version_value || head.size < 1)
      throw error(status::system_failure,
                  "the descriptor is no segment of this version; all ranks must run the "
                  "same version of collx");
    require_same_numbers(head.pid_namespace);
    segment mine(head.size, head.chosen);
    void* const p = map_aligned(mine.total_bytes_, fd);
    if (p == MAP_FAILED)
      throw_system("mapping the shared segment", "set COLLX_HEAP_BYTES to less, on every rank");
    mine.base_ = static_cast<std::byte*>(p);
    return mine;
  }

  segment(segment&& other) noexcept
      : base_(other.base_), size_(other.size_), layout_(other.layout_), chosen_(other.chosen_),
        total_bytes_(other.total_bytes_) {
    other.base_ = nullptr;
  }
  segment(segment const&) = delete;
  ~segment() {
    if (base_ != nullptr) munmap(base_, total_bytes_);
  }

  [[nodiscard]] rank_t size() const noexcept { return size_; }
  [[nodiscard]] settings const& chosen() const noexcept { return chosen_; }
  [[nodiscard]] mapped::block_layout const& layout() const noexcept { return layout_; }
  [[nodiscard]] header& head() const noexcept { return *reinterpret_cast<header*>(base_); }
  [[nodiscard]] member& of(rank_t rank) const noexcept {
    return *(reinterpret_cast<member*>(base_ + line_of_header) + rank);
  }
  [[nodiscard]] std::byte* block(rank_t rank) const noexcept {
    return base_ + header_bytes() + static_cast<std::size_t>(rank) * region_bytes();
  }
  [[nodiscard]] std::byte* heap(rank_t rank) const noexcept { return block(rank) + layout_.block_bytes(); }

  // Offsets are the addresses that ranks tell each other; 0, the header, is nobody's payload.
  [[nodiscard]] std::uint64_t offset_of(void const* p, std::size_t bytes) const noexcept {
    auto const begin = reinterpret_cast<std::uintptr_t>(base_), at = reinterpret_cast<std::uintptr_t>(p);
    return at >= begin && at + bytes <= begin + total_bytes_ ? at - begin : 0;
  }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return base_ + offset; }

 private:
  // Ranks know each other's processes by number. In another namespace the numbers are nobody's, and their
  // ranks seem to have ended; or, worse, those of other processes.
  COLLX_COLD static void require_same_numbers(std::uint64_t maker) {
    std::uint64_t const here = process_namespace();
    if (maker == 0 || here == 0 || maker == here) return;
    throw error(status::not_supported,
                "the shared memory was made in another PID namespace (another container), where processes "
                "have other numbers; let all ranks of a host share one (docker run --pid=host or "
                "--pid=container:NAME; Kubernetes: shareProcessNamespace), or use transport::composite or "
                "transport::tcp, which need none");
  }

  // Huge pages need addresses that lie as they do in the file: it begins where a huge page could.
  [[nodiscard]] static void* map_aligned(std::size_t bytes, int fd) noexcept {
    std::size_t const room = bytes + huge_page_bytes;
    void* const reserved =
        mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return MAP_FAILED;
    auto* const begin = static_cast<std::byte*>(reserved);
    std::size_t const before = bytes_to_huge_page(begin);
    void* const p = mmap(begin + before, bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
    if (p == MAP_FAILED) {
      int const why = errno;
      munmap(begin, room);
      errno = why;
      return MAP_FAILED;
    }
    if (before != 0) munmap(begin, before);
    // Sizes are whole pages. What is left behind the segment is whole pages, too.
    munmap(begin + before + bytes, huge_page_bytes - before);
    return p;
  }

  static constexpr std::size_t line_of_header = (sizeof(header) + 63) / 64 * 64;

  segment(rank_t size, settings const& chosen) noexcept
      : size_(size), layout_{size, chosen.staging_bytes}, chosen_(chosen) {
    total_bytes_ = header_bytes() + static_cast<std::size_t>(size) * region_bytes();
  }

  [[nodiscard]] std::size_t header_bytes() const noexcept {
    return (line_of_header + static_cast<std::size_t>(size_) * sizeof(member) + 4095) / 4096 * 4096;
  }
  [[nodiscard]] std::size_t region_bytes() const noexcept {
    return layout_.block_bytes() + chosen_.heap_bytes;
  }

  std::byte* base_ = nullptr;
  rank_t size_;
  mapped::block_layout layout_;
  settings chosen_;
  std::size_t total_bytes_ = 0;
};

}  // namespace collx::inline abi_1::transport::shared_memory
