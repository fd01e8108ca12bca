// SPDX-License-Identifier: Apache-2.0
// any_exchange, any_graph: messages between any ranks, without their types. As exchange and graph of
// collective/, whose contracts and errors they have; both belong to the communicator they were made with,
// and must not outlive it.
//
//   collx::any_exchange list = world.exchange();
//   list.send(halo, 100, data_type::float32, left);  list.receive(theirs, 100, data_type::float32, right);
//   list.run();
//
//   collx::any_graph edges = world.graph(sources, destinations);
//   edges.run(any_call::all_gather(in, out, 100, data_type::float32));     a block of `out` for every source
#pragma once

#include <memory>

#include "collx/any/request.hpp"

namespace collx::inline abi_1 {
namespace detail {

[[nodiscard]] inline any_message message_to(void const* data, std::size_t count, data_type type,
                                            rank_t peer) noexcept {
  // Only read.
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(data));
  return {{bytes, exec::bytes_or_most(count, bytes_of(type)), peer, true}, type};
}
[[nodiscard]] inline any_message message_from(void* out, std::size_t count, data_type type,
                                              rank_t peer) noexcept {
  return {{static_cast<std::byte*>(out), exec::bytes_or_most(count, bytes_of(type)), peer, false}, type};
}

}  // namespace detail

class any_exchange {
 public:
  // Takes over a model made by any_communicator::exchange.
  explicit any_exchange(detail::exchange_model* model) noexcept : model_(model) {}

  void send(void const* data, std::size_t count, data_type type, rank_t peer) {
    model_->append(detail::message_to(data, count, type, peer));
  }
  void receive(void* out, std::size_t count, data_type type, rank_t peer) {
    model_->append(detail::message_from(out, count, type, peer));
  }
  [[nodiscard]] std::int32_t size() const noexcept { return model_->size(); }
  void clear() { model_->clear(); }

  void run() { model_->run(); }
  [[nodiscard]] status try_run() noexcept { return model_->try_run(); }
  [[nodiscard]] any_request start(priority how = priority::normal) { return model_->start(how); }

 private:
  std::unique_ptr<detail::exchange_model> model_;
};

// The calls that a graph takes are all_gather, all_gather_v, all_to_all and all_to_all_v, with a block, or an
// entry of a list, for every edge instead of every rank: neighbour_all_gather and so on. There is no
// algorithm to choose. Other calls are bad_argument.
class any_graph {
 public:
  // Takes over a model made by any_communicator::graph.
  any_graph(detail::any_model const& of, detail::graph_model* model) noexcept : of_(&of), model_(model) {}

  void run(any_call const& call) { model_->run(call); }
  [[nodiscard]] status try_run(any_call const& call) noexcept { return model_->try_run(call); }
  [[nodiscard]] any_request start(any_call const& call) & { return model_->start(call); }
  // Belongs to the graph, and must not outlive it.
  [[nodiscard]] any_persistent prepare(any_call const& call) & { return {*of_, model_->prepare(call)}; }

 private:
  detail::any_model const* of_;
  std::unique_ptr<detail::graph_model> model_;
};

}  // namespace collx::inline abi_1
