// SPDX-License-Identifier: Apache-2.0
// The type-erased communicator: blocks of different counts, calls that are set up once, and messages between
// any ranks.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/any_communicator.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/make_any.hpp"
#include "is_sample.hpp"
#include "require.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::any_call;
using collx::any_communicator;
using collx::block_list;
using collx::collective_kind;
using collx::data_type;
using collx::rank_t;
using collx::reduce_op;
using collx::status;
using transport = counting<collx::transport::threads>;

template <class Transport>
any_communicator erased(collx::communicator<Transport> comm) {
  return collx::make_any<collx::type_list<float, std::int16_t>, collx::type_list<collx::sum_t>,
                         collx::type_list<collx::algo::ring, collx::algo::direct_one_shot>>(std::move(comm));
}

constexpr data_type type_of(float) { return data_type::float32; }
constexpr data_type type_of(std::int16_t) { return data_type::int16; }

// A buffer of a block for every rank, with gaps, the last rank's first; one block is empty.
template <class T>
struct uneven {
  std::vector<std::size_t> counts, offsets;
  std::vector<T> data;

  uneven(rank_t size, std::size_t step) {
    std::size_t end = 1;
    counts.resize(static_cast<std::size_t>(size));
    offsets.resize(counts.size());
    for (std::size_t r = counts.size(); r-- > 0;) {
      counts[r] = r == 1 ? 0 : (r + 2) * step;
      offsets[r] = end;
      end += counts[r] + 2;
    }
    data.assign(end, T(-1));
  }
  [[nodiscard]] block_list list() const { return {counts, offsets}; }
  [[nodiscard]] std::size_t count(rank_t r) const { return counts[static_cast<std::size_t>(r)]; }
  template <class F>
  void each(F const& f) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t i = 0; i < counts[r]; ++i) f(static_cast<rank_t>(r), i, data[offsets[r] + i]);
  }
};

template <class T>
T value(rank_t from, rank_t to, std::size_t i) {
  return static_cast<T>(100 * from + 10 * to + static_cast<rank_t>(i % 7));
}

// Until what was started is done.
template <class Started>
void finish(Started& started) {
  while (!started.test()) std::this_thread::yield();
}

// How many a rank sends while f runs.
template <class Endpoint, class F>
std::uint64_t messages_of(Endpoint const& endpoint, F const& f) {
  std::uint64_t const before = endpoint.messages();
  f();
  return endpoint.messages() - before;
}

// Runs the call with every algorithm, blocking, started and set up once; `check` says whether the output is
// right, and clears it.
template <class Check>
void in_every_form(any_communicator& any, any_call call, Check const& check) {
  require(any.algorithms(call.what).size() >= 2, "an algorithm besides the library's choice");
  for (char const* const algorithm : any.algorithms(call.what)) {
    call.options.algorithm = algorithm;
    any.run(call);
    check(std::string(algorithm) + ", blocking");
    auto request = any.start(call);
    finish(request);
    check(std::string(algorithm) + ", started");
    auto repeated = any.prepare(call);
    repeated.wait();  // not started: nothing to wait for
    for (int i = 0; i < 2; ++i) {
      repeated.start();
      repeated.wait();
      check(std::string(algorithm) + ", set up once");
    }
  }
}

template <class T>
void every_uneven_collective(any_communicator& any, std::size_t step) {
  rank_t const n = any.size(), me = any.rank(), root = n / 2;
  data_type const type = type_of(T{});
  uneven<T> const shape(n, step);
  std::size_t const own = shape.count(me);
  auto const verify_blocks = [&](uneven<T>& out, bool there, auto const& expected, std::string const& what) {
    out.each([&](rank_t r, std::size_t i, T& is) {
      require(is == (there ? expected(r, i) : T(-1)), what);
      is = T(-1);
    });
    for (T const each : out.data) require(each == T(-1), what + ": between blocks");
  };
  auto const verify_own = [&](std::vector<T>& out, auto const& expected, std::string const& what) {
    for (std::size_t i = 0; i < own; ++i) require(out[i] == expected(i), what);
    out.assign(own + 1, T(-1));
  };

  std::vector<T> mine(own + 1), result(own + 1, T(-1));
  for (std::size_t i = 0; i < own; ++i) mine[i] = value<T>(me, 0, i);
  uneven<T> all = shape, parts = shape;
  in_every_form(any, any_call::all_gather_v(mine.data(), all.data.data(), own, all.list(), type),
                [&](std::string const& what) {
                  verify_blocks(
                      all, true, [](rank_t r, std::size_t i) { return value<T>(r, 0, i); },
                      "all_gather_v, " + what);
                });
  in_every_form(any, any_call::gather_v(mine.data(), all.data.data(), own, all.list(), type, root),
                [&](std::string const& what) {
                  verify_blocks(
                      all, me == root, [](rank_t r, std::size_t i) { return value<T>(r, 0, i); },
                      "gather_v, " + what);
                });
  parts.each([&](rank_t r, std::size_t i, T& e) { e = value<T>(me, r, i); });
  in_every_form(any, any_call::scatter_v(parts.data.data(), result.data(), own, parts.list(), type, root),
                [&](std::string const& what) {
                  verify_own(
                      result, [&](std::size_t i) { return value<T>(root, me, i); }, "scatter_v, " + what);
                });
  in_every_form(any, any_call::reduce_scatter_v(parts.data.data(), result.data(), own, parts.list(), type),
                [&](std::string const& what) {
                  auto const total = [&](std::size_t i) {
                    T sum = 0;
                    for (rank_t r = 0; r < n; ++r) sum = static_cast<T>(sum + value<T>(r, me, i));
                    return sum;
                  };
                  verify_own(result, total, "reduce_scatter_v, " + what);
                });
  // Everybody gets as much from everybody else as its number says; packed on one side.
  std::vector<std::size_t> const from_each(static_cast<std::size_t>(n), own);
  std::vector<T> taken(own * static_cast<std::size_t>(n) + 1, T(-1));
  in_every_form(any, any_call::all_to_all_v(parts.data.data(), taken.data(), parts.list(), {from_each}, type),
                [&](std::string const& what) {
                  for (std::size_t i = 0; i + 1 < taken.size(); ++i)
                    require(taken[i] == value<T>(static_cast<rank_t>(i / own), me, i % own),
                            "all_to_all_v, " + what);
                  taken.assign(taken.size(), T(-1));
                });
}

void messages(any_communicator& any) {
  rank_t const n = any.size(), me = any.rank(), left = (me + n - 1) % n, right = (me + 1) % n;
  auto const size = data_type::float32;
  std::vector<float> const mine(3, static_cast<float>(me)), to_each{1.0f * static_cast<float>(me), -1.0f};
  std::vector<float> from_left(3), from_right(3), both(6), two(2);
  collx::any_exchange list = any.exchange(4);
  for (int round = 0; round < 3; ++round) {
    if (round == 0) {
      list.send(mine.data(), 3, size, left);
      list.send(mine.data(), 3, size, right);
      list.receive(from_left.data(), 3, size, left);
      list.receive(from_right.data(), 3, size, right);
      require(list.size() == 4, "four messages");
    }
    if (round == 0) list.run();
    else if (round == 1) list.start().wait();
    else require(list.try_run() == status::ok, "try_run");
    require(from_left[2] == static_cast<float>(left) && from_right[2] == static_cast<float>(right),
            "exchange");
    from_left.assign(3, -1.0f), from_right.assign(3, -1.0f);
  }
  list.clear();
  require(list.size() == 0, "cleared");

  std::vector<rank_t> const peers{left, right};
  collx::any_graph edges = any.graph(peers, peers);
  edges.run(any_call::all_gather(mine.data(), both.data(), 3, size));
  require(both[0] == static_cast<float>(left) && both[5] == static_cast<float>(right), "all_gather");
  edges.start(any_call::all_to_all(to_each.data(), two.data(), 1, size)).wait();
  // What my left sends to its right comes to me, unless both are the same rank.
  if (n > 2) require(two[0] == -1.0f && two[1] == static_cast<float>(right), "all_to_all");
  std::vector<std::size_t> const counts{static_cast<std::size_t>(left) + 1,
                                        static_cast<std::size_t>(right) + 1};
  std::vector<float> ones(static_cast<std::size_t>(me) + 1, 1.0f), some(counts[0] + counts[1], 0.0f);
  edges.run(any_call::all_gather_v(ones.data(), some.data(), ones.size(), {counts}, size));
  for (float const each : some) require(each == 1.0f, "all_gather_v");
  collx::any_persistent kept =
      edges.prepare(any_call::all_gather_v(ones.data(), some.data(), ones.size(), {counts}, size));
  require(std::string(kept.algorithm()) == "all at once", "algorithm");
  for (float const value : {2.0f, 3.0f}) {
    ones.assign(ones.size(), value);
    kept.start();
    kept.wait();
    for (float const each : some) require(each == value, "all_gather_v, set up once");
  }
  require(edges.try_run(any_call::barrier()) == status::bad_argument, "no barrier on a graph");
  if (n < 2) return;
  float number = static_cast<float>(me);
  if (me == 0) any.send(&number, 1, size, 1);
  if (me == 1) {
    any.receive(&number, 1, size, 0);
    require(number == 0.0f, "receive");
  }
  require(any.try_send(&number, 1, size, n) == status::bad_argument, "no such peer");
}

template <class Call>
void refuses(char const* what, Call const& call) {
  try {
    call();
  } catch (collx::error const& refused) {
    require(
        refused.code() == status::bad_argument && std::string(refused.what()).find(what) != std::string::npos,
        refused.what());
    return;
  }
  throw std::runtime_error(std::string("accepted: ") + what);
}

}  // namespace

TEST_CASE("any_communicator: blocks of different counts, calls set up once, messages between any ranks") {
  for (rank_t size = 1; size <= (sample::is_sample ? 3 : 4); ++size)
    watched::on_threads<transport>(
        size,
        [](auto& comm) {
          any_communicator any = erased(comm.split(0, comm.rank()));
          for (std::size_t const step : {std::size_t{1}, std::size_t{3001}}) {
            every_uneven_collective<float>(any, step);
            every_uneven_collective<std::int16_t>(any, step);
          }
          std::vector<float> in(5, 1.0f), out(5);
          in_every_form(any, any_call::all_reduce(in.data(), out.data(), 5, data_type::float32),
                        [&](std::string const& what) {
                          require(out[4] == static_cast<float>(comm.size()), "all_reduce, " + what);
                          out[4] = -1.0f;
                        });
          messages(any);
        },
        {.staging_bytes = 64 * 1024});
}

TEST_CASE("any_communicator: a call that is set up once is compared once, and starts send nothing more") {
  watched::on_threads<transport>(2, [](auto& comm) {
    auto own = comm.split(0, comm.rank());
    auto const& endpoint = own.engine().endpoint();  // stays where it is
    any_communicator any = erased(std::move(own));
    std::vector<float> v(4, 1.0f);
    auto const call =
        any_call::all_reduce(v.data(), v.data(), 4, data_type::float32, reduce_op::sum, {"ring"});
    auto const needed = messages_of(endpoint, [&] { any.run(call); });
    any.checking(collx::checking_level::communication);
    auto const compared = messages_of(endpoint, [&] { any.run(call); });
    auto repeated = any.prepare(call);
    require(std::string(repeated.algorithm()) == "ring", "algorithm");
    for (int i = 0; i < 3; ++i) {
      auto const sent = messages_of(endpoint, [&] {
        repeated.start();
        finish(repeated);
      });
      require(sent == needed && needed < compared, "messages of a start");
    }
    require(v[0] == 32.0f, "five times");
    std::vector<std::size_t> const counts{2, 2};
    auto const type = any.rank() == 0 ? data_type::float32 : data_type::int32;
    std::vector<float> all(4);
    status const outcome = any.try_run(any_call::all_gather_v(v.data(), all.data(), 2, {counts}, type));
    require(outcome == status::mismatch && std::string(any.failure().differs_in) == "element type",
            "types are compared");
  });
}

TEST_CASE("any_communicator: no collective sends more when it is started than when it is called") {
  constexpr rank_t size = 3;
  watched::on_threads<transport>(size, [](auto& comm) {
    auto own = comm.split(0, comm.rank());
    auto const& endpoint = own.engine().endpoint();  // stays where it is
    any_communicator any = erased(std::move(own));
    // More than fits into a line: short calls take another way.
    constexpr std::size_t block = 3000;
    std::vector<std::int16_t> in(block * size, 1), out(in.size());
    std::vector<std::size_t> const counts(size, block);
    std::uint64_t prepared = 0, sent = 0;
    for (std::size_t k = 0; k < collx::collective_kind_count; ++k) {
      any_call call{static_cast<collective_kind>(k), in.data(), out.data(), block, data_type::int16};
      call.root = size - 1;
      call.in_blocks = call.out_blocks = {counts};
      for (char const* const algorithm : any.algorithms(call.what)) {
        call.options.algorithm = algorithm;
        std::uint64_t const needed = messages_of(endpoint, [&] { any.run(call); });
        auto repeated = any.prepare(call);
        for (int i = 0; i < 3; ++i) {
          auto const again = messages_of(endpoint, [&] {
            repeated.start();
            finish(repeated);
          });
          require(again == needed, algorithm);
        }
        ++prepared;
        sent += needed;
      }
    }
    require(prepared >= collx::collective_kind_count && sent >= prepared, "algorithms and messages");
  });
}

TEST_CASE("any_communicator: wrong blocks are named, in elements") {
  watched::on_threads<transport>(2, [](auto& comm) {
    any_communicator any = erased(comm.split(0, comm.rank()));
    std::vector<float> in(8), out(8);
    auto const gather = [&](std::size_t count, std::vector<std::size_t> const& counts,
                            std::vector<std::size_t> const& offsets, float* to) {
      any.all_gather_v(in.data(), to, count, {counts, offsets}, data_type::float32);
    };
    refuses(": the output needs a count", [&] { gather(2, {2}, {}, out.data()); });
    refuses("an offset or none", [&] { gather(2, {2, 2}, {0}, out.data()); });
    refuses("a block ends behind the end of the output (given", [&] {
      gather(2, {2, 2}, {0, SIZE_MAX / 4}, out.data());
    });
    refuses("two blocks of the output overlap", [&] { gather(2, {2, 2}, {0, 1}, out.data()); });
    refuses("as the own block of the output (given 3, needed 2)", [&] { gather(3, {2, 2}, {}, out.data()); });
    refuses("overlap; pass the same memory", [&] { gather(2, {2, 2}, {}, in.data() + 1); });
    refuses(": the root must be a rank",
            [&] { any.gather_v(in.data(), out.data(), 1, {}, data_type::float32, 7); });
    refuses(": a graph takes", [&] {
      std::vector<rank_t> const none;
      any.graph(none, none).run(any_call::barrier());
    });
    refuses("exchange on rank", [&] { any.exchange().send(in.data(), 1, data_type::float32, 2); });
    refuses(": the peer must be", [&] { any.send(in.data(), 1, data_type::float32, 2); });
    refuses("there is no algorithm \"rings\"", [&] {
      (void)any.prepare(any_call::all_reduce(in.data(), in.data(), 4, data_type::float32, reduce_op::sum,
                                             {.algorithm = "rings"}));
    });
  });
}

TEST_CASE("any_communicator: counts that no memory can hold, and memory that is null, are named") {
  watched::on_threads<transport>(2, [](auto& comm) {
    any_communicator any = erased(comm.split(0, comm.rank()));
    float in[2] = {1, 2}, out[2] = {3, 4};
    rank_t const other = 1 - any.rank();
    std::string const rank = " on rank " + std::to_string(any.rank()) + " of 2: ";
    std::string const absurd = rank + "so many elements fit into no memory";
    auto const type = data_type::float32;
    // Bytes that overflow, to 0 and to 4 too; of one block, or of both.
    for (std::size_t const count : {SIZE_MAX / 4 + 1, SIZE_MAX / 4 + 2, SIZE_MAX, SIZE_MAX / 8 + 1}) {
      auto const refuses_all = [&](std::string const& name, any_call const& call) {
        refuses((name + absurd).c_str(), [&] { any.run(call); });
        refuses((name + absurd).c_str(), [&] { (void)any.start(call); });
        refuses((name + absurd).c_str(), [&] { (void)any.prepare(call); });
        require(any.try_run(call) == status::bad_argument, name);
      };
      refuses_all("all_reduce", any_call::all_reduce(in, out, count, type));
      refuses_all("reduce_scatter", any_call::reduce_scatter(in, out, count, type));
      refuses_all("reduce", any_call::reduce(in, out, count, type));
      refuses_all("scan", any_call::scan(in, out, count, type));
      refuses_all("all_gather", any_call::all_gather(in, out, count, type));
      refuses_all("all_to_all", any_call::all_to_all(in, out, count, type));
      refuses_all("broadcast", any_call::broadcast(in, out, count, type));
      refuses_all("gather", any_call::gather(in, out, count, type));
      refuses_all("scatter", any_call::scatter(in, out, count, type));
      refuses(absurd.c_str(), [&] { any.send(in, count, type, other); });
      refuses("so many elements fit into no memory",
              [&] { any.exchange().receive(out, count, type, other); });
      std::vector<rank_t> const edge{other};
      auto edges = any.graph(edge, edge);
      refuses(absurd.c_str(), [&] { edges.run(any_call::all_gather(in, out, count, type)); });
      refuses(absurd.c_str(), [&] { edges.run(any_call::all_to_all(in, out, count, type)); });
    }
    refuses((rank + "the input is null").c_str(),
            [&] { any.run(any_call::all_reduce(nullptr, out, 1, type)); });
    refuses((rank + "the output is null").c_str(),
            [&] { any.run(any_call::all_gather(in, nullptr, 1, type)); });
    any.run(any_call::all_reduce(in, out, 2, type));
    require(in[0] == 1 && out[0] == 2 && out[1] == 4, "the next call");
  });
}
