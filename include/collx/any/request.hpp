// SPDX-License-Identifier: Apache-2.0
// any_request, any_persistent: a started call, and one that is set up once, without their types.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "collx/any/model.hpp"

namespace collx::inline abi_1 {
namespace detail {

// What a request is behind any_request.
struct request_functions {
  status (*test)(void*) noexcept;
  status (*wait)(void*) noexcept;
  void (*move)(void* to, void* from) noexcept;
  void (*destroy)(void*) noexcept;
};

}  // namespace detail

// A started call; as `request` of communicator.hpp.
class any_request {
 public:
  any_request() = default;
  any_request(any_request&& other) noexcept { take(other); }
  any_request& operator=(any_request&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~any_request() { drop(); }

  [[nodiscard]] bool test() {
    status const outcome = try_test();
    if (outcome != status::ok && outcome != status::pending) throw error(of_->failure());
    return outcome == status::ok;
  }
  void wait() {
    if (try_wait() != status::ok) throw error(of_->failure());
  }
  [[nodiscard]] status try_test() noexcept {
    return functions_ == nullptr ? status::ok : functions_->test(storage_);
  }
  [[nodiscard]] status try_wait() noexcept {
    return functions_ == nullptr ? status::ok : functions_->wait(storage_);
  }

  // For models: wraps a request of some transport.
  template <class Request>
  any_request(detail::any_model const& of, Request started) noexcept : of_(&of) {
    static_assert(sizeof(Request) <= sizeof storage_);
    static constexpr detail::request_functions known{
        [](void* p) noexcept { return static_cast<Request*>(p)->try_test(); },
        [](void* p) noexcept { return static_cast<Request*>(p)->try_wait(); },
        [](void* to, void* from) noexcept { ::new (to) Request(std::move(*static_cast<Request*>(from))); },
        [](void* p) noexcept { static_cast<Request*>(p)->~Request(); }};
    ::new (static_cast<void*>(storage_)) Request(std::move(started));
    functions_ = &known;
  }

 private:
  void drop() noexcept {
    if (functions_ != nullptr) functions_->destroy(storage_);
    functions_ = nullptr;
  }
  void take(any_request& other) noexcept {
    of_ = other.of_;
    functions_ = other.functions_;
    if (functions_ != nullptr) functions_->move(storage_, other.storage_);
    other.drop();
  }

  detail::any_model const* of_ = nullptr;
  detail::request_functions const* functions_ = nullptr;
  alignas(8) std::byte storage_[24];
};

// A call that is set up once and started many times; as `persistent_collective` of collective/persistent.hpp.
// Belongs to the communicator it was made with, and must not outlive it.
class any_persistent {
 public:
  // Takes over a model made by any_communicator::prepare.
  any_persistent(detail::any_model const& of, detail::persistent_model* made) noexcept
      : of_(&of), model_(made) {}

  // Waits for the last start first.
  void start() { model_->start(); }
  [[nodiscard]] bool test() {
    status const outcome = try_test();
    if (outcome != status::ok && outcome != status::pending) throw error(of_->failure());
    return outcome == status::ok;
  }
  void wait() {
    if (try_wait() != status::ok) throw error(of_->failure());
  }
  [[nodiscard]] status try_test() noexcept { return model_->try_test(); }
  [[nodiscard]] status try_wait() noexcept { return model_->try_wait(); }
  // The one that was chosen, by name.
  [[nodiscard]] char const* algorithm() const noexcept { return model_->algorithm(); }

 private:
  detail::any_model const* of_;
  std::unique_ptr<detail::persistent_model> model_;
};

}  // namespace collx::inline abi_1
