// SPDX-License-Identifier: Apache-2.0
// What stands behind any_communicator and what it hands out: the functions that make_any.hpp compiles for a
// transport.
#pragma once

#include "collx/any/call.hpp"
#include "collx/collective/wrong_argument.hpp"
#include "collx/core/checking.hpp"
#include "collx/core/error.hpp"
#include "collx/exec/message.hpp"

namespace collx::inline abi_1 {

class any_request;

namespace detail {

// A message, and what its elements are.
struct any_message {
  exec::message what;
  data_type type;
};

inline void require_type(char const* collective, problem const& where, data_type type) {
  if (!is_value(type))
    throw_wrong_argument(collective, where, no_enum_value, static_cast<std::int64_t>(type), said_already);
}

// Behind any_persistent. start() throws what the static one throws.
struct persistent_model {
  virtual ~persistent_model() = default;
  virtual void start() = 0;
  [[nodiscard]] virtual status try_test() noexcept = 0;
  [[nodiscard]] virtual status try_wait() noexcept = 0;
  [[nodiscard]] virtual char const* algorithm() const noexcept = 0;
};

// Behind any_exchange.
struct exchange_model {
  virtual ~exchange_model() = default;
  virtual void append(any_message const& message) = 0;
  virtual void clear() = 0;
  [[nodiscard]] virtual std::int32_t size() const noexcept = 0;
  virtual void run() = 0;
  [[nodiscard]] virtual status try_run() noexcept = 0;
  [[nodiscard]] virtual any_request start(priority how) = 0;
};

// Behind any_graph.
struct graph_model {
  virtual ~graph_model() = default;
  virtual void run(any_call const& call) = 0;
  [[nodiscard]] virtual status try_run(any_call const& call) noexcept = 0;
  [[nodiscard]] virtual any_request start(any_call const& call) = 0;
  [[nodiscard]] virtual persistent_model* prepare(any_call const& call) = 0;
};

// Behind any_communicator. What is returned as a pointer belongs to the caller.
struct any_model {
  virtual ~any_model() = default;
  virtual void run(any_call const& call) = 0;
  [[nodiscard]] virtual status try_run(any_call const& call) noexcept = 0;
  [[nodiscard]] virtual any_request start(any_call const& call) = 0;
  [[nodiscard]] virtual persistent_model* prepare(any_call const& call) = 0;
  // One message to or from a peer.
  virtual void move(exec::message const& what) = 0;
  [[nodiscard]] virtual status try_move(exec::message const& what) noexcept = 0;
  void move(any_message const& message) {
    require_type(message.what.outgoing ? "send" : "receive", {rank(), size(), 0}, message.type);
    move(message.what);
  }
  [[nodiscard]] status try_move(any_message const& message) noexcept {
    return is_value(message.type) ? try_move(message.what) : status::bad_argument;
  }
  [[nodiscard]] virtual exchange_model* make_exchange(std::int32_t capacity) = 0;
  [[nodiscard]] virtual graph_model* make_graph(std::span<rank_t const> sources,
                                                std::span<rank_t const> destinations) = 0;
  [[nodiscard]] virtual rank_t rank() const noexcept = 0;
  [[nodiscard]] virtual rank_t size() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t timeout_us() const noexcept = 0;
  virtual void timeout_us(std::uint64_t value) noexcept = 0;
  virtual void checking(checking_level level) = 0;
  [[nodiscard]] virtual any_model* split(std::int32_t color, std::int32_t key) = 0;
  virtual void abort() noexcept = 0;
  [[nodiscard]] virtual failure_report const& failure() const noexcept = 0;
  [[nodiscard]] virtual std::span<char const* const> algorithms(collective_kind what) const noexcept = 0;
};

}  // namespace detail
}  // namespace collx::inline abi_1
