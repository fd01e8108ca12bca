// SPDX-License-Identifier: Apache-2.0
// Messages for a communicator that their receiver has left: they are in nobody's way, and are written to no
// memory that went with it.
// component: tcp
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "collx/transport/sockets/membership.hpp"
#include "transport/held_ends.hpp"
#include "transport/wired.hpp"

namespace {

using collx::rank_t;
using tcp = collx::transport::tcp;
using communicator = collx::communicator<tcp>;
using namespace collx::transport::sockets;
using reservation = tcp::membership::reservation;

collx::transport::tcp_settings settings() {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 1 << 20};
  return chosen;
}

// The part of one of two ranks in a group of both.
communicator assemble(communicator& parent, std::uint64_t number, reservation&& reserved) {
  collx::array<std::uint64_t> tokens(2);
  tokens[0] = number;
  parent.world().keep();
  return {&parent.world(), tcp::membership::assemble(parent.engine(), collx::transport::everybody(2),
                                                     parent.rank(), tokens, std::move(reserved))};
}

bool has_come(communicator& comm, rank_t from, int wanted) {
  auto& endpoint = comm.engine().endpoint();
  collx::transport::arrival what{};
  for (int i = 0; i < 1000; ++i) {
    endpoint.progress();
    if (endpoint.arrived(0, from, what))
      return what.bytes == sizeof wanted && std::memcmp(what.data, &wanted, sizeof wanted) == 0;
  }
  return false;
}

}  // namespace

TEST_CASE("tcp: a message for a communicator that its receiver has left is in no other one's way") {
  watchdog dog;
  wired::cables all(2);
  communicator zero = tcp::join<tcp>(0, 2, settings(), all[0]);
  communicator one = tcp::join<tcp>(1, 2, settings(), all[1]);
  for (int round = 0; round < 3; ++round) {
    auto of_zero = tcp::membership::reserve(zero.engine(), 0, 2),
         of_one = tcp::membership::reserve(one.engine(), 1, 2);
    std::uint64_t const number = of_zero.token;
    communicator sends = assemble(zero, number, std::move(of_zero));
    { communicator const leaves = assemble(one, number, std::move(of_one)); }

    std::vector<int> const nobodys(round == 0 ? 1 : 60'000, 7);
    auto& early = sends.engine().endpoint();
    early.send(0, 1, reinterpret_cast<std::byte const*>(nobodys.data()), nobodys.size() * sizeof(int),
               collx::transport::handover::in_place);
    auto& later = zero.engine().endpoint();
    later.send(0, 1, reinterpret_cast<std::byte const*>(&round), sizeof round,
               collx::transport::handover::in_place);
    for (int i = 0;
         i < 1000 && (early.unread_by(0) != collx::no_rank || later.unread_by(0) != collx::no_rank); ++i)
      later.progress(), one.engine().endpoint().progress();
    CHECK(has_come(one, 0, round));
    one.engine().endpoint().consume(0, 0);
  }
}

// So many more groups come and go that nobody remembers those before.
void let_all_be_forgotten(communicator& comm) {
  for (std::size_t i = 0; i < left_groups::remembered; ++i) {
    auto reserved = tcp::membership::reserve(comm.engine(), 0, 2);
    std::uint64_t const number = reserved.token;
    communicator const leaves = assemble(comm, number, std::move(reserved));
  }
}

TEST_CASE("tcp: what is read of a message when its communicator goes is written to no memory of that") {
  watchdog dog;
  int theirs[2];
  constexpr std::size_t bytes = 100'000;
  int const wanted = 42;
  {
    communicator comm = tcp::join<tcp>(0, 2, settings(), new held_ends(theirs));
    auto& endpoint = comm.engine().endpoint();
    auto const tell = [&](frame what, void const* slice, std::size_t of_slice) {
      what.from = 1;
      what.flags = frame::ends_message;
      what.message_bytes = what.slice_bytes = static_cast<std::uint32_t>(of_slice);
      std::vector<std::byte> text(frame_bytes + of_slice);
      encode(what, text.data());
      std::memcpy(text.data() + frame_bytes, slice, of_slice);
      return text;
    };
    auto const write = [&](std::span<std::byte const> text) {
      REQUIRE(::send(theirs[1], text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
      for (int i = 0; i < 100; ++i) endpoint.progress();
    };
    endpoint.expect(0, 1, nullptr, sizeof wanted);
    for (int i = 0; i < 100; ++i) endpoint.progress();

    // A message that goes to memory of the group, and one that goes to the caller's, of which half is there.
    for (bool const expected : {false, true}) {
      CAPTURE(expected);
      auto reserved = tcp::membership::reserve(comm.engine(), 0, 2);
      std::uint64_t const number = reserved.token;
      std::vector<std::byte> target(bytes, std::byte{1});
      std::vector<std::byte> text;
      {
        communicator group = assemble(comm, number, std::move(reserved));
        if (expected) group.engine().endpoint().expect(0, 1, target.data(), bytes);
        frame of_group;
        of_group.communicator = number;
        text = tell(of_group, std::vector<std::byte>(bytes, std::byte{9}).data(), bytes);
        write(std::span(text).first(bytes / 2));
      }
      std::vector<std::byte> const as_left = target;
      CHECK((as_left[0] == std::byte{9}) == expected);
      if (expected) let_all_be_forgotten(comm);
      write(std::span(text).subspan(bytes / 2));
      CHECK(target == as_left);
    }

    frame of_world;
    of_world.communicator = 1;
    write(tell(of_world, &wanted, sizeof wanted));
    CHECK(has_come(comm, 1, wanted));
    comm.abort();
  }
  for (int const fd : theirs) close(fd);
}
