// SPDX-License-Identifier: Apache-2.0
// A rank forks: the child, which has copies of everything, leaves the connections as they are when it ends.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "transport/forking.hpp"
#include "watched_tcp.hpp"

namespace {
using communicator = collx::communicator<collx::transport::tcp>;
}

TEST_CASE("tcp: a child that a rank forks says nothing for it, and takes nothing from it") {
  auto const codes = watched::on_tcp_processes(2, [](communicator& comm) {
    std::vector<int> values(5000, comm.rank() + 1);
    collx::all_reduce(comm, std::span(values));
    if (comm.rank() == 0) {
      std::optional<communicator> all(std::move(comm));
      if (!child_does([&] { all.reset(); })) return 1;
      comm = std::move(*all);
    }
    collx::all_reduce(comm, std::span(values));
    return values.front() == 6 && values.back() == 6 ? 0 : 2;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("tcp: a child that a rank forks takes nothing that has come for it") {
  auto const codes = watched::on_tcp_processes(2, [](communicator& comm) {
    int value = comm.rank(), word = 0;
    collx::all_reduce(comm, std::span(&value, 1));
    if (comm.rank() == 1) {
      collx::send(comm, std::span<int const>(&value, 1), 0);
      collx::receive(comm, std::span(&word, 1), 0);
      return word == 7 ? 0 : 1;
    }
    poll(nullptr, 0, 100);  // the message is here by then, or the test shows nothing
    if (!dies_with(comm)) return 2;
    collx::receive(comm, std::span(&word, 1), 1);
    if (word != 1) return 3;
    word = 7;
    collx::send(comm, std::span<int const>(&word, 1), 1);
    return 0;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("tcp: a child that a rank forks does not wait for what the rank has started") {
  for (bool const waits : {false, true}) {  // whether the request goes before the communicator
    CAPTURE(waits);
    auto const codes = watched::on_tcp_processes(2, [&](communicator& comm) {
      std::vector<int> values(5000, comm.rank() + 1);
      collx::all_reduce(comm, std::span(values));
      int word = 0;
      if (comm.rank() == 1) {
        collx::receive(comm, std::span(&word, 1), 0);  // the child has ended by then
        collx::start::all_reduce(comm, std::span(values), collx::sum).wait();
        return values.front() == 6 && values.back() == 6 ? 0 : 1;
      }
      std::optional started(collx::start::all_reduce(comm, std::span(values), collx::sum));
      bool const ended = child_does([&] {
        if (waits) started.reset();
        communicator const copy = std::move(comm);
      });
      if (!ended) return 2;
      collx::send(comm, std::span<int const>(&word, 1), 1);
      started->wait();
      return values.front() == 6 && values.back() == 6 ? 0 : 3;
    });
    for (int const code : codes) CHECK(code == 0);
  }
}

namespace {

// Starts `what` on both ranks, rank 0 with a fork between: its child destroys what was started.
template <class Start>
int forks_behind(communicator& comm, Start const& start) {
  int word = 0;
  if (comm.rank() == 1) {
    collx::receive(comm, std::span(&word, 1), 0);  // the child has ended by then
    start().wait();
    return 0;
  }
  std::optional started(start());
  if (!child_does([&] { started.reset(); })) return 2;
  collx::send(comm, std::span<int const>(&word, 1), 1);
  started->wait();
  return 0;
}

}  // namespace

TEST_CASE("tcp: nor for a group, a list of messages, or a request of two") {
  auto const codes = watched::on_tcp_processes(2, [](communicator& comm) {
    std::vector<int> values(5000, comm.rank() + 1), all(10'000);
    collx::all_reduce(comm, std::span(values));
    collx::group some(comm);
    some.all_reduce(values);
    int code = forks_behind(comm, [&] { return some.start(); });
    if (code != 0 || values.front() != 6) return code + 10;
    std::vector<int> const leaf(all.size(), 1);
    code = forks_behind(
        comm, [&] { return collx::start::all_reduce_fixed_tree(comm, collx::fixed_tree{2}, leaf, all); });
    if (code != 0 || all.back() != 2) return code + 20;
    std::vector<int> leaf_of_peer(values.size());
    collx::exchange list(comm);
    list.send(values, 1 - comm.rank());
    list.receive(leaf_of_peer, 1 - comm.rank());
    return forks_behind(comm, [&] { return list.start(); });
  });
  for (int const code : codes) CHECK(code == 0);
}
