// SPDX-License-Identifier: Apache-2.0
// Groups of processes, and memory that they register, over a runtime that is played: whichever call of CUDA's
// fails on a rank, all ranks go on, they agree, nobody frees what another one has open, and nothing is left.
#include <span>

#include "collx/collective/gpu_registration.cuh"
#include "collx/collx.hpp"
#include "runtime.hpp"
#include "watched.hpp"

namespace {

using namespace collx;

enum class ending : int { well = 0, refused = 1, no_more_calls = 2 };

// Makes a group, registers twice and frees the memory as soon as it may. `failing`: of the calls from the
// first registration on, if `in_group` from the start.
template <class Comm>
ending one_rank(Comm& host, bool is_failing, int failing, bool in_group) {
  ending came = ending::well;
  void* memory = nullptr;
  (void)cudaMalloc(&memory, 100'000);
  auto* const first = static_cast<float*>(memory);
  auto const begin_failing = [&] { calls = 0, failing_call = is_failing ? failing : -1; };
  close_takes_us = is_failing ? 0 : 2000;
  try {
    gpu_settings chosen;
    chosen.heap_bytes = 4096, chosen.lanes = 2, chosen.staging_bytes = 8192;
    if (in_group) begin_failing();
    gpu_communicator gpu(host, chosen);
    if (!in_group) begin_failing();
    try {
      memory_registration a = gpu.register_memory(std::span(first, 1000));
      memory_registration const b = gpu.register_memory(std::span(first + 2000, 1000));
      if (calls <= failing_call) came = ending::no_more_calls;
      // What goes wrong at the end of registrations CUDA has no way of telling.
      failing_call = -1;
    } catch (error const&) {
      came = ending::refused;
    }
    failing_call = -1;
    (void)cudaFree(memory);
    memory = nullptr;
  } catch (error const&) {
    came = ending::refused;
  }
  failing_call = -1;
  (void)cudaFree(memory);
  of_all.left_open += static_cast<int>(opened.size()) + events;
  return came;
}

// Rank 0 takes so long to load kernels that the other one gives the group up, and cannot know whether its
// window is open there. (Rank 0 may have the group: the other one's part in the meeting had come.)
bool keeps_memory_of_late_rank() {
  of_all.count = of_all.freed_while_open = 0;
  transport::settings how = transport::settings::from_environment();
  how.timeout_us = 200'000;
  auto const codes = watched::on_processes(
      2,
      [](auto& host) -> int {
        if (host.rank() == 0) load_takes_us = 3'000'000;
        gpu_settings chosen;
        chosen.lanes = 2, chosen.staging_bytes = 8192;
        try {
          gpu_communicator const gpu(host, chosen);
        } catch (error const&) {
          return static_cast<int>(ending::refused);
        }
        return static_cast<int>(ending::well);
      },
      how);
  bool const well = of_all.freed_while_open == 0 && codes[1] == static_cast<int>(ending::refused);
  if (!well)
    std::fprintf(stderr, "a late rank: ended with %d and %d, %d freed while open\n", codes[0], codes[1],
                 of_all.freed_while_open.load());
  return well;
}

// Whether there was such a call; what went wrong is counted.
bool try_call(rank_t failing_rank, int failing, bool in_group, int& wrong) {
  of_all.count = of_all.freed_while_open = of_all.wrong_handles = of_all.left_open = 0;
  auto const codes = watched::on_processes(3, [&](auto& host) -> int {
    return static_cast<int>(one_rank(host, host.rank() == failing_rank, failing, in_group));
  });
  int refused = 0;
  bool is_there = true;
  for (int const code : codes) {
    refused += code == static_cast<int>(ending::refused);
    is_there = is_there && code != static_cast<int>(ending::no_more_calls);
    wrong += code < 0 || code > 2;
  }
  // Where no call fails nobody refuses.
  bool const agree = refused == 0 || (refused == 3 && failing >= 0);
  bool const is_clean = of_all.freed_while_open == 0 && of_all.wrong_handles == 0 && of_all.left_open == 0;
  if (!agree || !is_clean) {
    ++wrong;
    std::fprintf(stderr, "rank %d, call %d: %d refused, %d freed while open, %d handles of nobody, %d left\n",
                 failing_rank, failing, refused, of_all.freed_while_open.load(), of_all.wrong_handles.load(),
                 of_all.left_open.load());
  }
  if (!is_there && refused != 0) ++wrong;
  return is_there;
}

}  // namespace

int main() {
  int wrong = 0;
  (void)try_call(0, -1, false, wrong);
  wrong += !keeps_memory_of_late_rank();
  // Of the many events that a group makes, some.
  for (bool const in_group : {false, true})
    for (rank_t const rank : {0, 2})
      for (int i = 0; wrong == 0 && try_call(rank, i, in_group, wrong);)
        i += in_group && i > 12 && i < 60 ? 12 : 1;
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
