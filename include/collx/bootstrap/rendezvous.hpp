// SPDX-License-Identifier: Apache-2.0
// How processes that some launcher started find each other on one host: rank 0 listens on a unix
// socket at an agreed path, or with an agreed abstract name, and hands the descriptor of the shared memory to
// everybody who asks.
#pragma once

#include <sys/stat.h>
#include <sys/un.h>

#include "collx/core/array.hpp"
#include "collx/core/clock.hpp"
#include "collx/net/descriptor_message.hpp"
#include "collx/transport/shared_memory/segment.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

using net::owned_fd;
using net::ready_before;

// What a rank says first. Fixed size; everything in it is checked before it is believed.
struct hello {
  std::uint64_t magic = transport::shared_memory::header::magic_value;
  std::uint32_t version = transport::shared_memory::header::version_value;
  std::int32_t rank = no_rank;
  std::int32_t size = 0;
};

enum class verdict : std::uint32_t { welcome = 1, wrong_version, wrong_size, rank_taken };

// A name that begins with '@' is one of Linux' abstract ones: in no folder, gone with who listens at it, and
// open to all users of the network namespace.
[[nodiscard]] inline bool is_abstract(char const* path) noexcept { return path[0] == '@'; }

// Shorter names are filled up with zeros, which count in an abstract one; both sides do so.
[[nodiscard]] inline sockaddr_un address_of(char const* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path || path[0] == '\0')
    throw_error(status::bad_argument,
                "COLLX_RENDEZVOUS is \"%.120s\"; set it to a path of 1 to %zu characters in a "
                "folder that all ranks can write to",
                path, sizeof address.sun_path - 1);
  std::strcpy(address.sun_path, path);
  if (is_abstract(path)) address.sun_path[0] = '\0';
  return address;
}

// Sends a verdict and, with it, a descriptor (or none: -1). False if the other side is gone.
[[nodiscard]] inline bool send_verdict(int to, verdict answer, int fd) noexcept {
  return net::send_with_fd(to, &answer, sizeof answer, fd);
}

// Receives a verdict and the descriptor that came with it, if any. peer_lost: a broken answer;
// system_failure: there is no room for a descriptor.
[[nodiscard]] inline status receive_verdict(int from, verdict& answer, owned_fd& fd) noexcept {
  ssize_t const got = net::receive_with_fd(from, &answer, sizeof answer, fd);
  if (got == static_cast<ssize_t>(sizeof answer)) return status::ok;
  return got < 0 && errno == EMFILE ? status::system_failure : status::peer_lost;
}

// For who has waited in vain. Nobody need have chosen an abstract name (job_socket.hpp).
[[nodiscard]] COLLX_COLD inline char const* how_to_meet(char const* path) noexcept {
  return is_abstract(path) ? "by one launcher; where they are in containers with networks of their own, set "
                             "COLLX_RENDEZVOUS to a path that they share; or raise COLLX_TIMEOUT_US"
                           : "with the same COLLX_RENDEZVOUS, or raise COLLX_TIMEOUT_US";
}

[[noreturn]] COLLX_COLD inline void throw_rendezvous(char const* path, rank_t rank, rank_t size, status code,
                                                     char const* what) {
  throw_error(code, "rendezvous at %.120s, rank %d of %d: %s", path, rank, size, what);
}

// Rank 0's side: answers until every other rank has been welcomed once.
class host {
 public:
  host(char const* path, rank_t size, std::uint64_t deadline_us)
      : path_(path),
        size_(size),
        deadline_us_(deadline_us),
        socket_(listen_at(path, size)),
        seen_(static_cast<std::size_t>(size)) {}
  ~host() {
    if (!is_abstract(path_)) unlink(path_);
  }

  COLLX_COLD void serve(int segment_fd) {
    for (rank_t missing = size_ - 1; missing > 0;) {
      if (!ready_before(socket_.get(), POLLIN, deadline_us_)) give_up(segment_fd);
      owned_fd const guest(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!guest) require_passing(errno);
      else if (answer(guest.get(), segment_fd)) --missing;
    }
  }

 private:
  // Whether a job that was killed has left this file: nobody listens on it, and it refuses. Whatever else
  // connect() says, it may be in use: EAGAIN (a queue of others stands before it), EACCES (others' own).
  [[nodiscard]] COLLX_COLD static bool is_left_behind(char const* path, sockaddr_un const& address) {
    if (is_abstract(path)) return false;
    owned_fd const probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    auto const* const where = reinterpret_cast<sockaddr const*>(&address);
    bool const is_dead = ::connect(probe.get(), where, sizeof address) != 0 && errno == ECONNREFUSED;
    struct stat found {};
    return is_dead && lstat(path, &found) == 0 && S_ISSOCK(found.st_mode);
  }

  [[noreturn]] COLLX_COLD static void throw_unbound(char const* path, rank_t size, int problem) {
    if (is_abstract(path))
      throw_rendezvous(
          path, 0, size, status::system_failure,
          "another process listens there; set COLLX_RENDEZVOUS, on every rank, to a path of its own "
          "for each job");
    throw_error(
        status::system_failure,
        "rendezvous at %.120s, rank 0 of %d: the path cannot be bound: %s; give COLLX_RENDEZVOUS a path "
        "of its own for each job, in a folder that can be written to",
        path, size, std::strerror(problem));
  }

  [[nodiscard]] COLLX_COLD static owned_fd listen_at(char const* path, rank_t size) {
    sockaddr_un const address = address_of(path);
    owned_fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) transport::shared_memory::throw_system("socket", "raise the limit on descriptors");
    auto const* const where = reinterpret_cast<sockaddr const*>(&address);
    // Before bind(), which makes the file: whatever the umask, only this user can connect, and get memory.
    if (fchmod(fd.get(), 0600) != 0)
      transport::shared_memory::throw_system("fchmod", "give COLLX_RENDEZVOUS another path");
    auto const bind_there = [&] { return ::bind(fd.get(), where, sizeof address) == 0 ? 0 : errno; };
    int problem = bind_there();
    if (problem == EADDRINUSE && is_left_behind(path, address)) {
      unlink(path);
      problem = bind_there();
    }
    if (problem != 0) throw_unbound(path, size, problem);
    if (listen(fd.get(), 128) != 0)
      transport::shared_memory::throw_system("listen", "give COLLX_RENDEZVOUS another path");
    return fd;
  }

  // Why there was no guest: he has gone again, say. What lasts would be tried until the deadline, without a
  // pause, and the wrong one blamed then.
  COLLX_COLD void require_passing(int why) const {
    if (why != EMFILE && why != ENFILE && why != ENOMEM && why != ENOBUFS) return;
    throw_error(
        status::system_failure,
        "rendezvous at %.120s, rank 0 of %d: a rank that comes cannot be let in: %s; raise the limit on "
        "descriptors (ulimit -n), if that is it",
        path_, size_, std::strerror(why));
  }

  // One guest: a hello is read within a second or the guest is dropped. True if it was welcomed.
  [[nodiscard]] bool answer(int guest, int segment_fd) {
    // To a path only this user and root can connect (listen_at()).
    if (is_abstract(path_) && !net::other_end_of(guest).is_trusted()) return false;
    hello from{};
    std::uint64_t const patience_us = now_us() + 1'000'000;
    if (!ready_before(guest, POLLIN, patience_us < deadline_us_ ? patience_us : deadline_us_)) return false;
    if (::recv(guest, &from, sizeof from, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof from)) return false;
    hello const expected{};
    if (from.magic != expected.magic) return false;
    verdict const say = from.version != expected.version             ? verdict::wrong_version
                        : from.size != size_                         ? verdict::wrong_size
                        : from.rank < 1 || from.rank >= size_        ? verdict::rank_taken
                        : seen_[static_cast<std::size_t>(from.rank)] ? verdict::rank_taken
                                                                     : verdict::welcome;
    if (!send_verdict(guest, say, say == verdict::welcome ? segment_fd : -1) || say != verdict::welcome)
      return false;
    return seen_[static_cast<std::size_t>(from.rank)] = true;
  }

  // Those that have come wait for everybody: they hear who has not.
  [[noreturn]] void give_up(int segment_fd) {
    rank_t missing = 1;
    while (seen_[static_cast<std::size_t>(missing)]) ++missing;
    transport::shared_memory::segment::attach(segment_fd).head().alarm.raise({status::timeout, 0, missing});
    throw_error(status::timeout,
                "rendezvous at %.120s, rank 0 of %d: rank %d never came; start all %d ranks %s", path_, size_,
                missing, size_, how_to_meet(path_));
  }

  char const* path_;
  rank_t size_;
  std::uint64_t deadline_us_;
  owned_fd socket_;
  array<bool> seen_;
};

// Whoever may write to the folder could listen there, and give this rank memory that he goes on writing to.
COLLX_COLD inline void require_own_user(int fd, char const* path, rank_t rank, rank_t size) {
  net::other_end const them = net::other_end_of(fd);
  if (!them.is_known)
    throw_rendezvous(path, rank, size, status::system_failure,
                     "the system does not say which user listens there (SO_PEERCRED); run the ranks where it "
                     "does, or use transport::tcp");
  if (them.is_trusted()) return;
  char text[200];
  std::snprintf(text, sizeof text,
                "another user (%u) listens there; give COLLX_RENDEZVOUS, or TMPDIR, a folder that only you "
                "can write to",
                them.user);
  throw_rendezvous(path, rank, size, status::bad_argument, text);
}

// What rank 0 answers at `from`: the descriptor of the segment, or none if it goes without a word.
[[nodiscard]] COLLX_COLD inline owned_fd hear_zero(int from, char const* path, rank_t rank, rank_t size) {
  verdict say{};
  owned_fd segment_fd;
  status const heard = receive_verdict(from, say, segment_fd);
  if (heard == status::system_failure)
    throw_rendezvous(path, rank, size, heard,
                     "this process has no room for the descriptor of the memory; raise the limit on "
                     "descriptors (ulimit -n)");
  if (heard != status::ok || (say == verdict::welcome && segment_fd)) return segment_fd;
  throw_rendezvous(path, rank, size, status::bad_argument,
                   say == verdict::wrong_version ? "rank 0 runs another version of collx; use one version"
                   : say == verdict::wrong_size
                       ? "rank 0 was started with another WORLD_SIZE; give all ranks the same"
                       : "this rank is taken or out of range; give every process a RANK of its own");
}

// The other ranks' side: asks until rank 0 answers. Returns the descriptor of the segment.
[[nodiscard]] COLLX_COLD inline owned_fd ask(char const* path, rank_t rank, rank_t size,
                                             std::uint64_t deadline_us) {
  sockaddr_un const address = address_of(path);
  for (;;) {
    // connect() would wait for a place in the queue of a rank 0 that is stopped, for ever.
    owned_fd const fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd.get() < 0) transport::shared_memory::throw_system("socket", "raise the limit on descriptors");
    if (::connect(fd.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0) {
      require_own_user(fd.get(), path, rank, size);
      hello me{};
      me.rank = rank;
      me.size = size;
      if (::send(fd.get(), &me, sizeof me, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof me) &&
          ready_before(fd.get(), POLLIN, deadline_us)) {
        if (owned_fd segment_fd = hear_zero(fd.get(), path, rank, size)) return segment_fd;
      }
    } else if (errno == EACCES) {  // which no waiting changes
      throw_rendezvous(path, rank, size, status::bad_argument,
                       "another user's socket is there, or its folder is closed to this user; run all ranks "
                       "as one user, or set COLLX_RENDEZVOUS to a path of your own");
    }
    if (now_us() >= deadline_us)
      throw_error(status::timeout,
                  "rendezvous at %.120s, rank %d of %d: rank 0 does not answer; start all ranks %s", path,
                  rank, size, how_to_meet(path));
    // Nobody announces that rank 0 has begun to listen: ask again in a while.
    ::poll(nullptr, 0, 5);
  }
}

}  // namespace detail

// Called by every rank with the same path, size and settings. Returns a descriptor of the shared
// segment, which the caller owns. Throws error when not all ranks come within the time-out.
[[nodiscard]] COLLX_COLD inline net::owned_fd meet_at(char const* path, rank_t rank, rank_t size,
                                                      transport::settings const& chosen) {
  std::uint64_t const deadline_us = deadline_in(chosen.timeout_us);
  if (rank != 0) return detail::ask(path, rank, size, deadline_us);
  detail::host host(path, size, deadline_us);
  net::owned_fd segment(transport::shared_memory::segment::create(size, chosen));
  host.serve(segment.get());
  return segment;
}

}  // namespace collx::inline abi_1::bootstrap
