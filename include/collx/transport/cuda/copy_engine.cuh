// SPDX-License-Identifier: Apache-2.0
// Moves bytes between a GPU and the host for host_driven.hpp: the GPU's copy engines do it, in streams of
// their own, and streams of the user wait at words in memory of the host. No multiprocessor has a part in it.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "collx/device/cuda/kernel_list.cuh"
#include "collx/transport/copier.hpp"
#include "collx/transport/cuda/memory.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// Memory operations of streams, which the runtime library does not have. Found at run time, so that nobody
// has to link the driver's library.
struct stream_words {
  PFN_cuStreamWriteValue32_v11070 write = nullptr;
  PFN_cuStreamWaitValue32_v11070 wait = nullptr;

  [[nodiscard]] static stream_words const& loaded() {
    static stream_words const functions = [] {
      stream_words found;
      found.get("cuStreamWriteValue32", found.write);
      found.get("cuStreamWaitValue32", found.wait);
      return found;
    }();
    return functions;
  }

 private:
  template <class Function>
  static void get(char const* symbol, Function& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult outcome = cudaDriverEntryPointSymbolNotFound;
    require(cudaGetDriverEntryPointByVersion(symbol, &found, 11070, cudaEnableDefault, &outcome), symbol);
    if (outcome != cudaDriverEntryPointSuccess)
      throw error(status::not_supported, "copy_engine: this driver has no memory operations of streams");
    function = reinterpret_cast<Function>(found);
  }
};

class copy_engine {
 public:
  using stream = cudaStream_t;

  // For the current device. `half_bytes`: of pinned memory, twice. Throws error.
  explicit copy_engine(std::size_t half_bytes = std::size_t{4} << 20)
      : device_(prepared_device()), half_bytes_(half_bytes), staging_(half_bytes) {}
  copy_engine(copy_engine const&) = delete;

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] std::size_t half_bytes() const noexcept { return half_bytes_; }
  [[nodiscard]] std::byte* staging(int half) const noexcept {
    return static_cast<std::byte*>(staging_.data) + static_cast<std::size_t>(half) * half_bytes_;
  }
  [[nodiscard]] std::uint32_t* word(int i) const noexcept { return words_->all + i; }

  [[nodiscard]] status fetch(int half, copied_rows const& rows) noexcept {
    return copy(in_, half, rows, cudaMemcpyDeviceToHost);
  }
  [[nodiscard]] status store(int half, copied_rows const& rows) noexcept {
    return copy(out_, half, rows, cudaMemcpyHostToDevice);
  }
  [[nodiscard]] status fetched(int half) const noexcept { return state(in_, half); }
  [[nodiscard]] status stored(int half) const noexcept { return state(out_, half); }

  [[nodiscard]] status state() const noexcept {
    enter();
    cudaError_t const code = cudaStreamQuery(in_.queue.get());
    return code == cudaSuccess || code == cudaErrorNotReady ? status::ok : status::system_failure;
  }

  void mark(stream where, std::uint32_t* word, std::uint32_t value) const {
    // The default: what came before in the stream is visible before the word is.
    require_driver(words_of_streams_.write(where, address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  // "Or later": the word may serve another call, in another stream, before this one has looked.
  void hold(stream where, std::uint32_t* word, std::uint32_t value) const {
    require_driver(words_of_streams_.wait(where, address(word), value, CU_STREAM_WAIT_VALUE_GEQ));
  }

 private:
  struct direction {
    own_stream queue =
        own_stream::with_own_queue();  // or a copy would wait behind a stream that waits for it
    own_event done[2];
  };
  // Two halves.
  struct staging_memory {
    void* data = nullptr;

    explicit staging_memory(std::size_t half_bytes) {
      if (half_bytes > PTRDIFF_MAX / 2)
        throw error(status::bad_argument, "copy_engine: so much staging memory there is not");
      data = allocate_pinned(2 * half_bytes, cudaHostAllocPortable);
    }
    staging_memory(staging_memory const&) = delete;
    ~staging_memory() { free_pinned(data); }
  };
  struct words {
    std::uint32_t all[64];
  };
  // What a copy of several rows may have between them.
  static constexpr std::size_t pitch_max = (std::size_t{1} << 31) - 1;

  [[nodiscard]] static int prepared_device() {
    int device = 0;
    require(cudaGetDevice(&device), "the current device", "host-driven collectives need a GPU");
    // Reductions on the GPU are put behind streams that wait, when it is too late to load them.
    require(device::listed_kernel::load_all(), "loading the kernels of this program");
    return device;
  }

  // The thread that drives has not chosen a device, and other threads may be capturing.
  cudaError_t enter() const noexcept {
    cudaError_t const code = cudaSetDevice(device_);  // first: whatever else is asked makes a context
    static thread_local bool relaxed = false;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (code == cudaSuccess && !relaxed) relaxed = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    return code;
  }

  [[nodiscard]] status copy(direction const& way, int half, copied_rows const& r,
                            cudaMemcpyKind kind) noexcept {
    cudaError_t code = enter();
    if (r.rows != 0 && r.width_bytes != 0 && code == cudaSuccess) {
      if (r.to_pitch <= pitch_max && r.from_pitch <= pitch_max) {
        code = cudaMemcpy2DAsync(r.to, r.to_pitch, r.from, r.from_pitch, r.width_bytes, r.rows, kind,
                                 way.queue.get());
      } else {
        for (std::size_t i = 0; i < r.rows && code == cudaSuccess; ++i)
          code = cudaMemcpyAsync(r.to + i * r.to_pitch, r.from + i * r.from_pitch, r.width_bytes, kind,
                                 way.queue.get());
      }
    }
    if (code == cudaSuccess) code = cudaEventRecord(way.done[half].get(), way.queue.get());
    return code == cudaSuccess ? status::ok : status::system_failure;
  }

  [[nodiscard]] static status state(direction const& way, int half) noexcept {
    cudaError_t const code = cudaEventQuery(way.done[half].get());
    return code == cudaSuccess         ? status::ok
           : code == cudaErrorNotReady ? status::pending
                                       : status::system_failure;
  }

  [[nodiscard]] static CUdeviceptr address(std::uint32_t* word) noexcept {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(word));
  }
  static void require_driver(CUresult code) {
    if (code == CUDA_SUCCESS) return;
    throw_error(status::system_failure,
                "host-driven collective: a stream cannot wait at memory of the host (CUDA driver error %d)",
                static_cast<int>(code));
  }

  int device_;
  std::size_t half_bytes_;
  staging_memory staging_;
  pinned<words> words_;
  direction in_, out_;
  stream_words const& words_of_streams_ = stream_words::loaded();
};

static_assert(copier<copy_engine>);

}  // namespace collx::inline abi_1::transport::cuda_parts
