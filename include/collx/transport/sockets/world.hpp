// SPDX-License-Identifier: Apache-2.0
// One process's place among those it talks to over TCP: its links, the communicators that share them, and
// what moves bytes between the two. One lock guards all of it: threads with communicators of their own meet
// here.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <atomic>

#include "collx/core/clock.hpp"
#include "collx/core/mutex.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/sockets/connector.hpp"
#include "collx/transport/sockets/link.hpp"
#include "collx/transport/sockets/suspicion.hpp"
#include "collx/transport/sockets/tcp_settings.hpp"

namespace collx::inline abi_1::transport {

class tcp_world {
 public:
  static constexpr char const* transport_name = "tcp";
  static constexpr int lane_count = 4;
  using channel = sockets::channel;
  using channel_group = sockets::channel_group;
  using link = sockets::link;

  // Takes over `connector`, which it deletes. `ranks_here`: on this host.
  COLLX_COLD tcp_world(rank_t rank, rank_t size, tcp_settings const& chosen, rank_t ranks_here,
                       sockets::connector* connector)
      : rank_(rank),
        ranks_here_(ranks_here),
        chosen_(chosen),
        connector_(connector),
        links_(static_cast<std::size_t>(size)),
        lost_(static_cast<std::size_t>(size)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) throw error(status::system_failure, "epoll_create1 failed; raise the limit on descriptors");
    watch(connector_->fd(), connector_mark, EPOLLIN, EPOLL_CTL_ADD);
    // A ring for control, so that what one rank knows of a failure reaches all, round a lost one as well. The
    // lower rank of two dials.
    if (rank + 1 < size) dial(rank + 1, 1);
    if (rank == 0 && size > 2) dial(size - 1, 1);
  }
  tcp_world(tcp_world const&) = delete;

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return static_cast<rank_t>(links_.size()); }
  [[nodiscard]] rank_t ranks_here() const noexcept { return ranks_here_; }
  [[nodiscard]] settings const& chosen() const noexcept { return chosen_.common; }
  [[nodiscard]] posix_mutex& mutex() noexcept { return mutex_; }

  // Relaxed: taking a reference needs one already. Acquire-release: the last to drop sees all uses.
  void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  COLLX_COLD void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Nobody maps anybody's memory here: symmetric memory is memory.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) { return map_zeroed(bytes); }
  void deallocate(std::byte* p, std::size_t bytes) noexcept { unmap_zeroed(p, bytes); }

  // A number for a new communicator that no other rank of this world gives.
  [[nodiscard]] std::uint64_t new_id() noexcept {
    // Relaxed: only the number matters.
    return static_cast<std::uint64_t>(rank_) << 32 | ids_.fetch_add(1, std::memory_order_relaxed);
  }

  COLLX_COLD void enter(channel_group& group) noexcept {
    posix_lock const held(mutex_);
    group.next = std::exchange(groups_, &group);
  }

  // A group's last act: gives its messages to the kernel, as far as anybody still takes them.
  COLLX_COLD void leave(channel_group& group) noexcept {
    std::uint64_t const deadline_us = now_us() + chosen().timeout_us;
    for (;;) {
      posix_lock const held(mutex_);
      look_at_all();
      pump_pending();
      if (!has_more_to_say(group) || alarm_.raised() || now_us() >= deadline_us) {
        forget(group);
        return;
      }
      sched_yield();
    }
  }

  // ---- on the data path, all with the lock held ------------------------------------------------------

  // A message is wanted from a channel's peer, or is to be sent to it.
  void need(channel& c) noexcept {
    if (COLLX_LIKELY(c.with != nullptr)) return;
    c.with = &link_to(c.group->world_rank(c.peer));
  }

  void send(channel& c, bool urgent) noexcept {
    need(c);
    c.with->wants_to_send(c, urgent);
    pump(*c.with);
  }

  void acknowledge(channel& c) noexcept {
    c.with->owes_receipt(c);
    pump(*c.with);
  }

  // Moves bytes along: first those that `group` waits for.
  void progress(channel_group& group) noexcept {
    pump_pending();
    link* const with = group.watched;
    // All others get a look now and then: they cost two system calls, and the one waited for costs one.
    if (with == nullptr || !with->is_up() || ++round_ % looks_per_round == 0) look_at_all();
    else read_data(*with);
  }

  // ---- sleeping --------------------------------------------------------------------------------------

  void prepare_to_sleep(channel_group& group) noexcept {
    group.asleep(true);
    dials_.store(connector_->is_dialling(), std::memory_order_relaxed);
    for (link* l = pending_; l != nullptr; l = l->next_pending)
      for (int f = 0; l->is_up() && f < l->flow_count(); ++f)
        if (!l->at(f).idle() && l->at(f).state() == sockets::flow_state::open)
          watch(l->at(f).fd(), mark_of(*l, f), EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }

  // Without the lock. Until something can be read or written or the group's bell rings; false: neither.
  [[nodiscard]] bool sleep(channel_group& group, std::uint64_t at_most_us) noexcept {
    pollfd what[2] = {{epoll_, POLLIN, 0}, {group.bell(), POLLIN, 0}};
    std::uint64_t const most_ms = (at_most_us + 999) / 1000;
    std::uint64_t const nap_ms = dials_.load(std::memory_order_relaxed) ? nap_ms_dialling : nap_ms_max;
    int const got = ::poll(what, 2, static_cast<int>(most_ms < nap_ms ? most_ms : nap_ms));
    posix_lock const held(mutex_);
    group.asleep(false);
    if (got > 0 && (what[1].revents & POLLIN) != 0) group.hush();
    look_at_all();
    return got > 0;
  }

  // ---- failures --------------------------------------------------------------------------------------

  [[nodiscard]] COLLX_COLD status interrupted(rank_t peer) noexcept {
    if (alarm_.raised()) return status::aborted;
    if (peer == no_rank || peer == rank_) return status::ok;
    posix_lock const held(mutex_);
    status const outlook = outlook_of(peer);
    if (outlook == status::ok) return ask_after(peer), status::ok;
    // What it wrote before it ended, an alarm perhaps, may still be there to read.
    look_at_all();
    return alarm_.raised() ? status::aborted : outlook;
  }

  COLLX_COLD void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    posix_lock const held(mutex_);
    if (!alarm_.raised()) spread_alarm({code, reporter, culprit});
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept { return alarm_.read(); }

  // Whom to blame for a deadline that passed while waiting for a peer; a rank of the world, as that is.
  [[nodiscard]] COLLX_COLD rank_t suspect(rank_t peer) noexcept {
    posix_lock const held(mutex_);
    rank_t const blamed = suspicion_.blames(now_us());
    return blamed == no_rank ? peer : blamed;
  }

  // What stands with a peer: slices and bytes under way on each flow. For tests.
  [[nodiscard]] link* link_if_any(rank_t peer) noexcept { return links_[static_cast<std::size_t>(peer)]; }

 private:
  static constexpr std::uint64_t connector_mark = ~std::uint64_t{0};
  static constexpr std::uint32_t looks_per_round = 16;
  static constexpr int events_max = 32;
  // A rank that sleeps looks up so often, whatever happens: a deadline of another thread's may be near.
  static constexpr std::uint64_t nap_ms_max = 20, nap_ms_dialling = 1;

  // Says goodbye, and stays until every byte has reached the peers' machines: what is closed before may be
  // lost with the connection.
  COLLX_COLD ~tcp_world() {
    {
      posix_lock const held(mutex_);
      std::uint64_t const patience_us = alarm_.raised() ? 200'000 : chosen().timeout_us;
      std::uint64_t const deadline_us = now_us() + patience_us;
      for (link* l : links_)
        if (l != nullptr && l->control_is_open()) {
          l->tell_goodbye();
          pump(*l);
        }
      while (pending_ != nullptr && !nobody_listens() && now_us() < deadline_us) {
        look_at_all();
        pump_pending();
      }
      for (link* l : links_)
        for (int f = 0; l != nullptr && f < l->flow_count(); ++f)
          if (l->at(f).fd() >= 0) shutdown(l->at(f).fd(), SHUT_WR);
      while (bytes_on_their_way() && now_us() < deadline_us) sched_yield();
    }
    for (link* l : links_) delete l;
    delete connector_;
    ::close(epoll_);
  }

  [[nodiscard]] bool nobody_listens() noexcept {
    for (link* l = pending_; l != nullptr; l = l->next_pending)
      if (!l->is_over()) return false;
    return true;
  }

  [[nodiscard]] bool bytes_on_their_way() noexcept {
    for (link* l : links_)
      for (int f = 0; l != nullptr && f < l->flow_count(); ++f) {
        int unacknowledged = 0;
        if (l->at(f).state() == sockets::flow_state::open &&
            ioctl(l->at(f).fd(), TIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0)
          return true;
      }
    return false;
  }

  [[nodiscard]] link& link_to(rank_t peer) noexcept {
    link& l = link_with(peer);
    // One of the two must: the lower rank. The other one waits until it is called.
    if (rank_ < peer && l.dialled < l.flow_count()) dial(peer, l.flow_count());
    return l;
  }
  [[nodiscard]] link& link_with(rank_t peer) noexcept {
    link*& l = links_[static_cast<std::size_t>(peer)];
    if (l == nullptr) l = new link(peer, chosen_.limits, chosen_.checks);
    return *l;
  }
  COLLX_COLD void dial(rank_t peer, int flows) noexcept {
    link& l = link_with(peer);
    connector_->dial(peer, std::exchange(l.dialled, flows), flows);
  }

  // ok, or why no message will come from a peer.
  [[nodiscard]] status outlook_of(rank_t peer) noexcept {
    link* const with = links_[static_cast<std::size_t>(peer)];
    if (with != nullptr && with->is_over()) return status::peer_lost;
    if (with != nullptr && with->is_up()) return status::ok;  // what it has sent is read first
    return lost_[static_cast<std::size_t>(peer)] ? status::peer_lost : connector_->outlook(peer);
  }

  COLLX_COLD void ask_after(rank_t peer) noexcept {
    if (!suspicion_.still_waits(peer, now_us(), chosen().timeout_us)) return;
    link* const with = links_[static_cast<std::size_t>(peer)];
    if (with == nullptr || !with->control_is_open()) return;
    with->ask();
    pump(*with);
  }

  // Tells everybody this rank knows, who tell everybody they know.
  COLLX_COLD void spread_loss(rank_t who) noexcept {
    if (std::exchange(lost_[static_cast<std::size_t>(who)], true)) return;
    for (link* l : links_)
      if (l != nullptr && l->control_is_open()) {
        l->tell_lost(who);
        pump(*l);
      }
    wake_all();
  }

  void pump(link& l) noexcept {
    l.pump();
    if (l.is_pending || !l.is_busy()) return;
    l.is_pending = true;
    l.next_pending = std::exchange(pending_, &l);
  }

  void pump_pending() noexcept {
    for (link** at = &pending_; *at != nullptr;) {
      link& l = **at;
      (void)l.pump();
      if (l.is_busy()) {
        at = &l.next_pending;
        continue;
      }
      l.is_pending = false;
      *at = l.next_pending;
    }
  }

  // What a link's connections say goes through here.
  struct reader {
    tcp_world& world;
    link& from;
    channel_group* last = nullptr;

    [[nodiscard]] sockets::flow::answer begin(sockets::frame const& what, std::byte*& to) noexcept {
      using answer = sockets::flow::answer;
      if (what.kind == sockets::frame_kind::goodbye) return from.said_goodbye(), answer::take;
      if (what.kind == sockets::frame_kind::alarm) return world.hear_alarm(what);
      if (what.kind == sockets::frame_kind::lost) return world.hear_of_loss(what);
      if (what.kind == sockets::frame_kind::question) {
        from.answer(world.suspicion_.blames(now_us()));
        return world.pump(from), answer::take;
      }
      if (what.kind == sockets::frame_kind::answer) return world.hear_answer(from.peer(), what);
      last = world.find(what.communicator);
      if (last != nullptr) return last->begin(from.peer(), what, to);
      // Of a communicator that is gone, receipts may be late. Of one that is not there yet, messages early.
      return what.kind == sockets::frame_kind::credit ? answer::take : answer::later;
    }
    [[nodiscard]] bool end(sockets::frame const& what, std::byte const* slice) noexcept {
      if (last == nullptr || last->id() != what.communicator) last = world.find(what.communicator);
      return last != nullptr && last->end(what, slice);
    }
  };

  [[nodiscard]] channel_group* find(std::uint64_t id) const noexcept {
    channel_group* g = groups_;
    while (g != nullptr && g->id() != id) g = g->next;
    return g;
  }

  void read_data(link& l) noexcept {
    reader sink{*this, l};
    for (int f = 1; f < l.flow_count(); ++f) read(l, f, sink);
  }

  void read(link& l, int index, reader& sink) noexcept {
    sockets::flow& f = l.at(index);
    if (f.state() != sockets::flow_state::open) return;
    f.read(sink);
    if (f.state() == sockets::flow_state::open) return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, f.fd(), nullptr);
    if (index == 0 && !l.left()) spread_loss(l.peer());
    wake_all();  // whoever waits for this peer must find out
  }

  void look_at_all() noexcept {
    if (connector_->is_dialling()) accept_connections();
    epoll_event events[events_max];
    int const got = epoll_wait(epoll_, events, events_max, 0);
    for (int i = 0; i < got; ++i) {
      if (events[i].data.u64 == connector_mark) {
        accept_connections();
        continue;
      }
      link& l = *links_[events[i].data.u64 >> 8];
      int const index = static_cast<int>(events[i].data.u64 & 0xff);
      if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
        reader sink{*this, l};
        read(l, index, sink);
      }
      if ((events[i].events & EPOLLOUT) != 0 && l.at(index).state() == sockets::flow_state::open) {
        watch(l.at(index).fd(), events[i].data.u64, EPOLLIN, EPOLL_CTL_MOD);
        pump(l);
      }
    }
  }

  void accept_connections() noexcept {
    sockets::connection next;
    while (connector_->poll(next)) {
      link& l = link_with(next.peer);
      if (next.flow < 0 || next.flow >= l.flow_count() || l.at(next.flow).state() != sockets::flow_state::closed) {
        next.fd.reset();
        continue;
      }
      l.open(next.flow, static_cast<net::owned_fd&&>(next.fd));
      watch(l.at(next.flow).fd(), mark_of(l, next.flow), EPOLLIN, EPOLL_CTL_ADD);
      if (next.flow == 0 && alarm_.raised()) l.tell_alarm(alarm_frame());
      pump(l);
      wake_all();
    }
  }

  [[nodiscard]] static std::uint64_t mark_of(link const& l, int index) noexcept {
    return static_cast<std::uint64_t>(l.peer()) << 8 | static_cast<std::uint64_t>(index);
  }
  void watch(int fd, std::uint64_t mark, std::uint32_t events, int how) noexcept {
    epoll_event e{};
    e.events = events;
    e.data.u64 = mark;
    epoll_ctl(epoll_, how, fd, &e);
  }

  [[nodiscard]] sockets::frame alarm_frame() const noexcept {
    mapped::first_failure const first = alarm_.read();
    sockets::frame what;
    what.kind = sockets::frame_kind::alarm;
    what.message = static_cast<std::uint32_t>(first.code);
    what.offset = static_cast<std::uint32_t>(first.reporter);
    what.consumed = static_cast<std::uint32_t>(first.culprit);
    return what;
  }

  [[nodiscard]] sockets::flow::answer hear_alarm(sockets::frame const& what) noexcept {
    auto const in_world = [&](std::uint32_t r) noexcept {
      return static_cast<rank_t>(r) == no_rank || r < static_cast<std::uint32_t>(size());
    };
    if (what.message == 0 || what.message > static_cast<std::uint32_t>(status::system_failure) ||
        !in_world(what.offset) || !in_world(what.consumed))
      return sockets::flow::answer::refuse;
    if (!alarm_.raised())
      spread_alarm({static_cast<status>(what.message), static_cast<rank_t>(what.offset),
                    static_cast<rank_t>(what.consumed)});
    return sockets::flow::answer::take;
  }

  [[nodiscard]] sockets::flow::answer hear_answer(rank_t peer, sockets::frame const& what) noexcept {
    auto const blamed = static_cast<rank_t>(what.from);
    if (blamed != no_rank && what.from >= links_.size()) return sockets::flow::answer::refuse;
    suspicion_.hear(peer, blamed);
    return sockets::flow::answer::take;
  }

  [[nodiscard]] sockets::flow::answer hear_of_loss(sockets::frame const& what) noexcept {
    if (what.from >= links_.size()) return sockets::flow::answer::refuse;
    spread_loss(static_cast<rank_t>(what.from));
    return sockets::flow::answer::take;
  }

  void spread_alarm(mapped::first_failure const& what) noexcept {
    alarm_.raise(what);
    for (link* l : links_)
      if (l != nullptr && l->control_is_open()) {
        l->tell_alarm(alarm_frame());
        pump(*l);
      }
    wake_all();
  }

  void wake_all() noexcept {
    for (channel_group* g = groups_; g != nullptr; g = g->next) g->ring_if_asleep();
  }

  [[nodiscard]] bool has_more_to_say(channel_group& group) noexcept {
    if (!group.owes_nothing()) return true;
    for (int lane = 0; lane < lane_count; ++lane)
      if (group.unsent(lane) != 0) return true;
    return false;
  }

  void forget(channel_group& group) noexcept {
    for (link* l : links_)
      if (l != nullptr) l->forget(group);
    channel_group** at = &groups_;
    while (*at != &group) at = &(*at)->next;
    *at = group.next;
  }

  rank_t rank_;
  rank_t ranks_here_;
  tcp_settings chosen_;
  sockets::connector* connector_;
  array<link*> links_;
  array<bool> lost_;  // whose processes are known to be gone
  int epoll_;
  channel_group* groups_ = nullptr;
  link* pending_ = nullptr;  // those with something to write
  std::uint32_t round_ = 0;
  std::atomic<bool> dials_{false};  // relaxed: it only makes a sleep shorter
  posix_mutex mutex_;
  mapped::alarm alarm_;
  sockets::suspicion suspicion_;
  std::atomic<std::uint32_t> ids_{2};  // 1 is the world's communicator
  std::atomic<std::int32_t> references_{1};
};

}  // namespace collx::inline abi_1::transport
