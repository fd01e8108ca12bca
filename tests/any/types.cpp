// SPDX-License-Identifier: Apache-2.0
// Element types of the type-erased communicator: ranks that check compare them, whatever a call does with its
// elements; what is no type is refused by every call that takes one.
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/any_communicator.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/make_any.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::any_call;
using collx::any_communicator;
using collx::block_list;
using collx::data_type;
using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::threads>;

any_communicator erased(communicator comm) {
  return collx::make_any<collx::type_list<float, double, std::int32_t>, collx::type_list<collx::sum_t>,
                         collx::type_list<collx::algo::direct_one_shot>>(std::move(comm));
}

enum class form { blocking, started, persistent };
constexpr form forms[] = {form::blocking, form::started, form::persistent};

// Of an any_communicator or an any_graph.
status outcome_of(auto& any, any_call const& call, form how) {
  if (how == form::blocking) return any.try_run(call);
  try {
    if (how == form::started) any.start(call).wait();
    else (void)any.prepare(call);
    return status::ok;
  } catch (collx::error const& failed) {
    return failed.code();
  }
}

// The two ranks' calls, and in which argument they differ; a rank that hears of it from the other only has
// not compared.
struct difference {
  char const* argument;
  std::array<std::string, 2> values;
};
template <class CallOf>
void check_found(difference const& expected, CallOf const& call_of, bool on_graph = false) {
  for (form const how : forms) {
    std::array<status, 2> outcomes{};
    watched::on_threads(2, [&](communicator& comm) {
      any_communicator any = erased(comm.split(0, comm.rank()));
      any.checking(collx::checking_level::communication);
      auto const me = static_cast<std::size_t>(any.rank());
      std::vector<rank_t> const peers{1 - any.rank()};
      auto edges = any.graph(peers, peers);
      any_call const call = call_of(any.rank());
      outcomes[me] = on_graph ? outcome_of(edges, call, how) : outcome_of(any, call, how);
      collx::failure_report const& told = any.failure();
      std::string const text = collx::error(told).what();
      if (outcomes[me] != status::mismatch) return require(outcomes[me] == status::aborted, text);
      require(told.differs_in != nullptr && std::string(told.differs_in) == expected.argument, text);
      require(told.here == expected.values[me] && told.there == expected.values[1 - me], text);
    });
    CHECK((outcomes[0] == status::mismatch || outcomes[1] == status::mismatch));
  }
}

std::size_t const two_counts[] = {4, 4};
block_list const even{two_counts};

template <class Call>
void refuses(char const* what, Call const& call) {
  try {
    call();
  } catch (collx::error const& refused) {
    return require(
        refused.code() == status::bad_argument && std::string(refused.what()).find(what) != std::string::npos,
        refused.what());
  }
  throw std::runtime_error(std::string("accepted: ") + what);
}

}  // namespace

TEST_CASE("any_communicator: another element type of the same size is found, of what only moves too") {
  std::vector<float> in(8), out(8);
  difference const types{"element type", {"float of 4 bytes", "int of 4 bytes"}};
  auto const of = [](rank_t rank) { return rank == 0 ? data_type::float32 : data_type::int32; };
  float *const from = in.data(), *const to = out.data();
  // The ranks share buffers, which nobody touches.
  check_found(types, [&](rank_t r) { return any_call::all_gather(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::all_to_all(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::broadcast(from, from, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::gather(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::scatter(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::all_gather_v(from, to, 4, even, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::all_reduce(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::all_gather(from, to, 4, of(r)); }, true);
  check_found(types, [&](rank_t r) { return any_call::all_to_all(from, to, 4, of(r)); }, true);
}

TEST_CASE("any_communicator: counts are compared in elements") {
  std::vector<double> in(8), out(8);
  double *const from = in.data(), *const to = out.data();
  difference const types{"element type", {"float of 4 bytes", "double of 8 bytes"}};
  auto const of = [](rank_t rank) { return rank == 0 ? data_type::float32 : data_type::float64; };
  check_found(types, [&](rank_t r) { return any_call::all_reduce(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::all_gather(from, to, 4, of(r)); });
  check_found(types, [&](rank_t r) { return any_call::all_gather_v(from, to, 4, even, of(r)); });
  difference const counts{"count", {"3", "4"}};
  auto const count = [](rank_t rank) { return static_cast<std::size_t>(3 + rank); };
  auto const type = data_type::float64;
  check_found(counts, [&](rank_t r) { return any_call::all_reduce(from, to, count(r), type); });
  check_found(counts, [&](rank_t r) { return any_call::broadcast(from, from, count(r), type); });
}

TEST_CASE("any_communicator: agrees with a rank that makes the same calls with types") {
  watched::on_threads(2, [](communicator& comm) {
    communicator own = comm.split(0, comm.rank());
    own.checking(collx::checking_level::communication);
    std::vector<float> mine(4, 1.0f), all(8);
    std::vector<std::size_t> const counts{4, 4};
    if (comm.rank() == 0) {
      collx::all_gather(own, mine, all);
      collx::all_gather_v(own, mine, collx::blocks{all, counts});
      collx::all_reduce(own, mine);
      collx::barrier(own);
    } else {
      any_communicator any = erased(std::move(own));
      auto const type = data_type::float32;
      any.all_gather(mine.data(), all.data(), 4, type);
      any.all_gather_v(mine.data(), all.data(), 4, {counts}, type);
      any.all_reduce(mine.data(), mine.data(), 4, type);
      any.barrier();
    }
    require(all[7] == 1.0f && mine[3] == 2.0f, "values");
  });
}

TEST_CASE("any_communicator: a type that is no value of its enum is refused, by messages and graphs too") {
  watched::on_threads(2, [](communicator& comm) {
    any_communicator any = erased(comm.split(0, comm.rank()));
    constexpr char const* words = "the collective, type or operator is no value of its enum";
    float in[2] = {1, 2}, out[2] = {3, 4};
    std::size_t const ones[] = {1};
    rank_t const other = 1 - any.rank();
    std::vector<rank_t> const edge{other};
    auto edges = any.graph(edge, edge);
    auto list = any.exchange();
    for (int const value : {14, 99, 255}) {
      auto const none = static_cast<data_type>(value);
      refuses(words, [&] { any.send(in, 1, none, other); });
      refuses(words, [&] { any.receive(out, 1, none, other); });
      require(any.try_send(in, 1, none, other) == status::bad_argument, "try_send");
      require(any.try_receive(out, 1, none, other) == status::bad_argument, "try_receive");
      refuses(words, [&] { list.send(in, 1, none, other); });
      refuses(words, [&] { list.receive(out, 1, none, other); });
      require(list.size() == 0, "nothing is listed");
      auto const refuses_all = [&](any_call const& call) {
        refuses(words, [&] { edges.run(call); });
        refuses(words, [&] { (void)edges.start(call); });
        refuses(words, [&] { (void)edges.prepare(call); });
        require(edges.try_run(call) == status::bad_argument, "try_run");
      };
      refuses_all(any_call::all_gather(in, out, 1, none));
      refuses_all(any_call::all_to_all(in, out, 1, none));
      refuses_all(any_call::all_gather_v(in, out, 1, {ones}, none));
      refuses_all(any_call::all_to_all_v(in, out, {ones}, {ones}, none));
      refuses(words, [&] { any.run(any_call::all_gather(in, out, 1, none)); });
    }
    std::string const place = "on rank " + std::to_string(any.rank()) + " of 2: the collective";
    refuses(("send " + place).c_str(), [&] { any.send(in, 1, data_type(99), other); });
    refuses("(given 99)", [&] { any.receive(out, 1, data_type(99), other); });
    edges.run(any_call::all_gather(in, out, 1, data_type::float32));
    require(out[0] == 1 && out[1] == 4, "and goes on");
  });
}
