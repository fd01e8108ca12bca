// SPDX-License-Identifier: Apache-2.0
// Which bits of a floating-point reduction depend on what: on the rank that looks, the run, the
// transport, the memory, the place in the vector, the root, the number of ranks.
// docs/reproducibility.md says what is asserted here.
// sanitizers: no, compiles half a minute more, for code that types.cpp runs under them
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/schedule/type_list.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using bits = std::vector<std::uint32_t>;

// Several fragments of every schedule, and no multiple of anything.
constexpr std::size_t count = 10'007;
constexpr collx::transport::settings several_fragments{.staging_bytes = 64 * 1024};

// Of very different sizes, so that every order of additions rounds differently.
float contribution(rank_t rank, std::size_t i) {
  collx::replayable_random random(static_cast<std::uint64_t>(rank) * 1'000'003 + i);
  float const digits = static_cast<float>(random.below(1u << 24)) - 0x1p23f;
  return std::ldexp(digits, static_cast<int>(random.below(16)) - 30);
}

using input_of = float (*)(rank_t, std::size_t);
// Added to 1 one by one, the others vanish; added to each other first, they do not.
float same_everywhere(rank_t rank, std::size_t) { return rank == 0 ? 1.0f : 0x1p-24f; }

std::vector<float> input(rank_t rank, input_of value = &contribution) {
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = value(rank, i);
  return v;
}

bits bits_of(std::span<float const> v) {
  bits b(v.size());
  std::memcpy(b.data(), v.data(), v.size_bytes());
  return b;
}

enum class buffers { separate, in_place, symmetric };

template <class Algorithm, class Transport>
bits result(collx::communicator<Transport>& comm, buffers kind) {
  std::vector<float> in = input(comm.rank()), out(count);
  if (kind == buffers::separate) {
    collx::all_reduce<Algorithm>(comm, in, out, collx::sum);
    return bits_of(out);
  }
  if (kind == buffers::in_place) {
    collx::all_reduce<Algorithm>(comm, in, collx::sum);
    return bits_of(in);
  }
  auto const symmetric = comm.template allocate<float>(count);
  std::copy(in.begin(), in.end(), symmetric.begin());
  collx::all_reduce<Algorithm>(comm, symmetric, collx::sum);
  return bits_of(symmetric.span());
}

// What rank r of `size` ends with, on each transport.
template <class Algorithm>
std::vector<bits> on_threads(rank_t size, buffers kind) {
  std::vector<bits> all(static_cast<std::size_t>(size));
  watched::on_threads(
      size,
      [&](collx::communicator<collx::transport::threads>& comm) {
        all[static_cast<std::size_t>(comm.rank())] = result<Algorithm>(comm, kind);
      },
      several_fragments);
  return all;
}

template <class Algorithm>
std::vector<bits> on_processes(rank_t size, buffers kind) {
  auto const n = static_cast<std::size_t>(size);
  std::size_t const bytes = n * count * sizeof(std::uint32_t);
  void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  auto* const words = static_cast<std::uint32_t*>(page);
  auto const codes = watched::on_processes(
      size,
      [&](collx::communicator<collx::transport::shm>& comm) {
        bits const mine = result<Algorithm>(comm, kind);
        std::copy(mine.begin(), mine.end(), words + static_cast<std::size_t>(comm.rank()) * count);
      },
      several_fragments);
  for (int const code : codes) CHECK(code == 0);
  std::vector<bits> all;
  for (std::size_t r = 0; r < n; ++r) all.emplace_back(words + r * count, words + (r + 1) * count);
  munmap(page, bytes);
  return all;
}

// The seed decides in which order messages are delivered.
template <class Algorithm>
std::vector<bits> on_mailbox(rank_t size, std::uint64_t seed, input_of value = &contribution) {
  collx::bootstrap::mailbox_ranks<> ranks(size, seed, several_fragments);
  std::vector<std::vector<float>> out;
  for (rank_t r = 0; r < size; ++r) out.push_back(input(r, value));
  collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(out.size());
  for (rank_t r = 0; r < size; ++r) {
    auto const i = static_cast<std::size_t>(r);
    requests[i] = collx::start::all_reduce<Algorithm>(ranks[r], out[i], collx::sum);
  }
  REQUIRE(ranks.drive(requests) == collx::status::ok);
  std::vector<bits> all;
  for (auto const& each : out) all.push_back(bits_of(each));
  return all;
}

// The sums of each algorithm have brackets of one of these kinds.
enum class brackets {
  from_the_left,  // ((0 + 1) + 2) + 3, for any number of ranks
  by_halves,      // (0 + 1) + (2 + 3), for powers of two; the same everywhere in the vector for all
  by_place,       // they depend on the chunk in which an element lies
  unknown
};

// A new algorithm has the first four promises anyway; whoever adds it may say more here.
constexpr brackets kind_of(std::string_view name) {
  if (name.starts_with("direct_")) return brackets::from_the_left;
  if (name == "ring" || name == "bidirectional_ring") return brackets::by_place;
  bool const pairs =
      name == "recursive_doubling" || name == "recursive_halving_doubling" || name == "binomial_tree";
  return pairs ? brackets::by_halves : brackets::unknown;
}

float from_the_left(rank_t n, std::size_t i) {
  float total = contribution(0, i);
  for (rank_t r = 1; r < n; ++r) total += contribution(r, i);
  return total;
}

float by_halves(rank_t first, rank_t n, std::size_t i) {
  if (n == 1) return contribution(first, i);
  return by_halves(first, n / 2, i) + by_halves(first + n / 2, n / 2, i);
}

bits sums_by(brackets kind, rank_t size) {
  std::vector<float> sums(count);
  for (std::size_t i = 0; i < count; ++i)
    sums[i] = kind == brackets::from_the_left ? from_the_left(size, i) : by_halves(0, size, i);
  return bits_of(sums);
}

// What the root of a reduce ends with.
template <class Algorithm>
bits reduced_at(rank_t root, rank_t size) {
  collx::bootstrap::mailbox_ranks<> ranks(size, 1, several_fragments);
  std::vector<std::vector<float>> out;
  for (rank_t r = 0; r < size; ++r) out.push_back(input(r));
  collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(out.size());
  for (rank_t r = 0; r < size; ++r) {
    auto const i = static_cast<std::size_t>(r);
    requests[i] = collx::start::reduce<Algorithm>(ranks[r], out[i], collx::sum, root);
  }
  REQUIRE(ranks.drive(requests) == collx::status::ok);
  return bits_of(out[static_cast<std::size_t>(root)]);
}

// Calls f<Algorithm>() for each that offers the collective for so many ranks.
template <class Contract, class F>
void for_each_algorithm(rank_t size, F f) {
  auto const visit = [&]<class Algorithm, class, class Schedule>() {
    if (!collx::supports<Schedule>(size)) return;
    std::string const algorithm = Algorithm::name;
    CAPTURE(algorithm);
    CAPTURE(size);
    f.template operator()<Algorithm>();
  };
  collx::for_each_schedule<collx::algo::all, collx::type_list<Contract>>(visit);
}

using collx::contract::all_reduce;

}  // namespace

TEST_CASE("sums have the same bits on every rank, in every run, on every transport, in any memory") {
  for (rank_t const size : {2, 3, 4, 5, 7, 8})
    for_each_algorithm<all_reduce>(size, [&]<class Algorithm>() {
      bits const expected = on_mailbox<Algorithm>(size, 1)[0];
      auto const check = [&](std::vector<bits> const& ranks) {
        for (bits const& each : ranks) CHECK((each == expected));
      };
      for (std::uint64_t const seed : {1u, 2u, 3u}) check(on_mailbox<Algorithm>(size, seed));
      for (buffers const kind : {buffers::separate, buffers::in_place, buffers::symmetric}) {
        check(on_threads<Algorithm>(size, kind));
        check(on_processes<Algorithm>(size, kind));
      }
    });
}

TEST_CASE("where an element lies in the vector changes its bits in the rings, and not where it is promised") {
  for (rank_t const size : {2, 3, 4, 5, 7, 8, 11})
    for_each_algorithm<all_reduce>(size, [&]<class Algorithm>() {
      bits const sums = on_mailbox<Algorithm>(size, 1, &same_everywhere)[0];
      std::size_t const different = std::set<std::uint32_t>(sums.begin(), sums.end()).size();
      brackets const kind = kind_of(Algorithm::name);
      if (kind == brackets::from_the_left || kind == brackets::by_halves) CHECK(different == 1);
      if (kind == brackets::by_place && size > 2) CHECK(different > 1);
    });
}

TEST_CASE("sums have the brackets that the documentation says, so some algorithms agree in every bit") {
  for (rank_t const size : {2, 3, 4, 5, 6, 7, 8, 11, 16}) {
    bool const is_power_of_two = (size & (size - 1)) == 0;
    for_each_algorithm<all_reduce>(size, [&]<class Algorithm>() {
      bits const sums = on_mailbox<Algorithm>(size, 1)[0];
      brackets const kind = kind_of(Algorithm::name);
      if (kind == brackets::from_the_left) CHECK((sums == sums_by(kind, size)));
      if (kind == brackets::by_halves && is_power_of_two) CHECK((sums == sums_by(kind, size)));
    });
    CHECK((on_mailbox<collx::algo::recursive_doubling>(size, 1)[0] ==
           on_mailbox<collx::algo::recursive_halving_doubling>(size, 1)[0]));
  }
}

TEST_CASE("another root changes no bit of a reduce, but in the chain") {
  for (rank_t const size : {2, 3, 4, 5, 8})
    for_each_algorithm<collx::contract::reduce>(size, [&]<class Algorithm>() {
      std::set<bits> results;
      for (rank_t root = 0; root < size; ++root) results.insert(reduced_at<Algorithm>(root, size));
      std::string_view const name = Algorithm::name;
      if (name == "direct_one_shot" || name == "binomial_tree") CHECK(results.size() == 1);
      if (name == "chain" && size > 2) CHECK(results.size() > 1);
    });
}

TEST_CASE("an operator with a product gives every rank the same bits, however its buffers are aligned") {
  for (rank_t const size : {2, 3, 4, 8})
    for_each_algorithm<all_reduce>(size, [&]<class Algorithm>() {
      std::vector<bits> all(static_cast<std::size_t>(size));
      watched::on_threads(size, [&](collx::communicator<collx::transport::threads>& comm) {
        // Large enough to be streamed; a rank's output begins its own number of elements behind a line.
        std::vector<float> in(100'003), room(in.size() + 64);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1 + 0x1p-10f * contribution(comm.rank(), i);
        std::size_t const to_line = (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64 / 4;
        std::span<float> const out(room.data() + to_line + comm.rank(), in.size());
        collx::all_reduce<Algorithm>(comm, in, out, [](float a, float b) { return a * b + a; });
        all[static_cast<std::size_t>(comm.rank())] = bits_of(out);
      });
      for (bits const& each : all) CHECK((each == all[0]));
    });
}
