// SPDX-License-Identifier: Apache-2.0
// What a program says of its buffers: it decides among the rows of the built-in table, is handed on to
// communicators split and taken along, is never more than a hint, and ranks that say different things are
// told.
#include "collx/core/memory_kind.hpp"

#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/processes.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/explain.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/split.hpp"
#include "collx/tune/selector.hpp"
#include "is_sample.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace tune = collx::tune;
namespace contract = collx::contract;
using collx::memory_kind;
using collx::rank_t;
using world_type = collx::communicator<collx::transport::shm>;

namespace {

constexpr std::size_t count = 100'003;

template <class Contract>
void require_choice(world_type& comm, std::size_t bytes, std::string const& algorithm) {
  tune::explanation const said = tune::explain<Contract>(comm, bytes);
  require(said.algorithm == algorithm, std::string(said.text()) + ", not " + algorithm);
  tune::explanation const selected = tune::explain<Contract, collx::selected>(comm, bytes);
  require(selected.algorithm == algorithm && selected.row == said.row,
          std::string(selected.text()) + "; automatic: " + said.text());
}

int value(rank_t rank, std::size_t i) { return rank * 1009 + static_cast<int>(i % 4093); }

// One of each whose choice depends on it.
void call_on(world_type& comm, std::span<int> in, std::span<int> out, std::string const& where) {
  rank_t const size = comm.size(), root = size - 1;
  for (std::size_t i = 0; i < count; ++i) in[i] = value(comm.rank(), i);
  collx::reduce(comm, in, out.first(count), collx::sum, root);
  for (std::size_t i = 0; comm.rank() == root && i < count; ++i)
    require(out[i] == size * value(0, i) + 1009 * size * (size - 1) / 2, "reduce, " + where);
  collx::all_gather(comm, in, out);
  for (std::size_t i = 0; i < out.size(); ++i)
    require(out[i] == value(static_cast<rank_t>(i / count), i % count), "all_gather, " + where);
  collx::broadcast(comm, in, root);
  for (std::size_t i = 0; i < count; ++i) require(in[i] == value(root, i), "broadcast, " + where);
}

}  // namespace

TEST_CASE("buffers: said to be symmetric, two ranks share what one would do alone") {
  auto const codes = watched::on_processes(2, [](world_type& world) {
    std::size_t const bytes = 48 << 10;
    require(world.buffers() == memory_kind::any, "nothing is said at first");
    for (memory_kind const kind : {memory_kind::any, memory_kind::unshared, memory_kind::symmetric}) {
      world.buffers(kind);
      bool const shared = kind == memory_kind::symmetric;
      require_choice<contract::reduce>(world, bytes, shared ? "direct_two_shot" : "direct_one_shot");
      require_choice<contract::all_gather>(world, bytes, shared ? "push_pull" : "direct_one_shot");
      require_choice<contract::broadcast>(world, bytes, shared ? "push_pull" : "direct_one_shot");
      require_choice<contract::reduce>(world, 1 << 20, shared ? "direct_two_shot" : "chain");
      require_choice<contract::reduce>(world, 16383, "direct_one_shot");
    }
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("buffers: communicators split from it, and along it, know") {
  auto const codes = watched::on_processes(4, [](world_type& world) {
    world_type before = world.split(0, 0);
    world.buffers(memory_kind::symmetric);
    world_type half = world.split(world.rank() / 2, 0);
    world_type line = world.along({world.rank() % 2, 2, 2});
    require(half.buffers() == memory_kind::symmetric, "split");
    require(line.buffers() == memory_kind::symmetric, "along");
    require(before.buffers() == memory_kind::any, "split before it was said");
    require_choice<contract::reduce>(half, 1 << 20, "direct_two_shot");
    require_choice<contract::reduce>(world, 1 << 20, "direct_two_shot");
    require_choice<contract::reduce>(before, 1 << 20, "chain");
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("buffers: whatever was said, the results are right in memory of either kind, and of both") {
  for (rank_t const size : {2, 3, 4}) {
    if (!sample::takes_running(size)) continue;
    auto const codes = watched::on_processes(size, [](world_type& world) {
      auto const ranks = static_cast<std::size_t>(world.size());
      auto shared_in = world.allocate<int>(count), shared_out = world.allocate<int>(ranks * count);
      std::vector<int> own_in(count), own_out(ranks * count);
      for (memory_kind const kind : {memory_kind::symmetric, memory_kind::unshared}) {
        world.buffers(kind);
        call_on(world, shared_in.span(), shared_out.span(), "symmetric");
        call_on(world, own_in, own_out, "private");
        bool const odd = world.rank() % 2 != 0;
        call_on(world, odd ? shared_in.span() : own_in, odd ? std::span(own_out) : shared_out.span(),
                "mixed");
      }
    });
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("buffers: ranks that say different things are told, where calls are checked") {
  auto const codes = watched::on_processes(2, [](world_type& world) {
    world.checking(collx::checking_level::communication);
    world.buffers(world.rank() == 0 ? memory_kind::symmetric : memory_kind::unshared);
    std::vector<int> in(count), out(count);
    std::string said;
    try {
      collx::reduce(world, in, out, collx::sum, 0);
    } catch (collx::error const& e) {
      said = e.what();
    }
    for (char const* const name : {"direct_two_shot", "chain"})
      require(said.find(name) != std::string::npos, said);
  });
  for (int const code : codes) CHECK(code == 0);
}
