// SPDX-License-Identifier: Apache-2.0
// What the runtime keeps for the process: errors of threads, what must not follow a fork, checks of handles.
#include "cuda/emulated/runtime/books.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <pthread.h>

#include "cuda/emulated/runtime/modules.hpp"
#include "cuda/emulated/runtime/streams.hpp"

namespace emulated::runtime {

namespace {

// Whether this process has used CUDA, and whether it is a child of one that had. Set by one thread, before
// which there is no other that forks: relaxed.
std::atomic<bool> is_used{false}, is_child{false};

[[nodiscard]] books* open_books() {
  auto* const made = new books;
  long long const count = number_from("COLLX_EMULATED_GPUS", 1);
  for (int i = 0; i < count; ++i) {
    made->devices.emplace_back();
    made->devices.back().ordinal = i;
  }
  made->device_bytes = static_cast<std::size_t>(number_from("COLLX_EMULATED_MEMORY_MIB", 8192)) << 20;
  made->waits_always = number_from("COLLX_EMULATED_MALLOC_WAITS", 0) != 0;
  made->delay_us = static_cast<unsigned>(number_from("COLLX_EMULATED_DELAY_US", 0));
  made->has_closed_handles = number_from("COLLX_EMULATED_CLOSED_HANDLES", 0) != 0;
  made->launches_wait = number_from("CUDA_LAUNCH_BLOCKING", 0) != 0;
  made->has_queues = number_from("COLLX_EMULATED_QUEUES", 0) != 0;
  char const* const loading = std::getenv("CUDA_MODULE_LOADING");
  made->loads_lazily = loading == nullptr || std::strcmp(loading, "EAGER") != 0;
  return made;
}

}  // namespace

long long number_from(char const* variable, long long otherwise) {
  char const* const text = std::getenv(variable);
  return text == nullptr || *text == 0 ? otherwise : std::strtoll(text, nullptr, 10);
}

books& all() {
  static books* const opened = open_books();
  return *opened;
}

caller& me() {
  static thread_local caller mine;
  return mine;
}

cudaError_t noted(cudaError_t code) {
  if (code != cudaSuccess) me().last = code;
  return code;
}

void complain(char const* function, std::string const& what) {
  std::fprintf(stderr, "emulated GPU: %s: %s\n", function, what.c_str());
  std::fflush(stderr);
}

bool is_forked() { return is_child.load(std::memory_order_relaxed); }

void delay() {
  if (all().delay_us == 0) return;
  static std::atomic<unsigned> threads{0};
  // Relaxed: a number for each thread is all that is wanted.
  static thread_local std::minstd_rand draw(static_cast<unsigned>(number_from("COLLX_EMULATED_SEED", 1)) +
                                            threads.fetch_add(1, std::memory_order_relaxed));
  std::this_thread::sleep_for(std::chrono::microseconds(draw() % all().delay_us));
}

bool is_in_use() { return is_used.load(std::memory_order_relaxed); }

void note_use() {
  if (!is_used.exchange(true, std::memory_order_relaxed))
    (void)pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); });
}

device& ready(lock& held) {
  me().has_context = true;
  return made_ready(held, all().devices.at(static_cast<std::size_t>(me().device)));
}

device& made_ready(lock& held, device& here) {
  if (here.has_context) return here;
  note_use();
  here.has_context = true;
  here.legacy = make_stream(here.ordinal, cudaStreamDefault, 0);
  here.legacy->is_legacy = true;
  if (!all().loads_lazily) load_all_modules(held, here.ordinal);
  return here;
}

}  // namespace emulated::runtime
