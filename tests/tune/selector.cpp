// SPDX-License-Identifier: Apache-2.0
// The choice at run time: who is asked first, what is refused, what is said about it; and calls that go
// through it, on threads.
#include "collx/tune/selector.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/mailbox.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/explain.hpp"
#include "watched.hpp"

namespace tune = collx::tune;
namespace contract = collx::contract;
namespace algo = collx::algo;
using world_type = collx::communicator<collx::transport::threads>;

namespace {

struct left_first {
  static constexpr bool is_commutative = false;
  float operator()(float a, float) const { return a; }
};

// Runs f(comm) on rank 0 of a communicator of `size`; the others wait.
template <class F>
void on_rank_0(collx::rank_t size, F const& f) {
  watched::on_threads(size, [&](world_type& world) {
    if (world.rank() == 0) f(world);
    collx::barrier(world);
  });
}

tune::settings with_table(std::string const& rules) {
  tune::settings said;
  said.table(tune::parse(("{\"rules\": [" + rules + "]}").c_str(), "my.json"));
  return said;
}

std::string explained(world_type& world, std::size_t bytes = 4096) {
  return tune::explain<contract::all_reduce, collx::selected>(world, bytes).text();
}

bool has(std::string const& text, std::string const& words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

struct my_table
    : tune::fixed_table<
          tune::fixed_rule<contract::all_reduce, algo::recursive_halving_doubling, {.bytes_max = 64}>,
          tune::fixed_rule<contract::all_reduce, algo::ring, {.bytes_max = 4096, .ranks_max = 4}>,
          tune::fixed_rule<contract::broadcast, algo::chain, {.transport = "threads"}>,
          tune::fixed_rule<contract::broadcast, algo::binomial_tree>> {
  [[maybe_unused]] static constexpr char const* name = "my_table";
};

}  // namespace

TEST_CASE("without settings the built-in table chooses, as for automatic") {
  on_rank_0(2, [](world_type& world) {
    for (std::size_t const bytes : {8u, 8192u, 8193u, 1u << 20}) {
      auto const by_selected = tune::explain<contract::all_reduce, collx::selected>(world, bytes);
      auto const by_automatic = tune::explain<contract::all_reduce>(world, bytes);
      CHECK(by_selected.from == tune::source::built_in_table);
      CHECK(std::string(by_selected.algorithm) == by_automatic.algorithm);
      CHECK(by_selected.row == by_automatic.row);
    }
    CHECK(has(explained(world), "all_reduce of 4096 bytes on 2 ranks over threads, private memory: "));
    CHECK(has(explained(world), "of the built-in table"));
    // All memory of threads can be stored to: a long reduce is shared by all ranks. That of processes cannot.
    std::string const shared = tune::explain<contract::reduce>(world, 1 << 20).algorithm;
    CHECK(shared == "direct_two_shot");
    CHECK(tune::explain<contract::reduce, collx::selected>(world, 1 << 20).algorithm == shared);
    using over_shm = tune::table_of<contract::reduce, collx::transport::shm::endpoint>;
    CHECK(std::is_same_v<over_shm, tune::mapped_table<contract::reduce>>);
  });
}

TEST_CASE("a table goes before the built-in one; its first row that holds and can wins") {
  on_rank_0(3, [](world_type& world) {
    tune::settings const said = with_table(
        R"({"collective": "broadcast", "algorithm": "chain"},
           {"collective": "all_reduce", "algorithm": "ring", "transport": "shm"},
           {"collective": "all_reduce", "algorithm": "ring", "ranks_max": 2},
           {"collective": "all_reduce", "algorithm": "recursive_doubling", "memory": "symmetric"},
           {"collective": "all_reduce", "algorithm": "ring", "bytes_max": 4096})");
    world.tuning(&said);
    auto const why = tune::explain<contract::all_reduce, collx::selected>(world, 4096);
    CHECK(std::string(why.algorithm) == "ring");
    CHECK(why.from == tune::source::loaded_table);
    CHECK(why.row == 4);
    CHECK(has(why.text(), "ring, by rule 5 of my.json"));
    // The same bytes in memory that peers reach, more bytes, and an operator that ring does not suit.
    using tune::memory_kind;
    auto const symmetric =
        tune::explain<contract::all_reduce, collx::selected>(world, 4096, collx::sum, memory_kind::symmetric);
    CHECK(std::string(symmetric.algorithm) == "recursive_doubling");
    CHECK(tune::explain<contract::all_reduce, collx::selected>(world, 4097).from ==
          tune::source::built_in_table);
    CHECK(tune::explain<contract::all_reduce, collx::selected>(world, 4096, left_first{}).from ==
          tune::source::built_in_table);
    world.tuning(nullptr);
  });
}

TEST_CASE("code goes before a table") {
  on_rank_0(3, [](world_type& world) {
    tune::settings said = with_table(R"({"collective": "all_reduce", "algorithm": "recursive_doubling"})");
    world.tuning(&said);
    CHECK(has(explained(world), "recursive_doubling, by rule 1 of my.json"));
    said.use("all_reduce", "ring");
    CHECK(has(explained(world), "ring, by the code (tune::settings of the communicator)"));
    world.tuning(nullptr);
  });
}

TEST_CASE("the cost model decides among a list of which the built-in table names none, and shows why") {
  using few = tune::selected_from<collx::type_list<algo::recursive_doubling, algo::ring>>;
  on_rank_0(4, [](world_type& world) {
    auto const small = tune::explain<contract::all_reduce, few>(world, 8);
    CHECK(small.from == tune::source::cost_model);
    CHECK(std::string(small.algorithm) == "recursive_doubling");
    CHECK(has(small.text(), "by the cost model, which expects recursive_doubling "));
    auto const large = tune::explain<contract::all_reduce, few>(world, 1 << 24);
    CHECK(std::string(large.algorithm) == "ring");
    // Parameters from a table: with free bytes, rounds alone count.
    tune::settings said;
    said.table(tune::parse(R"({"models": [{"transport": "threads", "round_us": 1}]})", "free.json"));
    world.tuning(&said);
    auto const fitted = tune::explain<contract::all_reduce, few>(world, 1 << 24);
    CHECK(std::string(fitted.algorithm) == "recursive_doubling");
    CHECK(has(fitted.text(), "expects recursive_doubling 2 us, ring 6 us"));
    world.tuning(nullptr);
  });
}

TEST_CASE("of algorithms that should take equally long the cost model takes a direct one") {
  using endpoint = collx::transport::threads::endpoint;
  tune::word const threads("threads");
  // Of two ranks, every tree and every ring sends the messages that a direct one sends.
  for (std::size_t const bytes : {8u, 1u << 20}) {
    tune::question const asked{bytes, 2, &threads, tune::memory_kind::symmetric};
    auto const taken = [&]<class Contract>() -> std::string {
      return tune::cheapest(tune::detail::selection_of<algo::all, Contract, endpoint, true>, asked, nullptr)
          .named.text;
    };
    CHECK(taken.operator()<contract::broadcast>() == "direct_one_shot");
    CHECK(taken.operator()<contract::all_to_all>() == "direct_one_shot");
    CHECK(taken.operator()<contract::scan>() == "direct_one_shot");
  }
}

TEST_CASE("a name that cannot be obeyed is refused, with the names that can") {
  on_rank_0(3, [](world_type& world) {
    tune::settings said;
    world.tuning(&said);
    std::vector<float> values(8, 1.0F);
    auto const refused = [&](char const* algorithm, auto op) {
      said.use("all_reduce", algorithm);
      CHECK(collx::try_all_reduce<collx::selected>(world, values, op) == collx::status::bad_argument);
      std::string blocking, started;
      try {
        collx::all_reduce<collx::selected>(world, values, op);
      } catch (collx::error const& problem) {
        blocking = problem.what();
      }
      try {
        collx::start::all_reduce<collx::selected>(world, values, op).wait();
      } catch (collx::error const& problem) {
        started = problem.what();
      }
      CHECK(blocking == started);
      auto const asked = tune::explain<contract::all_reduce, collx::selected>(world, 32, op);
      CHECK(std::string(asked.algorithm).empty());
      CHECK(has(blocking, asked.text()));
      return blocking;
    };
    std::string const unknown = refused("rnig", collx::sum);
    CHECK(has(unknown,
              "all_reduce: the code (tune::settings of the communicator) names 'rnig', which is no "
              "algorithm of this collective here; say one of: "));
    CHECK(has(unknown, " ring"));
    CHECK(has(refused("chain", collx::sum), "'chain', which is no algorithm of this collective here"));
    std::string const order = refused("ring", left_first{});
    CHECK(has(order, "does not combine in rank order, and this operator is not commutative; say one of:"));
    CHECK_FALSE(has(order.substr(order.find("say one of:")), " ring"));
    world.tuning(nullptr);
  });
}

TEST_CASE("a rule with a name that nobody knows is an error, and not passed over") {
  on_rank_0(2, [](world_type& world) {
    tune::settings const said = with_table(R"({"collective": "all_reduce", "algorithm": "rnig"})");
    world.tuning(&said);
    CHECK(has(explained(world), "all_reduce: rule 1 of my.json names 'rnig', which is no algorithm"));
    world.tuning(nullptr);
  });
}

TEST_CASE("a table of types: its rows, then the built-in table") {
  on_rank_0(5, [](world_type& world) {
    CHECK(has(tune::explain<contract::broadcast, my_table>(world, 8).text(),
              "chain, by rule 3 of the table given in the call"));
    auto const none = tune::explain<contract::all_reduce, my_table>(world, 4096);
    CHECK(none.from == tune::source::built_in_table);
    CHECK(has(none.text(), "no rule of the table given in the call holds"));
    auto const first = tune::explain<contract::all_reduce, my_table>(world, 64);
    CHECK(std::string(first.algorithm) == "recursive_halving_doubling");
  });
}

TEST_CASE("an algorithm that is named in the call is its own reason") {
  on_rank_0(2, [](world_type& world) {
    CHECK(has(tune::explain<contract::all_reduce, algo::ring>(world, 8).text(), "ring, named in the call"));
  });
}

TEST_CASE("calls give the same result, whoever chooses") {
  watched::on_threads(3, [](world_type& world) {
    tune::settings said;
    world.tuning(&said);
    for (char const* const algorithm : {"ring", "recursive_doubling", "direct_two_shot"}) {
      said.use("all_reduce", algorithm);
      std::vector<int> values(1000, world.rank());
      collx::all_reduce<collx::selected>(world, values);
      collx::start::all_reduce<my_table>(world, values).wait();
      if (values[999] != 9) throw std::runtime_error(std::string(algorithm) + " gives another sum");
    }
    std::vector<int> sent(10, world.rank());
    collx::broadcast<collx::selected>(world, sent, 2);
    collx::broadcast<my_table>(world, sent, 2);
    if (sent[9] != 2) throw std::runtime_error("broadcast gives another value");
    collx::barrier<collx::selected>(world);
    collx::barrier<my_table>(world);
    world.tuning(nullptr);
  });
}

TEST_CASE("counts are remembered for several groups, and are those of the shape that is asked") {
  using counted =
      tune::detail::counted_shapes<tune::candidates<contract::all_reduce, collx::type_list<algo::ring>>>;
  for (int again = 0; again < 2; ++again)
    for (collx::rank_t size = 2; size <= 20; ++size)  // more than are remembered
      CHECK(counted::of(size)[0].far.rounds == 2 * (size - 1));
  CHECK(counted::of(20) == counted::of(20));
  CHECK(counted::of(20) != counted::of(19));
}

TEST_CASE("over messages, what goes to one rank or from rank to rank counts one after the other") {
  using endpoint = collx::transport::mailbox::endpoint;
  auto const chosen = []<class Contract>(std::size_t bytes, std::size_t staging) {
    auto const& all = tune::detail::selection_of<algo::all, Contract, endpoint, true>;
    tune::question const q{
        .bytes = bytes, .ranks = 16, .transport = &tune::transport_of<endpoint>, .staging_bytes = staging};
    return std::string(tune::decide(all, q, nullptr).named.text);
  };
  std::size_t const whole = tune::any_bytes;
  CHECK(chosen.operator()<contract::reduce>(8, whole) == "direct_one_shot");
  CHECK(chosen.operator()<contract::reduce>(16384, whole) == "knomial_tree_4");  // 15 vectors into one root
  CHECK(chosen.operator()<contract::reduce>(1 << 20, whole) == "recursive_halving_doubling");
  CHECK(chosen.operator()<contract::broadcast>(1 << 20, whole) == "recursive_halving_doubling");
  // In many fragments a chain costs each rank one vector, and its length once.
  CHECK(chosen.operator()<contract::broadcast>(1 << 26, 1 << 20) == "pipelined_chain_8");
}
