// SPDX-License-Identifier: Apache-2.0
// A UCX context with its one worker: everything that this process sends and receives over UCX goes through
// it.
#pragma once

#include <cstring>
#include <utility>

#include "collx/core/array.hpp"
#include "collx/transport/ucx/configuration.hpp"

namespace collx::inline abi_1::transport::ucx_parts {

class worker {
 public:
  // Networks and protocols are those of the UCX_* variables. Throws error (system_failure, out_of_memory).
  COLLX_COLD explicit worker(worker_settings const& chosen) {
    configuration const config(chosen);
    ucp_params_t wanted{};
    wanted.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK |
                        UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_ESTIMATED_NUM_PPN;
    wanted.features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
    wanted.tag_sender_mask = 0xffff'ffff;  // of traffic's tags
    wanted.estimated_num_eps = static_cast<std::size_t>(chosen.ranks);
    wanted.estimated_num_ppn = static_cast<std::size_t>(chosen.ranks_here);
    require(ucp_init(&wanted, config.get(), &context_), "ucp_init", advice);
    ucp_worker_params_t how{};
    how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucs_status_t const made = ucp_worker_create(context_, &how, &worker_);
    if (made != UCS_OK) ucp_cleanup(context_);
    require(made, "ucp_worker_create", advice);
  }
  worker(worker&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), worker_(std::exchange(other.worker_, nullptr)) {}
  worker& operator=(worker&&) = delete;
  ~worker() {
    if (context_ == nullptr) return;
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  [[nodiscard]] ucp_worker_h get() const noexcept { return worker_; }

  // Under which peers reach it: some hundred bytes. Throws error.
  [[nodiscard]] COLLX_COLD array<std::byte> address() const {
    ucp_address_t* text = nullptr;
    std::size_t bytes = 0;
    require(ucp_worker_get_address(worker_, &text, &bytes), "ucp_worker_get_address", advice);
    array<std::byte> own(bytes);
    std::memcpy(own.data(), text, bytes);
    ucp_worker_release_address(worker_, text);
    return own;
  }

 private:
  static constexpr char const* advice =
      "look at what ucx_info -d lists, and at the UCX_TLS and UCX_NET_DEVICES of this job; "
      "UCX_LOG_LEVEL=info tells more";

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
};

}  // namespace collx::inline abi_1::transport::ucx_parts
