// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since there is one kind of vectors where nothing is optimised
// Which kind of vectors a program uses: the widest, or what COLLX_VECTORS names, and what is said of a name
// that makes no sense.
#include "collx/device/cpu.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/transport/settings.hpp"

namespace cpu = collx::device::cpu;

namespace {

constexpr cpu::vector_kind kinds[] = {cpu::vector_kind::generic, cpu::vector_kind::avx2,
                                      cpu::vector_kind::avx512};

// What a world that is made now would say; empty: nothing is wrong.
std::string refusal(char const* value) {
  setenv("COLLX_VECTORS", value, 1);
  std::string text;
  try {
    (void)collx::transport::settings::from_environment();
  } catch (collx::error const& failure) {
    CHECK(failure.code() == collx::status::bad_argument);
    text = failure.what();
  }
  unsetenv("COLLX_VECTORS");
  return text;
}

}  // namespace

TEST_CASE("vectors: a name is that of a kind, as far as there are some") {
  for (cpu::vector_kind const widest : kinds)
    for (cpu::vector_kind const kind : kinds)
      CHECK(cpu::named_vectors(cpu::vector_kind_names[static_cast<int>(kind)], widest) ==
            (kind <= widest ? static_cast<int>(kind) : -1));
  for (char const* const wrong : {"", "avx", "avx2 ", "AVX2", "avx5120", "0"})
    CHECK(cpu::named_vectors(wrong, cpu::vector_kind::avx512) == -1);
}

TEST_CASE("vectors: the widest by default, those that COLLX_VECTORS names, and no narrower ones for a typo") {
  unsetenv("COLLX_VECTORS");
  CHECK(cpu::chosen_vectors() == cpu::widest_vectors());
  for (cpu::vector_kind const kind : kinds) {
    setenv("COLLX_VECTORS", cpu::vector_kind_names[static_cast<int>(kind)], 1);
    CHECK(cpu::chosen_vectors() == (kind <= cpu::widest_vectors() ? kind : cpu::widest_vectors()));
  }
  setenv("COLLX_VECTORS", "avx3", 1);
  CHECK(cpu::chosen_vectors() == cpu::widest_vectors());
  unsetenv("COLLX_VECTORS");
}

TEST_CASE("vectors: what is not there is refused when a world is made, with what is") {
  for (cpu::vector_kind const kind : kinds) {
    std::string const text = refusal(cpu::vector_kind_names[static_cast<int>(kind)]);
    CHECK(text.empty() == (kind <= cpu::widest_vectors()));
  }
  constexpr char const* possible[] = {
      "have generic:", "have generic or avx2:", "have generic, avx2 or avx512:"};
  for (char const* const wrong : {"", "avx3", "generic,avx2"}) {
    std::string const text = refusal(wrong);
    CAPTURE(text);
    CHECK(text.find("environment variable COLLX_VECTORS is \"" + std::string(wrong) + "\"") !=
          std::string::npos);
    CHECK(text.find(possible[static_cast<int>(cpu::widest_vectors())]) != std::string::npos);
    CHECK(text.find("or unset it") != std::string::npos);
  }
}

TEST_CASE("vectors: each kind is that of a processor which has it") {
#if defined(COLLX_AVX2)
  __builtin_cpu_init();
  bool const has_avx2 = __builtin_cpu_supports("avx2");
  CHECK((cpu::widest_vectors() >= cpu::vector_kind::avx2) == has_avx2);
  if (!has_avx2) MESSAGE("SKIPPED: this processor has no AVX2");
#else
  CHECK(cpu::widest_vectors() == cpu::vector_kind::generic);
#endif
}
