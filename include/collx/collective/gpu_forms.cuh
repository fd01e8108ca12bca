// SPDX-License-Identifier: Apache-2.0
// Collectives on memory of a GPU, in stream order: all_reduce(gpu, in, out, op, on(stream)). Arguments are
// those of the collective's own header, and mean the same; the call returns when the work is in the stream.
//
// Errors: what is wrong with the arguments (memory of the host, freed memory, another device than the
// group's, a stream of another device) throws error (bad_argument) and leaves everything as it was. What goes
// wrong in a kernel (timeout, aborted, mismatch) is thrown by the next call, by throw_if_failed() and by
// synchronize().
#pragma once

#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/gpu_misuse.hpp"
#include "collx/collective/gpu_request.cuh"
#include "collx/collective/lane_call.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/device/cuda/kernels.cuh"
#include "collx/exec/device_executor.cuh"
#include "collx/gpu_communicator.cuh"
#include "collx/host_driven.hpp"
#include "collx/transport/cuda/copy_engine.cuh"
#include "collx/transport/cuda/driver.cuh"

namespace collx::inline abi_1 {

// A communicator of the host that a thread drives for a GPU: collectives on the GPU's memory without a
// kernel.
template <class Transport>
using gpu_driven_by_host = host_driven<Transport, transport::cuda_parts::copy_engine>;

namespace detail {

inline void require_on_device(char const* collective, char const* which, void const* memory,
                              std::size_t bytes, std::size_t alignment, int device) {
  require_on_device(transport::cuda_parts::kinds_of_this_process(), collective, which, memory, bytes,
                    alignment, device);
}

template <class Contract, class T, class Op>
void require_buffers(invocation<Contract, T, Op> const& args, problem const& p, int device) {
  if (std::size_t const bytes = input_extent(p, args) * sizeof(T); bytes != 0)
    require_on_device(Contract::name, "input", args.input, bytes, alignof(T), device);
  if (std::size_t const bytes = output_extent(p, args) * sizeof(T); bytes != 0)
    require_on_device(Contract::name, "output", args.output, bytes, alignof(T), device);
}

inline void require_stream(char const* collective, on where, int device, bool shares_device) {
  stream_state found{};
  transport::cuda_parts::require(cudaGetDevice(&found.current), "the current device");
  found.device = transport::cuda_parts::device_of(where.stream, found.current);
  found.waits_for_others = shares_device && transport::cuda_parts::waits_for_others(where.stream);
  require_stream(collective, found, device, shares_device);
}

// What kernels of a call are told. Peers on other devices of this process read and write memory where it
// lies; what they have no access to goes through staging memory instead.
template <class Contract, class T, class Op>
[[nodiscard]] transport::windows::view view_of(gpu_communicator& gpu,
                                               invocation<Contract, T, Op> const& args) {
  transport::windows::view group = gpu.view_for(Contract::name);
  if (!gpu.spans_devices()) return group;
  auto& driver = transport::cuda_parts::kinds_of_this_process().driver();
  auto const reached = [&](void const* memory) {
    return memory == nullptr || gpu.is_allocated(memory) || driver.is_plain(memory);
  };
  if (!reached(args.input) || !reached(args.output)) group.heap_begin = group.heap_end = 0;
  return group;
}

// Of the calls that the host drives.
inline void refuse_capture_by_host(on where) {
  gpu_communicator::refuse_capture(where,
                                   "what the host does for a collective it does once, and would not notice "
                                   "that a graph is replayed; capture collectives of a gpu_communicator");
}

template <schedule S, class Contract, class T, class Op, class After>
void launch_on_gpu(gpu_communicator& gpu, invocation<Contract, T, Op> const& args, After const& after,
                   on where) {
  problem const p{gpu.rank(), gpu.size(), args.root};
  transport::windows::view const group = view_of(gpu, args);
  std::int64_t const staged = exec::largest_staged<S>(p.shape());
  std::size_t const least = (sizeof(T) + 63) / 64 * 64 + 128;
  if (!supports<S>(p.shape()) || depth<S>(p.shape()) > transport::windows::depth ||
      static_cast<std::size_t>(staged) * least > group.where.half_bytes())
    throw_not_runnable(Contract::name, p, sizeof(T), transport::windows::depth);
  auto const tables = lane_tables_of(args, p.size);
  exec::chunk_map const map = map_call<S>(p, args, tables, group.where.staging_bytes(), gpu.lanes());
  std::size_t const lane_bytes = args.count * sizeof(T) / map.fragments();
  transport::cuda_parts::require(
      exec::launch_lanes<S, Contract, T, Op, transport::windows::lane_port>(
          group, gpu.lanes(), map, args.op, after, tables, lane_bytes, where.stream),
      Contract::name);
}

// Nothing moves, but the operator's prepare() and finish() are due.
template <class Contract, class T, class Op>
void run_alone_on_gpu(invocation<Contract, T, Op> const& args, on where) {
  if (Contract::output({0, 1, 0}).count == 0) return;
  device::launch_result done;
  T const* input = args.input;
  T* output = args.output;
  if constexpr (is_uneven<Contract>) {
    if (args.tables.input.offsets != nullptr) input += args.tables.input.offsets[0];
    if (args.tables.output.offsets != nullptr) output += args.tables.output.offsets[0];
  }
  if constexpr (Contract::from_all)
    done = device::launch_combine(&output, 1, &input, 1, args.count, args.op, true, 1, where.stream,
                                  prepares<Op, T> ? 0 : -1);
  else done = device::launch_copy(&output, 1, input, args.count, where.stream);
  transport::cuda_parts::require(done.error, Contract::name);
}

// Refuses what is wrong; returns whether there is anything to do. Where there are peers a call that moves
// nothing counts all the same: they may have elements, and graphs must agree with them.
template <class Contract, class T, class Op>
[[nodiscard]] bool check_on_gpu(gpu_communicator& gpu, invocation<Contract, T, Op> const& args, on where) {
  problem const p{gpu.rank(), gpu.size(), args.root};
  if (args.fault != nullptr) throw_wrong_argument(Contract::name, p, args.fault, args.given, args.needed);
  require_stream(Contract::name, where, gpu.device(), gpu.shares_device());
  bool const is_empty = moves_nothing(called_by(p, args));
  if (!is_empty) require_buffers(args, p, gpu.device());
  std::size_t const read = is_empty ? 0 : input_extent(p, args) * sizeof(T),
                    written = is_empty ? 0 : output_extent(p, args) * sizeof(T);
  gpu.registered().refuse_stale(Contract::name, args.input, read);
  gpu.registered().refuse_stale(Contract::name, args.output, written);
  return !is_empty || gpu.size() > 1;
}

// One kernel, for arguments that are checked.
template <class Algorithm, class Contract, class T, class Op, class After = exec::no_epilogue>
void put_on_gpu(gpu_communicator& gpu, invocation<Contract, T, Op> const& args, on where,
                After const& after = {}) {
  auto const launch = [&]<class Chosen>() {
    static_assert(
        algorithm_for<Chosen, Contract>,
        "collx: this algorithm offers no schedule for this collective; docs/algorithms.md lists which do");
    using S = schedule_for<Contract, Chosen>;
    static_assert(
        is_commutative<Op>() || keeps_rank_order<S>(),
        "collx: this operator is not commutative and this algorithm does not combine in rank order; "
        "choose one that does (docs/algorithms.md)");
    if constexpr (is_uneven<Contract>)
      static_assert(counts_for<S>() >= Contract::counts,
                    "collx: this algorithm works on equal blocks only, or needs every rank to know all "
                    "counts; docs/algorithms.md says which take blocks of any counts");
    launch_on_gpu<S>(gpu, args, after, where);
  };
  if (std::is_same_v<After, exec::no_epilogue> && gpu.size() == 1) {
    if (args.count != 0) run_alone_on_gpu(args, where);
  } else if (moves_nothing(called_by({gpu.rank(), gpu.size(), args.root}, args))) {
    transport::cuda_parts::require(
        exec::launch_empty_call<transport::windows::lane_port>(gpu.view_for(Contract::name), where.stream),
        Contract::name);
  } else if constexpr (std::is_same_v<Algorithm, automatic>) {
    tune::choose_from<Contract, is_commutative<Op>()>(typename tune::gpu_table<Contract>::type{},
                                                      agreed_count(args) * sizeof(T), gpu.size(), {},
                                                      launch);
  } else {
    launch.template operator()<Algorithm>();
  }
}

}  // namespace detail

// All code of one collective on GPUs that depends on element type, operator and algorithm, kernels included:
// what every form of a call ends in, whatever ranges it is given. Users never call it; they may compile it
// once, in a source file of their choice, and declare it `extern template` elsewhere: docs/compile_time.md.
template <class Contract, class T, class Op, class Algorithm>
struct compiled_gpu_collective {
  // Puts a kernel into the stream, for arguments that are checked. Throws what keeps it from being launched.
  static void put(gpu_communicator& gpu, detail::invocation<Contract, T, Op> const& args, on where);
};

// Defined outside the class: what is inline is compiled by everybody, `extern template` or not.
template <class Contract, class T, class Op, class Algorithm>
void compiled_gpu_collective<Contract, T, Op, Algorithm>::put(
    gpu_communicator& gpu, detail::invocation<Contract, T, Op> const& args, on where) {
  detail::put_on_gpu<Algorithm>(gpu, args, where);
}

namespace detail {

template <class Algorithm, class Contract, class T, class Op, class After = exec::no_epilogue>
void run_on_gpu(gpu_communicator& gpu, invocation<Contract, T, Op> const& args, on where,
                After const& after = {}) {
  if (!check_on_gpu(gpu, args, where)) return;
  auto const call = gpu.begin(where);
  if constexpr (std::is_same_v<After, exec::no_epilogue>)
    compiled_gpu_collective<Contract, T, Op, Algorithm>::put(gpu, args, where);
  else put_on_gpu<Algorithm>(gpu, args, where, after);
  gpu.end(where, call);
}

template <class Algorithm, class Contract, class T, class Op>
[[nodiscard]] gpu_request start_on_gpu(gpu_communicator& gpu, invocation<Contract, T, Op> const& args,
                                       on where) {
  gpu_communicator::refuse_capture(where);
  gpu.require_event();
  run_on_gpu<Algorithm>(gpu, args, where);
  return {gpu, where};
}

template <class Algorithm, class Contract, class T, class Op>
[[nodiscard]] gpu_persistent prepare_on_gpu(gpu_communicator& gpu, invocation<Contract, T, Op> const& args,
                                            on where) {
  auto const due = [&] { return check_on_gpu(gpu, args, where); };
  auto const put = [&](on aside) {
    compiled_gpu_collective<Contract, T, Op, Algorithm>::put(gpu, args, aside);
  };
  return {gpu, Contract::name, gpu.record(Contract::name, due, put), where};
}

// The same over the network, or whatever the host's communicator stands on, without a kernel.
template <class Algorithm, class Transport, class Contract, class T, class Op>
void run_on_gpu(gpu_driven_by_host<Transport>& gpu, invocation<Contract, T, Op> const& args, on where) {
  problem const p{gpu.rank(), gpu.size(), args.root};
  int const device = gpu.copies().device();
  require_stream(Contract::name, where, device, gpu.shares_device());
  refuse_capture_by_host(where);
  if (args.fault == nullptr) require_buffers(args, p, device);
  gpu.template enqueue<Algorithm>(args, where.stream);
}

template <class Gpu>
concept on_gpus = requires {
  requires std::remove_reference_t<Gpu>::runs_on_gpus;
};

template <class Gpu>
concept driven_by_kernels = std::is_same_v<std::remove_reference_t<Gpu>, gpu_communicator>;

}  // namespace detail

// `name`: of the collective. One to four arguments, as its own header has them, before the stream.
#define COLLX_DETAIL_GPU_FORM(returned, name, kind, run)                                            \
  template <class Algorithm = automatic, detail::kind Gpu, class A>                                 \
  returned name(Gpu& gpu, A&& a, on where) {                                                        \
    return detail::run<Algorithm>(gpu, detail::bind_##name(detail::where(gpu), a), where);          \
  }                                                                                                 \
  template <class Algorithm = automatic, detail::kind Gpu, class A, class B>                        \
  returned name(Gpu& gpu, A&& a, B&& b, on where) {                                                 \
    return detail::run<Algorithm>(gpu, detail::bind_##name(detail::where(gpu), a, b), where);       \
  }                                                                                                 \
  template <class Algorithm = automatic, detail::kind Gpu, class A, class B, class C>               \
  returned name(Gpu& gpu, A&& a, B&& b, C&& c, on where) {                                          \
    return detail::run<Algorithm>(gpu, detail::bind_##name(detail::where(gpu), a, b, c), where);    \
  }                                                                                                 \
  template <class Algorithm = automatic, detail::kind Gpu, class A, class B, class C, class D>      \
  returned name(Gpu& gpu, A&& a, B&& b, C&& c, D&& d, on where) {                                   \
    return detail::run<Algorithm>(gpu, detail::bind_##name(detail::where(gpu), a, b, c, d), where); \
  }

//   name(gpu, ..., on(stream))               puts it into the stream
//   start::name(gpu, ..., on(stream))        the same, and returns a gpu_request (gpu_request.cuh)
//   persistent::name(gpu, ..., on(stream))   returns a gpu_persistent, to be started as often as wanted
#define COLLX_DETAIL_GPU_FORMS(name, kind)                                                     \
  COLLX_DETAIL_GPU_FORM(void, name, kind, run_on_gpu)                                          \
  namespace start {                                                                            \
  COLLX_DETAIL_GPU_FORM([[nodiscard]] gpu_request, name, driven_by_kernels, start_on_gpu)      \
  }                                                                                            \
  namespace persistent {                                                                       \
  COLLX_DETAIL_GPU_FORM([[nodiscard]] gpu_persistent, name, driven_by_kernels, prepare_on_gpu) \
  }

COLLX_DETAIL_GPU_FORMS(all_gather, on_gpus)
COLLX_DETAIL_GPU_FORMS(all_gather_v, driven_by_kernels)
COLLX_DETAIL_GPU_FORMS(all_reduce, on_gpus)
COLLX_DETAIL_GPU_FORMS(all_to_all, on_gpus)
COLLX_DETAIL_GPU_FORMS(all_to_all_v, driven_by_kernels)
COLLX_DETAIL_GPU_FORMS(broadcast, on_gpus)
COLLX_DETAIL_GPU_FORMS(exclusive_scan, on_gpus)
COLLX_DETAIL_GPU_FORMS(gather, on_gpus)
COLLX_DETAIL_GPU_FORMS(gather_v, driven_by_kernels)
COLLX_DETAIL_GPU_FORMS(reduce, on_gpus)
COLLX_DETAIL_GPU_FORMS(reduce_scatter, on_gpus)
COLLX_DETAIL_GPU_FORMS(reduce_scatter_v, driven_by_kernels)
COLLX_DETAIL_GPU_FORMS(scan, on_gpus)
COLLX_DETAIL_GPU_FORMS(scatter, on_gpus)
COLLX_DETAIL_GPU_FORMS(scatter_v, driven_by_kernels)

#undef COLLX_DETAIL_GPU_FORMS
#undef COLLX_DETAIL_GPU_FORM

// An all_reduce with something fused behind it: after(i, value) is called on the device for each element i of
// the result, once, as soon as its part of the vector is complete, and while others are under way. For a step
// of an optimiser, say: the sums need not be read again. `after` is trivially copyable and may write anything
// but in and out.
template <class Algorithm = automatic, class In, class Out, class Op, class After>
void all_reduce_then(gpu_communicator& gpu, In&& in, Out&& out, Op const& op, After const& after, on where) {
  static_assert(std::is_trivially_copyable_v<After>,
                "collx: what follows a collective is copied to the device");
  detail::run_on_gpu<Algorithm>(gpu, detail::bind_all_reduce(detail::where(gpu), in, out, op), where, after);
}

template <class Algorithm = automatic, detail::on_gpus Gpu>
void barrier(Gpu& gpu, on where) {
  detail::run_on_gpu<Algorithm>(gpu, detail::bind_barrier(detail::where(gpu)), where);
}

}  // namespace collx::inline abi_1
