// SPDX-License-Identifier: Apache-2.0
// Everything between this process and one other: a connection for control, whose few small frames are never
// stuck behind data, and one or more for data, over which messages are spread in slices.
#pragma once

#include "collx/transport/sockets/channel_group.hpp"

namespace collx::inline abi_1::transport::sockets {

// First in, first out, linked through a member of the elements.
template <channel* channel::* Next, bool channel::* Listed>
class channel_queue {
 public:
  [[nodiscard]] channel* front() const noexcept { return first_; }
  void push(channel& c) noexcept {
    if (c.*Listed) return;
    c.*Listed = true;
    c.*Next = nullptr;
    (first_ == nullptr ? first_ : last_->*Next) = &c;
    last_ = &c;
  }
  channel& pop() noexcept {
    channel& c = *first_;
    first_ = c.*Next;
    c.*Listed = false;
    return c;
  }
  void remove_if(auto const& what) noexcept {
    channel_queue kept;
    while (first_ != nullptr)
      if (channel& c = pop(); !what(c)) kept.push(c);
    *this = kept;
  }

 private:
  channel* first_ = nullptr;
  channel* last_ = nullptr;
};

class link {
  static_assert(flows::slice_limits::limit_max <= flow::frames_max);

 public:
  link(rank_t peer, flows::distance how_far, flows::flow_limits const& limits, bool checks) noexcept
      : peer_(peer),
        distance_(how_far),
        choice_(limits),
        data_(static_cast<std::size_t>(limits.flows)),
        checks_(checks) {}

  [[nodiscard]] rank_t peer() const noexcept { return peer_; }
  [[nodiscard]] int flow_count() const noexcept { return choice_.limits().connections(); }
  // 0 is the one for control.
  [[nodiscard]] flow& at(int index) noexcept {
    return index == 0 ? control_ : data_[static_cast<std::size_t>(index - 1)];
  }
  [[nodiscard]] flows::flow_choice const& choice() const noexcept { return choice_; }

  // Where checksums are compared, every frame has one: a bit that is lost must not be the one that says so.
  // That of a slice is compared when all of it is there.
  [[nodiscard]] bool may_come(frame const& what) const noexcept {
    bool const lacks_one = checks_ && (what.flags & frame::is_checked) == 0;
    return !lacks_one && (what.kind == frame_kind::data || fits_checksum(what, nullptr));
  }

  // Every connection stands.
  [[nodiscard]] bool is_up() const noexcept { return opened_ == flow_count(); }
  void open(int index, net::owned_fd fd, net::owned_stream secured, bool is_paced = false) noexcept {
    queueing const how = index != 0 && choice_.limits().flows > 1 ? queueing::among_others
                         : !is_paced                              ? queueing::usual
                         : distance_ == flows::distance::host     ? queueing::paced_within_host
                                                                  : queueing::paced;
    at(index).open(static_cast<net::owned_fd&&>(fd), static_cast<net::owned_stream&&>(secured), how);
    ++opened_;
  }

  // The connection for control that a higher rank has dialled, because it waits: the lower one may be
  // dialling at the same time, and it alone decides. It says something over the one that it takes. Until then
  // nothing is written to it, and that it ends says nothing about the peer.
  void open_knock(net::owned_fd fd, net::owned_stream secured) noexcept {
    control_.open(static_cast<net::owned_fd&&>(fd), static_cast<net::owned_stream&&>(secured));
    knocks_ = true;
  }
  [[nodiscard]] bool knocks() const noexcept { return knocks_; }
  void knock_is_answered() noexcept {
    knocks_ = false;
    ++opened_;
  }
  // False: there is none.
  [[nodiscard]] COLLX_COLD bool forget_knock() noexcept {
    if (!std::exchange(knocks_, false)) return false;
    control_.close();
    return true;
  }

  // The peer has said that it does no more, or has failed.
  void said_goodbye() noexcept {
    left_ = true;
    drop_receipts();
  }
  // Who is gone needs none, and a communicator that waits until its receipts are written must not wait for
  // these.
  void drop_receipts() noexcept {
    while (owing_.front() != nullptr) owing_.pop().group->count_owing(-1);
  }
  [[nodiscard]] bool left() const noexcept { return left_; }
  // Nothing more will come from the peer, or not all of it: every connection for data has ended, or one of
  // them has failed, or there never was one, and the one for control has. `may_stand_there`: the peer may
  // have let one in that does not stand here yet, and have written to it before it left.
  [[nodiscard]] bool is_over(bool may_stand_there = false) noexcept {
    bool open = false, ended = false;
    for (flow& f : data_) {
      if (f.state() == flow_state::broken) return true;
      open = open || f.state() == flow_state::open;
      ended = ended || f.state() == flow_state::ended;
    }
    return !open && !may_stand_there && (ended || control_has_ended());
  }
  // The connection for control has failed: the peer is gone, or cannot be told of anything any more. True
  // from the second time on that it is asked: what else the peer has sent is read first.
  [[nodiscard]] bool is_cut_off() noexcept {
    return control_has_ended() && !left_ && std::exchange(found_cut_off_, true);
  }
  [[nodiscard]] bool control_is_open() const noexcept {
    return control_.state() == flow_state::open && !knocks_;
  }
  [[nodiscard]] bool control_has_ended() const noexcept {
    return !knocks_ && (control_.state() == flow_state::ended || control_.state() == flow_state::broken);
  }

  void wants_to_send(channel& c, bool urgent) noexcept { (urgent ? urgent_ : waiting_).push(c); }
  void owes_receipt(channel& c) noexcept {
    if (left_ || control_has_ended()) return;
    if (!c.owes) c.group->count_owing(+1);
    owing_.push(c);
  }
  void tell_alarm(frame const& what) noexcept {
    alarm_ = what;
    tells_alarm_ = true;
  }
  void tell_goodbye() noexcept { tells_goodbye_ = true; }
  void ask() noexcept { asks_ = true; }
  void answer(rank_t blamed) noexcept {
    answers_ = true;
    blamed_ = blamed;
  }
  // One at a time: a second loss before the first has been written is left to others to tell.
  void tell_lost(rank_t who) noexcept { lost_ = who; }

  // Something is to be written, and there is somewhere to write it.
  [[nodiscard]] bool is_busy() noexcept {
    if (control_has_ended() && !is_up()) return false;
    bool const has_news = tells_alarm_ || tells_goodbye_ || asks_ || answers_ || lost_ != no_rank;
    if (has_news || owing_.front() != nullptr || !control_.idle()) return true;
    if (waiting_.front() != nullptr || urgent_.front() != nullptr) return true;
    for (flow const& f : data_)
      if (!f.idle()) return true;
    return false;
  }

  // Writes as much as the kernel takes. True: something was written.
  bool pump() noexcept {
    bool moved = control_is_open() && pump_control();
    if (!is_up()) return moved;
    for (bool more = true; more;) {
      while (assign_one()) {
      }
      more = false;
      for (flow& f : data_) {
        if (f.idle()) continue;
        auto const index = static_cast<int>(&f - data_.data());
        f.write([&](outgoing_frame const& done) noexcept {
          more = true;
          if (done.of == nullptr) return;
          choice_.returned(index, done.payload_bytes);
          written(done);
        });
      }
      moved = moved || more;
      more = more && (waiting_.front() != nullptr || urgent_.front() != nullptr);
    }
    return moved;
  }

  // After a failure callers free what they sent from and received to: nothing of it is touched afterwards.
  // The connections stay, since an end of one might be seen before word of the failure.
  COLLX_COLD void abandon_data() noexcept {
    while (waiting_.front() != nullptr) (void)waiting_.pop();
    while (urgent_.front() != nullptr) (void)urgent_.pop();
    for (flow& f : data_) f.abandon();
  }

  // A group goes: nothing here refers to it afterwards. A connection in the middle of writing one of its
  // frames cannot go on, and is closed, after before_close(it); one in the middle of reading one reads on, to
  // `nowhere`.
  template <class BeforeClose>
  COLLX_COLD void forget(channel_group const& group, std::byte* nowhere,
                         BeforeClose const& before_close) noexcept {
    auto const belongs = [&](channel const& c) noexcept { return c.group == &group; };
    waiting_.remove_if(belongs);
    urgent_.remove_if(belongs);
    owing_.remove_if(belongs);
    auto const is_of_group = [&](outgoing_frame const& o) noexcept {
      return o.of != nullptr && belongs(*o.of);
    };
    for (flow& f : data_) {
      f.divert(group.id(), nowhere);
      if (!f.refers_to(is_of_group)) continue;
      before_close(f);
      f.close();
    }
  }

  link* next_pending = nullptr;
  link* next_unwatched = nullptr;
  bool is_pending = false;
  bool is_unwatched = false;
  int dialled = 0;  // flows that this rank has dialled, the first ones, or that need not be dialled any more

 private:
  bool pump_control() noexcept {
    while (control_.has_room()) {
      frame what;
      if (tells_alarm_) {
        what = alarm_;
        tells_alarm_ = false;
      } else if (lost_ != no_rank) {
        what.kind = frame_kind::lost;
        what.from = static_cast<std::uint32_t>(std::exchange(lost_, no_rank));
      } else if (asks_ || answers_) {
        what.kind = answers_ ? frame_kind::answer : frame_kind::question;
        what.from = static_cast<std::uint32_t>(blamed_);
        (answers_ ? answers_ : asks_) = false;
      } else if (owing_.front() != nullptr) {
        channel& c = owing_.pop();
        c.group->count_owing(-1);
        if (c.acknowledged == c.consumed) continue;  // a data frame has said it meanwhile
        what = frame_for(c, frame_kind::credit);
      } else if (tells_goodbye_ && is_quiet()) {
        what.kind = frame_kind::goodbye;
        tells_goodbye_ = false;
        if (is_up()) say_goodbye_for_data();
      } else {
        break;
      }
      push(control_, what);
    }
    bool moved = false;
    if (!control_.idle()) control_.write([&](outgoing_frame const&) noexcept { moved = true; });
    return moved;
  }

  // Connections end in any order. One that ends without this has failed, and slices may be missing that
  // others do not bring.
  void say_goodbye_for_data() noexcept {
    frame what;
    what.kind = frame_kind::goodbye;
    for (flow& f : data_)
      if (f.state() == flow_state::open) push(f, what);
  }

  // A frame without a slice.
  void push(flow& to, frame what) const noexcept {
    if (checks_) add_checksum(what, nullptr);
    outgoing_frame& out = to.push();
    out = {};
    encode(what, out.head);
  }

  [[nodiscard]] bool is_quiet() noexcept {
    for (flow const& f : data_)
      if (!f.idle()) return false;
    return waiting_.front() == nullptr && urgent_.front() == nullptr;
  }

  [[nodiscard]] frame frame_for(channel& c, frame_kind kind) noexcept {
    frame what;
    what.kind = kind;
    what.lane = c.lane;
    what.communicator = c.group->id();
    what.from = static_cast<std::uint32_t>(c.group->rank());
    c.acknowledged = c.consumed;
    c.owed_weight = 0;
    what.consumed = static_cast<std::uint32_t>(c.consumed);
    return what;
  }

  // Gives the next slice of the first channel in turn to a flow. Channels take turns slice by slice, so that
  // a small message is not stuck behind a large one of another lane; urgent ones go first.
  bool assign_one() noexcept {
    bool const urgent = urgent_.front() != nullptr;
    channel* const c = urgent ? urgent_.front() : waiting_.front();
    if (c == nullptr) return false;
    int const index = choice_.pick(c->group->slices_max(c->lane, distance_));
    if (index < 0) return false;
    flow& f = data_[static_cast<std::size_t>(index)];
    if (!f.has_room()) return false;
    channel::posted& post = c->post(c->assigned);
    std::uint32_t const rest = post.bytes - post.assigned;
    std::uint32_t const bytes = rest < choice_.limits().slice_bytes ? rest : choice_.limits().slice_bytes;

    frame what = frame_for(*c, frame_kind::data);
    what.sequence = c->next_sequence;
    c->next_sequence = (c->next_sequence + 1) & flows::sequence_mask;
    what.message = static_cast<std::uint32_t>(c->assigned);
    what.message_bytes = post.bytes;
    what.offset = post.assigned;
    what.slice_bytes = bytes;
    std::byte const* const slice = bytes == 0 ? nullptr : post.payload + post.assigned;
    post.assigned += bytes;
    post.whole = post.assigned == post.bytes;
    if (post.whole) what.flags |= frame::ends_message;
    if (checks_) add_checksum(what, slice);

    outgoing_frame& out = f.push();
    encode(what, out.head);
    out.payload = slice;
    out.payload_bytes = bytes;
    out.of = c;
    out.message = what.message;
    choice_.given(index, bytes);
    (void)(urgent ? urgent_ : waiting_).pop();
    if (post.whole) ++c->assigned;
    if (c->assigned != c->sent) wants_to_send(*c, urgent);
    return true;
  }

  static void written(outgoing_frame const& done) noexcept {
    channel& c = *done.of;
    std::uint64_t const before = c.handed;
    c.post(done.message).written += done.payload_bytes;
    while (c.handed != c.assigned) {
      channel::posted const& first = c.post(c.handed);
      if (!first.whole || first.written != first.bytes) break;
      ++c.handed;
      --c.group->unsent(c.lane);
    }
    // Another thread's, perhaps, whose memory this makes free.
    if (c.handed != before) c.group->ring_if_asleep();
  }

  rank_t peer_;
  flows::distance distance_;
  flows::flow_choice choice_;
  flow control_;
  array<flow> data_;
  int opened_ = 0;
  bool checks_;
  bool left_ = false;
  bool knocks_ = false;
  bool found_cut_off_ = false;
  bool tells_alarm_ = false, tells_goodbye_ = false;
  bool asks_ = false, answers_ = false;
  rank_t lost_ = no_rank, blamed_ = no_rank;
  frame alarm_{};
  channel_queue<&channel::next_waiting, &channel::waits> waiting_, urgent_;
  channel_queue<&channel::next_owing, &channel::owes> owing_;
};

}  // namespace collx::inline abi_1::transport::sockets
