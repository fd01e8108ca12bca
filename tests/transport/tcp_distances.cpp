// SPDX-License-Identifier: Apache-2.0
// How far away a rank takes its peers to be, by their addresses, and that the links to them go by it.
// component: tcp
// thread sanitizer: no, it runs in one thread
#include <cstring>
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "collx/transport/everybody.hpp"
#include "collx/transport/sockets/network_connector.hpp"
#include "collx/transport/sockets/switchboard.hpp"
#include "contained.hpp"

namespace {

using collx::rank_t;
using collx::transport::flows::distance;
namespace net = collx::net;
namespace sockets = collx::transport::sockets;

net::address four(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  net::address made = net::address::any(29500);
  made.bytes[0] = a, made.bytes[1] = b, made.bytes[2] = c, made.bytes[3] = d;
  return made;
}
net::address const of_loopback = net::address::loopback(29500),
                   of_loopback_6 = net::address::loopback(29500, 6);
net::address const own = four(10, 77, 0, 1), near = four(10, 77, 0, 200), beyond = four(10, 77, 1, 200);
net::address const of_examples = four(203, 0, 113, 7);  // nobody's

// The last rank of a world, which has peers at these addresses. It waits for all of them to dial.
class last_rank {
 public:
  explicit last_rank(std::vector<net::address> const& peers) : rank_(static_cast<rank_t>(peers.size())) {
    settings_.limits = {.flows = 1, .slice_bytes = 4096, .slices_per_flow = 2};
    settings_.slices = collx::transport::flows::slice_limits::parse("", "host=1,network=4,far=7");
    net::owned_fd door = net::listen_at(net::address::loopback(0), {});
    collx::array<net::address> known(peers.size() + 1);
    for (std::size_t r = 0; r < peers.size(); ++r) known[r] = peers[r];
    known[peers.size()] = net::local_address(door.get());
    net::credentials const keys{net::secret(), 1};
    net::expectation const whom{rank_, rank_ + 1, net::mask_of(net::purpose::link), 2};
    connector_ = new sockets::network_connector(rank_, std::move(known),
                                                net::gate(std::move(door), keys, whom), keys, {}, 60'000'000);
    board_ = std::make_unique<sockets::switchboard>(rank_, rank_ + 1, settings_, connector_);
  }

  [[nodiscard]] distance distance_to(rank_t peer) const { return connector_->distance_to(peer); }

  // How many slices are under way to a peer that reads nothing.
  [[nodiscard]] std::uint32_t slices_to(rank_t peer) {
    sockets::link& to = board_->need(peer);
    for (int f = 0; f < to.flow_count(); ++f) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
      to.open(f, net::owned_fd(ends[0]), {});
      theirs_.emplace_back(ends[1]);
    }
    group_.limit(0, settings_, "all_reduce");
    sockets::channel& c = group_.at(0, peer);
    sockets::channel::posted& post = c.post(c.sent);
    post.payload = payload_.data();
    post.bytes = message_bytes;
    ++c.sent;
    ++group_.unsent(0);
    to.wants_to_send(c, false);
    to.pump();
    return to.choice().slices_under_way(0);
  }

 private:
  static constexpr std::size_t message_bytes = 4 << 20;  // more than a pair of sockets holds

  rank_t rank_;
  collx::transport::tcp_settings settings_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(message_bytes);
  sockets::channel_group group_{1,
                                collx::transport::everybody(rank_ + 1),
                                rank_,
                                4,
                                message_bytes,
                                sockets::channel_group::provision(rank_ + 1, 4, message_bytes)};
  std::vector<net::owned_fd> theirs_;
  sockets::network_connector* connector_ = nullptr;  // the switchboard's
  std::unique_ptr<sockets::switchboard> board_;
};

// Gives this process, which has a network namespace of its own, 10.77.0.1 in a network of 256 addresses.
bool make_network() {
  net::owned_fd const any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq about{};
  std::strcpy(about.ifr_name, "lo");
  about.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  if (ioctl(any.get(), SIOCSIFFLAGS, &about) != 0) return false;
  std::strcpy(about.ifr_name, "lo:1");
  auto const set = [&](unsigned long what, net::address const& to) {
    sockaddr_storage text;
    (void)to.with_port(0).to_system(text);
    std::memcpy(&about.ifr_addr, &text, sizeof about.ifr_addr);
    return ioctl(any.get(), what, &about) == 0;
  };
  return set(SIOCSIFADDR, own) && set(SIOCSIFNETMASK, four(255, 255, 255, 0));
}

}  // namespace

TEST_CASE(
    "tcp: peers at addresses of this host are near, and links to them have as many slices as that says") {
  last_rank rank({of_loopback, of_examples, of_loopback_6});
  CHECK(rank.distance_to(0) == distance::host);
  CHECK(rank.distance_to(1) == distance::far);
  CHECK(rank.distance_to(2) == distance::host);
  CHECK(rank.slices_to(0) == 1);
  CHECK(rank.slices_to(1) == 7);
  CHECK(rank.slices_to(2) == 1);
}

TEST_CASE("tcp: peers in a network of this host's own are told from those behind a router") {
  check_contained(contained(CLONE_NEWNET, [] {
                    if (!make_network()) return 2;
                    last_rank rank({own, near, beyond});
                    distance const expected[] = {distance::host, distance::network, distance::far};
                    for (rank_t r = 0; r < 3; ++r)
                      if (rank.distance_to(r) != expected[r]) return 10 + r;
                    std::uint32_t const slices[] = {1, 4, 7};
                    for (rank_t r = 0; r < 3; ++r)
                      if (rank.slices_to(r) != slices[r]) return 20 + r;
                    return 0;
                  }).ended());
}
