// SPDX-License-Identifier: Apache-2.0
// checking_level::communication: every argument in which ranks can differ is found before any data
// move, and both values are named, on every rank.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::threads>;

// Rank 1 of 3 calls `wrong`, the others `right`; every rank must be told of the difference.
template <class Right, class Wrong>
void check_found(std::string const& differs_in, std::string const& one, std::string const& other,
                 Right const& right, Wrong const& wrong) {
  std::vector<std::string> texts(3);
  std::vector<status> codes(3, status::ok);
  watched::on_threads(3, [&](communicator& comm) {
    comm.checking(collx::checking_level::communication);
    collx::barrier(comm);
    auto const i = static_cast<std::size_t>(comm.rank());
    try {
      if (comm.rank() == 1) wrong(comm);
      else right(comm);
    } catch (collx::error const& failure) {
      texts[i] = failure.what();
      codes[i] = failure.code();
    }
    if (comm.failure().code != codes[i]) texts[i] += " (failure() differs)";
  });
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CAPTURE(texts[i]);
    // The first rank to find it may stop the others before they have compared.
    bool const stopped = codes[i] == status::aborted;
    CHECK((stopped || codes[i] == status::mismatch));
    if (stopped) continue;
    CHECK(texts[i].find("another " + differs_in) != std::string::npos);
    std::string const& here = i == 1 ? other : one;
    std::string const& there = i == 1 ? one : other;
    if (!one.empty()) CHECK(texts[i].find(": " + here + " here") != std::string::npos);
    if (!one.empty()) CHECK(texts[i].find(", " + there + " there") != std::string::npos);
    CHECK(texts[i].find("#1 on rank " + std::to_string(i)) != std::string::npos);
    CHECK(texts[i].find(i == 1 ? "peer 0" : "peer 1") != std::string::npos);
  }
  CHECK(std::count(codes.begin(), codes.end(), status::mismatch) >= 1);
}

// Two algorithms with names such as those have that are made of others.
struct by_the_ring : collx::algo::ring::all_reduce {
  static constexpr char const* name = "two_levels<recursive_halving_doubling, ring>";
};
struct by_doubling : collx::algo::recursive_doubling::all_reduce {
  static constexpr char const* name = "two_levels<recursive_halving_doubling, recursive_doubling>";
};

namespace far_away {
template <class T>
struct a_name_that_nobody_can_read_in_one_go_or_even_two {
  T value;
  auto operator+(a_name_that_nobody_can_read_in_one_go_or_even_two const& other) const {
    return a_name_that_nobody_can_read_in_one_go_or_even_two{static_cast<T>(value + other.value)};
  }
};
}  // namespace far_away

template <class T>
void sum(communicator& comm, std::size_t count = 10) {
  std::vector<T> v(count);
  collx::all_reduce(comm, v);
}

}  // namespace

TEST_CASE("another count is found") {
  check_found(
      "count", "10", "11", [](auto& c) { sum<int>(c); }, [](auto& c) { sum<int>(c, 11); });
}

TEST_CASE("a count of 0 on one rank only is found") {
  check_found(
      "count", "10", "0", [](auto& c) { sum<int>(c); }, [](auto& c) { sum<int>(c, 0); });
}

TEST_CASE("another collective is found") {
  check_found(
      "collective", "all_reduce", "broadcast", [](auto& c) { sum<int>(c); },
      [](auto& c) {
        std::vector<int> v(10);
        collx::broadcast(c, v);
      });
  check_found(
      "collective", "all_reduce", "barrier", [](auto& c) { sum<int>(c); },
      [](auto& c) { collx::barrier(c); });
}

TEST_CASE("another operator is found") {
  auto const with = [](auto op) {
    return [op](auto& c) {
      std::vector<int> v(10);
      collx::all_reduce(c, v, op);
    };
  };
  check_found("operator", "sum", "max", with(collx::sum), with(collx::max));
  check_found("operator", "sum", "a callable", with(collx::sum), with([](int a, int b) { return a + b; }));
}

TEST_CASE("another element type is found, and both are named, with their sizes") {
  auto const of = []<class T>(T) { return [](auto& c) { sum<T>(c); }; };
  check_found("element type", "int of 4 bytes", "float of 4 bytes", of(1), of(1.0f));
  check_found("element type", "int of 4 bytes", "double of 8 bytes", of(1), of(1.0));
  check_found("element type", "float16 of 2 bytes", "bfloat16 of 2 bytes", of(collx::float16(1.0f)),
              of(collx::bfloat16(1.0f)));
  // Whatever a compiler makes of long names, no more of them is shown than there is room for.
  using far_away::a_name_that_nobody_can_read_in_one_go_or_even_two;
  check_found("element type", "", "", of(a_name_that_nobody_can_read_in_one_go_or_even_two<char>{}),
              of(a_name_that_nobody_can_read_in_one_go_or_even_two<signed char>{}));
}

TEST_CASE("another root is found") {
  auto const from = [](rank_t root) {
    return [root](auto& c) {
      std::vector<int> v(10);
      collx::broadcast(c, v, root);
    };
  };
  check_found("root", "0", "2", from(0), from(2));
}

TEST_CASE("another algorithm is found") {
  auto const by = []<class Algorithm>(Algorithm) {
    return [](auto& c) {
      std::vector<int> v(10);
      collx::all_reduce<Algorithm>(c, v);
    };
  };
  check_found("algorithm", "ring", "recursive_doubling", by(collx::algo::ring{}),
              by(collx::algo::recursive_doubling{}));
  check_found("algorithm", "...ing>", "...ecursive_doubling>", by(by_the_ring{}), by(by_doubling{}));
}

TEST_CASE("another number of ranks per group is found") {
  auto const of = [](rank_t near) {
    return [near](auto& c) {
      c.ranks_per_group(near);
      sum<int>(c);
    };
  };
  check_found("ranks_per_group", "3", "1", of(3), of(1));
}

TEST_CASE("started collectives are compared as well") {
  auto const of = [](std::size_t count) {
    return [count](auto& c) {
      std::vector<int> v(count);
      collx::start::all_reduce(c, v).wait();
    };
  };
  check_found("count", "10", "12", of(10), of(12));
}

TEST_CASE("another form is found, whose messages nobody would take") {
  auto const blocking = [](auto& c) { sum<int>(c); };
  auto const started = [](auto& c) {
    std::vector<int> v(10);
    collx::start::all_reduce(c, v).wait();
  };
  auto const urgent = [](auto& c) {
    std::vector<int> v(10);
    collx::start::all_reduce<collx::priority::urgent>(c, v).wait();
  };
  auto const kept = [](auto& c) {
    std::vector<int> v(10);
    auto all = collx::persistent::all_reduce(c, v);
    all.start();
    all.wait();
  };
  check_found("form", "blocking", "started", blocking, started);
  check_found("form", "started", "started, urgent", started, urgent);
  check_found("form", "persistent", "blocking", kept, blocking);
}

TEST_CASE("where ranks agree, checking changes nothing, also in groups that were split off") {
  watched::on_threads(4, [&](communicator& comm) {
    if (comm.checking() != collx::checking_level::normal) throw std::runtime_error("checks by default");
    comm.checking(collx::checking_level::communication);
    auto half = comm.split(comm.rank() % 2, 0);
    if (half.checking() != collx::checking_level::communication) throw std::runtime_error("split forgets");
    for (std::size_t const count : {0u, 1u, 1000u}) {
      sum<int>(comm, count);
      sum<int>(half, count);
      collx::barrier(comm);
    }
    // Contributions of different types of memory, and of ranks that are no root, agree.
    std::vector<int> v(10), none;
    if (comm.rank() == 2) collx::reduce(comm, v, v, collx::sum, 2);
    else collx::reduce(comm, v, none, collx::sum, 2);
    comm.checking(collx::checking_level::normal);
    sum<int>(comm);
  });
}
