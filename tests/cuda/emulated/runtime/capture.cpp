// SPDX-License-Identifier: Apache-2.0
// Streams that are captured: which, how, and what they have made invalid.
#include "cuda/emulated/runtime/capture.hpp"

#include <algorithm>
#include <set>

#include "cuda/emulated/runtime/graphs.hpp"

namespace emulated::runtime {

namespace {

// Those under way, by their streams of origin.
[[nodiscard]] std::vector<std::shared_ptr<capture>>& under_way() {
  static auto* const captures = new std::vector<std::shared_ptr<capture>>;
  return *captures;
}

void forget(capture& c) {
  auto& list = under_way();
  list.erase(std::remove_if(list.begin(), list.end(), [&](auto const& each) { return each.get() == &c; }),
             list.end());
  for (std::size_t d = 0; d < all().devices.size(); ++d)
    for (auto const& each : streams_of(static_cast<int>(d)))
      if (each->captured.get() == &c) each->captured = nullptr, each->tail.clear();
}

// Whether all that other streams have put into it comes before what the stream of origin put last.
[[nodiscard]] bool is_joined(capture const& c) {
  std::set<std::size_t> before;
  std::vector<std::size_t> open(c.origin->tail);
  while (!open.empty()) {
    std::size_t const at = open.back();
    open.pop_back();
    if (!before.insert(at).second) continue;
    for (std::size_t const each : c.made->nodes[at].after) open.push_back(each);
  }
  for (std::size_t d = 0; d < all().devices.size(); ++d)
    for (auto const& each : streams_of(static_cast<int>(d)))
      if (each->captured.get() == &c)
        for (std::size_t const last : each->tail)
          if (before.count(last) == 0) return false;
  return true;
}

}  // namespace

void invalidate(capture& c) { c.is_valid = false; }

cudaError_t add_node(char const*, stream& where, std::function<void()> work) {
  capture& c = *where.captured;
  if (!c.is_valid) return cudaErrorStreamCaptureInvalidated;
  c.made->nodes.push_back({where.tail, std::move(work)});
  where.tail = {c.made->nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t refuse_unsafe() {
  if (me().mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t code = cudaSuccess;
  for (auto const& each : under_way()) {
    bool const is_mine = each->by == std::this_thread::get_id();
    bool const forbids =
        is_mine ? each->mode != cudaStreamCaptureModeRelaxed
                : me().mode == cudaStreamCaptureModeGlobal && each->mode == cudaStreamCaptureModeGlobal;
    if (!forbids) continue;
    invalidate(*each);
    code = cudaErrorStreamCaptureUnsupported;
  }
  return code;
}

cudaError_t refuse_captured(stream& s) {
  if (s.captured == nullptr) return cudaSuccess;
  invalidate(*s.captured);
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t refuse_wait(stream& s) {
  if (cudaError_t const code = refuse_captured(s); code != cudaSuccess) return code;
  if (s.is_legacy)
    if (cudaError_t const code = refuse_legacy(s.ordinal); code != cudaSuccess) return code;
  return refuse_unsafe();
}

cudaError_t refuse_device_wait(int ordinal) {
  cudaError_t code = refuse_unsafe();
  for (auto const& each : streams_of(ordinal))
    if (each->captured != nullptr) {
      invalidate(*each->captured);
      code = cudaErrorStreamCaptureUnsupported;
    }
  return code;
}

cudaError_t refuse_legacy(int ordinal) {
  cudaError_t code = cudaSuccess;
  for (auto const& each : streams_of(ordinal))
    if (each->captured != nullptr && each->waits_for_legacy()) {
      invalidate(*each->captured);
      code = cudaErrorStreamCaptureImplicit;
    }
  return code;
}

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](lock& held, device&) {
    static unsigned long long last_id = 0;
    auto const s = find_stream(held, handle);
    if (s == nullptr) return cudaErrorInvalidResourceHandle;
    if (s->is_legacy) return cudaErrorStreamCaptureUnsupported;
    if (s->captured != nullptr) return cudaErrorIllegalState;
    auto const begun = std::make_shared<capture>();
    begun->id = ++last_id;
    begun->mode = mode;
    begun->by = std::this_thread::get_id();
    begun->origin = s.get();
    s->captured = begun;
    s->tail.clear();
    under_way().push_back(begun);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* to) {
  return call("cudaStreamEndCapture", [&](lock& held, device&) {
    auto const s = find_stream(held, handle);
    if (s == nullptr || to == nullptr) return cudaErrorInvalidResourceHandle;
    *to = nullptr;
    auto const ended = s->captured;
    if (ended == nullptr) return cudaErrorIllegalState;
    if (ended->origin != s.get()) return invalidate(*ended), cudaErrorStreamCaptureUnmatched;
    if (ended->mode != cudaStreamCaptureModeRelaxed && ended->by != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    bool const joined = is_joined(*ended);
    forget(*ended);
    ended->origin = nullptr;  // it is over
    if (!ended->is_valid) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *to = enter_graph(ended->made);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* to) {
  return call("cudaStreamIsCapturing", [&](lock& held, device& here) {
    auto const s = find_stream(held, handle);
    if (s == nullptr) return cudaErrorInvalidResourceHandle;
    if (s->is_legacy) {  // asking does no harm to the capture
      for (auto const& each : streams_of(here.ordinal))
        if (each->captured != nullptr && each->waits_for_legacy()) return cudaErrorStreamCaptureImplicit;
    }
    *to = s->captured == nullptr  ? cudaStreamCaptureStatusNone
          : s->captured->is_valid ? cudaStreamCaptureStatusActive
                                  : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* to, unsigned long long* id,
                                     cudaGraph_t* made, cudaGraphNode_t const** after,
                                     cudaGraphEdgeData const** edges, std::size_t* count) {
  if (made != nullptr || after != nullptr || edges != nullptr || count != nullptr)
    return cudaErrorNotSupported;
  cudaError_t const code = cudaStreamIsCapturing(handle, to);
  if (code != cudaSuccess || id == nullptr || *to != cudaStreamCaptureStatusActive) return code;
  return call("cudaStreamGetCaptureInfo", [&](lock& held, device&) {
    *id = find_stream(held, handle)->captured->id;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&](lock&, device&) {
    if (mode == nullptr) return cudaErrorInvalidValue;
    std::swap(me().mode, *mode);
    return cudaSuccess;
  });
}
}
