// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of one host hand each other descriptors: of memory, say. Each listens at a desk, a
// UNIX socket of a name without a file, which nothing is left of. Every rank goes to every other's desk,
// shows that it belongs there, and gets the descriptor.
//
// Who waits for a rank that is gone, or has given up, hears of it at once: a connection stays open for as
// long as the rank at its other end is not through. A rank that closed before it came to this one's desk
// never will.
#pragma once

#include <cstddef>
#include <span>

#include <sys/un.h>

#include "collx/core/array.hpp"
#include "collx/core/error.hpp"
#include "collx/net/descriptor_message.hpp"
#include "collx/net/random_bytes.hpp"

namespace collx::inline abi_1::net {

// Where a rank is to be found, and how others show that they belong to it. Plain bytes, for which the ranks
// have some way already. Whoever runs as the same user and knows them gets the descriptor.
struct descriptor_desk {
  std::uint64_t name;
  std::uint64_t secret[2];
  std::int64_t process;  // as the rank itself has it, for messages

  [[nodiscard]] bool has_secret(std::uint64_t const (&shown)[2]) const noexcept {
    return shown[0] == secret[0] && shown[1] == secret[1];
  }
  // And its length, for bind() and connect().
  [[nodiscard]] socklen_t address(sockaddr_un& at) const noexcept {
    at = {};
    at.sun_family = AF_UNIX;
    // Behind a zero: no file.
    int const length = std::snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "collx-%016llx",
                                     static_cast<unsigned long long>(name));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  }
};

class descriptor_exchange {
 public:
  // What two ranks say to each other.
  struct question {
    std::uint64_t magic = 0x636f6c6c782d6664;  // "collx-fd"
    std::uint64_t secret[2] = {};              // of the desk that it is said at
    std::int64_t rank = no_rank;               // who says it
  };
  struct answer {
    std::uint64_t secret[2] = {};  // of the desk of the rank that asked
  };

  // `what`: for messages; stays where it is. Listens from here on. Throws error (system_failure).
  descriptor_exchange(char const* what, rank_t rank) : what_(what), rank_(rank) {
    mine_.process = getpid();
    if (!random_bytes(std::as_writable_bytes(std::span(&mine_.name, 1))) ||
        !random_bytes(std::as_writable_bytes(std::span(mine_.secret))))
      throw_system("getrandom");
    sockaddr_un at;
    socklen_t const length = mine_.address(at);
    desk_.reset(a_socket());
    if (::bind(desk_.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0 ||
        ::listen(desk_.get(), 1024) != 0)
      throw_system("a socket to hand descriptors over cannot listen");
  }
  descriptor_exchange(descriptor_exchange const&) = delete;

  // For the other ranks, who must know it before any of them calls run().
  [[nodiscard]] descriptor_desk const& mine() const noexcept { return mine_; }

  // Gives `fd` (-1: none) to each rank r that `with[r]` says, and takes what that gives into theirs[r], which
  // stays empty if it has none. All of them call it, each with the others; once. This rank's own entry does
  // not matter. Throws error: timeout, peer_lost, bad_argument (somebody else is at a desk), system_failure;
  // all of which name the other rank and its process.
  void run(int fd, std::span<descriptor_desk const> all, std::span<bool const> with,
           std::span<owned_fd> theirs, std::uint64_t deadline_us) {
    struct closing {  // also when something is thrown: that is how the others hear of it
      descriptor_exchange& of;
      ~closing() { of.close_all(); }
    } const at_the_end{*this};
    all_ = all, theirs_ = theirs, fd_ = fd;
    peers_ = array<peer>(all.size());
    guests_ = array<owned_fd>(all.size() + strangers_max);
    polled_ = array<pollfd>(1 + all.size() + guests_.size());
    for (std::size_t r = 0; r < all.size(); ++r)
      peers_[r].is_due = with[r] && static_cast<rank_t>(r) != rank_;
    while (!is_done()) {
      bool const all_asked = ask_all();
      if (now_us() >= deadline_us) throw_timeout();
      wait(deadline_us, all_asked);
      for (std::size_t r = 0; r < peers_.size(); ++r)
        if (polled_[1 + r].revents != 0) hear(r);
      for (std::size_t i = 0; i < guests_.size(); ++i)
        if (polled_[1 + peers_.size() + i].revents != 0) serve(guests_[i]);
      if (polled_[0].revents != 0) admit();
    }
  }

 private:
  // Who has connected and not said yet who he is. Ranks do both at once, but any of them may lose its
  // processor in between: there is a place for each, and for so many others.
  static constexpr std::size_t strangers_max = 64;
  static constexpr int accepts_max = 64;  // between two looks at the clock, however many strangers come

  struct peer {
    bool is_due = false;  // of those that this rank exchanges with
    bool has_answered = false;
    bool is_closed = false;  // its end of `asked`
    owned_fd asked, served;  // this rank at its desk; and the peer at this one's, once it has its answer
  };

  [[nodiscard]] static int a_socket() {
    // Of messages, which arrive whole or not at all.
    int const fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) throw_system("no socket for handing descriptors over");
    return fd;
  }
  [[noreturn]] COLLX_COLD static void throw_system(char const* what) {
    throw_error(status::system_failure, "%s: %s; raise the limit on descriptors (ulimit -n), if that is it",
                what, std::strerror(errno));
  }

  void close_all() noexcept {
    desk_.reset();
    peers_ = {};
    guests_ = {};
  }

  [[nodiscard]] bool is_done() const noexcept {
    for (peer const& each : peers_)
      if (each.is_due && !(each.has_answered && each.served)) return false;
    return true;
  }

  // Goes to every desk where it has not been yet. False: some had so many before them that they refused.
  [[nodiscard]] bool ask_all() {
    bool all_asked = true;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (peers_[r].is_due && !peers_[r].asked) all_asked = ask(r) && all_asked;
    return all_asked;
  }
  [[nodiscard]] bool ask(std::size_t r) {
    owned_fd fd(a_socket());
    sockaddr_un at;
    socklen_t const length = all_[r].address(at);
    if (::connect(fd.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      lost(r);
    }
    if (other_end const them = other_end_of(fd.get()); !them.is_trusted())
      somebody_else(r, "a process of another user listens in its place; run all ranks as one user");
    question me;
    me.secret[0] = all_[r].secret[0], me.secret[1] = all_[r].secret[1];
    me.rank = rank_;
    if (::send(fd.get(), &me, sizeof me, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof me)) lost(r);
    peers_[r].asked = std::move(fd);
    return true;
  }

  void wait(std::uint64_t deadline_us, bool all_asked) {
    polled_[0] = {desk_.get(), POLLIN, 0};
    for (std::size_t r = 0; r < peers_.size(); ++r)
      polled_[1 + r] = {peers_[r].is_closed ? -1 : peers_[r].asked.get(), POLLIN, 0};
    for (std::size_t i = 0; i < guests_.size(); ++i)
      polled_[1 + peers_.size() + i] = {guests_[i].get(), POLLIN, 0};
    std::uint64_t const now = now_us(), rest_ms = now < deadline_us ? (deadline_us - now + 999) / 1000 : 0;
    // Nobody announces that there is room at a desk again.
    std::uint64_t const most_ms = all_asked ? 1000 : 5;
    int const got =
        ::poll(polled_.data(), polled_.size(), static_cast<int>(rest_ms < most_ms ? rest_ms : most_ms));
    if (got >= 0) return;
    if (errno != EINTR) throw_system("poll");
    for (pollfd& each : polled_) each.revents = 0;
  }

  // What comes from a desk: the answer, and later its end.
  void hear(std::size_t r) {
    peer& from = peers_[r];
    answer said;
    owned_fd fd;
    ssize_t const got = receive_with_fd(from.asked.get(), &said, sizeof said, fd);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0 && errno == EMFILE) throw_system("a descriptor cannot be received");
    if (got <= 0) {
      from.is_closed = true;
      // A rank that is through has this one's answer.
      if (!from.has_answered || !from.served) lost(r);
    } else if (got != static_cast<ssize_t>(sizeof said) || !mine_.has_secret(said.secret)) {
      somebody_else(r, "what listens in its place does not belong to this group; has its process ended?");
    } else if (!from.has_answered) {
      from.has_answered = true;
      theirs_[r] = std::move(fd);
    }
  }

  void admit() {
    for (int accepted = 0; accepted < accepts_max; ++accepted) {
      owned_fd fd(::accept4(desk_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EAGAIN) return;
        throw_system("a rank that asks for a descriptor cannot be answered");
      }
      if (!other_end_of(fd.get()).is_trusted()) continue;
      serve(fd);
      if (fd) keep(std::move(fd));
    }
  }
  // Behind all others, so that they stand in the order in which they came. If there is no place, the first
  // one goes, who has been silent for longest.
  void keep(owned_fd&& guest) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < guests_.size(); ++i)
      if (guests_[i] && i != count++) guests_[count - 1] = std::move(guests_[i]);
    if (count == guests_.size()) {
      for (std::size_t i = 1; i < guests_.size(); ++i) guests_[i - 1] = std::move(guests_[i]);
      --count;
    }
    guests_[count] = std::move(guest);
  }

  // A guest who has not said anything yet is left as it is. A rank gets its answer; others are shown out.
  void serve(owned_fd& guest) {
    if (!guest) return;
    question from;
    ssize_t const got = ::recv(guest.get(), &from, sizeof from, MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    owned_fd asker = std::move(guest);
    if (got != static_cast<ssize_t>(sizeof from) || from.magic != question{}.magic ||
        !mine_.has_secret(from.secret) || from.rank < 0 ||
        from.rank >= static_cast<std::int64_t>(peers_.size()))
      return;
    auto const r = static_cast<std::size_t>(from.rank);
    if (!peers_[r].is_due || peers_[r].served) return;
    answer mine;
    mine.secret[0] = all_[r].secret[0], mine.secret[1] = all_[r].secret[1];
    if (!send_with_fd(asker.get(), &mine, sizeof mine, fd_)) {
      if (errno == EPIPE || errno == ECONNRESET) lost(r);
      throw_system("a descriptor cannot be sent");
    }
    peers_[r].served = std::move(asker);
  }

  [[nodiscard]] static long long number(std::int64_t process) noexcept { return process; }
  [[noreturn]] COLLX_COLD void lost(std::size_t r) const {
    throw_error(status::peer_lost,
                "%s, rank %d: rank %d (process %lld) has ended, or given up, before descriptors were handed "
                "over; look at what it says",
                what_, rank_, static_cast<int>(r), number(all_[r].process));
  }
  [[noreturn]] COLLX_COLD void somebody_else(std::size_t r, char const* why) const {
    throw_error(status::bad_argument,
                "%s, rank %d: rank %d (process %lld) was to hand over a descriptor, but %s", what_, rank_,
                static_cast<int>(r), number(all_[r].process), why);
  }
  [[noreturn]] COLLX_COLD void throw_timeout() const {
    std::size_t r = 0;
    while (!peers_[r].is_due || (peers_[r].has_answered && peers_[r].served)) ++r;
    throw_error(
        status::timeout,
        "%s, rank %d: rank %d (process %lld) has not %s a descriptor in time; is it stopped, or busy? "
        "COLLX_TIMEOUT_US says how long ranks wait",
        what_, rank_, static_cast<int>(r), number(all_[r].process),
        peers_[r].has_answered ? "asked for" : "handed over");
  }

  char const* what_;
  rank_t rank_;
  descriptor_desk mine_{};
  owned_fd desk_;
  // While run() does.
  std::span<descriptor_desk const> all_;
  std::span<owned_fd> theirs_;
  int fd_ = -1;
  array<peer> peers_;
  array<owned_fd> guests_;
  array<pollfd> polled_;
};

}  // namespace collx::inline abi_1::net
