// SPDX-License-Identifier: Apache-2.0
// The tree of a meeting: the table of all ranks goes down it, and word of a rank that was lost goes up and
// down.
#pragma once

#include "collx/bootstrap/messages.hpp"
#include "collx/bootstrap/store.hpp"

namespace collx::inline abi_1::bootstrap {

// One rank's place in the tree. The table passes through as its bytes arrive: nobody waits for the whole of
// it.
class tree {
 public:
  // `door` lets in purpose tree. `tls`: what children are talked to with, which must outlive the tree; null:
  // nothing.
  COLLX_COLD tree(net::gate door, rank_t rank, rank_t size, net::tls_context const* tls = nullptr)
      : door_(std::move(door)),
        set_(net::poller::create()),
        children_(static_cast<std::size_t>(tree_child_count(rank, size))),
        table_(news::bytes_count + static_cast<std::size_t>(size) * table_entry::bytes_count),
        rank_(rank),
        size_(size),
        tls_(tls) {
    if (!set_.add(door_.fd(), tag_door)) net::throw_unwatched_gate();
  }

  [[nodiscard]] int fd() const noexcept { return set_.fd(); }
  [[nodiscard]] std::uint64_t due_us() const noexcept { return door_.due_us(); }

  // The connection to the rank above, which has greeted.
  COLLX_COLD void set_parent(net::line parent) noexcept {
    parent_ = std::move(parent);
    parent_at_ = net::peer_address(parent_.get());
    if (failed_) return report(parent_);  // what happened below before there was a parent to tell
    if (!set_.add(parent_.get(), tag_parent)) return fail({news_kind::left, rank_, 1});
    hear_parent();
  }

  // Rank 0 has the table: entry_of(rank) for each rank.
  template <class EntryOf>
  void set_table(EntryOf const& entry_of) noexcept {
    news{}.encode(table_.data());
    for (rank_t r = 0; r < size_; ++r) entry_of(r).encode(entry_at(r));
    filled_ = table_.size();
    for (std::size_t i = 0; i < children_.size(); ++i) pass_on(i);
  }

  // Goes on without waiting. pending; ok: this rank has the table, and so have its children; anything else:
  // failure() says what happened, and everybody who can be reached has been told.
  [[nodiscard]] COLLX_COLD status progress() noexcept {
    for (epoll_event const& each : set_.ready<16>()) {
      if (each.data.u64 == tag_door) continue;
      if (each.data.u64 == tag_parent) hear_parent();
      else attend(each.data.u64, (each.events & EPOLLOUT) != 0);
    }
    net::guest one;
    while (door_.poll(one)) adopt(one);
    if (failed_) return failure_.kind == news_kind::left ? status::peer_lost : status::timeout;
    if (filled_ != table_.size()) return status::pending;
    for (child const& each : children_)
      if (each.sent != table_.size()) return status::pending;
    return status::ok;
  }

  // Tells everybody below, and above, who listens that this meeting has failed.
  COLLX_COLD void fail(news const& bad) noexcept {
    if (failed_) return;
    failed_ = true;
    failure_ = bad;
    // Who has begun to read the table learns of it when this end closes. Nobody is read from now on, so none
    // stays in the set but who is greeting: the others would wake whoever waits for these, again and again.
    for (child& each : children_) {
      if (each.line && each.sent == 0) report(each.line);
      if (each.line.has_greeted()) set_.remove(each.line.get());
    }
    // A parent that has sent the table listens no more, and none needs word that it has gone itself.
    if (parent_ && !has_table() && bad.rank != tree_parent(rank_)) report(parent_);
    if (parent_) set_.remove(parent_.get());
  }

  // After a failure: whether a child is still greeting, and will hear of it from progress() when it has.
  [[nodiscard]] bool has_more_to_tell() const noexcept {
    for (child const& each : children_)
      if (failed_ && each.line && !each.line.has_greeted()) return true;
    return false;
  }

  [[nodiscard]] news const& failure() const noexcept { return failure_; }
  // The first child that has not come, or has not taken the whole table; no_rank if there is none.
  [[nodiscard]] rank_t missing_child() const noexcept {
    for (std::size_t i = 0; i < children_.size(); ++i)
      if (!children_[i].line || children_[i].sent != table_.size()) return rank_of(i);
    return no_rank;
  }
  [[nodiscard]] bool has_table() const noexcept { return filled_ == table_.size(); }

  // Of the table, once it is here. False if a rank has said nonsense.
  [[nodiscard]] bool entry(rank_t rank, table_entry& out) noexcept {
    return table_entry::decode(entry_at(rank), out);
  }
  // Of no use to others where they are encrypted: then none.
  [[nodiscard]] net::owned_fd take_parent() noexcept { return release(parent_); }
  [[nodiscard]] net::owned_fd take_child(std::size_t i) noexcept { return release(children_[i].line); }
  [[nodiscard]] std::size_t child_count() const noexcept { return children_.size(); }
  [[nodiscard]] rank_t rank_of(std::size_t child_index) const noexcept {
    return first_tree_child(rank_) + static_cast<rank_t>(child_index);
  }
  [[nodiscard]] net::gate const& door() const noexcept { return door_; }
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }

 private:
  struct child {
    net::line line;
    net::address at;       // its end of the connection
    std::size_t sent = 0;  // of the table
    std::uint8_t bytes_read = 0;
    std::byte heard[news::bytes_count];
    bool waits = false;  // for room to send in
  };
  static constexpr std::uint64_t tag_door = 1000, tag_parent = 1001;

  [[nodiscard]] std::byte* entry_at(rank_t rank) noexcept {
    return table_.data() + news::bytes_count + static_cast<std::size_t>(rank) * table_entry::bytes_count;
  }

  [[nodiscard]] net::owned_fd release(net::line& from) noexcept {
    if (from) set_.remove(from.get());
    return from.take_socket();
  }

  void report(net::line& to) noexcept {
    std::byte text[news::bytes_count];
    failure_.encode(text);
    ++messages_;
    (void)to.send(text);
  }

  void adopt(net::guest& one) noexcept {
    messages_ += 4;  // of the handshake
    std::int64_t const i = std::int64_t{one.who.from} - first_tree_child(rank_);
    if (i < 0 || i >= static_cast<std::int64_t>(children_.size())) return;
    auto const index = static_cast<std::size_t>(i);
    child& its = children_[index];
    if (its.line || !set_.add(one.socket.get(), index)) return;
    its.line = net::line(one, tls_);
    its.at = net::peer_address(its.line.get());  // after a reset nobody would know
    if (failed_) report(its.line);
    else pass_on(index);
  }

  void attend(std::size_t i, bool has_room) noexcept {
    child& its = children_[i];
    if (!its.line) return;  // lost since the system told of it
    bool const had_come = its.line.has_greeted();
    status const greeted = its.line.greet();
    if (greeted == status::pending) return;
    if (greeted != status::ok) return lose(its, i);
    bool const has_come = !had_come;
    if (failed_) {
      if (has_come) report(its.line);
      return set_.remove(its.line.get());
    }
    if (has_room || has_come) pass_on(i);
    if (its.line && its.sent != table_.size() && !hear(its, i)) lose(its, i);
  }

  // What a child says that lacks the table: what has failed there. False: it has left without a word.
  [[nodiscard]] bool hear(child& its, std::size_t i) noexcept {
    ssize_t const got = its.line.receive({its.heard + its.bytes_read, sizeof its.heard - its.bytes_read});
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    its.bytes_read = static_cast<std::uint8_t>(its.bytes_read + got);
    if (its.bytes_read < sizeof its.heard) return true;
    ++messages_;
    news word;
    bool const known = news::decode(its.heard, word) && word.kind != news_kind::good;
    fail(known ? word : news{news_kind::left, rank_of(i), 1, its.at});
    return true;
  }

  void lose(child& its, std::size_t i) noexcept {
    set_.remove(its.line.get());
    fail({news_kind::left, rank_of(i), 1, its.at});  // if nothing has failed yet
    its.line.reset();
  }

  [[nodiscard]] news parent_left() const noexcept {
    return {news_kind::left, tree_parent(rank_), 1, parent_at_};
  }

  void hear_parent() noexcept {
    while (read_on()) {
    }
  }

  // What the parent has sent, or the beginning of it. False: nothing is there, or nothing more will come.
  [[nodiscard]] bool read_on() noexcept {
    if (failed_ || filled_ == table_.size()) return false;
    bool const begins = filled_ < news::bytes_count;
    std::size_t const end = begins ? news::bytes_count : table_.size();
    ssize_t const got = parent_.receive({table_.data() + filled_, end - filled_});
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      fail(parent_left());
      return false;
    }
    filled_ += static_cast<std::size_t>(got);
    if (begins && filled_ == news::bytes_count) {
      ++messages_;
      news word;
      if (!news::decode(table_.data(), word)) word = parent_left();
      if (word.kind != news_kind::good) {
        filled_ = 0;  // it is no table
        fail(word);
        return false;
      }
    }
    // What follows the table is for whoever takes the connection over.
    if (filled_ == table_.size()) set_.remove(parent_.get());
    // The first line alone is passed on, too: it tells that the table comes.
    if (filled_ >= news::bytes_count)
      for (std::size_t i = 0; i < children_.size(); ++i) pass_on(i);
    return true;
  }

  // Sends a child what is here and what it lacks, as far as there is room.
  void pass_on(std::size_t i) noexcept {
    child& its = children_[i];
    if (!its.line || failed_ || filled_ < news::bytes_count) return;
    while (its.sent < filled_) {
      ssize_t const sent = its.line.send({table_.data() + its.sent, filled_ - its.sent});
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) break;
      if (sent <= 0) {
        // Why it went may lie here unread, and tells more than that it went.
        (void)hear(its, i);
        return lose(its, i);
      }
      ++messages_;
      its.sent += static_cast<std::size_t>(sent);
    }
    // Who has the whole table has met. What it says from then on is for whoever takes the connection over.
    if (its.sent == table_.size()) return set_.remove(its.line.get());
    // Who has not greeted yet will be heard of, and there is room for his greeting.
    bool const waits = its.sent < filled_ && its.line.has_greeted();
    if (waits != its.waits) set_.watch_writable(its.line.get(), i, waits);
    its.waits = waits;
  }

  net::gate door_;
  net::poller set_;
  net::line parent_;
  net::address parent_at_;
  array<child> children_;
  array<std::byte> table_;  // good news, then an entry for each rank
  std::size_t filled_ = 0;  // bytes of the table that are here
  rank_t rank_, size_;
  net::tls_context const* tls_;
  bool failed_ = false;
  news failure_;
  std::uint64_t messages_ = 0;
};

}  // namespace collx::inline abi_1::bootstrap
