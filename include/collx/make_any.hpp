// SPDX-License-Identifier: Apache-2.0
// Makes any_communicators. Whoever includes this compiles every schedule of `Algorithms` once for the
// transport, and the loop of every operator of `Ops` for every element type of `Types`: sums of the two,
// not products, since schedules see elements as bytes (exec/erased_reduction.hpp). Include it in one file.
//
//   auto world = collx::make_any(std::move(comm));                                   // everything
//   auto small = collx::make_any<type_list<float>, type_list<collx::sum_t>>(std::move(comm));
#pragma once

#include "collx/algo/all.hpp"
#include "collx/any_communicator.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"
#include "collx/collective/split.hpp"
#include "collx/exec/erased_reduction.hpp"
#include "collx/op/small_float.hpp"

namespace collx::inline abi_1 {

using any_types =
    type_list<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
              std::int64_t, std::uint64_t, float8_e4m3, float8_e5m2, float16, bfloat16, float, double>;
using any_ops = type_list<sum_t, prod_t, min_t, max_t, avg_t, bit_and_t, bit_or_t, bit_xor_t, logical_and_t,
                          logical_or_t>;

namespace detail {

template <class T, class... Ts>
[[nodiscard]] consteval std::size_t place_in(type_list<Ts...>) {
  static_assert((std::is_same_v<T, Ts> || ...),
                "collx: any_communicator knows the types of data_type and the "
                "operators of reduce_op only");
  std::size_t at = 0;
  (void)((std::is_same_v<T, Ts> || (++at, false)) || ...);
  return at;
}

// ---- what is known of types and operators --------------------------------------------------------

template <class Op>
inline constexpr Op the_operator{};

struct reduction_table {
  exec::erased_reduction of[data_type_count][reduce_op_count];
};

template <class Types, class Ops>
struct reductions;

template <class... Ts, class Ops>
struct reductions<type_list<Ts...>, Ops> {
  template <class T, class Op>
  static constexpr void enter(reduction_table& table) {
    if constexpr (reduction<Op, T>)
      table.of[place_in<T>(any_types{})][place_in<Op>(any_ops{})] = {&exec::detail::combine_as<T, Op>,
                                                                     &the_operator<Op>,
                                                                     sizeof(T),
                                                                     type_number<T>(),
                                                                     type_number<Op>(),
                                                                     Op::name};
  }
  template <class T, class... All>
  static constexpr void enter_all(reduction_table& table, type_list<All...>) {
    (enter<T, All>(table), ...);
  }
  [[nodiscard]] static constexpr reduction_table make() {
    reduction_table table{};
    (enter_all<Ts>(table, Ops{}), ...);
    return table;
  }
  static constexpr reduction_table known = make();
};

// ---- what is known of schedules --------------------------------------------------------------------

// A call on buffers of bytes.
struct byte_call {
  std::span<std::byte const> in;
  std::span<std::byte> out;
  exec::erased_reduction const* op = nullptr;
  exec::standing at{};
  rank_t root = 0;
};

// How many elements of a buffer are one rank's; a combining contract has its result as one block.
template <class Contract>
[[nodiscard]] byte_call in_bytes(any_call const& call, exec::erased_reduction const* op,
                                 exec::standing const& at) noexcept {
  problem p = at.where;
  p.root = call.root;
  std::size_t const block = call.count * bytes_of(call.type);
  auto const ins = static_cast<std::size_t>(Contract::input(p).count);
  auto const outs = Contract::from_all ? std::size_t{1} : static_cast<std::size_t>(Contract::output(p).count);
  return {{static_cast<std::byte const*>(call.in), ins * block},
          {static_cast<std::byte*>(call.out), outs * block},
          op,
          at,
          call.root};
}

[[nodiscard]] inline auto bind_bytes(contract::all_reduce, problem p, byte_call const& c) noexcept {
  return bind_all_reduce(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::reduce_scatter, problem p, byte_call const& c) noexcept {
  return bind_reduce_scatter(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::reduce, problem p, byte_call const& c) noexcept {
  return bind_reduce(p, c.in, c.out, *c.op, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::scan, problem p, byte_call const& c) noexcept {
  return bind_scan(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::exclusive_scan, problem p, byte_call const& c) noexcept {
  return bind_exclusive_scan(p, c.in, c.out, *c.op);
}
[[nodiscard]] inline auto bind_bytes(contract::all_gather, problem p, byte_call const& c) noexcept {
  return bind_all_gather(p, c.in, c.out);
}
[[nodiscard]] inline auto bind_bytes(contract::all_to_all, problem p, byte_call const& c) noexcept {
  return bind_all_to_all(p, c.in, c.out);
}
[[nodiscard]] inline auto bind_bytes(contract::broadcast, problem p, byte_call const& c) noexcept {
  return bind_broadcast(p, c.in, c.out, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::gather, problem p, byte_call const& c) noexcept {
  return bind_gather(p, c.in, c.out, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::scatter, problem p, byte_call const& c) noexcept {
  return bind_scatter(p, c.in, c.out, c.root);
}
[[nodiscard]] inline auto bind_bytes(contract::barrier, problem p, byte_call const&) noexcept {
  return bind_barrier(p);
}

// One collective with one algorithm.
template <class Endpoint>
struct any_entry {
  using engine_type = exec::engine<Endpoint>;
  void (*run)(engine_type&, any_call const&, exec::erased_reduction const*, exec::standing const&);
  status (*try_run)(engine_type&, any_call const&, exec::erased_reduction const*,
                    exec::standing const&) noexcept;
  request<Endpoint> (*start)(engine_type&, any_call const&, exec::erased_reduction const*,
                             exec::standing const&);
};

template <class Contract, class Algorithm, class Endpoint>
struct any_schedule {
  using engine_type = exec::engine<Endpoint>;

  [[nodiscard]] static auto bind(any_call const& call, exec::erased_reduction const* op,
                                 exec::standing const& at) noexcept {
    auto args = bind_bytes(Contract{}, at.where, in_bytes<Contract>(call, op, at));
    args.at = at;
    args.at.where.root = args.root;
    return args;
  }
  static void run(engine_type& engine, any_call const& call, exec::erased_reduction const* op,
                  exec::standing const& at) {
    detail::run_or_throw<Algorithm>(engine, bind(call, op, at));
  }
  [[nodiscard]] static status try_run(engine_type& engine, any_call const& call,
                                      exec::erased_reduction const* op, exec::standing const& at) noexcept {
    return detail::run<Algorithm>(engine, bind(call, op, at));
  }
  [[nodiscard]] static request<Endpoint> start(engine_type& engine, any_call const& call,
                                               exec::erased_reduction const* op, exec::standing const& at) {
    return detail::begin<Algorithm>(engine, bind(call, op, at), call.options.how);
  }
};

// The algorithms of one collective, by name; the library's own choice first.
template <class Endpoint, std::size_t Capacity>
struct any_algorithms {
  char const* names[Capacity] = {};
  any_entry<Endpoint> entries[Capacity] = {};
  std::size_t count = 0;

  template <class Contract, class Algorithm>
  constexpr void enter() {
    using S = any_schedule<Contract, Algorithm, Endpoint>;
    if constexpr (std::is_same_v<Algorithm, automatic> || algorithm_for<Algorithm, Contract>) {
      names[count] = Algorithm::name;
      entries[count++] = {&S::run, &S::try_run, &S::start};
    }
  }

  // Null: there is no such algorithm.
  [[nodiscard]] any_entry<Endpoint> const* find(char const* name) const noexcept {
    if (name == nullptr) return &entries[0];
    for (std::size_t i = 0; i < count; ++i)
      if (std::strcmp(names[i], name) == 0) return &entries[i];
    return nullptr;
  }
};

template <class Endpoint, class Contracts, class Algorithms>
struct any_schedules;

template <class Endpoint, class... Contracts, class... Algorithms>
struct any_schedules<Endpoint, type_list<Contracts...>, type_list<Algorithms...>> {
  using row = any_algorithms<Endpoint, sizeof...(Algorithms) + 1>;

  template <class Contract>
  [[nodiscard]] static constexpr row make() {
    row all;
    all.template enter<Contract, automatic>();
    (all.template enter<Contract, Algorithms>(), ...);
    return all;
  }
  static constexpr row of[] = {make<Contracts>()...};
  static constexpr char const* collectives[] = {Contracts::name...};
};

[[noreturn]] COLLX_COLD inline void throw_no_algorithm(char const* collective, char const* wanted,
                                                       std::span<char const* const> names) {
  char text[560];
  std::size_t used = 0;
  auto const append = [&](char const* format, char const* what) {
    if (used >= sizeof text) return;
    used += static_cast<std::size_t>(std::snprintf(text + used, sizeof text - used, format, what));
  };
  append("%s: there is no algorithm ", collective);
  append("\"%s\"; those that there are:", wanted);
  for (char const* each : names) append(" %s", each);
  throw error(status::bad_argument, text);
}

[[noreturn]] COLLX_COLD inline void throw_no_reduction(char const* collective, any_call const& call,
                                                       status code) {
  char text[300];
  if (code == status::bad_argument)
    std::snprintf(text, sizeof text, "%s: %s has no meaning in a scan; scan the sum and divide it yourself",
                  collective, name(call.op));
  else
    std::snprintf(
        text, sizeof text,
        "%s: %s on %s was not compiled, or does not exist; name both in make_any (bit operators are "
        "for integers)",
        collective, name(call.op), name(call.type));
  throw error(code, text);
}

// ---- the communicator ------------------------------------------------------------------------------

template <class Transport, class Types, class Ops, class Algorithms>
class any_model_of final : public any_model {
  using endpoint = typename Transport::endpoint;
  using schedules = any_schedules<endpoint, contract::all, Algorithms>;
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
           what == collective_kind::reduce || is_scan(what);
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
