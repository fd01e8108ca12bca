// SPDX-License-Identifier: Apache-2.0
// What a communicator takes of memory that ranks share: at most 4 MiB per rank as it comes, reserved;
// and used when it is touched.
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/transport/shm.hpp"
#include "watchdog.hpp"

namespace {

using collx::rank_t;
using collx::transport::settings;
using collx::transport::mapped::block_layout;
namespace mapped = collx::transport::mapped;

}  // namespace

TEST_CASE("a communicator reserves at most 4 MiB per rank, and as much as is documented") {
  struct documented_size {
    rank_t size;
    std::size_t per_rank;
  };
  for (auto const [size, per_rank] : {documented_size{1, 206080},
                                      {2, 206080},
                                      {3, 104704},
                                      {4, 104704},
                                      {5, 49408},
                                      {8, 49408},
                                      {9, 26368},
                                      {16, 26368},
                                      {17, 12544},
                                      {32, 12544},
                                      {33, 6400},
                                      {64, 6400}}) {
    block_layout const block{size, settings{}.staging_bytes};
    CAPTURE(size);
    CHECK(block.block_bytes() <= std::size_t{4} << 20);
    std::size_t const documented =
        7 * block.staging_bytes + mapped::landing_bytes + per_rank * static_cast<std::size_t>(size);
    CHECK(block.block_bytes() >= documented);
    CHECK(block.block_bytes() < documented + 8192);
  }
}

TEST_CASE("what fewer ranks need of a block that was taken for more fits it, and as much is given back") {
  for (rank_t taken_for = 1; taken_for <= 70; ++taken_for)
    for (rank_t size = 1; size <= taken_for; ++size) {
      block_layout const whole{taken_for, settings{}.staging_bytes};
      block_layout const part{size, settings{}.staging_bytes, taken_for};
      REQUIRE(part.block_bytes() <= whole.block_bytes());
      REQUIRE(part.bytes_taken() == whole.block_bytes());
    }
}

TEST_CASE("the parts of a block do not overlap and fill it") {
  for (rank_t const size : {1, 3, 64})
    for (std::size_t const staging_bytes : {std::size_t{64} << 10, std::size_t{1} << 20}) {
      block_layout const block{size, staging_bytes};
      CHECK(block.staging(0) >= block.end_of_use() + sizeof(mapped::farewell));
      for (int lane = 0; lane < mapped::lane_count; ++lane) {
        CHECK(block.ring_bytes(lane) >= staging_bytes);
        CHECK(block.scratch(lane) == block.staging(lane) + block.ring_bytes(lane));
        CHECK(block.staging(lane + 1) == block.scratch(lane) + block.scratch_bytes());
      }
    }
}

TEST_CASE("shm: pages are taken when they are touched") {
  // Memory that processes share comes in huge pages there, asked for or not.
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string said;
  std::getline(in, said);
  if (said.find("[always]") != std::string::npos || said.find("[force]") != std::string::npos) {
    MESSAGE("SKIPPED: this system gives huge pages to all shared memory");
    return;
  }
  constexpr rank_t size = 8;
  int const fd = collx::transport::shared_memory::segment::create(size, settings{});
  auto const used_bytes = [&] {
    struct stat file{};
    fstat(fd, &file);
    return static_cast<std::size_t>(file.st_blocks) * 512;
  };
  std::size_t small = 0, large = 0;
  {
    watchdog dog;
    std::vector<std::thread> ranks;
    for (rank_t r = 0; r < size; ++r)
      ranks.emplace_back([&, r] {
        auto world = collx::transport::shm::join(fd, r);
        auto const seen = dog.watch(world);
        for (std::size_t const count : {std::size_t{1}, std::size_t{1} << 20}) {
          std::vector<float> values(count, 1.0f);
          collx::all_reduce(world, values);
          collx::barrier(world);
          if (r == 0) (count == 1 ? small : large) = used_bytes();
          collx::barrier(world);
        }
      });
    for (std::thread& rank : ranks) rank.join();
  }
  close(fd);
  MESSAGE("per rank: " << small / size << " bytes for small calls, " << large / size << " after 4 MiB");
  CHECK(small / size < 64 * 1024);
  CHECK(large / size < 2 * 1024 * 1024);  // one lane
}
