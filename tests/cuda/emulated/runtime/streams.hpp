// SPDX-License-Identifier: Apache-2.0
// Streams: each has a thread of the host that works off what was put into it, in order. What a stream waits
// for is known when a task is put: a place in another stream, which was put before.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/emulated/runtime/books.hpp"
#include "cuda/emulated/runtime/queues.hpp"

namespace emulated::runtime {

struct capture;

// A task of a stream, by its number. Empty: nothing.
struct place {
  std::shared_ptr<stream> of;
  std::uint64_t number = 0;
  [[nodiscard]] bool is_passed() const;  // with the lock held
};

struct task {
  std::vector<place> after;
  std::function<void()> work;  // without the lock
  bool stands = false;         // waits for others while it is worked at: has not begun before it is done
  std::uint64_t number = 0;    // in the queue
};

struct stream : std::enable_shared_from_this<stream> {
  int ordinal = 0;  // of the device
  unsigned flags = cudaStreamDefault;
  int priority = 0;
  unsigned long long id = 0;
  cudaLaunchMemSyncDomain domain = cudaLaunchMemSyncDomainDefault;
  cudaLaunchMemSyncDomainMap domains{0, 1};
  bool is_legacy = false, is_closed = false;
  std::deque<task> tasks;
  std::shared_ptr<queue> queued;    // null: its own
  std::uint64_t put = 0, done = 0;  // counts of tasks
  std::condition_variable wake;
  std::vector<std::shared_ptr<stream>> waiting;  // to be woken when `done` counts on
  std::shared_ptr<capture> captured;             // null: what is put is carried out
  std::vector<std::size_t> tail;                 // nodes of the capture that come before what is put next

  [[nodiscard]] bool waits_for_legacy() const { return !is_legacy && (flags & cudaStreamNonBlocking) == 0; }
};

// With a thread of its own; known by its address from here on. `held` all the time.
[[nodiscard]] std::shared_ptr<stream> make_stream(int ordinal, unsigned flags, int priority);
// What a handle stands for; null for what is no stream, or none any more.
[[nodiscard]] std::shared_ptr<stream> find_stream(lock& held, cudaStream_t handle);

// Behind what is in the stream, and `after`; or into the graph that is captured of it. Returns why not.
[[nodiscard]] cudaError_t put(lock& held, char const* function, stream& where, std::function<void()> work,
                              std::vector<place> after = {}, bool stands = false);
// As put(), whether or not anything is captured of the stream.
place put_now(lock& held, stream& where, std::function<void()> work, std::vector<place> after = {},
              bool stands = false);
[[nodiscard]] place end_of(stream& where);

// Host threads wait. False if the device has failed.
bool wait_for(lock& held, place const& what);
// For all streams of the device, as they are now.
bool wait_for_device(lock& held, int ordinal);
// What may wait for the device and need not: does so where it is told to (COLLX_EMULATED_MALLOC_WAITS).
void may_wait_for_device(lock& held, int ordinal);

// A kernel did what it must not: ends the device for this process. Without the lock.
void fail_device(int ordinal, std::string const& what);

// Streams that are there, of all devices.
[[nodiscard]] std::vector<std::shared_ptr<stream>> streams_of(int ordinal);
// Of which device the calling thread carries something out; -1: of none.
[[nodiscard]] int& device_at_work();

}  // namespace emulated::runtime
