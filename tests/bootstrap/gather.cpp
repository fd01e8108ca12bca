// SPDX-License-Identifier: Apache-2.0
// Ranks, as threads with a tree of sockets between them, tell each other texts after they have met.
// component: tcp
// ctest: LABELS waits
#include "collx/bootstrap/gather.hpp"

#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>

namespace bootstrap = collx::bootstrap;
using bootstrap::network_membership;
using collx::rank_t;
using collx::status;

namespace {

std::vector<network_membership> tree_of(rank_t size) {
  std::vector<network_membership> all(static_cast<std::size_t>(size));
  for (rank_t r = 0; r < size; ++r) {
    network_membership& mine = all[static_cast<std::size_t>(r)];
    mine.rank = r;
    mine.size = size;
    mine.children =
        collx::array<collx::net::owned_fd>(static_cast<std::size_t>(bootstrap::tree_child_count(r, size)));
  }
  for (rank_t r = 1; r < size; ++r) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    rank_t const above = bootstrap::tree_parent(r);
    auto const place = static_cast<std::size_t>(r - bootstrap::first_tree_child(above));
    all[static_cast<std::size_t>(r)].parent.reset(ends[0]);
    all[static_cast<std::size_t>(above)].children[place].reset(ends[1]);
  }
  return all;
}

std::string text_of(rank_t rank, std::size_t bytes_max) {
  auto const letter = static_cast<char>('a' + rank % 26);
  return std::string(static_cast<std::size_t>(rank) * 7919 % (bytes_max + 1), letter);
}

std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span<char const>(text));
}

struct outcome {
  collx::array<collx::array<std::byte>> texts;
  status code = status::ok;
  std::string words;
};

outcome gather_until(std::uint64_t deadline_us, network_membership const& mine, std::string const& text) {
  outcome how;
  try {
    how.texts = bootstrap::text_gathering(mine, deadline_us).gather(bytes_of(text));
  } catch (collx::error const& failure) {
    how.code = failure.code();
    how.words = failure.what();
  }
  return how;
}

outcome gather(network_membership const& mine, std::string const& text, std::uint64_t timeout_us) {
  return gather_until(collx::now_us() + timeout_us, mine, text);
}

constexpr std::uint64_t long_us = 60'000'000;

void check_gathering(rank_t size, std::size_t bytes_max) {
  std::vector<network_membership> const all = tree_of(size);
  std::vector<outcome> heard(all.size());
  std::vector<std::thread> ranks;
  ranks.reserve(all.size());
  for (std::size_t r = 0; r < all.size(); ++r)
    ranks.emplace_back([&, r] { heard[r] = gather(all[r], text_of(all[r].rank, bytes_max), long_us); });
  for (std::thread& each : ranks) each.join();
  for (outcome const& each : heard) {
    REQUIRE_MESSAGE(each.code == status::ok, each.words);
    REQUIRE(each.texts.size() == all.size());
    for (rank_t r = 0; r < size; ++r) {
      collx::array<std::byte> const& got = each.texts[static_cast<std::size_t>(r)];
      std::string const text(reinterpret_cast<char const*>(got.data()), got.size());
      CHECK(text == text_of(r, bytes_max));
    }
  }
}

}  // namespace

TEST_CASE("gather: every rank has the text of every rank, empty ones and long ones too") {
  for (rank_t size = 1; size <= 24; ++size) check_gathering(size, 300);
  check_gathering(7, bootstrap::text_gathering::text_bytes_max);
}

TEST_CASE("gather: a text that is too long is refused before anything is sent") {
  std::vector<network_membership> const all = tree_of(1);
  CHECK(gather(all[0], std::string(64 * 1024 + 1, 'x'), long_us).code == status::bad_argument);
}

TEST_CASE("gather: a neighbour that has gone is named, and one that is silent") {
  std::vector<network_membership> all = tree_of(3);
  CHECK(gather(all[2], "", 20'000).words.find("rank 2 of 3: rank 0 did not pass on") != std::string::npos);
  all[0].children[0].reset();
  outcome const gone = gather(all[1], "one", long_us);
  CHECK(gone.code == status::peer_lost);
  CHECK(gone.words.find("rank 0 was lost") != std::string::npos);
  std::vector<network_membership> const others = tree_of(3);
  CHECK(gather(others[0], "zero", 20'000).code == status::timeout);
}

TEST_CASE("gather: a membership without its connections, as an encrypted meeting leaves it, is refused") {
  std::vector<network_membership> all = tree_of(3);
  all[0].children[1].reset();
  outcome const above = gather(all[0], "zero", long_us);
  CHECK(above.code == status::bad_argument);
  CHECK(above.words.find("rank 0 of 3: rank 2 has no connection with this one") != std::string::npos);
  all[2].parent.reset();
  outcome const below = gather(all[2], "two", long_us);
  CHECK(below.code == status::bad_argument);
  CHECK(below.words.find("rank 2 of 3: rank 0 has no connection with this one") != std::string::npos);
}

TEST_CASE("gather: all others name a rank that is silent, and one that is gone, with its address") {
  constexpr rank_t size = 24;
  // Neighbours give up half a second after each other: so long a thread may be held up.
  constexpr std::uint64_t patience_us = 32'000'000;
  struct fate {
    rank_t victim;
    bool is_gone;
    std::vector<network_membership> all = tree_of(size);
    std::vector<outcome> heard = std::vector<outcome>(size);
  };
  std::vector<fate> fates;
  for (rank_t const victim : {0, 2, 5, 20})
    for (bool const is_gone : {false, true}) fates.push_back({victim, is_gone});
  std::vector<std::thread> ranks;
  // The same for all, as ranks that have met agree on it, whenever their threads begin.
  std::uint64_t const deadline_us = collx::now_us() + patience_us;
  for (fate& each : fates) {
    for (network_membership& mine : each.all) {
      mine.addresses = collx::array<collx::net::address>(size);
      for (rank_t r = 0; r < size; ++r)
        mine.addresses[static_cast<std::size_t>(r)] =
            collx::net::address::loopback(static_cast<std::uint16_t>(1000 + r));
    }
    for (network_membership& mine : each.all) {
      if (mine.rank != each.victim)
        ranks.emplace_back([&] {
          each.heard[static_cast<std::size_t>(mine.rank)] = gather_until(deadline_us, mine, "text");
        });
      else if (each.is_gone) mine.parent.reset(), mine.children = {};
    }
  }
  for (std::thread& each : ranks) each.join();
  for (fate const& each : fates)
    for (rank_t r = 0; r < size; ++r) {
      if (r == each.victim) continue;
      outcome const& how = each.heard[static_cast<std::size_t>(r)];
      CAPTURE(r);
      CAPTURE(how.words);
      CHECK(how.code == (each.is_gone ? status::peer_lost : status::timeout));
      std::string const name = std::to_string(each.victim);
      std::string const port = std::to_string(1000 + each.victim);
      CHECK(how.words.find(": rank " + name + " at 127.0.0.1:" + port + ' ') != std::string::npos);
    }
}

TEST_CASE("gather: who has everything may leave while others are still being told") {
  std::vector<network_membership> all = tree_of(3);
  std::vector<std::thread> ranks;
  std::vector<outcome> heard(3);
  std::string const text(60'000, 'x');  // more than fits between two ranks at once
  for (std::size_t r = 0; r < 3; ++r)
    ranks.emplace_back([&, r] {
      heard[r] = gather(all[r], text, long_us);
      all[r].parent.reset();
      all[r].children = {};
    });
  for (std::thread& each : ranks) each.join();
  for (outcome const& each : heard) CHECK_MESSAGE(each.code == status::ok, each.words);
}

TEST_CASE("gather: nonsense is a mismatch") {
  auto const answered = [](std::vector<unsigned char> const& part) {
    std::vector<network_membership> const all = tree_of(2);
    std::vector<unsigned char> said{0, 0, 0, 0, 0, 0, 0, static_cast<unsigned char>(part.size())};
    said.insert(said.end(), part.begin(), part.end());
    REQUIRE(send(all[0].children[0].get(), said.data(), said.size(), 0) == static_cast<ssize_t>(said.size()));
    return gather(all[1], "x", long_us).code;
  };
  CHECK(answered({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}) == status::ok);
  CHECK(answered({0, 0, 0, 0, 0, 0, 0, 0}) == status::mismatch);  // one is missing
  CHECK(answered({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) ==
        status::mismatch);  // one is there twice
  CHECK(answered({0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}) == status::mismatch);  // no such rank
  CHECK(answered({0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0}) == status::mismatch);  // longer than all
  CHECK(answered({0, 0, 0, 0, 0, 0}) == status::mismatch);                                // no head
  std::vector<network_membership> const all = tree_of(2);
  REQUIRE(send(all[0].children[0].get(), "\xff\0\0\0\0\0\0\0", 8, 0) == 8);
  CHECK(gather(all[1], "x", long_us).code == status::mismatch);  // more bytes than all ranks may have
}

namespace {

// What rank 0 of `size` hears when its first child, rank 1, sends `said` and nothing more.
outcome heard_from_child(rank_t size, std::vector<std::byte> const& said) {
  std::vector<network_membership> const all = tree_of(size);
  int const child = all[1].parent.get();
  REQUIRE(send(child, said.data(), said.size(), 0) == static_cast<ssize_t>(said.size()));
  REQUIRE(shutdown(child, SHUT_WR) == 0);
  return gather(all[0], "zero", long_us);
}

std::vector<std::byte> length_of(std::uint64_t bytes) {
  std::vector<std::byte> said(8);
  collx::net::put_u64(said.data(), bytes);
  return said;
}

// The texts of these ranks, of one byte each.
std::vector<std::byte> part_of(std::vector<rank_t> const& ranks) {
  std::vector<std::byte> said = length_of(9 * ranks.size());
  for (rank_t const each : ranks) {
    std::byte record[9] = {};
    collx::net::put_u32(record, static_cast<std::uint32_t>(each));
    collx::net::put_u32(record + 4, 1);
    said.insert(said.end(), record, record + sizeof record);
  }
  return said;
}

constexpr std::uint64_t most_of_one = 8 + bootstrap::text_gathering::text_bytes_max;

}  // namespace

TEST_CASE("gather: a subtree has the ranks that lead to its top") {
  for (rank_t size = 1; size <= 400; ++size)
    for (rank_t top = 0; top < size; ++top) {
      rank_t count = 0;
      for (rank_t r = top; r < size; ++r) {
        rank_t above = r;
        while (above > top) above = bootstrap::tree_parent(above);
        count += above == top;
      }
      REQUIRE(bootstrap::tree_rank_count(top, size) == count);
    }
  CHECK(bootstrap::tree_rank_count(0, INT32_MAX) == INT32_MAX);
  CHECK(bootstrap::tree_rank_count(INT32_MAX - 1, INT32_MAX) == 1);
}

TEST_CASE("gather: a child that announces more than its subtree can have is named, with both numbers") {
  outcome const more = heard_from_child(7, length_of(3 * most_of_one + 1));  // ranks 1, 5 and 6
  CHECK(more.code == status::mismatch);
  CHECK_MESSAGE(more.words.find("rank 0 of 7: rank 1 announces 196633 bytes for the texts of 3 ranks, which "
                                "have 196632 at most") != std::string::npos,
                more.words);
  CHECK(heard_from_child(7, length_of(3 * most_of_one)).code == status::peer_lost);  // it may be so
  // What comes from above is of all ranks.
  for (bool const is_more : {false, true}) {
    std::vector<network_membership> all = tree_of(2);
    std::vector<std::byte> const said = length_of(2 * most_of_one + is_more);
    REQUIRE(send(all[0].children[0].get(), said.data(), said.size(), 0) == 8);
    REQUIRE(shutdown(all[0].children[0].get(), SHUT_WR) == 0);
    outcome const how = gather(all[1], "x", long_us);
    CHECK(how.code == (is_more ? status::mismatch : status::peer_lost));
    CHECK(is_more == (how.words.find("rank 0 announces 131089 bytes for the texts of 2 ranks, which have "
                                     "131088 at most") != std::string::npos));
  }
}

TEST_CASE("gather: a child sends the texts of its own subtree, or is named") {
  std::string const broken = "rank 0 of 7: rank 1 sent texts that are broken";
  for (std::vector<rank_t> const& wrong : std::vector<std::vector<rank_t>>{
           {0, 1, 5}, {1, 2, 5}, {1, 5, 5}, {1, 5, 7}, {1, 5, -1}, {1, 5, INT32_MIN}}) {
    outcome const how = heard_from_child(7, part_of(wrong));
    CHECK(how.code == status::mismatch);
    CHECK_MESSAGE(how.words.find(broken) != std::string::npos, how.words);
  }
  std::vector<std::byte> cut_off = part_of({1, 5, 6});
  cut_off.pop_back();
  collx::net::put_u64(cut_off.data(), cut_off.size() - 8);
  CHECK(heard_from_child(7, cut_off).words.find(broken) != std::string::npos);
  for (std::vector<rank_t> const& few : std::vector<std::vector<rank_t>>{{}, {1, 6}}) {
    outcome const how = heard_from_child(7, part_of(few));
    CHECK(how.code == status::mismatch);
    CHECK_MESSAGE(how.words.find("rank 0 of 7: rank 1 sent texts with a rank missing") != std::string::npos,
                  how.words);
  }
  // Nothing is wrong with these; the next child is the one who says nothing.
  std::vector<network_membership> all = tree_of(7);
  std::vector<std::byte> const right = part_of({6, 1, 5});
  REQUIRE(send(all[1].parent.get(), right.data(), right.size(), 0) == static_cast<ssize_t>(right.size()));
  REQUIRE(shutdown(all[2].parent.get(), SHUT_WR) == 0);
  CHECK(gather(all[0], "zero", long_us).words.find("rank 2 was lost") != std::string::npos);
}
