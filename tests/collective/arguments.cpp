// SPDX-License-Identifier: Apache-2.0
// Wrong arguments: refused before anything is sent, with what was given and what is needed, and the
// next collective works as if nothing had happened.
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::threads>;

// Calls f, which must throw a collx::error with this code whose text holds all the parts.
template <class F>
void require_error(status code, std::vector<std::string> const& parts, F const& f) {
  try {
    f();
  } catch (collx::error const& failure) {
    std::string const text = failure.what();
    require(failure.code() == code, text);
    for (std::string const& part : parts)
      require(text.find(part) != std::string::npos, text + " lacks: " + part);
    return;
  }
  throw std::runtime_error("no error; should hold: " + parts[0]);
}

template <class F>
void on_ranks(rank_t size, F const& f) {
  watched::on_threads(size, [&](communicator& comm) {
    f(comm);
    // Whatever was refused, nothing is lost and no number was taken by it.
    require(comm.failure().code == status::ok, "the communicator failed");
    std::vector<int> values(100, 1);
    collx::all_reduce(comm, values);
    require(values == std::vector<int>(100, comm.size()), "the next collective");
    require(comm.engine().sequence() == 1, "sequence numbers");
  });
}

// A schedule of a user's own, which exists for even numbers of ranks only.
struct even_only {
  using contract = collx::contract::broadcast;
  static constexpr char const* name = "even_only";
  static constexpr bool supports(rank_t n) { return n % 2 == 0; }
  static constexpr std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr std::int32_t step_count(collx::problem p) {
    return collx::algo::direct_one_shot::broadcast::step_count(p);
  }
  static constexpr collx::primitive step(collx::problem p, std::int32_t i) {
    return collx::algo::direct_one_shot::broadcast::step(p, i);
  }
  static constexpr collx::cost documented_cost(rank_t n) { return {1, n - 1, n - 1}; }
};

}  // namespace

TEST_CASE("rows of an array are elements like others") {
  watched::on_threads(2, [](communicator& comm) {
    int rows[2][4] = {}, all[4][4] = {};
    for (auto& row : rows) row[3] = comm.rank() + 1;
    collx::all_gather(comm, std::span(rows), std::span(all));
    require(all[1][3] == 1 && all[3][3] == 2 && all[3][0] == 0, "all_gather");
    collx::broadcast(comm, std::span(rows), 1);
    require(rows[0][3] == 2 && rows[1][3] == 2, "broadcast");
  });
}

TEST_CASE("counts that do not fit together are refused with both numbers") {
  on_ranks(3, [](communicator& comm) {
    std::vector<int> three(3), four(4), nine(9), ten(10);
    auto const refused = [&](auto const& f, std::string const& given, std::string const& needed) {
      require_error(status::bad_argument, {"given " + given, "needed " + needed}, f);
    };
    refused([&] { collx::all_reduce(comm, three, four, collx::sum); }, "3", "4");
    refused([&] { collx::reduce_scatter(comm, ten, three); }, "10", "9");
    refused([&] { collx::all_gather(comm, three, ten); }, "10", "9");
    refused([&] { collx::all_gather(comm, four, nine); }, "9", "12");
    if (comm.rank() == 1) {
      refused([&] { collx::broadcast(comm, three, four, 1); }, "3", "4");
      refused([&] { collx::reduce(comm, three, four, collx::sum, 1); }, "4", "3");
    }
    require_error(status::bad_argument, {"all_reduce"},
                  [&] { collx::all_reduce<collx::algo::ring>(comm, three, four, collx::sum); });
  });
}

TEST_CASE("a root that is no rank is refused with its number") {
  on_ranks(2, [](communicator& comm) {
    std::vector<int> v(5);
    for (rank_t const root : {-1, 2, 1'000'000}) {
      require_error(status::bad_argument, {"broadcast", "root", "given " + std::to_string(root) + ")"},
                    [&] { collx::broadcast(comm, v, root); });
      require_error(status::bad_argument, {"reduce", "root"},
                    [&] { collx::reduce(comm, v, collx::sum, root); });
      require(collx::try_broadcast(comm, v, root) == status::bad_argument, "try_broadcast");
      require(collx::try_reduce(comm, v, collx::sum, root) == status::bad_argument, "try_reduce");
      require_error(status::bad_argument, {"broadcast"},
                    [&] { (void)collx::start::broadcast(comm, v, root); });
    }
  });
}

TEST_CASE("buffers that overlap by half are refused; the same memory, or none in common, is fine") {
  watched::on_threads(1, [](communicator& comm) {
    std::vector<int> v(20);
    std::span<int> const all(v);
    auto const overlap = [&](auto const& f) { require_error(status::bad_argument, {"overlap"}, f); };
    overlap([&] { collx::all_reduce(comm, all.subspan(0, 10), all.subspan(1, 10), collx::sum); });
    overlap([&] { collx::all_reduce(comm, all.subspan(9, 10), all.subspan(0, 10), collx::sum); });
    overlap([&] { collx::broadcast(comm, all.subspan(0, 10), all.subspan(5, 10)); });
    overlap([&] { collx::reduce(comm, all.subspan(0, 10), all.subspan(5, 10)); });
    overlap([&] { collx::all_gather(comm, all.subspan(0, 10), all.subspan(9, 10)); });
    overlap([&] { collx::reduce_scatter(comm, all.subspan(0, 10), all.subspan(9, 10)); });
    require(collx::try_all_reduce(comm, all.first(10), all.last(10), collx::sum) == status::ok, "adjacent");
    require(comm.engine().sequence() == 1, "one collective");
  });
}

TEST_CASE("what is in place depends on the rank where every rank has a block of its own") {
  watched::on_threads(3, [](communicator& comm) {
    std::vector<int> v(12, comm.rank());
    std::span<int> const all(v);
    auto const at = [&](rank_t r) { return all.subspan(static_cast<std::size_t>(r) * 4, 4); };
    rank_t const other = (comm.rank() + 1) % 3;
    require(collx::try_all_gather(comm, at(other), all) == status::bad_argument, "another's block");
    require(collx::try_reduce_scatter(comm, all, at(other)) == status::bad_argument, "another's block");
    collx::all_gather(comm, at(comm.rank()), all);
    require(v == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, "gathered");
    collx::reduce_scatter(comm, all, at(comm.rank()));
    for (int const x : at(comm.rank())) require(x == 3 * comm.rank(), "scattered");
  });
}

TEST_CASE("try_ returns what the plain form throws, and start throws at once") {
  on_ranks(2, [](communicator& comm) {
    std::vector<int> three(3), four(4);
    require(collx::try_all_reduce(comm, three, four, collx::sum) == status::bad_argument, "all_reduce");
    require(collx::try_reduce_scatter(comm, three, four) == status::bad_argument, "reduce_scatter");
    require(collx::try_all_gather(comm, three, four) == status::bad_argument, "all_gather");
    static_assert(noexcept(collx::try_all_reduce(comm, three)));
    static_assert(noexcept(collx::try_barrier(comm)));
    require_error(status::bad_argument, {"all_reduce"},
                  [&] { (void)collx::start::all_reduce(comm, three, four, collx::sum); });
  });
}

TEST_CASE("any contiguous range is a buffer: vector, array, span, symmetric memory, const where it is read") {
  watched::on_threads(2, [](communicator& comm) {
    std::array<double, 3> values{1, 2, 3};
    std::vector<double> const constant(values.begin(), values.end());
    auto symmetric = comm.allocate<double>(3);
    collx::all_reduce(comm, values);
    collx::all_reduce(comm, constant, symmetric, collx::sum);
    collx::all_reduce(comm, std::span<double const>(constant), symmetric.span(), collx::sum);
    require(values == std::array<double, 3>{2, 4, 6} && symmetric[2] == 6, "sums");
    collx::broadcast(comm, symmetric, 1);
    collx::reduce(comm, symmetric);
    require(symmetric[0] == (comm.rank() == 0 ? 4 : 2), "reduced");
  });
}

TEST_CASE("an algorithm that cannot serve this number of ranks says so, and nothing is lost") {
  on_ranks(3, [](communicator& comm) {
    std::vector<int> v(5);
    require(collx::try_broadcast<even_only>(comm, v) == status::not_supported, "try_");
    require_error(status::not_supported, {"broadcast", "3 ranks", "docs/algorithms.md"},
                  [&] { collx::broadcast<even_only>(comm, v); });
  });
  watched::on_threads(2, [](communicator& comm) {
    std::vector<int> v(5, comm.rank());
    collx::broadcast<even_only>(comm, v, 1);
    require(v == std::vector<int>(5, 1), "a schedule of the user's own");
  });
}

TEST_CASE("elements too large for the staging memory are refused, and one that just fits is not") {
  struct page {
    unsigned char bytes[4096];
  };
  struct book {
    page pages[10];
  };
  auto const first = [](auto const& a, auto const&) { return a; };
  for (int const code : watched::on_processes(
           4,
           [&](auto& comm) {
             std::vector<page> pages(9);
             collx::all_reduce<collx::algo::ring>(comm, pages, first);
             std::vector<book> books(9);
             require(collx::try_all_reduce<collx::algo::ring>(comm, books, first) == status::not_supported,
                     "try_");
             require_error(status::not_supported, {"40960 bytes", "COLLX_STAGING_BYTES"},
                           [&] { (void)collx::start::all_reduce<collx::algo::ring>(comm, books, first); });
             collx::barrier(comm);
           },
           {.staging_bytes = 64 * 1024}))
    CHECK(code == 0);
}

TEST_CASE("a mismatch of counts that messages show is an error on every rank, without any checking") {
  std::atomic<int> mismatches{0}, told{0};
  watched::on_threads(2, [&](communicator& comm) {
    std::vector<int> values(comm.rank() == 0 ? 100 : 101);
    status const outcome = collx::try_all_reduce<collx::algo::direct_one_shot>(comm, values);
    mismatches += outcome == status::mismatch;
    collx::failure_report const& report = comm.failure();
    std::string const text = collx::error(report).what();
    if (outcome == status::mismatch)
      told += text.find("400") != std::string::npos && text.find("404") != std::string::npos &&
              text.find("same count") != std::string::npos;
    else told += outcome == status::aborted && report.reported_by == 1 - comm.rank();
  });
  CHECK(mismatches >= 1);
  CHECK(told == 2);
}
