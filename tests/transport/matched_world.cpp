// SPDX-License-Identifier: Apache-2.0
// How ranks that post messages to a library hear of a failure, and what they are told when memory is short:
// over a library that this test plays, with one rank.
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "collx/transport/matched/membership.hpp"
#include "collx/transport/matched/world.hpp"

namespace {

using collx::rank_t;
using collx::status;
namespace matched = collx::transport::matched;
using failure = collx::transport::mapped::first_failure;

bool lacks_pages = false;

class traffic : public matched::ledger {
 public:
  traffic(int, collx::array<rank_t> members, rank_t rank, int lanes, std::size_t message_bytes_max)
      : ledger(std::move(members), rank, lanes, message_bytes_max) {
    if (lacks_pages) throw collx::error(status::out_of_memory, "cannot map so many bytes");
  }
  [[nodiscard]] bool is_idle() const noexcept { return true; }
  void receive(int, rank_t, std::byte*, std::size_t) noexcept {}
  void send(int, rank_t, std::byte const*, std::size_t) noexcept {}
  void progress() noexcept {}
  [[nodiscard]] status trouble_with(rank_t peer) noexcept { return trouble_on_lanes(peer); }
  void withdraw() noexcept {}
  [[nodiscard]] bool has_receives() const noexcept { return false; }

  traffic* next = nullptr;
};

// Keeps what it would tell others.
class played_world : public matched::world<played_world, traffic> {
  using base = matched::world<played_world, traffic>;
  friend base;

 public:
  [[maybe_unused]] static constexpr char const* transport_name = "played";

  explicit played_world(failure& told) : base(0, 1, {.staging_bytes = 64 * 1024}), told_(told) {}
  [[nodiscard]] int wire(int number) const noexcept { return number; }
  [[nodiscard]] static constexpr int number_max() noexcept { return 100; }

 private:
  [[nodiscard]] static bool is_over() noexcept { return false; }
  void hear() noexcept {}
  void tell_all(failure const& what) noexcept { told_ = what; }
  [[nodiscard]] bool has_told() const noexcept { return true; }
  void give_up() noexcept { (void)stop_all(); }

  failure& told_;
};

struct played {
  [[maybe_unused]] static constexpr char const* name = "played";
  using world = played_world;
  using endpoint = matched::endpoint<played_world>;
  template <class As>
  using membership_of = matched::membership<As>;
  using membership = membership_of<played>;

  static collx::communicator<played> join(failure& told) {
    auto* const made = new played_world(told);
    return {made, membership::join_world(*made)};
  }
};
static_assert(collx::transport::endpoint<played::endpoint>);

}  // namespace

TEST_CASE("an abort() of another thread is told by the owner whose next act is to end a communicator") {
  failure told;
  std::optional world = played::join(told);
  SUBCASE("of everybody") {
    std::thread([&] { world->abort(); }).join();
    CHECK(told.code == status::ok);
    world.reset();
  }
  SUBCASE("of a part") {
    std::optional group = world->split(0, 0);
    std::thread([&] { group->abort(); }).join();
    CHECK(told.code == status::ok);
    group.reset();
  }
  CHECK(told.code == status::aborted);
  CHECK(told.reporter == 0);
}

TEST_CASE("an abort() of the owner is told at once, and a world that ends well tells nothing") {
  failure told;
  {
    auto const ends = played::join(told);
  }
  CHECK(told.code == status::ok);
  auto world = played::join(told);
  world.abort();
  CHECK(told.code == status::aborted);
}

TEST_CASE("who cannot map what it needs for its part of a group is told what to do for the others") {
  failure told;
  auto world = played::join(told);
  lacks_pages = true;
  std::string said;
  try {
    (void)world.split(0, 0);
  } catch (collx::error const& refused) {
    CHECK(refused.code() == status::out_of_memory);
    said = refused.what();
  }
  lacks_pages = false;
  CHECK(said.find("abort(), so that they do not wait for this rank") != std::string::npos);
  CHECK(world.split(0, 0).size() == 1);
}

TEST_CASE("no group has the number of one that has ended, and when there are none left a rank is told so") {
  failure told;
  auto world = played::join(told);
  std::string said;
  int made = 0;
  try {
    for (; made <= played_world::number_max(); ++made) (void)world.split(0, 0);
  } catch (collx::error const& refused) {
    CHECK(refused.code() == status::not_supported);
    said = refused.what();
  }
  CHECK(made == played_world::number_max());
  CHECK(said.find("rank 0 has no number left") != std::string::npos);
}
