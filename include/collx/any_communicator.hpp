// SPDX-License-Identifier: Apache-2.0
// any_communicator: a communicator whose transport, element type, operator and algorithm are values, for
// those who decide when the program runs (bindings to other languages, say). Made by make_any.hpp, in one
// source file; this header compiles no collective.
//
//   collx::any_communicator world = collx::make_any(collx::connect<collx::transport::shm>());
//   world.all_reduce(in, out, count, data_type::float32, reduce_op::sum, {.algorithm = "ring"});
//   auto request = world.start(any_call::all_reduce(in, out, count, data_type::float32));
//   auto repeated = world.prepare(any_call::all_reduce(in, out, count, data_type::float32));
//
// `count` is that of a rank's block, as in docs/collectives.md: the side that holds all blocks has size()
// times as many. Contracts, in-place forms, ownership of buffers and errors are those of the collectives
// of the same name; besides, an algorithm that there is not is bad_argument, with the list of those that
// there are, and a combination of type and operator that was not compiled not_supported.
#pragma once

#include <utility>

#include "collx/any/exchange.hpp"

namespace collx::inline abi_1 {

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

  // Any call: blocking; the noexcept twin; started; set up once, to be started as often as wanted (allocates
  // then, and at no start).
  void run(any_call const& call) { model_->run(call); }
  [[nodiscard]] status try_run(any_call const& call) noexcept { return model_->try_run(call); }
  [[nodiscard]] any_request start(any_call const& call) { return model_->start(call); }
  [[nodiscard]] any_persistent prepare(any_call const& call) { return {*model_, model_->prepare(call)}; }

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
  void all_gather_v(void const* in, void* out, std::size_t count, block_list const& out_blocks,
                    data_type type, call_options options = {}) {
    run(any_call::all_gather_v(in, out, count, out_blocks, type, options));
  }
  void reduce_scatter_v(void const* in, void* out, std::size_t count, block_list const& in_blocks,
                        data_type type, reduce_op op = reduce_op::sum, call_options options = {}) {
    run(any_call::reduce_scatter_v(in, out, count, in_blocks, type, op, options));
  }
  void all_to_all_v(void const* in, void* out, block_list const& in_blocks, block_list const& out_blocks,
                    data_type type, call_options options = {}) {
    run(any_call::all_to_all_v(in, out, in_blocks, out_blocks, type, options));
  }
  void gather_v(void const* in, void* out, std::size_t count, block_list const& out_blocks, data_type type,
                rank_t root = 0, call_options options = {}) {
    run(any_call::gather_v(in, out, count, out_blocks, type, root, options));
  }
  void scatter_v(void const* in, void* out, std::size_t count, block_list const& in_blocks, data_type type,
                 rank_t root = 0, call_options options = {}) {
    run(any_call::scatter_v(in, out, count, in_blocks, type, root, options));
  }

  // Messages between any ranks: one, in order with the others of that pair (collective/send_receive.hpp); a
  // list of them that move at once, with room for so many, by default two per rank; the edges of a graph.
  void send(void const* data, std::size_t count, data_type type, rank_t peer) {
    model_->move(detail::message_to(data, count, type, peer));
  }
  void receive(void* out, std::size_t count, data_type type, rank_t peer) {
    model_->move(detail::message_from(out, count, type, peer));
  }
  [[nodiscard]] status try_send(void const* data, std::size_t count, data_type type, rank_t peer) noexcept {
    return model_->try_move(detail::message_to(data, count, type, peer));
  }
  [[nodiscard]] status try_receive(void* out, std::size_t count, data_type type, rank_t peer) noexcept {
    return model_->try_move(detail::message_from(out, count, type, peer));
  }
  [[nodiscard]] any_exchange exchange() { return exchange(2 * size()); }
  [[nodiscard]] any_exchange exchange(std::int32_t capacity) {
    return any_exchange(model_->make_exchange(capacity));
  }
  [[nodiscard]] any_graph graph(std::span<rank_t const> sources, std::span<rank_t const> destinations) {
    return {*model_, model_->make_graph(sources, destinations)};
  }

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
