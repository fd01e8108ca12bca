// SPDX-License-Identifier: Apache-2.0
// Reductions on the GPU in collectives that the host drives, with a GPU played by threads; and ranks whose
// memory is the host's among those whose memory is a GPU's.
#include "collx/collective/device_reductions.hpp"

#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "collective/played_gpu.hpp"
#include "collx/collective/host_memory_forms.hpp"
#include "collx/device/combine.hpp"
#include "collx/host_driven.hpp"
#include "watched.hpp"

namespace {

using namespace collx;
using played_gpu::copier, played_gpu::queue;
using driven = host_driven<transport::threads, copier>;

// Keeps the order of its operands: the numbers of ranks, written one behind the other.
struct digits {
  COLLX_HD long operator()(long a, long b) const {
    long shift = 10;
    while (shift <= b) shift *= 10;
    return a * shift + b;
  }
};

// What a kernel of the user's stream would do.
template <class Op>
auto combining(queue& stream, Op op) {
  return [&stream, op](long* out, long const* const* sources, int source_count, std::size_t count) {
    std::vector<long const*> const from(sources, sources + source_count);
    stream.put([=] {
      device::solo_team alone;
      device::combine(alone, &out, 1, from.data(), source_count, count, op, true, source_count);
    });
  };
}

void check(bool holds, std::string const& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class Comm>
void one_rank(Comm& comm, std::size_t count) {
  copier copies(4096);
  queue stream;
  driven gpu(comm, copies);
  auto const n = static_cast<std::size_t>(comm.size());
  long expected = 1;
  for (rank_t r = 1; r < comm.size(); ++r) expected = digits{}(expected, r + 1);
  std::vector<long> const in(count, comm.rank() + 1);
  std::vector<long> out(count, -1), same = in, workspace(count), block(count / n, -1);
  detail::all_reduce_on_device(gpu, std::span<long const>(in), std::span(out), digits{}, std::span(workspace),
                               combining(stream, digits{}), &stream);
  detail::all_reduce_on_device(gpu, std::span<long const>(same), std::span(same), digits{},
                               std::span(workspace), combining(stream, digits{}), &stream);
  detail::reduce_scatter_on_device(gpu, std::span<long const>(in).first(block.size() * n), std::span(block),
                                   std::span(workspace), combining(stream, digits{}), &stream);
  stream.wait();
  gpu.throw_if_failed();
  check(out == std::vector<long>(count, expected), "all_reduce");
  check(same == out, "all_reduce in place");
  check(block == std::vector<long>(block.size(), expected), "reduce_scatter");
}

}  // namespace

TEST_CASE("a GPU adds up what the host has brought") {
  for (rank_t const size : {1, 2, 3, 4})
    for (std::size_t const count : {std::size_t{2}, std::size_t{12}, std::size_t{1001}, std::size_t{20000}}) {
      CAPTURE(size);
      CAPTURE(count);
      CHECK_NOTHROW(watched::on_threads(size, [&](auto& comm) { one_rank(comm, count); }));
    }
}

TEST_CASE("a workspace that is too small is refused before anything is sent") {
  watched::on_threads(2, [](auto& comm) {
    copier copies(4096);
    queue stream;
    driven gpu(comm, copies);
    std::vector<long> data(11, 1), workspace(9);
    CHECK_THROWS_AS(detail::all_reduce_on_device(gpu, std::span<long const>(data), std::span(data), sum,
                                                 std::span(workspace), combining(stream, sum), &stream),
                    error);
  });
}

TEST_CASE("a count whose bytes wrap around is refused: a kernel would run over all memory") {
  watched::on_threads(2, [](auto& comm) {
    copier copies(4096);
    queue stream;
    driven gpu(comm, copies);
    long some[4] = {};
    bool combined = false;
    auto const note = [&](long*, long const* const*, int, std::size_t) { combined = true; };
    // For 2 ranks an input of 2^64 elements, which is one of none.
    std::span<long> const absurd(some, std::size_t{1} << 63), workspace(some, 4);
    CHECK_THROWS_WITH_AS(
        detail::reduce_scatter_on_device(gpu, std::span<long const>(), absurd, workspace, note, &stream),
        doctest::Contains("so many elements fit into no memory"), error);
    CHECK(!combined);
  });
}

TEST_CASE("ranks with memory of the host and of a GPU take part in one collective") {
  for (rank_t const size : {2, 3}) {
    CAPTURE(size);
    CHECK_NOTHROW(watched::on_threads(size, [](auto& comm) {
      std::size_t const count = 5000;
      std::vector<int> data(count, comm.rank() + 1), all(count * static_cast<std::size_t>(comm.size()), -1);
      problem const p{comm.rank(), comm.size()};
      if (comm.rank() % 2 == 0) {
        copier copies(4096);
        queue stream;
        driven gpu(comm, copies);
        for (int i = 0; i < 40; ++i)  // more than there are words
          gpu.template enqueue<automatic>(detail::bind_all_gather(p, data, all), &stream);
        gpu.template enqueue<automatic>(detail::bind_all_reduce(p, data, sum), &stream);
        stream.wait();
        gpu.throw_if_failed();
      } else {
        transport::host_copies copies(4096);
        host_driven<transport::threads, transport::host_copies> here(comm, copies);
        for (int i = 0; i < 40; ++i) all_gather(here, data, all);
        all_reduce(here, data, sum);
        copies.wait();
        here.throw_if_failed();
      }
      check(data == std::vector<int>(count, comm.size() * (comm.size() + 1) / 2), "all_reduce");
      for (std::size_t i = 0; i < all.size(); ++i)
        check(all[i] == static_cast<int>(i / count) + 1, "all_gather");
    }));
  }
}
