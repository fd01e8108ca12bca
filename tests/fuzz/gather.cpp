// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what all ranks tell each other after they have met, from neighbours in the tree that say
// anything.
#include "collx/bootstrap/gather.hpp"

#include <cstdlib>

#include <sys/socket.h>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace collx;
  if (size < 2) return 0;
  bootstrap::network_membership all;
  all.size = 7;
  all.rank = data[0] % 2;  // the root with four children, or one of them, with two
  all.children = array<net::owned_fd>(all.rank == 0 ? 4 : 2);
  net::owned_fd others[5];
  std::size_t const neighbours = all.children.size() + (all.rank != 0);
  for (std::size_t i = 0; i < neighbours; ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    (i < all.children.size() ? all.children[i] : all.parent).reset(ends[0]);
    others[i].reset(ends[1]);
  }
  bool const hang_up = (data[0] & 2) != 0;
  bool const has_lengths = (data[0] & 4) != 0;
  std::size_t const each = (size - 1) / neighbours;
  for (std::size_t i = 0; i < neighbours; ++i) {
    std::byte length[8];
    net::put_u64(length, each);
    if (has_lengths) (void)!send(others[i].get(), length, sizeof length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (each != 0) (void)!send(others[i].get(), data + 1 + i * each, each, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  for (net::owned_fd& other : others)
    if (hang_up && other) shutdown(other.get(), SHUT_WR);
  std::byte const mine[3] = {};
  try {
    auto const texts = bootstrap::text_gathering(all, now_us() + 300).gather(mine);
    if (texts.size() != 7) std::abort();
  } catch (error const& failed) {
    status const code = failed.code();
    if (code != status::timeout && code != status::peer_lost && code != status::mismatch) std::abort();
  }
  return 0;
}
