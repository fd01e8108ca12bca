// SPDX-License-Identifier: Apache-2.0
// Makes any_communicators. Whoever includes this compiles every schedule of `Algorithms` once for the
// transport, and the loop of every operator of `Ops` for every element type of `Types`: sums of the two,
// not products, since schedules see elements as bytes (exec/erased_reduction.hpp). Include it in one file.
//
//   auto world = collx::make_any(std::move(comm));                                   // everything
//   auto small = collx::make_any<type_list<float>, type_list<collx::sum_t>>(std::move(comm));
#pragma once

#include "collx/algo/all.hpp"
#include "collx/any/lists.hpp"
#include "collx/any/schedules.hpp"
#include "collx/any_communicator.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/collective/split.hpp"

namespace collx::inline abi_1 {
namespace detail {

template <class Transport, class Types, class Ops, class Algorithms>
class any_model_of final : public any_model {
  using endpoint = typename Transport::endpoint;
  using schedules = any_schedules<endpoint, any_contracts, Algorithms>;
  using entry = any_entry<endpoint>;

 public:
  explicit any_model_of(communicator<Transport>&& comm) noexcept : comm_(std::move(comm)) {}

  void run(any_call const& call) override {
    choice const chosen = choose(call);
    if (chosen.code != status::ok) refuse(call, chosen);
    chosen.how->run(comm_.engine(), call, chosen.op, comm_.standing());
  }
  [[nodiscard]] status try_run(any_call const& call) noexcept override {
    choice const chosen = choose(call);
    if (chosen.code != status::ok) return chosen.code;
    return chosen.how->try_run(comm_.engine(), call, chosen.op, comm_.standing());
  }
  [[nodiscard]] any_request start(any_call const& call) override {
    choice const chosen = choose(call);
    if (chosen.code != status::ok) refuse(call, chosen);
    return {*this, chosen.how->start(comm_.engine(), call, chosen.op, comm_.standing())};
  }
  [[nodiscard]] persistent_model* prepare(any_call const& call) override {
    choice const chosen = choose(call);
    if (chosen.code != status::ok) refuse(call, chosen);
    return chosen.how->prepare(comm_.engine(), call, chosen.op, comm_.standing());
  }

  void move(exec::message const& what) override { run_one_or_throw(comm_, what); }
  [[nodiscard]] status try_move(exec::message const& what) noexcept override { return try_one(comm_, what); }
  [[nodiscard]] exchange_model* make_exchange(std::int32_t capacity) override {
    return new exchange_model_of<Transport>(*this, comm_, capacity);
  }
  [[nodiscard]] graph_model* make_graph(std::span<rank_t const> sources,
                                        std::span<rank_t const> destinations) override {
    return new graph_model_of<Transport>(*this, comm_, sources, destinations);
  }

  [[nodiscard]] rank_t rank() const noexcept override { return comm_.rank(); }
  [[nodiscard]] rank_t size() const noexcept override { return comm_.size(); }
  [[nodiscard]] std::uint64_t timeout_us() const noexcept override { return comm_.timeout_us(); }
  void timeout_us(std::uint64_t value) noexcept override { comm_.timeout_us(value); }
  void checking(checking_level level) override { comm_.checking(level); }
  [[nodiscard]] any_model* split(std::int32_t color, std::int32_t key) override {
    return new any_model_of(comm_.split(color, key));
  }
  void abort() noexcept override { comm_.abort(); }
  [[nodiscard]] failure_report const& failure() const noexcept override { return comm_.failure(); }
  [[nodiscard]] std::span<char const* const> algorithms(collective_kind what) const noexcept override {
    auto const at = static_cast<std::size_t>(what);
    if (at >= collective_kind_count) return {};
    return {schedules::of[at].names, schedules::of[at].count};
  }

 private:
  struct choice {
    entry const* how = nullptr;
    exec::erased_reduction const* op = nullptr;
    status code = status::ok;
  };

  [[nodiscard]] static bool reduces(collective_kind what) noexcept {
    return what == collective_kind::all_reduce || what == collective_kind::reduce_scatter ||
           what == collective_kind::reduce_scatter_v || what == collective_kind::reduce || is_scan(what);
  }
  [[nodiscard]] static bool is_scan(collective_kind what) noexcept {
    return what == collective_kind::scan || what == collective_kind::exclusive_scan;
  }

  [[nodiscard]] static choice choose(any_call const& call) noexcept {
    auto const what = static_cast<std::size_t>(call.what), type = static_cast<std::size_t>(call.type),
               op = static_cast<std::size_t>(call.op);
    if (what >= collective_kind_count || type >= data_type_count || op >= reduce_op_count)
      return {.code = status::bad_argument};
    choice chosen{schedules::of[what].find(call.options.algorithm),
                  &reductions<Types, Ops>::known.of[type][op]};
    if (chosen.how == nullptr || (is_scan(call.what) && call.op == reduce_op::avg))
      chosen.code = status::bad_argument;
    else if (reduces(call.what) && chosen.op->loop == nullptr) chosen.code = status::not_supported;
    return chosen;
  }

  [[noreturn]] void refuse(any_call const& call, choice const& chosen) const {
    auto const what = static_cast<std::size_t>(call.what);
    if (what >= collective_kind_count || static_cast<std::size_t>(call.type) >= data_type_count ||
        static_cast<std::size_t>(call.op) >= reduce_op_count)
      throw error(status::bad_argument, "any_call: the collective, type or operator is no value of its enum");
    char const* const collective = schedules::collectives[what];
    if (chosen.how == nullptr) throw_no_algorithm(collective, call.options.algorithm, algorithms(call.what));
    throw_no_reduction(collective, call, chosen.code);
  }

  communicator<Transport> comm_;
};

}  // namespace detail

// Takes the communicator over. Types: of any_types; Ops: of any_ops; Algorithms: any with names. Throws
// what new throws.
template <class Types = any_types, class Ops = any_ops, class Algorithms = algo::all, class Transport>
[[nodiscard]] any_communicator make_any(communicator<Transport>&& comm) {
  return any_communicator(new detail::any_model_of<Transport, Types, Ops, Algorithms>(std::move(comm)));
}

}  // namespace collx::inline abi_1
