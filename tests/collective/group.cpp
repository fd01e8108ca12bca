// SPDX-License-Identifier: Apache-2.0
// Groups of small collectives: the results of the calls one by one, and as many messages as one call has.
#include "collx/collective/group.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/group_mixture.hpp"
#include "collx/bootstrap/local.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::threads;

using transport = counting<threads>;

template <class F>
std::uint64_t messages_of(collx::communicator<transport>& comm, F const& f) {
  std::uint64_t const before = comm.engine().endpoint().messages();
  f();
  return comm.engine().endpoint().messages() - before;
}

}  // namespace

TEST_CASE("group: what the calls give one by one, in packed buffers of any size") {
  for (rank_t size = 1; size <= 5; ++size) watched::on_threads(size, mixtures::every_mixture);
  for (rank_t const size : {2, 3})
    for (int const code : watched::on_processes(size, mixtures::every_mixture)) CHECK(code == 0);
}

TEST_CASE("group: sixteen all_reduces are one, in messages") {
  for (rank_t size = 2; size <= 5; ++size)
    watched::on_threads<transport>(size, [](collx::communicator<transport>& comm) {
      std::vector<std::vector<float>> values(16, std::vector<float>(2, 1.0f));
      std::vector<float> all(32, 1.0f);
      collx::group g(comm);
      auto const one = messages_of(comm, [&] { collx::all_reduce(comm, all); });
      auto const separate = messages_of(comm, [&] {
        for (auto& each : values) collx::all_reduce(comm, each);
      });
      auto const together = messages_of(comm, [&] {
        for (auto& each : values) g.all_reduce(each);
        g.run();
      });
      require(one > 0 && together == one && separate == 16 * one,
              std::to_string(one) + ", " + std::to_string(separate) + ", " + std::to_string(together));
      auto const started = messages_of(comm, [&] {
        for (auto& each : values) g.all_reduce(each);
        g.start().wait();
      });
      require(started == one, "started");
      // Two operators: two. A buffer for 8: two rounds.
      auto const two_kinds = messages_of(comm, [&] {
        for (std::size_t k = 0; k < 16; ++k) {
          if (k % 2 == 0) g.all_reduce(values[k], collx::max);
          else g.all_reduce(values[k], collx::sum);
        }
        g.run();
      });
      collx::group for_eight(comm, 8 * 8);
      auto const two_rounds = messages_of(comm, [&] {
        for (auto& each : values) for_eight.all_reduce(each);
        for_eight.run();
      });
      require(two_kinds == 2 * one && two_rounds == 2 * one, "two of them");
      auto const nothing = messages_of(comm, [&] {
        g.all_reduce(std::span<int>());
        g.run();
      });
      require(nothing == 0, "nothing to do");
    });
}

TEST_CASE("group: wrong arguments are named when they are listed") {
  watched::on_threads(2, [](auto& comm) {
    auto const refuses = [](char const* what, auto const& call) {
      try {
        call();
      } catch (collx::error const& refused) {
        if (refused.code() != status::bad_argument) throw;
        require(std::string(refused.what()).find(what) != std::string::npos, refused.what());
        return;
      }
      throw std::runtime_error(std::string("accepted: ") + what);
    };
    collx::group g(comm, 100, 2);
    std::vector<int> in(3), out(4);
    refuses(" of 2: the input must have", [&] { g.all_reduce(in, out, collx::sum); });
    refuses(" of 2: the root", [&] { g.broadcast(in, 2); });
    refuses(" of 2: the root", [&] { g.broadcast(in, std::int64_t{1} << 32); });
    refuses(" of 2: the output", [&] { g.all_gather(in, out); });
    g.all_reduce(in);
    g.all_reduce(out);
    refuses(" of 2: too many calls", [&] { g.all_reduce(out); });
    g.run();
    g.all_reduce(in);
    auto request = g.start();
    refuses(" of 2: its request is in flight", [&] { g.all_reduce(out); });
    request.wait();
    g.all_reduce(out);
    (void)g.start();
    require(g.start().try_wait() == status::ok && g.size() == 0, "nothing is left to start");
  });
}
