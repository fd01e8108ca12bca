// SPDX-License-Identifier: Apache-2.0
// Groups of small collectives: the results of the calls one by one, and as many messages as one call has.
#include "collx/collective/group.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::threads;

// Counts messages.
struct counting_endpoint : threads::endpoint {
  using threads::endpoint::endpoint;
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    ++messages;
    threads::endpoint::send(lane, peer, payload, bytes, how);
  }
  std::size_t messages = 0;
};
struct counting {
  using world = threads::world;
  using endpoint = counting_endpoint;
  using membership = threads::membership_of<counting>;
};

void require(bool condition, std::string const& what) {
  if (!condition) throw std::runtime_error(what);
}

template <class F>
std::size_t messages_of(collx::communicator<counting>& comm, F const& f) {
  std::size_t const before = comm.engine().endpoint().messages;
  f();
  return comm.engine().endpoint().messages - before;
}

// A mixture: which calls go together depends on their kinds, not on their order.
template <class Group, class Comm>
void mixture(Group& g, Comm& comm, std::size_t count, bool started) {
  rank_t const n = comm.size(), me = comm.rank(), last = n - 1;
  auto const size = static_cast<std::size_t>(n);
  std::vector<std::vector<int>> sums(5, std::vector<int>(count, me + 1));
  std::vector<float> floats(count, static_cast<float>(me)), most(count + 1, static_cast<float>(me));
  std::vector<int> const in(count, me);
  std::vector<int> out(count, -1), large(3 * count + 2000, 1);
  std::vector<char> from_first(count, me == 0 ? 'a' : '-'), also(3, me == 0 ? 'b' : '-');
  std::vector<double> from_last(count, me == last ? 0.5 : 0);
  std::vector<int> gathered(size * count, -1);
  std::vector<short> in_place(size * 2, -1);
  in_place[2 * static_cast<std::size_t>(me)] = in_place[2 * static_cast<std::size_t>(me) + 1] =
      static_cast<short>(me);
  g.all_reduce(sums[0]);
  g.broadcast(from_first);
  g.all_reduce(floats, collx::sum);
  g.all_gather(in, gathered);
  g.all_reduce(sums[1], collx::sum);
  g.broadcast(from_last, last);
  g.all_reduce(most, collx::max);
  g.all_reduce(in, out, collx::max);
  g.all_gather(std::span(in_place).subspan(2 * static_cast<std::size_t>(me), 2), in_place);
  g.all_reduce(large);
  for (std::size_t k = 2; k < sums.size(); ++k) g.all_reduce(sums[k]);
  g.broadcast(also);
  if (started) {
    auto request = g.start();
    auto moved = std::move(request);
    while (!moved.test()) std::this_thread::yield();
    moved.wait();
  } else {
    g.run();
  }
  require(g.size() == 0, "the list is empty again");
  for (auto const& each : sums)
    for (int const v : each) require(v == n * (n + 1) / 2, "sum");
  for (int const v : large) require(v == n, "large sum");
  for (float const v : floats) require(v == static_cast<float>(n * (n - 1) / 2), "sum of floats");
  for (float const v : most) require(v == static_cast<float>(last), "max of floats");
  for (int const v : out) require(v == last, "max");
  for (char const c : from_first) require(c == 'a', "broadcast");
  for (char const c : also) require(c == 'b', "second broadcast");
  for (double const v : from_last) require(v == 0.5, "broadcast of the last rank");
  for (std::size_t i = 0; i < gathered.size(); ++i)
    require(gathered[i] == static_cast<int>(i / count), "all_gather");
  for (std::size_t i = 0; i < in_place.size(); ++i)
    require(in_place[i] == static_cast<short>(i / 2), "all_gather in place");
}

}  // namespace

TEST_CASE("group: what the calls give one by one, in packed buffers of any size") {
  auto const rank_main = [](auto& comm) {
    for (std::size_t const packed_bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{1} << 16}) {
      collx::group g(comm, packed_bytes);
      for (std::size_t const count : {std::size_t{1}, std::size_t{7}, std::size_t{300}})
        for (bool const started : {false, true}) mixture(g, comm, count, started);
    }
    using transport = typename std::remove_reference_t<decltype(comm)>::transport_type;
    collx::group<transport, collx::algo::recursive_doubling> of_one_kind(comm, 4096);
    std::vector<int> a(3, comm.rank()), b(5, 1);
    of_one_kind.all_reduce(a);
    of_one_kind.all_reduce(b);
    of_one_kind.run();
    require(a[2] == comm.size() * (comm.size() - 1) / 2 && b[4] == comm.size(), "an algorithm");
    of_one_kind.all_reduce(b);
    { auto const dropped = of_one_kind.start(collx::priority::urgent); }
    require(b[4] == comm.size() * comm.size(), "a request that is dropped waits");
  };
  for (rank_t size = 1; size <= 5; ++size) watched::on_threads(size, rank_main);
  for (rank_t const size : {2, 3})
    for (int const code : watched::on_processes(size, rank_main)) CHECK(code == 0);
}

TEST_CASE("group: sixteen all_reduces are one, in messages") {
  for (rank_t size = 2; size <= 5; ++size)
    watched::on_threads<counting>(size, [](collx::communicator<counting>& comm) {
      std::vector<std::vector<float>> values(16, std::vector<float>(2, 1.0f));
      std::vector<float> all(32, 1.0f);
      collx::group g(comm, 4096);
      auto const one = messages_of(comm, [&] { collx::all_reduce(comm, all); });
      auto const separate = messages_of(comm, [&] {
        for (auto& each : values) collx::all_reduce(comm, each);
      });
      auto const together = messages_of(comm, [&] {
        for (auto& each : values) g.all_reduce(each);
        g.run();
      });
      require(one > 0 && together == one && separate == 16 * one,
              std::to_string(one) + ", " + std::to_string(separate) + ", " + std::to_string(together));
      auto const started = messages_of(comm, [&] {
        for (auto& each : values) g.all_reduce(each);
        g.start().wait();
      });
      require(started == one, "started");
      // Two operators: two. A buffer for 8: two rounds.
      auto const two_kinds = messages_of(comm, [&] {
        for (std::size_t k = 0; k < 16; ++k) {
          if (k % 2 == 0) g.all_reduce(values[k], collx::max);
          else g.all_reduce(values[k], collx::sum);
        }
        g.run();
      });
      collx::group for_eight(comm, 8 * 8);
      auto const two_rounds = messages_of(comm, [&] {
        for (auto& each : values) for_eight.all_reduce(each);
        for_eight.run();
      });
      require(two_kinds == 2 * one && two_rounds == 2 * one, "two of them");
      auto const nothing = messages_of(comm, [&] {
        g.all_reduce(std::span<int>());
        g.run();
      });
      require(nothing == 0, "nothing to do");
    });
}

TEST_CASE("group: wrong arguments are named when they are listed") {
  watched::on_threads(2, [](auto& comm) {
    auto const refuses = [](char const* what, auto const& call) {
      try {
        call();
      } catch (collx::error const& refused) {
        if (refused.code() != status::bad_argument) throw;
        require(std::string(refused.what()).find(what) != std::string::npos, refused.what());
        return;
      }
      throw std::runtime_error(std::string("accepted: ") + what);
    };
    collx::group g(comm, 100, 2);
    std::vector<int> in(3), out(4);
    refuses("all_reduce: the input must have", [&] { g.all_reduce(in, out, collx::sum); });
    refuses("broadcast: the root", [&] { g.broadcast(in, 2); });
    refuses("all_gather: the output", [&] { g.all_gather(in, out); });
    g.all_reduce(in);
    g.all_reduce(out);
    refuses("group: too many calls", [&] { g.all_reduce(out); });
    g.run();
    g.all_reduce(in);
    auto request = g.start();
    refuses("group: its request is in flight", [&] { g.all_reduce(out); });
    request.wait();
    g.all_reduce(out);
    (void)g.start();
    require(g.start().try_wait() == status::ok && g.size() == 0, "nothing is left to start");
  });
}
