// SPDX-License-Identifier: Apache-2.0
// A GPU that is emulated: executes the PTX that nvcc made of a kernel on the host, instruction by
// instruction. Threads of a block take turns, in an order that a seed decides, with so many instructions at a
// time as it decides too; each launch runs in the thread of the host that started it, so that kernels of
// several streams run at the same time and wait for each other as on a GPU, as far as its multiprocessors
// hold their blocks: the others begin when some have ended. Every access is looked up: what lies in no
// allocation, or at an address that does not fit its size, ends the kernel with a text that names both.
//
// What it is not: a model of the memory order between threads of one launch (they see each other's stores in
// program order), of time, or of registers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace emulated {

// What one multiprocessor holds at a time, and how many there are.
inline constexpr unsigned multiprocessors = 8, threads_each = 2048, blocks_each = 32;
inline constexpr std::size_t shared_bytes_each = std::size_t{164} << 10;

struct dimensions {
  unsigned x = 1, y = 1, z = 1;
  [[nodiscard]] std::size_t count() const { return std::size_t{x} * y * z; }
};

struct range {
  std::uintptr_t begin = 0, end = 0;
  std::intptr_t shift = 0;  // where the bytes lie, behind their addresses
};

struct parameter {
  std::size_t offset, bytes;
};

struct function;  // program.hpp

// An `.entry` of a module. Belongs to it.
struct kernel {
  std::string name;
  std::vector<parameter> parameters;
  std::size_t parameter_bytes = 0, static_shared_bytes = 0, local_bytes = 0;
  unsigned max_threads = 1024;
  function const* body = nullptr;
};

struct program;

// PTX of one translation unit, and its variables on the device.
class module {
 public:
  // Throws std::runtime_error, which names the line, where there is something that the machine does not know.
  explicit module(std::string_view ptx);
  ~module();
  module(module const&) = delete;

  // Null if there is no such kernel. An instruction that the machine does not know throws here.
  [[nodiscard]] kernel const* find(std::string_view mangled_name) const;
  // A variable of __device__ or __constant__; null if there is none.
  [[nodiscard]] std::byte* variable(std::string_view mangled_name, std::size_t* bytes) const;
  // Whether one of them lies there; of which memory.
  [[nodiscard]] bool holds(std::uintptr_t at, range& found) const;

 private:
  std::unique_ptr<program> program_;
};

struct launch {
  module const* code = nullptr;
  kernel const* what = nullptr;
  dimensions grid, block;
  std::size_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;  // as kernel::parameters says
  int device = 0;
  unsigned domain = 0;  // of memory synchronisation: what a fence of the device's scope is for
};

inline constexpr unsigned domains_most = 4;

// Executes it to its end in the calling thread. Empty, or what the kernel did that it must not.
[[nodiscard]] std::string run(launch const& what);

// Whether a launch of another domain of the same device is at work now.
[[nodiscard]] bool has_company_of_another_domain(launch const& mine);

// ---- what the runtime provides

// The memory that kernels may touch around an address; false if there is none. The machine keeps what it was
// told until `ranges_changed` counts on.
[[nodiscard]] bool find_range(std::uintptr_t at, range& found);

// Behind a multicast address: the same bytes of every device, in the order of the devices. Null, or why there
// are none. Asked anew at each access: memory is bound by other processes, too.
struct replicas {
  static constexpr unsigned most = 32;
  std::byte* at[most] = {};
  unsigned count = 0;
};
[[nodiscard]] char const* find_replicas(std::uintptr_t at, std::size_t bytes, replicas& found);
extern std::atomic<std::uint64_t> ranges_changed;

}  // namespace emulated
