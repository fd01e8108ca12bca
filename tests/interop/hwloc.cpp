// SPDX-License-Identifier: Apache-2.0
// hwloc's figures against those that the kernel gives in /sys.
#include "collx/interop/hwloc.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sched.h>

#include "collx/core/processors.hpp"

namespace {

namespace fs = std::filesystem;

std::string word_in(fs::path const& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

// Bytes of the processor's cache of a level that holds data; 0 where the kernel says nothing of one, as in
// some containers and virtual machines.
std::size_t cache_bytes(int processor, std::string const& level) {
  fs::path const caches = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache";
  if (!fs::exists(caches)) return 0;
  for (fs::directory_entry const& each : fs::directory_iterator(caches)) {
    if (!each.is_directory() || word_in(each.path() / "level") != level) continue;
    if (word_in(each.path() / "type") == "Instruction") continue;
    std::string const size = word_in(each.path() / "size");  // as in 2048K
    return size.empty() ? 0 : std::stoul(size) * (size.back() == 'K' ? 1024 : 1);
  }
  return 0;
}

// The numbers of the memory nodes whose directory a processor's has a link to.
int memory_node_of(int processor) {
  for (fs::directory_entry const& each :
       fs::directory_iterator("/sys/devices/system/cpu/cpu" + std::to_string(processor)))
    if (std::string const name = each.path().filename(); name.starts_with("node") && name.size() > 4)
      return std::stoi(name.substr(4));
  return -1;
}

// Binds this thread to the first processor it may run on, and back.
class bound_to_one {
 public:
  bound_to_one() {
    sched_getaffinity(0, sizeof before_, &before_);
    while (!CPU_ISSET(static_cast<std::size_t>(processor_), &before_)) ++processor_;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(processor_), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  bound_to_one(bound_to_one const&) = delete;
  ~bound_to_one() { sched_setaffinity(0, sizeof before_, &before_); }
  [[nodiscard]] int processor() const { return processor_; }

 private:
  cpu_set_t before_;
  int processor_ = 0;
};

}  // namespace

TEST_CASE("hwloc: as many processors as the affinity mask has") {
  collx::processor_set mine;
  mine.add_those_of_this_thread();
  CHECK(collx::interop::look_at_machine().processors == mine.count());
}

TEST_CASE("hwloc: caches and memory node of one processor are those of /sys") {
  bound_to_one const here;
  collx::interop::machine const found = collx::interop::look_at_machine();
  CHECK(found.processors == 1);
  std::size_t const l2_bytes = cache_bytes(here.processor(), "2"),
                    l3_bytes = cache_bytes(here.processor(), "3");
  if (l2_bytes != 0) CHECK(found.l2_bytes == l2_bytes);  // else hwloc may have asked the processor
  if (l3_bytes != 0) CHECK(found.l3_bytes == l3_bytes);
  if (found.l3_bytes != 0) CHECK(found.l3_processors >= 1);
  if (int const node = memory_node_of(here.processor()); node >= 0) {
    CHECK(found.memory_nodes == 1);
    CHECK(found.memory_node == node);
  }
}

TEST_CASE("hwloc: the size from which results are streamed follows the cache") {
  std::size_t const before = collx::device::stream_bytes_min();
  collx::interop::machine small;
  collx::interop::fit_caches(small);
  CHECK(collx::device::stream_bytes_min() == before);  // nothing is known of it
  small.l2_bytes = 512 * 1024;
  collx::interop::fit_caches(small);
  CHECK(collx::device::stream_bytes_min() == 16 * 1024);
  collx::device::stream_bytes_min(before);
}

TEST_CASE("hwloc: a cache that keeps results is as large as the machine says, if there is one") {
  auto const before = collx::device::result_cache();
  collx::interop::machine large;
  large.l3_bytes = 64 << 20;
  large.l3_processors = 16;
  collx::device::result_cache({});
  collx::interop::fit_caches(large);
  CHECK(collx::device::result_cache().bytes == 0);  // not on this processor
  collx::device::result_cache({32 << 20, 8});
  collx::interop::fit_caches(large);
  CHECK(collx::device::result_cache().bytes == collx::device::cpu::dependable_part(64 << 20));
  CHECK(collx::device::result_cache().processors == 16);
  collx::device::result_cache(before);
}
