// SPDX-License-Identifier: Apache-2.0
// Groups of small collectives, with what must come of them.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "collx/algo/recursive_doubling.hpp"
#include "collx/collective/group.hpp"
#include "require.hpp"

namespace mixtures {

using collx::rank_t;

// One rank's calls of a group: which go together depends on their kinds, not on their order. `count`, or a
// number that has to do with it, is that of elements.
struct mixture {
  mixture(rank_t rank, rank_t size, std::size_t each)
      : n(size),
        me(rank),
        count(each),
        sums(5, std::vector<int>(count, me + 1)),
        floats(count, static_cast<float>(me)),
        most(count + 1, static_cast<float>(me)),
        in(count, me),
        out(count, -1),
        large(3 * count + 2000, 1),
        from_first(count, me == 0 ? 'a' : '-'),
        also(3, me == 0 ? 'b' : '-'),
        from_last(count, me == n - 1 ? 0.5 : 0),
        gathered(static_cast<std::size_t>(n) * count, -1),
        in_place(static_cast<std::size_t>(n) * 2, -1) {
    for (short& own : own_pair()) own = static_cast<short>(me);
  }

  template <class Group>
  void list(Group& g) {
    g.all_reduce(sums[0]);
    g.broadcast(from_first);
    g.all_reduce(floats, collx::sum);
    g.all_gather(in, gathered);
    g.all_reduce(sums[1], collx::sum);
    g.broadcast(from_last, n - 1);
    g.all_reduce(most, collx::max);
    g.all_reduce(in, out, collx::max);
    g.all_gather(own_pair(), in_place);
    g.all_reduce(large);
    for (std::size_t k = 2; k < sums.size(); ++k) g.all_reduce(sums[k]);
    g.broadcast(also);
  }

  void check() const {
    for (auto const& each : sums)
      for (int const v : each) require(v == n * (n + 1) / 2, "sum");
    for (int const v : large) require(v == n, "large sum");
    for (float const v : floats) require(v == static_cast<float>(n * (n - 1) / 2), "sum of floats");
    for (float const v : most) require(v == static_cast<float>(n - 1), "max of floats");
    for (int const v : out) require(v == n - 1, "max");
    for (char const c : from_first) require(c == 'a', "broadcast");
    for (char const c : also) require(c == 'b', "second broadcast");
    for (double const v : from_last) require(v == 0.5, "broadcast of the last rank");
    for (std::size_t i = 0; i < gathered.size(); ++i)
      require(gathered[i] == static_cast<int>(i / count), "all_gather");
    for (std::size_t i = 0; i < in_place.size(); ++i)
      require(in_place[i] == static_cast<short>(i / 2), "all_gather in place");
  }

 private:
  std::span<short> own_pair() { return std::span(in_place).subspan(2 * static_cast<std::size_t>(me), 2); }

  rank_t n, me;
  std::size_t count;
  std::vector<std::vector<int>> sums;
  std::vector<float> floats, most;
  std::vector<int> const in;
  std::vector<int> out, large;
  std::vector<char> from_first, also;
  std::vector<double> from_last;
  std::vector<int> gathered;
  std::vector<short> in_place;
};

// Calls f(bytes of the packed buffer, count).
template <class F>
void for_each_size(F const& f) {
  for (std::size_t const packed_bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{1} << 16})
    for (std::size_t const count : {std::size_t{1}, std::size_t{7}, std::size_t{300}}) f(packed_bytes, count);
}

// All of them, as the main function of a rank.
inline constexpr auto every_mixture = [](auto& comm) {
  for_each_size([&](std::size_t packed_bytes, std::size_t count) {
    collx::group g(comm, packed_bytes);
    for (bool const started : {false, true}) {
      mixture calls(comm.rank(), comm.size(), count);
      calls.list(g);
      if (started) {
        auto request = g.start();
        auto moved = std::move(request);
        while (!moved.test()) std::this_thread::yield();
        moved.wait();
      } else {
        g.run();
      }
      require(g.size() == 0, "the list is empty again");
      calls.check();
    }
  });
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

}  // namespace mixtures
