// SPDX-License-Identifier: Apache-2.0
// Sums over a fixed tree: the tree itself, and the same bits for every number of ranks and on every
// transport, for floats of very different sizes, small floats and operators that are not associative.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "collective/contribution.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/collective/all_reduce_fixed_tree.hpp"
#include "meeting.hpp"
#include "watched.hpp"

namespace {

using collx::fixed_tree;
using collx::leaf_range;
using collx::rank_t;
using rounded_sums::contribution;

constexpr std::size_t count = 1237;

// The definition, word for word: the node of width w that begins at leaf a.
template <class T, class Op>
T node(std::int32_t leaves, std::int32_t begin, std::int32_t width, std::size_t i, Op const& op) {
  if (width == 1) return T(contribution(begin, i));
  std::int32_t const middle = begin + width / 2;
  T const left = node<T>(leaves, begin, width / 2, i, op);
  if (middle >= leaves) return left;
  return static_cast<T>(op(left, node<T>(leaves, middle, width / 2, i, op)));
}

template <class T, class Op>
std::vector<T> expected(std::int32_t leaves, Op const& op) {
  std::int32_t width = 1;
  while (width < leaves) width *= 2;
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(node<T>(leaves, 0, width, i, op));
  return all;
}

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T, class Transport, class Op>
std::vector<T> sum_of(collx::communicator<Transport>& comm, std::int32_t leaves, Op const& op) {
  fixed_tree const tree{leaves};
  leaf_range const mine = tree.share(comm.rank(), comm.size());
  std::vector<T> in, out(count);
  for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf)
    for (std::size_t i = 0; i < count; ++i) in.push_back(T(contribution(leaf, i)));
  collx::all_reduce_fixed_tree(comm, tree, in, out, op);
  // Started, two at once, with another request between them.
  std::vector<T> first(count), second(count);
  std::vector<int> ones(3, 1);
  auto a = collx::start::all_reduce_fixed_tree(comm, tree, in, first, op);
  auto other = collx::start::all_gather(comm, std::span(ones).first(0), std::span(ones).first(0));
  auto b = collx::start::all_reduce_fixed_tree<collx::priority::urgent>(comm, tree, in, second, op);
  auto moved = std::move(a);
  while (!moved.test()) std::this_thread::yield();
  other.wait();
  b.wait();
  if (!same_bits(out, first) || !same_bits(out, second)) throw std::runtime_error("started: other bits");
  auto again = collx::persistent::all_reduce_fixed_tree(comm, tree, in, first, op);
  for (int turn = 0; turn < 2; ++turn) {
    std::fill(first.begin(), first.end(), T{});
    again.start();
    again.wait();
    if (!same_bits(out, first)) throw std::runtime_error("persistent: other bits");
  }
  return out;
}

// How many ranks of `size` got something else.
template <class T, class Op>
int differences_on_threads(rank_t size, std::int32_t leaves, Op const& op, std::vector<T> const& right) {
  std::vector<char> wrong(static_cast<std::size_t>(size));
  watched::on_threads(size, [&](collx::communicator<collx::transport::threads>& comm) {
    wrong[static_cast<std::size_t>(comm.rank())] = !same_bits(sum_of<T>(comm, leaves, op), right);
  });
  return static_cast<int>(std::count(wrong.begin(), wrong.end(), 1));
}

}  // namespace

TEST_CASE("covering_nodes: any division of the leaves ends in the one root, through the same nodes") {
  for (std::int32_t leaves = 1; leaves <= 70; ++leaves)
    for (rank_t size = 1; size <= 20; ++size) {
      fixed_tree const tree{leaves};
      collx::covering_nodes all(tree);
      std::int32_t next = 0;
      for (rank_t r = 0; r < size; ++r) {
        leaf_range const mine = tree.share(r, size);
        REQUIRE(mine.begin == next);
        next = mine.end;
        collx::covering_nodes const nodes = collx::nodes_of(tree, mine);
        REQUIRE(nodes.count() <= collx::most_nodes(tree, size));
        for (std::int32_t k = 0; k < nodes.count(); ++k) all.add(nodes[k]);
      }
      REQUIRE(next == leaves);
      REQUIRE(all.count() == 1);
      REQUIRE(all[0] == leaf_range{0, leaves});
    }
  static_assert(collx::most_nodes({64}, 8) == 1 && collx::most_nodes({64}, 1) == 1);
  static_assert(collx::most_nodes({64}, 3) == 5);
  static_assert(collx::most_nodes({fixed_tree::leaves_max - 1}, 1) == 1);
}

TEST_CASE("threads: the same bits for every number of ranks") {
  for (std::int32_t const leaves : {1, 5, 8, 24, 64, 100}) {
    CAPTURE(leaves);
    std::vector<float> const right = expected<float>(leaves, collx::sum);
    for (rank_t const size : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
      CAPTURE(size);
      CHECK(differences_on_threads(size, leaves, collx::sum, right) == 0);
    }
  }
}

TEST_CASE("the bits are those of the tree, and of no other order") {
  std::vector<float> const tree = expected<float>(64, collx::sum);
  std::vector<float> from_the_left(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::int32_t leaf = 0; leaf < 64; ++leaf) from_the_left[i] += contribution(leaf, i);
  CHECK(!same_bits(tree, from_the_left));
}

TEST_CASE("threads: operators that are neither associative nor commutative, and small floats") {
  auto const difference = [](double a, double b) { return a - b; };
  std::vector<double> const right = expected<double>(24, difference);
  std::vector<collx::bfloat16> const small = expected<collx::bfloat16>(24, collx::sum);
  for (rank_t const size : {1, 2, 3, 5, 8}) {
    CAPTURE(size);
    CHECK(differences_on_threads(size, 24, difference, right) == 0);
    CHECK(differences_on_threads(size, 24, collx::sum, small) == 0);
  }
}

TEST_CASE("threads: an operator that multiplies and adds is rounded alike, however few elements a rank has") {
  auto const product = [](float a, float b) { return a * 0.3f + b; };
  std::vector<float> right;
  watched::on_threads(1, [&](collx::communicator<collx::transport::threads>& comm) {
    right = sum_of<float>(comm, 24, product);
  });
  for (rank_t const size : {2, 3, 7, 24}) {
    CAPTURE(size);
    CHECK(differences_on_threads(size, 24, product, right) == 0);
  }
}

TEST_CASE("shm: the same bits as on threads") {
  std::vector<float> const right = expected<float>(48, collx::sum);
  for (rank_t const size : {2, 3, 4}) {
    auto const codes = watched::on_processes(size, [&](collx::communicator<collx::transport::shm>& comm) {
      if (!same_bits(sum_of<float>(comm, 48, collx::sum), right)) throw std::runtime_error("bits");
    });
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("an average is that of the leaves") {
  watched::on_threads(3, [](collx::communicator<collx::transport::threads>& comm) {
    fixed_tree const tree{8};
    leaf_range const mine = tree.share(comm.rank(), comm.size());
    std::vector<double> in, out(5);
    for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf) in.insert(in.end(), 5, 2.0 * leaf);
    collx::all_reduce_fixed_tree(comm, tree, in, out, collx::avg);
    if (out != std::vector<double>(5, 7.0)) throw std::runtime_error("avg");
  });
}

TEST_CASE("many in flight; one that is dropped waits; what fails, fails the request") {
  meeting after_many(3);
  watched::on_threads(3, [&](collx::communicator<collx::transport::threads>& comm) {
    fixed_tree const tree{3};
    std::vector<int> in(7, 1);
    std::vector<std::vector<int>> out(12, std::vector<int>(7));
    {
      std::vector<decltype(collx::start::all_reduce_fixed_tree(comm, tree, in, out[0]))> many;
      for (auto& each : out) many.push_back(collx::start::all_reduce_fixed_tree(comm, tree, in, each));
    }
    for (auto const& each : out)
      if (each != std::vector<int>(7, 3)) throw std::runtime_error("many");
    after_many.attend(comm);
    if (comm.rank() == 0) return comm.abort();
    auto request = collx::start::all_reduce_fixed_tree(comm, tree, in, out[0]);
    if (request.try_wait() != collx::status::aborted) throw std::runtime_error("not aborted");
  });
}

TEST_CASE("persistent: every start adds up what is there then; what it was made of is checked once") {
  watched::on_threads(3, [](collx::communicator<collx::transport::threads>& comm) {
    fixed_tree const tree{3};
    std::vector<int> in(7), out(7);
    auto sum = collx::persistent::all_reduce_fixed_tree(comm, tree, in, out);
    auto nothing =
        collx::persistent::all_reduce_fixed_tree(comm, tree, std::span(in).first(0), std::span(out).first(0));
    for (int turn = 1; turn <= 4; ++turn) {
      in.assign(7, turn);
      sum.start();
      nothing.start();
      sum.wait();
      nothing.wait();
      if (out != std::vector<int>(7, 3 * turn)) throw std::runtime_error("a wrong sum");
    }
    try {
      (void)collx::persistent::all_reduce_fixed_tree(comm, {0}, in, out);
      throw std::runtime_error("not refused");
    } catch (collx::error const& e) {
      if (e.code() != collx::status::bad_argument) throw;
    }
  });
}

TEST_CASE("wrong arguments are refused before anything is sent") {
  watched::on_threads(2, [](collx::communicator<collx::transport::threads>& comm) {
    std::vector<float> in(12), out(3);
    auto const call = [&](std::int32_t leaves, std::span<float> from, std::span<float> to) {
      return collx::try_all_reduce_fixed_tree(comm, {leaves}, from, to);
    };
    using collx::status;
    if (call(8, in, out) != status::ok) throw std::runtime_error("right arguments");
    if (call(0, in, out) != status::bad_argument) throw std::runtime_error("no leaves");
    if (call(6, in, out) != status::bad_argument) throw std::runtime_error("too many elements");
    if (call(8, in, std::span(in).first(3)) != status::bad_argument) throw std::runtime_error("overlap");
    if (call(8, {}, {}) != status::ok) throw std::runtime_error("count 0");
    auto const refuses = [](auto const& wrong) {
      std::string text;
      try {
        wrong();
      } catch (collx::error const& e) {
        text = e.what();
      }
      if (text.find("all_reduce_fixed_tree on rank ") == std::string::npos) throw std::runtime_error(text);
    };
    refuses([&] { collx::all_reduce_fixed_tree(comm, {4}, in, out); });
    refuses([&] { (void)collx::start::all_reduce_fixed_tree(comm, {4}, in, out); });
    (void)collx::start::all_reduce_fixed_tree(comm, {8}, std::span(in).first(0), std::span(out).first(0))
        .test();
  });
}

namespace {

int least_common_multiple(int a, int b) {
  if (a <= 0 || b <= 0) return -1;
  int const product = a * b;
  while (b != 0) a = std::exchange(b, a % b);
  return product / a;
}

}  // namespace

TEST_CASE("an operator, a function too, is given nothing but elements of the leaves") {
  for (rank_t const size : {1, 2, 3, 5})
    for (std::size_t const elements : {1u, 2u, 7u, 1025u}) {
      CAPTURE(size);
      CAPTURE(elements);
      watched::on_threads(size, [&](collx::communicator<collx::transport::threads>& comm) {
        fixed_tree const tree{6};
        leaf_range const mine = tree.share(comm.rank(), size);
        std::vector<int> in, out(elements);
        for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf) in.insert(in.end(), elements, leaf + 1);
        collx::all_reduce_fixed_tree(comm, tree, in, out, least_common_multiple);
        if (out != std::vector<int>(elements, 60)) throw std::runtime_error("wrong, blocking");
        std::fill(out.begin(), out.end(), 0);
        collx::start::all_reduce_fixed_tree(comm, tree, in, out, least_common_multiple).wait();
        if (out != std::vector<int>(elements, 60)) throw std::runtime_error("wrong, started");
      });
    }
}

TEST_CASE("checking: ranks compare what was asked for, not the messages") {
  struct asked {
    std::int32_t leaves;
    std::size_t elements;
    bool largest;
  };
  struct difference {
    asked other;
    char const* what;
  };
  // Beside {2, 7, false}, of which each message is as long, or there is none.
  for (difference const& d : {difference{{2, 8, false}, "count"},
                              {{2, 0, false}, "count"},
                              {{2, 7, true}, "operator"},
                              {{1, 7, false}, "number of leaves"}})
    for (bool const is_started : {false, true}) {
      CAPTURE(d.what);
      CAPTURE(is_started);
      std::atomic<int> found = 0;
      watched::on_threads(2, [&](collx::communicator<collx::transport::threads>& comm) {
        comm.checking(collx::checking_level::communication);
        asked const mine = comm.rank() == 0 ? asked{2, 7, false} : d.other;
        fixed_tree const tree{mine.leaves};
        auto const leaves = static_cast<std::size_t>(tree.share(comm.rank(), 2).count());
        std::vector<int> in(leaves * mine.elements, 1), out(mine.elements);
        try {
          auto const call = [&](auto op) {
            if (is_started) collx::start::all_reduce_fixed_tree(comm, tree, in, out, op).wait();
            else collx::all_reduce_fixed_tree(comm, tree, in, out, op);
          };
          if (mine.largest) call(collx::max);
          else call(collx::sum);
        } catch (collx::error const& failure) {
          found += failure.code() == collx::status::mismatch &&
                   std::string(failure.what()).find(std::string("another ") + d.what) != std::string::npos;
        }
      });
      CHECK(found == 2);
    }
}
