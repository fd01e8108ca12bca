// SPDX-License-Identifier: Apache-2.0
// All memory that the emulated GPU reaches, by address. Memory of a device is a file in memory, so that other
// processes can map it. Its addresses are kept apart from those at which its bytes lie (range::shift), so
// whoever touches it from the host is ended by a fault.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/emulated/machine.hpp"
#include "cuda/emulated/runtime/books.hpp"

namespace emulated::runtime {

inline constexpr std::size_t block_bytes = std::size_t{2} << 20;  // what memory of a device is made of
[[nodiscard]] constexpr std::size_t whole_blocks(std::size_t bytes) {
  return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

enum class memory_kind { plain, imported, mapped, multicast, variable, pinned, registered, managed };
[[nodiscard]] constexpr bool is_of_host(memory_kind kind) {
  return kind == memory_kind::pinned || kind == memory_kind::registered;
}

class team;  // team.hpp

// A file in memory, of whole blocks, or of a multicast object. Closed with the last who has it.
struct physical {
  int fd = -1, ordinal = 0;
  std::size_t bytes = 0;
  bool is_shareable = false, is_counted = false;  // among the bytes that the device has
  std::shared_ptr<team> joined;                   // of a multicast object
  physical() = default;
  physical(physical const&) = delete;
  ~physical();
};
// Null if the device has no more memory. Filled with 0xA5.
[[nodiscard]] std::shared_ptr<physical> make_physical(int ordinal, std::size_t bytes);
// One that another process has made; null if it is none. Takes the descriptor.
[[nodiscard]] std::shared_ptr<physical> adopt(int fd);

// Of files that processes share: what they are called, a number that no other has, and a descriptor of what
// another process has open, or -1 if that is gone.
[[nodiscard]] std::string name_of_file(int fd);
[[nodiscard]] std::uint64_t number_of_file(int fd);
[[nodiscard]] int open_file_of(int process, int fd, std::uint64_t number);

struct allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  memory_kind kind = memory_kind::plain;
  int ordinal = 0;
  unsigned long long id = 0;  // no two of a process have the same, ever
  std::shared_ptr<physical> file;
  std::size_t offset = 0;  // in it
  std::set<int> granted;   // of mappings: the devices that may touch it

  [[nodiscard]] bool has(std::uintptr_t at, std::size_t length = 1) const {
    return at >= begin && at - begin < bytes && length <= bytes - (at - begin);
  }
};

// What is entered is found by kernels, copies and questions, from any thread.
class memory_map {
 public:
  // Gives it an identity.
  void enter(allocation what);
  void remove(std::uintptr_t begin);
  void grant(std::uintptr_t begin, int ordinal);
  // Around the address; false if there is nothing.
  [[nodiscard]] bool find(std::uintptr_t at, allocation& found) const;
  [[nodiscard]] bool overlaps(std::uintptr_t begin, std::size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, allocation> known_;
  unsigned long long last_id_ = 0;
};
[[nodiscard]] memory_map& memory();

// Addresses of devices: whole blocks of them, the lowest that are free.
class address_space {
 public:
  address_space();
  [[nodiscard]] std::uintptr_t take(std::size_t bytes, std::size_t alignment = block_bytes);  // 0: none left
  void give_back(std::uintptr_t at, std::size_t bytes);
  // Shows the bytes of a file at addresses that were taken, and hides them.
  [[nodiscard]] bool show(std::uintptr_t at, physical const& what, std::size_t offset, std::size_t bytes);
  void hide(std::uintptr_t at, std::size_t bytes);
  [[nodiscard]] bool has(std::uintptr_t at) const { return at >= begin_ && at - begin_ < bytes_; }
  [[nodiscard]] std::intptr_t shift() const { return shift_; }

 private:
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
  std::intptr_t shift_ = 0;
  std::map<std::uintptr_t, std::size_t> free_;
};
[[nodiscard]] address_space& addresses();

// Where the bytes of an address lie.
[[nodiscard]] std::byte* bytes_at(std::uintptr_t address);
[[nodiscard]] inline std::byte* bytes_at(void const* address) {
  return bytes_at(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace emulated::runtime
