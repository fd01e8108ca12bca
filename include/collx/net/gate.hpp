// SPDX-License-Identifier: Apache-2.0
// Lets in who belongs to the job: a listening socket, and the strangers and friends who are still in the
// handshake.
#pragma once

#include "collx/core/array.hpp"
#include "collx/net/handshake.hpp"
#include "collx/net/poller.hpp"
#include "collx/net/socket.hpp"

namespace collx::inline abi_1::net {

// Somebody who has proved to belong to the job: a socket that does not block, from which nothing has been
// read beyond the handshake.
struct guest {
  introduction who;
  owned_fd socket;
  secret_digest key;  // of this connection alone, if it is to be protected
};

// A gate never blocks, and allocates nothing after construction (OpenSSL does, within each code it computes).
// Its descriptor becomes readable when poll() has work: it fits into another epoll set.
class gate {
 public:
  static constexpr std::size_t guests_max =
      64;  // in handshake at once; a further one takes the oldest's place
  static constexpr int accepts_max = 16, steps_max = 32;  // for each call of poll

  struct counters {
    std::uint64_t welcomed = 0;
    std::uint64_t refused = 0;     // said something else, or proved to be somebody else
    std::uint64_t left = 0;        // before they had proved anything
    std::uint64_t pushed_out = 0;  // dropped for a newer one
    std::uint64_t late = 0;        // did not end their handshake in time

    [[nodiscard]] std::uint64_t strangers() const noexcept { return refused + left + pushed_out + late; }
  };

  // Closed: its descriptor is -1, and nobody comes.
  gate() = default;

  // `listening`: of listen_at(). `patience_us`: how long a handshake may take, if poll() is called
  // at least four times meanwhile. Throws error (system_failure) if the system has no descriptors left.
  COLLX_COLD gate(owned_fd listening, credentials const& mine, expectation const& whom,
                  socket_settings const& chosen = {}, std::uint64_t patience_us = 5'000'000)
      : listening_(std::move(listening)),
        set_(poller::create()),
        keys_(mine),
        slots_(guests_max),
        expected_(whom),
        chosen_(chosen),
        patience_us_(patience_us),
        looked_us_(now_us()) {
    if (set_.add(listening_.get(), guests_max)) return;
    if (errno == ENOSPC || errno == ENOMEM) throw_unwatched_gate();
    throw error(status::bad_argument,
                "a gate was made of a socket that does not listen; make it with listen_at()");
  }

  // Readable when poll() has work (level-triggered).
  [[nodiscard]] int fd() const noexcept { return set_.fd(); }
  // Where it listens, with the port that the system chose.
  [[nodiscard]] address where() const noexcept { return local_address(listening_.get()); }
  // How many connections there are between two ranks of the job.
  [[nodiscard]] std::uint32_t flow_count() const noexcept { return expected_.flow_count; }
  [[nodiscard]] counters const& count() const noexcept { return count_; }
  [[nodiscard]] std::size_t in_handshake() const noexcept { return open_; }

  // When poll() should be called even if the descriptor is silent: somebody may be late then, or age.
  [[nodiscard]] std::uint64_t due_us() const noexcept {
    if (open_ == 0) return opens_us_;
    std::uint64_t const next_look_us = looked_us_ + (unwatched_ != 0 ? unwatched_look_us : patience_us_ / 4);
    return next_look_us < due_us_ ? next_look_us : due_us_;
  }

  [[nodiscard]] bool will_be_due() const noexcept { return open_ != 0 || opens_us_ != never; }

  // Goes on with handshakes as far as that is possible without waiting. True if one has ended well: `out` is
  // its guest, and there may be more, so call again.
  [[nodiscard]] bool poll(guest& out) noexcept {
    if (set_.fd() < 0) return false;
    std::uint64_t const now = now_us();
    // Whoever waited while nobody looked is not late: from one look to the next, guests age by no more than a
    // quarter of the patience.
    if (now - looked_us_ > patience_us_ / 4) grant(now - looked_us_ - patience_us_ / 4);
    looked_us_ = now;
    if (now >= opens_us_) opens_us_ = set_.add(listening_.get(), guests_max) ? never : now + rest_us;
    bool knock = false;
    for (epoll_event const& each : set_.ready<steps_max>()) {
      std::uint64_t const which = each.data.u64;
      if (which == guests_max) knock = true;
      else if (step(slots_[which], out)) return true;  // the other events are told again
    }
    for (slot& each : slots_) {
      if (COLLX_LIKELY(unwatched_ == 0)) break;
      if (each.socket && !each.is_watched && step(each, out)) return true;
    }
    // Those within first: a crowd at the door must not push out who is about to prove itself.
    if (knock) accept_some(now);
    if (now >= due_us_) dismiss_late(now);
    return false;
  }

  // Nobody comes any more; who is in handshake is dropped.
  void close() noexcept {
    for (slot& each : slots_) each.socket.reset();
    open_ = unwatched_ = 0;
    opens_us_ = never;
    listening_.reset();
    set_ = poller();
  }

 private:
  struct slot {
    owned_fd socket;
    std::uint64_t until_us = 0;
    listening_side talk;
    bool is_watched = true;  // else the system has refused to, and it is looked at with every poll()
  };

  // Before its socket goes.
  void vacate(slot& whose) noexcept {
    --open_;
    unwatched_ -= !whose.is_watched;
  }

  void dismiss(slot& whom, std::uint64_t& counter) noexcept {
    ++counter;
    vacate(whom);
    // Closing would take it out of the set only if no process that was forked meanwhile has a copy: else what
    // is heard there would be taken for word of whoever has this place next, or of nobody, for ever.
    set_.remove(whom.socket.get());
    whom.socket.reset();
  }

  // Reads and answers until this guest has nothing more to say. True if it has been let in.
  [[nodiscard]] bool step(slot& at, guest& out) noexcept {
    // Four turns, each in as many parts as the network makes of it; the bound is on what one guest may cost.
    for (int parts = 0; parts < 8; ++parts) {
      std::span<std::byte> const room = at.talk.to_receive();
      ssize_t const got = ::recv(at.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (got <= 0) return dismiss(at, count_.left), false;
      at.talk.moved(static_cast<std::size_t>(got), keys_);
      std::span<std::byte const> const answer = at.talk.to_send();
      if (!answer.empty()) {
        // A new connection has room for an answer. One without is none of ours.
        if (::send(at.socket.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
            static_cast<ssize_t>(answer.size()))
          return dismiss(at, count_.refused), false;
        at.talk.moved(answer.size(), keys_);
      }
      if (at.talk.outcome() == verdict::welcome) return let_in(at, out);
      if (at.talk.to_receive().empty()) return dismiss(at, count_.refused), false;
    }
    return false;
  }

  [[nodiscard]] bool let_in(slot& at, guest& out) noexcept {
    if (encrypts(expected_.protects) && !at.talk.session_key(keys_, out.key))
      return dismiss(at, count_.refused), false;
    set_.remove(at.socket.get());
    out.who = at.talk.who();
    out.socket = std::move(at.socket);
    ++count_.welcomed;
    vacate(at);
    return true;
  }

  void accept_some(std::uint64_t now) noexcept {
    for (int accepted = 0; accepted < accepts_max; ++accepted) {
      owned_fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EAGAIN) return;
        bool const lacks = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (lacks) return make_room(now);
        continue;  // this one has left again
      }
      std::byte nonce[conversation::nonce_bytes];
      if (!random_bytes(nonce)) return;
      (void)prepare(socket.get(), chosen_);
      if (open_ == guests_max) dismiss(oldest(), count_.pushed_out);
      std::size_t which = 0;
      while (slots_[which].socket) ++which;
      slots_[which].is_watched = set_.add(socket.get(), which);
      unwatched_ += !slots_[which].is_watched;
      slots_[which].socket = std::move(socket);
      slots_[which].until_us = now + patience_us_;
      slots_[which].talk = listening_side(expected_, nonce);
      if (open_++ == 0 || now + patience_us_ < due_us_) due_us_ = now + patience_us_;
    }
  }

  // Out of descriptors, or of memory: somebody must leave. If nobody is there, nobody listens to the one at
  // the door for a while: he would keep awake whoever sleeps here.
  void make_room(std::uint64_t now) noexcept {
    if (open_ != 0) return dismiss(oldest(), count_.pushed_out);
    set_.remove(listening_.get());
    opens_us_ = now + rest_us;
  }

  [[nodiscard]] slot& oldest() noexcept {
    slot* first = nullptr;
    for (slot& each : slots_)
      if (each.socket && (first == nullptr || each.until_us < first->until_us)) first = &each;
    return *first;
  }

  void dismiss_late(std::uint64_t now) noexcept {
    due_us_ = never;
    for (slot& each : slots_) {
      if (!each.socket) continue;
      if (now >= each.until_us) dismiss(each, count_.late);
      else if (each.until_us < due_us_) due_us_ = each.until_us;
    }
  }

  void grant(std::uint64_t more_us) noexcept {
    for (slot& each : slots_) each.until_us += more_us;
    if (due_us_ != never) due_us_ += more_us;
  }

  static constexpr std::uint64_t never = ~std::uint64_t{0}, rest_us = 20'000, unwatched_look_us = 1'000;

  owned_fd listening_;
  poller set_;
  credentials keys_;
  array<slot> slots_;
  std::size_t open_ = 0, unwatched_ = 0;
  counters count_;
  expectation expected_;
  socket_settings chosen_;
  std::uint64_t patience_us_ = 0, looked_us_ = 0, due_us_ = never;
  std::uint64_t opens_us_ = never;  // when it is listened to the door again
};

}  // namespace collx::inline abi_1::net
