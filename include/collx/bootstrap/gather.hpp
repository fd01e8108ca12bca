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
// the rank, the length, the text.
class text_gathering {
 public:
  static constexpr std::size_t text_bytes_max = 64 * 1024;

  COLLX_COLD text_gathering(network_membership const& all, std::uint64_t deadline_us)
      : all_(all), deadline_us_(deadline_us) {}

  // Collective. What every rank has told, by rank. Throws error: bad_argument (too long), timeout or
  // peer_lost naming a neighbour in the tree, mismatch.
  [[nodiscard]] COLLX_COLD array<array<std::byte>> gather(std::span<std::byte const> mine) {
    if (mine.size() > text_bytes_max) fail(status::bad_argument, all_.rank, "has a text of more than 64 KiB");
    array<std::byte> everything = collect(mine);
    if (all_.parent) {
      send(all_.parent.get(), parent(), everything);
      everything = receive(all_.parent.get(), parent());
    }
    for (std::size_t i = 0; i < all_.children.size(); ++i) send(all_.children[i].get(), child(i), everything);
    return split(everything);
  }

 private:
  static constexpr std::size_t length_bytes = 8, head_bytes = 8;

  [[nodiscard]] rank_t parent() const noexcept { return tree_parent(all_.rank); }
  [[nodiscard]] rank_t child(std::size_t i) const noexcept {
    return first_tree_child(all_.rank) + static_cast<rank_t>(i);
  }

  // This rank's text and those of all ranks below.
  [[nodiscard]] array<std::byte> collect(std::span<std::byte const> mine) {
    array<array<std::byte>> parts(all_.children.size());
    std::size_t bytes = head_bytes + mine.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = receive(all_.children[i].get(), child(i));
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

  [[nodiscard]] array<array<std::byte>> split(array<std::byte> const& everything) const {
    array<array<std::byte>> texts(static_cast<std::size_t>(all_.size));
    array<bool> seen(texts.size());
    std::size_t count = 0;
    for (std::size_t at = 0; at < everything.size(); ++count) {
      std::byte const* const head = everything.data() + at;
      std::size_t const rest = everything.size() - at;
      std::size_t const who = rest < head_bytes ? texts.size() : net::get_u32(head);
      std::size_t const bytes = rest < head_bytes ? 0 : net::get_u32(head + 4);
      if (who >= texts.size() || seen[who] || bytes > rest - head_bytes)
        fail(status::mismatch, parent(), "sent a table that is broken; use one version");
      seen[who] = true;
      texts[who] = array<std::byte>(bytes);
      (void)append(texts[who].data(), {head + head_bytes, bytes});
      at += head_bytes + bytes;
    }
    if (count != texts.size()) fail(status::mismatch, parent(), "sent a table with a rank missing");
    return texts;
  }

  [[nodiscard]] static std::byte* append(std::byte* at, std::span<std::byte const> what) noexcept {
    for (std::byte const each : what) *at++ = each;
    return at;
  }

  void send(int to, rank_t who, array<std::byte> const& what) const {
    std::byte length[length_bytes];
    net::put_u64(length, what.size());
    send_all(to, who, length);
    send_all(to, who, {what.data(), what.size()});
  }
  void send_all(int to, rank_t who, std::span<std::byte const> what) const {
    while (!what.empty()) {
      ssize_t const sent = ::send(to, what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) what = what.subspan(static_cast<std::size_t>(sent));
      else if (errno == EAGAIN) wait(to, POLLOUT, who);
      else if (errno != EINTR) lose(who);
    }
  }

  [[nodiscard]] array<std::byte> receive(int from, rank_t who) const {
    std::byte length[length_bytes];
    receive_all(from, who, length);
    std::uint64_t const bytes = net::get_u64(length);
    if (bytes > static_cast<std::uint64_t>(all_.size) * (head_bytes + text_bytes_max))
      fail(status::mismatch, who, "sent nonsense; use one version");
    array<std::byte> what(static_cast<std::size_t>(bytes));
    receive_all(from, who, {what.data(), what.size()});
    return what;
  }
  void receive_all(int from, rank_t who, std::span<std::byte> where) const {
    while (!where.empty()) {
      ssize_t const got = ::recv(from, where.data(), where.size(), MSG_DONTWAIT);
      if (got > 0) where = where.subspan(static_cast<std::size_t>(got));
      else if (got < 0 && errno == EAGAIN) wait(from, POLLIN, who);
      else if (got == 0 || errno != EINTR) lose(who);
    }
  }

  void wait(int fd, short events, rank_t who) const {
    if (!net::ready_before(fd, events, deadline_us_))
      fail(status::timeout, who,
           "did not pass on what all ranks tell each other after they have met; look at its own output, or "
           "raise COLLX_TIMEOUT_US");
  }
  [[noreturn]] void lose(rank_t who) const {
    fail(status::peer_lost, who, "was lost after all ranks had met; look at its own output");
  }
  [[noreturn]] COLLX_COLD void fail(status code, rank_t who, char const* what) const {
    char text[300];
    std::snprintf(text, sizeof text, "meeting, rank %d of %d: rank %d %s", all_.rank, all_.size, who, what);
    throw error(code, text);
  }

  network_membership const& all_;
  std::uint64_t deadline_us_;
};

}  // namespace collx::inline abi_1::bootstrap
