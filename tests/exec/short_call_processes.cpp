// SPDX-License-Identifier: Apache-2.0
// Calls around the sizes at which messages cease to fit a letter, and short calls end: with memory that peers
// can read on some ranks, and not on others; with messages that come without data; slower than a short call
// looks.
// thread sanitizer: no, each rank is a process of one thread
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::shm>;
using number = std::uint32_t;

constexpr std::size_t largest = 2 * collx::exec::short_staged_bytes / sizeof(number);

number element(rank_t rank, std::size_t i, std::size_t round) {
  return static_cast<number>((static_cast<std::size_t>(rank) + 1) * (i + 7) + round);
}

struct memory {
  std::span<number> input, output;
};

// Every rank knows what every result is.
bool calls_are_right(communicator& comm, memory const& of, std::size_t count, std::size_t round) {
  using direct = collx::algo::direct_one_shot;
  std::size_t const ranks = static_cast<std::size_t>(comm.size());
  auto const input = of.input.first(count);
  auto const output = of.output.first(count);
  auto const fill = [&](std::span<number> to, rank_t rank) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = element(rank, i, round);
  };
  auto const sum = [&](std::size_t i) {
    number total = 0;
    for (rank_t r = 0; r < comm.size(); ++r) total += element(r, i, round);
    return total;
  };
  bool right = true;
  fill(input, comm.rank());
  collx::all_reduce<direct>(comm, input, output);
  for (std::size_t i = 0; i < count; ++i) right = right && output[i] == sum(i);
  rank_t const root = static_cast<rank_t>(round % ranks);
  collx::reduce<direct>(comm, input, output, collx::sum, root);
  for (std::size_t i = 0; i < count && comm.rank() == root; ++i) right = right && output[i] == sum(i);
  fill(output, comm.rank());
  collx::broadcast<direct>(comm, output, root);
  for (std::size_t i = 0; i < count; ++i) right = right && output[i] == element(root, i, round);
  auto const all = of.output.first(count * ranks);
  collx::all_gather<direct>(comm, input, all);
  for (std::size_t i = 0; i < all.size(); ++i)
    right = right && all[i] == element(static_cast<rank_t>(i / count), i % count, round);
  fill(of.input.first(count * ranks), comm.rank());
  collx::all_to_all<direct>(comm, of.input.first(count * ranks), all);
  for (std::size_t i = 0; i < all.size(); ++i)
    right = right && all[i] == element(static_cast<rank_t>(i / count),
                                       static_cast<std::size_t>(comm.rank()) * count + i % count, round);
  return right;
}

int sizes_are_right(communicator& comm) {
  std::size_t const ranks = static_cast<std::size_t>(comm.size());
  std::vector<number> input(largest * ranks), output(largest * ranks);
  auto shared_input = comm.allocate<number>(largest * ranks),
       shared_output = comm.allocate<number>(largest * ranks);
  std::size_t round = 0;
  constexpr std::size_t all_bytes[] = {4,    28,   32,   36,   60,   64,    68,    128,
                                       132,  252,  256,  260,  508,  512,   516,   1020,
                                       1024, 2048, 4092, 4096, 8192, 16380, 16384, 16388};
  for (std::size_t const bytes : all_bytes)
    for (int memories = 0; memories < 4; ++memories, ++round) {
      // Of every rank, of none, of one, of all others.
      bool const odd = comm.rank() == 1;
      bool const shared = memories == 1 || (memories == 2 && odd) || (memories == 3 && !odd);
      memory const of =
          shared ? memory{{shared_input.data(), input.size()}, {shared_output.data(), input.size()}}
                 : memory{input, output};
      for (std::size_t again = 0; again < 4; ++again)
        if (!calls_are_right(comm, of, bytes / sizeof(number), round + again)) return 1;
    }
  return 0;
}

}  // namespace

TEST_CASE("short calls: every size around their ends, wherever the memory is") {
  for (rank_t const ranks : {2, 3, 7})
    for (int const code : watched::on_processes(ranks, sizes_are_right)) CHECK(code == 0);
}

TEST_CASE("short calls: messages without data") {
  collx::transport::settings const fetching{.staging_bytes = 64 * 1024, .single_copy_bytes = 256};
  for (int const code : watched::on_processes(3, sizes_are_right, fetching)) CHECK(code == 0);
}

TEST_CASE("short calls: staging in which few blocks stay whole") {
  collx::transport::settings const least{.staging_bytes = 64 * 1024, .single_copy_bytes = 0};
  for (int const code : watched::on_processes(6, sizes_are_right, least)) CHECK(code == 0);
}

// A short call, which sends a block whole, beside executors that would cut it.
TEST_CASE("short calls: staging in which not even letters stay whole") {
  collx::transport::settings const tiny{.staging_bytes = 4096, .single_copy_bytes = 0};
  auto const exchange = [](communicator& comm) {
    std::size_t const ranks = static_cast<std::size_t>(comm.size()),
                      count = collx::transport::mapped::inbox_for(0, 12).enclosed_bytes_max / sizeof(number);
    std::vector<number> input(count * ranks), output(count * ranks);
    for (std::size_t round = 0; round < 4; ++round) {
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = element(comm.rank(), i, round);
      collx::all_to_all<collx::algo::direct_one_shot>(comm, input, output);
      for (std::size_t i = 0; i < output.size(); ++i)
        if (output[i] != element(static_cast<rank_t>(i / count),
                                 static_cast<std::size_t>(comm.rank()) * count + i % count, round))
          return 1;
    }
    return 0;
  };
  for (int const code : watched::on_processes(12, exchange, tiny)) CHECK(code == 0);
}
