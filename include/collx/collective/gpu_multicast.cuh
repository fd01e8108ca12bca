// SPDX-License-Identifier: Apache-2.0
// all_reduce in the switch between GPUs (NVLS): each GPU reads every sum once and writes it once, whatever
// the number of ranks.
//
//   multicast_buffer<float> gradient(world, gpu, count);     collective
//   all_reduce_in_switch(gpu, gradient, on(stream))          in place; the sum
//
// Ranks are threads or processes. Where they share a GPU, where switch, driver or GPUs cannot do it, or where
// the program was compiled for GPUs that cannot, the buffer is ordinary memory of the GPU and the call an
// ordinary all_reduce in place. float, float16 and bfloat16.
// The order in which the switch adds is its own: sums of floats may differ in the last bits from those of
// other algorithms, though not between ranks.
#pragma once

#include <cstring>
#include <exception>

#include "collx/collective/gpu_forms.cuh"
#include "collx/device/cuda/multimem.cuh"
#include "collx/exec/device_executor.cuh"
#include "collx/exec/multicast_lane.hpp"
#include "collx/transport/cuda/hand_over.hpp"
#include "collx/transport/cuda/multicast.cuh"

namespace collx::inline abi_1 {

namespace detail {

using switch_meeting = contract::barrier::member<algo::direct_one_shot>;

template <class T, class Port>
__global__ void __launch_bounds__(exec::lane_threads_max, 1)
    reduce_in_switch(__grid_constant__ typename Port::group const group,
                     __grid_constant__ exec::chunk_map const nothing, device::multimem<T> const memory,
                     std::size_t vectors) {
  exec::lane_workspace& shared = exec::workspace_of_block();
  device::block_team team;
  Port const port(group, static_cast<int>(blockIdx.x), shared.near);
  if (!exec::may_begin(team, port, shared)) return;
  exec::no_operator const none;
  exec::meeting_machine<device::block_team, Port> machine(team, port, shared, nothing, none);
  (void)exec::reduce_replicas<switch_meeting>(machine, team, nothing.where(), memory, vectors,
                                              static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

template <class T, class Port>
inline device::listed_kernel const switch_kernel{reinterpret_cast<void const*>(&reduce_in_switch<T, Port>)};

// Denies, too, where the kernel was compiled for GPUs that lack the instructions, and the driver has
// translated its PTX for this one: it would do nothing, and every rank would keep its own numbers.
template <class T>
struct switch_driver : transport::cuda_parts::cuda_multicast {
  [[nodiscard]] bool can_multicast(int device) const noexcept {
    constexpr int compiled_for_min = 90;  // of the PTX
    cudaFuncAttributes about{};
    return cuda_multicast::can_multicast(device) &&
           cudaFuncGetAttributes(&about, switch_kernel<T, transport::windows::lane_port>.function()) ==
               cudaSuccess &&
           about.ptxVersion >= compiled_for_min;
  }
};

}  // namespace detail

// Zeroed. Also a buffer like any other, which kernels of peers in this process can read. Made and destroyed
// by all ranks together, with no kernel of the group in flight; destroyed before both communicators.
template <class T>
class multicast_buffer {
  static_assert(device::has_multimem<T>, "collx: switches add up float, float16 and bfloat16");

 public:
  // `host`: that which `gpu` was made from; `count`: the same on all ranks. Throws error, on all ranks if on
  // one (bad_argument, out_of_memory, system_failure).
  template <class Transport>
  multicast_buffer(communicator<Transport>& host, gpu_communicator& gpu, std::size_t count)
      : gpu_(&gpu), count_(count) {
    gpu.together("multicast_buffer", [&] { vectors_ = vectors_of(count); });
    transport::cuda_parts::entry const here(gpu.device());
    std::size_t const bytes = vectors_ * device::detail::vector_bytes;
    in_switch_ = set_up(host, bytes);
    try {
      // Also nobody's kernel reads what is not cleared yet.
      gpu.together("multicast_buffer", [&] { take(bytes); });
    } catch (...) {
      let_go();
      throw;
    }
  }
  multicast_buffer(multicast_buffer const&) = delete;
  ~multicast_buffer() {
    if (std::uncaught_exceptions() > exceptions_) gpu_->abort();  // peers' kernels may wait for this rank
    gpu_->end_calls();
    let_go();
  }

  [[nodiscard]] T* data() const noexcept { return reinterpret_cast<T*>(data_); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  // Whether the switch adds up.
  [[nodiscard]] bool in_switch() const noexcept { return in_switch_; }

  // For all_reduce_in_switch().
  [[nodiscard]] std::byte* all_replicas() const noexcept { return replica_.all(); }
  [[nodiscard]] std::size_t vectors() const noexcept { return vectors_; }

 private:
  using driver = detail::switch_driver<T>;

  [[nodiscard]] static std::size_t vectors_of(std::size_t count) {
    constexpr std::size_t of_vector = device::detail::vector_bytes / sizeof(T);
    if (count <= PTRDIFF_MAX / sizeof(T)) return (count + of_vector - 1) / of_vector;
    throw error(status::out_of_memory,
                "multicast_buffer: so many elements fit into no memory; is the count negative?");
  }

  void take(std::size_t bytes) {
    if (!in_switch_) {
      plain_ = transport::cuda_parts::device_block(bytes == 0 ? 1 : bytes);
      data_ = plain_.data();
      return;
    }
    data_ = replica_.own();
    transport::cuda_parts::clear(data_, bytes);
  }

  // By all ranks together: to free memory may wait for the device, so nobody's kernels wait for a rank that
  // does; and a replica goes before what binds it to the others.
  void let_go() noexcept {
    // To free memory is refused, and ends it, while another thread captures in a stricter mode than this.
    transport::cuda_parts::quiet_entry const here(gpu_->device());
    (void)gpu_->try_meet();
    plain_ = {};
    replica_.undo();
    (void)gpu_->try_meet();
    object_.reset();
  }

  template <class Transport>
  [[nodiscard]] bool set_up(communicator<Transport>& host, std::size_t bytes) {
    using transport::cuda_parts::multicast_offer;
    auto const gather = [&](multicast_offer const& told) {
      array<multicast_offer> all(static_cast<std::size_t>(host.size()));
      all_gather(host, std::span(&told, 1), all);
      return all;
    };
    transport::cuda_parts::multicast_place where{};
    gpu_->together("multicast_buffer", [&] { where = place(); });
    auto const together = [&](auto const& make) { gpu_->together("multicast_buffer", make); };
    auto const tell = [&](auto const& mine, auto& all) { all_gather(host, std::span(&mine, 1), all); };
    std::uint64_t const timeout_us = gpu_->view_for("multicast_buffer").limits.timeout_ns / 1000;
    auto const share = [&](int fd) {
      return transport::cuda_parts::hand_over("multicast_buffer", host.rank(),
                                              static_cast<std::size_t>(host.size()), where.process, fd,
                                              timeout_us, together, tell);
    };
    return transport::cuda_parts::set_up_multicast(driver(), where, bytes, gather, share, replica_,
                                                   object_) != 0;
  }

  [[nodiscard]] transport::cuda_parts::multicast_place place() const {
    cudaDeviceProp about{};
    transport::cuda_parts::require(cudaGetDeviceProperties(&about, gpu_->device()),
                                   "the properties of the GPU");
    transport::cuda_parts::multicast_place where{
        gpu_->rank(), gpu_->device(), {}, transport::cuda_parts::process_name::mine()};
    static_assert(sizeof where.gpu == sizeof about.uuid);
    std::memcpy(where.gpu, &about.uuid, sizeof where.gpu);
    return where;
  }

  gpu_communicator* gpu_;
  std::size_t count_, vectors_ = 0;
  bool in_switch_ = false;
  transport::cuda_parts::physical_memory<driver> object_;
  transport::cuda_parts::multicast_replica<driver> replica_;
  transport::cuda_parts::device_block plain_;
  std::byte* data_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

namespace detail {

// Blocks: as many as there are lines for, and no more than lanes, the same on all ranks.
template <class T>
void launch_in_switch(gpu_communicator& gpu, multicast_buffer<T> const& buffer, on where) {
  using port = transport::windows::lane_port;
  problem const p{gpu.rank(), gpu.size(), 0};
  auto group = gpu.view_for("all_reduce_in_switch");
  auto const user = [&] {
    return exec::even_buffers<contract::barrier, std::byte>(p, nullptr, nullptr, false);
  };
  exec::chunk_map nothing =
      exec::map_lanes<switch_meeting>(p, user, 0, 1, group.where.staging_bytes(), gpu.lanes());
  std::size_t vectors = buffer.vectors();
  std::size_t const each = static_cast<std::size_t>(exec::lane_threads_max * p.size);
  std::size_t const wanted = (vectors + each - 1) / each;
  auto const lanes = static_cast<std::size_t>(gpu.lanes());
  device::multimem<T> memory{buffer.all_replicas()};
  void* arguments[] = {&group, &nothing, &memory, &vectors};
  transport::cuda_parts::require(
      exec::launch_among_peers(switch_kernel<T, port>.function(),
                               static_cast<unsigned>(wanted < lanes ? wanted : lanes),
                               exec::lane_threads_max, arguments, where.stream),
      "all_reduce_in_switch");
}

}  // namespace detail

// The sum of all ranks' buffers, in all of them. Every rank passes a buffer that was made together.
template <class T>
void all_reduce_in_switch(gpu_communicator& gpu, multicast_buffer<T>& buffer, on where) {
  if (!buffer.in_switch()) return all_reduce(gpu, buffer, sum, where);
  detail::require_stream("all_reduce_in_switch", where, gpu.device(), gpu.shares_device());
  if (buffer.size() == 0) return;
  auto const call = gpu.begin(where);
  detail::launch_in_switch(gpu, buffer, where);
  gpu.end(where, call);
}

}  // namespace collx::inline abi_1
