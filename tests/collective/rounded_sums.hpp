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

// One rank's call.
template <class Contract>
struct part {
  collx::problem p;
  std::size_t block;
  std::vector<float> in{}, out{};

  part(rank_t rank, rank_t size, std::size_t elements)
      : p{rank, size, Contract::rooted ? size / 2 : 0}, block(elements) {
    in.resize(block * static_cast<std::size_t>(Contract::input(p).count));
    out.resize(block * static_cast<std::size_t>(Contract::output(p).count));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = contribution(rank, i);
  }

  template <class Form>
  auto call(auto& comm) {
    std::span<float> to = out;
    if (!Contract::sharded && !Contract::rooted) {
      out.resize(block);
      to = out;
    }
    return forms::apply<Form, Contract>(comm, p.root, false, std::span<float const>(in), to, collx::sum);
  }

  // Nothing where this rank gets no result.
  [[nodiscard]] bits result() const {
    bits all(Contract::output(p).count == 0 ? 0 : out.size());
    if (!all.empty()) std::memcpy(all.data(), out.data(), all.size() * sizeof(float));
    return all;
  }
};

template <class Algorithm, class Contract>
std::vector<bits> on_mailbox(rank_t size, std::size_t block, std::uint64_t seed,
                             collx::transport::settings settings) {
  collx::bootstrap::mailbox_ranks<> ranks(size, seed, settings);
  std::vector<part<Contract>> parts;
  for (rank_t r = 0; r < size; ++r) parts.emplace_back(r, size, block);
  collx::array<collx::request<collx::transport::mailbox::endpoint>> requests(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests[i] = parts[i].template call<forms::started<Algorithm>>(ranks[parts[i].p.rank]);
  REQUIRE(ranks.drive(requests) == collx::status::ok);
  std::vector<bits> all;
  for (auto const& each : parts) all.push_back(each.result());
  return all;
}

// Throws on the rank that gets something else.
template <class Algorithm, class Contract, class Transport>
void require_same(collx::communicator<Transport>& comm, std::size_t block,
                  std::vector<bits> const& expected) {
  part<Contract> mine(comm.rank(), comm.size(), block);
  mine.template call<forms::blocking<Algorithm>>(comm);
  if (mine.result() != expected[static_cast<std::size_t>(comm.rank())])
    throw std::runtime_error(std::string(Contract::name) + "<" + Algorithm::name + ">: other bits");
}

}  // namespace rounded_sums
