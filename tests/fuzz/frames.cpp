// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a peer that says anything at all. A rank reads it from real sockets, while it expects and
// consumes messages; whatever comes, nothing is stored outside of where messages belong.
#include <vector>

#include <sys/socket.h>

#include "collx/transport/tcp.hpp"
#include "fuzz/fuzzing.hpp"
#include "transport/held_connector.hpp"

namespace {

using namespace collx;
using transport::sockets::frame;

// Hands over the ends that the other side writes to.
class given : public held_connector {
 public:
  given() {
    for (int f = 0; f < 2; ++f) {
      int both[2];
      require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
      ours_[f].reset(both[0]);
      theirs[f] = both[1];
    }
  }

  int theirs[2];
};

// A frame that is mostly in order, so that what is wrong in it gets far.
void write_frame(input& in, int to) {
  frame f;
  std::uint32_t const shape = in.byte();
  f.kind = static_cast<transport::sockets::frame_kind>(1 + shape % 7);
  if ((shape & 0x80) == 0) f.kind = transport::sockets::frame_kind::data;
  f.lane = static_cast<std::uint8_t>(in.byte() % 5);
  f.communicator = 1 + (in.byte() == 77);
  f.from = in.byte() % 16 == 15 ? in.byte() : 1;
  f.message = in.byte() % 20;
  f.sequence = in.byte();
  f.consumed = in.byte() % 4;
  if (f.kind == transport::sockets::frame_kind::data) {
    f.message_bytes = in.word() * (in.byte() == 3 ? 65536u : 1u);
    f.offset = in.word();
    f.slice_bytes = in.word() % 300;
    f.flags = static_cast<std::uint8_t>(in.byte() % 4);
  }
  std::byte head[transport::sockets::frame_bytes];
  encode(f, head);
  if (in.byte() == 255) head[in.byte() % sizeof head] = static_cast<std::byte>(in.byte());
  (void)!::send(to, head, sizeof head, MSG_DONTWAIT | MSG_NOSIGNAL);
  std::vector<std::byte> slice(f.slice_bytes, std::byte{0x5a});
  if (!slice.empty()) (void)!::send(to, slice.data(), slice.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  input in{data, size};
  transport::tcp_settings chosen;
  chosen.common.timeout_us = 200;
  chosen.common.staging_bytes = 64 * 1024;
  auto* const peer = new given;
  int const theirs[2] = {peer->theirs[0], peer->theirs[1]};
  {
    auto comm = transport::tcp::join(0, 2, chosen, 2, peer);
    auto& endpoint = comm.engine().endpoint();
    // Apart from each other, so that the sanitizer sees what leaves one.
    std::vector<std::vector<std::byte>> wanted;
    while (in.left != 0) {
      std::uint32_t const what = in.byte();
      int const lane = static_cast<int>(what >> 4 & 3);
      transport::arrival here;
      switch (what % 8) {
        case 0: {
          auto& buffer = wanted.emplace_back(in.word() % 400);
          endpoint.expect(lane, 1, buffer.empty() ? nullptr : buffer.data(), buffer.size());
          break;
        }
        case 1:
          if (endpoint.arrived(lane, 1, here)) {
            volatile std::byte last{};
            if (here.bytes != 0) last = here.data[here.bytes - 1];
            (void)last;
            endpoint.consume(lane, 1);
          }
          break;
        case 2:
          if (endpoint.can_send(lane, 1))
            endpoint.send(lane, 1, reinterpret_cast<std::byte const*>(data), 1,
                          transport::handover::in_place);
          break;
        case 3: (void)endpoint.interrupted(1); break;
        default: write_frame(in, theirs[what % 8 == 4 ? 0 : 1]); break;
      }
      endpoint.progress();
    }
    for (int i = 0; i < 20; ++i) endpoint.progress();
    for (int const fd : theirs) close(fd);
  }
  return 0;
}
