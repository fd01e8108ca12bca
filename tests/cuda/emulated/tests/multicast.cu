// SPDX-License-Identifier: Apache-2.0
// Multicast objects of the emulated runtime: the rules of the driver's functions, what kernels do through an
// address of one, and what they must not. Two GPUs, of sm_90.
#include <cstdint>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "cuda/emulated/tests/expect.hpp"

namespace {

constexpr std::size_t unit = std::size_t{2} << 20;

__global__ void add_up(float* at, float* into) {
  float sum = 0;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(sum) : "l"(at) : "memory");
  *into = sum;
}
__global__ void spread(float* at, float value) {
  asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" ::"l"(at), "f"(value) : "memory");
}
__global__ void store(float* at, float value) { *at = value; }

void expect(CUresult got, CUresult wanted, char const* what) {
  if (got != wanted) std::fprintf(stderr, "%d instead of %d\n", int{got}, int{wanted});
  ::expect(got == wanted, what);
}
void good(CUresult got, char const* what) { expect(got, CUDA_SUCCESS, what); }

template <class F>
F* driver_function(char const* name, unsigned version, F*) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult outcome{};
  ::good(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &outcome), name);
  ::expect(found != nullptr, name);
  return reinterpret_cast<F*>(found);
}
#define COLLX_DRIVER(name, version) driver_function(#name, version, PFN_##name##_v##version{})

// Memory of a device, and an object for two.
CUmemGenericAllocationHandle memory_of(int device, bool is_shareable) {
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  what.location.id = device;
  if (is_shareable) what.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle made = 0;
  good(COLLX_DRIVER(cuMemCreate, 10020)(&made, unit, &what, 0), "cuMemCreate");
  return made;
}
CUmulticastObjectProp for_devices(unsigned count, std::size_t bytes, bool is_shareable = false) {
  CUmulticastObjectProp what{};
  what.numDevices = count;
  what.size = bytes;
  if (is_shareable) what.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return what;
}
CUresult create(CUmemGenericAllocationHandle& made, CUmulticastObjectProp const& what) {
  return COLLX_DRIVER(cuMulticastCreate, 12010)(&made, &what);
}
CUresult add(CUmemGenericAllocationHandle object, int device) {
  return COLLX_DRIVER(cuMulticastAddDevice, 12010)(object, device);
}
CUresult bind(CUmemGenericAllocationHandle object, CUmemGenericAllocationHandle memory,
              std::size_t bytes = unit) {
  return COLLX_DRIVER(cuMulticastBindMem, 12010)(object, 0, memory, 0, bytes, 0);
}
CUresult unbind(CUmemGenericAllocationHandle object, int device, std::size_t bytes = unit) {
  return COLLX_DRIVER(cuMulticastUnbind, 12010)(object, device, 0, bytes);
}
CUdeviceptr reserved() {
  CUdeviceptr at = 0;
  good(COLLX_DRIVER(cuMemAddressReserve, 10020)(&at, unit, unit, 0, 0), "cuMemAddressReserve");
  return at;
}
CUresult map(CUdeviceptr at, CUmemGenericAllocationHandle what) {
  return COLLX_DRIVER(cuMemMap, 10020)(at, unit, 0, what, 0);
}
float* mapped(CUmemGenericAllocationHandle what, int device) {
  CUdeviceptr const at = reserved();
  good(map(at, what), "cuMemMap");
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  good(COLLX_DRIVER(cuMemSetAccess, 10020)(at, unit, &access, 1), "cuMemSetAccess");
  return reinterpret_cast<float*>(at);
}

// An object with all that belongs to it, seen by the first device.
struct pair {
  CUmemGenericAllocationHandle object = 0, memory[2]{};
  float *all = nullptr, *own[2]{};

  pair() {
    ::good(cudaSetDevice(0), "cudaSetDevice");
    good(create(object, for_devices(2, unit)), "cuMulticastCreate");
    for (int d = 0; d < 2; ++d) good(add(object, d), "cuMulticastAddDevice");
    for (int d = 0; d < 2; ++d) {
      memory[d] = memory_of(d, false);
      good(bind(object, memory[d]), "cuMulticastBindMem");
      own[d] = mapped(memory[d], 0);
    }
    all = mapped(object, 0);
  }
};

float number_at(float const* at) {
  float got = 0;
  ::good(cudaMemcpy(&got, at, sizeof got, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return got;
}

void rules() {
  ::good(cudaSetDevice(0), "cudaSetDevice");
  CUmulticastObjectProp const two = for_devices(2, unit, true);
  std::size_t bytes = 0;
  good(COLLX_DRIVER(cuMulticastGetGranularity, 12010)(&bytes, &two, CU_MULTICAST_GRANULARITY_MINIMUM),
       "cuMulticastGetGranularity");
  ::expect(bytes == unit, "the least unit");
  CUmemGenericAllocationHandle object = 0;
  expect(create(object, for_devices(2, unit / 2)), CUDA_ERROR_INVALID_VALUE, "no whole units");
  expect(create(object, for_devices(3, unit)), CUDA_ERROR_INVALID_DEVICE, "more devices than there are");
  good(create(object, two), "cuMulticastCreate");
  auto const near = memory_of(0, true), far = memory_of(1, true), other = memory_of(0, true);
  CUdeviceptr const at = reserved();
  good(add(object, 1), "cuMulticastAddDevice");
  expect(add(object, 1), CUDA_ERROR_INVALID_VALUE, "a device twice");
  expect(bind(object, far), CUDA_ERROR_INVALID_VALUE, "bound before all devices are there");
  expect(map(at, object), CUDA_ERROR_NOT_PERMITTED, "mapped before all devices are there");
  good(add(object, 0), "cuMulticastAddDevice");
  expect(add(object, 0), CUDA_ERROR_INVALID_VALUE, "more devices than it is for");
  expect(bind(object, memory_of(0, false)), CUDA_ERROR_INVALID_VALUE, "memory that cannot be exported");
  expect(bind(object, near, unit / 2), CUDA_ERROR_INVALID_VALUE, "no whole units");
  expect(bind(object, near, 2 * unit), CUDA_ERROR_INVALID_VALUE, "more than there is");
  expect(bind(object, object), CUDA_ERROR_INVALID_VALUE, "an object, not memory");
  good(bind(object, near), "cuMulticastBindMem");
  expect(bind(object, other), CUDA_ERROR_INVALID_VALUE, "a device's memory twice");
  expect(unbind(object, 1), CUDA_ERROR_INVALID_VALUE, "what is not bound");
  good(unbind(object, 0), "cuMulticastUnbind");
  good(bind(object, other), "bound again");
}

void sums_and_stores() {
  pair p;
  store<<<1, 1>>>(p.own[0], 1.5F);
  store<<<1, 1>>>(p.own[1], 2.F);
  add_up<<<1, 1>>>(p.all, p.own[0] + 1);
  spread<<<1, 1>>>(p.all + 2, 7.F);
  ::good(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  ::expect(number_at(p.own[0] + 1) == 3.5F, "the sum of both");
  ::expect(number_at(p.own[0] + 2) == 7.F && number_at(p.own[1] + 2) == 7.F, "a store to both");
  ::expect(cudaMemset(p.all, 0, 4), cudaErrorInvalidValue, "a multicast address is for kernels alone");
  // Bound anew, the object has the new memory.
  good(unbind(p.object, 1), "cuMulticastUnbind");
  auto const another = memory_of(1, false);
  good(bind(p.object, another), "cuMulticastBindMem");
  store<<<1, 1>>>(mapped(another, 0), 4.F);
  add_up<<<1, 1>>>(p.all, p.own[0] + 1);
  ::expect(number_at(p.own[0] + 1) == 5.5F, "the sum of what is bound now");
}

// Kernels that fail, each in a process of its own.
template <class F>
void fails(F const& launch) {
  launch();
  ::expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress, "what the kernel met with");
}
void plain_store() {
  pair p;
  fails([&] { store<<<1, 1>>>(p.all, 1.F); });
}
void not_multicast() {
  pair p;
  fails([&] { spread<<<1, 1>>>(p.own[0], 1.F); });
}
void not_all_bound() {
  pair p;
  good(unbind(p.object, 1), "cuMulticastUnbind");
  fails([&] { add_up<<<1, 1>>>(p.all, p.own[0]); });
}
void without_access() {
  pair p;
  ::good(cudaSetDevice(1), "cudaSetDevice");
  fails([&] { spread<<<1, 1>>>(p.all, 1.F); });
}

}  // namespace

int main() {
  in_a_child(plain_store, "a plain store");
  in_a_child(not_multicast, "multimem at an ordinary address");
  in_a_child(not_all_bound, "memory that one device lacks");
  in_a_child(without_access, "a device without access");
  rules();
  sums_and_stores();
  std::puts("multicast objects of the emulated runtime: ok");
}
