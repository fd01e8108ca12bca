// SPDX-License-Identifier: Apache-2.0
// What an emulated thread, its warp and its block are while a kernel runs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/emulated/low_memory.hpp"
#include "cuda/emulated/machine.hpp"
#include "cuda/emulated/program.hpp"

namespace emulated {

// What a kernel must not do.
struct fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct frame {
  function const* what;
  std::int32_t pc;
  std::size_t registers_at, stack_at;
  instruction const* call;  // that made it
};

struct block;

enum class thread_state : std::uint8_t { ready, at_barrier, ended };

struct thread {
  // Of the frame that runs.
  std::uint64_t* registers = nullptr;
  std::byte* parameters = nullptr;
  std::byte* local = nullptr;
  function const* what = nullptr;
  std::int32_t pc = 0;  // of the next instruction
  thread_state state = thread_state::ready;
  bool gives_way = false;  // it waits for something: others may go first
  std::uint32_t barrier = 0, barrier_count = 0;

  block* of = nullptr;
  unsigned number = 0;  // in the block
  dimensions at{0, 0, 0};
  std::vector<frame> frames;
  std::vector<std::uint64_t> register_stack;
  std::vector<std::byte> stack;                // parameters and local memory of all frames
  range known[2];                              // of memory, and
  std::uint64_t known_at = ~std::uint64_t{0};  // what ranges_changed was
  std::size_t replaced = 0;

  [[nodiscard]] unsigned lane() const { return number % 32; }
  // For another launch. Keeps its memory.
  void restart() {
    state = thread_state::ready;
    gives_way = false;
    frames.clear();
    known_at = ~std::uint64_t{0};
  }
};

struct block {
  launch const* of = nullptr;
  dimensions at{0, 0, 0};
  unsigned number = 0;
  std::vector<std::unique_ptr<thread>> threads;
  low_memory shared;
  std::uint64_t grid = 0;
  unsigned multiprocessor = 0;
  bool is_done = false;

  [[nodiscard]] std::uintptr_t shared_begin() const {
    return reinterpret_cast<std::uintptr_t>(shared.data());
  }
  [[nodiscard]] std::size_t dynamic_at() const { return (of->what->static_shared_bytes + 15) / 16 * 16; }
};

inline constexpr std::size_t stack_bytes = 16 << 10;  // for the frames of functions

void enter(thread& t, function const& what, instruction const* call);
void leave(thread& t);  // the frame
[[nodiscard]] std::uint64_t read_special(thread const& t, special_register which);
[[nodiscard]] std::string where(thread const& t);
[[nodiscard]] std::string text_of(std::uintptr_t at);
// Finds the memory, or throws a fault.
[[nodiscard]] std::byte* find_memory(thread& t, std::uintptr_t at, std::size_t bytes, char const* how);

[[nodiscard, gnu::noinline]] inline std::uint64_t read_other(thread const& t, source const& s) {
  switch (s.kind) {
    case source_kind::constant: return s.bits;
    case source_kind::shared:
      return t.of->shared_begin() + (s.bits >= program::behind_all ? t.of->dynamic_at() : s.bits);
    case source_kind::local: return reinterpret_cast<std::uintptr_t>(t.local) + s.bits;
    case source_kind::given: return reinterpret_cast<std::uintptr_t>(t.of->of->parameters.data()) + s.bits;
    case source_kind::parameter: return reinterpret_cast<std::uintptr_t>(t.parameters) + s.bits;
    case source_kind::special: return read_special(t, static_cast<special_register>(s.index));
    case source_kind::reg:  // bits_of()
    case source_kind::none: break;
  }
  return 0;
}

// All bits of it; an address is one, too.
[[nodiscard]] inline std::uint64_t bits_of(thread const& t, source const& s) {
  if (s.kind == source_kind::reg) [[likely]]
    return t.registers[s.index] + s.bits;
  return read_other(t, s);
}

template <class T>
[[nodiscard]] T get(thread const& t, source const& s) {
  std::uint64_t const bits = bits_of(t, s);
  if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return value;
  }
}

template <class T>
void put(thread& t, source const& s, T const& value) {
  if (s.kind == source_kind::none) return;
  std::uint64_t bits = 0;
  if constexpr (std::is_integral_v<T>) bits = static_cast<std::uint64_t>(value);  // with its sign
  else std::memcpy(&bits, &value, sizeof value);
  t.registers[s.index] = bits;
}

}  // namespace emulated
