// SPDX-License-Identifier: Apache-2.0
// all_reduce and reduce_scatter that the host drives and the GPU adds up in:
//
//   reduce_on_device::all_reduce(gpu, in, out, workspace, op, on(stream))       in and out may be the same
//   reduce_on_device::reduce_scatter(gpu, in, out, workspace, op, on(stream))
//
// `gpu`: a gpu_driven_by_host. `workspace`: memory of the GPU, as many elements as `in`, which belongs to the
// call until the stream has passed it, and overlaps neither buffer. One kernel for each call, of as many
// blocks as the reduction of so many elements is worth. At most 62 ranks. Contributions are combined in the
// order of ranks.
#pragma once

#include "collx/collective/device_reductions.hpp"
#include "collx/collective/gpu_forms.cuh"

namespace collx::inline abi_1::reduce_on_device {

namespace detail {

using namespace collx::detail;

// Puts reductions into a stream. All that can be refused is refused before anything is put into it.
template <class T, class Op>
[[nodiscard]] auto combining(char const* collective, rank_t size, Op const& op, on where) {
  static_assert(
      !prepares<Op, T>,
      "collx: an operator with prepare() is applied by each rank to its own contribution, which only the "
      "host does here; use the plain form");
  if (size > device::kernel_pointers_max - 2)
    throw error(status::not_supported,
                "reduce_on_device: more ranks than one kernel adds up; use the plain form");
  return [=](T* out, T const* const* sources, int source_count, std::size_t count) {
    transport::cuda_parts::require(
        device::launch_combine(&out, 1, sources, source_count, count, op, true, source_count, where.stream)
            .error,
        collective);
  };
}

template <class Transport, class T>
void require_all(char const* collective, gpu_driven_by_host<Transport>& gpu, std::span<T const> in,
                 std::span<T> out, std::span<T> workspace, on where) {
  int const device = gpu.copies().device();
  require_stream(collective, where, device, gpu.shares_device());
  refuse_capture_by_host(where);
  if (!in.empty()) require_on_device(collective, "input", in.data(), in.size_bytes(), alignof(T), device);
  if (!out.empty()) require_on_device(collective, "output", out.data(), out.size_bytes(), alignof(T), device);
  if (!workspace.empty())
    require_on_device(collective, "workspace", workspace.data(), workspace.size_bytes(), alignof(T), device);
}

}  // namespace detail

template <class Transport, class In, class Out, class Workspace, class Op>
void all_reduce(gpu_driven_by_host<Transport>& gpu, In&& in, Out&& out, Workspace&& workspace, Op const& op,
                on where) {
  using T = element_t<std::remove_reference_t<Out>>;
  std::span<T const> const from(in.data(), in.size());
  std::span<T> const to(out.data(), out.size()), room(workspace.data(), workspace.size());
  detail::require_all("all_reduce", gpu, from, to, room, where);
  auto const combine = detail::combining<T>("all_reduce", gpu.size(), op, where);
  detail::all_reduce_on_device(gpu, from, to, op, room, combine, where.stream);
}

template <class Transport, class In, class Out, class Workspace, class Op>
void reduce_scatter(gpu_driven_by_host<Transport>& gpu, In&& in, Out&& out, Workspace&& workspace,
                    Op const& op, on where) {
  using T = element_t<std::remove_reference_t<Out>>;
  std::span<T const> const from(in.data(), in.size());
  std::span<T> const to(out.data(), out.size()), room(workspace.data(), workspace.size());
  detail::require_all("reduce_scatter", gpu, from, to, room, where);
  auto const combine = detail::combining<T>("reduce_scatter", gpu.size(), op, where);
  detail::reduce_scatter_on_device(gpu, from, to, room, combine, where.stream);
}

}  // namespace collx::inline abi_1::reduce_on_device
