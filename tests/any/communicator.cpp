// SPDX-License-Identifier: Apache-2.0
// The type-erased communicator gives, bit for bit, what the static collectives give: every element type and
// operator, every collective and algorithm, blocking and started. And says what it cannot do. The matrix
// (any/matrix.hpp) on threads is here, too: it takes what is compiled for the others.
// ctest: TIMEOUT 300
// ctest: PROCESSORS 2
// thread sanitizer: no, takes minutes, for code that any/calls.cpp runs under it
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "any/matrix.hpp"
#include "asked_for.hpp"
#include "collx/any_communicator.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/core/random.hpp"
#include "collx/make_any.hpp"
#include "require.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::any_call;
using collx::collective_kind;
using collx::data_type;
using collx::rank_t;
using collx::reduce_op;
using collx::status;

// Small whole numbers that every type holds, different on every rank.
template <class T>
std::vector<T> values(std::size_t count, rank_t rank) {
  collx::replayable_random random(static_cast<std::uint64_t>(rank) + 5);
  std::vector<T> v(count);
  for (T& each : v) each = static_cast<T>(static_cast<float>(1 + random.below(3)));
  return v;
}

template <class T>
bool same(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

using one_shot = collx::algo::direct_one_shot;

template <class Types>
collx::any_communicator any_of(auto& comm) {
  return collx::make_any<Types, collx::any_ops, sample::algorithms>(comm.split(0, comm.rank()));
}

// all_reduce with every operator, on one type.
template <class Transport>
struct every_operator {
  collx::communicator<Transport>& comm;
  collx::any_communicator& any;

  template <class T>
  void operator()() {
    collx::any_ops::for_each([&]<class Op>() {
      if constexpr (collx::reduction<Op, T>) compare<T, Op>();
    });
  }

  template <class T, class Op>
  void compare() {
    auto const type = static_cast<data_type>(collx::detail::place_in<T>(collx::any_types{}));
    auto const op = static_cast<reduce_op>(collx::detail::place_in<Op>(collx::any_ops{}));
    require(collx::bytes_of(type) == sizeof(T), "bytes_of");
    std::string const what = std::string(name(op)) + " on " + name(type);
    for (std::size_t const count : {std::size_t{1}, std::size_t{77}}) {
      auto const in = values<T>(count, comm.rank());
      std::vector<T> out(count), erased(count);
      collx::all_reduce<one_shot>(comm, in, out, Op{});
      any.all_reduce(in.data(), erased.data(), count, type, op, {.algorithm = "direct_one_shot"});
      require(same(out, erased), what);
      erased = in;
      any.start(any_call::all_reduce(erased.data(), erased.data(), count, type, op)).wait();
      require(same(out, erased), what + ", started, in place, the library's choice");
    }
  }
};

// Every collective with every algorithm that it names, whose results are known: sums of whole numbers.
void every_collective(collx::any_communicator& any, std::size_t count) {
  rank_t const n = any.size(), me = any.rank(), root = n / 2;
  auto const ranks = static_cast<std::size_t>(n);
  auto const at = [&](rank_t r, std::size_t i) {
    return static_cast<double>(r * 1000) + static_cast<double>(i % 97);
  };
  auto const sum_to = [&](rank_t end, std::size_t i) {
    double total = 0;
    for (rank_t r = 0; r < end; ++r) total += at(r, i);
    return total;
  };
  for (std::size_t k = 0; k <= static_cast<std::size_t>(collective_kind::barrier); ++k) {
    auto const kind = static_cast<collective_kind>(k);
    require(any.algorithms(kind).size() >= 2, "an algorithm besides the library's choice");
    for (char const* const algorithm : any.algorithms(kind)) {
      bool const gives_all = kind == collective_kind::reduce_scatter || kind == collective_kind::all_to_all ||
                             kind == collective_kind::scatter;
      bool const takes_all = kind == collective_kind::all_gather || kind == collective_kind::all_to_all ||
                             kind == collective_kind::gather;
      std::vector<double> in(count * (gives_all ? ranks : 1)), out(count * (takes_all ? ranks : 1), -1);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = at(me, i);
      any_call call{kind,           in.data(), out.data(), count, data_type::float64,
                    reduce_op::sum, root,      {algorithm}};
      status const outcome = any.try_run(call);
      if (outcome == status::not_supported) continue;  // for so many ranks
      require(outcome == status::ok, "ok");
      auto const expected = [&](std::size_t i) {
        auto const block = static_cast<rank_t>(i / count);
        std::size_t const own = static_cast<std::size_t>(me) * count;
        switch (kind) {
          case collective_kind::all_reduce: return sum_to(n, i);
          case collective_kind::reduce_scatter: return sum_to(n, own + i);
          case collective_kind::all_gather: return at(block, i % count);
          case collective_kind::all_to_all: return at(block, own + i % count);
          case collective_kind::broadcast: return at(root, i);
          case collective_kind::reduce: return me == root ? sum_to(n, i) : -1;
          case collective_kind::gather: return me == root ? at(block, i % count) : -1;
          case collective_kind::scatter: return at(root, own + i);
          case collective_kind::scan: return sum_to(me + 1, i);
          case collective_kind::exclusive_scan: return me == 0 ? -1 : sum_to(me, i);
          default: break;  // a barrier
        }
        return -1.0;
      };
      for (int round = 0; round < 2; ++round) {
        // The words of a failure are put together when there is one: they take longer than all the rest.
        for (std::size_t i = 0; i < out.size(); ++i)
          if (out[i] != expected(i))
            require(false, std::to_string(k) + " " + algorithm + ", element " + std::to_string(i));
        if (round != 0) continue;
        std::fill(out.begin(), out.end(), -1.0);
        auto request = any.start(call);
        collx::any_request moved = std::move(request);
        while (!moved.test()) std::this_thread::yield();
        moved.wait();
      }
    }
  }
}

template <class Call>
void refuses(status code, char const* what, Call const& call) {
  try {
    call();
  } catch (collx::error const& refused) {
    require(refused.code() == code && std::string(refused.what()).find(what) != std::string::npos,
            refused.what());
    return;
  }
  throw std::runtime_error(std::string("accepted: ") + what);
}

// `types`: how many of them each algorithm meets. Returns how many calls that were, counted on every rank.
std::size_t walk_on_threads(rank_t size, std::size_t types) {
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  std::atomic<std::size_t> done{0};
  watched::on_threads(size, [&](auto& comm) { done += any_matrix::walk_on(comm, types); },
                      {.staging_bytes = 64 * 1024});
  return done;
}

// Of 1 to 17 threads, which take seconds each: all but these are walked whenever tests are run.
constexpr bool is_left_to_wide(rank_t size) { return size > 5 && size < 16 && size != 8 && size != 12; }

}  // namespace

TEST_CASE("any_communicator: bit for bit what the static all_reduce gives, for all types and operators") {
  for (rank_t const size : {1, 3})
    watched::on_threads(size, [](auto& comm) {
      using types = sample::types_of<collx::any_types>;
      collx::any_communicator any = any_of<types>(comm);
      types::for_each(every_operator<collx::transport::threads>{comm, any});
    });
}

TEST_CASE("any_communicator: every collective with every algorithm") {
  auto const rank_main = [](auto& comm) {
    using types = std::conditional_t<sample::is_sample, collx::type_list<double>, collx::any_types>;
    collx::any_communicator any = any_of<types>(comm);
    for (std::size_t const count : {std::size_t{1}, std::size_t{7}, std::size_t{9001}})
      every_collective(any, count);
    any.barrier();
    auto half = any.split(any.rank() % 2, any.rank());
    every_collective(half, 5);
  };
  for (rank_t const size : {1, 2, 3, 4, 5, 8})
    watched::on_threads(size, rank_main, {.staging_bytes = 64 * 1024});
}

TEST_CASE("any_communicator: every algorithm with every type on 1 to 5, 8, 12, 16 and 17 threads") {
  std::size_t done = 0;
  for (rank_t size = 1; size <= 17; ++size)
    if (sample::takes(size) && !is_left_to_wide(size)) done += walk_on_threads(size, collx::data_type_count);
  MESSAGE("collectives, counted on every rank: " << done << ", seed " << any_matrix::seed());
  CHECK(done > 1'000);
}

TEST_CASE("wide: any_communicator, every algorithm on 6 to 33 threads") {
  if (!is_wide_asked_for()) return;
  for (rank_t size = 1; size <= 17; ++size)
    if (is_left_to_wide(size) && takes_wide(size)) CHECK(walk_on_threads(size, collx::data_type_count) > 0);
  for (rank_t size = 18; size <= any_matrix::size_max; ++size)
    if (takes_wide(size)) CHECK(walk_on_threads(size, any_matrix::types_of_many_ranks) > 0);
}

TEST_CASE("any_communicator: what it cannot do, it says") {
  watched::on_threads(2, [](auto& comm) {
    collx::any_communicator any =
        collx::make_any<collx::type_list<float, int>,
                        collx::type_list<collx::sum_t, collx::avg_t, collx::bit_or_t>,
                        collx::type_list<collx::algo::ring, one_shot>>(comm.split(0, comm.rank()));
    std::vector<float> v(8, 1.0f);
    auto const reduce = [&](data_type type, reduce_op op, char const* algorithm) {
      any.all_reduce(v.data(), v.data(), 4, type, op, {.algorithm = algorithm});
    };
    refuses(status::bad_argument, "\"rings\"; those that there are: automatic ring direct_one_shot",
            [&] { reduce(data_type::float32, reduce_op::sum, "rings"); });
    refuses(status::not_supported, "all_reduce: max on float32 was not compiled",
            [&] { reduce(data_type::float32, reduce_op::max, nullptr); });
    refuses(status::not_supported, "bit_or on float32",
            [&] { reduce(data_type::float32, reduce_op::bit_or, "ring"); });
    refuses(status::not_supported, "sum on float64",
            [&] { reduce(data_type::float64, reduce_op::sum, nullptr); });
    refuses(status::bad_argument, "no value of its enum",
            [&] { reduce(static_cast<data_type>(99), reduce_op::sum, nullptr); });
    refuses(status::bad_argument, "avg has no meaning in a scan",
            [&] { any.scan(v.data(), v.data(), 4, data_type::float32, reduce_op::avg); });
    refuses(status::bad_argument, ": the root", [&] { any.broadcast(v.data(), 4, data_type::float64, 2); });
    refuses(status::bad_argument, "overlap",
            [&] { (void)any.start(any_call::all_reduce(v.data(), v.data() + 1, 4, data_type::float32)); });
    require(any.try_run(any_call::all_reduce(v.data(), v.data(), 4, data_type::float32, reduce_op::sum,
                                             {.algorithm = "no"})) == status::bad_argument,
            "try_run");
    any.broadcast(v.data(), 4, data_type::bfloat16);  // what only moves needs no type compiled
    reduce(data_type::float32, reduce_op::sum, "ring");
    require(v[0] == 2.0f, "and goes on");

    any.checking(collx::checking_level::communication);
    status const outcome = any.try_run(
        any_call::all_reduce(v.data(), v.data(), 4, any.rank() == 0 ? data_type::float32 : data_type::int32));
    require(outcome == status::mismatch && std::string(any.failure().differs_in) == "element type",
            "checking");
  });
}
