// SPDX-License-Identifier: Apache-2.0
// Streams: what was put into them, in order, and the threads that carry it out.
#include "cuda/emulated/runtime/streams.hpp"

#include <map>
#include <thread>

#include "cuda/emulated/machine.hpp"
#include "cuda/emulated/runtime/capture.hpp"

namespace emulated::runtime {

namespace {

// Handles, and streams that have something to do yet: one that is destroyed goes on until it has not.
using table = std::map<stream*, std::shared_ptr<stream>>;
[[nodiscard]] table& known() {
  static auto* const streams = new table;
  return *streams;
}
[[nodiscard]] table& running() {
  static auto* const streams = new table;
  return *streams;
}

[[nodiscard]] bool has_failed(int ordinal) {
  return all().devices[static_cast<std::size_t>(ordinal)].failure != cudaSuccess;
}

// True if the task may begin; else the stream is woken when what it waits for counts on.
[[nodiscard]] bool may_begin(stream& s, task const& next) {
  for (place const& each : next.after)
    if (!each.is_passed()) return each.of->waiting.push_back(s.shared_from_this()), false;
  if (s.queued != nullptr && s.queued->begun != next.number)
    return s.queued->waiting.push_back(s.shared_from_this()), false;
  return true;
}

void work_off(std::shared_ptr<stream> const& s) {
  device_at_work() = s->ordinal;
  lock held(all().mutex);
  for (;;) {
    while (s->tasks.empty() ? !s->is_closed : !may_begin(*s, s->tasks.front())) s->wake.wait(held);
    if (s->tasks.empty()) return (void)running().erase(s.get());
    task now = std::move(s->tasks.front());
    s->tasks.pop_front();
    bool const stands = now.stands;
    if (s->queued != nullptr && !stands) s->queued->count_begun();
    if (now.work && !has_failed(s->ordinal)) {
      held.unlock();
      delay();
      now.work();
      now = {};
      held.lock();
    }
    if (s->queued != nullptr && stands) s->queued->count_begun();
    ++s->done;
    for (auto const& each : s->waiting) each->wake.notify_one();
    s->waiting.clear();
    all().host.notify_all();
  }
}

}  // namespace

bool place::is_passed() const { return of == nullptr || of->done >= number; }

int& device_at_work() {
  static thread_local int ordinal = -1;
  return ordinal;
}

std::shared_ptr<stream> make_stream(int ordinal, unsigned flags, int priority) {
  static unsigned long long last_id = 0;
  auto const made = std::make_shared<stream>();
  made->ordinal = ordinal;
  made->flags = flags;
  made->priority = priority;
  made->id = ++last_id;
  made->queued = next_queue(ordinal, priority);
  known()[made.get()] = running()[made.get()] = made;
  std::thread([made] { work_off(made); }).detach();
  return made;
}

std::shared_ptr<stream> find_stream(lock& held, cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return ready(held).legacy;
  if (handle == cudaStreamPerThread) {
    struct own {
      std::map<int, std::shared_ptr<stream>> by_device;
      ~own() {
        lock const ending(all().mutex);
        for (auto const& [ordinal, s] : by_device)
          s->is_closed = true, known().erase(s.get()), s->wake.notify_one();
      }
    };
    static thread_local own mine;
    auto& found = mine.by_device[me().device];
    if (found == nullptr) found = make_stream(me().device, cudaStreamDefault, 0);
    return found;
  }
  auto const found = known().find(reinterpret_cast<stream*>(handle));
  return found == known().end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<stream>> streams_of(int ordinal) {
  std::vector<std::shared_ptr<stream>> found;
  for (auto const& [address, each] : running())
    if (each->ordinal == ordinal) found.push_back(each);
  return found;
}

place end_of(stream& where) { return {where.shared_from_this(), where.put}; }

place put_now(lock&, stream& where, std::function<void()> work, std::vector<place> after, bool stands) {
  device const& here = all().devices[static_cast<std::size_t>(where.ordinal)];
  if (where.is_legacy) {
    for (auto const& each : streams_of(where.ordinal))
      if (each->waits_for_legacy() && each->done < each->put) after.push_back(end_of(*each));
  } else if (where.waits_for_legacy() && here.legacy->done < here.legacy->put) {
    after.push_back(end_of(*here.legacy));
  }
  std::uint64_t const number = where.queued == nullptr ? 0 : where.queued->put++;
  where.tasks.push_back({std::move(after), std::move(work), stands, number});
  ++where.put;
  where.wake.notify_one();
  return end_of(where);
}

cudaError_t put(lock& held, char const* function, stream& where, std::function<void()> work,
                std::vector<place> after, bool stands) {
  if (where.captured != nullptr) return add_node(function, where, std::move(work));
  if (where.is_legacy)
    if (cudaError_t const code = refuse_legacy(where.ordinal); code != cudaSuccess) return code;
  put_now(held, where, std::move(work), std::move(after), stands);
  return cudaSuccess;
}

bool wait_for(lock& held, place const& what) {
  if (what.of == nullptr) return true;
  all().host.wait(held, [&] { return what.is_passed() || has_failed(what.of->ordinal); });
  return !has_failed(what.of->ordinal);
}

bool wait_for_device(lock& held, int ordinal) {
  std::vector<place> ends;
  for (auto const& each : streams_of(ordinal)) ends.push_back(end_of(*each));
  for (place const& each : ends)
    if (!wait_for(held, each)) return false;
  return true;
}

void may_wait_for_device(lock& held, int ordinal) {
  if (all().waits_always) (void)wait_for_device(held, ordinal);
}

void fail_device(int ordinal, std::string const& what) {
  auto const says = [&](char const* word) { return what.find(word) != std::string::npos; };
  lock const held(all().mutex);
  device& here = all().devices[static_cast<std::size_t>(ordinal)];
  if (here.failure != cudaSuccess) return;
  complain("a kernel", what);
  here.failure = says("align")         ? cudaErrorMisalignedAddress
                 : says("assert")      ? cudaErrorAssert
                 : says("trap")        ? cudaErrorLaunchFailure
                 : says("instruction") ? cudaErrorIllegalInstruction
                                       : cudaErrorIllegalAddress;
  all().host.notify_all();
}

}  // namespace emulated::runtime

using namespace emulated::runtime;

namespace {

constexpr int highest_priority = -5, lowest_priority = 0;

cudaError_t create(cudaStream_t* to, unsigned flags, int priority) {
  return call("cudaStreamCreate", [&](lock& held, device& here) {
    if (to == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) return cudaErrorInvalidValue;
    may_wait_for_device(held, here.ordinal);
    priority = priority < highest_priority  ? highest_priority
               : priority > lowest_priority ? lowest_priority
                                            : priority;
    *to = reinterpret_cast<cudaStream_t>(make_stream(here.ordinal, flags, priority).get());
    return cudaSuccess;
  });
}

// f(stream) on what a handle stands for.
template <class F>
cudaError_t on_stream(char const* function, cudaStream_t handle, F const& f) {
  return call(function, [&](lock& held, device&) {
    auto const found = find_stream(held, handle);
    return found == nullptr ? cudaErrorInvalidResourceHandle : f(held, *found);
  });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* to) { return create(to, cudaStreamDefault, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned flags) { return create(to, flags, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* to, unsigned flags, int priority) {
  return create(to, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](lock&, device&) {
    if (lowest != nullptr) *lowest = lowest_priority;
    if (highest != nullptr) *highest = highest_priority;
    return cudaSuccess;
  });
}

// What is in it is carried out, and nobody waits for that.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return on_stream("cudaStreamDestroy", handle, [&](lock&, stream& s) {
    if (reinterpret_cast<std::uintptr_t>(handle) <= reinterpret_cast<std::uintptr_t>(cudaStreamPerThread))
      return cudaErrorInvalidResourceHandle;
    if (s.captured != nullptr) invalidate(*s.captured);
    s.is_closed = true;
    s.wake.notify_one();
    known().erase(&s);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return on_stream("cudaStreamSynchronize", handle, [](lock& held, stream& s) {
    if (cudaError_t const code = refuse_wait(s); code != cudaSuccess) return code;
    auto const kept = s.shared_from_this();
    if (s.is_legacy) {  // as something put into it would
      for (auto const& each : streams_of(s.ordinal))
        if (each->waits_for_legacy()) (void)wait_for(held, end_of(*each));
    }
    (void)wait_for(held, end_of(s));
    return all().devices[static_cast<std::size_t>(kept->ordinal)].failure;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return on_stream("cudaStreamQuery", handle, [](lock&, stream& s) {
    if (cudaError_t const code = refuse_wait(s); code != cudaSuccess) return code;
    bool is_idle = s.done == s.put;
    if (s.is_legacy)
      for (auto const& each : streams_of(s.ordinal))
        is_idle = is_idle && (!each->waits_for_legacy() || each->done == each->put);
    return is_idle ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* to) {
  return on_stream("cudaStreamGetFlags", handle, [&](lock&, stream& s) {
    if (cudaError_t const code = refuse_captured(s); code != cudaSuccess) return code;
    return *to = s.flags, cudaSuccess;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* to) {
  return on_stream("cudaStreamGetPriority", handle,
                   [&](lock&, stream& s) { return *to = s.priority, cudaSuccess; });
}
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* to) {
  return on_stream("cudaStreamGetDevice", handle, [&](lock&, stream& s) {
    if (cudaError_t const code = refuse_captured(s); code != cudaSuccess) return code;
    return *to = s.ordinal, cudaSuccess;
  });
}
cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* to) {
  return on_stream("cudaStreamGetId", handle, [&](lock&, stream& s) {
    if (cudaError_t const code = refuse_captured(s); code != cudaSuccess) return code;
    return *to = s.id, cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t f, void* data) {
  return on_stream("cudaLaunchHostFunc", handle, [&](lock& held, stream& s) {
    return put(held, "cudaLaunchHostFunc", s, [f, data] { f(data); });
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](lock& held, device& here) {
    if (cudaError_t const code = refuse_device_wait(here.ordinal); code != cudaSuccess) return code;
    (void)wait_for_device(held, here.ordinal);
    return here.failure;
  });
}
}
