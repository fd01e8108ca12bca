// SPDX-License-Identifier: Apache-2.0
// Ranks whose streams are in memory synchronisation domains of their own: a fence of the device's scope in a
// kernel of one would not reach those of another.
#pragma once

#include <vector>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"

namespace gpu_test {

using namespace collx;

inline void map_domains(stream const& s, unsigned default_domain, unsigned remote_domain) {
  cudaLaunchAttributeValue value{};
  value.memSyncDomainMap = {static_cast<unsigned char>(default_domain),
                            static_cast<unsigned char>(remote_domain)};
  require(cudaStreamSetAttribute(s.id, cudaLaunchAttributeMemSyncDomainMap, &value),
          "cudaStreamSetAttribute");
}

// Where a device has one domain only, all are in that.
template <class Transport>
void try_domains(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  int device = 0, count = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  require(cudaDeviceGetAttribute(&count, cudaDevAttrMemSyncDomainCount, device), "cudaDeviceGetAttribute");
  unsigned const own = static_cast<unsigned>(gpu.rank() % count);
  barrier(host);  // nobody's kernel waits while a stream is changed
  map_domains(s, own, own);
  barrier(host);
  std::vector<float> const ones(20'000, 1.0f), total(20'000, static_cast<float>(gpu.size()));
  buffer<float> in(ones), out(std::vector<float>(20'000, -1.0f));
  for (std::size_t const elements : {std::size_t{1}, std::size_t{3000}, ones.size()}) {
    all_reduce(gpu, std::span<float const>(in.data(), elements), std::span<float>(out.data(), elements), sum,
               on(s.id));
    all_reduce<algo::ring>(gpu, std::span<float const>(in.data(), elements),
                           std::span<float>(out.data(), elements), sum, on(s.id));
  }
  gpu.synchronize(on(s.id));
  check(out.content() == total, "all_reduce in streams of several domains");
  barrier(host);
  map_domains(s, 0, count > 1 ? 1 : 0);
  barrier(host);
}

}  // namespace gpu_test
