// SPDX-License-Identifier: Apache-2.0
// What ranks of a transport that posts messages to a library (mpi, ucx) must get right, whatever the library:
// each throws where it does not.
#pragma once

#include <thread>

#include "collective/each_rank.hpp"
#include "collective/exchange_order.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/persistent.hpp"
#include "collx/collective/send_receive.hpp"
#include "collx/collective/split.hpp"
#include "collx/transport/faulty.hpp"
#include "collx/transport/settings.hpp"
#include "require.hpp"
#include "sample.hpp"
#include "scarce_memory.hpp"

namespace matched_scenarios {

using collx::rank_t;
using collx::status;

inline constexpr std::uint64_t long_us = 60'000'000;

inline collx::transport::settings small_staging() {
  collx::transport::settings chosen = collx::transport::settings::from_environment();
  chosen.staging_bytes = cases::staging_bytes;
  return chosen;
}

// Every contract with each algorithm of the sample.
template <class Transport>
void matrix(collx::communicator<Transport>& world) {
  std::vector<oracle::element> memory(each_rank::memory_count(world.size()));
  std::size_t const done = each_rank::walk<forms::blocking, sample::algorithms>(world, memory.data());
  require(done > 100, "walked next to nothing");
  if (world.rank() == 0) std::printf("%d ranks: %zu collectives\n", world.size(), done);
}

// More messages one way than there are credits, of sizes on both sides of what a library sends at once.
template <class Transport>
void stream_one_way(collx::communicator<Transport>& world) {
  std::vector<std::uint32_t> block(50'000);
  for (std::size_t const count : {std::size_t{1}, std::size_t{200}, block.size()})
    for (std::uint32_t round = 0; round < 50; ++round) {
      if (world.rank() == 0) {
        std::fill(block.begin(), block.end(), round);
        collx::send(world, std::span<std::uint32_t const>(block).first(count), 1);
      } else if (world.rank() == 1) {
        collx::receive(world, std::span(block).first(count), 0);
        require(block[0] == round && block[count - 1] == round, "a message came out of order");
      }
    }
}

// From the first call on: in a program whose operator new is that of scarce_memory.hpp, which ends it here.
template <class Transport>
void allocates_nothing(collx::communicator<Transport>& world) {
  std::vector<double> in(30'000, 1.0), out(in.size());
  auto again = collx::persistent::all_reduce(world, in, out, collx::sum);
  collx::barrier(world);
  scarce_memory::allowance const none(0);
  for (std::size_t const count : {std::size_t{1}, std::size_t{300}, in.size()})
    for (int round = 0; round < 3; ++round) {
      auto const given = std::span<double const>(in).first(count);
      collx::all_reduce(world, given, std::span(out).first(count), collx::sum);
      auto started = collx::start::all_reduce(world, given, std::span(out).first(count), collx::sum);
      collx::broadcast(world, std::span(in).first(count), 1);
      started.wait();
      again.start();
      again.wait();
    }
}

// What nobody has taken from a communicator that has ended is not taken for a message of another one.
template <class Transport>
void not_taken(collx::communicator<Transport>& world) {
  for (int round = 1; round <= 3; ++round) {
    auto group = world.split(0, 0);
    int word = round * 10 + world.rank(), came = 0;
    if (world.rank() == 0) {
      collx::receive(group, std::span(&came, 1), 3);
      require(came == round * 10 + 3, "a message of a communicator that had ended");
    }
    for (int sent = 0; world.rank() == 3 && sent < 2; ++sent) collx::send(group, std::span(&word, 1), 0);
  }
}

// Halves, and pairs across them, all in flight at once; and many of them, one after the other and at once.
template <class Transport>
void groups(collx::communicator<Transport>& world) {
  stream_one_way(world);
  exchanges::every_late_last(world);
  exchanges::nine_before_one(world, 64);
  allocates_nothing(world);
  auto half = world.split(world.rank() / 2, 0);
  auto across = world.split(world.rank() % 2, -world.rank());
  require(across.rank() == (world.rank() < 2 ? 1 : 0), "the key does not order ranks");
  std::vector<double> a(3000, world.rank()), b(3000, world.rank()), c(3000, world.rank());
  auto first = collx::start::all_reduce(half, a, collx::sum);
  auto second = collx::start::all_reduce(across, b, collx::sum);
  auto third = collx::start::all_reduce(world, c, collx::sum);
  third.wait();
  second.wait();
  first.wait();
  require(a[2999] == (world.rank() < 2 ? 1 : 5), "wrong sum in a half");
  require(b[2999] == (world.rank() % 2 == 0 ? 2 : 4), "wrong sum across");
  require(c[2999] == 6, "wrong sum of all");
  for (int round = 0; round < 70; ++round) {
    auto const again = world.split(0, 0);
    require(again.size() == 4, "wrong size");
  }
  std::vector<collx::communicator<Transport>> kept;
  while (kept.size() < 70) kept.push_back(world.split(0, 0));
  not_taken(world);
}

// A rank that the machine holds up for longer than others stay to tell it of a failure finds them gone. So
// each may, but not all of those that are to hear: `heard` says whether this rank has.
template <class Transport>
void require_heard(collx::communicator<Transport>& world, bool heard, char const* what) {
  int count = heard ? 1 : 0;
  collx::all_reduce(world, std::span(&count, 1), collx::sum);
  require(count > 0, what);
}

// Rank 0 sends more than rank 1 expects: nothing behind the buffer is written, and all hear of it. `join()`:
// another communicator of all ranks.
template <class Transport, class Join>
void mismatch(collx::communicator<Transport>& world, Join const& join) {
  for (std::size_t const count : {std::size_t{4}, std::size_t{30'000}}) {
    bool heard = false;
    {
      collx::communicator<Transport> one = join();
      one.timeout_us(long_us);
      std::vector<std::int32_t> memory(count + 8, one.rank());
      if (one.rank() == 1) {
        status const how = collx::try_receive(one, std::span(memory).first(count), 0);
        require(how == status::mismatch, "rank 1 did not find that the message is too long");
        require(one.failure().peer == 0 && one.failure().bytes == 4 * count,
                "wrong peer or size in the report");
        require(one.failure().peer_bytes == 4 * memory.size(), "wrong size of the message");
        for (std::size_t i = count; i < memory.size(); ++i)
          require(memory[i] == 1, "written behind the buffer");
      } else {
        if (one.rank() == 0) (void)collx::try_send(one, std::span<std::int32_t const>(memory), 1);
        status const how = collx::try_barrier(one);
        require(how == status::aborted || how == status::peer_lost, "the failure was not noticed");
        heard = how == status::aborted;
        require(!heard || (one.failure().reported_by == 1 && one.failure().peer == 0),
                "something else was heard");
      }
    }
    require_heard(world, heard, "nobody heard of the message that is too long");
  }
}

// Another thread of rank 0 gives up, and all that rank 0 itself does then is to end the communicator.
template <class Transport, class Join>
void aborted_by_another_thread(collx::communicator<Transport>& world, Join const& join) {
  bool heard = false;
  {
    collx::communicator<Transport> one = join();
    one.timeout_us(long_us);
    if (one.rank() == 0) {
      std::thread([&] { one.abort(); }).join();
    } else {
      status const how = collx::try_barrier(one);
      require(how == status::aborted || how == status::peer_lost, "not aborted");
      heard = how == status::aborted && one.failure().reported_by == 0;
    }
  }
  require_heard(world, heard, "nobody heard that a thread of rank 0 has given up");
}

// Rank 0 gives up; the others, who wait for it, end at once. Then one that nobody hears from.
template <class Transport, class Join>
void aborted(collx::communicator<Transport>& world, Join const& join) {
  aborted_by_another_thread(world, join);
  bool heard = false;
  {
    collx::communicator<Transport> one = join();
    if (one.rank() == 0) one.abort();
    std::vector<double> data(100'000, 1.0);
    status const how = collx::try_all_reduce(one, data, collx::sum);
    require(how == status::aborted || (one.rank() != 0 && how == status::peer_lost), "not aborted");
    heard = one.rank() != 0 && how == status::aborted;
  }
  require_heard(world, heard, "nobody heard that rank 0 has given up");
  {
    collx::communicator<Transport> one = join();
    bool timed_out = false;
    if (one.rank() != 0) {
      one.timeout_us(100'000);
      status const how = collx::try_barrier(one);
      timed_out = how == status::timeout;
      require(timed_out || how == status::aborted || how == status::peer_lost, "no deadline");
    }
    // Rank 0 has not called anything on the other one until now.
    require_heard(world, timed_out, "nobody waited until the deadline");
    if (one.rank() == 0) {
      one.timeout_us(long_us);
      status how = collx::try_barrier(one);
      // What the others sent for their barrier may end its first one.
      if (how == status::ok) how = collx::try_barrier(one);
      // They may have given up telling one that did not listen, and have gone.
      require(how == status::aborted || how == status::peer_lost, "rank 0 did not hear of it");
    }
  }
  collx::barrier(world);
}

}  // namespace matched_scenarios
