// SPDX-License-Identifier: Apache-2.0
// Calls on memory of a GPU that are refused, with memory and streams that are pretended: each mistake gets
// words of its own, that name the collective and the buffer.
#include "collx/collective/gpu_misuse.hpp"

#include <string>

#include <doctest/doctest.h>

#include "transport/fake_memory.hpp"

namespace {

using namespace collx;
using collx::detail::stream_state;
using fake_memory::address_of;
using fake_memory::pointer_to;
using fake_memory::unit;
using transport::cuda_parts::place_kind;

// What a call of a group on device 1 says; nothing if it is let through.
template <class Call>
std::string refused(Call const& call, status expected = status::bad_argument) {
  try {
    call();
  } catch (error const& e) {
    CHECK(e.code() == expected);
    return e.what();
  }
  return {};
}

bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

struct machine {
  fake_memory::space space;
  fake_memory::kinds kinds{fake_memory::driver{&space}, 8};

  std::string reduce(std::uintptr_t at, std::size_t bytes, std::size_t alignment = 4,
                     status expected = status::bad_argument) {
    return refused(
        [&] { detail::require_on_device(kinds, "all_reduce", "input", pointer_to(at), bytes, alignment, 1); },
        expected);
  }
};

}  // namespace

TEST_CASE("gpu misuse: memory that a kernel of the group cannot use is refused, each kind in its own words") {
  machine m;
  m.space.allocate(address_of(0), unit, place_kind::device, 1);
  m.space.allocate(address_of(4), unit, place_kind::device, 0);
  m.space.allocate(address_of(8), unit, place_kind::pinned, 1);
  m.space.allocate(address_of(12), unit, place_kind::managed, 0);
  for (int again = 0; again < 2; ++again) {  // the second time from what was kept
    CHECK(m.reduce(address_of(0), unit) == "");
    CHECK(m.reduce(address_of(12), unit) == "");  // moves to where it is used
    std::string const other = m.reduce(address_of(4), unit), pinned = m.reduce(address_of(8), unit),
                      host = m.reduce(address_of(20), unit);
    CHECK(says(other, "all_reduce: the input (256 bytes at 0x7f0000000400) lies on another GPU"));
    CHECK(says(pinned, "memory of the host; pass memory of the GPU"));
    CHECK(says(host, "not memory that CUDA knows"));
    CHECK(says(m.reduce(address_of(0), unit + 1), "ends outside of the memory it was allocated in"));
    CHECK(says(m.reduce(address_of(0) + 2, 8), "is not aligned as its elements are"));
    CHECK(m.reduce(address_of(0) + 2, 8, 2) == "");
  }
}

TEST_CASE("gpu misuse: freed memory is refused, and so is what another GPU has got at that address") {
  machine m;
  m.space.allocate(address_of(0), unit, place_kind::device, 1);
  CHECK(m.reduce(address_of(0), unit) == "");
  m.space.release(address_of(0));
  CHECK(says(m.reduce(address_of(0), unit), "memory of the host, or freed"));
  m.space.allocate(address_of(0), unit, place_kind::device, 2);
  CHECK(says(m.reduce(address_of(0), unit), "lies on another GPU"));
  m.space.release(address_of(0));
  m.space.allocate(address_of(0), unit, place_kind::device, 1);
  CHECK(m.reduce(address_of(0), unit) == "");
}

TEST_CASE("gpu misuse: a buffer of two allocations is refused where one of them cannot be used") {
  machine m;
  m.space.allocate(address_of(0), unit, place_kind::device, 1);
  m.space.allocate(address_of(1), unit, place_kind::device, 1);
  m.space.allocate(address_of(2), unit, place_kind::pinned, 1);
  CHECK(m.reduce(address_of(0), 2 * unit) == "");
  CHECK(says(m.reduce(address_of(0), 3 * unit), "memory of the host; pass memory of the GPU"));
}

TEST_CASE("gpu misuse: what the driver fails with is told as that") {
  machine m;
  m.space.failure = 719;
  CHECK(says(m.reduce(address_of(0), unit, 4, status::system_failure), "driver error 719"));
}

TEST_CASE("gpu misuse: streams and devices that are not the group's are refused") {
  auto const put = [](stream_state const& stream, bool shares_device) {
    return refused([&] { detail::require_stream("broadcast", stream, 1, shares_device); });
  };
  for (bool const shares : {false, true}) CHECK(put({1, 1, false}, shares) == "");
  CHECK(put({1, 1, true}, false) == "");
  CHECK(says(put({1, 1, true}, true), "broadcast: ranks of one process on one GPU need streams made with"));
  CHECK(
      says(put({0, 1, false}, false),
           "broadcast: the current context is of device 0 and the group's device is 1; call cudaSetDevice"));
  CHECK(says(put({1, 2, false}, true),
             "the stream is of device 2 and the group's device is 1; pass a stream of that device"));
}
