// SPDX-License-Identifier: Apache-2.0
// Instructions on multicast addresses, of sm_90: what the switch between GPUs does, with the memory of every
// device behind the address. It adds in the order of the devices here; a GPU promises none.
#include <atomic>
#include <bit>
#include <type_traits>

#include "cuda/emulated/floats.hpp"
#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

using i = instruction;

replicas find_all(thread& t, std::uintptr_t at, std::size_t bytes, char const* how) {
  if (at % bytes != 0) throw fault(std::string("misaligned ") + how + " at " + text_of(at));
  replicas found;
  if (char const* const wrong = find_replicas(at, bytes, found))
    throw fault(std::string("invalid ") + how + " of " + std::to_string(bytes) + " bytes at " + text_of(at) +
                ", " + wrong);
  t.gives_way = true;  // others write there
  return found;
}

// Relaxed, as the instructions say: each word is whole, and no order is promised.
template <class Word>
Word load(std::byte* at) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)).load(std::memory_order_relaxed);
}
template <class Word>
void store(std::byte* at, Word value) {
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)).store(value, std::memory_order_relaxed);
}

// What a word is while it is added up.
template <class T>
struct single {
  using word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  T value;
  explicit single(word bits) : value(std::bit_cast<T>(bits)) {}
  void add(single const& other) { value = static_cast<T>(value + other.value); }
  [[nodiscard]] word bits() const { return std::bit_cast<word>(value); }
};
// ".acc::f32": sums are rounded to 16 bits once.
template <class Half>
struct pair_in_floats {
  using word = std::uint32_t;
  float upper, lower;
  explicit pair_in_floats(word bits)
      : upper(Half{static_cast<std::uint16_t>(bits >> 16)}.value()),
        lower(Half{static_cast<std::uint16_t>(bits)}.value()) {}
  void add(pair_in_floats const& other) { upper += other.upper, lower += other.lower; }
  [[nodiscard]] word bits() const {
    return (std::uint32_t{Half::of(double{upper}).bits} << 16) | Half::of(double{lower}).bits;
  }
};

template <class Sum>
void add_up(thread& t, i const& o) {
  using word = typename Sum::word;
  replicas const all = find_all(t, bits_of(t, o.from[0]), sizeof(word) * o.elements, "multimem.ld_reduce");
  for (std::uint8_t k = 0; k < o.elements; ++k) {
    Sum sum(load<word>(all.at[0] + k * sizeof(word)));
    for (unsigned r = 1; r < all.count; ++r) sum.add(Sum(load<word>(all.at[r] + k * sizeof(word))));
    put<word>(t, o.elements == 1 ? o.to : o.parts[k], sum.bits());
  }
}

template <class Word>
void spread(thread& t, i const& o) {
  replicas const all = find_all(t, bits_of(t, o.to), sizeof(Word) * o.elements, "multimem.st");
  for (unsigned r = 0; r < all.count; ++r)
    for (std::uint8_t k = 0; k < o.elements; ++k)
      store(all.at[r] + k * sizeof(Word), get<Word>(t, o.elements == 1 ? o.from[0] : o.parts[k]));
}

execute_function decode_sum(statement const& s) {
  std::string const& type = s.last();
  if (!s.has("add")) return nullptr;
  if (type == "f32") return add_up<single<float>>;
  if (type == "f64") return add_up<single<double>>;
  if (type == "u32") return add_up<single<std::uint32_t>>;
  if (type == "u64") return add_up<single<std::uint64_t>>;
  if (!s.has("acc::f32")) return nullptr;
  if (type == "f16x2") return add_up<pair_in_floats<half>>;
  if (type == "bf16x2") return add_up<pair_in_floats<bfloat>>;
  return nullptr;
}

}  // namespace

execute_function decode_multimem(statement const& s, instruction& o) {
  if (s.opcode[0] != "multimem" || s.opcode.size() < 3 || s.operands.size() != 2) return nullptr;
  o.elements = s.has("v2") ? 2 : s.has("v4") ? 4 : 1;
  if (s.opcode[1] == "ld_reduce") {
    o.parts = s.operands[0].vector;
    return decode_sum(s);
  }
  if (s.opcode[1] != "st") return nullptr;
  o.parts = s.operands[1].vector;
  std::size_t const bytes = bytes_of_type(s.last());
  return bytes == 4 ? spread<std::uint32_t> : bytes == 8 ? spread<std::uint64_t> : nullptr;
}

}  // namespace emulated
