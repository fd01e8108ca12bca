// SPDX-License-Identifier: Apache-2.0
// All arithmetic element types, all operators of the library, structs of odd sizes, lambdas and
// accumulate types through whole collectives. What the right values are is computed here in plain long long
// and long double.
#include <numeric>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/scan.hpp"
#include "collx/core/array.hpp"
#include "require.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::threads>;

// Small enough that no type overflows over five ranks; negative ones where the type has them.
template <class T>
long long value(rank_t rank, std::size_t i) {
  auto const mixed = static_cast<long long>((static_cast<std::size_t>(rank) * 7 + i * 3) % 5);
  if constexpr (std::is_same_v<T, bool>) return mixed == 0;
  else if constexpr (std::is_signed_v<T>) return mixed - 2;
  else return mixed;
}

long double fold(std::string const& op, std::vector<long long> const& all) {
  long long total = all[0];
  for (std::size_t r = 1; r < all.size(); ++r) {
    long long const next = all[r];
    if (op == "sum" || op == "avg") total += next;
    if (op == "prod") total *= next;
    if (op == "min") total = std::min(total, next);
    if (op == "max") total = std::max(total, next);
    if (op == "bit_and") total &= next;
    if (op == "bit_or") total |= next;
    if (op == "bit_xor") total ^= next;
    if (op == "logical_and") total = total && next;
    if (op == "logical_or") total = total || next;
  }
  return static_cast<long double>(total);
}

template <class T, class Op>
T expected(std::vector<long long> const& all) {
  std::string const op = Op::name;
  long double const total = fold(op, all);
  if (op != "avg") return static_cast<T>(total);
  auto const size = static_cast<long double>(all.size());
  // Floats divide; integers divide toward zero, as the conversion does.
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(total) / static_cast<T>(size);
  else return static_cast<T>(total / size);
}

template <class T, class Op, class Algorithm>
void check_one(communicator& comm, std::size_t count) {
  std::vector<long long> of_ranks(static_cast<std::size_t>(comm.size()));
  // vector<bool> is no range of bool.
  collx::array<T> in(count), out(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<T>(value<T>(comm.rank(), i));
  collx::all_reduce<Algorithm>(comm, in, out, Op{});
  for (std::size_t i = 0; i < count; ++i) {
    for (rank_t r = 0; r < comm.size(); ++r) of_ranks[static_cast<std::size_t>(r)] = value<T>(r, i);
    if (out[i] != expected<T, Op>(of_ranks))
      throw std::runtime_error(std::string(Op::name) + " of " + typeid(T).name() + ", " +
                               std::to_string(comm.size()) + " ranks, element " + std::to_string(i) + " of " +
                               std::to_string(count) + ": is " + std::to_string(out[i]) + ", should be " +
                               std::to_string(expected<T, Op>(of_ranks)));
  }
}

template <class T, class Op, class Algorithm = collx::algo::direct_two_shot>
void check(communicator& comm) {
  for (std::size_t const count : {1u, 61u, 700u}) check_one<T, Op, Algorithm>(comm, count);
}

// Which operator meets which type is decided in device/ and op/, and tested there for all of them;
// here every type goes through a collective, and every operator does with a type of each kind.
template <class T>
void check_some(communicator& comm) {
  check<T, collx::sum_t, collx::algo::ring>(comm);
  check<T, collx::max_t>(comm);
}

template <class T>
void check_all(communicator& comm) {
  check<T, collx::sum_t>(comm);
  check<T, collx::prod_t>(comm);
  check<T, collx::min_t>(comm);
  check<T, collx::max_t>(comm);
  check<T, collx::logical_and_t>(comm);
  check<T, collx::logical_or_t>(comm);
  check<T, collx::avg_t, collx::algo::recursive_halving_doubling>(comm);
  if constexpr (std::is_integral_v<T>) {
    check<T, collx::bit_and_t>(comm);
    check<T, collx::bit_or_t>(comm);
    check<T, collx::bit_xor_t>(comm);
  }
}

template <class F>
void on_ranks(rank_t size, F const& f) {
  watched::on_threads(size, [&](communicator& comm) { f(comm); });
}

int added(int a, int b) { return a + b; }

}  // namespace

TEST_CASE("all arithmetic types, summed and compared") {
  for (rank_t const size : {1, 2, 3, 5})
    on_ranks(size, [](communicator& comm) {
      [&]<class... Ts>(collx::type_list<Ts...>) {
        (check_some<Ts>(comm), ...);
      }(collx::type_list<bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                         unsigned long, long long, unsigned long long, float, double, long double>{});
    });
}

TEST_CASE("all operators, on a small, a signed and a floating type") {
  for (rank_t const size : {1, 2, 3, 5})
    on_ranks(size, [](communicator& comm) {
      check_all<unsigned char>(comm);
      check_all<int>(comm);
      check_all<double>(comm);
    });
}

TEST_CASE("an average is divided once, whatever the algorithm, and only where the result is complete") {
  on_ranks(5, [](communicator& comm) {
    auto const average_with = [&]<class Algorithm, class Contract, class Schedule>() {
      // 0 .. 4 average to 2; dividing twice, or partial sums, would give something else.
      std::vector<double> values(33, comm.rank());
      if constexpr (std::is_same_v<Contract, collx::contract::all_reduce>) {
        collx::all_reduce<Algorithm>(comm, values, collx::avg);
        require(values == std::vector<double>(33, 2.0), Algorithm::name);
      } else {
        collx::reduce<Algorithm>(comm, values, collx::avg, 3);
        require(values == std::vector<double>(33, comm.rank() == 3 ? 2.0 : comm.rank()), Algorithm::name);
      }
    };
    collx::for_each_schedule<sample::algorithms,
                             collx::type_list<collx::contract::all_reduce, collx::contract::reduce>>(
        average_with);
  });
}

TEST_CASE("lambdas with captures are operators") {
  on_ranks(3, [](communicator& comm) {
    int modulus = 97;
    std::vector<int> values(50);
    std::iota(values.begin(), values.end(), comm.rank() * 50);
    collx::all_reduce(comm, values, [modulus](int a, int b) { return (a + b) % modulus; });
    for (int i = 0; i < 50; ++i)
      require(values[static_cast<std::size_t>(i)] == (3 * i + 150) % modulus, "lambda");
  });
}

TEST_CASE("functions, and pointers to them, are operators") {
  on_ranks(3, [](communicator& comm) {
    std::vector<int> const mine(50, comm.rank() + 1);
    std::vector<int> out = mine;
    collx::all_reduce(comm, out, added);
    require(out == std::vector<int>(50, 6), "a function");
    collx::start::all_reduce(comm, mine, out, &added).wait();
    require(out == std::vector<int>(50, 6), "a pointer to it");
    collx::scan(comm, mine, out, collx::ordered(added));
    require(out == std::vector<int>(50, (comm.rank() + 1) * (comm.rank() + 2) / 2), "a wrapped one");
  });
}

TEST_CASE(
    "a matrix product, which does not commute, comes out in rank order on every algorithm that keeps it") {
  struct matrix {
    std::int64_t m[4];
    bool operator==(matrix const&) const = default;
  };
  static constexpr auto product = collx::ordered([](matrix const& x, matrix const& y) {
    return matrix{{x.m[0] * y.m[0] + x.m[1] * y.m[2], x.m[0] * y.m[1] + x.m[1] * y.m[3],
                   x.m[2] * y.m[0] + x.m[3] * y.m[2], x.m[2] * y.m[1] + x.m[3] * y.m[3]}};
  });
  for (rank_t const size : {2, 3, 5, 7})
    on_ranks(size, [](communicator& comm) {
      auto const factor = [](rank_t r) { return matrix{{1, r + 1, r % 2, 1}}; };
      matrix total = factor(0);
      for (rank_t r = 1; r < comm.size(); ++r) total = product(total, factor(r));
      auto const multiply_with = [&]<class Algorithm, class Contract, class Schedule>() {
        if constexpr (collx::keeps_rank_order<Schedule>()) {
          std::vector<matrix> values(20, factor(comm.rank()));
          if constexpr (std::is_same_v<Contract, collx::contract::all_reduce>) {
            collx::all_reduce<Algorithm>(comm, values, product);
            require(values == std::vector<matrix>(20, total), Algorithm::name);
          } else {
            rank_t const root = comm.size() - 1;
            collx::reduce<Algorithm>(comm, values, product, root);
            if (comm.rank() == root) require(values == std::vector<matrix>(20, total), Algorithm::name);
          }
        }
      };
      collx::for_each_schedule<sample::algorithms,
                               collx::type_list<collx::contract::all_reduce, collx::contract::reduce>>(
          multiply_with);
      // And where the library chooses.
      std::vector<matrix> values(20, factor(comm.rank()));
      collx::all_reduce(comm, values, product);
      require(values == std::vector<matrix>(20, total), "automatic");
    });
}

TEST_CASE("structs of sizes that divide no cache line") {
  struct colour {
    unsigned char r, g, b;
    bool operator==(colour const&) const = default;
  };
  struct large {
    int values[750];
  };
  on_ranks(5, [](communicator& comm) {
    auto const brighter = [](colour x, colour y) {
      return colour{std::max(x.r, y.r), std::max(x.g, y.g), std::max(x.b, y.b)};
    };
    for (std::size_t const count : {1u, 5u, 3001u}) {
      auto const level = static_cast<unsigned char>(comm.rank());
      std::vector<colour> pixels(count, colour{level, static_cast<unsigned char>(4 - level), 7});
      collx::all_reduce<collx::algo::ring>(comm, pixels, brighter);
      require(pixels == std::vector<colour>(count, {4, 4, 7}), "colour");
    }
    auto const add = [](large const& x, large const& y) {
      large total;
      for (int i = 0; i < 750; ++i) total.values[i] = x.values[i] + y.values[i];
      return total;
    };
    std::vector<large> big(7);
    for (large& each : big) std::fill(std::begin(each.values), std::end(each.values), comm.rank());
    collx::all_reduce<collx::algo::direct_two_shot>(comm, big, add);
    for (large const& each : big) require(each.values[0] == 10 && each.values[749] == 10, "large");
  });
}

TEST_CASE("accumulate_in: a fan-in holds its partial results in the wider type") {
  on_ranks(5, [](communicator& comm) {
    // 2^24 + 1 is no float: added one by one in float, the ones are lost.
    std::vector<float> values(40, comm.rank() == 0 ? 16777216.0f : 1.0f);
    std::vector<float> narrow(40), wide(40);
    collx::all_reduce<collx::algo::direct_two_shot>(comm, values, narrow, collx::sum);
    collx::all_reduce<collx::algo::direct_two_shot>(comm, values, wide,
                                                    collx::accumulate_in<double>(collx::sum));
    require(narrow == std::vector<float>(40, 16777216.0f), "float");
    require(wide == std::vector<float>(40, 16777220.0f), "double");
    collx::all_reduce<collx::algo::direct_one_shot>(comm, values, wide,
                                                    collx::accumulate_in<double>(collx::avg));
    require(wide == std::vector<float>(40, static_cast<float>(16777220.0 / 5)), "average in double");
    // Around a ring values travel as floats: how much is lost depends on where the sum began.
    collx::all_reduce<collx::algo::ring>(comm, values, wide, collx::accumulate_in<double>(collx::sum));
    for (float const sum : wide) require(sum >= 16777216.0f && sum <= 16777220.0f, "ring");
  });
}
