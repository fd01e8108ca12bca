// SPDX-License-Identifier: Apache-2.0
// After a meeting: every rank tells all others a text of its own, over the connections of the meeting's tree,
// which were authenticated when they were made. For what is too long, or not known yet, when ranks meet.
#pragma once

#include <span>

#include "collx/bootstrap/membership.hpp"
#include "collx/bootstrap/store.hpp"

namespace collx::inline abi_1::bootstrap {

// Texts go up the tree, each rank adding its own to those from below, and all of them down again: rank 0
// sends them four times, whatever the size. Each part is its length in bytes, then a record for each rank:
// the rank, the length, the text. In the place of a length there may be word of a failure, which every rank
// passes on: so all name the rank that is lost or silent, and not the neighbour that waited for it.
class text_gathering {
 public:
  static constexpr std::size_t text_bytes_max = 64 * 1024;

  // `all`: with its connections of the tree, which an encrypted meeting leaves none of. Throws error
  // (bad_argument) if one is missing.
  COLLX_COLD text_gathering(network_membership const& all, std::uint64_t deadline_us)
      : all_(all), patience_(all.rank, deadline_us), links_(all.children.size() + 1) {
    for (std::size_t i = 0; i < all.children.size(); ++i)
      set_link(i, all.children[i].get(), first_tree_child(all.rank) + static_cast<rank_t>(i));
    if (all.rank != 0) set_link(all.children.size(), all.parent.get(), tree_parent(all.rank));
    for (link const& each : links_)
      if (each.fd < 0 && each.to != no_rank)
        fail(status::bad_argument, each.to,
             "has no connection with this one: those of an encrypted meeting end with it; meet without "
             "COLLX_TLS, or exchange texts by a collective");
  }

  // Collective. What every rank has told, by rank. Throws error: bad_argument (too long), timeout or
  // peer_lost naming a rank and its address, mismatch.
  [[nodiscard]] COLLX_COLD array<array<std::byte>> gather(std::span<std::byte const> mine) {
    if (mine.size() > text_bytes_max) fail(status::bad_argument, all_.rank, "has a text of more than 64 KiB");
    array<std::byte> everything = collect(mine);
    if (all_.parent) {
      send(above(), everything);
      until_us_ = patience_.with_those_above_us();
      everything = receive(above());
      above().is_done = true;
    }
    for (std::size_t i = 0; i < all_.children.size(); ++i) {
      send(links_[i], everything);
      links_[i].is_done = true;
    }
    return split(everything);
  }

 private:
  static constexpr std::size_t length_bytes = 8, head_bytes = 8;
  static constexpr std::size_t first_bytes = 64 * 1024;  // of memory for what is to come

  // Who waits for those below gives up the earlier the lower it is in the tree, and only then who waits for
  // what comes down: the first to give up is the one that knows who is silent.
  class patience {
   public:
    patience(rank_t rank, std::uint64_t deadline_us) : deadline_us_(deadline_us) {
      std::uint64_t const now = now_us();
      step_us_ = (deadline_us > now ? deadline_us - now : 0) / (8 * levels_max);
      for (; rank != 0 && level_ < levels_max; rank = tree_parent(rank)) ++level_;
    }
    [[nodiscard]] std::uint64_t with_those_below_us() const noexcept {
      return deadline_us_ - step_us_ * (levels_max + level_ + 1);
    }
    [[nodiscard]] std::uint64_t with_those_above_us() const noexcept {
      return deadline_us_ - step_us_ * (levels_max - level_);
    }

   private:
    static constexpr std::uint64_t levels_max = 8;  // of more ranks than there may be
    std::uint64_t deadline_us_, step_us_ = 0, level_ = 0;
  };

  // A connection of the tree, and what is known of it.
  struct link {
    int fd = -1;
    rank_t to = no_rank;
    rank_t told_of = 0;       // ranks whose texts come from there: those below, or all
    bool has_text = false;    // something lies there that is no failure
    bool is_sent_to = false;  // a text, of which a part may be on its way: no room for anything else
    bool is_done = false;     // nothing more is to come or to go: it may end
    [[nodiscard]] bool is_open() const noexcept { return fd >= 0 && !is_done; }
  };

  // Word of a failure: a length that no text has. Then what it is, and whose.
  static constexpr std::uint64_t failure_mark = std::uint64_t{1} << 63;
  [[nodiscard]] static std::uint64_t word_of(status code, rank_t who) noexcept {
    return failure_mark | static_cast<std::uint64_t>(code) << 32 | static_cast<std::uint32_t>(who);
  }

  void set_link(std::size_t i, int fd, rank_t to) noexcept {
    links_[i].fd = fd;
    links_[i].to = to;
    links_[i].told_of = to < all_.rank ? all_.size : tree_rank_count(to, all_.size);
  }
  [[nodiscard]] link& above() noexcept { return links_[all_.children.size()]; }
  [[nodiscard]] rank_t parent() const noexcept { return tree_parent(all_.rank); }

  // This rank's text and those of all ranks below.
  [[nodiscard]] array<std::byte> collect(std::span<std::byte const> mine) {
    until_us_ = patience_.with_those_below_us();
    array<array<std::byte>> parts(all_.children.size());
    array<bool> seen(static_cast<std::size_t>(all_.size));
    std::size_t bytes = head_bytes + mine.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = receive(links_[i]);
      require_subtree(links_[i], parts[i], seen);
      bytes += parts[i].size();
    }
    array<std::byte> whole(bytes);
    std::byte* at = whole.data();
    net::put_u32(at, static_cast<std::uint32_t>(all_.rank));
    net::put_u32(at + 4, static_cast<std::uint32_t>(mine.size()));
    at = append(at + head_bytes, mine);
    for (array<std::byte> const& part : parts) at = append(at, {part.data(), part.size()});
    return whole;
  }

  // What one rank tells all.
  struct record {
    std::size_t who = 0;
    std::span<std::byte const> text;
  };
  // Takes the first one off the rest of a part. False: there is none that is whole.
  [[nodiscard]] static bool take(std::span<std::byte const>& rest, record& out) noexcept {
    if (rest.size() < head_bytes) return false;
    std::size_t const bytes = net::get_u32(rest.data() + 4);
    if (bytes > rest.size() - head_bytes) return false;
    out = {net::get_u32(rest.data()), rest.subspan(head_bytes, bytes)};
    rest = rest.subspan(head_bytes + bytes);
    return true;
  }

  // A child's part has its own text and those of all below it, once each. Else the ranks above would find
  // out, and blame who passed it on.
  void require_subtree(link const& child, array<std::byte> const& part, array<bool>& seen) const {
    rank_t count = 0;
    record each;
    for (std::span<std::byte const> rest(part.data(), part.size()); !rest.empty(); ++count) {
      bool const is_sound = take(rest, each) && each.who < seen.size() && !seen[each.who];
      auto top = is_sound ? static_cast<rank_t>(each.who) : no_rank;
      while (top > child.to) top = tree_parent(top);
      if (top != child.to) fail(status::mismatch, child.to, "sent texts that are broken; use one version");
      seen[each.who] = true;
    }
    if (count != child.told_of) fail(status::mismatch, child.to, "sent texts with a rank missing");
  }

  [[nodiscard]] array<array<std::byte>> split(array<std::byte> const& everything) const {
    array<array<std::byte>> texts(static_cast<std::size_t>(all_.size));
    array<bool> seen(texts.size());
    std::size_t count = 0;
    record each;
    for (std::span<std::byte const> rest(everything.data(), everything.size()); !rest.empty(); ++count) {
      if (!take(rest, each) || each.who >= texts.size() || seen[each.who])
        fail(status::mismatch, parent(), "sent a table that is broken; use one version");
      seen[each.who] = true;
      texts[each.who] = array<std::byte>(each.text.size());
      (void)append(texts[each.who].data(), each.text);
    }
    if (count != texts.size()) fail(status::mismatch, parent(), "sent a table with a rank missing");
    return texts;
  }

  [[nodiscard]] static std::byte* append(std::byte* at, std::span<std::byte const> what) noexcept {
    for (std::byte const each : what) *at++ = each;
    return at;
  }

  void send(link& to, array<std::byte> const& what) {
    std::byte length[length_bytes];
    net::put_u64(length, what.size());
    to.is_sent_to = true;
    send_all(to, length);
    send_all(to, {what.data(), what.size()});
    to.is_sent_to = false;
  }
  void send_all(link& to, std::span<std::byte const> what) {
    while (!what.empty()) {
      ssize_t const sent = ::send(to.fd, what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) what = what.subspan(static_cast<std::size_t>(sent));
      else if (errno == EAGAIN) wait(to, POLLOUT);
      else if (errno != EINTR) {
        look_at(to);  // word of a failure outlives the connection
        lose(to);
      }
    }
  }

  [[nodiscard]] array<std::byte> receive(link& from) {
    std::byte length[length_bytes];
    receive_all(from, length);
    std::uint64_t const bytes = net::get_u64(length);
    if ((bytes & failure_mark) != 0) pass_on(from, bytes);
    std::uint64_t const most = static_cast<std::uint64_t>(from.told_of) * (head_bytes + text_bytes_max);
    if (bytes > most) refuse(from, bytes, most);
    array<std::byte> what;
    // As bytes come, and not at once: a length alone takes no memory.
    while (what.size() < bytes) {
      std::size_t const have = what.size();
      std::size_t const wanted = 2 * have < first_bytes ? first_bytes : 2 * have;
      array<std::byte> more(wanted < bytes ? wanted : static_cast<std::size_t>(bytes));
      std::byte* const at = append(more.data(), {what.data(), have});
      receive_all(from, {at, more.size() - have});
      what = std::move(more);
    }
    from.has_text = false;
    return what;
  }
  void receive_all(link& from, std::span<std::byte> where) {
    while (!where.empty()) {
      ssize_t const got = ::recv(from.fd, where.data(), where.size(), MSG_DONTWAIT);
      if (got > 0) where = where.subspan(static_cast<std::size_t>(got));
      else if (got < 0 && errno == EAGAIN) wait(from, POLLIN);
      else if (got == 0 || errno != EINTR) lose(from);
    }
  }

  // Until one link is ready. Any other may bring word of a failure, or end.
  void wait(link& one, short events) {
    array<pollfd> all(links_.size());
    for (;;) {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        bool const is_one = &links_[i] == &one;
        bool const is_watched = is_one || (links_[i].is_open() && !links_[i].has_text);
        all[i] = {is_watched ? links_[i].fd : -1, is_one ? events : short{POLLIN}, 0};
      }
      std::uint64_t const now = now_us();
      // Also when the time is over: word of who is silent may be there by now.
      std::uint64_t const rest_us = until_us_ > now ? until_us_ - now : 0;
      timespec const rest{static_cast<time_t>(rest_us / 1'000'000),
                          static_cast<long>(rest_us % 1'000'000 * 1000)};
      if (::ppoll(all.data(), all.size(), &rest, nullptr) <= 0) {
        if (rest_us == 0) give_up(one);
        continue;
      }
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if (all[i].revents == 0) continue;
        if (&links_[i] == &one) return;
        look_at(links_[i]);
      }
    }
  }

  // At one whose turn has not come.
  void look_at(link& other) {
    std::byte length[length_bytes];
    ssize_t const got = ::recv(other.fd, length, sizeof length, MSG_DONTWAIT | MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) lose(other);
    other.has_text = true;  // or the beginning of a word, which is read in its turn
    if (got == static_cast<ssize_t>(sizeof length) && (net::get_u64(length) & failure_mark) != 0)
      pass_on(other, net::get_u64(length));
  }

  // ---- failures: told to all neighbours but the one it comes from, and thrown

  [[noreturn]] COLLX_COLD void pass_on(link const& from, std::uint64_t word) {
    auto const who = static_cast<rank_t>(static_cast<std::uint32_t>(word));
    auto const code = static_cast<status>((word & ~failure_mark) >> 32);
    bool const is_known =
        (code == status::timeout || code == status::peer_lost) && who >= 0 && who < all_.size;
    if (!is_known) fail(status::mismatch, from.to, "sent nonsense; use one version");
    tell(word, from);
    blame(code, who);
  }
  [[noreturn]] COLLX_COLD void give_up(link const& silent) {
    tell(word_of(status::timeout, silent.to), silent);
    blame(status::timeout, silent.to);
  }
  [[noreturn]] COLLX_COLD void lose(link const& gone) {
    tell(word_of(status::peer_lost, gone.to), gone);
    blame(status::peer_lost, gone.to);
  }
  void tell(std::uint64_t word, link const& not_to) noexcept {
    std::byte text[length_bytes];
    net::put_u64(text, word);
    for (link const& each : links_)
      if (&each != &not_to && each.is_open() && !each.is_sent_to)
        (void)!::send(each.fd, text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  [[noreturn]] void blame(status code, rank_t who) const {
    fail(code, who,
         code == status::peer_lost
             ? "was lost after all ranks had met; look at its own output"
             : "did not pass on what all ranks tell each other after they have met; look at its own output, "
               "or raise COLLX_TIMEOUT_US");
  }
  [[noreturn]] COLLX_COLD void refuse(link const& from, unsigned long long bytes,
                                      unsigned long long most) const {
    char words[160];
    std::snprintf(words, sizeof words,
                  "announces %llu bytes for the texts of %d ranks, which have %llu at most; use one version",
                  bytes, from.told_of, most);
    fail(status::mismatch, from.to, words);
  }
  [[noreturn]] COLLX_COLD void fail(status code, rank_t who, char const* what) const {
    auto const index = static_cast<std::size_t>(who);
    bool const has_address = index < all_.addresses.size() && all_.addresses[index].version != 0;
    throw_error(code, "meeting, rank %d of %d: rank %d%s%s %s", all_.rank, all_.size, who,
                has_address ? " at " : "", has_address ? net::address_text(all_.addresses[index]).text : "",
                what);
  }

  network_membership const& all_;
  patience patience_;
  std::uint64_t until_us_ = 0;
  array<link> links_;  // to the children, then to the parent
};

}  // namespace collx::inline abi_1::bootstrap
