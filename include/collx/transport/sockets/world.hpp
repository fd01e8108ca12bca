// SPDX-License-Identifier: Apache-2.0
// One process's place among those it talks to over TCP: its links, the communicators that share them, and
// what moves bytes between the two. One lock guards all of it: threads with communicators of their own meet
// here.
#pragma once

#include <atomic>

#include <unistd.h>

#include "collx/core/biased_mutex.hpp"
#include "collx/transport/sockets/alarm_frame.hpp"
#include "collx/transport/sockets/left_groups.hpp"
#include "collx/transport/sockets/losses.hpp"
#include "collx/transport/sockets/suspicion.hpp"
#include "collx/transport/sockets/switchboard.hpp"

namespace collx::inline abi_1::transport {

class tcp_world {
 public:
  static constexpr char const* transport_name = "tcp";
  static constexpr int lane_count = 4;
  using channel = sockets::channel;
  using channel_group = sockets::channel_group;
  using link = sockets::link;

  // Takes over `connector`. Throws error, also for settings that do not go together, or std::bad_alloc.
  COLLX_COLD tcp_world(rank_t rank, rank_t size, tcp_settings const& chosen,
                       sockets::owned_connector connector)
      : rank_(rank),
        chosen_(chosen.for_ranks(size).checked(size)),
        board_(rank, size, chosen_, static_cast<sockets::owned_connector&&>(connector)),
        left_(chosen_.common.staging_bytes / 2),
        losses_(size, chosen_.common.timeout_us) {}
  tcp_world(tcp_world const&) = delete;

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return board_.size(); }
  [[nodiscard]] settings const& chosen() const noexcept { return chosen_.common; }
  [[nodiscard]] tcp_settings const& all_chosen() const noexcept { return chosen_; }
  [[nodiscard]] biased_mutex& mutex() noexcept { return mutex_; }

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
    read_what_came_early(group);
  }

  // In a child that was forked since: the rank is its parent, whose connections these are, too. Whatever were
  // read from them, or said, would be missing there, or the rank's goodbye.
  [[nodiscard]] COLLX_COLD bool is_copy() const noexcept { return getpid() != process_; }

  // A group's last act: gives its messages to the kernel, as far as anybody still takes them.
  COLLX_COLD void leave(channel_group& group) noexcept {
    std::uint64_t const deadline_us = deadline_in(chosen().timeout_us);
    for (;;) {
      posix_lock const held(mutex_);
      look_at_all();
      board_.pump_pending();
      if (!group.has_more_to_say() || alarm_.raised() || now_us() >= deadline_us) {
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
    c.with = &board_.need(c.group->world_rank(c.peer));
  }

  void send(channel& c, bool urgent) noexcept {
    need(c);
    if (COLLX_UNLIKELY(alarm_.raised())) return;  // it stays unsent: whoever waits for it learns why
    c.with->wants_to_send(c, urgent);
    board_.pump(*c.with);
  }

  void acknowledge(channel& c) noexcept {
    c.with->owes_receipt(c);
    board_.pump(*c.with);
  }

  // Moves bytes along: first those that `group` waits for.
  void progress(channel_group& group) noexcept {
    board_.pump_pending();
    link* const with = group.watched();
    // All others get a look now and then: they cost two system calls, and the one waited for costs one.
    if (with == nullptr || !with->is_up() || ++round_ % looks_per_round == 0) return look_at_all();
    if (COLLX_UNLIKELY(group.counts_look(looks_per_round))) attend(*with);
    read_data(*with);
  }

  // Somebody here may wait so long: connections must not be given up sooner.
  COLLX_COLD void be_patient(std::uint64_t us) noexcept {
    posix_lock const held(mutex_);
    board_.be_patient(us);
  }
  [[nodiscard]] COLLX_COLD std::uint64_t strangers() noexcept {
    posix_lock const held(mutex_);
    return board_.connections().strangers();
  }

  // ---- sleeping --------------------------------------------------------------------------------------

  void prepare_to_sleep(channel_group& group) noexcept {
    group.asleep(true);
    board_.watch_all();
  }

  // Without the lock. Until something can be read or written or the group's bell rings; false: neither.
  [[nodiscard]] bool sleep(channel_group& group, std::uint64_t at_most_us) noexcept {
    pollfd what[2] = {{board_.fd(), POLLIN, 0}, {group.bell(), POLLIN, 0}};
    std::uint64_t nap_ms = nap_ms_max;
    {
      posix_lock const held(mutex_);
      prepare_to_sleep(group);  // once more: one nap may follow another without a word
      if (board_.is_dialling() || board_.has_unwatched()) nap_ms = nap_ms_unwatched;
    }
    if (at_most_us < nap_ms * 1000) nap_ms = (at_most_us + 999) / 1000;
    int const got = ::poll(what, 2, static_cast<int>(nap_ms));
    posix_lock const held(mutex_);
    group.asleep(got <= 0);  // who found nothing may nap again: what is read for it until then must ring
    if (got > 0 && (what[1].revents & POLLIN) != 0) group.hush();
    look_at_all();
    return got > 0;
  }

  // ---- failures --------------------------------------------------------------------------------------

  // Who waits gives up after `timeout_us`. `is_watched`: somebody else tells when the peer's process ends, so
  // nobody dials it to find out.
  [[nodiscard]] COLLX_COLD status interrupted(rank_t peer, std::uint64_t timeout_us,
                                              bool is_watched = false) noexcept {
    if (alarm_.raised()) return status::aborted;
    if (peer == no_rank || peer == rank_) return status::ok;
    posix_lock const held(mutex_);
    status const outlook = outlook_of(peer);
    // What it wrote before it ended, an alarm perhaps, may still be there to read. And where others want the
    // processor, and each look waits for their turn, those come late that progress() has for the rest.
    look_at_all();
    if (outlook == status::ok && !alarm_.raised()) ask_after(peer, timeout_us, is_watched);
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
    rank_t const blamed = suspicions_.blames_for(peer, now_us());
    return blamed == no_rank ? peer : blamed;
  }

 private:
  // An all_reduce of 8 B takes 0.95 of its time with 64 instead of 16, and hardly less with more. What others
  // send meanwhile, some 20 us, waits in their sockets.
  static constexpr std::uint32_t looks_per_round = 64;
  static constexpr std::uint64_t patience_after_failure_us = 1'000'000;  // several retransmissions
  // A rank that sleeps looks up so often, whatever happens: a deadline of another thread's may be near.
  static constexpr std::uint64_t nap_ms_max = 20, nap_ms_unwatched = 1;

  // Says goodbye, and stays until every byte has reached the peers' machines: what is closed before may be
  // lost with the connection.
  COLLX_COLD ~tcp_world() {
    if (is_copy()) return;  // without the lock, which another thread may have held, who is not here
    posix_lock const held(mutex_);
    std::uint64_t const patience_us = alarm_.raised() ? patience_after_failure_us : chosen().timeout_us;
    std::uint64_t const deadline_us = deadline_in(patience_us);
    // Or who is not connected yet would find nobody here, and not know why.
    for (; alarm_.raised() && board_.awaits_anybody() && now_us() < deadline_us; sched_yield())
      look_at_all();
    board_.for_each_within_call([&](link& l) noexcept {
      l.tell_goodbye();
      board_.pump(l);
    });
    for (; board_.has_more_to_write() && now_us() < deadline_us; sched_yield())
      look_at_all(), board_.pump_pending();
    // Connections keep no order among each other: one for data must not end before its peer can know why.
    while (alarm_.raised() && board_.has_words_on_their_way() && now_us() < deadline_us) sched_yield();
    board_.hang_up();
    while (board_.has_bytes_on_their_way() && now_us() < deadline_us) sched_yield();
  }

  // ok, or why no message will come from a peer.
  [[nodiscard]] status outlook_of(rank_t peer) noexcept {
    link* const with = board_.find(peer);
    if (with != nullptr && with->is_over(board_.connections().may_stand_there(peer)))
      return status::peer_lost;
    if (with != nullptr && with->is_up())
      return with->is_cut_off() ? status::peer_lost : status::ok;  // what it has sent is read first
    if (losses_.holds(peer)) return status::peer_lost;
    status const dialled = board_.connections().outlook(peer);
    return dialled == status::peer_lost && losses_.others_may_know(peer) ? status::ok : dialled;
  }

  COLLX_COLD void ask_after(rank_t peer, std::uint64_t timeout_us, bool is_watched) noexcept {
    bool const is_due = suspicions_.still_waits(peer, now_us(), timeout_us);
    link* const with = board_.find(peer);
    if (with == nullptr || !with->control_is_open()) {
      if (peer < rank_ && !is_watched && suspicions_.waits_long(peer)) board_.knock(peer);
    } else if (is_due) {
      with->ask();
      board_.pump(*with);
    }
  }

  // Tells everybody this rank knows, who tell everybody they know.
  COLLX_COLD void spread_loss(rank_t who) noexcept {
    if (!losses_.add(who)) return;
    board_.for_each_within_call([&](link& l) noexcept {
      l.tell_lost(who);
      board_.pump(l);
    });
    wake_all();
  }

  // What a link's connections say goes through here.
  struct reader {
    tcp_world& world;
    link& from;
    bool on_control;
    channel_group* last = nullptr;

    [[nodiscard]] sockets::flow::answer begin(sockets::frame const& what, std::byte*& to) noexcept {
      using answer = sockets::flow::answer;
      bool const is_data = what.kind == sockets::frame_kind::data;
      if (!from.may_come(what)) return answer::refuse;
      if (on_control && from.knocks()) from.knock_is_answered(), world.greet(from);
      if (what.kind == sockets::frame_kind::goodbye) {
        if (on_control) from.said_goodbye();
        return answer::take;
      }
      if (is_data == on_control) return answer::refuse;
      if (what.kind == sockets::frame_kind::alarm) return world.hear_alarm(what);
      if (what.kind == sockets::frame_kind::lost) return world.hear_of_loss(what);
      if (what.kind == sockets::frame_kind::question) {
        from.answer(world.suspicions_.blames_to(from.peer(), now_us()));
        return world.board_.pump(from), answer::take;
      }
      if (what.kind == sockets::frame_kind::answer) return world.hear_answer(from.peer(), what);
      last = world.find(what.communicator);
      if (last != nullptr) return last->begin(from.peer(), what, to);
      // Of a communicator that is gone, receipts and messages may be late. Of one that is not there yet,
      // messages may be early.
      if (what.kind == sockets::frame_kind::credit) return answer::take;
      return world.left_.holds(what.communicator) ? world.left_.drop(what, to) : answer::later;
    }
    [[nodiscard]] bool end(sockets::frame const& what, std::byte const* slice) noexcept {
      if (last == nullptr || last->id() != what.communicator) last = world.find(what.communicator);
      // It has begun. So it went to no memory of anybody (link::forget()) if there is nobody by now, whether
      // that is still remembered or not.
      return last == nullptr || last->end(what, slice);
    }
  };

  [[nodiscard]] channel_group* find(std::uint64_t id) const noexcept {
    channel_group* g = groups_;
    while (g != nullptr && g->id() != id) g = g->next;
    return g;
  }

  void read_data(link& l) noexcept {
    reader sink{*this, l, false};
    for (int f = 1; f < l.flow_count(); ++f) read(l, f, sink);
  }

  void read(link& l, int index, reader& sink) noexcept {
    sockets::flow& f = l.at(index);
    if (f.state() != sockets::flow_state::open) return;
    // What was expected may have gone to memory that its owner has freed since: see link::abandon_data().
    if (index != 0 && alarm_.raised()) return f.abandon(), board_.stop_looking_at(f);
    f.read(sink);
    if (f.state() == sockets::flow_state::open) return;
    if (index == 0 && board_.forget_knock(l)) return;
    board_.stop_looking_at(f);
    if (index == 0) l.drop_receipts();
    if (index == 0 && !l.left()) spread_loss(l.peer());
    wake_all();  // whoever waits for this peer must find out
  }

  // What members have sent before this one was there lies with the connection, or the beginning of it: where
  // that is all, the system says no more that there is something to read.
  COLLX_COLD void read_what_came_early(channel_group const& group) noexcept {
    for (rank_t r = 0; r < group.size(); ++r) {
      link* const with = board_.find(group.world_rank(r));
      if (with == nullptr) continue;
      reader sink{*this, *with, false};
      for (int f = 1; f < with->flow_count(); ++f)
        if (with->at(f).waits()) read(*with, f, sink);
    }
  }

  // Of a rank that looks at one link all the time. What comes for a thread that sleeps must wake that.
  COLLX_NEVER_INLINE void attend(link& whom) noexcept {
    for (channel_group* g = groups_; g != nullptr; g = g->next)
      if (g->is_asleep()) return;
    board_.attend(&whom);
  }

  void look_at_all() noexcept {
    board_.look(
        [&](link& l, int index) noexcept {
          reader sink{*this, l, index == 0};
          read(l, index, sink);
        },
        [&](link& l, int index) noexcept {
          index == 0 && !l.knocks() ? greet(l) : board_.pump(l);
          // With the end of a handshake the first frames may have come, to where epoll does not see them.
          reader sink{*this, l, index == 0};
          read(l, index, sink);
          wake_all();
        });
  }

  [[nodiscard]] sockets::flow::answer hear_alarm(sockets::frame const& what) noexcept {
    mapped::first_failure first;
    if (!sockets::failure_of(what, size(), first)) return sockets::flow::answer::refuse;
    if (!alarm_.raised()) spread_alarm(first);
    return sockets::flow::answer::take;
  }

  [[nodiscard]] sockets::flow::answer hear_answer(rank_t peer, sockets::frame const& what) noexcept {
    auto const blamed = static_cast<rank_t>(what.from);
    if (blamed != no_rank && what.from >= static_cast<std::uint32_t>(size()))
      return sockets::flow::answer::refuse;
    return suspicions_.hear(peer, blamed), sockets::flow::answer::take;
  }

  [[nodiscard]] sockets::flow::answer hear_of_loss(sockets::frame const& what) noexcept {
    if (what.from >= static_cast<std::uint32_t>(size())) return sockets::flow::answer::refuse;
    return spread_loss(static_cast<rank_t>(what.from)), sockets::flow::answer::take;
  }

  void spread_alarm(mapped::first_failure const& what) noexcept {
    alarm_.raise(what);
    board_.abandon_data();
    board_.for_each_within_call([&](link& l) noexcept { greet(l); });
    wake_all();
  }

  // What is said first, and as soon as there is reason.
  void greet(link& l) noexcept {
    if (alarm_.raised()) l.tell_alarm(sockets::frame_of(alarm_.read()));
    board_.pump(l);
  }

  void wake_all() noexcept {
    for (channel_group* g = groups_; g != nullptr; g = g->next) g->ring_if_asleep();
  }

  void forget(channel_group& group) noexcept {
    left_.add(group.id());
    board_.forget(group, left_.nowhere());
    channel_group** at = &groups_;
    while (*at != &group) at = &(*at)->next;
    *at = group.next;
  }

  rank_t rank_;
  pid_t process_ = getpid();
  tcp_settings chosen_;
  sockets::switchboard board_;
  sockets::left_groups left_;
  sockets::losses losses_;
  channel_group* groups_ = nullptr;
  std::uint32_t round_ = 0;
  biased_mutex mutex_;
  mapped::alarm alarm_;
  sockets::suspicions suspicions_;
  std::atomic<std::uint32_t> ids_{2};  // 1 is the world's communicator
  std::atomic<std::int32_t> references_{1};
};

}  // namespace collx::inline abi_1::transport
