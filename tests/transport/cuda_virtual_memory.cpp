// SPDX-License-Identifier: Apache-2.0
// Memory that is made, exported, imported and mapped in steps, over a driver that is played: the order of the
// steps, whole units, and that nothing is left of it whichever step fails.
#include <doctest/doctest.h>
#include <fcntl.h>

#include "collx/transport/cuda/virtual_memory.hpp"
#include "transport/played_driver.hpp"

namespace {

using namespace collx::transport::cuda_parts;
using collx::status;
using played_driver::driver;
using played_driver::machine;
using played_driver::unit;
using shareable = shareable_memory<driver>;
using mapped = mapped_memory<driver>;

static_assert(virtual_memory_driver<driver>);

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

using words = std::vector<std::string>;

// A machine on which one function fails.
void fail(machine& m, std::string const& function) {
  m.refuses = [function](int, std::string const& called) { return called == function; };
}

struct step {
  char const *played, *real;  // the name in the played driver, and CUDA's own
};

}  // namespace

TEST_CASE("memory is made in whole units, exported and mapped, and goes in the reverse order") {
  machine m;
  {
    shareable made;
    REQUIRE(shareable::make(driver(m), unit + 1, 3, made));
    CHECK(m.calls == words{"unit", "create", "export_fd", "reserve", "map", "grant", "release"});
    CHECK(made.here().bytes() == 2 * unit);
    CHECK(made.here().data() != nullptr);
    CHECK(made.descriptor() >= 0);
    CHECK((fcntl(made.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
    REQUIRE(m.ranges.size() == 1);
    CHECK(m.ranges.begin()->second.devices == std::set<int>{3});
    CHECK(m.handles.empty());  // the mapping alone holds it
    m.calls.clear();
  }
  CHECK(m.calls == words{"unmap", "free_address"});
  CHECK(m.is_empty());
  CHECK(m.wrong.empty());
}

TEST_CASE("whole units stay what they are, and what no memory is large enough for is refused") {
  machine m;
  for (std::size_t const bytes : {std::size_t{1}, unit, 5 * unit - 1}) {
    shareable made;
    REQUIRE(shareable::make(driver(m), bytes, 0, made));
    CHECK(made.here().bytes() == (bytes + unit - 1) / unit * unit);
  }
  for (std::size_t const bytes : {std::size_t{0}, ~std::size_t{0}, static_cast<std::size_t>(PTRDIFF_MAX)}) {
    shareable made;
    driver_outcome const met = shareable::make(driver(m), bytes, 0, made);
    CHECK_FALSE(met);
    CHECK(made.here().data() == nullptr);
  }
  m.unit_of = [](int) { return 0; };
  shareable made;
  CHECK_FALSE(shareable::make(driver(m), 1, 0, made));
  CHECK(m.is_empty());
  CHECK(m.wrong.empty());
}

TEST_CASE("whichever step of making it fails, nothing is left, and the step is named") {
  for (step const each :
       {step{"unit", "cuMemGetAllocationGranularity"}, step{"create", "cuMemCreate"},
        step{"export_fd", "cuMemExportToShareableHandle"}, step{"reserve", "cuMemAddressReserve"},
        step{"map", "cuMemMap"}, step{"grant", "cuMemSetAccess"}}) {
    CAPTURE(each.played);
    machine m;
    shareable made;
    REQUIRE(shareable::make(driver(m), unit, 0, made));
    std::byte* const before = made.here().data();
    int const descriptors = open_descriptors();
    fail(m, each.played);
    driver_outcome const met = shareable::make(driver(m), 2 * unit, 0, made);
    REQUIRE_FALSE(met);
    CHECK(std::string(met.failed) == each.real);
    CHECK(met.code == played_driver::refusal);
    CHECK(open_descriptors() == descriptors);
    CHECK(made.here().data() == before);  // what was there is as it was
    CHECK(m.memories.size() == 1);
    CHECK(m.ranges.size() == 1);
    made = shareable();
    CHECK(m.is_empty());
    CHECK(m.wrong.empty());
  }
}

TEST_CASE("another process maps it by the descriptor, and may outlive its owner") {
  machine m;
  shareable made;
  REQUIRE(shareable::make(driver(m), 3 * unit, 0, made));
  mapped there;
  m.calls.clear();
  REQUIRE(map_descriptor(driver(m, 1), made.descriptor(), made.here().bytes(), 5, there));
  CHECK(m.calls == words{"import_fd", "reserve", "map", "grant", "release"});
  made.close_descriptor();
  CHECK(made.descriptor() == -1);
  CHECK(m.memories.size() == 1);
  CHECK(m.memories.begin()->second.mappings == 2);
  CHECK(m.handles.empty());
  CHECK(there.data() != made.here().data());
  made = shareable();
  CHECK(m.memories.size() == 1);
  there.reset();
  CHECK(m.is_empty());
  CHECK(m.wrong.empty());
}

TEST_CASE("whichever step of mapping another's fails, only that one's own is left") {
  for (step const each :
       {step{"import_fd", "cuMemImportFromShareableHandle"}, step{"reserve", "cuMemAddressReserve"},
        step{"map", "cuMemMap"}, step{"grant", "cuMemSetAccess"}}) {
    CAPTURE(each.played);
    machine m;
    shareable made;
    REQUIRE(shareable::make(driver(m), unit, 0, made));
    fail(m, each.played);
    mapped there;
    driver_outcome const met = map_descriptor(driver(m, 1), made.descriptor(), unit, 0, there);
    REQUIRE_FALSE(met);
    CHECK(std::string(met.failed) == each.real);
    CHECK(there.data() == nullptr);
    CHECK(m.ranges.size() == 1);
    CHECK(m.handles.empty());
    CHECK(m.memories.begin()->second.mappings == 1);
    CHECK(m.wrong.empty());
  }
}

TEST_CASE("other devices of the process get access later, and the first one keeps its own") {
  machine m;
  shareable made;
  REQUIRE(shareable::make(driver(m), unit, 0, made));
  int const others[] = {2, 4};
  CHECK(made.here().grant(others, 2));
  CHECK(m.ranges.begin()->second.devices == std::set<int>{0, 2, 4});
  fail(m, "grant");
  driver_outcome const met = made.here().grant(others, 2);
  REQUIRE_FALSE(met);
  CHECK(std::string(met.failed) == "cuMemSetAccess");
}

TEST_CASE("what fails of a window is told with both ranks and the driver's function") {
  auto const told = [](driver_outcome const& met, collx::rank_t peer, status expected) {
    try {
      require_window(met, 1, peer);
    } catch (collx::error const& e) {
      CHECK(e.code() == expected);
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(told({}, 2, status::ok) == "");
  std::string const other = told({"cuMemMap", 801}, 2, status::system_failure);
  CHECK(other.find("rank 1: mapping the window of rank 2: cuMemMap failed (CUDA driver error 801)") !=
        std::string::npos);
  std::string const own = told({"cuMemCreate", driver_out_of_memory}, 1, status::out_of_memory);
  CHECK(own.find("rank 1: memory for its window: cuMemCreate failed (CUDA driver error 2)") !=
        std::string::npos);
  // Where descriptors were chosen because there are no handles, ipc would be no way out.
  CHECK(own.find("if COLLX_CUDA_HANDLES is fd, unset it") != std::string::npos);
}

TEST_CASE("what may be in use is left where it is, and nothing of it is given back, then or later") {
  machine m;
  {
    shareable made;
    REQUIRE(shareable::make(driver(m), unit, 0, made));
    mapped there;
    REQUIRE(map_descriptor(driver(m, 1), made.descriptor(), unit, 1, there));
    m.calls.clear();
    there.leave();
    made.here().leave();
    CHECK(there.data() == nullptr);
    CHECK(made.here().data() == nullptr);
    there.reset();
  }
  CHECK(m.calls.empty());
  REQUIRE(m.memories.size() == 1);
  CHECK(m.memories.begin()->second.mappings == 2);
  CHECK(m.ranges.size() == 2);
  CHECK(m.wrong.empty());
}
