// SPDX-License-Identifier: Apache-2.0
// any_communicator: a communicator whose transport, element type, operator and algorithm are values, for
// those who decide when the program runs (bindings to other languages, say). Made by make_any.hpp, in one
// source file; this header compiles no collective.
//
//   collx::any_communicator world = collx::make_any(collx::connect<collx::transport::shm>());
//   world.all_reduce(in, out, count, data_type::float32, reduce_op::sum, {.algorithm = "ring"});
//   auto request = world.start(any_call::all_reduce(in, out, count, data_type::float32));
//
// `count` is that of a rank's block, as in docs/collectives.md: the side that holds all blocks has size()
// times as many. Contracts, in-place forms, ownership of buffers and errors are those of the collectives
// of the same name; besides, an algorithm that there is not is bad_argument, with the list of those that
// there are, and a combination of type and operator that was not compiled not_supported.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "collx/core/checking.hpp"
#include "collx/core/error.hpp"
#include "collx/core/priority.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

enum class data_type : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float8_e4m3,
  float8_e5m2,
  float16,
  bfloat16,
  float32,
  float64,
};
inline constexpr std::size_t data_type_count = 14;

enum class reduce_op : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
};
inline constexpr std::size_t reduce_op_count = 10;

// In the order of contract::all.
enum class collective_kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  scan,
  exclusive_scan,
  barrier,
};
inline constexpr std::size_t collective_kind_count = 11;

[[nodiscard]] constexpr std::size_t bytes_of(data_type type) noexcept {
  constexpr std::uint8_t bytes[data_type_count] = {1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8};
  return static_cast<std::size_t>(type) < data_type_count ? bytes[static_cast<std::size_t>(type)] : 0;
}
[[nodiscard]] constexpr char const* name(data_type type) noexcept {
  constexpr char const* names[data_type_count] = {
      "int8",   "uint8",       "int16",       "uint16",  "int32",    "uint32",  "int64",
      "uint64", "float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64"};
  return static_cast<std::size_t>(type) < data_type_count ? names[static_cast<std::size_t>(type)] : "?";
}
[[nodiscard]] constexpr char const* name(reduce_op op) noexcept {
  constexpr char const* names[reduce_op_count] = {
      "sum", "prod", "min", "max", "avg", "bit_and", "bit_or", "bit_xor", "logical_and", "logical_or"};
  return static_cast<std::size_t>(op) < reduce_op_count ? names[static_cast<std::size_t>(op)] : "?";
}

struct call_options {
  char const* algorithm = nullptr;  // by name, docs/algorithms.md; null: the library chooses
  priority how = priority::normal;  // of a started call
};

// One call, as a value.
struct any_call {
  collective_kind what = collective_kind::barrier;
  void const* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  // elements of a rank's block
  data_type type = data_type::uint8;
  reduce_op op = reduce_op::sum;
  rank_t root = 0;
  call_options options{};

  using kind = collective_kind;

  [[nodiscard]] static any_call all_reduce(void const* in, void* out, std::size_t count, data_type type,
                                           reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::all_reduce, in, out, count, type, op, 0, options};
  }
  [[nodiscard]] static any_call reduce_scatter(void const* in, void* out, std::size_t count, data_type type,
                                               reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::reduce_scatter, in, out, count, type, op, 0, options};
  }
  [[nodiscard]] static any_call reduce(void const* in, void* out, std::size_t count, data_type type,
                                       reduce_op op = reduce_op::sum, rank_t root = 0,
                                       call_options options = {}) {
    return {kind::reduce, in, out, count, type, op, root, options};
  }
  [[nodiscard]] static any_call scan(void const* in, void* out, std::size_t count, data_type type,
                                     reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::scan, in, out, count, type, op, 0, options};
  }
  [[nodiscard]] static any_call exclusive_scan(void const* in, void* out, std::size_t count, data_type type,
                                               reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::exclusive_scan, in, out, count, type, op, 0, options};
  }
  [[nodiscard]] static any_call all_gather(void const* in, void* out, std::size_t count, data_type type,
                                           call_options options = {}) {
    return {kind::all_gather, in, out, count, type, {}, 0, options};
  }
  [[nodiscard]] static any_call all_to_all(void const* in, void* out, std::size_t count, data_type type,
                                           call_options options = {}) {
    return {kind::all_to_all, in, out, count, type, {}, 0, options};
  }
  [[nodiscard]] static any_call broadcast(void const* in, void* out, std::size_t count, data_type type,
                                          rank_t root = 0, call_options options = {}) {
    return {kind::broadcast, in, out, count, type, {}, root, options};
  }
  [[nodiscard]] static any_call gather(void const* in, void* out, std::size_t count, data_type type,
                                       rank_t root = 0, call_options options = {}) {
    return {kind::gather, in, out, count, type, {}, root, options};
  }
  [[nodiscard]] static any_call scatter(void const* in, void* out, std::size_t count, data_type type,
                                        rank_t root = 0, call_options options = {}) {
    return {kind::scatter, in, out, count, type, {}, root, options};
  }
  [[nodiscard]] static any_call barrier(call_options options = {}) {
    return {kind::barrier, nullptr, nullptr, 0, data_type::uint8, {}, 0, options};
  }
};

class any_request;

namespace detail {

// What a request is behind any_request.
struct request_functions {
  status (*test)(void*) noexcept;
  status (*wait)(void*) noexcept;
  void (*move)(void* to, void* from) noexcept;
  void (*destroy)(void*) noexcept;
};

// What a communicator is behind any_communicator.
struct any_model {
  virtual ~any_model() = default;
  virtual void run(any_call const& call) = 0;
  [[nodiscard]] virtual status try_run(any_call const& call) noexcept = 0;
  [[nodiscard]] virtual any_request start(any_call const& call) = 0;
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

class any_communicator {
 public:
  // Takes over a model made by make_any.
  explicit any_communicator(detail::any_model* model) noexcept : model_(model) {}
  any_communicator(any_communicator&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  any_communicator& operator=(any_communicator&& other) noexcept {
    std::swap(model_, other.model_);
    return *this;
  }
  ~any_communicator() { delete model_; }

  // Any call: blocking; the noexcept twin; started.
  void run(any_call const& call) { model_->run(call); }
  [[nodiscard]] status try_run(any_call const& call) noexcept { return model_->try_run(call); }
  [[nodiscard]] any_request start(any_call const& call) { return model_->start(call); }

  // The blocking ones by name; arguments as those of any_call's functions.
  void all_reduce(void const* in, void* out, std::size_t count, data_type type, reduce_op op = reduce_op::sum,
                  call_options options = {}) {
    run(any_call::all_reduce(in, out, count, type, op, options));
  }
  void reduce_scatter(void const* in, void* out, std::size_t count, data_type type,
                      reduce_op op = reduce_op::sum, call_options options = {}) {
    run(any_call::reduce_scatter(in, out, count, type, op, options));
  }
  void reduce(void const* in, void* out, std::size_t count, data_type type, reduce_op op = reduce_op::sum,
              rank_t root = 0, call_options options = {}) {
    run(any_call::reduce(in, out, count, type, op, root, options));
  }
  void scan(void const* in, void* out, std::size_t count, data_type type, reduce_op op = reduce_op::sum,
            call_options options = {}) {
    run(any_call::scan(in, out, count, type, op, options));
  }
  void exclusive_scan(void const* in, void* out, std::size_t count, data_type type,
                      reduce_op op = reduce_op::sum, call_options options = {}) {
    run(any_call::exclusive_scan(in, out, count, type, op, options));
  }
  void all_gather(void const* in, void* out, std::size_t count, data_type type, call_options options = {}) {
    run(any_call::all_gather(in, out, count, type, options));
  }
  void all_to_all(void const* in, void* out, std::size_t count, data_type type, call_options options = {}) {
    run(any_call::all_to_all(in, out, count, type, options));
  }
  void broadcast(void* inout, std::size_t count, data_type type, rank_t root = 0, call_options options = {}) {
    run(any_call::broadcast(inout, inout, count, type, root, options));
  }
  void gather(void const* in, void* out, std::size_t count, data_type type, rank_t root = 0,
              call_options options = {}) {
    run(any_call::gather(in, out, count, type, root, options));
  }
  void scatter(void const* in, void* out, std::size_t count, data_type type, rank_t root = 0,
               call_options options = {}) {
    run(any_call::scatter(in, out, count, type, root, options));
  }
  void barrier(call_options options = {}) { run(any_call::barrier(options)); }

  [[nodiscard]] rank_t rank() const noexcept { return model_->rank(); }
  [[nodiscard]] rank_t size() const noexcept { return model_->size(); }
  [[nodiscard]] std::uint64_t timeout_us() const noexcept { return model_->timeout_us(); }
  void timeout_us(std::uint64_t value) noexcept { model_->timeout_us(value); }
  void checking(checking_level level) { model_->checking(level); }
  [[nodiscard]] any_communicator split(std::int32_t color, std::int32_t key) {
    return any_communicator(model_->split(color, key));
  }
  void abort() noexcept { model_->abort(); }
  [[nodiscard]] failure_report const& failure() const noexcept { return model_->failure(); }
  // The names that call_options::algorithm may have for a collective.
  [[nodiscard]] std::span<char const* const> algorithms(collective_kind what) const noexcept {
    return model_->algorithms(what);
  }

 private:
  detail::any_model* model_;
};

}  // namespace collx::inline abi_1
