// SPDX-License-Identifier: Apache-2.0
// A message transport in one thread: ranks only post sends and receives, and a seed decides which
// matched pair is delivered next. Nothing is mapped: what TCP or RDMA need of the executor, this
// needs too, and every run can be replayed.
//
// There is no waiting: start collectives on every rank, then let drive() (bootstrap/mailbox.hpp)
// test them in turn. A blocking call would wait for ranks that cannot run.
#pragma once

#include <cstring>

#include "collx/communicator.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/reservation.hpp"
#include "collx/transport/settings.hpp"
#include "collx/transport/staging_ring.hpp"
#include "collx/transport/zeroed_pages.hpp"
#include "collx/tune/message_algorithms.hpp"

namespace collx::inline abi_1::transport {

namespace mailbox_detail {

// Everything between one sender and one receiver on one lane.
struct channel {
  struct posted {
    std::byte const* payload = nullptr;
    std::size_t bytes = 0;
    std::byte small[32];
  };
  static constexpr std::uint64_t depth_max = 8;

  posted sends[depth_max];
  std::uint64_t sent = 0, delivered = 0;    // delivered: copied out, the sender's memory is free
  std::uint64_t expected = 0, consumed = 0;
  std::uint64_t in_place_sent = 0;
  std::byte* wanted_at = nullptr;           // where the expected message goes
  std::size_t wanted_bytes = 0;
  arrival here{};                           // the delivered message
  bool listed = false;                      // among its group's ready channels

  [[nodiscard]] bool deliverable() const noexcept { return delivered < sent && delivered < expected; }
};

// The channels of one communicator, shared by its members.
struct group {
  explicit group(rank_t members, int lanes)
      : size(members),
        channels(static_cast<std::size_t>(lanes) * static_cast<std::size_t>(members) *
                 static_cast<std::size_t>(members)),
        ready(channels.size()),
        left_behind(static_cast<std::size_t>(members)) {}

  [[nodiscard]] channel& between(int lane, rank_t from, rank_t to) noexcept {
    std::size_t const n = static_cast<std::size_t>(size);
    return channels[(static_cast<std::size_t>(lane) * n + static_cast<std::size_t>(from)) * n +
                    static_cast<std::size_t>(to)];
  }

  // Called after whatever may have made the channel's next message deliverable.
  void list(channel& c) noexcept {
    if (c.listed || !c.deliverable()) return;
    c.listed = true;
    ready[ready_count++] = &c;
  }

  [[nodiscard]] channel& unlist(std::size_t i) noexcept {
    channel& c = *ready[i];
    ready[i] = ready[--ready_count];
    c.listed = false;
    return c;
  }

  // Nothing that a rank has sent, and not yet been rid of, or waits for is delivered any more.
  void give_up(rank_t rank) noexcept {
    std::size_t const n = static_cast<std::size_t>(size);
    for (int lane = 0; lane < static_cast<int>(channels.size() / (n * n)); ++lane)
      for (rank_t peer = 0; peer < size; ++peer) {
        channel& out = between(lane, rank, peer);
        out.sent = out.delivered;
        out.in_place_sent = 0;
        channel& in = between(lane, peer, rank);
        in.expected = in.delivered;
      }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ready_count; ++i)
      if (ready[i]->listed = ready[i]->deliverable(); ready[i]->listed) ready[kept++] = ready[i];
    ready_count = kept;
  }

  rank_t size;
  array<channel> channels;
  array<channel*> ready;  // those whose next message is deliverable: a scan of all is far dearer
  std::size_t ready_count = 0;
  array<zeroed_pages> left_behind;  // of members that have left: the others may not have had what lies there
  rank_t users = 0;
  group* next = nullptr;
};

}  // namespace mailbox_detail

class mailbox_world {
 public:
  static constexpr int lane_count = 4;
  using group = mailbox_detail::group;
  using channel = mailbox_detail::channel;

  // `depth`: credits per pair and lane, 1 .. 8; the least a schedule declares by default is 2.
  mailbox_world(rank_t size, std::uint64_t seed, settings const& chosen, std::uint64_t depth = 2)
      : size_(size), chosen_(chosen.checked()), depth_(depth), random_(seed) {
    if (size < 1 || depth < 1 || depth > channel::depth_max)
      throw error(status::bad_argument, "mailbox: needs at least 1 rank and a depth of 1 to 8");
  }
  mailbox_world(mailbox_world const&) = delete;

  [[nodiscard]] rank_t size() const noexcept { return size_; }
  [[nodiscard]] settings const& chosen() const noexcept { return chosen_; }
  [[nodiscard]] std::uint64_t depth() const noexcept { return depth_; }
  [[nodiscard]] replayable_random& random() noexcept { return random_; }
  void keep() noexcept { ++references_; }
  void drop() noexcept {
    if (--references_ == 0) delete this;
  }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    return static_cast<std::byte*>(
        std::memset(::operator new (bytes + 1, std::align_val_t{64}), 0, bytes + 1));
  }
  void deallocate(std::byte* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t{64}); }

  [[nodiscard]] group* open(rank_t members) {
    group* const made = new group(members, lane_count);
    made->next = std::exchange(groups_, made);
    return made;
  }
  void close(group* left) noexcept {
    if (--left->users > 0) return;
    group** link = &groups_;
    while (*link != left) link = &(*link)->next;
    *link = left->next;
    delete left;
  }

  // Delivers one message, any of those that could be next; false if there is none.
  bool deliver_one() noexcept {
    std::size_t deliverable = 0;
    for (group const* g = groups_; g != nullptr; g = g->next) deliverable += g->ready_count;
    if (deliverable == 0) return false;
    std::size_t pick = random_.below(static_cast<std::uint32_t>(deliverable));
    group* of = groups_;
    for (; pick >= of->ready_count; of = of->next) pick -= of->ready_count;
    channel& chosen = of->unlist(pick);
    channel::posted const& message = chosen.sends[chosen.delivered % channel::depth_max];
    std::size_t const fits = message.bytes < chosen.wanted_bytes ? message.bytes : chosen.wanted_bytes;
    if (fits != 0) std::memcpy(chosen.wanted_at, message.payload, fits);
    chosen.here = {chosen.wanted_at, message.bytes};
    ++chosen.delivered;
    of->list(chosen);
    return true;
  }

  [[nodiscard]] status interrupted() const noexcept { return alarm_.raised() ? status::aborted : status::ok; }
  void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    alarm_.raise({code, reporter, culprit});
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept { return alarm_.read(); }

 private:
  // Groups are left that nobody has come to, since a member had no memory for its part.
  ~mailbox_world() {
    while (groups_ != nullptr) delete std::exchange(groups_, groups_->next);
  }

  rank_t size_;
  settings chosen_;
  std::uint64_t depth_;
  replayable_random random_;
  group* groups_ = nullptr;
  mapped::alarm alarm_;
  std::int32_t references_ = 1;
};

class mailbox_endpoint {
 public:
  static constexpr int lane_count = mailbox_world::lane_count;
  static constexpr bool is_mapped = false;
  static constexpr bool fetches = false;
  static constexpr std::size_t inline_bytes = 32;
  using channel = mailbox_detail::channel;

  mailbox_endpoint(mailbox_world& world, mailbox_detail::group& group, array<rank_t> members, rank_t rank)
      : world_(&world),
        group_(&group),
        members_(static_cast<array<rank_t>&&>(members)),
        rank_(rank),
        memory_(static_cast<std::size_t>(lane_count) * per_lane_bytes()),
        rings_(group.size) {
    for (int lane = 0; lane < lane_count; ++lane)
      rings_.attach(lane, of_lane(lane), staging_bytes());
  }

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return group_->size; }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::uint64_t depth() const noexcept { return world_->depth(); }
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return world_->chosen().staging_bytes; }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] mailbox_world& space() const noexcept { return *world_; }
  [[nodiscard]] mailbox_detail::group& group() const noexcept { return *group_; }
  void enter() noexcept { ++group_->users; }
  void leave() noexcept {
    group_->left_behind[static_cast<std::size_t>(rank_)] = static_cast<zeroed_pages&&>(memory_);
    world_->close(group_);
  }

  void begin(int, std::byte*, std::size_t = 0) noexcept {}

  void expect(int lane, rank_t peer, std::byte* destination, std::size_t bytes) noexcept {
    channel& from = group_->between(lane, peer, rank_);
    from.wanted_at = destination != nullptr ? destination : landing(lane, peer);
    from.wanted_bytes = bytes;
    ++from.expected;
    group_->list(from);
  }

  [[nodiscard]] bool arrived(int lane, rank_t peer, arrival& what) noexcept {
    channel const& from = group_->between(lane, peer, rank_);
    if (from.delivered == from.consumed) return false;
    what = from.here;
    return true;
  }
  void consume(int lane, rank_t peer) noexcept { ++group_->between(lane, peer, rank_).consumed; }

  [[nodiscard]] bool can_send(int lane, rank_t peer) noexcept {
    channel const& to = group_->between(lane, rank_, peer);
    // Credits return when the receiver is done, as they do where it owns the buffers.
    return to.sent - to.consumed < world_->depth();
  }
  [[nodiscard]] bool reachable(std::byte const*, std::size_t) const noexcept { return true; }
  [[nodiscard]] std::byte* push_target(int, rank_t) noexcept { return nullptr; }

  [[nodiscard]] std::byte* stage(int lane, std::size_t bytes) noexcept {
    return rings_[lane].allocate(bytes, [&](rank_t peer, std::uint64_t count) {
      return group_->between(lane, rank_, peer).delivered >= count;
    });
  }
  [[nodiscard]] rank_t staging_held_by(int lane) noexcept { return rings_[lane].held_by(); }

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover how) noexcept {
    channel& to = group_->between(lane, rank_, peer);
    channel::posted& message = to.sends[to.sent % channel::depth_max];
    message.bytes = bytes;
    message.payload = payload;
    if (bytes <= inline_bytes) {
      if (bytes != 0) std::memcpy(message.small, payload, bytes);
      message.payload = message.small;
    } else if (how == handover::in_place) {
      to.in_place_sent = to.sent + 1;
    }
    ++to.sent;
    group_->list(to);
  }

  void end_fragment(int lane) noexcept {
    rings_[lane].mark([&](rank_t peer) { return group_->between(lane, rank_, peer).sent; });
  }
  [[nodiscard]] rank_t unread_by(int lane) noexcept {
    for (rank_t peer = 0; peer < size(); ++peer) {
      channel const& to = group_->between(lane, rank_, peer);
      if (to.delivered < to.in_place_sent) return peer;
    }
    return no_rank;
  }

  [[nodiscard]] std::byte* scratch(int lane) noexcept { return of_lane(lane) + staging_bytes(); }
  void reclaim(std::uint64_t) noexcept { group_->give_up(rank_); }
  void progress() noexcept { (void)world_->deliver_one(); }
  [[nodiscard]] status interrupted(rank_t) noexcept { return world_->interrupted(); }

 private:
  // Staging, scratch, and a landing place per peer for what is reduced from the message.
  [[nodiscard]] std::size_t per_lane_bytes() const noexcept {
    return staging_bytes() + staging_bytes() / 2 * (1 + static_cast<std::size_t>(group_->size));
  }
  [[nodiscard]] std::byte* of_lane(int lane) noexcept {
    return memory_.data() + static_cast<std::size_t>(lane) * per_lane_bytes();
  }
  [[nodiscard]] std::byte* landing(int lane, rank_t peer) noexcept {
    return scratch(lane) + staging_bytes() / 2 * (1 + static_cast<std::size_t>(peer));
  }

  mailbox_world* world_;
  mailbox_detail::group* group_;
  array<rank_t> members_;
  rank_t rank_;
  zeroed_pages memory_;
  staging_rings<lane_count> rings_;
};

template <class Transport>
struct mailbox_membership {
  using endpoint = typename Transport::endpoint;
  using engine_type = exec::engine<endpoint>;

  // `everybody` was opened for the whole world.
  [[nodiscard]] static engine_type* join_world(mailbox_world& world, mailbox_detail::group& everybody,
                                               rank_t rank) {
    return new engine_type(world.chosen().timeout_us, exec::wakefulness{}, world, everybody,
                           transport::everybody(world.size()), rank);
  }

  // The first member of a new group makes it; the token is its address in this one process.
  using reservation = transport::reservation;
  [[nodiscard]] static reservation reserve(engine_type& parent, rank_t my_rank, rank_t count) {
    if (my_rank != 0) return {};
    return {reinterpret_cast<std::uintptr_t>(parent.endpoint().space().open(count))};
  }
  [[nodiscard]] static engine_type* assemble(engine_type& parent, array<rank_t> members, rank_t my_rank,
                                             array<std::uint64_t> const& tokens, reservation&&) {
    auto& group = *reinterpret_cast<mailbox_detail::group*>(static_cast<std::uintptr_t>(tokens[0]));
    return new engine_type(parent.timeout_us(), exec::wakefulness{}, parent.endpoint().space(), group,
                           static_cast<array<rank_t>&&>(members), my_rank);
  }
};

struct mailbox {
  static constexpr char const* name = "mailbox";
  using world = mailbox_world;
  using endpoint = mailbox_endpoint;
  template <class As>
  using membership_of = mailbox_membership<As>;
  using membership = membership_of<mailbox>;
};

}  // namespace collx::inline abi_1::transport
