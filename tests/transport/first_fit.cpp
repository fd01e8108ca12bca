// SPDX-License-Identifier: Apache-2.0
// Parts of a region: taken where they fit, merged when they are given back, and never more than there is.
#include "collx/transport/first_fit.hpp"

#include <initializer_list>

#include <doctest/doctest.h>

#include "collx/communicator.hpp"

namespace {

using collx::transport::first_fit;

// A world of which symmetric buffers are made, as far as they know it; the memory itself is nobody's.
struct world {
  first_fit parts{4096, 256};
  std::size_t asked = 0;
  std::byte* allocate(std::size_t bytes) {
    asked = bytes;
    std::size_t const offset = parts.take(bytes);
    if (offset == first_fit::nothing) throw collx::error(collx::status::out_of_memory, "no room");
    return memory + offset;
  }
  void deallocate(std::byte* p, std::size_t bytes) noexcept {
    parts.give_back(static_cast<std::size_t>(p - memory), bytes);
  }
  alignas(256) std::byte memory[4096];
};

collx::status refusal(world& of, std::size_t count) {
  try {
    collx::symmetric_buffer<double, world> const made(of, count);
  } catch (collx::error const& e) {
    return e.code();
  }
  return collx::status::ok;
}

}  // namespace

TEST_CASE("parts are whole units, taken in order and merged when they come back") {
  first_fit all(1024, 256);
  CHECK(all.take(1) == 0);
  CHECK(all.take(257) == 256);
  CHECK(all.take(0) == 768);
  CHECK(all.take(1) == first_fit::nothing);
  all.give_back(0, 1);
  all.give_back(768, 0);
  CHECK(all.take(512) == first_fit::nothing);
  all.give_back(256, 257);
  CHECK(all.take(1024) == 0);
}

TEST_CASE("sizes that wrap around when they are rounded are not there") {
  first_fit all(1024, 256);
  for (std::size_t const less : {0u, 1u, 254u, 255u, 256u, 4096u})
    CHECK(all.take(~std::size_t{0} - less) == first_fit::nothing);
  CHECK(all.take(1024) == 0);
}

TEST_CASE("a symmetric buffer of a count that wraps around when it becomes bytes is refused") {
  world here;
  for (std::size_t const count :
       {~std::size_t{0}, ~std::size_t{0} / 8 + 1, ~std::size_t{0} / 8 + 2, (~std::size_t{0} >> 4) + 1}) {
    CAPTURE(count);
    CHECK(refusal(here, count) == collx::status::out_of_memory);
    CHECK(here.asked == 0);
  }
  CHECK(refusal(here, 512) == collx::status::ok);
  CHECK(here.asked == 4096);
  CHECK(refusal(here, 513) == collx::status::out_of_memory);
}
