// SPDX-License-Identifier: Apache-2.0
// By what processes map windows: what is wanted, what the device can do, and what is left of that.
#include <initializer_list>

#include <doctest/doctest.h>

#include "collx/transport/windows/handles.hpp"

namespace {

using collx::window_handles;
using collx::transport::windows::chosen_handles;
using collx::transport::windows::handle_kind;

struct told {
  int process;
  handle_kind kind;
  int host = 0;

  [[nodiscard]] bool is_of_process_of(told const& other) const { return process == other.process; }
};

}  // namespace

TEST_CASE("handles of CUDA IPC are taken where there are any") {
  for (window_handles const wanted : {window_handles::automatic, window_handles::ipc})
    for (bool const is_alone : {false, true})
      for (bool const can_export : {false, true})
        CHECK(chosen_handles(wanted, is_alone, true, can_export) == handle_kind::ipc);
}

TEST_CASE("where there are none, descriptors are, if processes need any and nobody has said ipc") {
  CHECK(chosen_handles(window_handles::automatic, false, false, true) == handle_kind::descriptor);
  CHECK(chosen_handles(window_handles::automatic, false, false, false) == handle_kind::none);
  CHECK(chosen_handles(window_handles::automatic, true, false, true) == handle_kind::none);
  for (bool const is_alone : {false, true})
    CHECK(chosen_handles(window_handles::ipc, is_alone, false, true) == handle_kind::none);
}

TEST_CASE("descriptors that are wanted are taken, or nothing") {
  for (bool const is_alone : {false, true})
    for (bool const has_ipc : {false, true}) {
      CHECK(chosen_handles(window_handles::descriptors, is_alone, has_ipc, true) == handle_kind::descriptor);
      CHECK(chosen_handles(window_handles::descriptors, is_alone, has_ipc, false) == handle_kind::none);
    }
}

TEST_CASE("handles that peers cannot open are replaced, unless somebody wants them, or has nothing else") {
  using collx::transport::windows::can_do_without_ipc;
  for (bool const can_export : {false, true}) {
    CHECK(can_do_without_ipc(window_handles::automatic, handle_kind::ipc, can_export) == can_export);
    CHECK(!can_do_without_ipc(window_handles::ipc, handle_kind::ipc, can_export));
    for (window_handles const wanted : {window_handles::automatic, window_handles::descriptors})
      CHECK(can_do_without_ipc(wanted, handle_kind::descriptor, can_export));
    CHECK(can_do_without_ipc(window_handles::automatic, handle_kind::none, can_export));
  }
}

TEST_CASE("ranks of different processes of a host exchange descriptors, where one of the two has any") {
  constexpr auto none = handle_kind::none, ipc = handle_kind::ipc, fd = handle_kind::descriptor;
  told const all[] = {{1, fd}, {1, ipc}, {2, ipc}, {3, none}, {4, fd}, {4, fd}, {1, fd, 1}};
  bool const expected[7][7] = {{0, 0, 1, 1, 1, 1, 0}, {0, 0, 0, 0, 1, 1, 0}, {1, 0, 0, 0, 1, 1, 0},
                               {1, 0, 0, 0, 1, 1, 0}, {1, 1, 1, 1, 0, 0, 0}, {1, 1, 1, 1, 0, 0, 0},
                               {0, 0, 0, 0, 0, 0, 0}};
  for (int rank = 0; rank < 7; ++rank) {
    bool with[7];
    collx::transport::windows::descriptor_partners(std::span<told const>(all), rank, with);
    for (int other = 0; other < 7; ++other) {
      CAPTURE(rank);
      CAPTURE(other);
      CHECK(with[other] == expected[rank][other]);
    }
  }
}

TEST_CASE("one rank with a descriptor is enough for desks, and for kernels to be waited for") {
  constexpr auto none = handle_kind::none, ipc = handle_kind::ipc, fd = handle_kind::descriptor;
  auto const any = [](std::initializer_list<told> all) {
    return collx::transport::windows::any_has_descriptor(std::span<told const>(all.begin(), all.size()));
  };
  CHECK_FALSE(any({{1, none}, {1, none}}));
  CHECK_FALSE(any({{1, ipc}, {2, none}, {3, ipc}}));
  CHECK(any({{1, fd}, {2, ipc}}));
  CHECK(any({{1, ipc}, {2, ipc}, {2, fd}}));
}

TEST_CASE("memory is unmapped where every device that sees it there is known to be idle") {
  using collx::transport::windows::device_rest;
  for (bool const has_neighbours : {false, true}) {
    CHECK(device_rest{true, true, has_neighbours}.may_unmap());
    CHECK_FALSE(device_rest{false, false, has_neighbours}.may_unmap());
    // Those of other processes have mappings of their own.
    CHECK(device_rest{true, false, has_neighbours}.may_unmap() == !has_neighbours);
  }
}
