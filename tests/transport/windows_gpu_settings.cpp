// SPDX-License-Identifier: Apache-2.0
// The numbers of a group of GPUs: what nobody could add and multiply safely is not sane.
#include <cstdlib>
#include <initializer_list>

#include <doctest/doctest.h>

#include "collx/transport/windows/gpu_settings.hpp"

namespace {

using collx::gpu_settings;

// The defaults with one number changed.
template <class T>
bool is_sane_with(T gpu_settings::*which, T value) {
  gpu_settings s;
  s.*which = value;
  return s.is_sane();
}

}  // namespace

TEST_CASE("the defaults, and what the variables say, are sane") {
  CHECK(gpu_settings{}.is_sane());
  CHECK(gpu_settings::from_environment().is_sane());
}

TEST_CASE("a width of packets between the two that there are is refused") {
  setenv("COLLX_CUDA_PACKET_WIDTH", "12", 1);
  CHECK_THROWS_AS((void)gpu_settings::from_environment(), collx::error);
  setenv("COLLX_CUDA_PACKET_WIDTH", "16", 1);
  CHECK(gpu_settings::from_environment().packet_width == 16);
  unsetenv("COLLX_CUDA_PACKET_WIDTH");
}

TEST_CASE("what handles windows have is ipc or fd, and nothing else") {
  using collx::window_handles;
  unsetenv("COLLX_CUDA_HANDLES");
  CHECK(gpu_settings::from_environment().handles == window_handles::automatic);
  setenv("COLLX_CUDA_HANDLES", "ipc", 1);
  CHECK(gpu_settings::from_environment().handles == window_handles::ipc);
  setenv("COLLX_CUDA_HANDLES", "fd", 1);
  CHECK(gpu_settings::from_environment().handles == window_handles::descriptors);
  for (char const* wrong : {"", "FD", "fds", "1"}) {
    setenv("COLLX_CUDA_HANDLES", wrong, 1);
    CHECK_THROWS_AS((void)gpu_settings::from_environment(), collx::error);
  }
  unsetenv("COLLX_CUDA_HANDLES");
}

TEST_CASE("every number has bounds") {
  constexpr std::size_t huge = ~std::size_t{0};
  for (int const lanes : {-1, 0, 257, 1 << 30}) CHECK_FALSE(is_sane_with(&gpu_settings::lanes, lanes));
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{4095}, huge})
    CHECK_FALSE(is_sane_with(&gpu_settings::staging_bytes, bytes));
  for (std::size_t const bytes : {(std::size_t{1} << 20) + 1, huge})
    CHECK_FALSE(is_sane_with(&gpu_settings::packet_bytes, bytes));
  for (int const width : {0, 7, 12, 32}) CHECK_FALSE(is_sane_with(&gpu_settings::packet_width, width));
  CHECK_FALSE(is_sane_with(&gpu_settings::heap_bytes, huge));
  CHECK_FALSE(is_sane_with(&gpu_settings::timeout_us, std::uint64_t{0}));
  CHECK_FALSE(is_sane_with(&gpu_settings::timeout_us, ~std::uint64_t{0}));
  CHECK(is_sane_with(&gpu_settings::packet_bytes, std::size_t{0}));
  CHECK(is_sane_with(&gpu_settings::packet_width, 16));
  CHECK(is_sane_with(&gpu_settings::heap_bytes, std::size_t{1} << 40));
}
