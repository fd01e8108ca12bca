// SPDX-License-Identifier: Apache-2.0
// Which bits of a floating-point reduction depend on what: on the rank that looks, the run, the
// transport, the memory, the place in the vector, the root, the number of ranks.
// docs/reproducibility.md says what is asserted here.
// sanitizers: no, compiles half a minute more, for code that types.cpp runs under them
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "collective/contribution.hpp"
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

constexpr std::size_t streamed_count = 100'003;  // the longest vector here
constexpr rank_t size_max = 16;

// Drawn once: most of what is done here looks at them.
float contribution(rank_t rank, std::size_t i) {
  static std::vector<float> const all = [] {
    std::vector<float> drawn;
    for (rank_t r = 0; r < size_max; ++r)
      for (std::size_t k = 0; k < streamed_count; ++k) drawn.push_back(rounded_sums::contribution(r, k));
    return drawn;
  }();
  return all.at(static_cast<std::size_t>(rank) * streamed_count + i);
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

using floats = std::span<float>;
using collx::transport::mailbox;
using collx::transport::shm;
using collx::transport::threads;
using request = collx::request<mailbox::endpoint>;

// A product and a sum, which a compiler may round once or twice.
constexpr auto multiply_and_add = [](float a, float b) { return a * b + a; };

// An algorithm behind pointers: what is done with it is compiled once for all of them.
struct all_reduce_with {
  char const* name;
  bool (*supports)(collx::shape);
  void (*on_threads)(collx::communicator<threads>&, floats in, floats out);
  void (*on_shm)(collx::communicator<shm>&, floats in, floats out);
  request (*on_mailbox)(collx::communicator<mailbox>&, floats in_place);
  void (*multiplied)(collx::communicator<threads>&, floats in, floats out);

  void operator()(collx::communicator<threads>& comm, floats in, floats out) const {
    on_threads(comm, in, out);
  }
  void operator()(collx::communicator<shm>& comm, floats in, floats out) const { on_shm(comm, in, out); }
};

template <class Algorithm>
constexpr auto blocking_sum =
    [](auto& comm, floats in, floats out) { collx::all_reduce<Algorithm>(comm, in, out, collx::sum); };

template <class Algorithm, class Schedule>
constexpr all_reduce_with entry_of{Algorithm::name,
                                   &collx::supports<Schedule>,
                                   blocking_sum<Algorithm>,
                                   blocking_sum<Algorithm>,
                                   [](collx::communicator<mailbox>& comm, floats in_place) {
                                     return collx::start::all_reduce<Algorithm>(comm, in_place, collx::sum);
                                   },
                                   [](collx::communicator<threads>& comm, floats in, floats out) {
                                     collx::all_reduce<Algorithm>(comm, in, out, multiply_and_add);
                                   }};

template <class Transport>
bits result(all_reduce_with const& sum, collx::communicator<Transport>& comm, buffers kind) {
  std::vector<float> in = input(comm.rank()), out(count);
  if (kind == buffers::separate) {
    sum(comm, in, out);
    return bits_of(out);
  }
  if (kind == buffers::in_place) {
    sum(comm, in, in);
    return bits_of(in);
  }
  auto const symmetric = comm.template allocate<float>(count);
  std::copy(in.begin(), in.end(), symmetric.begin());
  sum(comm, symmetric.span(), symmetric.span());
  return bits_of(symmetric.span());
}

// What rank r of `size` ends with, on each transport.
std::vector<bits> on_threads(all_reduce_with const& sum, rank_t size, buffers kind) {
  std::vector<bits> all(static_cast<std::size_t>(size));
  watched::on_threads(
      size,
      [&](collx::communicator<collx::transport::threads>& comm) {
        all[static_cast<std::size_t>(comm.rank())] = result(sum, comm, kind);
      },
      several_fragments);
  return all;
}

std::vector<bits> on_processes(all_reduce_with const& sum, rank_t size, buffers kind) {
  auto const n = static_cast<std::size_t>(size);
  std::size_t const bytes = n * count * sizeof(std::uint32_t);
  void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  auto* const words = static_cast<std::uint32_t*>(page);
  auto const codes = watched::on_processes(
      size,
      [&](collx::communicator<collx::transport::shm>& comm) {
        bits const mine = result(sum, comm, kind);
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
std::vector<bits> on_mailbox(all_reduce_with const& sum, rank_t size, std::uint64_t seed,
                             input_of value = &contribution) {
  collx::bootstrap::mailbox_ranks<> ranks(size, seed, several_fragments);
  std::vector<std::vector<float>> out;
  for (rank_t r = 0; r < size; ++r) out.push_back(input(r, value));
  collx::array<request> requests(out.size());
  for (rank_t r = 0; r < size; ++r) {
    auto const i = static_cast<std::size_t>(r);
    requests[i] = sum.on_mailbox(ranks[r], out[i]);
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

bits const& sums_by(brackets kind, rank_t size) {
  static std::map<std::pair<brackets, rank_t>, bits> known;
  bits& found = known[{kind, size}];
  if (!found.empty()) return found;
  std::vector<float> sums(count);
  for (std::size_t i = 0; i < count; ++i)
    sums[i] = kind == brackets::from_the_left ? from_the_left(size, i) : by_halves(0, size, i);
  return found = bits_of(sums);
}

struct reduce_with {
  char const* name;
  bool (*supports)(collx::shape);
  request (*on_mailbox)(collx::communicator<mailbox>&, floats in_place, rank_t root);
};

// What the root of a reduce ends with.
bits reduced_at(reduce_with const& sum, rank_t root, rank_t size) {
  collx::bootstrap::mailbox_ranks<> ranks(size, 1, several_fragments);
  std::vector<std::vector<float>> out;
  for (rank_t r = 0; r < size; ++r) out.push_back(input(r));
  collx::array<request> requests(out.size());
  for (rank_t r = 0; r < size; ++r) {
    auto const i = static_cast<std::size_t>(r);
    requests[i] = sum.on_mailbox(ranks[r], out[i], root);
  }
  REQUIRE(ranks.drive(requests) == collx::status::ok);
  return bits_of(out[static_cast<std::size_t>(root)]);
}

std::vector<all_reduce_with> all_reduces() {
  std::vector<all_reduce_with> all;
  collx::for_each_schedule<collx::algo::all, collx::type_list<collx::contract::all_reduce>>(
      [&]<class Algorithm, class, class Schedule>() { all.push_back(entry_of<Algorithm, Schedule>); });
  return all;
}

all_reduce_with named(std::string_view name) {
  auto const all = all_reduces();
  return *std::find_if(all.begin(), all.end(), [&](auto const& each) { return each.name == name; });
}

std::vector<reduce_with> reduces() {
  std::vector<reduce_with> all;
  collx::for_each_schedule<collx::algo::all, collx::type_list<collx::contract::reduce>>(
      [&]<class Algorithm, class, class Schedule>() {
        all.push_back({Algorithm::name, &collx::supports<Schedule>,
                       [](collx::communicator<mailbox>& comm, floats in_place, rank_t root) {
                         return collx::start::reduce<Algorithm>(comm, in_place, collx::sum, root);
                       }});
      });
  return all;
}

// Calls f(algorithm) for each of those that is for so many ranks.
template <class All, class F>
void for_each(All const& algorithms, rank_t size, F const& f) {
  for (auto const& each : algorithms) {
    if (!each.supports(size)) continue;
    CAPTURE(each.name);
    CAPTURE(size);
    f(each);
  }
}

// On every rank, whose output begins its own number of elements behind a line. Large enough to be streamed.
std::vector<bits> multiplied_on_threads(all_reduce_with const& of, rank_t size) {
  std::vector<bits> all(static_cast<std::size_t>(size));
  watched::on_threads(size, [&](collx::communicator<threads>& comm) {
    std::vector<float> in(streamed_count), room(in.size() + 64);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1 + 0x1p-10f * contribution(comm.rank(), i);
    std::size_t const to_line = (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64 / 4;
    floats const out(room.data() + to_line + comm.rank(), in.size());
    of.multiplied(comm, in, out);
    all[static_cast<std::size_t>(comm.rank())] = bits_of(out);
  });
  return all;
}

}  // namespace

TEST_CASE("sums have the same bits on every rank, in every run, on every transport, in any memory") {
  for (rank_t const size : {2, 3, 4, 5, 7, 8})
    for_each(all_reduces(), size, [&](all_reduce_with const& sum) {
      bits const expected = on_mailbox(sum, size, 1)[0];
      auto const check = [&](std::vector<bits> const& ranks) {
        for (bits const& each : ranks) CHECK((each == expected));
      };
      for (std::uint64_t const seed : {1u, 2u, 3u}) check(on_mailbox(sum, size, seed));
      for (buffers const kind : {buffers::separate, buffers::in_place, buffers::symmetric}) {
        check(on_threads(sum, size, kind));
        check(on_processes(sum, size, kind));
      }
    });
}

TEST_CASE("where an element lies in the vector changes its bits in the rings, and not where it is promised") {
  for (rank_t const size : {2, 3, 4, 5, 7, 8, 11})
    for_each(all_reduces(), size, [&](all_reduce_with const& sum) {
      bits const sums = on_mailbox(sum, size, 1, &same_everywhere)[0];
      std::size_t const different = std::set<std::uint32_t>(sums.begin(), sums.end()).size();
      brackets const kind = kind_of(sum.name);
      if (kind == brackets::from_the_left || kind == brackets::by_halves) CHECK(different == 1);
      if (kind == brackets::by_place && size > 2) CHECK(different > 1);
    });
}

TEST_CASE("sums have the brackets that the documentation says, so some algorithms agree in every bit") {
  for (rank_t const size : {2, 3, 4, 5, 6, 7, 8, 11, 16}) {
    bool const is_power_of_two = (size & (size - 1)) == 0;
    for_each(all_reduces(), size, [&](all_reduce_with const& sum) {
      bits const sums = on_mailbox(sum, size, 1)[0];
      brackets const kind = kind_of(sum.name);
      if (kind == brackets::from_the_left) CHECK((sums == sums_by(kind, size)));
      if (kind == brackets::by_halves && is_power_of_two) CHECK((sums == sums_by(kind, size)));
    });
    CHECK((on_mailbox(named("recursive_doubling"), size, 1)[0] ==
           on_mailbox(named("recursive_halving_doubling"), size, 1)[0]));
  }
}

TEST_CASE("another root changes no bit of a reduce, but in the chain") {
  for (rank_t const size : {2, 3, 4, 5, 8})
    for_each(reduces(), size, [&](reduce_with const& sum) {
      std::set<bits> results;
      for (rank_t root = 0; root < size; ++root) results.insert(reduced_at(sum, root, size));
      std::string_view const name = sum.name;
      if (name == "direct_one_shot" || name == "binomial_tree") CHECK(results.size() == 1);
      if (name == "chain" && size > 2) CHECK(results.size() > 1);
    });
}

TEST_CASE("an operator with a product gives every rank the same bits, however its buffers are aligned") {
  for (rank_t const size : {2, 3, 4, 8})
    for_each(all_reduces(), size, [&](all_reduce_with const& each) {
      std::vector<bits> const all = multiplied_on_threads(each, size);
      for (bits const& of_rank : all) CHECK((of_rank == all[0]));
    });
}
