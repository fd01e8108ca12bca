// SPDX-License-Identifier: Apache-2.0
// Sums of floats that every order of additions rounds differently, by every collective that combines: what
// tells whether two runs combined alike.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/contribution.hpp"
#include "collective/forms.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/schedule/type_list.hpp"

namespace rounded_sums {

using collx::rank_t;
using bits = std::vector<std::uint32_t>;
using combining =
    collx::type_list<collx::contract::all_reduce, collx::contract::reduce_scatter, collx::contract::reduce,
                     collx::contract::scan, collx::contract::exclusive_scan>;

// Elements of a block: several fragments with the least staging memory, and no multiple of anything.
inline constexpr std::size_t count = 9007;
inline constexpr collx::transport::settings few_fragments{.staging_bytes = 1 << 20};
inline constexpr collx::transport::settings many_fragments{.staging_bytes = 1 << 16};

// What ranks contribute: drawn once.
class contributions {
 public:
  static constexpr rank_t size_max = 8;

  static float const* of(rank_t rank) {
    static contributions const all;
    return all.drawn_.data() + static_cast<std::size_t>(rank) * index_count;
  }

 private:
  static constexpr std::size_t index_count = count * static_cast<std::size_t>(size_max);

  contributions() {
    for (rank_t r = 0; r < size_max; ++r)
      for (std::size_t i = 0; i < index_count; ++i) drawn_.push_back(contribution(r, i));
  }

  std::vector<float> drawn_;
};

// A sum behind a pointer: what is done with every one is compiled once.
template <template <class> class Form, class Transport>
struct sum {
  oracle::collective const* collective;
  char const* algorithm;
  typename Form<void>::template result<Transport> (*perform)(collx::communicator<Transport>&, rank_t root,
                                                             std::span<float const> in, std::span<float> out);
};

template <template <class> class Form, class Transport, class Algorithm, class Contract>
inline constexpr sum<Form, Transport> sum_of{
    &oracle::collective_of<Contract>, Algorithm::name,
    [](collx::communicator<Transport>& comm, rank_t root, std::span<float const> in, std::span<float> out) {
      return forms::apply_apart<Form<Algorithm>, Contract>(comm, root, in, out, collx::sum);
    }};

// One rank's call.
struct part {
  oracle::collective const& what;
  collx::problem p;
  std::vector<float> in{}, out{};

  part(oracle::collective const& called, rank_t rank, rank_t size, std::size_t block)
      : what(called), p{rank, size, called.rooted ? size / 2 : 0} {
    if (size > contributions::size_max) throw std::logic_error("numbers are drawn for fewer ranks");
    auto const blocks = [&](collx::block_window const& of) {
      return block * static_cast<std::size_t>(of.count);
    };
    in.assign(contributions::of(rank), contributions::of(rank) + blocks(what.input(p)));
    out.resize(!what.sharded && !what.rooted ? block : blocks(what.output(p)));
  }

  template <class Sum, class Transport>
  auto call(Sum const& with, collx::communicator<Transport>& comm) {
    return with.perform(comm, p.root, in, out);
  }

  // Nothing where this rank gets no result.
  [[nodiscard]] bits result() const {
    bits all(what.output(p).count == 0 ? 0 : out.size());
    if (!all.empty()) std::memcpy(all.data(), out.data(), all.size() * sizeof(float));
    return all;
  }
};

using collx::transport::mailbox;

inline std::vector<bits> on_mailbox(sum<forms::started, mailbox> const& with, rank_t size, std::size_t block,
                                    std::uint64_t seed, collx::transport::settings settings) {
  collx::bootstrap::mailbox_ranks<> ranks(size, seed, settings);
  std::vector<part> parts;
  for (rank_t r = 0; r < size; ++r) parts.emplace_back(*with.collective, r, size, block);
  collx::array<collx::request<mailbox::endpoint>> requests(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) requests[i] = parts[i].call(with, ranks[parts[i].p.rank]);
  REQUIRE(ranks.drive(requests) == collx::status::ok);
  std::vector<bits> all;
  for (auto const& each : parts) all.push_back(each.result());
  return all;
}
template <class Algorithm, class Contract>
std::vector<bits> on_mailbox(rank_t size, std::size_t block, std::uint64_t seed,
                             collx::transport::settings settings) {
  return on_mailbox(sum_of<forms::started, mailbox, Algorithm, Contract>, size, block, seed, settings);
}

// Throws on the rank that gets something else.
template <class Transport>
void require_same(sum<forms::blocking, Transport> const& with, collx::communicator<Transport>& comm,
                  std::size_t block, std::vector<bits> const& expected) {
  part mine(*with.collective, comm.rank(), comm.size(), block);
  mine.call(with, comm);
  if (mine.result() != expected[static_cast<std::size_t>(comm.rank())])
    throw std::runtime_error(std::string(with.collective->name) + "<" + with.algorithm + ">: other bits");
}
template <class Algorithm, class Contract, class Transport>
void require_same(collx::communicator<Transport>& comm, std::size_t block,
                  std::vector<bits> const& expected) {
  require_same(sum_of<forms::blocking, Transport, Algorithm, Contract>, comm, block, expected);
}

}  // namespace rounded_sums
