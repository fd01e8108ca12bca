// SPDX-License-Identifier: Apache-2.0
// One rank's membership in a group of GPUs of one host: made from any communicator of the same ranks, it runs
// collectives on memory of the GPU, in stream order, driven by kernels. See docs/device.md.
#pragma once

#include <optional>

#include "collx/bootstrap/host_identity.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/core/environment.hpp"
#include "collx/device/cuda/kernel_list.cuh"
#include "collx/exec/lane_traffic.hpp"
#include "collx/transport/cuda/events.cuh"
#include "collx/transport/cuda/windows.cuh"
#include "collx/transport/first_fit.hpp"
#include "collx/transport/windows/lane_port.hpp"

namespace collx::inline abi_1 {

// The stream that a collective on a GPU is put into. 0 is CUDA's default stream.
struct on {
  cudaStream_t stream;
  explicit on(cudaStream_t s) : stream(s) {}
};

struct gpu_settings {
  int lanes = 16;                          // blocks of a call, at most; fewer where ranks share a GPU
  std::size_t staging_bytes = 256 * 1024;  // of a lane
  std::size_t packet_bytes = 4096;         // the longest message that travels as packets; 0: none does
  int packet_width = 8;                    // bytes of a packet: 8 or 16
  std::size_t heap_bytes = 0;              // for allocate()
  std::uint64_t timeout_us = 30'000'000;   // of every wait in a kernel

  // COLLX_CUDA_LANES, COLLX_CUDA_STAGING_BYTES, COLLX_CUDA_PACKET_BYTES, COLLX_CUDA_PACKET_WIDTH,
  // COLLX_CUDA_HEAP_BYTES, COLLX_TIMEOUT_US.
  [[nodiscard]] static gpu_settings from_environment() {
    gpu_settings s;
    auto const read = [](char const* name, auto absent, std::int64_t low, std::int64_t high) {
      return static_cast<decltype(absent)>(
          environment::number(name, static_cast<std::int64_t>(absent), low, high));
    };
    s.lanes = read("COLLX_CUDA_LANES", s.lanes, 1, 256);
    s.staging_bytes = read("COLLX_CUDA_STAGING_BYTES", s.staging_bytes, 4096, std::int64_t{1} << 30);
    s.packet_bytes = read("COLLX_CUDA_PACKET_BYTES", s.packet_bytes, 0, 1 << 20);
    s.packet_width = read("COLLX_CUDA_PACKET_WIDTH", s.packet_width, 8, 16) < 16 ? 8 : 16;
    s.heap_bytes = read("COLLX_CUDA_HEAP_BYTES", s.heap_bytes, 0, std::int64_t{1} << 40);
    s.timeout_us = read("COLLX_TIMEOUT_US", s.timeout_us, 1, std::int64_t{1} << 52);
    return s;
  }
};

// Movable by nobody: kernels in flight know where it is. One thread uses it at a time; calls are made in the
// same order on all ranks, and run in that order, whatever their streams.
class gpu_communicator {
 public:
  static constexpr bool runs_on_gpus = true;

  // Collective over `host`, whose ranks all call it with the device current that they are going to use.
  // `host` must outlive this object. Throws error (not_supported: more than one host, GPUs that cannot reach
  // each other; out_of_memory; system_failure, for what CUDA says).
  template <class Transport>
  explicit gpu_communicator(communicator<Transport>& host,
                            gpu_settings const& chosen = gpu_settings::from_environment())
      : meet_([](void* h) noexcept { return try_barrier(*static_cast<communicator<Transport>*>(h)); }),
        host_(&host),
        heap_bytes_((chosen.heap_bytes + 255) / 256 * 256),
        heap_(heap_bytes_, 256) {
    transport::cuda_parts::outside_captures const relaxed;
    prepare(host.rank(), host.size(), chosen);
    array<transport::cuda_parts::announcement> all(static_cast<std::size_t>(host.size()));
    auto const bytes = [](auto& what) {
      return std::span(reinterpret_cast<std::byte*>(what.data()),
                       what.size() * sizeof(transport::cuda_parts::announcement));
    };
    array<transport::cuda_parts::announcement> mine(1);
    mine[0] = transport::cuda_parts::window_mappings::describe(device_, bootstrap::host_identity(), block_,
                                                               block_bytes_);
    mine[0].packet_width = chosen.packet_width;
    all_gather(host, bytes(mine), bytes(all));
    finish(std::span(all.data(), all.size()));
    // Before any rank has a kernel that waits for others; see kernel_list.cuh.
    transport::cuda_parts::require(device::listed_kernel::load_all(), "loading the kernels of this program");
    barrier(host);
  }
  gpu_communicator(gpu_communicator const&) = delete;
  // Collective, as far as peers still run: waits until nobody's kernels look at this window any more.
  ~gpu_communicator() {
    cudaStreamCaptureMode before = cudaStreamCaptureModeRelaxed;  // as outside_captures, which throws
    (void)cudaThreadExchangeStreamCaptureMode(&before);
    (void)cudaSetDevice(device_);
    if (std::uncaught_exceptions() > exceptions_) abort();  // or peers' kernels would wait for this rank
    if (last_stream_known_) (void)cudaEventSynchronize(last_call_);
    (void)meet_(host_);
    windows_.close();
    (void)meet_(host_);
    (void)cudaEventDestroy(last_call_);
    (void)cudaStreamDestroy(aside_);
    (void)cudaThreadExchangeStreamCaptureMode(&before);
  }

  [[nodiscard]] rank_t rank() const noexcept { return view_.rank; }
  [[nodiscard]] rank_t size() const noexcept { return view_.size; }
  [[nodiscard]] int device() const noexcept { return device_; }
  // Blocks that a call uses at most.
  [[nodiscard]] int lanes() const noexcept { return view_.lanes; }
  // Memory of the GPU that this group has taken on this rank.
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return block_bytes_; }

  // Memory of the GPU that peers in other processes read in place; in one process all of a GPU's memory is
  // such. Zeroed; `count` objects of T, aligned to 256 bytes; to be destroyed before the communicator. Any
  // rank may allocate whenever it likes. Throws error (out_of_memory) beyond COLLX_CUDA_HEAP_BYTES.
  template <class T>
  [[nodiscard]] symmetric_buffer<T, gpu_communicator> allocate(std::size_t count) {
    return {*this, count};
  }
  // For symmetric_buffer.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    std::size_t const offset = heap_.take(bytes);
    if (offset == transport::first_fit::nothing) {
      char text[200];
      std::snprintf(
          text, sizeof text,
          "no %zu bytes are left of this group's %zu on the GPU; free buffers, or set COLLX_CUDA_HEAP_BYTES "
          "to more on every rank",
          bytes, heap_bytes_);
      throw error(status::out_of_memory, text);
    }
    std::byte* const memory = block_.data() + view_.where.bytes() + offset;
    transport::cuda_parts::outside_captures const relaxed;
    // In a stream that nothing else uses: kernels of this device may be waiting for this rank.
    transport::cuda_parts::require(cudaMemsetAsync(memory, 0, heap_.rounded(bytes), aside_),
                                   "clearing memory of the GPU");
    transport::cuda_parts::require(cudaStreamSynchronize(aside_), "clearing memory of the GPU");
    return memory;
  }
  void deallocate(std::byte* memory, std::size_t bytes) noexcept {
    heap_.give_back(static_cast<std::size_t>(memory - block_.data()) - view_.where.bytes(), bytes);
  }

  // Ends every wait of this group's kernels, on all ranks.
  void abort() noexcept {
    device::store_relaxed(stop_.get(), static_cast<std::uint32_t>(rank()) + 1);
    // Peers look at the first word of their windows.
    for (transport::windows::peer_view const& peer : windows_.host_views())
      (void)cudaMemcpyAsync(peer.window, stop_.get(), sizeof(std::uint32_t), cudaMemcpyHostToDevice, aside_);
    (void)cudaStreamSynchronize(aside_);
  }

  // Waits until everything in the stream is done, and throws what went wrong in a kernel of this group.
  void synchronize(on where) {
    transport::cuda_parts::require(cudaStreamSynchronize(where.stream), "waiting for the stream");
    throw_if_failed();
  }

  // What an earlier kernel of this group met with, if one did: a collective that was launched long ago, so
  // this throws error with that collective's report, and the group can be used no more.
  void throw_if_failed() const {
    // Acquire: the report's other words were written before its code.
    auto const code = static_cast<status>(device::load_acquire(&report_->code));
    if (COLLX_LIKELY(code == status::ok)) return;
    failure_report what;
    what.code = code;
    what.collective = last_collective_;
    what.algorithm = "on the GPU";
    what.sequence = sequence_ == 0 ? 0 : sequence_ - 1;
    what.rank = rank(), what.peer = report_->peer;
    what.step = report_->step, what.bytes = report_->bytes;
    what.reported_by = static_cast<rank_t>(report_->stopped_by) - 1;
    throw error(what);
  }

  // For collectives (collective/gpu_forms.cuh): what kernels take, and the order of calls.
  [[nodiscard]] transport::windows::view const& view() const noexcept { return view_; }
  void begin(char const* collective, on where) {
    throw_if_failed();
    last_collective_ = collective;
    ++sequence_;
    if (last_stream_known_ && where.stream != last_stream_ && !is_captured(where))
      transport::cuda_parts::require(cudaStreamWaitEvent(where.stream, last_call_, 0),
                                     "waiting for the last call");
  }
  // Notes where the call was put. A stream that is being captured waits for no other, and none for it: when a
  // graph is replayed is the user's affair.
  void end(on where) {
    if (is_captured(where)) return;
    last_stream_known_ = true;
    last_stream_ = where.stream;
    transport::cuda_parts::require(cudaEventRecord(last_call_, where.stream), "noting the call");
  }

  // For requests (collective/gpu_request.cuh).
  static void refuse_capture(on where) {
    if (is_captured(where))
      throw error(
          status::bad_argument,
          "start:: and persistent:: ask after a call, and what is captured runs later, as often as its graph "
          "does; capture the plain form");
  }
  // An event behind what is in the stream, to be forgotten once.
  [[nodiscard]] cudaEvent_t note(on where) {
    cudaEvent_t const done = events_->take();
    if (done == nullptr)
      throw error(status::out_of_memory, "gpu_communicator: 64 requests have not been waited for");
    cudaError_t const code = cudaEventRecord(done, where.stream);
    if (code != cudaSuccess) events_->give_back(done);
    transport::cuda_parts::require(code, "noting the call");
    return done;
  }
  void forget(cudaEvent_t done) noexcept { events_->give_back(done); }

  // A graph of what `put(on)` puts into a stream, ready to be replayed. Collective: no kernel of this group
  // waits for a rank while that rank makes a graph, which may wait for the device.
  template <class Put>
  [[nodiscard]] cudaGraphExec_t record(Put const& put) {
    using transport::cuda_parts::require;
    transport::cuda_parts::outside_captures const relaxed;
    meet();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    require(cudaStreamBeginCapture(aside_, cudaStreamCaptureModeRelaxed), "the begin of a capture");
    try {
      put(on(aside_));
    } catch (...) {
      if (cudaStreamEndCapture(aside_, &graph) == cudaSuccess) (void)cudaGraphDestroy(graph);
      throw;
    }
    require(cudaStreamEndCapture(aside_, &graph), "the end of a capture");
    cudaError_t const code = cudaGraphInstantiate(&ready, graph, 0);
    (void)cudaGraphDestroy(graph);
    require(code, "instantiating a graph");
    require(cudaGraphUpload(ready, aside_), "uploading a graph");
    require(cudaStreamSynchronize(aside_), "uploading a graph");
    meet();
    return ready;
  }

  [[nodiscard]] bool is_one_process() const noexcept { return is_one_process_; }

  // Waits for all ranks on the host's communicator.
  [[nodiscard]] status try_meet() noexcept { return meet_(host_); }

  // Whether another rank of this process has the same device: then no stream may be one that waits for
  // others' by itself.
  [[nodiscard]] bool shares_device() const noexcept { return shares_device_; }

 private:
  static constexpr std::size_t requests_max = 64;

  void meet() {
    if (status const outcome = meet_(host_); outcome != status::ok)
      throw error(outcome,
                  "gpu_communicator: the ranks did not meet on the host's communicator; see its failure()");
  }

  [[nodiscard]] static bool is_captured(on where) {
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    transport::cuda_parts::require(cudaStreamIsCapturing(where.stream, &capturing),
                                   "the state of the stream");
    return capturing != cudaStreamCaptureStatusNone;
  }

  // The window, before anybody knows how many ranks share a GPU: with as many lanes as are asked for.
  void prepare(rank_t rank, rank_t size, gpu_settings const& chosen) {
    using transport::cuda_parts::require;
    if (size > exec::lane_peers_max) {
      char text[160];
      std::snprintf(text, sizeof text,
                    "gpu_communicator: %d ranks are more than the %d that one group may have", size,
                    exec::lane_peers_max);
      throw error(status::not_supported, text);
    }
    require(cudaGetDevice(&device_), "the current device", "gpu_communicator needs a GPU");
    view_.rank = rank, view_.size = size;
    view_.where = {size, chosen.lanes, chosen.staging_bytes, chosen.packet_bytes,
                   chosen.packet_width == 16 ? transport::windows::packet_width::wide
                                             : transport::windows::packet_width::narrow};
    block_bytes_ = transport::cuda_parts::window_mappings::whole_blocks(view_.where.bytes() + heap_bytes_);
    block_ = transport::cuda_parts::device_block(block_bytes_);
    view_.own = block_.data();
    view_.limits = {chosen.timeout_us * 1000, &view_.own_head().stopped, stop_.get()};
    view_.failure = report_.get();
    require(cudaEventCreateWithFlags(&last_call_, cudaEventDisableTiming), "an event");
    require(cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking), "a stream");
    events_.emplace(requests_max);
    // Whatever clearing memory needs is loaded now.
    if (heap_bytes_ != 0)
      require(cudaMemsetAsync(block_.data() + view_.where.bytes(), 0, heap_bytes_, aside_), "the heap");
    require(cudaStreamSynchronize(aside_), "the heap");
  }

  void finish(std::span<transport::cuda_parts::announcement const> all) {
    auto const& mine = all[static_cast<std::size_t>(rank())];
    windows_.open(rank(), all);
    view_.peers = windows_.views();
    int most_on_one = 1, processors = mine.processors;
    bool one_process = true;
    for (auto const& each : all) {
      int here = 0;
      for (auto const& other : all) here += std::memcmp(each.device, other.device, sizeof each.device) == 0;
      most_on_one = here > most_on_one ? here : most_on_one;
      processors = each.processors < processors ? each.processors : processors;
      one_process = one_process && each.is_of_process_of(mine);
      shares_device_ =
          shares_device_ || (&each != &mine && each.is_of_process_of(mine) && each.ordinal == mine.ordinal);
      if (each.bytes != mine.bytes || each.packet_width != mine.packet_width)
        throw error(status::bad_argument,
                    "gpu_communicator: the COLLX_CUDA_ settings are not the same on all ranks");
    }
    // Blocks that wait for each other must all run: one for each multiprocessor, whoever's they are.
    int const fit = processors / most_on_one;
    view_.lanes = fit < 1 ? 1 : fit < view_.where.lanes() ? fit : view_.where.lanes();
    is_one_process_ = one_process;
    // In one process all memory is mapped already, at the same addresses.
    view_.heap_begin =
        one_process ? 0 : reinterpret_cast<std::uintptr_t>(block_.data()) + view_.where.bytes();
    view_.heap_end = one_process ? ~std::uintptr_t{0} : view_.heap_begin + heap_bytes_;
  }

  using meet_function = status (*)(void*) noexcept;
  meet_function meet_;
  void* host_;
  int device_ = 0;
  transport::windows::view view_{};
  transport::cuda_parts::device_block block_;
  std::size_t block_bytes_ = 0, heap_bytes_;
  transport::first_fit heap_;
  transport::cuda_parts::window_mappings windows_;
  transport::cuda_parts::pinned<std::uint32_t> stop_;
  transport::cuda_parts::pinned<transport::windows::report> report_;
  std::optional<transport::cuda_parts::event_pool> events_;
  cudaEvent_t last_call_ = nullptr;
  cudaStream_t last_stream_ = nullptr, aside_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
  bool shares_device_ = false, is_one_process_ = true;
  bool last_stream_known_ = false;
  char const* last_collective_ = "none";
  std::uint64_t sequence_ = 0;
};

}  // namespace collx::inline abi_1
