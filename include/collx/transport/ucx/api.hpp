// SPDX-License-Identifier: Apache-2.0
// UCX's protocol layer, and what its error codes mean here. Needs UCX (the CMake component collx::ucx).
#pragma once

#include <ucp/api/ucp.h>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::transport::ucx_parts {

COLLX_COLD inline void require(ucs_status_t code, char const* what, char const* advice) {
  if (code == UCS_OK) return;
  throw_error(code == UCS_ERR_NO_MEMORY ? status::out_of_memory : status::system_failure,
              "transport::ucx: %s failed: %s; %s", what, ucs_status_string(code), advice);
}

// Of what went wrong with a peer. A few codes say that UCX was set up wrongly; the others that the peer is
// gone, each network in its own words. Who was gone before it was first sent to is "unreachable".
[[nodiscard]] COLLX_COLD inline status status_of(ucs_status_t code) noexcept {
  switch (code) {
    case UCS_ERR_NO_MEMORY: return status::out_of_memory;
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
    case UCS_ERR_NOT_IMPLEMENTED:
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NO_DEVICE: return status::system_failure;
    default: return status::peer_lost;
  }
}

[[nodiscard]] inline bool is_request(ucs_status_ptr_t answer) noexcept {
  return answer != nullptr && !UCS_PTR_IS_ERR(answer);
}

}  // namespace collx::inline abi_1::transport::ucx_parts
