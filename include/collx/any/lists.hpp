// SPDX-License-Identifier: Apache-2.0
// What stands behind any_exchange and any_graph, for one transport.
#pragma once

#include "collx/any/exchange.hpp"
#include "collx/any/schedules.hpp"
#include "collx/any/uneven.hpp"
#include "collx/collective/exchange.hpp"
#include "collx/collective/neighbour_all_gather.hpp"
#include "collx/collective/neighbour_all_to_all.hpp"
#include "collx/collective/send_receive.hpp"

namespace collx::inline abi_1::detail {

template <class Transport>
class exchange_model_of final : public exchange_model {
 public:
  exchange_model_of(any_model const& of, communicator<Transport>& comm, std::int32_t capacity)
      : of_(of), list_(comm, capacity) {}

  void append(any_message const& message) override {
    require_type("exchange", {of_.rank(), of_.size(), 0}, message.type);
    exec::message const& what = message.what;
    std::span const data(what.data, what.bytes);
    if (what.outgoing) list_.send(data, what.peer);
    else list_.receive(data, what.peer);
  }
  void clear() override { list_.clear(); }
  [[nodiscard]] std::int32_t size() const noexcept override { return list_.size(); }
  void run() override { list_.run(); }
  [[nodiscard]] status try_run() noexcept override { return list_.try_run(); }
  [[nodiscard]] any_request start(priority how) override { return {of_, list_.start(how)}; }

 private:
  any_model const& of_;
  exchange<Transport> list_;
};

// A call on a graph, bound and checked; calls of other kinds are none.
[[nodiscard]] inline neighbour_call bind_on_graph(problem p, graph const& edges, any_call const& c) noexcept {
  std::size_t const sources = edges.sources().size(), destinations = edges.destinations().size();
  return with_size_of(c.type, [&]<class T>() noexcept -> neighbour_call {
    neighbour_call none;
    none.what.collective = "any_graph";
    none.edges = &edges;
    std::size_t const most = most_elements(sizeof(T), 1 + (sources > destinations ? sources : destinations));
    if (c.count > most) {
      none.fault = absurd_count;
      none.given = static_cast<std::int64_t>(c.count);
      none.needed = static_cast<std::int64_t>(most);
      return none;
    }
    auto const all_in = elements_at<T const>(c.in, c.count * destinations);
    auto const own_in = elements_at<T const>(c.in, c.count);
    auto const out = elements_at<T>(c.out, c.count * sources);
    if (c.what == collective_kind::all_gather) return bind_neighbour_all_gather(p, edges, own_in, out);
    if (c.what == collective_kind::all_to_all) return bind_neighbour_all_to_all(p, edges, all_in, out);
    if (c.what == collective_kind::all_gather_v)
      return bind_neighbour_all_gather_v(p, edges, own_in, blocks_at<T>(c.out, c.out_blocks));
    if (c.what == collective_kind::all_to_all_v)
      return bind_neighbour_all_to_all_v(p, edges, blocks_at<T const>(c.in, c.in_blocks),
                                         blocks_at<T>(c.out, c.out_blocks));
    none.fault =
        "a graph takes all_gather, all_gather_v, all_to_all and all_to_all_v, and no other collective";
    none.given = static_cast<std::int64_t>(c.what);
    return none;
  });
}

template <class Transport>
class graph_model_of final : public graph_model {
 public:
  graph_model_of(any_model const& of, communicator<Transport>& comm, std::span<rank_t const> sources,
                 std::span<rank_t const> destinations)
      : of_(of), comm_(comm), edges_(comm, sources, destinations) {}

  void run(any_call const& call) override { run_or_throw<automatic>(comm_.engine(), bind(call)); }
  [[nodiscard]] status try_run(any_call const& call) noexcept override {
    return detail::run<automatic>(comm_.engine(), bind(call));
  }
  [[nodiscard]] any_request start(any_call const& call) override {
    return {of_, begin<automatic>(comm_.engine(), bind(call), call.options.how)};
  }
  [[nodiscard]] persistent_model* prepare(any_call const& call) override {
    auto made = detail::prepare<automatic>(comm_.engine(), bind(call), call.options.how);
    return new persistent_model_of<decltype(made)>(std::move(made));
  }

 private:
  [[nodiscard]] neighbour_call bind(any_call const& call) const noexcept {
    neighbour_call bound = bind_on_graph(where(comm_), edges_, call);
    // Until here it is one of integers of the type's size, which ranks are not to compare.
    bound.what.element_type = element_kind_in(any_types{}, call.type);
    if (!is_value(call.type)) {
      bound.fault = no_enum_value;
      bound.given = static_cast<std::int64_t>(call.type);
      bound.needed = said_already;
    }
    return called_on(comm_, bound);
  }

  any_model const& of_;
  communicator<Transport>& comm_;
  graph edges_;
};

}  // namespace collx::inline abi_1::detail
