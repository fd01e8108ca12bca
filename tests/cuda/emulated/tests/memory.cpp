// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated runtime, and what other processes see of it.
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include "cuda/emulated/tests/expect.hpp"

namespace {

template <class T = int>
T* allocate(std::size_t bytes) {
  void* memory = nullptr;
  good(cudaMalloc(&memory, bytes), "cudaMalloc");
  return static_cast<T*>(memory);
}

int word_at(void const* at) {
  int got = 0;
  good(cudaMemcpy(&got, at, sizeof got, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return got;
}
void set_word(void* at, int value) {
  good(cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice), "cudaMemcpy");
  good(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

// Carries f out in a process of its own; 0 if it has returned.
template <class F>
int in_a_child(F const& f) {
  pid_t const child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int outcome = 1;
  expect(waitpid(child, &outcome, 0) == child, "a child");
  return outcome;
}

void fresh_and_freed() {
  int* const small = allocate(100);
  int* const large = allocate(std::size_t{3} << 20);
  expect(word_at(small) == static_cast<int>(0xA5A5A5A5), "fresh memory holds rubbish");
  good(cudaFree(large), "cudaFree");
  expect(allocate(std::size_t{3} << 20) == large, "the same address again");
  good(cudaFree(large), "cudaFree");
  expect(cudaFree(large), cudaErrorInvalidValue, "freed twice");
  expect(cudaFree(small + 1), cudaErrorInvalidValue, "not the base");
  good(cudaFree(small), "cudaFree");
  std::size_t left = 0, whole = 0;
  good(cudaMemGetInfo(&left, &whole), "cudaMemGetInfo");
  expect(left == whole, "all is given back");
  void* too_much = &left;
  expect(cudaMalloc(&too_much, whole + 1), cudaErrorMemoryAllocation, "more than there is");
  expect(too_much == nullptr, "nothing");
  (void)cudaGetLastError();
}

// The host cannot touch memory of a device.
void host_access() {
  int const outcome = in_a_child([] {
    (void)signal(SIGSEGV, [](int) { _exit(3); });
    int* const memory = allocate(100);
    *static_cast<int volatile*>(memory) = 1;
  });
  expect(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 3, "a fault");
}

// Two small allocations in one block, seen by another process.
void handles() {
  int to_child[2], to_parent[2];
  expect(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipes");
  pid_t const child = fork();
  if (child == 0) {  // has not used CUDA before
    cudaIpcMemHandle_t given[2];
    int* seen[2] = {};
    expect(read(to_child[0], given, sizeof given) == sizeof given, "read");
    for (int i = 0; i < 2; ++i)
      good(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&seen[i]), given[i], cudaIpcMemLazyEnablePeerAccess),
           "cudaIpcOpenMemHandle");
    void* again = nullptr;
    good(cudaIpcOpenMemHandle(&again, given[0], cudaIpcMemLazyEnablePeerAccess), "opened again");
    expect(again == seen[0], "the same address");
    expect(word_at(seen[0]) == 10 && word_at(seen[1]) == 11, "what the other process wrote");
    set_word(seen[1], 12);
    char told = 0;
    expect(write(to_parent[1], &told, 1) == 1 && read(to_child[0], &told, 1) == 1, "meeting");
    good(cudaIpcCloseMemHandle(seen[0]), "cudaIpcCloseMemHandle");
    expect(word_at(seen[0]) == 10, "open still");
    good(cudaIpcCloseMemHandle(seen[0]), "cudaIpcCloseMemHandle");
    expect(cudaIpcCloseMemHandle(seen[0]), cudaErrorInvalidValue, "closed too often");
    good(cudaIpcCloseMemHandle(seen[1]), "cudaIpcCloseMemHandle");
    _exit(0);
  }
  int* const mine[2] = {allocate(100), allocate(1000)};
  cudaIpcMemHandle_t told[2];
  for (int i = 0; i < 2; ++i) {
    set_word(mine[i], 10 + i);
    good(cudaIpcGetMemHandle(&told[i], mine[i]), "cudaIpcGetMemHandle");
  }
  void* own = nullptr;
  expect(cudaIpcOpenMemHandle(&own, told[0], cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized,
         "one's own handle");
  char any = 0;
  expect(write(to_child[1], told, sizeof told) == sizeof told && read(to_parent[0], &any, 1) == 1, "meeting");
  expect(word_at(mine[1]) == 12, "what the other process wrote");
  expect(cudaFree(mine[0]), cudaErrorInvalidValue, "to free what another process has open");
  expect(write(to_child[1], &any, 1) == 1, "write");
  int outcome = 1;
  expect(waitpid(child, &outcome, 0) == child && outcome == 0, "the other process");
  good(cudaFree(mine[0]), "cudaFree");
  good(cudaFree(mine[1]), "cudaFree");
  (void)cudaGetLastError();
}

void forked() {
  int const outcome = in_a_child([] {
    int count = 0;
    expect(cudaGetDeviceCount(&count), cudaErrorInitializationError, "a child of a process that uses CUDA");
    void* memory = nullptr;
    expect(cudaMalloc(&memory, 4), cudaErrorInitializationError, "a child of a process that uses CUDA");
  });
  expect(outcome == 0, "a child");
}

}  // namespace

int main() {
  host_access();
  handles();
  fresh_and_freed();
  forked();
  std::puts("memory of the emulated runtime: ok");
}
