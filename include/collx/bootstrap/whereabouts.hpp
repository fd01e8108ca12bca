// SPDX-License-Identifier: Apache-2.0
// From the name of a meeting place to sockets: where rank 0 listens, where the others look for it, and which
// of its addresses a rank gives to its peers.
#pragma once

#include <cinttypes>

#include <sys/stat.h>

#include "collx/bootstrap/place.hpp"
#include "collx/net/interfaces.hpp"
#include "collx/net/resolve.hpp"
#include "collx/net/secret.hpp"
#include "collx/net/socket.hpp"

namespace collx::inline abi_1::bootstrap {

// A file that goes when this does; null: none.
struct removed_file {
  char const* path;
  ~removed_file() {
    if (path != nullptr) unlink(path);
  }
};

// What a meeting's sockets depend on.
struct whereabouts {
  launch const& me;
  meeting_place const& place;
  char const* interfaces;  // COLLX_INTERFACE, or null
  net::socket_settings const& sockets;
  bool has_secret;
  std::uint64_t deadline_us;
  net::look_up ask = net::ask_system;  // who knows names

  // Where to look for rank 0 now. An empty list: not known yet, and `why` says why. `token`: what a file says
  // besides; it tells this job's file from one that was left behind. Throws error: bad_argument if only a
  // secret would let this rank go there, or, if a file says so, which may be an old one, timeout at the
  // deadline; timeout if nobody has said by the deadline what the name stands for, and there is no other
  // reason in `why`, from an earlier look, that this rank has not got there.
  [[nodiscard]] COLLX_COLD net::address_list look(std::uint64_t& token, char const*& why) const {
    net::host_and_port at = place.at;
    token = 0;
    if (place.file != nullptr)
      if (char const* const nothing = read_file(at, token)) return why = nothing, net::address_list();
    if (place.board != nullptr && !read_board(at)) {
      why = "it has not told the launcher yet";
      return {};
    }
    std::uint64_t const asked_us = now_us();
    net::known_addresses const known = net::resolve(at.host, at.port, deadline_us, ask);
    if (known.is_late && why[0] == '\0') throw_unanswered(at, now_us() - asked_us);
    if (known.all.count == 0 && !known.is_late) why = known.why;
    net::address_list usable;
    for (std::size_t i = 0; i < known.all.count; ++i)
      if (has_secret || known.all.at[i].is_loopback()) usable.add(known.all.at[i]);
    if (usable.count != 0 || known.all.count == 0) return usable;
    if (place.file == nullptr) throw_secret(at.host);
    if (now_us() >= deadline_us) throw_old_file(at);
    why = "its file names an address of the network, where no rank goes without a secret";
    return usable;
  }

  // Whether the file says something else than when `token` was read: each meeting draws one of its own.
  [[nodiscard]] COLLX_COLD bool is_elsewhere(std::uint64_t token) const {
    net::host_and_port at;
    std::uint64_t said = token;
    return place.file != nullptr && read_file(at, said) == nullptr && said != token;
  }

  // Rank 0's side: a socket at which the others will look. Throws error that says what to do.
  [[nodiscard]] COLLX_COLD net::owned_fd listen() const {
    if (place.file != nullptr || place.board != nullptr)
      return net::listen_at(own(net::address::loopback(0)), sockets, backlog());
    char const* why = "";
    std::uint64_t unused = 0;
    net::address_list const known = look(unused, why);
    if (known.count == 0 && !has_secret)
      throw_error(status::bad_argument,
                  "%s is \"%.200s\", which is no name this host knows: %s; set it to the name or address of "
                  "the host of rank 0",
                  place.told_by, place.at.host, why);
    // A name may stand for this host only here (Debian calls it 127.0.1.1), or for an address in front of it,
    // or for nothing yet, as that of a pod that is just starting; and of several addresses others may get to
    // some only: then every address will do, and the handshake keeps strangers out.
    bool const says_all = known.count == 1 && !known.at[0].is_loopback();
    bool const is_vague = spans_hosts() && has_secret && !says_all;
    for (std::size_t i = 0; i < known.count && !is_vague; ++i) {
      net::owned_fd fd = net::try_listen_at(known.at[i], sockets, backlog());
      if (fd) return fd;
      if (errno != EADDRNOTAVAIL) return net::listen_at(known.at[i], sockets, backlog());  // which throws
    }
    if (!has_secret)
      return net::listen_at(known.at[0], sockets, backlog());  // not for all the world without one
    net::owned_fd fd = net::try_listen_at(net::address::any(place.at.port, 6), sockets, backlog());
    return fd ? std::move(fd) : net::listen_at(net::address::any(place.at.port, 4), sockets, backlog());
  }

  // The address, with port 0, under which peers reach this rank; `towards_store` is its own end of its
  // connection to rank 0 (at rank 0: where the store listens). Throws error (bad_argument) if there is none,
  // or it may not be used.
  [[nodiscard]] COLLX_COLD net::address own(net::address const& towards_store) const {
    net::address found = towards_store.with_port(0);
    if (found.is_any() && interfaces == nullptr) found = named_here(found);
    bool const is_of_link = found.version == 6 && found.is_link_local();  // on other hosts it means another
    bool const is_vague = found.is_any() || found.is_loopback() || is_of_link;
    if (interfaces != nullptr || (is_vague && spans_hosts()) || found.is_any()) {
      array<net::interface_address> const all = net::local_interfaces();
      std::uint8_t const version = found.is_any() ? std::uint8_t{4} : found.version;
      // Of several that nobody chose between, bridges of containers perhaps, others know that of the way out.
      net::address chosen;
      if (interfaces == nullptr && spans_hosts()) chosen = net::outward_address(version);
      if (chosen.version == 0) chosen = net::choose_interface(all, interfaces, spans_hosts(), version);
      if (chosen.version != 0) found = chosen;
      else if (interfaces != nullptr) throw_interfaces(all);
      else if (is_of_link) throw_link(found);
      else found = net::address::loopback(0);
    }
    if (!has_secret && !found.is_loopback()) throw_secret(net::address_text(found).text);
    return found;
  }

  // Rank 0: tells the others where it listens, all at once or not at all. Throws error (system_failure;
  // timeout, where the launcher hands that over when all have come).
  COLLX_COLD void tell(net::address const& at, std::uint64_t token) const {
    if (place.board != nullptr) place.board->write(net::address_text(at).text, deadline_us);
    if (place.file != nullptr) write_file(at, token);
  }

  // Whether ranks are, or may be, on several hosts.
  [[nodiscard]] bool spans_hosts() const noexcept {
    if (me.is_many_hosts()) return true;
    char const* const host = place.at.host;
    bool const says_loopback = std::strcmp(host, "localhost") == 0 || std::strncmp(host, "127.", 4) == 0 ||
                               std::strcmp(host, "::1") == 0;
    return has_secret && !me.is_one_host() && !says_loopback;
  }

 private:
  // The first of the addresses in rank 0's name that are this host's, and mean something to others;
  // `otherwise` if there is none.
  [[nodiscard]] COLLX_COLD net::address named_here(net::address const& otherwise) const {
    std::uint64_t unused = 0;
    char const* why = "";
    net::address_list const named = look(unused, why);
    array<net::interface_address> const all = net::local_interfaces();
    for (std::size_t i = 0; i < named.count; ++i) {
      net::address const& each = named.at[i];
      if (!each.is_loopback() && !each.is_link_local() && net::is_of_this_host(all, each))
        return each.with_port(0);
    }
    return otherwise;
  }

  [[nodiscard]] int backlog() const noexcept { return me.size < 1024 ? 1024 : me.size; }

  COLLX_COLD void write_file(net::address const& at, std::uint64_t token) const {
    char draft[4096], text[160];
    bool const fits = std::snprintf(draft, sizeof draft, "%s.%d", place.file, getpid()) < int{sizeof draft};
    int const length =
        std::snprintf(text, sizeof text, "collx 1 %s %016" PRIx64 "\n", net::address_text(at).text, token);
    // A new one: in a folder where others may write, one of that name may be theirs, who could go on writing
    // to it, or a link to any file of this user.
    fits ? (void)unlink(draft) : (void)(errno = ENAMETOOLONG);
    net::owned_fd const file(fits ? open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1);
    bool const written = file && write(file.get(), text, static_cast<std::size_t>(length)) == length;
    if (written && !has_secret) require_own(file.get(), draft);
    if (written && rename(draft, place.file) == 0) return;
    char words[500];
    std::snprintf(words, sizeof words,
                  "COLLX_RENDEZVOUS: %.200s cannot be written: %s; name a file in a folder that all "
                  "ranks can reach",
                  place.file, std::strerror(errno));
    if (fits) unlink(draft);
    throw error(status::system_failure, words);
  }

  // Some file systems give all files to one user, or the files of root to nobody: then no rank would believe
  // this one.
  COLLX_COLD void require_own(int file, char const* draft) const {
    struct stat made{};
    if (fstat(file, &made) != 0 || is_believed(made)) return;
    unlink(draft);
    throw_error(status::system_failure,
                "COLLX_RENDEZVOUS: %.200s would belong to user %u and not to this one, %u, and no rank "
                "believes it without a secret; name a file on a local file system, or set COLLX_SECRET_FILE",
                place.file, made.st_uid, geteuid());
  }

  // In a folder where others may write, he who listens at what a file says could play rank 0: only a secret
  // would tell.
  [[nodiscard]] static bool is_believed(struct stat const& what) noexcept {
    return what.st_uid == geteuid() || what.st_uid == 0;
  }

  [[nodiscard]] COLLX_COLD bool read_board(net::host_and_port& at) const {
    char const* const text = place.board->read(deadline_us);
    return text != nullptr && net::host_and_port::parse(text, at);
  }

  // Null, or why there is nothing in it to go by, so far.
  [[nodiscard]] COLLX_COLD char const* read_file(net::host_and_port& at, std::uint64_t& token) const {
    constexpr char const* not_yet = "its file is not there yet";
    char text[160] = {}, where[96] = {};
    // Not through a link, which is not its target's owner's: root's files may say what others made them say
    // (/proc/PID/cmdline).
    net::owned_fd const file(open(place.file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
    struct stat found{};
    if (!file || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return not_yet;
    // Where its owner may not keep rank 0 from replacing it, that one comes later.
    if (!has_secret && !is_believed(found))
      return "its file belongs to another user, whom no rank believes without a secret; name one in a folder "
             "where only you may write, or set COLLX_SECRET_FILE";
    if (read(file.get(), text, sizeof text - 1) <= 0) return not_yet;
    if (std::sscanf(text, "collx 1 %95s", where) != 1 || !net::host_and_port::parse(where, at))
      return not_yet;
    // What sscanf() passes over as a space may be another one, or none.
    char const* const space = std::strrchr(text, ' ');
    if (space == nullptr) return not_yet;
    char const* const number = space + 1;
    char* end = nullptr;
    token = std::strtoull(number, &end, 16);
    return end == number + 16 && *end == '\n' ? nullptr : not_yet;
  }

  [[noreturn]] COLLX_COLD void throw_unanswered(net::host_and_port const& at, std::uint64_t waited_us) const {
    throw_error(status::timeout,
                "meeting at %.100s:%u, rank %d of %d: nobody has said within %.1f s which address "
                "\"%.100s\" stands for; name rank 0 by its address (MASTER_ADDR, or "
                "COLLX_RENDEZVOUS=tcp:ADDRESS:PORT), or see whether the servers of /etc/resolv.conf answer",
                at.host, at.port, me.rank, me.size, static_cast<double>(waited_us) / 1e6, at.host);
  }

  [[noreturn]] COLLX_COLD static void throw_secret(char const* where) {
    throw_error(
        status::bad_argument,
        "this job would use the network (%.100s) without a secret; set COLLX_SECRET_FILE to a file that only "
        "you can read, with the same 16 or more random bytes for all ranks (head -c 32 /dev/urandom | "
        "base64), or COLLX_SECRET to its content; on one host, set MASTER_ADDR=127.0.0.1 instead",
        where);
  }

  // Nothing tells a file that was left behind from that of a rank 0 which has the secret.
  [[noreturn]] COLLX_COLD void throw_old_file(net::host_and_port const& at) const {
    throw_error(status::timeout,
                "meeting by %.150s, rank %d of %d: that file names %.100s:%u, where no rank goes without a "
                "secret; give this rank the same COLLX_SECRET_FILE or COLLX_SECRET as rank 0, or, if rank 0 "
                "has none either, start it: the file is an old one",
                place.file, me.rank, me.size, at.host, at.port);
  }

  [[noreturn]] COLLX_COLD static void throw_link(net::address const& found) {
    throw_error(status::bad_argument,
                "this host has no address but %s, which means nothing to other hosts: link-local IPv6 "
                "addresses are not used; give the interface another address",
                net::address_text(found).text);
  }

  [[noreturn]] COLLX_COLD void throw_interfaces(array<net::interface_address> const& all) const {
    char text[500];
    text_writer out{text, sizeof text};
    out.add(
        "COLLX_INTERFACE is \"%.100s\", and no interface of this host that is up and has an address (not a "
        "link-local IPv6 one) begins so; it has",
        interfaces);
    // One entry for each address: an interface that has several is named once.
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool is_named = false;
      for (std::size_t j = 0; j < i; ++j) is_named = is_named || std::strcmp(all[j].name, all[i].name) == 0;
      if (!is_named) out.add(" %s", all[i].name);
    }
    throw error(status::bad_argument, text);
  }
};

}  // namespace collx::inline abi_1::bootstrap
