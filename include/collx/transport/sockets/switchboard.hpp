// SPDX-License-Identifier: Apache-2.0
// The links of one process: makes them when they are needed, writes what is to be written, and says which of
// them have something to read. Guarded by the world's lock.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "collx/core/clock.hpp"
#include "collx/net/poller.hpp"
#include "collx/net/socket.hpp"
#include "collx/transport/sockets/connector.hpp"
#include "collx/transport/sockets/link.hpp"
#include "collx/transport/sockets/tcp_settings.hpp"

namespace collx::inline abi_1::transport::sockets {

class switchboard {
 public:
  // Takes over `connector`. A ring of connections for control is begun, so that what one rank knows of a
  // failure reaches all, round a lost one as well; everything else is connected when it is needed.
  COLLX_COLD switchboard(rank_t rank, rank_t size, tcp_settings const& chosen, owned_connector connector)
      : rank_(rank),
        limits_(chosen.limits),
        checks_(chosen.checks),
        shortens_queues_(!chosen.common.sharing),
        patience_us_(chosen.common.timeout_us),
        connector_(static_cast<owned_connector&&>(connector)),
        links_(static_cast<std::size_t>(size)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_)
      throw error(status::system_failure, "epoll_create1 failed; raise the limit on descriptors");
    if (!watch(connector_->fd(), connector_mark, EPOLLIN, EPOLL_CTL_ADD)) net::throw_unwatched_gate();
    if (rank + 1 < size) dial(rank + 1, 1);
    if (rank == 0 && size > 2) dial(size - 1, 1);
  }
  switchboard(switchboard const&) = delete;
  ~switchboard() {
    for (link* l : links_) delete l;
  }

  [[nodiscard]] rank_t size() const noexcept { return static_cast<rank_t>(links_.size()); }
  // Readable when look() has something to do, unless somebody is being dialled, or not watched. Who is
  // knocked at, and what has a deadline, waits for the next look.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  [[nodiscard]] bool is_dialling() const noexcept { return connector_->is_dialling(); }
  // Whether there are connections of which it does not tell: the system has refused to watch them.
  [[nodiscard]] bool has_unwatched() const noexcept { return unwatched_ != nullptr; }
  [[nodiscard]] connector& connections() noexcept { return *connector_; }

  // Somebody may wait so long from now on: no connection is given up sooner.
  COLLX_COLD void be_patient(std::uint64_t us) noexcept {
    if (us > patience_us_max) us = patience_us_max;
    if (us <= patience_us_) return;
    patience_us_ = us;
    connector_->be_patient(us);
    for (link* l : links_)
      for (int f = 0; l != nullptr && f < l->flow_count(); ++f) net::bear_silence(l->at(f).fd(), us);
  }

  // Null: this rank has had nothing to do with that one.
  [[nodiscard]] link* find(rank_t peer) noexcept { return links_[static_cast<std::size_t>(peer)]; }

  // The link to a peer that messages will be exchanged with. One of the two must dial: the lower rank. The
  // other one waits until it is called.
  [[nodiscard]] link& need(rank_t peer) noexcept {
    link& l = at(peer);
    if (rank_ < peer && l.dialled < l.flow_count()) dial(peer, l.flow_count());
    return l;
  }

  // This rank has waited for a while for a lower one that has not dialled: asks whether it is still there.
  COLLX_COLD void knock(rank_t peer) noexcept {
    link& l = at(peer);
    if (l.at(0).state() == flow_state::closed) connector_->knock(peer);
  }
  // The connection that was opened for that is gone, and the peer had not taken it. False: there is none.
  [[nodiscard]] COLLX_COLD bool forget_knock(link& l) noexcept {
    if (l.knocks()) stop_looking_at(l.at(0));
    return l.forget_knock();
  }

  // Calls f(link) for all whose connection for control stands.
  template <class F>
  void for_each_within_call(F const& f) noexcept {
    for (link* l : links_)
      if (l != nullptr && l->control_is_open()) f(*l);
  }

  void pump(link& l) noexcept {
    (void)l.pump();
    if (l.is_pending || !l.is_busy()) return;
    l.is_pending = true;
    l.next_pending = std::exchange(pending_, &l);
  }

  // Goes on with everything that could not be written at once.
  void pump_pending() noexcept {
    for (link** each = &pending_; *each != nullptr;) {
      link& l = **each;
      (void)l.pump();
      if (l.is_busy()) {
        each = &l.next_pending;
        continue;
      }
      l.is_pending = false;
      *each = l.next_pending;
    }
  }

  // Without waiting: calls readable(link, flow) for each connection that has something to read, and
  // connected(link, flow) for each that stands now.
  template <class Readable, class Connected>
  void look(Readable const& readable, Connected const& connected) noexcept {
    if (connector_->is_dialling() || connector_->is_due()) accept(connected);
    epoll_event events[events_max];
    int const got = epoll_wait(epoll_.get(), events, events_max, 0);
    for (int i = 0; i < got; ++i) {
      if (events[i].data.u64 == connector_mark) {
        accept(connected);
        continue;
      }
      link& l = *links_[events[i].data.u64 >> 8];
      int const index = static_cast<int>(events[i].data.u64 & 0xff);
      if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) readable(l, index);
      if ((events[i].events & EPOLLOUT) == 0 || l.at(index).state() != flow_state::open) continue;
      (void)watch(l.at(index).fd(), events[i].data.u64, EPOLLIN, EPOLL_CTL_MOD);
      pump(l);
    }
    for (int f = 1; attended_ != nullptr && f < attended_->flow_count(); ++f) readable(*attended_, f);
    for (link* l = unwatched_; COLLX_UNLIKELY(l != nullptr); l = l->next_unwatched)
      for (int f = 0; f < l->flow_count(); ++f) readable(*l, f);
  }

  // Somebody looks at the connections for data of a link all the time, or, null, nobody does. Such are not
  // watched, but read with every look: for one that is watched the system notes each message, which takes
  // 0.06 of the time of an all_reduce of 8 B (`reno`, two ranks, in turn).
  void attend(link* whom) noexcept {
    if (whom == attended_) return;
    link* const before = std::exchange(attended_, whom);
    if (before != nullptr && !watch_all_of(*before, 1)) add_unwatched(*before);
    for (int f = 1; attended_ != nullptr && f < attended_->flow_count(); ++f)
      stop_looking_at(attended_->at(f));
  }

  // A connection that has ended says so for ever.
  void stop_looking_at(flow const& f) noexcept { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, f.fd(), nullptr); }

  // The descriptor becomes readable with whatever comes, and when what waits to be written can be.
  void watch_all() noexcept {
    attend(nullptr);
    if (COLLX_UNLIKELY(unwatched_ != nullptr)) try_unwatched_again();
    for (link* l = pending_; l != nullptr; l = l->next_pending)
      for (int f = 0; f < l->flow_count(); ++f)
        if (!l->at(f).idle() && l->at(f).state() == flow_state::open)
          (void)watch(l->at(f).fd(), mark_of(*l, f), EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }

  // After a failure; see link.
  COLLX_COLD void abandon_data() noexcept {
    for (link* l : links_) {
      for (int f = 1; l != nullptr && f < l->flow_count(); ++f) stop_looking_at(l->at(f));
      if (l != nullptr) l->abandon_data();
    }
  }

  // A group goes: nothing here refers to it afterwards; see link. A child that was forked may have a
  // connection open, too: closed here alone it would stay one for the peer, and in the set, whose entry
  // nobody could remove.
  COLLX_COLD void forget(channel_group const& group, std::byte* nowhere) noexcept {
    auto const cut = [this](flow const& f) noexcept {
      stop_looking_at(f);
      ::shutdown(f.fd(), SHUT_RDWR);
    };
    for (link* l : links_)
      if (l != nullptr) l->forget(group, nowhere, cut);
  }

  // ---- the end -------------------------------------------------------------------------------------

  // Whether a connection for control is still to come, of the ring or one that this rank has dialled: it is
  // on its way, or the peer has not looked yet. The peer, who speaks last in a handshake, may have it by
  // now: if it were closed here, that would look there as if this process had been killed.
  [[nodiscard]] COLLX_COLD bool awaits_anybody() noexcept {
    if (awaits((rank_ + 1) % size()) || awaits((rank_ + size() - 1) % size())) return true;
    for (link* l : links_)
      if (l != nullptr && l->dialled != 0 && awaits(l->peer())) return true;
    return false;
  }
  [[nodiscard]] COLLX_COLD bool has_more_to_write() noexcept {
    for (link* l = pending_; l != nullptr; l = l->next_pending)
      if (!l->is_over()) return true;
    return false;
  }
  COLLX_COLD void hang_up() noexcept {
    for (link* l : links_)
      for (int f = 0; l != nullptr && f < l->flow_count(); ++f) l->at(f).hang_up();
  }
  // Bytes, or the word that there will be no more, that the peers' machines have not acknowledged.
  [[nodiscard]] COLLX_COLD bool has_bytes_on_their_way() noexcept {
    for (link* l : links_)
      for (int f = 0; l != nullptr && f < l->flow_count(); ++f)
        if (is_on_its_way(l->at(f))) return true;
    return false;
  }
  // The same of connections for control.
  [[nodiscard]] COLLX_COLD bool has_words_on_their_way() noexcept {
    for (link* l : links_)
      if (l != nullptr && is_on_its_way(l->at(0))) return true;
    return false;
  }

 private:
  [[nodiscard]] bool awaits(rank_t peer) noexcept {
    if (peer == rank_) return false;
    link& l = at(peer);
    return !l.control_is_open() && !l.control_has_ended() && connector_->outlook(peer) == status::ok;
  }

  static constexpr std::uint64_t connector_mark = ~std::uint64_t{0};
  static constexpr int events_max = 32;
  // Can be added to times.
  static constexpr std::uint64_t patience_us_max = std::uint64_t{1} << 50;

  [[nodiscard]] static bool is_on_its_way(flow const& f) noexcept {
    int unacknowledged = 0;
    return f.state() == flow_state::open && !is_over(f.fd()) &&
           ioctl(f.fd(), TIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0;
  }

  // The peer, which had all it wanted, has closed its side before it read our last words: the system then
  // answers with a reset, and counts those words as unacknowledged for ever. Within one machine it counts
  // what the peer has and has not read: what is written to a pair of sockets is there at once, and stays.
  [[nodiscard]] static bool is_over(int fd) noexcept {
    int domain = AF_INET;
    socklen_t domain_bytes = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) == 0 && domain == AF_UNIX) return true;
    tcp_info now{};
    socklen_t length = sizeof now;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &now, &length) == 0 && now.tcpi_state == TCP_CLOSE;
  }

  [[nodiscard]] link& at(rank_t peer) noexcept {
    link*& l = links_[static_cast<std::size_t>(peer)];
    if (l == nullptr) l = new (std::nothrow) link(peer, connector_->distance_to(peer), limits_, checks_);
    if (l == nullptr) std::abort();  // some kilobytes: nothing else would work either
    return *l;
  }

  COLLX_COLD void dial(rank_t peer, int flows) noexcept {
    link& l = at(peer);
    connector_->dial(peer, std::exchange(l.dialled, flows), flows);
  }

  template <class Connected>
  COLLX_COLD void accept(Connected const& connected) noexcept {
    connection next;
    while (connector_->poll(next)) {
      link& l = at(next.peer);
      if (!takes(l, next)) {
        next.fd.reset();
        continue;
      }
      net::bear_silence(next.fd.get(), patience_us_);
      auto fd = static_cast<net::owned_fd&&>(next.fd);
      auto secured = static_cast<net::owned_stream&&>(next.secured);
      bool const asks = next.is_knock && l.peer() < rank_;
      bool const is_paced = shortens_queues_ && net::is_paced(fd.get());
      if (asks) l.open_knock(static_cast<net::owned_fd&&>(fd), static_cast<net::owned_stream&&>(secured));
      else
        l.open(next.flow, static_cast<net::owned_fd&&>(fd), static_cast<net::owned_stream&&>(secured),
               is_paced);
      // What is said first tells the higher rank that its connection is taken.
      if (next.is_knock && !asks) l.dialled += l.dialled == 0, l.answer(no_rank);
      if (!watch_all_of(l)) add_unwatched(l);
      connected(l, next.flow);
    }
  }

  // Whether a connection that stands now is wanted. Two ranks may dial each other at the same time, for
  // control: then that of the lower one is, unless none will come of it, and the higher one lets go of its
  // own when that comes.
  [[nodiscard]] COLLX_COLD bool takes(link& l, connection const& next) noexcept {
    if (next.flow < 0 || next.flow >= l.flow_count()) return false;
    if (!next.is_knock && next.flow == 0) (void)forget_knock(l);
    if (l.at(next.flow).state() != flow_state::closed) return false;
    bool const may_dial = l.dialled != 0 && connector_->outlook(l.peer()) == status::ok;
    return !next.is_knock || (next.flow == 0 && (l.peer() < rank_ || !may_dial));
  }

  [[nodiscard]] static std::uint64_t mark_of(link const& l, int index) noexcept {
    return static_cast<std::uint64_t>(l.peer()) << 8 | static_cast<std::uint64_t>(index);
  }
  [[nodiscard]] bool watch(int fd, std::uint64_t mark, std::uint32_t events, int how) noexcept {
    epoll_event e{};
    e.events = events;
    e.data.u64 = mark;
    return epoll_ctl(epoll_.get(), how, fd, &e) == 0 || errno == EEXIST;
  }

  // Those connections of a link that stand and are to be watched. False: the system has no memory for one of
  // them, or its user has as many watches as he may have (fs.epoll.max_user_watches).
  [[nodiscard]] bool watch_all_of(link& l, int first = 0) noexcept {
    int const end = &l == attended_ ? 1 : l.flow_count();
    for (int f = first; f < end; ++f)
      if (l.at(f).state() == flow_state::open && !watch(l.at(f).fd(), mark_of(l, f), EPOLLIN, EPOLL_CTL_ADD))
        return false;
    return true;
  }
  // They are looked at instead, and whoever sleeps looks up often.
  COLLX_COLD void add_unwatched(link& l) noexcept {
    if (std::exchange(l.is_unwatched, true)) return;
    l.next_unwatched = std::exchange(unwatched_, &l);
  }
  COLLX_COLD void try_unwatched_again() noexcept {
    for (link** each = &unwatched_; *each != nullptr;) {
      link& l = **each;
      l.is_unwatched = !watch_all_of(l);
      if (l.is_unwatched) each = &l.next_unwatched;
      else *each = l.next_unwatched;
    }
  }

  rank_t rank_;
  flows::flow_limits limits_;
  bool checks_;
  bool shortens_queues_;  // see send_queue: where ranks share processors, to come back often costs too much
  std::uint64_t patience_us_;  // with a silent connection
  owned_connector connector_;
  array<link*> links_;
  net::owned_fd epoll_;
  link* pending_ = nullptr;    // those with something to write
  link* attended_ = nullptr;   // whose connections for data are not in the set
  link* unwatched_ = nullptr;  // some of whose connections the system has refused to watch
};

}  // namespace collx::inline abi_1::transport::sockets
