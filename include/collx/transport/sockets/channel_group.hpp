// SPDX-License-Identifier: Apache-2.0
// What one rank keeps of one communicator whose messages travel over connections: for every peer and lane
// what is on its way out, and what has come in. All of it is guarded by the world's lock.
#pragma once

#include <bit>

#include <sys/eventfd.h>

#include "collx/core/array.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/flows/slice_window.hpp"
#include "collx/transport/sockets/checksum.hpp"
#include "collx/transport/sockets/flow.hpp"
#include "collx/transport/sockets/tcp_settings.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport::sockets {

class channel_group;
class link;

// One lane between this rank and one peer, both directions.
struct channel {
  // Messages that may be on their way to a receiver that has not read them: its credit. Receipts cost the
  // receiver a system call and the sender two, in a stream one way for half of each credit: of small messages
  // there may be more. (With 64 instead of 16 a small broadcast takes 0.92 of the time.) A large one counts
  // as `large_weight` small ones.
  static constexpr std::uint32_t large_depth = tcp_settings::large_messages_in_flight;
  static constexpr std::uint32_t depth = tcp_settings::messages_in_flight;
  static constexpr std::uint32_t large_weight = depth / large_depth;
  // What a schedule may rely on, even if all are large: a receiver keeps to itself that it has read less than
  // half of a credit.
  static constexpr std::uint32_t sure_depth = large_depth - large_depth / 2 + 1;
  static constexpr std::size_t inline_bytes = 64;

  [[nodiscard]] bool is_large(std::size_t bytes) const noexcept { return bytes > small_bytes_max; }

  struct posted {
    std::byte const* payload = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t assigned = 0;  // to flows
    std::uint32_t written = 0;
    bool whole = false;  // every slice has been assigned
    std::byte small[inline_bytes];
  };
  struct incoming {
    std::byte* to = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t unclaimed = 0;  // of the bytes: by no slice that has begun to come
    std::uint32_t missing = 0;    // of the bytes: in no slice that is here
    bool open = false;            // a slice of it has come
    std::int8_t place = -1;       // where it landed; -1: where it was wanted

    // Every byte has come, and none of its slices is still coming: nothing will be stored there any more.
    [[nodiscard]] bool is_whole() const noexcept { return open && missing == 0; }
  };

  channel_group* group = nullptr;
  link* with = nullptr;
  std::size_t small_bytes_max = 0;
  rank_t peer = no_rank;
  std::uint8_t lane = 0;
  bool waits = false;  // in the link's list of those with something to send
  bool owes = false;   // in its list of those with a receipt to send
  channel* next_waiting = nullptr;
  channel* next_owing = nullptr;

  std::uint64_t sent = 0, assigned = 0;
  std::uint64_t handed = 0;          // the kernel has all of them: their memory is free
  std::uint64_t known_consumed = 0;  // by the receiver
  std::uint32_t large_unread = 0;    // of those that it has not consumed
  std::uint32_t next_sequence = 0;
  posted posts[depth];

  std::uint64_t expected = 0, consumed = 0;
  std::uint64_t here = 0;                          // messages that are whole, and so are those before them
  std::uint64_t acknowledged = 0;                  // of those consumed, what the sender has been told
  std::uint32_t owed_weight = 0;                   // of the others
  std::uint64_t small_taken = 0, large_taken = 0;  // places for landing, a bit each
  std::byte* wanted_at = nullptr;                  // where the message expected last goes
  std::size_t wanted_bytes = 0;
  incoming window[depth];
  flows::slice_window order;

  [[nodiscard]] incoming& slot(std::uint64_t message) noexcept { return window[message % depth]; }
  [[nodiscard]] posted& post(std::uint64_t message) noexcept { return posts[message % depth]; }

  [[nodiscard]] bool has_credit() const noexcept {
    return sent - known_consumed < depth && large_unread < large_depth;
  }
  // The receiver has consumed `count` messages more.
  void learn_consumed(std::uint32_t count) noexcept {
    for (; count != 0; --count) large_unread -= is_large(post(known_consumed++).bytes);
  }
  // The first message is read, and its place free. True: it is time to tell the sender.
  [[nodiscard]] bool consume() noexcept {
    incoming& first = slot(consumed++);
    first.open = false;
    bool const large = is_large(first.bytes);
    if (first.place >= 0) (large ? large_taken : small_taken) &= ~(std::uint64_t{1} << first.place);
    owed_weight += large ? large_weight : 1;
    return owed_weight >= depth / 2;
  }
};
static_assert(channel::depth <= 64 && channel::depth % channel::large_depth == 0);

class channel_group {
 public:
  using answer = flow::answer;
  static constexpr int lanes_max = 4;

  // All that a group takes from the system. Taken first, so that a rank that gets none can say so before
  // others count on it.
  struct provision {
    provision() = default;
    // Throws error (out_of_memory, system_failure).
    COLLX_COLD provision(rank_t members, int lanes, std::size_t message_bytes_max)
        : memory(static_cast<std::size_t>(members) * of_peer_bytes(lanes, message_bytes_max)),
          bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
      if (!bell) throw error(status::system_failure, "eventfd failed; raise the limit on descriptors");
    }
    zeroed_pages memory;
    net::owned_fd bell;
  };

  // `members[i]`: the world rank of rank i. `message_bytes_max`: of one message. `has`: made of the same.
  COLLX_COLD channel_group(std::uint64_t id, array<rank_t> members, rank_t rank, int lanes,
                           std::size_t message_bytes_max, provision&& has)
      : id_(id),
        rank_(rank),
        lanes_(lanes),
        landing_bytes_(message_bytes_max),
        members_(static_cast<array<rank_t>&&>(members)),
        made_(members_.size()),
        unsent_(static_cast<std::size_t>(lanes)),
        memory_(static_cast<zeroed_pages&&>(has.memory)),
        bell_(static_cast<net::owned_fd&&>(has.bell)) {}
  channel_group(channel_group const&) = delete;

  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return static_cast<rank_t>(members_.size()); }
  [[nodiscard]] rank_t world_rank(rank_t member) const noexcept {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return memory_.size(); }

  // Made when it is first asked for: most ranks talk to few others.
  [[nodiscard]] channel& at(int lane, rank_t peer) noexcept {
    auto const index = static_cast<std::size_t>(peer);
    if (COLLX_UNLIKELY(!made_[index])) make(peer);
    return channels_of(index)[lane];
  }
  [[nodiscard]] bool is_made(rank_t peer) const noexcept { return made_[static_cast<std::size_t>(peer)]; }

  // Messages of a lane that the kernel does not have yet.
  [[nodiscard]] std::uint32_t& unsent(int lane) noexcept { return unsent_[static_cast<std::size_t>(lane)]; }
  // Messages, or receipts.
  [[nodiscard]] bool has_more_to_say() const noexcept {
    for (std::uint32_t const each : unsent_)
      if (each != 0) return true;
    return owing_ != 0;
  }
  void count_owing(int change) noexcept { owing_ += change; }

  // What a frame from `peer` (a world rank) says about this communicator is checked and learnt; see flow.
  [[nodiscard]] answer begin(rank_t peer, frame const& what, std::byte*& to) noexcept {
    if (what.from >= members_.size() || members_[what.from] != peer || what.lane >= lanes_)
      return answer::refuse;
    channel& c = at(what.lane, static_cast<rank_t>(what.from));
    // What a checked slice brings along waits until its checksum is compared.
    if (!is_checked_slice(what) && !learn_consumed(c, what)) return answer::refuse;
    if (what.kind != frame_kind::data) return answer::take;
    std::uint32_t const ahead = what.message - static_cast<std::uint32_t>(c.consumed);
    if (ahead >= channel::depth || what.message_bytes > landing_bytes_) return answer::refuse;
    bool const reaches_end = what.offset + what.slice_bytes == what.message_bytes;
    if (reaches_end != ends(what)) return answer::refuse;
    std::uint64_t const message = c.consumed + ahead;
    channel::incoming& in = c.slot(message);
    if (!in.open) {
      bool const straight =
          c.expected == message + 1 && c.wanted_at != nullptr && c.wanted_bytes == what.message_bytes;
      std::int8_t place = -1;
      std::byte* const here = straight ? c.wanted_at : land(c, what.message_bytes, place);
      if (here == nullptr) return answer::refuse;  // more than there may be
      in = {here, what.message_bytes, what.message_bytes, what.message_bytes, true, place};
    } else if (in.bytes != what.message_bytes) {
      return answer::refuse;
    }
    // Slices together are no longer than their message: so none is left to come when the message is whole,
    // whose memory may be freed then.
    if (what.slice_bytes > in.unclaimed) return answer::refuse;
    in.unclaimed -= what.slice_bytes;
    to = in.to + what.offset;
    return answer::take;
  }

  [[nodiscard]] bool end(frame const& what, std::byte const* slice) noexcept {
    if (!fits_checksum(what, slice)) return false;
    channel& c = at(what.lane, static_cast<rank_t>(what.from));
    if (is_checked_slice(what) && !learn_consumed(c, what)) return false;
    c.slot(what.message).missing -= what.slice_bytes;
    if (!c.order.arrive(what.sequence, ends(what))) return false;
    // That a message has ended is what numbers of slices say, which are not believed either.
    for (; c.here != c.order.messages(); ++c.here)
      if (c.here - c.consumed >= channel::depth || !c.slot(c.here).is_whole()) return false;
    ring_if_asleep();
    return true;
  }

  // What a lane sends from now on is of that collective, or of none (""): how many slices of it a flow may
  // have under way.
  void limit(int lane, tcp_settings const& chosen, char const* collective) noexcept {
    for (int d = 0; d < flows::distance_count; ++d)
      slices_max_[lane * flows::distance_count + d] =
          chosen.slices.of(static_cast<flows::distance>(d), collective, chosen.limits.slices_per_flow);
  }
  [[nodiscard]] std::uint32_t slices_max(int lane, flows::distance how_far) const noexcept {
    return slices_max_[lane * flows::distance_count + static_cast<int>(how_far)];
  }

  // ---- sleeping: its own descriptor, since a thread with another communicator may read what is for this
  // one.

  [[nodiscard]] int bell() const noexcept { return bell_.get(); }
  [[nodiscard]] bool is_asleep() const noexcept { return asleep_; }
  void asleep(bool value) noexcept {
    asleep_ = value;
    looks_ = 0;
  }
  void ring_if_asleep() noexcept {
    if (!asleep_) return;
    std::uint64_t const one = 1;
    (void)!::write(bell(), &one, sizeof one);
  }
  void hush() noexcept {
    std::uint64_t rung = 0;
    (void)!::read(bell(), &rung, sizeof rung);
  }

  // The link of the peer that this rank last looked for in vain; null: any may have what it waits for.
  [[nodiscard]] link* watched() const noexcept { return watched_; }
  void watch(link* whom) noexcept {
    if (whom == watched_) return;
    watched_ = whom;
    looks_ = 0;
  }
  // Counts a look at that link; true for each that completes `so_many` without sleep in between: then this
  // rank is awake.
  [[nodiscard]] bool counts_look(std::uint32_t so_many) noexcept {
    if (COLLX_LIKELY(++looks_ % so_many != 0)) return false;
    asleep_ = false;
    return true;
  }

  channel_group* next = nullptr;

 private:
  [[nodiscard]] static bool is_checked_slice(frame const& what) noexcept {
    return what.kind == frame_kind::data && (what.flags & frame::is_checked) != 0;
  }
  // False: the peer has read what was never sent. Older news than we have is no fault.
  [[nodiscard]] bool learn_consumed(channel& c, frame const& what) noexcept {
    std::uint32_t const newly_read = what.consumed - static_cast<std::uint32_t>(c.known_consumed);
    if (newly_read > c.handed - c.known_consumed) return newly_read >= std::uint32_t{1} << 31;
    c.learn_consumed(newly_read);
    if (newly_read != 0) ring_if_asleep();
    return true;
  }

  [[nodiscard]] static bool ends(frame const& what) noexcept {
    return (what.flags & frame::ends_message) != 0;
  }
  [[nodiscard]] static std::size_t channels_bytes(int lanes) noexcept {
    std::size_t const bytes = static_cast<std::size_t>(lanes) * sizeof(channel);
    return (bytes + 4095) / 4096 * 4096;
  }
  [[nodiscard]] static std::size_t of_peer_bytes(int lanes, std::size_t landing_bytes) noexcept {
    return channels_bytes(lanes) + static_cast<std::size_t>(lanes) * of_lane_bytes(landing_bytes);
  }
  // A line more than whole pages: else all of them would fall into the same few places of the first cache.
  [[nodiscard]] static std::size_t small_stride_bytes(std::size_t landing_bytes) noexcept {
    std::size_t const small = tcp_settings::small_bytes_max(landing_bytes);
    return ((small < landing_bytes ? small : landing_bytes) + 63) / 64 * 64 + 64;
  }
  [[nodiscard]] static std::size_t small_area_bytes(std::size_t landing_bytes) noexcept {
    return (channel::depth * small_stride_bytes(landing_bytes) + 4095) / 4096 * 4096;
  }
  [[nodiscard]] static std::size_t of_lane_bytes(std::size_t landing_bytes) noexcept {
    bool const has_large = landing_bytes > tcp_settings::small_bytes_max(landing_bytes);
    return small_area_bytes(landing_bytes) + (has_large ? channel::large_depth * landing_bytes : 0);
  }
  [[nodiscard]] std::byte* of_peer(std::size_t peer) noexcept {
    return memory_.data() + peer * of_peer_bytes(lanes_, landing_bytes_);
  }
  [[nodiscard]] channel* channels_of(std::size_t peer) noexcept {
    return std::launder(reinterpret_cast<channel*>(of_peer(peer)));
  }

  COLLX_NEVER_INLINE void make(rank_t peer) noexcept {
    auto const index = static_cast<std::size_t>(peer);
    std::byte* const memory = of_peer(index);
    for (int lane = 0; lane < lanes_; ++lane) {
      channel* const c = new (memory + static_cast<std::size_t>(lane) * sizeof(channel)) channel;
      c->group = this;
      c->small_bytes_max = tcp_settings::small_bytes_max(landing_bytes_);
      c->peer = peer;
      c->lane = static_cast<std::uint8_t>(lane);
    }
    made_[index] = true;
  }

  // Where a message goes that is not wanted anywhere yet, or is reduced from where it lies. The first place
  // that is free: one that is in the cache. Null: there is none.
  [[nodiscard]] std::byte* land(channel& c, std::size_t bytes, std::int8_t& place) noexcept {
    bool const large = c.is_large(bytes);
    std::uint64_t& taken = large ? c.large_taken : c.small_taken;
    int const first = std::countr_one(taken);
    if (first >= static_cast<int>(large ? channel::large_depth : channel::depth)) return nullptr;
    taken |= std::uint64_t{1} << first;
    place = static_cast<std::int8_t>(first);
    std::byte* const base = of_peer(static_cast<std::size_t>(c.peer)) + channels_bytes(lanes_) +
                            c.lane * of_lane_bytes(landing_bytes_);
    auto const index = static_cast<std::size_t>(first);
    return large ? base + small_area_bytes(landing_bytes_) + index * landing_bytes_
                 : base + index * small_stride_bytes(landing_bytes_);
  }

  std::uint64_t id_;
  rank_t rank_;
  int lanes_;
  std::size_t landing_bytes_;
  array<rank_t> members_;
  array<bool> made_;
  array<std::uint32_t> unsent_;
  std::uint32_t slices_max_[lanes_max * flows::distance_count] = {};
  int owing_ = 0;
  zeroed_pages memory_;
  net::owned_fd bell_;
  link* watched_ = nullptr;
  std::uint32_t looks_ = 0;
  bool asleep_ = false;
};

}  // namespace collx::inline abi_1::transport::sockets
