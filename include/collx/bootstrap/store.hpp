// SPDX-License-Identifier: Apache-2.0
// The store of rank 0: every other rank registers here, learns who its parent in the tree is, and says when
// it has reached that one.
#pragma once

#include "collx/bootstrap/messages.hpp"
#include "collx/net/line.hpp"

namespace collx::inline abi_1::bootstrap {

// The tree of a meeting. Four children each: 512 ranks are five steps deep, and rank 0 sends the table four
// times.
inline constexpr rank_t tree_arity = 4;
[[nodiscard]] constexpr rank_t tree_parent(rank_t rank) noexcept { return (rank - 1) / tree_arity; }
[[nodiscard]] constexpr rank_t first_tree_child(rank_t rank) noexcept { return rank * tree_arity + 1; }
[[nodiscard]] constexpr rank_t tree_child_count(rank_t rank, rank_t size) noexcept {
  // In 64 bits: the first child of a high rank may be beyond what a rank can be.
  std::int64_t const left = std::int64_t{size} - (std::int64_t{rank} * tree_arity + 1);
  return left < 0 ? 0 : left < tree_arity ? static_cast<rank_t>(left) : tree_arity;
}
// Of a rank and all below it.
[[nodiscard]] constexpr rank_t tree_rank_count(rank_t top, rank_t size) noexcept {
  std::int64_t count = 0, first = top, width = 1;  // of a level, which may be beyond the last rank
  for (; first < size; first = first * tree_arity + 1, width *= tree_arity)
    count += size - first < width ? size - first : width;
  return static_cast<rank_t>(count);
}

// Serves any number of ranks at once without ever waiting for one of them.
class store {
 public:
  // `door` lets in purpose store. `mine`: rank 0's own registration. `session`, `told`: what receipts tell.
  // `tls`: what visitors are talked to with, which must outlive the store; null: nothing.
  COLLX_COLD store(net::gate door, rank_t size, registration const& mine, std::uint64_t session,
                   std::uint64_t deadline_us, net::tls_context const* tls = nullptr, std::uint64_t told = 0)
      : door_(std::move(door)),
        set_(net::poller::create()),
        ranks_(static_cast<std::size_t>(size)),
        visitors_(static_cast<std::size_t>(size) + spare),
        size_(size),
        session_(session),
        told_(told),
        deadline_us_(deadline_us),
        tls_(tls) {
    ranks_[0].what = mine;
    ranks_[0].came = ranks_[0].reached = true;
    if (!set_.add(door_.fd(), visitors_.size())) net::throw_unwatched_gate();
  }

  [[nodiscard]] int fd() const noexcept { return set_.fd(); }
  // All ranks have come, and each has reached its parent.
  [[nodiscard]] bool is_complete() const noexcept { return came_ == size_ && reached_ == size_; }
  [[nodiscard]] table_entry const& entry(rank_t rank) const noexcept { return at(rank).what.entry; }
  [[nodiscard]] net::gate const& door() const noexcept { return door_; }
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }

  // Answers whoever has something to say, without waiting.
  COLLX_COLD void progress() noexcept {
    for (epoll_event const& each : set_.ready<64>())
      if (each.data.u64 != visitors_.size()) listen_to(visitors_[each.data.u64]);
    net::guest one;
    while (door_.poll(one)) welcome(one);
  }

  // Unless it is complete, who has not come, or, if all have, not reached its parent: the first, and how
  // many.
  [[nodiscard]] news missing() const noexcept {
    bool const all_came = came_ == size_;
    rank_t first = 0;
    while (first < size_ - 1 && (all_came ? at(first).reached : at(first).came)) ++first;
    if (!all_came) return {news_kind::never_came, first, static_cast<std::uint32_t>(size_ - came_)};
    return {news_kind::never_reached_parent, first, static_cast<std::uint32_t>(size_ - reached_),
            at(first).what.entry.gate};
  }

  // Not good once a rank that had registered was lost.
  [[nodiscard]] news const& failure() const noexcept { return failure_; }

  // Tells everybody who has not reached a parent that no table will come.
  COLLX_COLD void tell_all(news const& bad) noexcept {
    std::byte text[direction::bytes_count] = {};
    bad.encode(text);
    for (visitor& each : visitors_)
      if (each.line && each.bytes_read >= registration::bytes_count) say(each, text, sizeof text);
  }

  // When progress() should be called even if the descriptor is silent.
  [[nodiscard]] std::uint64_t due_us() const noexcept { return door_.due_us(); }

 private:
  // A connection, from its handshake until the other side closes it.
  struct visitor {
    net::line line;
    rank_t rank = no_rank;
    std::uint8_t bytes_read = 0;
    std::byte heard[registration::bytes_count + news::bytes_count];
  };
  struct member {
    bool came = false, reached = false;  // its parent
    visitor* stays = nullptr;            // until it has reached that
    visitor* waits = nullptr;            // for the address of it
    registration what;
  };
  static constexpr std::size_t spare = 64;  // room for processes whose rank is taken

  [[nodiscard]] member& at(rank_t rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] member const& at(rank_t rank) const noexcept {
    return ranks_[static_cast<std::size_t>(rank)];
  }

  void welcome(net::guest& one) noexcept {
    messages_ += 4;  // of the handshake
    for (std::size_t tried = 0; tried < visitors_.size(); ++tried, ++next_) {
      if (next_ >= visitors_.size()) next_ = 0;
      visitor& free = visitors_[next_];
      if (free.line) continue;
      if (!set_.add(one.socket.get(), next_)) return;
      free.line = net::line(one, tls_);
      free.rank = one.who.from;
      free.bytes_read = 0;
      return listen_to(free);  // its registration is often there already
    }
  }

  void listen_to(visitor& who) noexcept {
    while (who.line && hear(who)) {
    }
  }

  // What is there, or the beginning of it. False: nothing is.
  [[nodiscard]] bool hear(visitor& who) noexcept {
    status const greeted = who.line.greet();
    if (greeted != status::ok) {
      if (greeted != status::pending) dismiss(who);
      return false;
    }
    bool const registered = who.bytes_read >= registration::bytes_count;
    std::size_t const end = registered ? sizeof who.heard : registration::bytes_count;
    ssize_t const got = who.line.receive({who.heard + who.bytes_read, end - who.bytes_read});
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      registered ? part(who) : dismiss(who);
      return false;
    }
    who.bytes_read = static_cast<std::uint8_t>(who.bytes_read + got);
    if (who.bytes_read == registration::bytes_count) enter(who);
    if (who.bytes_read == sizeof who.heard) part(who);
    return true;
  }

  // Good news of a rank are that it has reached its parent, who will notice from then on if it is lost. One
  // that leaves without has failed, whatever it has been told, and may have said why.
  void part(visitor& who) noexcept {
    member& its = at(who.rank);
    news word;
    bool const spoke =
        who.bytes_read == sizeof who.heard && news::decode(who.heard + registration::bytes_count, word);
    messages_ += spoke;
    if (its.stays == &who) {
      bool const is_good = spoke && word.kind == news_kind::good && its.waits == nullptr;
      if (is_good && !std::exchange(its.reached, true)) ++reached_;
      if (!is_good && failure_.kind == news_kind::good)
        failure_ = spoke && word.kind != news_kind::good
                       ? word
                       : news{news_kind::left, who.rank, 1, its.what.entry.gate};
    }
    dismiss(who);
  }

  void dismiss(visitor& who) noexcept {
    member& its = at(who.rank);
    if (its.stays == &who) its.stays = its.waits = nullptr;
    set_.remove(who.line.get());  // a forked process may have a copy: see net/gate.hpp
    who.line.reset();
  }

  // The same registration again is the same process, which has tried again.
  void enter(visitor& who) noexcept {
    ++messages_;
    member& its = at(who.rank);
    registration what;
    if (!registration::decode(who.heard, what)) return dismiss(who);
    bool const taken = its.came && !(its.what == what);
    receipt answer;
    answer.what.kind = taken ? news_kind::rank_taken : news_kind::good;
    answer.session = session_;
    answer.told = told_;
    std::uint64_t const now = now_us();
    answer.rest_us = now < deadline_us_ ? deadline_us_ - now : 0;
    std::byte text[receipt::bytes_count];
    answer.encode(text);
    if (!say(who, text, sizeof text) || taken) return;
    if (!its.came) ++came_;
    its.came = true;
    its.what = what;
    its.stays = its.waits = &who;
    direct(its);
    rank_t const child = first_tree_child(who.rank), count = tree_child_count(who.rank, size_);
    for (rank_t i = 0; i < count; ++i) direct(at(child + i));
  }

  // Tells a rank that waits where its parent is, if that is known.
  void direct(member& its) noexcept {
    if (its.waits == nullptr || !at(tree_parent(its.waits->rank)).came) return;
    direction answer;
    answer.parent = at(tree_parent(its.waits->rank)).what.tree_gate;
    std::byte text[direction::bytes_count];
    answer.encode(text);
    visitor& who = *std::exchange(its.waits, nullptr);
    (void)say(who, text, sizeof text);
  }

  // A new connection has room for so few bytes; one that has not is broken, and its rank lost.
  bool say(visitor& who, std::byte const* text, std::size_t bytes) noexcept {
    ++messages_;
    bool const said = who.line.send({text, bytes}) == static_cast<ssize_t>(bytes);
    if (!said) part(who);
    return said;
  }

  net::gate door_;
  net::poller set_;
  array<member> ranks_;
  array<visitor> visitors_;
  std::size_t next_ = 0;
  news failure_;
  rank_t size_, came_ = 1, reached_ = 1;
  std::uint64_t session_, told_, deadline_us_, messages_ = 0;
  net::tls_context const* tls_;
};

}  // namespace collx::inline abi_1::bootstrap
