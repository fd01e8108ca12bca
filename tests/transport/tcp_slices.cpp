// SPDX-License-Identifier: Apache-2.0
// How many slices a connection has under way: never more than the rules for the peer's distance and the
// collective allow, and as many as they do. And slices of several connections make up the messages they
// were, whatever order they come in, also where their numbers begin again.
#include "collx/transport/flows/slice_limits.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "collx/collx.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/sockets/link.hpp"
#include "transport/wired.hpp"

namespace {

using collx::transport::flows::distance;
using collx::transport::flows::slice_limits;
namespace sockets = collx::transport::sockets;
namespace net = collx::net;

slice_limits parse(std::string const& text) {
  return slice_limits::parse("COLLX_TCP_SLICES", text.c_str());
}

// A link of which the other side reads nothing for a while; with one connection for data or with more.
struct loaded_link {
  static constexpr std::size_t slice_bytes = 64 * 1024, message_bytes = 4 << 20;
  static constexpr int flows_max = 3;

  explicit loaded_link(distance how_far, collx::transport::tcp_settings const& chosen)
      : settings(chosen),
        group(1, collx::transport::everybody(2), 0, 4, message_bytes,
              sockets::channel_group::provision(2, 4, message_bytes)),
        to_peer(1, how_far, chosen.limits, false) {
    for (int f = 0; f < chosen.limits.connections(); ++f) {
      int ends[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
      int const little = 2 * slice_bytes;  // whatever this system gives to all
      REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
      to_peer.open(f, net::owned_fd(ends[0]), {});
      theirs[f].reset(ends[1]);
    }
  }

  // Reads all connections for data but one, in turn, as long as something comes; -1: all of them.
  void read_all_but(int still) {
    std::vector<std::byte> room(slice_bytes);
    for (bool more = true; more;) {
      more = to_peer.pump();
      for (int f = 0; f < to_peer.choice().limits().flows; ++f) {
        if (f == still) continue;
        ssize_t const n = recv(theirs[1 + f].get(), room.data(), room.size(), MSG_DONTWAIT);
        if (n > 0) heard[f] += static_cast<std::size_t>(n), more = true;
      }
    }
  }

  void send(int lane, char const* collective) {
    group.limit(lane, settings, collective);
    sockets::channel& c = group.at(lane, 1);
    sockets::channel::posted& post = c.post(c.sent);
    post.payload = payload.data();
    post.bytes = message_bytes;
    ++c.sent;
    ++group.unsent(lane);
    to_peer.wants_to_send(c, false);
  }

  // Until everything is written; returns the most slices that were under way.
  std::uint32_t drain() {
    std::uint32_t most = 0;
    std::uint64_t most_bytes = 0;
    std::vector<std::byte> got(100'000);
    std::size_t total = 0;
    for (;;) {
      to_peer.pump();
      most = std::max(most, to_peer.choice().slices_under_way(0));
      most_bytes = std::max(most_bytes, to_peer.choice().bytes_under_way(0));
      ssize_t const n = recv(theirs[1].get(), got.data(), got.size(), MSG_DONTWAIT);
      if (n <= 0) break;
      total += static_cast<std::size_t>(n);
    }
    std::size_t const slices = message_bytes / slice_bytes;
    CHECK(total % (message_bytes + slices * sockets::frame_bytes) == 0);
    CHECK(total != 0);
    CHECK(most_bytes <= most * std::uint64_t{slice_bytes});
    CHECK(to_peer.choice().bytes_under_way(0) == 0);
    for (int lane = 0; lane < 4; ++lane) CHECK(group.unsent(lane) == 0);
    return most;
  }

  collx::transport::tcp_settings settings;
  sockets::channel_group group;
  sockets::link to_peer;
  net::owned_fd theirs[1 + flows_max];
  std::size_t heard[flows_max] = {};
  std::vector<std::byte> payload = std::vector<std::byte>(message_bytes);
};

// Two ranks of which one sends to the other over three connections, a lane's slices numbered from near their
// end on. What arrives is taken frame by frame, of whichever connection the seed says.
struct jumbled_link {
  static constexpr int lanes = 2, flow_count = 3;
  static constexpr std::size_t message_bytes = 8192;  // at most, and it is large
  static constexpr std::uint32_t slice_bytes = 1024, mask = collx::transport::flows::sequence_mask;
  static constexpr std::size_t messages = 150;  // of each lane

  struct message {
    std::size_t begin, bytes;
  };

  explicit jumbled_link(std::uint64_t seed)
      : random(seed),
        from(1, collx::transport::everybody(2), 0, lanes, message_bytes,
             sockets::channel_group::provision(2, lanes, message_bytes)),
        to(1, collx::transport::everybody(2), 1, lanes, message_bytes,
           sockets::channel_group::provision(2, lanes, message_bytes)),
        to_peer(1, distance::network, {.flows = flow_count, .slice_bytes = slice_bytes}, true) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
    for (int f = 0; f <= flow_count; ++f) {
      int ends[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
      to_peer.open(f, net::owned_fd(ends[0]), {});
      theirs[f].open(net::owned_fd(ends[1]), {});
    }
    for (int lane = 0; lane < lanes; ++lane) {
      std::uint32_t const first = mask - (lane == 0 ? 5 : 300);
      from.at(lane, 1).next_sequence = highest[lane] = first;
      to.at(lane, 0).order = collx::transport::flows::slice_window(first);
      from.limit(lane, {}, "");
    }
  }

  void post(int lane) {
    sockets::channel& c = from.at(lane, 1);
    if (sent[lane].size() == messages || !c.has_credit()) return;
    message const next{random.below(100), random.below(message_bytes + 1)};
    sent[lane].push_back(next);
    sockets::channel::posted& post = c.post(c.sent++);
    post = {};
    post.payload = bytes.data() + next.begin;
    post.bytes = static_cast<std::uint32_t>(next.bytes);
    c.large_unread += c.is_large(next.bytes);
    ++from.unsent(lane);
    to_peer.wants_to_send(c, false);
  }

  // What a flow asks of whoever reads it.
  sockets::flow::answer begin(sockets::frame const& what, std::byte*& at) {
    if (!may_take) return sockets::flow::answer::later;
    may_take = false;
    return to.begin(0, what, at);
  }
  bool end(sockets::frame const& what, std::byte const* slice) {
    if (((what.sequence - highest[what.lane]) & mask) < mask / 2) highest[what.lane] = what.sequence;
    else ++overtaken;
    return to.end(what, slice);
  }

  // The next frame of that connection, if it is there.
  void take(int f) {
    may_take = true;
    theirs[f].read(*this);
    REQUIRE(theirs[f].state() == sockets::flow_state::open);
  }

  void consume(int lane) {
    sockets::channel& c = to.at(lane, 0);
    if (c.here == c.consumed) return;
    message const& expected = sent[lane].at(c.consumed);
    sockets::channel::incoming const& in = c.slot(c.consumed);
    REQUIRE(in.bytes == expected.bytes);
    REQUIRE(std::memcmp(in.to, bytes.data() + expected.begin, expected.bytes) == 0);
    if (!c.consume()) return;
    c.owed_weight = 0;
    sockets::frame what;
    what.kind = sockets::frame_kind::credit;
    what.lane = c.lane;
    what.from = 1;
    what.consumed = static_cast<std::uint32_t>(c.consumed);
    std::byte* none = nullptr;
    REQUIRE(from.begin(1, what, none) == sockets::flow::answer::take);
  }

  void run() {
    auto const done = [&] {
      return to.at(0, 0).consumed == messages && to.at(1, 0).consumed == messages;
    };
    int favourite = 1;
    for (int step = 0; !done(); ++step) {
      REQUIRE(step < 1'000'000);
      if (step % 64 == 0) favourite = 1 + static_cast<int>(random.below(flow_count));
      int const lane = static_cast<int>(random.below(lanes));
      post(lane);
      to_peer.pump();
      take(random.below(4) == 0 ? 1 + static_cast<int>(random.below(flow_count)) : favourite);
      if (random.below(2) == 0) consume(lane);
    }
  }

  collx::replayable_random random;
  sockets::channel_group from, to;
  sockets::link to_peer;
  sockets::flow theirs[1 + flow_count];
  std::vector<std::byte> bytes = std::vector<std::byte>(message_bytes + 100);
  std::vector<message> sent[lanes];
  std::uint32_t highest[lanes] = {};
  bool may_take = false;
  std::uint64_t overtaken = 0;  // slices that came after later ones
};

// Keeps what it is told about the calls on it.
struct curious_endpoint : collx::transport::tcp::endpoint {
  using collx::transport::tcp::endpoint::tcp_endpoint;
  void about(int lane, char const* collective) noexcept {
    heard = collective;
    collx::transport::tcp::endpoint::about(lane, collective);
  }
  std::string heard;
};
struct curious_tcp {
  using world = collx::transport::tcp::world;
  using endpoint = curious_endpoint;
  using membership = collx::transport::tcp::membership_of<curious_tcp>;
};

}  // namespace

TEST_CASE("slice limits: the most special rule counts, and nothing else is understood") {
  slice_limits const none, all = parse("5");
  CHECK(none.of(distance::far, "all_reduce", 2) == 2);
  CHECK_FALSE(all.tells_collectives_apart());
  CHECK(all.of(distance::host, "", 2) == 5);
  slice_limits const some = parse("far/all_to_all=1,3,far=8,all_to_all=4,host=16");
  CHECK(some.tells_collectives_apart());
  CHECK(some.of(distance::far, "all_to_all", 2) == 1);
  CHECK(some.of(distance::network, "all_to_all", 2) == 4);
  CHECK(some.of(distance::host, "all_to_all", 2) == 4);
  CHECK(some.of(distance::far, "all_reduce", 2) == 8);
  CHECK(some.of(distance::host, "", 2) == 16);
  CHECK(some.of(distance::network, "all_reduce", 2) == 3);
  CHECK(parse("far=1,far=2").of(distance::far, "", 3) == 2);  // the last one that is said
  for (char const* wrong : {"0", "17", "far", "far=", "=3", "near=3", "far/=3", "far/nothing=3", "nothing=3",
                            "all_to_all/far=3", "3x", "-1", ",3", "far=3 ", "99999999999999999999",
                            "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS((void)parse(wrong), doctest::Contains("COLLX_TCP_SLICES"), collx::error);
  }
  // However long it is, it is said what to write.
  std::string long_one;
  for (int i = 0; i < 17; ++i) long_one += "network/reduce_scatter=2,";
  CHECK_THROWS_WITH_AS((void)parse(long_one), doctest::Contains("and N 1 to 16"), collx::error);
}

TEST_CASE("tcp: a connection has as many slices under way as its rules allow, and never more") {
  collx::transport::tcp_settings chosen;
  chosen.limits = {.flows = 1, .slice_bytes = loaded_link::slice_bytes, .slices_per_flow = 2};
  chosen.slices = parse("host=1,far=6,all_to_all=3,far/all_to_all=4");
  struct {
    distance how_far;
    char const* collective;
    std::uint32_t most;
  } const cases[] = {{distance::host, "all_reduce", 1}, {distance::network, "all_reduce", 2},
                     {distance::far, "all_reduce", 6},  {distance::host, "all_to_all", 3},
                     {distance::far, "all_to_all", 4},  {distance::far, "", 6}};
  for (auto const& each : cases) {
    CAPTURE(each.collective);
    CAPTURE(each.most);
    loaded_link link(each.how_far, chosen);
    link.send(0, each.collective);
    CHECK(link.drain() == each.most);
  }
}

TEST_CASE("tcp: collectives that share a connection each keep to their own limit") {
  collx::transport::tcp_settings chosen;
  chosen.limits = {.flows = 1, .slice_bytes = loaded_link::slice_bytes, .slices_per_flow = 8};
  chosen.slices = parse("all_to_all=2");
  loaded_link link(distance::network, chosen);
  link.send(0, "all_to_all");
  link.to_peer.pump();
  CHECK(link.to_peer.choice().slices_under_way(0) == 2);
  link.send(1, "all_reduce");
  link.to_peer.pump();
  CHECK(link.to_peer.choice().slices_under_way(0) == 2);  // it is the other one's turn
  CHECK(link.drain() == 8);                               // until that one has come to its end
}

TEST_CASE("tcp: a connection that stands still gets no more than its share, and the others take the rest") {
  constexpr std::size_t share = 2, flow_count = loaded_link::flows_max;
  constexpr std::size_t slice = loaded_link::slice_bytes + sockets::frame_bytes;
  constexpr std::size_t whole = loaded_link::message_bytes / loaded_link::slice_bytes * slice;
  collx::transport::tcp_settings chosen;
  chosen.limits = {.flows = flow_count, .slice_bytes = loaded_link::slice_bytes, .slices_per_flow = share};
  for (int still = 0; still < static_cast<int>(flow_count); ++still) {
    CAPTURE(still);
    loaded_link link(distance::network, chosen);
    link.send(0, "all_reduce");
    link.read_all_but(still);
    std::size_t const taken = link.heard[0] + link.heard[1] + link.heard[2];
    // What is missing are its share, and what its socket had taken before.
    CHECK(link.to_peer.choice().slices_under_way(still) == share);
    CHECK(taken >= whole - (share + 4) * slice);
    for (int f = 0; f < static_cast<int>(flow_count); ++f)
      if (f != still) CHECK(link.heard[f] > whole / flow_count);
    CHECK(link.group.unsent(0) == 1);
    // And once it moves again the message comes to its end.
    link.read_all_but(-1);
    CHECK(link.heard[0] + link.heard[1] + link.heard[2] == whole);
    CHECK(link.heard[still] < whole / flow_count / 2);
    CHECK(link.group.unsent(0) == 0);
  }
}

TEST_CASE("tcp: messages are whole when their slices come in any order while their numbers begin again") {
  watchdog dog;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    jumbled_link link(seed);
    link.run();
    CHECK(link.overtaken > jumbled_link::messages / 10);
    for (int lane = 0; lane < jumbled_link::lanes; ++lane) CHECK(link.highest[lane] < 1000);
  }
}

TEST_CASE("tcp: a world whose slices a receiver could not remember is not made, and leaves nothing") {
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = std::size_t{1} << 20;
  chosen.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
  wired::cables all(2);
  CHECK_THROWS_WITH_AS((void)collx::transport::tcp::join(0, 2, chosen, all[0]),
                       "collx: tcp_settings::limits.slice_bytes is 1024; set it to at least 10083, or "
                       "common.staging_bytes (1048576) to less",
                       collx::error);
  CHECK(all[0] == nullptr);  // which belonged to the world
  delete all[1];
}

TEST_CASE("tcp: an endpoint hears which collective it is that begins") {
  collx::transport::tcp_settings chosen;
  chosen.limits = {.flows = 1, .slice_bytes = 1024, .slices_per_flow = 2};
  chosen.slices = parse("all_to_all=1");
  wired::on_wired_threads<curious_tcp>(2, chosen, [](auto& comm) {
    std::string const& heard = comm.engine().endpoint().heard;
    std::vector<int> sent(20'000, comm.rank()), got(sent.size());
    collx::all_to_all(comm, std::span<int const>(sent), std::span(got));
    if (got[0] != 0 || got.back() != 1) throw std::runtime_error("all_to_all is wrong");
    if (heard != "all_to_all") throw std::runtime_error("heard of " + heard);
    collx::all_reduce(comm, std::span(sent));
    if (sent[0] != 1) throw std::runtime_error("all_reduce is wrong");
    if (heard != "all_reduce") throw std::runtime_error("heard of " + heard);
    // Calls without an executor tell as well, and what was called, not whose steps it takes.
    collx::all_to_all(comm, std::span<int const>(sent).first(4), std::span(got).first(4));
    if (heard != "all_to_all") throw std::runtime_error("heard of " + heard);
    collx::barrier(comm);
    if (heard != "barrier") throw std::runtime_error("heard of " + heard);
  });
}
