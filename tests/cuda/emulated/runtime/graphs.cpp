// SPDX-License-Identifier: Apache-2.0
// Graphs: made by capture, instantiated, launched.
#include "cuda/emulated/runtime/graphs.hpp"

#include <condition_variable>
#include <map>
#include <thread>

namespace emulated::runtime {

namespace {

struct executable {
  int ordinal = 0;
  std::shared_ptr<graph> what;
  std::vector<chain> chains;
  place last;  // the same graph does not run beside itself
};

template <class T>
[[nodiscard]] std::map<void*, std::shared_ptr<T>>& known() {
  static auto* const handles = new std::map<void*, std::shared_ptr<T>>;
  return *handles;
}
template <class T>
[[nodiscard]] std::shared_ptr<T> find(void* handle) {
  auto const found = known<T>().find(handle);
  return found == known<T>().end() ? nullptr : found->second;
}

}  // namespace

cudaGraph_t enter_graph(std::shared_ptr<graph> made) {
  void* const handle = made.get();
  known<graph>()[handle] = std::move(made);
  return static_cast<cudaGraph_t>(handle);
}

std::vector<chain> chains_of(graph const& g) {
  std::vector<chain> chains;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    chain* behind = nullptr;
    for (chain& each : chains)
      for (std::size_t const before : g.nodes[i].after)
        if (behind == nullptr && each.nodes.back() == before) behind = &each;
    if (behind == nullptr) behind = &chains.emplace_back();
    behind->nodes.push_back(i);
  }
  return chains;
}

void carry_out(graph const& g, std::vector<chain> const& chains, int ordinal) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> done(g.nodes.size());
  auto const run = [&](chain const& mine) {
    device_at_work() = ordinal;
    for (std::size_t const i : mine.nodes) {
      {
        std::unique_lock waiting(mutex);
        changed.wait(waiting, [&] {
          for (std::size_t const before : g.nodes[i].after)
            if (!done[before]) return false;
          return true;
        });
      }
      if (g.nodes[i].work) g.nodes[i].work();
      std::unique_lock const finishing(mutex);
      done[i] = true;
      changed.notify_all();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t c = 1; c < chains.size(); ++c) others.emplace_back([&, c] { run(chains[c]); });
  if (!chains.empty()) run(chains.front());
  for (std::thread& each : others) each.join();
}

}  // namespace emulated::runtime

using namespace emulated::runtime;

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t from, unsigned long long) {
  return call("cudaGraphInstantiate", [&](lock& held, device& here) {
    auto const what = find<graph>(from);
    if (what == nullptr || to == nullptr) return cudaErrorInvalidValue;
    if (cudaError_t const code = refuse_unsafe(); code != cudaSuccess) return code;
    may_wait_for_device(held, here.ordinal);
    auto const made = std::make_shared<executable>();
    made->ordinal = here.ordinal;
    made->what = std::make_shared<graph>(*what);  // changes of the graph do not concern it
    made->chains = chains_of(*made->what);
    known<executable>()[made.get()] = made;
    *to = reinterpret_cast<cudaGraphExec_t>(made.get());
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* to, cudaGraph_t from, unsigned long long flags) {
  return cudaGraphInstantiate(to, from, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return call("cudaGraphDestroy", [&](lock&, device&) {
    return known<graph>().erase(handle) == 1 ? cudaSuccess : cudaErrorInvalidValue;
  });
}

// What runs of it goes on.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return call("cudaGraphExecDestroy", [&](lock& held, device& here) {
    auto const gone = find<executable>(handle);
    if (gone == nullptr) return cudaErrorInvalidValue;
    may_wait_for_device(held, here.ordinal);
    known<executable>().erase(handle);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return call("cudaGraphUpload", [&](lock& held, device&) {
    auto const what = find<executable>(handle);
    auto const s = find_stream(held, stream_handle);
    if (what == nullptr || s == nullptr) return cudaErrorInvalidResourceHandle;
    if (s->captured != nullptr) return invalidate(*s->captured), cudaErrorStreamCaptureUnsupported;
    what->last = put_now(held, *s, nullptr, {what->last});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return call("cudaGraphLaunch", [&](lock& held, device&) {
    auto const what = find<executable>(handle);
    auto const s = find_stream(held, stream_handle);
    if (what == nullptr || s == nullptr) return cudaErrorInvalidResourceHandle;
    if (what->ordinal != s->ordinal) return cudaErrorInvalidValue;
    auto const run = [what, ordinal = s->ordinal] { carry_out(*what->what, what->chains, ordinal); };
    if (s->captured != nullptr) return add_node("cudaGraphLaunch", *s, run);
    if (s->is_legacy)
      if (cudaError_t const code = refuse_legacy(s->ordinal); code != cudaSuccess) return code;
    what->last = put_now(held, *s, run, {what->last});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", [&](lock&, device&) {
    auto const what = find<graph>(handle);
    if (what == nullptr || count == nullptr || nodes != nullptr) return cudaErrorInvalidValue;
    *count = what->nodes.size();
    return cudaSuccess;
  });
}
}
