// SPDX-License-Identifier: Apache-2.0
// Small floats and complex numbers through every collective that combines, with every algorithm.
// Values are small integers, which no format and no order rounds; where rounding is the subject, the
// sums are computed here in float.
// sanitizers: no, compiles half a minute more, for code that types.cpp runs under them
#include <cmath>
#include <complex>
#include <functional>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/threads.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::transport::shm, collx::transport::threads;
using communicator = collx::communicator<threads>;
using combining =
    collx::type_list<collx::contract::all_reduce, collx::contract::reduce_scatter, collx::contract::reduce,
                     collx::contract::scan, collx::contract::exclusive_scan>;

constexpr std::size_t count = 333;

template <class T>
struct number {
  static T of(int n) { return T(static_cast<float>(n)); }
};
template <class R>
struct number<std::complex<R>> {
  static std::complex<R> of(int n) { return {static_cast<R>(n), static_cast<R>(-2 * n)}; }
};

// What rank r puts into element i.
int digit(rank_t r, std::size_t i) { return static_cast<int>((static_cast<std::size_t>(r) * 3 + i) % 4) - 1; }

// A schedule behind a pointer: what is done with all of them is compiled once for an element type.
template <class T, class Transport>
struct entry {
  char const* algorithm;
  oracle::collective const* collective;
  bool (*supports)(collx::shape);
  void (*call)(collx::communicator<Transport>&, rank_t root, std::span<T const> in, std::span<T> out);
};

template <class T, class Op, class Transport>
std::vector<entry<T, Transport>> const& every_schedule() {
  static auto const found = [] {
    std::vector<entry<T, Transport>> list;
    collx::for_each_schedule<sample::algorithms, combining>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          list.push_back({Algorithm::name, &oracle::collective_of<Contract>, &collx::supports<Schedule>,
                          [](auto& comm, rank_t root, std::span<T const> in, std::span<T> out) {
                            forms::apply_apart<forms::blocking<Algorithm>, Contract>(comm, root, in, out,
                                                                                     Op{});
                          }});
        });
    return list;
  }();
  return found;
}

template <class T>
using combine = T (*)(T const&, T const&);

template <class T>
bool result_is_right(oracle::collective const& what, collx::problem const& p, std::span<T const> out,
                     combine<T> op) {
  rank_t const ranks = what.contributors(p);
  collx::block_window const window = what.output(p);
  std::size_t const first = static_cast<std::size_t>(window.first) * count;
  for (std::size_t i = 0; i < static_cast<std::size_t>(window.count) * count; ++i) {
    T total = number<T>::of(digit(0, first + i));
    for (rank_t r = 1; r < ranks; ++r) total = op(total, number<T>::of(digit(r, first + i)));
    if (out[i] != total) return false;
  }
  return true;
}

template <class T, class Transport>
void call_and_check(collx::communicator<Transport>& comm, entry<T, Transport> const& called, combine<T> op) {
  oracle::collective const& what = *called.collective;
  if (!called.supports(comm.size())) return;
  collx::problem const p{comm.rank(), comm.size(), what.rooted ? comm.size() / 2 : 0};
  // A vector that is not in blocks is passed by every rank, whether it gets something or not.
  auto const length = [&](collx::block_window const& of) {
    return static_cast<std::size_t>(what.sharded ? of.count : 1) * count;
  };
  std::vector<T> in(length(what.input(p))), out(length(what.output(p)));
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = number<T>::of(digit(comm.rank(), i));
  called.call(comm, p.root, in, out);
  if (!result_is_right<T>(what, p, out, op))
    throw std::runtime_error(std::string(what.name) + "<" + called.algorithm + ">");
}

void on_ranks(rank_t size, std::function<void(communicator&)> const& f) { watched::on_threads(size, f); }

// By the language's own operators, where there are such.
template <class T, class Op>
T by_the_book(T const& a, T const& b) {
  if constexpr (std::is_same_v<Op, collx::sum_t>) return static_cast<T>(a + b);
  else if constexpr (std::is_same_v<Op, collx::prod_t>) return static_cast<T>(a * b);
  else return static_cast<T>(Op{}(a, b));
}

template <class T, class Op, class Transport>
void check_every_schedule(collx::communicator<Transport>& comm) {
  for (entry<T, Transport> const& each : every_schedule<T, Op, Transport>())
    call_and_check<T>(comm, each, by_the_book<T, Op>);
}

template <class T, class... Ops>
void check(std::initializer_list<rank_t> sizes = {1, 2, 3, 5, 8}) {
  for (rank_t const size : sizes)
    on_ranks(size, [](communicator& comm) { (check_every_schedule<T, Ops>(comm), ...); });
}

}  // namespace

TEST_CASE("float16 through every algorithm of every collective that combines") {
  check<collx::float16, collx::sum_t, collx::prod_t, collx::max_t>();
}

TEST_CASE("bfloat16 through every algorithm of every collective that combines") {
  check<collx::bfloat16, collx::sum_t, collx::min_t>();
}

TEST_CASE("floats of 8 bits through every algorithm of every collective that combines") {
  check<collx::float8_e4m3, collx::sum_t, collx::max_t>();
  check<collx::float8_e5m2, collx::sum_t>();
}

TEST_CASE("complex numbers are added and multiplied by every algorithm") {
  check<std::complex<float>, collx::sum_t, collx::prod_t>();
  // Of all numbers of ranks, once.
  check<std::complex<double>, collx::sum_t, collx::prod_t>(
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
}

TEST_CASE("complex numbers are added and multiplied by every algorithm on 2 to 8 processes") {
  for (rank_t size = 2; size <= 8; ++size)
    for (int const code : watched::on_processes(size, [](collx::communicator<shm>& comm) {
           check_every_schedule<std::complex<float>, collx::sum_t>(comm);
           check_every_schedule<std::complex<double>, collx::sum_t>(comm);
           check_every_schedule<std::complex<double>, collx::prod_t>(comm);
         }))
      CHECK(code == 0);
}

TEST_CASE("an average of complex numbers divides each part") {
  using number = std::complex<double>;
  double const much = std::numeric_limits<double>::infinity();
  number const half = collx::avg.finish(number(much, 2.0), 2);
  CHECK(half.real() == much);
  CHECK(half.imag() == 1.0);
  CHECK(std::signbit(collx::avg.finish(number(1.0, -0.0), 3).imag()));
}

TEST_CASE("an average of complex numbers is divided once") {
  on_ranks(4, [](communicator& comm) {
    std::vector<std::complex<double>> v(20, {1.0 * comm.rank(), -2.0 * comm.rank()});
    collx::all_reduce(comm, v, collx::avg);
    if (v != std::vector<std::complex<double>>(20, {1.5, -3.0})) throw std::runtime_error("avg");
  });
}

TEST_CASE("a fan-in of bfloat16 is added in float and rounded once; a ring rounds at every hop") {
  on_ranks(5, [](communicator& comm) {
    using collx::bfloat16;
    // 256 + 1 is no bfloat16.
    std::vector<bfloat16> values(40, bfloat16(comm.rank() == 0 ? 256 : 1)), once(40), mean(40);
    collx::all_reduce<collx::algo::direct_two_shot>(comm, values, once, collx::sum);
    collx::all_reduce<collx::algo::direct_one_shot>(comm, values, mean, collx::avg);
    for (bfloat16 const sum : once)
      if (sum != 260.0f) throw std::runtime_error("direct_two_shot");
    for (bfloat16 const each : mean)
      if (each != static_cast<float>(bfloat16(260.0f / 5))) throw std::runtime_error("avg");
    collx::all_reduce<collx::algo::ring>(comm, values, collx::sum);
    for (bfloat16 const sum : values)
      if (sum < 256.0f || sum > 260.0f) throw std::runtime_error("ring");
  });
}
