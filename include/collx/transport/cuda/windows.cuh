// SPDX-License-Identifier: Apache-2.0
// The windows of ranks on the GPUs of one host: each rank makes its own and tells the others where it is;
// each maps the others'. Ranks may be threads of one process or processes, and may share a GPU.
#pragma once

#include <atomic>
#include <cstring>
#include <span>

#include "collx/core/array.hpp"
#include "collx/net/descriptor_exchange.hpp"
#include "collx/transport/cuda/process_name.hpp"
#include "collx/transport/cuda/window_memory.cuh"
#include "collx/transport/windows/company.hpp"
#include "collx/transport/windows/view.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// Once in a process.
COLLX_COLD inline void tell_left_mapped(rank_t rank, int device, cudaError_t code,
                                        std::size_t bytes) noexcept {
  static std::atomic_flag told;
  // Relaxed: nothing is read because of it.
  if (told.test_and_set(std::memory_order_relaxed)) return;
  std::fprintf(
      stderr,
      "collx: gpu_communicator, rank %d: device %d, or that of another rank, could not be waited for "
      "(CUDA says %s here), so %zu bytes of every window stay mapped until this process ends; let "
      "nobody capture while a group is destroyed\n",
      rank, device, cudaGetErrorName(code), bytes);
}

// What a rank tells the others of its window. Plain bytes: it travels by an all_gather.
struct announcement {
  std::uint64_t host;  // bootstrap::host_identity()
  process_name process;
  unsigned char device[16];    // its UUID
  std::int32_t ordinal;        // in that process
  std::int32_t processors;     // multiprocessors of the device
  std::uint64_t window;        // its address, in that process
  std::uint64_t bytes;         // that the settings ask for
  std::uint64_t mapped_bytes;  // that there are
  windows::layout where;
  windows::handle_kind kind;
  cudaIpcMemHandle_t handle;  // if it is of that kind
  net::descriptor_desk desk;  // where descriptors are to be had, if any rank has one

  [[nodiscard]] bool is_of_process_of(announcement const& other) const noexcept {
    return process == other.process;
  }
};
static_assert(std::is_trivially_copyable_v<announcement>);

// The memory behind the window is the heap: what allocate() of a communicator hands out.
class window_mappings {
 public:
  window_mappings() = default;
  window_mappings(window_mappings const&) = delete;
  ~window_mappings() { close(); }

  // `mine`: of the current device. Returns what the others have to know of it.
  [[nodiscard]] static announcement describe(int device, std::uint64_t host, window_memory const& mine,
                                             std::size_t bytes, windows::layout const& where) {
    cudaDeviceProp about{};
    require(cudaGetDeviceProperties(&about, device), "the properties of the GPU");
    announcement told{};
    told.host = host;
    told.process = process_name::mine();
    std::memcpy(told.device, &about.uuid, sizeof told.device);
    told.ordinal = device;
    told.processors = about.multiProcessorCount;
    told.window = reinterpret_cast<std::uintptr_t>(mine.data());
    told.bytes = bytes;
    told.mapped_bytes = mine.bytes();
    told.where = where;
    told.kind = mine.kind();
    told.handle = mine.handle();
    return told;
  }

  // CUDA cuts small allocations out of larger blocks, which a handle exports whole: windows fill theirs.
  [[nodiscard]] static constexpr std::size_t whole_blocks(std::size_t bytes) {
    constexpr std::size_t block_bytes = std::size_t{2} << 20;
    return (bytes + block_bytes - 1) / block_bytes * block_bytes;
  }

  // Collective: maps what all ranks have told. `own`: the window that this rank has told of. `exchange`: of
  // this rank's desk; null where no rank has a descriptor, or all are in one process. Throws error
  // (not_supported, timeout, peer_lost, bad_argument, out_of_memory, system_failure).
  void open(rank_t rank, std::span<announcement const> all, window_memory& own,
            net::descriptor_exchange* exchange, std::uint64_t timeout_us) {
    could_open_ = true;  // first: an earlier try may have left it otherwise
    announcement const& mine = all[static_cast<std::size_t>(rank)];
    array<net::owned_fd> descriptors = exchange_descriptors(rank, all, own, exchange, timeout_us);
    opened_ = array<void*>(all.size());
    imported_ = array<mapped_memory<cuda_virtual_memory>>(all.size());
    array<windows::peer_view> views(all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      auto const peer = static_cast<rank_t>(r);
      std::byte* const base = map(rank, peer, mine, all[r], descriptors[r].get());
      std::int64_t const shift =
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base) - all[r].window);
      views[r] = {base, shift, shift, nullptr};
      if (all[r].is_of_process_of(mine) && all[r].ordinal != mine.ordinal) own.grant(rank, all[r].ordinal);
    }
    std::size_t const lists = all.size() * windows::registered_list * sizeof(windows::registered_range);
    table_ = device_block(all.size() * sizeof(windows::peer_view) + lists);  // lists are empty
    // In one process nothing need be registered, and kernels need not look.
    bool const is_alone = windows::company_of(all, rank).is_one_process;
    for (std::size_t r = 0; r < all.size(); ++r)
      views[r].registered = is_alone ? nullptr : lists_in(all.size()) + r * windows::registered_list;
    own_stream const aside;
    require(cudaMemcpyAsync(table_.data(), views.data(), all.size() * sizeof(windows::peer_view),
                            cudaMemcpyHostToDevice, aside.get()),
            "the table of windows");
    require(cudaStreamSynchronize(aside.get()), "the table of windows");
    host_views_ = std::move(views);
  }

  // Whether open() came as far as it did without a handle that CUDA did not open.
  [[nodiscard]] bool could_open() const noexcept { return could_open_; }

  // As close(), but what was mapped stays mapped, for good; see mapped_memory::leave().
  void leave() noexcept {
    for (mapped_memory<cuda_virtual_memory>& each : imported_) each.leave();
    opened_ = {};
    close();
  }
  void close() noexcept {
    for (std::size_t r = 0; r < opened_.size(); ++r) {
      if (opened_[r] == nullptr) continue;
      // It may be refused while another thread captures. Only here: to ask makes a context on whatever device
      // the thread has, which groups that end have left by now.
      quietly_outside_captures const relaxed;
      (void)cudaIpcCloseMemHandle(opened_[r]);
    }
    opened_ = {};
    imported_ = {};
  }

  // Nothing of this rank looks at windows any more.
  void drop_table() noexcept {
    table_ = {};
    host_views_ = {};
  }

  // Hands kernels what ranks have registered: of all ranks, one list behind the other.
  [[nodiscard]] cudaError_t tell_registered(std::span<windows::registered_range const> lists,
                                            cudaStream_t aside) noexcept {
    cudaError_t const code = cudaMemcpyAsync(lists_in(host_views_.size()), lists.data(), lists.size_bytes(),
                                             cudaMemcpyHostToDevice, aside);
    return code == cudaSuccess ? cudaStreamSynchronize(aside) : code;
  }

  // In memory of the GPU, and in that of the host.
  [[nodiscard]] array<windows::peer_view> const& host_views() const noexcept { return host_views_; }
  [[nodiscard]] windows::peer_view const* views() const noexcept {
    return reinterpret_cast<windows::peer_view const*>(table_.data());
  }

 private:
  // Behind the table of so many ranks.
  [[nodiscard]] windows::registered_range* lists_in(std::size_t ranks) const noexcept {
    return reinterpret_cast<windows::registered_range*>(table_.data() + ranks * sizeof(windows::peer_view));
  }

  // What ranks of other processes hand over.
  [[nodiscard]] static array<net::owned_fd> exchange_descriptors(rank_t rank,
                                                                 std::span<announcement const> all,
                                                                 window_memory& own,
                                                                 net::descriptor_exchange* exchange,
                                                                 std::uint64_t timeout_us) {
    array<net::owned_fd> theirs(all.size());
    array<bool> with(all.size());
    array<net::descriptor_desk> desks(all.size());
    windows::descriptor_partners(all, rank, std::span(with.data(), with.size()));
    for (std::size_t r = 0; r < all.size(); ++r) desks[r] = all[r].desk;
    if (exchange != nullptr)
      exchange->run(own.descriptor(), std::span(desks.data(), desks.size()),
                    std::span(with.data(), with.size()), std::span(theirs.data(), theirs.size()),
                    deadline_in(timeout_us));
    own.close_descriptor();
    return theirs;
  }

  [[nodiscard]] std::byte* map(rank_t rank, rank_t peer, announcement const& mine, announcement const& theirs,
                               int descriptor) {
    auto* const address = reinterpret_cast<std::byte*>(theirs.window);
    if (theirs.host != mine.host)
      refuse(rank, peer,
             "runs on another host, or in a container with a network namespace of its own; windows reach the "
             "GPUs of one host only, so let containers share that namespace");
    if (theirs.is_of_process_of(mine)) {
      if (theirs.ordinal != mine.ordinal) reach(rank, peer, theirs.ordinal);
      return address;
    }
    switch (theirs.kind) {
      case windows::handle_kind::ipc: return open_ipc(peer, theirs);
      case windows::handle_kind::descriptor: return import(rank, peer, mine, theirs, descriptor);
      case windows::handle_kind::none: break;
    }
    refuse(rank, peer,
           "runs in another process, and CUDA gives no handle of its memory (cudaIpcGetMemHandle); set "
           "COLLX_CUDA_HANDLES=fd if its GPU can export memory as descriptors, or let the ranks be threads");
  }

  [[nodiscard]] std::byte* open_ipc(rank_t peer, announcement const& theirs) {
    void* opened = nullptr;
    cudaError_t const code = cudaIpcOpenMemHandle(&opened, theirs.handle, cudaIpcMemLazyEnablePeerAccess);
    could_open_ = code == cudaSuccess;
    if (!could_open_) (void)cudaGetLastError();  // it is told here
    require(code, "mapping a peer's window",
            "the GPUs of all ranks must reach each other's memory, and CUDA_VISIBLE_DEVICES must let each "
            "see them; containers need one IPC namespace, or COLLX_CUDA_HANDLES=fd");
    opened_[static_cast<std::size_t>(peer)] = opened;
    return static_cast<std::byte*>(opened);
  }

  [[nodiscard]] std::byte* import(rank_t rank, rank_t peer, announcement const& mine,
                                  announcement const& theirs, int descriptor) {
    if (descriptor < 0)
      refuse(rank, peer, "has handed over no descriptor; raise the limit on them (ulimit -n)");
    mapped_memory<cuda_virtual_memory>& here = imported_[static_cast<std::size_t>(peer)];
    require_window(map_descriptor(cuda_virtual_memory(), descriptor, theirs.mapped_bytes, mine.ordinal, here),
                   rank, peer);
    return here.data();
  }

  static void reach(rank_t rank, rank_t peer, int device) {
    int here = 0, can = 0;
    require(cudaGetDevice(&here), "the current device");
    require(cudaDeviceCanAccessPeer(&can, here, device), "whether GPUs reach each other");
    if (can == 0) refuse(rank, peer, "has a GPU whose memory this one cannot reach");
    cudaError_t const outcome = cudaDeviceEnablePeerAccess(device, 0);
    if (outcome == cudaErrorPeerAccessAlreadyEnabled)
      (void)cudaGetLastError();  // by the user, or by another rank
    else require(outcome, "reaching a peer's GPU");
  }

  [[noreturn]] COLLX_COLD static void refuse(rank_t rank, rank_t peer, char const* what) {
    throw_error(status::not_supported, "gpu_communicator, rank %d: rank %d %s", rank, peer, what);
  }

  array<void*> opened_;  // by IPC handle
  array<mapped_memory<cuda_virtual_memory>> imported_;
  array<windows::peer_view> host_views_;
  device_block table_;
  bool could_open_ = true;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
