// SPDX-License-Identifier: Apache-2.0
// HOW STEPS RUN on a GPU: one kernel for every schedule, operator and element type. Blocks are lanes; each
// evaluates step() itself (lane_machine.hpp). All state is in the group's windows, so a kernel may be
// replayed by a graph.
#pragma once

#include <cuda_runtime.h>

#include "collx/device/cuda/block_team.cuh"
#include "collx/device/cuda/kernel_list.cuh"
#include "collx/exec/lane_machine.hpp"
#include "collx/exec/lane_tables.hpp"

namespace collx::inline abi_1::exec {

// Threads of a lane: for payloads that one thread could not keep in flight, and for small ones.
inline constexpr int lane_threads_max = 512;
inline constexpr int lane_threads_small = 128;
inline constexpr std::size_t small_lane_bytes = 1024;

// Of the block. Its words are written before they are read; nothing is constructed in shared memory.
[[nodiscard]] __device__ inline lane_workspace& workspace_of_block() noexcept {
  static_assert(std::is_trivially_copyable_v<lane_workspace>);
  alignas(lane_workspace) __shared__ std::byte room[sizeof(lane_workspace)];
  return *reinterpret_cast<lane_workspace*>(room);
}

// The map with its tables where a kernel reads them: among its own arguments. By all threads of a block.
[[nodiscard]] __device__ inline chunk_map const& tabled(chunk_map const& map, no_tables const&,
                                                        device::block_team&) noexcept {
  return map;
}
[[nodiscard]] __device__ inline chunk_map const& tabled(chunk_map const& map, lane_tables const& tables,
                                                        device::block_team& team) noexcept {
  static_assert(std::is_trivially_copyable_v<chunk_map>);
  alignas(chunk_map) __shared__ std::byte room[sizeof(chunk_map)];
  auto& mine = *reinterpret_cast<chunk_map*>(room);
  if (team.rank() == 0) {
    mine = map;
    attach(mine, tables);
  }
  team.sync();
  return mine;
}

// `Contract`: what the schedule is run for. What fails is in the group's report. `Port`:
// transport/windows/lane_port.hpp. `Tables`: lane_tables where blocks differ, else no_tables.
template <schedule S, class Contract, class T, class Op, class Port, class After, class Tables>
__global__ void __launch_bounds__(lane_threads_max, 1)
    run_lanes(__grid_constant__ typename Port::group const group, __grid_constant__ chunk_map const map,
              __grid_constant__ Op const op, __grid_constant__ After const after,
              __grid_constant__ Tables const tables) {
  lane_workspace& shared = workspace_of_block();
  device::block_team team;
  Port const port(group, static_cast<int>(blockIdx.x), shared.near);
  lane_machine<Contract::from_all, T, Op, device::block_team, Port> machine(team, port, shared,
                                                                            tabled(map, tables, team), op);
  if (!may_begin(team, port, shared, [&] { machine.template look_ahead<S>(); })) return;
  if constexpr (std::is_same_v<After, no_epilogue>) (void)machine.template perform_all<S>();
  else (void)machine.template perform_all_then<S>(after);
}

template <schedule S, class Contract, class T, class Op, class Port, class After, class Tables>
inline device::listed_kernel const lane_kernel{
    reinterpret_cast<void const*>(&run_lanes<S, Contract, T, Op, Port, After, Tables>)};

// A launch whose kernel meets those of other ranks, which may be in streams of any memory synchronisation
// domain (of Hopper and later: a user may have put his streams into several). A fence of the device's scope
// (device::reach::device) reaches kernels of its own domain only, so all of these are of the first one,
// whatever their streams say. Devices with a single domain take that, too.
[[nodiscard]] inline cudaError_t launch_among_peers(void const* function, unsigned blocks, unsigned threads,
                                                    void** arguments, cudaStream_t stream) noexcept {
  cudaLaunchAttribute domain[2] = {};
  domain[0].id = cudaLaunchAttributeMemSyncDomain;
  domain[0].val.memSyncDomain = cudaLaunchMemSyncDomainDefault;
  domain[1].id = cudaLaunchAttributeMemSyncDomainMap;
  domain[1].val.memSyncDomainMap = {0, 0};
  cudaLaunchConfig_t how{};
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(threads);
  how.stream = stream;
  how.attrs = domain;
  how.numAttrs = 2;
  return cudaLaunchKernelExC(&how, function, arguments);
}

// A call that moves nothing; see pass_empty_call(). Of one block.
template <class Port>
__global__ void __launch_bounds__(lane_threads_small, 1)
    run_empty_call(__grid_constant__ typename Port::group const group) {
  lane_workspace& shared = workspace_of_block();
  device::block_team team;
  Port const port(group, 0, shared.near);
  pass_empty_call(team, port, shared);
}

template <class Port>
inline device::listed_kernel const empty_call_kernel{reinterpret_cast<void const*>(&run_empty_call<Port>)};

template <class Port>
[[nodiscard]] cudaError_t launch_empty_call(typename Port::group const& group, cudaStream_t stream) noexcept {
  void* arguments[] = {const_cast<typename Port::group*>(&group)};
  return launch_among_peers(empty_call_kernel<Port>.function(), 1, 1, arguments, stream);
}

// Puts a call into a stream, and behind it, in the same kernel, `after` (lane_machine.hpp). Lanes without a
// fragment are not launched. All ranks' kernels must run at the same time: the caller sees to it that the
// blocks of all ranks of a GPU fit it.
template <schedule S, class Contract, class T, class Op, class Port, class After, class Tables>
[[nodiscard]] cudaError_t launch_lanes(typename Port::group const& group, int lanes, chunk_map const& map,
                                       Op const& op, After const& after, Tables const& tables,
                                       std::size_t lane_bytes, cudaStream_t stream) noexcept {
  auto const fragments = map.fragments();
  auto const blocks =
      fragments < static_cast<std::size_t>(lanes) ? fragments : static_cast<std::size_t>(lanes);
  int const threads = lane_bytes <= small_lane_bytes ? lane_threads_small : lane_threads_max;
  void* arguments[] = {const_cast<typename Port::group*>(&group), const_cast<chunk_map*>(&map),
                       const_cast<Op*>(&op), const_cast<After*>(&after), const_cast<Tables*>(&tables)};
  // Its own code, not that of some earlier call.
  return launch_among_peers(lane_kernel<S, Contract, T, Op, Port, After, Tables>.function(),
                            static_cast<unsigned>(blocks), static_cast<unsigned>(threads), arguments, stream);
}

}  // namespace collx::inline abi_1::exec
