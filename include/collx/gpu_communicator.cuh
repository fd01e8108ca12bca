// SPDX-License-Identifier: Apache-2.0
// One rank's membership in a group of GPUs of one host: made from any communicator of the same ranks, it runs
// collectives on memory of the GPU, in stream order, driven by kernels. See docs/gpu_collectives.md.
#pragma once

#include <optional>

#include "collx/bootstrap/host_identity.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_or_none.hpp"
#include "collx/device/cuda/kernel_list.cuh"
#include "collx/exec/lane_traffic.hpp"
#include "collx/on_stream.cuh"
#include "collx/transport/cuda/captures.cuh"
#include "collx/transport/cuda/possessions.cuh"
#include "collx/transport/cuda/registered_windows.cuh"
#include "collx/transport/first_fit.hpp"
#include "collx/transport/windows/company.hpp"
#include "collx/transport/windows/failure.hpp"
#include "collx/transport/windows/gpu_settings.hpp"
#include "collx/transport/windows/lane_port.hpp"

namespace collx::inline abi_1 {

class memory_registration;  // collective/gpu_registration.cuh

// Movable by nobody: kernels in flight know where it is. One thread uses it at a time; calls are made in the
// same order on all ranks, and run in that order, whatever their streams.
class gpu_communicator {
 public:
  static constexpr bool runs_on_gpus = true;

  // Collective over `host`, whose ranks all call it with the device current that they are going to use.
  // `host` must outlive this object, and not be moved. Throws error, on all ranks if on one (bad_argument:
  // settings that are out of bounds or not the same everywhere; not_supported: more than one host, GPUs that
  // cannot reach each other, handles that are not to be had; out_of_memory; timeout, peer_lost: a rank that
  // stops or ends meanwhile; system_failure, for what CUDA says).
  template <class Transport>
  explicit gpu_communicator(communicator<Transport>& host,
                            gpu_settings const& chosen = gpu_settings::from_environment())
      : agree_([](void* h, status mine) noexcept {
          return detail::outcome_of_all(*static_cast<communicator<Transport>*>(h), mine);
        }),
        gather_([](void* h, std::span<std::byte const> mine, std::span<std::byte> all) {
          all_gather(*static_cast<communicator<Transport>*>(h), mine, all);
        }),
        host_(&host),
        heap_bytes_(chosen.is_sane() ? (chosen.heap_bytes + 255) / 256 * 256 : 0),
        heap_(heap_bytes_, 256) {
    view_.rank = host.rank(), view_.size = host.size();
    transport::cuda_parts::process_name me{};
    // To allocate may wait for the device: for a kernel of another group, that waits for a rank not here yet.
    together("gpu_communicator", [&] { me = transport::cuda_parts::process_name::mine(); });
    bool const is_alone = all_in_one_process(me);
    gpu_settings tried = chosen;
    try {
      while (!join(tried, is_alone)) tried.handles = window_handles::descriptors;
    } catch (...) {
      // Not left to the members: a late rank may open this window still, and another thread may capture.
      transport::cuda_parts::quietly_outside_captures const relaxed;
      give_back(try_meet() == status::ok);
      throw;
    }
  }
  gpu_communicator(gpu_communicator const&) = delete;
  // Collective, as far as peers still run: waits until nobody's kernels look at this window any more.
  // Graphs that hold calls of this group are not replayed any more; what runs of them is waited for.
  ~gpu_communicator() {
    transport::cuda_parts::quiet_entry const here(device_);
    if (std::uncaught_exceptions() > exceptions_) abort();  // or peers' kernels would wait for this rank
    end_calls();
    (void)try_meet();
    // Graphs that were started long ago may run still, which last_call knows nothing of. All of them were by
    // now, on all ranks, so none waits for what a rank would do after this. To free memory of cudaMalloc
    // waits for them if they run on the same device; to unmap that of peers does not, or is not known to.
    if (has_descriptors_ || !is_one_process() || company_.spans_devices) rest_or_leave();
    windows_.close();
    give_back(try_meet() == status::ok);
    (void)try_meet();
  }

  [[nodiscard]] rank_t rank() const noexcept { return view_.rank; }
  [[nodiscard]] rank_t size() const noexcept { return view_.size; }
  [[nodiscard]] int device() const noexcept { return device_; }
  // Blocks that a call uses at most.
  [[nodiscard]] int lanes() const noexcept { return view_.lanes; }
  // Memory of the GPU that this group has taken on this rank.
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return block_.bytes(); }

  // Memory of the GPU that peers in other processes read in place; in one process all of a GPU's memory is
  // such. Zeroed; `count` objects of T, aligned to 256 bytes; to be destroyed before the communicator, when
  // the calls that use it are done. Not collective: any rank allocates and frees whenever it likes, as much
  // as it likes. Throws error (out_of_memory) beyond COLLX_CUDA_HEAP_BYTES.
  template <class T>
  [[nodiscard]] symmetric_buffer<T, gpu_communicator> allocate(std::size_t count) {
    return {*this, count};  // refuses counts whose bytes would wrap around
  }
  // For symmetric_buffer.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    std::size_t const offset = heap_.take(bytes);
    if (offset == transport::first_fit::nothing)
      throw_error(
          status::out_of_memory,
          "no %zu bytes are left of this group's %zu on the GPU; free buffers, or set COLLX_CUDA_HEAP_BYTES "
          "to more on every rank",
          bytes, heap_bytes_);
    std::byte* const memory = block_.data() + view_.where.bytes() + offset;
    try {
      clear(memory, heap_.rounded(bytes));
    } catch (...) {
      heap_.give_back(offset, bytes);
      throw;
    }
    return memory;
  }
  void deallocate(std::byte* memory, std::size_t bytes) noexcept {
    heap_.give_back(static_cast<std::size_t>(memory - block_.data()) - view_.where.bytes(), bytes);
  }

  // Memory of cudaMalloc that peers in other processes read and store to in place from here on, as that of
  // allocate(), until what this returns is destroyed. Collective; see collective/gpu_registration.cuh.
  template <class T, class Registration = memory_registration>
  [[nodiscard]] Registration register_memory(std::span<T> memory) {
    return Registration(*this, memory.data(), memory.size_bytes());
  }

  // Ends every wait of this group's kernels, on all ranks, and every later call. By any thread.
  void abort() noexcept {
    device::store_relaxed(stop(), static_cast<std::uint32_t>(rank()) + 1);
    transport::cuda_parts::quiet_entry const here(device_);
    // Peers look at the first word of their windows.
    cudaStream_t const aside = own_->aside.get();
    for (transport::windows::peer_view const& peer : windows_.host_views())
      (void)cudaMemcpyAsync(peer.window, stop(), sizeof(std::uint32_t), cudaMemcpyHostToDevice, aside);
    (void)cudaStreamSynchronize(aside);
  }

  // Waits until everything in the stream is done, and throws what went wrong in a kernel of this group.
  void synchronize(on where) {
    transport::cuda_parts::entry const here(device_);  // whose the default stream is
    transport::cuda_parts::wait_for(where.stream);
    throw_if_failed();
  }

  // What an earlier kernel of this group met with, if one did: a collective that was launched long ago, so
  // this throws error with that collective's report, and the group can be used no more.
  void throw_if_failed() const { transport::windows::throw_if_failed(*own_->report.get(), *stop(), rank()); }

  // For collectives (collective/gpu_forms.cuh): what kernels take, and the order of calls.
  [[nodiscard]] transport::windows::view view_for(char const* collective) const noexcept {
    transport::windows::view of_call = view_;
    of_call.collective = collective;
    of_call.sequence = sequence_ == 0 ? 0 : sequence_ - 1;
    return of_call;
  }
  using stream_of_call = transport::cuda_parts::call_order::put_in;
  [[nodiscard]] stream_of_call begin(on where) {
    throw_if_failed();
    ++sequence_;
    return order_.begin(where.stream, own_->last_call.get(), own_->captured_calls);
  }
  void end(on where, stream_of_call const& call) {
    order_.end(where.stream, call, own_->last_call.get(), own_->captured_calls);
  }

  // For requests (collective/gpu_request.cuh).
  static void refuse_capture(
      on where, char const* why =
                    "start:: and persistent:: ask after a call, and what is captured runs later, as often as "
                    "its graph does; capture the plain form") {
    if (transport::cuda_parts::is_captured(where.stream)) throw error(status::bad_argument, why);
  }
  // Before a call is put into a stream: whether note() will have an event.
  void require_event() const { own_->events.require_one(); }
  // An event behind what is in the stream, to be forgotten once.
  [[nodiscard]] cudaEvent_t note(on where) {
    cudaEvent_t const done = own_->events.take();
    cudaError_t const code = cudaEventRecord(done, where.stream);
    if (code != cudaSuccess) own_->events.give_back(done);
    transport::cuda_parts::require(code, "noting the call");
    return done;
  }
  void forget(cudaEvent_t done) noexcept { own_->events.give_back(done); }

  // A graph of what `put(on)` puts into a stream, ready to be replayed; null where `due()` says that there is
  // nothing to put. Collective: no kernel of this group waits for a rank while that rank makes a graph, which
  // may wait for the device. What either throws on one rank ends this on all.
  template <class Due, class Put>
  [[nodiscard]] cudaGraphExec_t record(char const* collective, Due const& due, Put const& put) {
    bool wanted = false;
    together(collective, [&] {
      throw_if_failed();
      wanted = due();
    });
    cudaGraphExec_t ready = nullptr;
    try {
      together(collective, [&] {
        if (wanted)
          transport::cuda_parts::make_graph(own_->recorded.get(), ready, [&](cudaStream_t s) { put(on(s)); });
      });
    } catch (...) {
      if (ready != nullptr) (void)cudaGraphExecDestroy(ready);
      throw;
    }
    return ready;
  }

  // For registrations, and calls that use what was registered.
  [[nodiscard]] transport::cuda_parts::registered_windows& registered() noexcept { return *registered_; }
  // Waits until no call of this rank runs, but in graphs.
  void end_calls() noexcept {
    transport::cuda_parts::quiet_entry const here(device_);
    if (order_.has_calls()) (void)cudaEventSynchronize(own_->last_call.get());
  }

  [[nodiscard]] bool is_one_process() const noexcept { return company_.is_one_process; }
  // Collective: what all ranks have to say, by the host's communicator.
  void gather(std::span<std::byte const> mine, std::span<std::byte> all) { gather_(host_, mine, all); }

  // Waits for all ranks on the host's communicator.
  [[nodiscard]] status try_meet() noexcept { return agree_(host_, status::ok).code; }

  // Does make() on all ranks, or on none; see all_or_none.hpp.
  template <class Make>
  void together(char const* what, Make const& make) {
    detail::all_or_none(
        what, rank(), [this](status mine) noexcept { return agree_(host_, mine); }, make);
  }

  // Whether another rank of this process has the same device: then no stream may be one that waits for
  // others' by itself.
  [[nodiscard]] bool shares_device() const noexcept { return company_.shares_device; }
  // Whether one has another device: then not all memory of this one is within its reach.
  [[nodiscard]] bool spans_devices() const noexcept { return company_.spans_devices; }
  // Whether it is memory that allocate() has given, which all ranks reach.
  [[nodiscard]] bool is_allocated(void const* memory) const noexcept {
    auto const heap = reinterpret_cast<std::uintptr_t>(block_.data()) + view_.where.bytes();
    auto const at = reinterpret_cast<std::uintptr_t>(memory);
    return at >= heap && at - heap < heap_bytes_;
  }

 private:
  [[nodiscard]] std::uint32_t* stop() const noexcept { return own_->stop.get(); }

  // Where one has died, or left, nobody knows whether the others have closed this window or will make another
  // call. Before peers go on: to free memory waits for the device, and so for a kernel that they put into
  // another group, which may wait for this rank. And it is refused while another thread captures.
  void give_back(bool have_met) noexcept {
    if (!have_met) block_.leave_opened();
    registered_.reset();
    windows_.drop_table();
    block_ = {};
    own_.reset();  // last: what that kernel asks whether to stop
  }

  // Waits for the device; where that is refused, what a kernel may still look at is never unmapped.
  void rest_or_leave() noexcept {
    cudaError_t const code = cudaDeviceSynchronize();
    if (code != cudaSuccess) (void)cudaGetLastError();  // it is told here
    bool const is_idle = code == cudaSuccess;
    status const all = agree_(host_, is_idle ? status::ok : status::system_failure).code;
    bool const has_neighbours = company_.shares_device || company_.spans_devices;
    if (all != status::ok) block_.leave_opened();  // who cannot wait closes nothing
    if (transport::windows::device_rest{is_idle, all == status::ok, has_neighbours}.may_unmap()) return;
    windows_.leave();
    block_.leave();
    transport::cuda_parts::tell_left_mapped(rank(), device_, code, block_bytes_);
  }

  void clear(std::byte* memory, std::size_t bytes) {
    transport::cuda_parts::entry const here(device_);
    transport::cuda_parts::clear(memory, bytes, own_->aside.get());
  }

  template <class T>
  void gather_all(array<T> const& mine, array<T>& all) {
    gather(std::as_bytes(std::span(mine.data(), 1)),
           std::as_writable_bytes(std::span(all.data(), all.size())));
  }
  [[nodiscard]] bool all_in_one_process(transport::cuda_parts::process_name const& me) {
    array<transport::cuda_parts::process_name> all(static_cast<std::size_t>(size())), mine(1);
    mine[0] = me;
    gather_all(mine, all);
    bool is_one = true;
    for (auto const& each : all) is_one = is_one && each == me;
    return is_one;
  }

  // Collective: makes this rank's window and maps those of the others. False, on all ranks: not by handles of
  // CUDA IPC, but descriptors may do.
  [[nodiscard]] bool join(gpu_settings const& chosen, bool is_alone) {
    using transport::cuda_parts::announcement;
    array<announcement> all(static_cast<std::size_t>(size())), mine(1);
    together("gpu_communicator", [&] {
      transport::cuda_parts::outside_captures const relaxed;
      prepare(chosen, is_alone);
      mine[0] = transport::cuda_parts::window_mappings::describe(device_, bootstrap::host_identity(), block_,
                                                                 block_bytes_, view_.where);
    });
    gather_all(mine, all);
    std::optional<net::descriptor_exchange> exchange;
    has_descriptors_ =
        transport::windows::any_has_descriptor(std::span<announcement const>(all.data(), all.size()));
    if (has_descriptors_ && !is_alone) {  // the same on all ranks
      together("gpu_communicator",
               [&] { mine[0].desk = exchange.emplace("gpu_communicator", rank()).mine(); });
      gather_all(mine, all);
    }
    try {
      together("gpu_communicator", [&] {
        struct leaving {  // or peers would wait at the desk of a rank that has failed on the way there
          std::optional<net::descriptor_exchange>& desk;
          ~leaving() { desk.reset(); }
        } const at_the_end{exchange};
        transport::cuda_parts::outside_captures const relaxed;
        finish(std::span(all.data(), all.size()), exchange ? &*exchange : nullptr, chosen.timeout_us);
        // Before any rank has a kernel that waits for others; see kernel_list.cuh.
        transport::cuda_parts::require(device::listed_kernel::load_all(), "loading this program's kernels");
      });
    } catch (...) {
      // Memory must not be freed that another process still maps: ranks meet before anybody goes on.
      windows_.close();
      if (!all_fall_back(chosen.handles)) throw;
      return false;
    }
    return true;
  }
  // Collective. Whether some rank could not open a handle (in a container with an IPC namespace of its own,
  // say), and all that gave one can do without.
  [[nodiscard]] bool all_fall_back(window_handles wanted) noexcept {
    bool const exports = transport::cuda_parts::cuda_virtual_memory::can_export(device_);
    bool const can = transport::windows::can_do_without_ipc(wanted, block_.kind(), exports);
    auto const opened = agree_(host_, windows_.could_open() ? status::ok : status::not_supported);
    auto const all_can = agree_(host_, can ? status::ok : status::not_supported);
    return opened.code != status::ok && opened.who != no_rank && all_can.code == status::ok;
  }

  // The window, before anybody knows how many ranks share a GPU: with as many lanes as are asked for.
  void prepare(gpu_settings const& chosen, bool is_alone) {
    if (size() > exec::lane_peers_max)
      throw_error(status::not_supported,
                  "gpu_communicator: %d ranks are more than the %d that one group may have", size(),
                  exec::lane_peers_max);
    chosen.require_sane();
    transport::cuda_parts::require(cudaGetDevice(&device_), "the current device",
                                   "gpu_communicator needs a GPU");
    view_.where = {size(), chosen.lanes, chosen.staging_bytes, chosen.packet_bytes,
                   chosen.packet_width == 16 ? transport::windows::packet_width::wide
                                             : transport::windows::packet_width::narrow};
    block_bytes_ = transport::cuda_parts::window_mappings::whole_blocks(view_.where.bytes() + heap_bytes_);
    block_ = {};  // of an earlier try, which nobody maps any more: there may be no room for both
    block_ = transport::cuda_parts::window_memory(rank(), device_, block_bytes_, chosen.handles, is_alone);
    own_.emplace();
    view_.own = block_.data();
    view_.limits = {chosen.timeout_us * 1000, &view_.own_head().stopped, stop()};
    view_.failure = own_->report.get();
    // Whatever clearing memory needs is loaded now.
    if (heap_bytes_ != 0) clear(block_.data() + view_.where.bytes(), heap_bytes_);
  }

  void finish(std::span<transport::cuda_parts::announcement const> all, net::descriptor_exchange* exchange,
              std::uint64_t timeout_us) {
    auto const& mine = all[static_cast<std::size_t>(rank())];
    windows_.open(rank(), all, block_, exchange, timeout_us);
    view_.peers = windows_.views();
    for (auto const& each : all)
      if (each.bytes != mine.bytes || !each.where.is_like(mine.where))
        throw error(status::bad_argument,
                    "gpu_communicator: the COLLX_CUDA_ settings are not the same on all ranks");
    company_ = transport::windows::working_company_of(all, rank());
    registered_.emplace(windows_, own_->aside.get(), rank(), size(), device_, is_one_process());
    view_.lanes = company_.lanes_max < view_.where.lanes() ? company_.lanes_max : view_.where.lanes();
    if (is_one_process() && !company_.spans_devices) view_.reach = device::reach::device;
    // In one process all memory is mapped already, at the same addresses.
    view_.heap_begin =
        is_one_process() ? 0 : reinterpret_cast<std::uintptr_t>(block_.data()) + view_.where.bytes();
    view_.heap_end = is_one_process() ? ~std::uintptr_t{0} : view_.heap_begin + heap_bytes_;
  }

  using agree_function = detail::common_outcome (*)(void*, status) noexcept;
  using gather_function = void (*)(void*, std::span<std::byte const>, std::span<std::byte>);
  agree_function agree_;
  gather_function gather_;
  void* host_;
  int device_ = 0;
  transport::windows::view view_{};
  transport::cuda_parts::window_memory block_;
  std::size_t block_bytes_ = 0, heap_bytes_;
  transport::first_fit heap_;
  transport::cuda_parts::window_mappings windows_;
  std::optional<transport::cuda_parts::possessions> own_;
  std::optional<transport::cuda_parts::registered_windows> registered_;
  transport::cuda_parts::call_order order_;
  int exceptions_ = std::uncaught_exceptions();
  transport::windows::company company_;
  bool has_descriptors_ = false;
  std::uint64_t sequence_ = 0;
};

}  // namespace collx::inline abi_1
