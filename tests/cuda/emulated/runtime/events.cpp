// SPDX-License-Identifier: Apache-2.0
// Events: a place in a stream, and the time at which it was passed. Or, recorded in a capture, its nodes.
#include <chrono>
#include <map>

#include "cuda/emulated/runtime/capture.hpp"

namespace emulated::runtime {

namespace {

using clock = std::chrono::steady_clock;

struct event {
  int ordinal = 0;
  unsigned flags = 0;
  place at;  // of the last record
  std::shared_ptr<clock::time_point> time = std::make_shared<clock::time_point>();
  std::shared_ptr<capture> captured;  // in which it was recorded last
  std::vector<std::size_t> nodes;
};

[[nodiscard]] std::map<cudaEvent_t, std::shared_ptr<event>>& known() {
  static auto* const events = new std::map<cudaEvent_t, std::shared_ptr<event>>;
  return *events;
}
[[nodiscard]] std::shared_ptr<event> find_event(cudaEvent_t handle) {
  auto const found = known().find(handle);
  return found == known().end() ? nullptr : found->second;
}

// f(event) on what a handle stands for.
template <class F>
cudaError_t on_event(char const* function, cudaEvent_t handle, F const& f) {
  return call(function, [&](lock& held, device&) {
    auto const found = find_event(handle);
    return found == nullptr ? cudaErrorInvalidResourceHandle : f(held, *found);
  });
}

// Whether to wait for it, or to ask, is refused.
[[nodiscard]] cudaError_t refuse(event& e) {
  if (e.captured == nullptr) return refuse_unsafe();
  invalidate(*e.captured);
  return cudaErrorCapturedEvent;
}

[[nodiscard]] cudaError_t record(lock& held, event& e, stream& s, bool is_external) {
  if (e.ordinal != s.ordinal) {
    complain("cudaEventRecord", "the event belongs to device " + std::to_string(e.ordinal) +
                                    ", the stream to device " + std::to_string(s.ordinal));
    return cudaErrorInvalidResourceHandle;
  }
  if (s.captured != nullptr && !is_external) {
    if (!s.captured->is_valid) return cudaErrorStreamCaptureInvalidated;
    e.captured = s.captured;
    e.nodes = s.tail;
    return cudaSuccess;
  }
  auto const time = std::make_shared<clock::time_point>();
  auto const take = [time] { *time = clock::now(); };
  if (s.captured != nullptr) return put(held, "cudaEventRecord", s, take);
  if (s.is_legacy)
    if (cudaError_t const code = refuse_legacy(s.ordinal); code != cudaSuccess) return code;
  e.captured = nullptr;
  e.time = time;
  e.at = put_now(held, s, take);
  return cudaSuccess;
}

// The stream joins the capture that the event was recorded in, if there was one.
[[nodiscard]] cudaError_t join(stream& s, event& e) {
  if (e.captured == nullptr) {  // of what is carried out, nobody who is captured can wait for
    invalidate(*s.captured);
    return cudaErrorStreamCaptureIsolation;
  }
  if (!e.captured->is_valid) return cudaErrorStreamCaptureInvalidated;
  if (e.captured->origin == nullptr) return cudaErrorCapturedEvent;
  if (s.captured == nullptr) {
    if (s.is_legacy) return invalidate(*e.captured), cudaErrorStreamCaptureImplicit;
    s.captured = e.captured;
    s.tail = e.nodes;
    return cudaSuccess;
  }
  if (s.captured != e.captured) {
    invalidate(*s.captured), invalidate(*e.captured);
    return cudaErrorStreamCaptureMerge;
  }
  s.tail.insert(s.tail.end(), e.nodes.begin(), e.nodes.end());
  return cudaSuccess;
}

}  // namespace

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned flags) {
  return call("cudaEventCreate", [&](lock& held, device& here) {
    constexpr unsigned good = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (to == nullptr || (flags & ~good) != 0) return cudaErrorInvalidValue;
    may_wait_for_device(held, here.ordinal);
    auto const made = std::make_shared<event>();
    made->ordinal = here.ordinal;
    made->flags = flags;
    *to = reinterpret_cast<cudaEvent_t>(made.get());
    known()[*to] = made;
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* to) { return cudaEventCreateWithFlags(to, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return on_event("cudaEventDestroy", handle, [&](lock&, event&) {
    known().erase(handle);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  return on_event("cudaEventRecord", handle, [&](lock& held, event& e) {
    auto const s = find_stream(held, stream_handle);
    return s == nullptr ? cudaErrorInvalidResourceHandle
                        : record(held, e, *s, (flags & cudaEventRecordExternal) != 0);
  });
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return cudaEventRecordWithFlags(handle, stream_handle, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  return on_event("cudaStreamWaitEvent", handle, [&](lock& held, event& e) {
    auto const s = find_stream(held, stream_handle);
    if (s == nullptr) return cudaErrorInvalidResourceHandle;
    bool const is_external = (flags & cudaEventWaitExternal) != 0;
    if ((s->captured != nullptr || e.captured != nullptr) && !is_external) return join(*s, e);
    if (s->captured != nullptr)
      return put(held, "cudaStreamWaitEvent", *s, [at = e.at] {
        lock waiting(all().mutex);
        (void)wait_for(waiting, at);
      });
    // As it was recorded last: later records do not concern this wait. Never recorded: nothing to wait for.
    return put(held, "cudaStreamWaitEvent", *s, nullptr, {e.at});
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return on_event("cudaEventSynchronize", handle, [](lock& held, event& e) {
    if (cudaError_t const code = refuse(e); code != cudaSuccess) return code;
    place const at = e.at;
    if (wait_for(held, at)) return cudaSuccess;
    return all().devices[static_cast<std::size_t>(at.of->ordinal)].failure;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return on_event("cudaEventQuery", handle, [](lock&, event& e) {
    if (cudaError_t const code = refuse(e); code != cudaSuccess) return code;
    return e.at.is_passed() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* to, cudaEvent_t begin_handle, cudaEvent_t end_handle) {
  return on_event("cudaEventElapsedTime", begin_handle, [&](lock&, event& begin) {
    auto const end = find_event(end_handle);
    if (end == nullptr || to == nullptr) return cudaErrorInvalidResourceHandle;
    if (((begin.flags | end->flags) & cudaEventDisableTiming) != 0 || begin.at.of == nullptr ||
        end->at.of == nullptr)
      return cudaErrorInvalidResourceHandle;
    if (!begin.at.is_passed() || !end->at.is_passed()) return cudaErrorNotReady;
    *to = std::chrono::duration<float, std::milli>(*end->time - *begin.time).count();
    return cudaSuccess;
  });
}
}
