// SPDX-License-Identifier: Apache-2.0
// By what processes map windows: what is wanted, what the device can do, and what is left of that.
#include <initializer_list>

#include <doctest/doctest.h>

#include "collx/transport/windows/handles.hpp"

namespace {

using collx::window_handles;
using collx::transport::windows::chosen_handles;
using collx::transport::windows::handle_kind;

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
