// SPDX-License-Identifier: Apache-2.0
// Collectives on a GPU that the host asks after: a started one, and one that is set up once and started
// often. The host need not ask: work that is put into the stream behind either runs after it.
#pragma once

#include <utility>

#include "collx/gpu_communicator.cuh"

namespace collx::inline abi_1 {

// What start::all_reduce(gpu, ..., on(stream)) returns. The communicator must outlive it. To let go of one
// does not end the collective, which is in the stream.
class gpu_request {
 public:
  gpu_request() noexcept = default;
  // For collectives: of what has just been put into the stream. Throws error (out_of_memory) where too many
  // requests have not been waited for.
  gpu_request(gpu_communicator& gpu, on where) : gpu_(&gpu), done_(gpu.note(where)) {}
  gpu_request(gpu_request&& other) noexcept
      : gpu_(std::exchange(other.gpu_, nullptr)), done_(std::exchange(other.done_, nullptr)) {}
  gpu_request& operator=(gpu_request&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(done_, other.done_);
    return *this;
  }
  ~gpu_request() { let_go(); }

  // Whether it has an event of the communicator's.
  [[nodiscard]] bool has_event() const noexcept { return done_ != nullptr; }

  // Whether the collective is done: then out is complete and in may be changed by the host, too. Throws what
  // the group met with until then, as synchronize() does.
  [[nodiscard]] bool test() {
    if (done_ == nullptr) return true;
    transport::cuda_parts::entry const here(gpu_->device());  // the thread may be a new one
    cudaError_t const code = cudaEventQuery(done_);
    if (code == cudaErrorNotReady) {
      (void)cudaGetLastError();  // not to be taken for an error of the program's own calls
      return false;
    }
    end(code);
    return true;
  }
  void wait() {
    if (done_ == nullptr) return;
    transport::cuda_parts::entry const here(gpu_->device());
    end(cudaEventSynchronize(done_));
  }
  // The same, where the device is current already, and whatever went wrong: until nothing runs any more.
  void rest() noexcept {
    if (done_ != nullptr) (void)cudaEventSynchronize(done_);
    let_go();
  }

 private:
  void let_go() noexcept {
    if (done_ != nullptr) gpu_->forget(std::exchange(done_, nullptr));
  }
  void end(cudaError_t code) {
    let_go();
    transport::cuda_parts::require(code, "waiting for a collective");
    gpu_->throw_if_failed();
  }

  gpu_communicator* gpu_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

// What persistent::all_reduce(gpu, ..., on(stream)) returns: arguments are checked and the algorithm is
// chosen when it is made, and a start replays a graph of one kernel. All ranks make it and start it in the
// same order among their collectives; to make it waits for all of them on the host's communicator, and what
// is wrong on one rank is thrown on all. Its end may wait for the device, as cudaFree may: see
// docs/gpu_collectives.md. Buffers stay where they are for its life.
class gpu_persistent {
 public:
  // For collectives. `graph`: null if there is nothing to do.
  gpu_persistent(gpu_communicator& gpu, char const* collective, cudaGraphExec_t graph, on where) noexcept
      : gpu_(&gpu), collective_(collective), graph_(graph), where_(where) {}
  gpu_persistent(gpu_persistent&& other) noexcept
      : gpu_(other.gpu_),
        collective_(other.collective_),
        graph_(std::exchange(other.graph_, nullptr)),
        where_(other.where_),
        current_(std::move(other.current_)),
        is_unheard_of_(other.is_unheard_of_) {}
  gpu_persistent& operator=(gpu_persistent&&) = delete;
  ~gpu_persistent() {
    if (graph_ == nullptr) return;
    // A graph must not go while it runs. What went wrong in it is told by the group's next call. To wait for
    // the stream would end a capture of it, and wait for what lies behind the call.
    transport::cuda_parts::quiet_entry const here(gpu_->device());
    if (is_unheard_of_) (void)cudaStreamSynchronize(where_.stream);
    current_.rest();
    (void)cudaGraphExecDestroy(graph_);
  }

  // Puts it into its stream once more. May be called again before the last one is done; test() and wait()
  // then ask after the newest.
  void start() {
    if (graph_ == nullptr) return;
    transport::cuda_parts::entry const here(gpu_->device());  // whose the default stream is
    gpu_communicator::refuse_capture(where_);
    if (!current_.has_event()) gpu_->require_event();
    auto const call = gpu_->begin(where_);
    is_unheard_of_ = true;
    transport::cuda_parts::require(cudaGraphLaunch(graph_, where_.stream), collective_);
    gpu_->end(where_, call);
    current_ = gpu_request();  // gives an event back
    current_ = gpu_request(*gpu_, where_);
    is_unheard_of_ = false;
  }
  // As those of a request; before the first start they return at once.
  [[nodiscard]] bool test() { return current_.test(); }
  void wait() { current_.wait(); }

 private:
  gpu_communicator* gpu_;
  char const* collective_;
  cudaGraphExec_t graph_;
  on where_;
  gpu_request current_;
  bool is_unheard_of_ = false;  // the newest start has no event
};

}  // namespace collx::inline abi_1
