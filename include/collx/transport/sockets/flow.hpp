// SPDX-License-Identifier: Apache-2.0
// One connection to another rank: writes the frames it is given, in order, and takes incoming ones apart.
// Never blocks, never allocates. Payloads go from the user's memory to the kernel and from the kernel to
// where they are wanted, without a copy between unless they are small; or through whatever encrypts the
// connection.
#pragma once

#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "collx/net/fd.hpp"
#include "collx/net/secured_stream.hpp"
#include "collx/transport/flows/flow_choice.hpp"
#include "collx/transport/sockets/frame.hpp"
#include "collx/transport/sockets/send_queue.hpp"

namespace collx::inline abi_1::transport::sockets {

struct channel;

// A frame on its way out. The payload stays where it is until the frame is written.
struct outgoing_frame {
  std::byte head[frame_bytes];
  std::byte const* payload = nullptr;
  std::uint32_t payload_bytes = 0;
  channel* of = nullptr;  // whose message it belongs to; null for control frames
  std::uint32_t message = 0;
};

enum class flow_state : std::uint8_t {
  closed,
  open,
  ended,   // the other side has said goodbye on it, and writes no more
  broken,  // the connection failed, or ended without a goodbye, or what came over it is no frame
};

class flow {
 public:
  static constexpr std::uint32_t frames_max = 16;  // on their way out at once

  flow() = default;
  flow(flow const&) = delete;

  // Takes over a connected, non-blocking socket, and what its bytes go through, if anything.
  void open(net::owned_fd fd, net::owned_stream secured, queueing how = queueing::usual) noexcept {
    fd_ = static_cast<net::owned_fd&&>(fd);
    queue_.reset(fd_.get(), how);
    secured_ = static_cast<net::owned_stream&&>(secured);
    state_ = flow_state::open;
    can_write_ = true;
    said_goodbye_ = waits_ = false;
  }
  // Nothing more will be written.
  void hang_up() noexcept {
    if (fd_.get() < 0) return;
    if (secured_) secured_->hang_up();
    ::shutdown(fd_.get(), SHUT_WR);
  }
  void close() noexcept {
    abandon();
    secured_.reset();
    fd_.reset();
  }
  // Nothing is read or written any more: no payload is touched again. The connection stays as it is.
  void abandon() noexcept {
    state_ = flow_state::closed;
    count_ = 0;
    has_begun_ = false;
    written_ = rest_ = have_ = 0;
  }

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] flow_state state() const noexcept { return state_; }
  [[nodiscard]] bool has_room() const noexcept { return count_ < frames_max; }
  [[nodiscard]] bool idle() const noexcept { return count_ == 0; }
  // What has been read is for later: read() is to be called when that may have come.
  [[nodiscard]] bool waits() const noexcept { return waits_; }

  // Of a slice of that communicator, which goes, what has not been read yet goes to `nowhere`.
  void divert(std::uint64_t communicator, std::byte* nowhere) noexcept {
    if (rest_ == 0 || current_.communicator != communicator) return;
    to_ = nowhere + (current_.slice_bytes - rest_);
  }

  [[nodiscard]] bool refers_to(auto const& what) const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (what(out_[(first_ + i) % frames_max])) return true;
    return false;
  }

  // A place for the next frame, to be filled in before write(). Requires has_room().
  [[nodiscard]] outgoing_frame& push() noexcept { return out_[(first_ + count_++) % frames_max]; }

  // Writes as much as the kernel takes; calls written(frame) for each that is done. Frames for somebody who
  // does not read any more are never done.
  template <class Written>
  void write(Written const& written) noexcept {
    while (count_ != 0 && state_ == flow_state::open && can_write_) {
      if (!std::exchange(has_begun_, true)) queue_.begins_to_write(fd_.get(), out_[first_].payload_bytes);
      std::size_t asked = 0;
      ssize_t const n = is_small() ? send_small(asked) : send_all(asked);
      if (n < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == ENOBUFS) return;
        // What the other side said before it went may still lie here unread: read() judges, and whoever calls
        // it tells of the loss. The system tells of an error once, and that was here: the shutdown makes an
        // end for read() to find, whatever the error was.
        can_write_ = false;
        ::shutdown(fd_.get(), SHUT_RDWR);
        return;
      }
      account(static_cast<std::size_t>(n), written);
      if (static_cast<std::size_t>(n) < asked && !secured_) return;
    }
  }

  // Reads what is there, a bounded amount. `sink` says for each data frame where its slice goes and is told
  // when it is there:
  //   answer begin(frame, to)   take: store it at `to`; later: ask again; refuse: the connection is broken
  //   bool end(frame, from)     the slice is complete and lies at `from`; false: refuse
  // Other frames have no slice, and are begun only.
  enum class answer : std::uint8_t { take, later, refuse };
  template <class Sink>
  void read(Sink& sink) noexcept {
    // If it is encrypted: until nothing lies between the socket and here. Nobody would say that it does.
    for (int round = 0; (round < rounds_max || secured_) && state_ == flow_state::open; ++round) {
      if (waits_ && !parse(sink)) return;
      iovec parts[2];
      msghdr message{};
      message.msg_iov = parts;
      std::size_t asked = 0;
      if (rest_ != 0) {
        parts[message.msg_iovlen++] = {to_, rest_};
        asked += rest_;
      }
      bool const reads_on = rest_ < alone_bytes_min || secured_;
      if (reads_on) {
        parts[message.msg_iovlen++] = {buffer_ + have_, sizeof buffer_ - have_};
        asked += sizeof buffer_ - have_;
      }
      ssize_t const n = receive(message, round < rounds_max);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        bool const cut = have_ != 0 || rest_ != 0;
        bool const went = n == 0 || errno == ECONNRESET || errno == EPIPE;
        state_ = went && !cut && said_goodbye_ ? flow_state::ended : flow_state::broken;
        return;
      }
      if (!take(static_cast<std::size_t>(n), sink)) return;
      if (!reads_on || (static_cast<std::size_t>(n) < asked && !secured_)) return;
    }
  }

 private:
  // Bytes read in one go besides a slice's: the next heads, and slices that are small. One of 8 KiB, with its
  // head, is not to take a second call for its last 48 bytes, nor to find whether more lies behind a full
  // buffer. (Without the room for a second head an all_reduce of 8 KiB takes 1.07 of its time.)
  static constexpr std::size_t buffer_bytes = 2 * frame_bytes + 8192;
  // The end of a large slice is read alone, and nothing behind it before the caller was told of it: where the
  // next message is wanted is known only then. A head that is read sooner sends it to where it must be
  // copied from once more. (A broadcast of 512 KiB took 1.5 times as long.)
  static constexpr std::size_t alone_bytes_min = 64 * 1024;
  // After so many system calls others get their turn.
  static constexpr int rounds_max = 8;

  // Up to here a payload is copied behind its head, and both are sent from there: sendmsg, with two buffers,
  // takes 1.05 of the time for 512 bytes and 1.03 for 2 KiB.
  static constexpr std::size_t joined_bytes_max = 2048;

  // One frame is on its way, of which nothing is written yet, and which is worth a copy.
  [[nodiscard]] bool is_small() const noexcept {
    return count_ == 1 && written_ == 0 && out_[first_].payload_bytes <= joined_bytes_max && !secured_;
  }
  // Both say how many bytes they have asked the kernel to take, and return what send() did.
  COLLX_NEVER_INLINE ssize_t send_small(std::size_t& asked) noexcept {
    outgoing_frame const& f = out_[first_];
    std::byte joined[frame_bytes + joined_bytes_max];
    std::memcpy(joined, f.head, frame_bytes);
    if (f.payload_bytes != 0) std::memcpy(joined + frame_bytes, f.payload, f.payload_bytes);
    asked = frame_bytes + f.payload_bytes;
    return ::send(fd_.get(), joined, asked, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  ssize_t send_all(std::size_t& asked) noexcept {
    iovec parts[2 * frames_max];
    msghdr message{};
    message.msg_iov = parts;
    asked = gather(parts, message.msg_iovlen);
    return send(message);
  }

  [[nodiscard]] ssize_t send(msghdr const& what) noexcept {
    if (COLLX_UNLIKELY(static_cast<bool>(secured_))) return secured_->send(what.msg_iov, what.msg_iovlen);
    return what.msg_iovlen == 1
               ? ::send(fd_.get(), what.msg_iov->iov_base, what.msg_iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
               : ::sendmsg(fd_.get(), &what, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  [[nodiscard]] ssize_t receive(msghdr& into, bool may_fetch) noexcept {
    if (COLLX_UNLIKELY(static_cast<bool>(secured_)))
      return secured_->receive(into.msg_iov, into.msg_iovlen, may_fetch);
    return into.msg_iovlen == 1
               ? ::recv(fd_.get(), into.msg_iov->iov_base, into.msg_iov->iov_len, MSG_DONTWAIT)
               : ::recvmsg(fd_.get(), &into, MSG_DONTWAIT);
  }

  std::size_t gather(iovec* parts, std::size_t& used) noexcept {
    std::size_t total = 0, skip = written_;
    used = 0;
    auto const add = [&](std::byte const* from, std::size_t bytes) noexcept {
      std::size_t const left = skip < bytes ? bytes - skip : 0;
      std::byte* const begin = const_cast<std::byte*>(from) + (bytes - left);
      if (left != 0) parts[used++] = {begin, left};
      skip -= bytes - left;
      total += left;
    };
    for (std::uint32_t i = 0; i < count_; ++i) {
      outgoing_frame const& f = out_[(first_ + i) % frames_max];
      add(f.head, frame_bytes);
      add(f.payload, f.payload_bytes);
    }
    return total;
  }

  template <class Written>
  void account(std::size_t bytes, Written const& written) noexcept {
    written_ += bytes;
    while (count_ != 0) {
      outgoing_frame& f = out_[first_];
      if (written_ < frame_bytes + f.payload_bytes) return;
      written_ -= frame_bytes + f.payload_bytes;
      has_begun_ = false;
      first_ = (first_ + 1) % frames_max;
      --count_;
      written(f);
    }
  }

  // `bytes` more have been read: first into the slice, the rest into the buffer.
  template <class Sink>
  bool take(std::size_t bytes, Sink& sink) noexcept {
    std::size_t const in_slice = bytes < rest_ ? bytes : rest_;
    bool const in_between = rest_ != 0;
    to_ += in_slice;
    rest_ -= in_slice;
    have_ += bytes - in_slice;
    if (in_between && rest_ == 0 && !finish(sink)) return false;
    return parse(sink);
  }

  template <class Sink>
  bool finish(Sink& sink) noexcept {
    if (sink.end(current_, to_ - current_.slice_bytes)) return true;
    state_ = flow_state::broken;
    return false;
  }

  // Takes the buffer apart. False: it cannot go on for now, or for ever.
  template <class Sink>
  bool parse(Sink& sink) noexcept {
    std::size_t at = 0;
    bool goes_on = true;
    waits_ = false;
    while (goes_on && rest_ == 0 && have_ - at >= frame_bytes) {
      if (!decode(buffer_ + at, current_)) {
        state_ = flow_state::broken;
        return false;
      }
      answer const said = sink.begin(current_, to_);
      waits_ = said == answer::later;
      if (said == answer::refuse) state_ = flow_state::broken;
      if (said != answer::take) {
        goes_on = false;
        break;
      }
      at += frame_bytes;
      said_goodbye_ = said_goodbye_ || current_.kind == frame_kind::goodbye;
      if (current_.kind != frame_kind::data) continue;
      queue_.begins_to_read(current_.slice_bytes);
      std::size_t const here = have_ - at < current_.slice_bytes ? have_ - at : current_.slice_bytes;
      if (here != 0) std::memcpy(to_, buffer_ + at, here);
      at += here;
      to_ += here;
      rest_ = current_.slice_bytes - here;
      if (rest_ == 0) goes_on = finish(sink);
    }
    have_ -= at;
    if (at != 0 && have_ != 0) std::memmove(buffer_, buffer_ + at, have_);
    return goes_on;
  }

  net::owned_fd fd_;
  net::owned_stream secured_;
  send_queue queue_;
  flow_state state_ = flow_state::closed;
  bool can_write_ = true;
  bool has_begun_ = false;     // to write the first frame, as the queue knows
  bool said_goodbye_ = false;  // the other side has, on this connection
  bool waits_ = false;         // the head in the buffer could not be dealt with yet
  std::uint32_t first_ = 0, count_ = 0;
  std::size_t written_ = 0;  // of the frames that are on their way out
  std::size_t have_ = 0;     // bytes in the buffer
  std::size_t rest_ = 0;     // of the slice that is being read
  std::byte* to_ = nullptr;
  frame current_{};
  outgoing_frame out_[frames_max];
  std::byte buffer_[buffer_bytes];
};

}  // namespace collx::inline abi_1::transport::sockets
