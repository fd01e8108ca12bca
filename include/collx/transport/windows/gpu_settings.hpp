// SPDX-License-Identifier: Apache-2.0
// The numbers of a group of GPUs (gpu_communicator.cuh), and the variables that have them.
#pragma once

#include "collx/core/environment.hpp"
#include "collx/transport/windows/handles.hpp"
#include "collx/transport/windows/layout.hpp"

namespace collx::inline abi_1 {

struct gpu_settings {
  int lanes = 16;                          // blocks of a call, at most; fewer where ranks share a GPU
  // Of a lane. Half of it holds all that a rank stages in one run over the schedule: messages of a ring of 8
  // ranks have 146 KiB. With 256 KiB such a ring took six times as long (H200).
  std::size_t staging_bytes = std::size_t{4} << 20;
  std::size_t packet_bytes = 4096;         // the longest message that travels as packets; 0: none does
  int packet_width = 16;                   // bytes of a packet: 8 or 16
  std::size_t heap_bytes = 0;              // for allocate()
  std::uint64_t timeout_us = 30'000'000;   // of every wait in a kernel
  window_handles handles = window_handles::automatic;  // by what processes map windows; each rank its own

  // COLLX_CUDA_LANES, COLLX_CUDA_STAGING_BYTES, COLLX_CUDA_PACKET_BYTES, COLLX_CUDA_PACKET_WIDTH,
  // COLLX_CUDA_HEAP_BYTES, COLLX_CUDA_HANDLES, COLLX_TIMEOUT_US.
  [[nodiscard]] static gpu_settings from_environment() {
    gpu_settings s;
    auto const read = [](char const* name, auto absent, std::int64_t low, std::int64_t high) {
      return static_cast<decltype(absent)>(
          environment::number(name, static_cast<std::int64_t>(absent), low, high));
    };
    s.lanes = read("COLLX_CUDA_LANES", s.lanes, 1, 256);
    s.staging_bytes = read("COLLX_CUDA_STAGING_BYTES", s.staging_bytes, 4096, std::int64_t{1} << 30);
    s.packet_bytes = read("COLLX_CUDA_PACKET_BYTES", s.packet_bytes, 0,
                          std::int64_t{transport::windows::packet_bytes_max});
    s.packet_width = read("COLLX_CUDA_PACKET_WIDTH", s.packet_width, 8, 16);
    if (s.packet_width != 8 && s.packet_width != 16)
      throw error(
          status::bad_argument,
          "environment variable COLLX_CUDA_PACKET_WIDTH is neither 8 nor 16; set it to one of them, or "
          "unset it");
    s.heap_bytes = read("COLLX_CUDA_HEAP_BYTES", s.heap_bytes, 0, std::int64_t{1} << 40);
    s.handles = transport::windows::handles_from_environment();
    s.timeout_us = read("COLLX_TIMEOUT_US", s.timeout_us, 1, std::int64_t{1} << 52);
    return s;
  }
  // What is out of the bounds that the variables have is refused, whoever chose it: sizes are added and
  // multiplied.
  [[nodiscard]] bool is_sane() const noexcept {
    constexpr std::size_t gibibyte = std::size_t{1} << 30;
    return lanes >= 1 && lanes <= 256 && staging_bytes >= 4096 && staging_bytes <= gibibyte &&
           packet_bytes <= transport::windows::packet_bytes_max &&
           (packet_width == 8 || packet_width == 16) && heap_bytes <= gibibyte << 10 && timeout_us >= 1 &&
           timeout_us <= std::uint64_t{1} << 52;
  }
  // Throws error (bad_argument).
  void require_sane() const {
    if (!is_sane())
      throw error(
          status::bad_argument,
          "gpu_communicator: a setting is out of bounds: 1 to 256 lanes, 4 KiB to 1 GiB of staging memory, "
          "at most 1 MiB of packets, of 8 or 16 bytes, and 1 TiB of heap");
  }
};

}  // namespace collx::inline abi_1
