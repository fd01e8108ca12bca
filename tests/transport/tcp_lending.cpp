// SPDX-License-Identifier: Apache-2.0
// What a rank sends from where it lies, and what it copies first.
// component: tcp
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/ring.hpp"
#include "collx/collx.hpp"
#include "transport/wired.hpp"

namespace {

// Counts what is copied to staging.
struct counting_endpoint : collx::transport::tcp::endpoint {
  using collx::transport::tcp::endpoint::tcp_endpoint;
  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    staged += bytes;
    return collx::transport::tcp::endpoint::stage(lane, bytes);
  }
  std::size_t staged = 0;
};
struct counting_tcp {
  using world = collx::transport::tcp::world;
  using endpoint = counting_endpoint;
  using membership = collx::transport::tcp::membership_of<counting_tcp>;
};

}  // namespace

TEST_CASE("tcp: nothing is copied before it is sent that nobody overwrites, however short") {
  wired::on_wired_threads<counting_tcp>(3, {}, [](auto& comm) {
    for (std::size_t const bytes : {1u, 64u, 65u, 128u, 1023u, 1024u, 5000u}) {
      for (collx::rank_t root = 0; root < 3; ++root) {
        std::vector<unsigned char> text(bytes), right(bytes);
        std::iota(right.begin(), right.end(), static_cast<unsigned char>(root));
        if (comm.rank() == root) text = right;
        collx::broadcast(comm, std::span(text), root);
        if (comm.rank() == root) std::fill(text.begin(), text.end(), 0);  // it is the caller's again
        collx::barrier(comm);
        if (comm.rank() != root && text != right) throw std::runtime_error("broadcast is wrong");
      }
      std::vector<unsigned char> const mine(bytes, static_cast<unsigned char>(comm.rank()));
      std::vector<unsigned char> all(3 * bytes);
      collx::all_gather<collx::algo::ring>(comm, mine, std::span(all));
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] != i / bytes) throw std::runtime_error("all_gather is wrong");
      std::size_t const staged = comm.engine().endpoint().staged;
      if (staged != 0) throw std::runtime_error(std::to_string(staged) + " bytes were copied first");
    }
  });
}
