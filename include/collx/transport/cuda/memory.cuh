// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU, and memory of the host that a GPU reaches: owned, given back at the end.
#pragma once

#include <utility>

#include "collx/transport/cuda/current_device.cuh"
#include "collx/transport/cuda/driver.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// Another thread may be capturing a stream in a mode that forbids every thread what might disturb a capture:
// to allocate, to free (also nothing), to wait, to instantiate a graph. None of what happens while this lives
// concerns a captured stream, so this thread is let off. Not from two things, which end captures in every
// mode: to use the legacy default stream while one is captured that waits for it, so nothing of this library
// uses that stream; and to wait for the device. What CUDA answers is in tests/cuda/captures.cu.
class outside_captures {
 public:
  outside_captures() { require(cudaThreadExchangeStreamCaptureMode(&mode_), "the mode of captures"); }
  outside_captures(outside_captures const&) = delete;
  ~outside_captures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// The same where nothing may be thrown: what CUDA refuses then shows in what is called next.
class quietly_outside_captures {
 public:
  quietly_outside_captures() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  quietly_outside_captures(quietly_outside_captures const&) = delete;
  ~quietly_outside_captures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Besides, with a device made current: before anything else is asked, which would make a context on whatever
// device the thread has.
class entry {
 public:
  explicit entry(int device) : here_(device) {}

 private:
  current_device here_;
  outside_captures relaxed_;
};
class quiet_entry {
 public:
  explicit quiet_entry(int device) noexcept : here_(device) {}

 private:
  quietly_current_device here_;
  quietly_outside_captures relaxed_;
};

// An event that takes no times, and a stream that waits for no other by itself, of the device that is current
// when it is made.
class own_event {
 public:
  own_event() { require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
  own_event(own_event const&) = delete;
  ~own_event() { (void)cudaEventDestroy(event_); }

  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};
class own_stream {
 public:
  own_stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  // Of the highest priority, though not for the sake of it: streams share queues of the device, in which what
  // is put in waits behind a stream that stands still, though it may be what that stream waits for. Those of
  // another priority have queues of their own.
  [[nodiscard]] static own_stream with_own_queue() {
    int lowest = 0, highest = 0;
    require(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "the priorities of streams");
    return own_stream(highest);
  }
  own_stream(own_stream const&) = delete;
  ~own_stream() { (void)cudaStreamDestroy(stream_); }

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  explicit own_stream(int priority) {
    require(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), "a stream");
  }

  cudaStream_t stream_ = nullptr;
};

// Memory of the current device: zeroed when this returns. Not by cudaDeviceSynchronize: kernels of other
// ranks may wait for this one. `aside`: a stream in which nothing waits.
inline void clear(void* memory, std::size_t bytes, cudaStream_t aside) {
  require(cudaMemsetAsync(memory, 0, bytes, aside), "clearing memory of the GPU");
  require(cudaStreamSynchronize(aside), "clearing memory of the GPU");
}
inline void clear(void* memory, std::size_t bytes) {
  own_stream const aside;
  clear(memory, bytes, aside.get());
}

// Zeroed memory of the current device.
class device_block {
 public:
  device_block() = default;
  explicit device_block(std::size_t bytes) {
    device_block fresh;  // freed if it cannot be cleared
    void* memory = nullptr;
    require(cudaMalloc(&memory, bytes), "memory of the GPU",
            "make lanes, staging or heap smaller (COLLX_CUDA_...), or free memory");
    fresh.data_ = static_cast<std::byte*>(memory);
    clear(memory, bytes);  // peers may write at once
    *this = std::move(fresh);
  }
  device_block(device_block&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  device_block& operator=(device_block&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  // To free nothing ends captures, too, and blocks that have nothing also end where this thread is not let
  // off.
  ~device_block() {
    if (data_ == nullptr) return;
    kinds_of_this_process().forget(data_);  // as whoever frees has to, once trust_hits() was called
    (void)cudaFree(data_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  // Never freed.
  void leave() noexcept { data_ = nullptr; }

 private:
  std::byte* data_ = nullptr;
};

// Memory of the host that CUDA has pinned; whoever captures is not disturbed.
[[nodiscard]] inline void* allocate_pinned(std::size_t bytes, unsigned flags) {
  outside_captures const relaxed;
  void* memory = nullptr;
  require(cudaHostAlloc(&memory, bytes, flags), "pinned memory");
  return memory;
}
inline void free_pinned(void* memory) noexcept {
  quietly_outside_captures const relaxed;
  (void)cudaFreeHost(memory);
}

// One zeroed object in memory of the host, which kernels of all devices reach at the same address.
template <class T>
class pinned {
 public:
  pinned() : value_(new (allocate_pinned(sizeof(T), cudaHostAllocPortable | cudaHostAllocMapped)) T{}) {}
  pinned(pinned const&) = delete;
  ~pinned() { free_pinned(value_); }

  [[nodiscard]] T* get() const noexcept { return value_; }
  [[nodiscard]] T* operator->() const noexcept { return value_; }

 private:
  T* value_;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
