// SPDX-License-Identifier: Apache-2.0
// Ranks that a launcher has started map the shared memory at addresses of their own: the private memory of
// one may lie where another has that. Forked ranks, which have one layout, do not show it.
// thread sanitizer: no, each rank is a process of one thread
#include <cstdint>
#include <span>
#include <stdexcept>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exchange.hpp"
#include "require.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

collx::transport::settings const always{
    .staging_bytes = 64 * 1024, .heap_bytes = std::size_t{64} << 20, .single_copy_bytes = 33};

class address_space {
 public:
  // At this address, or null: anywhere.
  address_space(void* at, std::size_t bytes, int protection)
      : bytes_(bytes),
        begin_(mmap(at, bytes, protection, kind | (at != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::runtime_error("no address space there");
  }
  address_space(address_space const&) = delete;
  ~address_space() { munmap(begin_, bytes_); }
  [[nodiscard]] int* data() const noexcept { return static_cast<int*>(begin_); }

 private:
  static constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  std::size_t bytes_;
  void* begin_;
};

constexpr std::size_t count = 1 << 18;

int value(rank_t from, std::size_t i) { return from * 1000 + static_cast<int>(i % 977); }

void check_sums_and_copies(collx::communicator<fetching>& comm, int* memory) {
  std::span<int> const all(memory, count);
  for (rank_t root = 0; root < 2; ++root) {
    for (std::size_t i = 0; i < count; ++i) all[i] = comm.rank() == root ? value(root, i) : -1;
    collx::broadcast<collx::algo::push_pull>(comm, all, root);
    for (std::size_t i = 0; i < count; ++i) require(all[i] == value(root, i), "broadcast");
  }
  for (std::size_t i = 0; i < count; ++i) all[i] = value(comm.rank(), i);
  collx::all_reduce<collx::algo::direct_two_shot>(comm, all, collx::sum);
  for (std::size_t i = 0; i < count; ++i) require(all[i] == value(0, i) + value(1, i), "all_reduce");
}

}  // namespace

TEST_CASE("single copy: private memory of a rank where another has the shared memory") {
  auto const rank_main = [](collx::communicator<fetching>& comm) {
    auto& here = comm.engine().endpoint();
    collx::barrier(comm);
    if (!permitted(comm)) return;
    std::byte *own = here.space().at(0), *theirs = nullptr;
    std::span const mine(&own, 1), told(&theirs, 1);
    collx::exchange swap(comm);
    swap.send(mine, 1 - comm.rank());
    swap.receive(told, 1 - comm.rank());
    swap.run();
    require(own != theirs, "both ranks have the shared memory at one address: this shows nothing");
    // Behind what is used of the other's heap, where nothing but zeros would be found.
    address_space const memory(theirs + (std::size_t{96} << 20), count * sizeof(int), PROT_READ | PROT_WRITE);
    check_sums_and_copies(comm, memory.data());
    require(here.posted > 0, "nothing was posted");
  };
  // Each has the segment elsewhere.
  for (int const code : watched::on_processes<fetching>(2, rank_main, always)) CHECK(code == 0);
}
