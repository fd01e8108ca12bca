// SPDX-License-Identifier: Apache-2.0
// Dials a rank's gate and proves to belong to the job; a state machine that never blocks.
#pragma once

#include "collx/net/handshake.hpp"
#include "collx/net/socket.hpp"

namespace collx::inline abi_1::net {

// What a caller does when nobody listens.
enum class unanswered : std::uint8_t {
  retry,       // whoever should listen may only be late
  means_lost,  // it has listened before, so its process is gone
};

// Call progress() when fd() is ready for reading (or writing, where wants_write() says so), and at due_us().
// Each attempt has a socket of its own, so fd() changes; it is -1 in the pauses between attempts. Allocates
// nothing (OpenSSL does, within each code it computes).
class caller {
 public:
  // `whom`: tried in turn. Nothing is dialled before the first progress().
  COLLX_COLD caller(address_list const& whom, introduction const& who, credentials const& mine,
                    socket_settings const& chosen, std::uint64_t deadline_us,
                    unanswered policy = unanswered::retry) noexcept
      : whom_(whom), who_(who), keys_(mine), chosen_(chosen), deadline_us_(deadline_us), policy_(policy) {}

  // pending, or how it ended: ok (take the socket); timeout (nobody answered before the deadline); peer_lost
  // (nobody listens there any more); mismatch (refusal() says why); system_failure (no descriptor, or no
  // random bytes).
  [[nodiscard]] status progress() noexcept {
    while (outcome_ == status::pending) {
      bool const goes_on = state_ == state::pause ? dial() : state_ == state::connect ? greet() : talk();
      if (!goes_on) break;
    }
    if (outcome_ == status::pending && now_us() >= deadline_us_) {
      if (state_ != state::pause) why_ = state_ == state::connect ? ETIMEDOUT : ETIME;
      finish(status::timeout);
    }
    return outcome_;
  }

  // When it dials next, and the pause behind that. Who calls the same listener again, as a new caller, goes
  // on with those of the one before, so that a listener that is no more is not dialled more and more often.
  struct rhythm {
    std::uint64_t next_us = 0, pause_us = 500;
  };
  [[nodiscard]] rhythm pauses() const noexcept { return {state_ == state::pause ? wake_us_ : 0, pause_us_}; }
  // Before the first progress().
  void keep(rhythm of_before) noexcept {
    wake_us_ = of_before.next_us;
    pause_us_ = of_before.pause_us;
  }

  // The deadline is so much later.
  void extend(std::uint64_t more_us) noexcept {
    if (wake_us_ == deadline_us_) wake_us_ += more_us;
    deadline_us_ += more_us;
  }

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] bool wants_write() const noexcept {
    return state_ == state::connect || (state_ == state::talk && !talk_.to_send().empty());
  }
  // When to call progress() even if the descriptor is silent.
  [[nodiscard]] std::uint64_t due_us() const noexcept {
    return wake_us_ < deadline_us_ ? wake_us_ : deadline_us_;
  }

  // The connection, after progress() returned ok. Does not block; nothing beyond the handshake has been read.
  [[nodiscard]] owned_fd take() noexcept { return std::move(socket_); }
  // After ok: what it is to be encrypted with. False if OpenSSL fails.
  [[nodiscard]] bool session_key(secret_digest& out) const noexcept { return talk_.session_key(keys_, out); }

  [[nodiscard]] verdict refusal() const noexcept { return talk_.outcome(); }
  // The address of this attempt, or of the last one.
  [[nodiscard]] address const& whom() const noexcept { return whom_.at[turn_]; }
  [[nodiscard]] introduction const& who() const noexcept { return who_; }
  // Why the last attempt failed, as errno; 0: the connection was closed during the handshake; ETIME: it
  // stood, and nothing more was said.
  [[nodiscard]] int why() const noexcept { return why_; }
  // The same in words.
  [[nodiscard]] COLLX_COLD char const* reason() const noexcept {
    return why_ == 0       ? "it closes the connection"
           : why_ == ETIME ? talk_.has_heard() ? "it answers, and says no more before the handshake has ended"
                                               : "it takes the connection and says nothing"
           : why_ == ETIMEDOUT ? "nothing comes back, not even a refusal: a firewall, perhaps"
           : why_ == no_such_congestion ? "this congestion control is refused"
                                        : std::strerror(why_);
  }
  [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_; }

 private:
  enum class state : std::uint8_t { pause, connect, talk };

  // Each of these returns true if there may be more to do at once.
  [[nodiscard]] bool dial() noexcept {
    std::uint64_t const now = now_us();
    if (now < wake_us_) return false;
    if (whom_.count == 0) return finish(status::bad_argument);
    ++attempts_;
    socket_ = begin_connect(whom(), chosen_);
    if (!socket_) {
      why_ = errno;
      bool const ours = why_ == EMFILE || why_ == ENFILE || why_ == no_such_congestion;
      return ours ? finish(status::system_failure) : again(why_);
    }
    state_ = state::connect;
    wake_us_ = now + connect_patience_us;
    return true;
  }

  [[nodiscard]] bool greet() noexcept {
    int const outcome = connect_outcome(socket_.get());
    if (outcome == EINPROGRESS) return now_us() >= wake_us_ && again(ETIMEDOUT);
    if (outcome != 0) return again(outcome);
    std::byte nonce[conversation::nonce_bytes];
    if (!random_bytes(nonce)) return finish(status::system_failure);
    talk_ = dialling_side(keys_, who_, nonce);
    state_ = state::talk;
    wake_us_ = deadline_us_;  // the listener may be busy with something else for long
    return true;
  }

  [[nodiscard]] bool talk() noexcept {
    std::span<std::byte const> const say = talk_.to_send();
    std::span<std::byte> const room = talk_.to_receive();
    ssize_t const moved = say.empty()
                              ? ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT)
                              : ::send(socket_.get(), say.data(), say.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (moved < 0 && errno == EINTR) return true;
    if (moved < 0 && errno == EAGAIN) return false;
    if (moved <= 0) return again(moved < 0 ? errno : 0);
    talk_.moved(static_cast<std::size_t>(moved), keys_);
    if (talk_.outcome() == verdict::welcome) return finish(status::ok);
    return talk_.outcome() == verdict::undecided || finish(status::mismatch);
  }

  // Pauses grow from half a millisecond, so that a rank that is a little late costs little, to 50 ms.
  [[nodiscard]] bool again(int why) noexcept {
    why_ = why;
    socket_.reset();
    if (why == ECONNREFUSED && policy_ == unanswered::means_lost && turn_ + 1 == whom_.count)
      return finish(status::peer_lost);
    state_ = state::pause;
    wake_us_ = now_us();
    if (++turn_ < whom_.count) return true;
    turn_ = 0;
    wake_us_ += pause_us_;
    pause_us_ = pause_us_ * 3 / 2 < pause_max_us ? pause_us_ * 3 / 2 : pause_max_us;
    return false;
  }

  bool finish(status outcome) noexcept {
    outcome_ = outcome;
    if (outcome != status::ok) socket_.reset();
    return false;
  }

  static constexpr std::uint64_t connect_patience_us = 3'000'000, pause_max_us = 50'000;

  address_list whom_;
  introduction who_;
  credentials keys_;
  socket_settings chosen_;
  std::uint64_t deadline_us_, wake_us_ = 0, pause_us_ = rhythm{}.pause_us;
  unanswered policy_;
  state state_ = state::pause;
  status outcome_ = status::pending;
  std::size_t turn_ = 0;
  int why_ = 0;
  std::uint32_t attempts_ = 0;
  owned_fd socket_;
  dialling_side talk_;
};

}  // namespace collx::inline abi_1::net
