// SPDX-License-Identifier: Apache-2.0
// What the library does while a stream is captured, by this thread or by another, does not end the capture.
// One algorithm: what surrounds its kernel is the same for all.
#include <memory>
#include <stdexcept>
#include <vector>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "captures.cuh"
#include "rings/rings.cuh"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::question;

// f() throws nothing, and no capture ends.
template <class F>
[[nodiscard]] question ends_none(char const* what, F const& f) {
  return {what, gpu_test::allowed, [what, f] {
            try {
              f();
              return cudaSuccess;
            } catch (std::exception const& e) {
              std::printf("%s: %s\n", what, e.what());
              return cudaErrorUnknown;
            }
          }};
}

template <class Transport>
[[nodiscard]] gpu_test::questions calls(communicator<Transport>& host, gpu_communicator& gpu,
                                        buffer<float>& data, on captured, on other, on third) {
  namespace parts = transport::cuda_parts;
  // Started before any capture, each to end in one.
  auto const started = std::make_shared<std::vector<gpu_persistent>>();
  started->reserve(20);
  for (int i = 0; i < 20; ++i) {
    started->push_back(persistent::all_reduce<algo::ring>(gpu, data, sum, captured));
    started->back().start();
  }
  return {
      ends_none("device_of(), of the stream", [=] { (void)parts::device_of(captured.stream, 0); }),
      ends_none("waits_for_others(), of the stream", [=] { (void)parts::waits_for_others(captured.stream); }),
      ends_none("a collective in it", [&, captured] { all_reduce<algo::ring>(gpu, data, sum, captured); }),
      ends_none("collectives in others, waited for",
                [&, other, third] {
                  all_reduce<algo::ring>(gpu, data, sum, other);
                  all_reduce<algo::ring>(gpu, data, sum, third);
                  gpu.synchronize(third);
                }),
      ends_none("one that is started",
                [&, other] { start::all_reduce<algo::ring>(gpu, data, sum, other).wait(); }),
      ends_none("a persistent one",
                [&, other] {
                  auto often = persistent::all_reduce<algo::ring>(gpu, data, sum, other);
                  often.start();
                  often.wait();
                }),
      ends_none("the end of a persistent one of the stream",
                [started] {
                  if (started->empty()) throw std::runtime_error("none is left");
                  started->pop_back();
                }),
      ends_none("memory of the group", [&] { (void)gpu.template allocate<float>(100); }),
      ends_none("memory that is registered",
                [&] { (void)gpu.register_memory(std::span<float>(data.data(), data.size())); }),
      ends_none("a multicast_buffer", [&] { multicast_buffer<float> const another(host, gpu, 100); }),
      ends_none("a group", [&] { gpu_communicator const another(host); }),
      ends_none("a group that is aborted",
                [&] {
                  gpu_communicator another(host);
                  another.abort();
                }),
      ends_none("a group that the host drives",
                [&, other] {
                  parts::copy_engine copies(1 << 16);
                  gpu_driven_by_host<Transport> another(host, copies);
                  all_reduce(another, data, sum, other);
                }),
  };
}

// How many there are, also while a stream is captured that waits for the legacy default stream.
int differences() {
  int found = 0;
  watched::on_threads(1, [&](auto& host) {
    gpu_test::arena memory(1 << 22);
    gpu_test::stream const captured, other, third;
    cudaStream_t blocking = nullptr;
    gpu_test::require(cudaStreamCreate(&blocking), "cudaStreamCreate");
    buffer<float> data(std::vector<float>(1000, 1.0f));
    gpu_settings chosen = gpu_settings::from_environment();
    chosen.heap_bytes = 1 << 20;
    gpu_communicator gpu(host, chosen);
    for (cudaStream_t const s : {captured.id, blocking})
      found += gpu_test::differences(s, calls(host, gpu, data, on(s), on(other.id), on(third.id)));
    gpu_test::require(cudaStreamDestroy(blocking), "cudaStreamDestroy");
  });
  return found;
}

}  // namespace

int main() {
  if (!gpu_test::may_begin()) return 0;
  try {
    if (differences() != 0) return 1;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::puts("calls beside captures: ok");
}
