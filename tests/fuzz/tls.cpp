// SPDX-License-Identifier: Apache-2.0
// libFuzzer: TLS with somebody on the line, who delays, changes, repeats and drops bytes, or is the other
// side himself. Nobody is greeted who does not have the key, and what arrives is what was sent, from its
// begin on.
#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include <sys/socket.h>

#include "collx/net/fd.hpp"
#include "collx/net/tls_context.hpp"
#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx::net;
using collx::status;

constexpr std::size_t bytes_max = 200'000;  // of each direction

// One side, and its end of the line. Byte i that it sends is told by i and the side.
class talker {
 public:
  talker(tls_context const& context, tls_side side) : seed_(side == tls_side::dials ? 7 : 11) {
    int both[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
    int const little = 4096;  // so that the socket is full in the middle of a record
    require(setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
    own_.reset(both[0]);
    line.reset(both[1]);
    digest key;
    std::fill(std::begin(key.bytes), std::end(key.bytes), std::byte{42});
    stream_.reset(context.stream_over(own_.get(), side, key));
    require(stream_ != nullptr);
  }

  void greet() {
    if (greeted == status::pending) greeted = stream_->greet();
  }
  void send(std::size_t bytes, std::size_t cut) {
    // What an earlier call was given may have been encrypted: it comes first again.
    bytes = std::min(std::max(bytes, given_ - sent), bytes_max - sent);
    if (greeted != status::ok || has_hung_up_ || bytes == 0) return;
    std::vector<std::byte> what(bytes);
    for (std::size_t i = 0; i < bytes; ++i) what[i] = value(sent + i);
    cut = std::min(cut, bytes);
    iovec const parts[2] = {{what.data(), cut}, {what.data() + cut, bytes - cut}};
    ssize_t const left = stream_->send(parts, 2);
    given_ = std::max(given_, sent + bytes);
    if (left < 0) return note(errno);
    require(static_cast<std::size_t>(left) <= bytes);
    sent += static_cast<std::size_t>(left);
  }
  void receive(std::size_t bytes, bool may_fetch, talker const& from) {
    if (greeted != status::ok || bytes == 0) return;
    std::vector<std::byte> what(bytes);
    iovec const parts[2] = {{what.data(), bytes / 3}, {what.data() + bytes / 3, bytes - bytes / 3}};
    ssize_t const here = stream_->receive(parts, 2, may_fetch);
    if (here < 0) return note(errno);
    ended = ended || here == 0;
    require(static_cast<std::size_t>(here) <= bytes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(here); ++i) require(what[i] == from.value(got + i));
    got += static_cast<std::size_t>(here);
    require(got <= from.given_);
  }
  void hang_up() {
    if (greeted == status::ok && sent == given_) stream_->hang_up(), has_hung_up_ = true;
  }

  owned_fd line;
  status greeted = status::pending;
  std::size_t sent = 0, got = 0;
  bool broken = false, ended = false;

 private:
  std::byte value(std::size_t i) const { return static_cast<std::byte>((i * seed_ >> 3) & 0xff); }
  void note(int why) { broken = broken || why != EAGAIN; }

  std::size_t seed_, given_ = 0;
  bool has_hung_up_ = false;
  owned_fd own_;
  std::unique_ptr<tls_stream> stream_;  // ends before its socket
};

tls_context const& context() {
  static tls_context const made = tls_context::create(3);  // keys are replaced all the time
  return made;
}

void try_stranger(input in, tls_side side) {
  talker one(context(), side);
  while (in.left != 0) {
    std::size_t const bytes = std::min<std::size_t>(1 + in.byte() * 4, in.left);
    (void)!send(one.line.get(), in.at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    in = {in.at + bytes, in.left - bytes};
    one.greet();
  }
  one.line.reset();
  one.greet();
  require(one.greeted == status::peer_lost);
}

// Two talkers, and who carries bytes between them.
class line {
 public:
  line() : sides_{{context(), tls_side::dials}, {context(), tls_side::listens}} {}

  // From side `from` to the other, at most so many bytes.
  bool carry(std::size_t from, std::size_t bytes) {
    fetch(from);
    std::vector<std::uint8_t> some(
        late_[from].begin(), late_[from].begin() + static_cast<long>(std::min(bytes, late_[from].size())));
    owned_fd const& to = sides_[1 - from].line;
    if (some.empty() || !to) return false;
    ssize_t const sent = ::send(to.get(), some.data(), some.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) late_[from].erase(late_[from].begin(), late_[from].begin() + sent);
    return sent > 0;
  }
  void carry_greetings() {
    for (bool more = true; more;) {
      for (talker& each : sides_) each.greet();
      more = carry(0, 70'000);
      more = carry(1, 70'000) || more;
    }
  }
  void step(input& in) {
    std::uint32_t const what = in.byte();
    std::size_t const side = what >> 3 & 1;
    switch (what % 8) {
      case 0: (void)carry(side, 1 + in.byte() * (what < 64 ? 1 : 100)); break;
      case 1: sides_[side].greet(); break;
      case 2: sides_[side].send(in.word(), in.word()); break;
      case 3: sides_[side].receive(1 + in.word(), what < 128, sides_[1 - side]); break;
      case 4: disturb(side, what >> 4, in); break;
      case 5:
        if (what >= 240) sides_[side].hang_up(), is_calm_ = false;
        break;
      case 6:
        if (what >= 240) sides_[side].line.reset(), is_calm_ = false;
        break;
      default: carry_greetings(); break;
    }
  }
  // If nobody has meddled, all that was sent arrives.
  void finish() {
    if (!is_calm_) return;
    carry_greetings();
    // A round may fetch a part of a record, of which nothing can be read yet.
    for (int idle = 0; idle < 4; ++idle) {
      std::size_t const before = sides_[0].got + sides_[1].got;
      bool more = carry(0, 70'000);
      more = carry(1, 70'000) || more;
      for (std::size_t i = 0; i < 2; ++i) {
        sides_[i].send(0, 0);
        sides_[i].receive(20'000, true, sides_[1 - i]);
      }
      if (more || sides_[0].got + sides_[1].got != before) idle = 0;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      require(sides_[i].greeted == status::ok && !sides_[i].broken && !sides_[i].ended);
      require(sides_[i].got == sides_[1 - i].sent);
    }
  }

 private:
  void fetch(std::size_t from) {
    std::uint8_t some[70'000];
    ssize_t const got =
        sides_[from].line ? recv(sides_[from].line.get(), some, sizeof some, MSG_DONTWAIT) : 0;
    if (got > 0) late_[from].insert(late_[from].end(), some, some + got);
  }
  void disturb(std::size_t from, std::uint32_t how, input& in) {
    fetch(from);
    std::deque<std::uint8_t>& bytes = late_[from];
    std::size_t const at = in.word(), count = 1 + in.byte();
    if (at >= bytes.size()) return;
    is_calm_ = false;
    auto const begin = bytes.begin() + static_cast<long>(at);
    auto const end = begin + static_cast<long>(std::min(count, bytes.size() - at));
    if (how % 4 == 0) *begin = static_cast<std::uint8_t>(*begin ^ (1 + in.byte() % 255));
    else if (how % 4 == 1) bytes.erase(begin, end);
    else if (how % 4 == 2) bytes.insert(begin, count, static_cast<std::uint8_t>(in.byte()));
    else {
      std::vector<std::uint8_t> const again(begin, end);
      bytes.insert(begin, again.begin(), again.end());
    }
  }

  talker sides_[2];
  std::deque<std::uint8_t> late_[2];  // by who sent them
  bool is_calm_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  input in{data + 1, size - 1};
  if (data[0] % 4 < 2) return try_stranger(in, data[0] % 2 == 0 ? tls_side::dials : tls_side::listens), 0;
  line both;
  if (data[0] % 2 == 0) both.carry_greetings();
  while (in.left != 0) both.step(in);
  both.finish();
  return 0;
}
