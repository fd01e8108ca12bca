// SPDX-License-Identifier: Apache-2.0
// What make_any knows of schedules: every collective with every algorithm, by name, compiled once for the
// transport.
#pragma once

#include <cstring>

#include "collx/any/binding.hpp"
#include "collx/any/model.hpp"
#include "collx/tune/candidate.hpp"

namespace collx::inline abi_1::detail {

// In the order of collective_kind.
using any_contracts =
    type_list<contract::all_reduce, contract::reduce_scatter, contract::all_gather, contract::all_to_all,
              contract::broadcast, contract::reduce, contract::gather, contract::scatter, contract::scan,
              contract::exclusive_scan, contract::barrier, contract::all_gather_v, contract::reduce_scatter_v,
              contract::all_to_all_v, contract::gather_v, contract::scatter_v>;
static_assert(any_contracts::size == collective_kind_count);

// A persistent collective of whatever algorithm.
template <class Made>
class persistent_model_of final : public persistent_model {
 public:
  explicit persistent_model_of(Made&& made) noexcept : made_(std::move(made)) {}
  void start() override { made_.start(); }
  [[nodiscard]] status try_test() noexcept override { return made_.try_test(); }
  [[nodiscard]] status try_wait() noexcept override { return made_.try_wait(); }
  [[nodiscard]] char const* algorithm() const noexcept override { return made_.algorithm(); }

 private:
  Made made_;
};

// One collective with one algorithm.
template <class Endpoint>
struct any_entry {
  using engine_type = exec::engine<Endpoint>;
  void (*run)(engine_type&, any_call const&, exec::erased_reduction const*, exec::standing const&);
  status (*try_run)(engine_type&, any_call const&, exec::erased_reduction const*,
                    exec::standing const&) noexcept;
  request<Endpoint> (*start)(engine_type&, any_call const&, exec::erased_reduction const*,
                             exec::standing const&);
  persistent_model* (*prepare)(engine_type&, any_call const&, exec::erased_reduction const*,
                               exec::standing const&);
};

template <class Contract, class Algorithm, class Endpoint>
struct any_schedule {
  using engine_type = exec::engine<Endpoint>;

  [[nodiscard]] static auto bind(any_call const& call, exec::erased_reduction const* op,
                                 exec::standing const& at) noexcept {
    auto args = bind_any<Contract>(call, op, at);
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
  [[nodiscard]] static persistent_model* prepare(engine_type& engine, any_call const& call,
                                                 exec::erased_reduction const* op, exec::standing const& at) {
    auto made = detail::prepare<Algorithm>(engine, bind(call, op, at), call.options.how);
    return new persistent_model_of<decltype(made)>(std::move(made));
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
    if constexpr (std::is_same_v<Algorithm, automatic> || tune::offers<Algorithm, Contract>()) {
      names[count] = Algorithm::name;
      entries[count++] = {&S::run, &S::try_run, &S::start, &S::prepare};
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
  text_writer out{text, sizeof text};
  out.add("%s: there is no algorithm \"%s\"; those that there are:", collective, wanted);
  for (char const* each : names) out.add(" %s", each);
  throw error(status::bad_argument, text);
}

[[noreturn]] COLLX_COLD inline void throw_no_reduction(char const* collective, any_call const& call,
                                                       status code) {
  if (code == status::bad_argument)
    throw_error(code, "%s: %s has no meaning in a scan; scan the sum and divide it yourself", collective,
                name(call.op));
  throw_error(
      code,
      "%s: %s on %s was not compiled, or does not exist; name both in make_any (bit operators are for "
      "integers)",
      collective, name(call.op), name(call.type));
}

}  // namespace collx::inline abi_1::detail
