// SPDX-License-Identifier: Apache-2.0
// A connection whose failure a rank finds out by writing to it: the system tells of it once, and all the same
// the rank tells all others whom it has lost, and sleeps.
// component: tcp
#include <cerrno>

#include <doctest/doctest.h>
#include <sys/eventfd.h>

#include "collx/transport/tcp.hpp"
#include "watchdog.hpp"

namespace {

using namespace collx::transport::sockets;
using collx::status;

// As the system: from a moment on the next send() has the error, whatever else is done has it not.
class cable : public collx::net::secured_stream {
 public:
  // `stands`: the connection does not end with the error.
  cable(int fd, bool stands, bool const& is_cut) : fd_(fd), stands_(stands), is_cut_(is_cut) {}
  ssize_t send(iovec const* parts, std::size_t count) noexcept override {
    if (is_cut_) {
      if (!stands_) ::shutdown(fd_, SHUT_RDWR);
      return errno = ETIMEDOUT, -1;
    }
    return ::writev(fd_, parts, static_cast<int>(count));
  }
  ssize_t receive(iovec const* parts, std::size_t count, bool may_fetch) noexcept override {
    return may_fetch ? ::readv(fd_, parts, static_cast<int>(count)) : (errno = EAGAIN, -1);
  }
  void hang_up() noexcept override {}

 private:
  int fd_;
  bool stands_;
  bool const& is_cut_;
};

constexpr int control = 0, data = 1;

// Rank 0's connections with ranks 1 and 2, which a test plays. That for control with rank 1 may be cut.
class held : public connector {
 public:
  held(int (&theirs)[3][2], bool stands, bool const& is_cut) : stands_(stands), is_cut_(is_cut) {
    for (int peer = 1; peer < 3; ++peer)
      for (int flow = 0; flow < 2; ++flow) {
        int both[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
        ours_[peer][flow].reset(both[0]);
        theirs[peer][flow] = both[1];
      }
  }
  void dial(collx::rank_t, int, int) noexcept override {}
  bool poll(connection& next) noexcept override {
    if (given_ == 4) return false;
    int const peer = 1 + given_ / 2, flow = given_ % 2;
    ++given_;
    int const fd = ours_[peer][flow].get();
    bool const may_fail = peer == 1 && flow == control;
    next = {peer, flow, std::move(ours_[peer][flow]),
            collx::net::owned_stream(may_fail ? new cable(fd, stands_, is_cut_) : nullptr)};
    return true;
  }
  int fd() const noexcept override { return never_.get(); }
  bool is_dialling() const noexcept override { return given_ < 4; }
  status outlook(collx::rank_t) noexcept override { return status::ok; }

 private:
  bool stands_;
  bool const& is_cut_;
  collx::net::owned_fd ours_[3][2];
  int given_ = 0;
  collx::net::owned_fd never_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

// So many messages of rank 1, without a byte in them, that their receipt must be written.
void send_messages(int to) {
  for (std::uint32_t i = 0; i < channel::depth / 2; ++i) {
    frame message;
    message.communicator = message.from = 1;
    message.flags = frame::ends_message;
    message.sequence = message.message = i;
    std::byte head[frame_bytes];
    encode(message, head);
    REQUIRE(::send(to, head, sizeof head, MSG_NOSIGNAL) == ssize_t{sizeof head});
  }
}

}  // namespace

TEST_CASE("tcp: who finds by writing that a peer is lost tells all others, and sleeps") {
  watchdog dog;
  for (bool const stands : {false, true}) {
    CAPTURE(stands);
    int theirs[3][2];
    bool is_cut = false;
    collx::transport::tcp_settings chosen;
    chosen.common.staging_bytes = 64 * 1024;
    {
      auto comm = collx::transport::tcp::join(0, 3, chosen, new held(theirs, stands, is_cut));
      auto& end = comm.engine().endpoint();
      send_messages(theirs[1][data]);
      collx::transport::arrival message;
      while (!end.arrived(0, 1, message)) end.progress();
      is_cut = true;
      for (std::uint32_t i = 0; i < channel::depth / 2; ++i) {
        end.expect(0, 1, nullptr, 0);
        while (!end.arrived(0, 1, message)) end.progress();
        end.consume(0, 1);
      }
      for (int i = 0; i < 1000; ++i) end.progress();

      std::byte head[frame_bytes];
      frame said;
      REQUIRE(recv(theirs[2][control], head, sizeof head, MSG_DONTWAIT) == ssize_t{sizeof head});
      REQUIRE(decode(head, said));
      CHECK(said.kind == frame_kind::lost);
      CHECK(said.from == 1);
      CHECK(end.interrupted(1) == status::ok);  // what it has sent is read first
      CHECK(end.interrupted(1) == status::peer_lost);
      CHECK(end.prepare_to_sleep());
      for (int i = 0; i < 10; ++i) CHECK_FALSE(end.sleep(1'000));
      comm.abort();
    }
    for (int peer = 1; peer < 3; ++peer)
      for (int const fd : theirs[peer]) close(fd);
  }
}
