// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a peer that says anything at all. A rank reads it from real sockets, one for control and some
// for data, which come in any order and may be knocks, while it expects and consumes messages; whatever
// comes, nothing is stored outside of where messages belong, nor there once they have been consumed.
#include <deque>
#include <span>
#include <vector>

#include <sys/eventfd.h>
#include <sys/socket.h>

#include "collx/transport/tcp.hpp"
#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx;
using transport::sockets::connection;
using transport::sockets::frame;
using transport::sockets::frame_kind;

// Which rank this is, of how many, and which one is played. The lower one dials; the higher one knocks. Of
// four ranks these two are no neighbours: the lower one has not dialled when the other knocks.
struct roles {
  rank_t rank, size, peer;
};
constexpr roles all_roles[] = {{0, 2, 1}, {1, 2, 0}, {0, 4, 2}, {2, 4, 0}};
constexpr int flows_max = 4;

// Hands over connections with the peer when it is told to.
class played_network : public transport::sockets::connector {
 public:
  explicit played_network(rank_t peer) : peer_(peer) {}

  // The end that the peer has.
  [[nodiscard]] net::owned_fd connect(int flow, bool is_knock) {
    int both[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
    ready_.push_back({peer_, flow, net::owned_fd(both[0]), {}, is_knock});
    return net::owned_fd(both[1]);
  }

  void dial(rank_t, int, int) noexcept override {}
  bool poll(connection& next) noexcept override {
    if (ready_.empty()) return false;
    next = std::move(ready_.front());
    ready_.pop_front();
    return true;
  }
  int fd() const noexcept override { return bell_.get(); }
  bool is_dialling() const noexcept override { return !ready_.empty(); }
  // Of four ranks two are not there.
  status outlook(rank_t peer) noexcept override { return peer == peer_ ? status::ok : status::peer_lost; }

 private:
  rank_t peer_;
  std::deque<connection> ready_;
  net::owned_fd bell_{eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)};
};

// A frame that is mostly in order, so that what is wrong in it gets far.
frame next_frame(input& in, std::uint32_t from, bool& holds_back) {
  frame f;
  std::uint32_t const shape = in.byte();
  holds_back = (shape & 0x20) != 0;
  f.kind = static_cast<frame_kind>(1 + shape % 7);
  if ((shape & 0x80) == 0) f.kind = frame_kind::data;
  f.lane = static_cast<std::uint8_t>(in.byte() % 5);
  f.communicator = 1 + (in.byte() == 77);
  f.from = in.byte() % 16 == 15 ? in.byte() : from;
  f.message = in.byte() % 20;
  f.sequence = in.byte();
  f.consumed = in.byte() % 4;
  if (f.kind == frame_kind::data) {
    f.message_bytes = in.word() * (in.byte() == 3 ? 65536u : 1u);
    f.offset = in.word();
    f.slice_bytes = in.word() % 300;
    std::uint32_t const said = in.byte();
    f.flags = said & frame::is_checked;
    // Mostly right, too.
    bool const ends = f.offset + f.slice_bytes == f.message_bytes;
    if (ends != (said % 64 >= 60)) f.flags |= frame::ends_message;
  }
  if (f.kind != frame_kind::data && !holds_back) f.flags = frame::is_checked;
  if ((shape & 0x40) != 0) {  // larger numbers: beyond the window of slices, and below 0
    f.sequence = (f.sequence | in.word() << 8) & transport::flows::sequence_mask;
    f.message += static_cast<std::uint32_t>(static_cast<std::int8_t>(in.byte()));
    f.consumed += static_cast<std::uint32_t>(static_cast<std::int8_t>(in.byte()));
  }
  return f;
}

// The peer, and the rank that listens to it.
class scene {
 public:
  // `how`: the roles, how many flows there are, whether all connections are there from the beginning, and
  // whether the rank makes checksums.
  explicit scene(std::uint32_t how)
      : who_(all_roles[how & 3]),
        flows_(1 + static_cast<int>(how >> 2 & 3)),
        network_(new played_network(who_.peer)),
        comm_(transport::tcp::join(who_.rank, who_.size, settings((how & 0x20) != 0), network_)) {
    for (int f = 0; f <= flows_ && (how & 0x10) == 0; ++f) connect(f, false);
  }

  // One thing that either of them does.
  void step(input& in) {
    static std::byte const payload[32 * 1024] = {};
    constexpr std::size_t sizes[] = {1, 600, 5000, sizeof payload};  // one slice, and several
    std::uint32_t const what = in.byte();
    int const lane = static_cast<int>(what >> 4 & 3);
    transport::tcp::endpoint& endpoint = comm_.engine().endpoint();
    transport::arrival here;
    switch (what % 8) {
      case 0: {
        auto& buffer = wanted_[lane].emplace_back(in.word() % 400);
        endpoint.expect(lane, who_.peer, buffer.empty() ? nullptr : buffer.data(), buffer.size());
        break;
      }
      case 1:
        if (endpoint.arrived(lane, who_.peer, here)) {
          volatile std::byte last{};
          if (here.bytes != 0) last = here.data[here.bytes - 1];
          (void)last;
          // None is consumed that was not expected, be it as late as now.
          if (wanted_[lane].empty()) endpoint.expect(lane, who_.peer, nullptr, here.bytes);
          endpoint.consume(lane, who_.peer);
          // The caller's again, who frees it.
          if (!wanted_[lane].empty()) wanted_[lane].pop_front();
        }
        break;
      case 2:
        if (endpoint.can_send(lane, who_.peer))
          endpoint.send(lane, who_.peer, payload, sizes[what >> 6], transport::handover::in_place);
        break;
      case 3: attend(endpoint, what >> 4); break;
      case 4: say(in, 0); break;
      default: say(in, 1 + static_cast<int>(what >> 4) % flows_); break;
    }
    endpoint.progress();
  }

  void end() {
    for (int i = 0; i < 20; ++i) comm_.engine().endpoint().progress();
    for (net::owned_fd& each : theirs_) each.reset();
  }

 private:
  transport::tcp_settings settings(bool checks) const {
    transport::tcp_settings chosen;
    chosen.checks = checks;
    chosen.common.timeout_us = 200;
    chosen.common.staging_bytes = 64 * 1024;
    chosen.limits.flows = flows_;
    chosen.limits.slice_bytes = 1024;
    return chosen;
  }

  // A new one takes the place of the one before: that one ends.
  void connect(int flow, bool is_knock) {
    theirs_[flow] = network_->connect(flow, is_knock);
    held_back_[flow].clear();
  }

  // A frame; of some, the slice follows when more is said on that connection.
  void say(input& in, int flow) {
    bool holds_back = false;
    frame f = next_frame(in, static_cast<std::uint32_t>(who_.peer), holds_back);
    std::vector<std::byte> slice(f.slice_bytes, std::byte{0x5a});
    // Who knows how to make a checksum makes the right one.
    if ((f.flags & frame::is_checked) != 0) f.checksum = transport::sockets::checksum_of(f, slice.data());
    std::byte head[transport::sockets::frame_bytes];
    encode(f, head);
    if (in.byte() == 255) head[in.byte() % sizeof head] = static_cast<std::byte>(in.byte());
    write(flow, held_back_[flow]);
    write(flow, head);
    held_back_[flow].clear();
    if (holds_back) held_back_[flow] = std::move(slice);
    else write(flow, slice);
  }
  void write(int flow, std::span<std::byte const> what) {
    if (what.empty()) return;
    (void)!::send(theirs_[flow].get(), what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  // What the rank has said.
  void hear() {
    static std::byte said[64 * 1024];
    for (net::owned_fd const& each : theirs_)
      while (::recv(each.get(), said, sizeof said, MSG_DONTWAIT) > 0) {
      }
  }

  void attend(transport::tcp::endpoint& endpoint, std::uint32_t how) {
    int const flow = static_cast<int>(how >> 2) % (1 + flows_);
    switch (how & 3) {
      case 0:
        (void)endpoint.interrupted(who_.peer);
        hear();
        break;
      case 1: connect(flow, false); break;
      case 2: connect(0, true); break;
      default:
        theirs_[flow].reset();
        held_back_[flow].clear();
        break;
    }
  }

  roles who_;
  int flows_;
  // Of messages that have not been consumed. Apart from each other, so that the sanitizer sees what leaves
  // one.
  std::deque<std::vector<std::byte>> wanted_[transport::tcp::endpoint::lane_count];
  played_network* network_;  // the world's
  communicator<transport::tcp> comm_;
  net::owned_fd theirs_[1 + flows_max];
  std::vector<std::byte> held_back_[1 + flows_max];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  // How they are connected is said at the end: what comes before means the same in every scene.
  input in{data, size - 1};
  scene now(data[size - 1]);
  while (in.left != 0) now.step(in);
  now.end();
  return 0;
}
