// SPDX-License-Identifier: Apache-2.0
// Compiles the type-erased communicator that main.cpp only knows as such.
#include "calls.hpp"
#include "collx/make_any.hpp"

collx::any_communicator make_erased(communicator&& comm) {
  return collx::make_any<collx::type_list<float>, collx::type_list<collx::sum_t>>(std::move(comm));
}
