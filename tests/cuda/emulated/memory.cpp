// SPDX-License-Identifier: Apache-2.0
// Instructions that touch memory. A thread of another grid, or of the host, may look at the same words: what
// is volatile, ordered or atomic is atomic here too; the rest is copied as it is.
#include <algorithm>
#include <atomic>
#include <cmath>

#include <immintrin.h>

#include "cuda/emulated/floats.hpp"
#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

using i = instruction;

enum : std::uint8_t { plain = 0, relaxed = 1, acquires = 2, releases = 4, is_signed = 8, to_float = 16 };

template <class T>
std::uint64_t load(std::byte const* from, std::uint8_t how) {
  if ((how & (relaxed | acquires)) != 0) {
    std::atomic_ref<T> const word(*reinterpret_cast<T*>(const_cast<std::byte*>(from)));
    return (how & acquires) != 0 ? word.load(std::memory_order_acquire)
                                 : word.load(std::memory_order_relaxed);
  }
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(std::byte* to, std::uint64_t value, std::uint8_t how) {
  if ((how & (relaxed | releases)) != 0) {
    std::atomic_ref<T> const word(*reinterpret_cast<T*>(to));
    (how & releases) != 0 ? word.store(static_cast<T>(value), std::memory_order_release)
                          : word.store(static_cast<T>(value), std::memory_order_relaxed);
    return;
  }
  T const narrow = static_cast<T>(value);
  std::memcpy(to, &narrow, sizeof narrow);
}

std::uint64_t load_of(std::byte const* from, std::uint8_t bytes, std::uint8_t how) {
  switch (bytes) {
    case 1: return load<std::uint8_t>(from, how);
    case 2: return load<std::uint16_t>(from, how);
    case 4: return load<std::uint32_t>(from, how);
    default: return load<std::uint64_t>(from, how);
  }
}
void store_of(std::byte* to, std::uint8_t bytes, std::uint64_t value, std::uint8_t how) {
  switch (bytes) {
    case 1: return store<std::uint8_t>(to, value, how);
    case 2: return store<std::uint16_t>(to, value, how);
    case 4: return store<std::uint32_t>(to, value, how);
    default: return store<std::uint64_t>(to, value, how);
  }
}
std::uint64_t extended(std::uint64_t value, std::uint8_t bytes, std::uint8_t how) {
  if ((how & is_signed) == 0 || bytes == 8) return value;
  unsigned const unused = 64 - 8 * bytes;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

void load_one(thread& t, i const& o) {
  std::byte const* const from =
      find_memory(t, bits_of(t, o.from[0]), std::size_t{o.bytes} * o.elements, "load");
  // Who polls, gives way: whom it waits for may have the same processor.
  if ((o.detail & (relaxed | acquires)) != 0) t.gives_way = true;
  if (o.elements == 1) {
    put<std::uint64_t>(t, o.to, extended(load_of(from, o.bytes, o.detail), o.bytes, o.detail));
    return;
  }
  for (std::uint8_t k = 0; k < o.elements; ++k)
    put<std::uint64_t>(t, o.parts[k],
                       extended(load_of(from + k * o.bytes, o.bytes, o.detail), o.bytes, o.detail));
}

void store_one(thread& t, i const& o) {
  std::byte* const to = find_memory(t, bits_of(t, o.to), std::size_t{o.bytes} * o.elements, "store");
  if (o.elements == 1) return store_of(to, o.bytes, bits_of(t, o.from[0]), o.detail);
  for (std::uint8_t k = 0; k < o.elements; ++k)
    store_of(to + k * o.bytes, o.bytes, bits_of(t, o.parts[k]), o.detail);
}

// 16 bytes at once, which processors with AVX do with one access.
void load_pair(thread& t, i const& o) {
  std::byte const* const from = find_memory(t, bits_of(t, o.from[0]), 16, "load");
  __m128i const both = _mm_load_si128(reinterpret_cast<__m128i const*>(from));
  t.registers[o.to.index] = static_cast<std::uint64_t>(_mm_extract_epi64(both, 0));
  t.registers[o.to.index + 1] = static_cast<std::uint64_t>(_mm_extract_epi64(both, 1));
  t.gives_way = true;
}
void store_pair(thread& t, i const& o) {
  std::byte* const to = find_memory(t, bits_of(t, o.to), 16, "store");
  std::uint64_t const* const pair = t.registers + o.from[0].index;
  _mm_store_si128(reinterpret_cast<__m128i*>(to),
                  _mm_set_epi64x(static_cast<long long>(pair[1]), static_cast<long long>(pair[0])));
}

// Returns what was there before.
template <class T, class F>
T exchange(std::byte* at, F const& f) {
  std::atomic_ref<T> const word(*reinterpret_cast<T*>(at));
  T old = word.load(std::memory_order_relaxed);
  // The strongest order: weaker ones that the kernel asks for hold too.
  while (!word.compare_exchange_weak(old, f(old), std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  return old;
}

// f(old, operand) is what is stored.
template <class T, auto F>
void atomic(thread& t, i const& o) {
  using word = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  bool const returns = o.detail == 0;
  source const& address = returns ? o.from[0] : o.to;
  source const& operand = returns ? o.from[1] : o.from[0];
  std::byte* const at = find_memory(t, bits_of(t, address), sizeof(T), "atomic");
  T const given = get<T>(t, operand);
  word const old = exchange<word>(
      at, [&](word now) { return std::bit_cast<word>(static_cast<T>(F(std::bit_cast<T>(now), given))); });
  if (returns) put<word>(t, o.to, old);
  t.gives_way = true;
}
template <class T>
void compare_and_swap(thread& t, i const& o) {
  std::byte* const at = find_memory(t, bits_of(t, o.from[0]), sizeof(T), "atomic");
  T const expected = get<T>(t, o.from[1]), wanted = get<T>(t, o.from[2]);
  put<T>(t, o.to, exchange<T>(at, [&](T now) { return now == expected ? wanted : now; }));
  t.gives_way = true;
}

template <class T>
execute_function atomic_of(std::string const& what) {
  if constexpr (std::is_floating_point_v<T>) {
    if (what == "add") return atomic<T, [](T a, T b) { return a + b; }>;
    return nullptr;
  } else {
    using u = std::make_unsigned_t<T>;
    if (what == "add") return atomic<T, [](T a, T b) { return u(u(a) + u(b)); }>;
    if (what == "min") return atomic<T, [](T a, T b) { return std::min(a, b); }>;
    if (what == "max") return atomic<T, [](T a, T b) { return std::max(a, b); }>;
    if (what == "and") return atomic<T, [](T a, T b) { return a & b; }>;
    if (what == "or") return atomic<T, [](T a, T b) { return a | b; }>;
    if (what == "xor") return atomic<T, [](T a, T b) { return a ^ b; }>;
    if (what == "exch") return atomic<T, [](T, T b) { return b; }>;
    if (what == "inc") return atomic<T, [](T a, T b) { return b <= a ? T{0} : static_cast<T>(a + 1); }>;
    if (what == "dec") return atomic<T, [](T a, T b) { return a == 0 || b < a ? b : static_cast<T>(a - 1); }>;
    return nullptr;
  }
}

std::uint8_t order_of(statement const& s) {
  if (s.has("acquire")) return acquires;
  if (s.has("release")) return releases;
  if (s.has("volatile") || s.has("relaxed") || s.has("mmio")) return relaxed;
  return plain;
}

void set_type(statement const& s, i& o) {
  o.bytes = static_cast<std::uint8_t>(bytes_of_type(s.last()));
  o.elements = s.has("v2") ? 2 : s.has("v4") ? 4 : s.has("v8") ? 8 : 1;
  if (s.last()[0] == 's') o.detail |= is_signed;
  if (o.bytes > 8) throw std::runtime_error("more than 64 bits");
}

execute_function decode_atomic(statement const& s, i& o) {
  bool const returns = s.opcode[0] == "atom";
  o.detail = returns ? 0 : 1;
  std::string const& type = s.last();
  if (s.has("cas"))
    return type.ends_with("64")   ? compare_and_swap<std::uint64_t>
           : type.ends_with("32") ? compare_and_swap<std::uint32_t>
                                  : compare_and_swap<std::uint16_t>;
  for (std::size_t k = 1; k + 1 < s.opcode.size(); ++k) {
    std::string const& what = s.opcode[k];
    execute_function f = nullptr;
    if (type == "u32" || type == "b32") f = atomic_of<std::uint32_t>(what);
    if (type == "s32") f = atomic_of<std::int32_t>(what);
    if (type == "u64" || type == "b64") f = atomic_of<std::uint64_t>(what);
    if (type == "s64") f = atomic_of<std::int64_t>(what);
    if (type == "f32") f = atomic_of<float>(what);
    if (type == "f64") f = atomic_of<double>(what);
    if (f != nullptr) return f;
  }
  return nullptr;
}

// membar, fence: threads of one grid take turns, so this is for others.
void fence(thread&, i const&) { std::atomic_thread_fence(std::memory_order_seq_cst); }
// Reaches kernels of its own domain only: one that runs beside others cannot know that those are not who
// waits.
void fence_of_device(thread& t, i const&) {
  if (has_company_of_another_domain(*t.of->of))
    throw fault("a fence of the device's scope beside a kernel of another memory synchronisation domain");
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
void touch(thread&, i const&) {}

void is_in_space(thread& t, i const& o) {
  auto const at = bits_of(t, o.from[0]);
  auto const within = [&](std::uintptr_t begin, std::size_t bytes) {
    return at >= begin && at - begin < bytes;
  };
  bool const shared = within(t.of->shared_begin(), t.of->shared.size());
  bool const local = within(reinterpret_cast<std::uintptr_t>(t.stack.data()), t.stack.size());
  put<std::uint32_t>(t, o.to, o.detail == 0 ? shared : o.detail == 1 ? local : !shared && !local);
}

}  // namespace

execute_function decode_memory(statement const& s, instruction& o) {
  std::string const& op = s.opcode[0];
  if (s.last() == "b128" && (op == "ld" || op == "st")) return op == "ld" ? load_pair : store_pair;
  if (op == "ld" || op == "ldu") {
    o.detail = order_of(s);
    set_type(s, o);
    o.parts = s.operands[0].vector;
    return load_one;
  }
  if (op == "st") {
    o.detail = order_of(s);
    set_type(s, o);
    o.parts = s.operands[1].vector;
    return store_one;
  }
  if (op == "atom" || op == "red") return decode_atomic(s, o);
  if (op == "membar" || op == "fence") return s.last() == "gpu" || s.last() == "gl" ? fence_of_device : fence;
  if (op == "prefetch" || op == "prefetchu" || op == "discard" || op == "applypriority") return touch;
  if (op == "isspacep") return o.detail = s.last() == "shared" ? 0 : s.last() == "local" ? 1 : 2, is_in_space;
  return nullptr;
}

}  // namespace emulated
