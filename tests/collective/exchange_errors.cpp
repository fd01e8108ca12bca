// SPDX-License-Identifier: Apache-2.0
// What an exchange says when it cannot go on: messages of another size, wrong arguments, a peer that is
// killed while others wait for it.
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/send_receive.hpp"
#include "collx/transport/faulty.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;

// Pieces of 8 KiB.
collx::transport::settings const small_staging{.staging_bytes = 64 * 1024};
constexpr std::size_t piece = 8 * 1024;

}  // namespace

TEST_CASE("exchange: a message of another size names the peer and the bytes") {
  struct sizes {
    std::size_t sent, wanted;
  };
  for (sizes const each : {sizes{40, 36},
                           {36, 40},
                           {0, 4},
                           {4, 0},
                           {2 * piece, piece},
                           {piece, 2 * piece},
                           {2 * piece, 2 * piece - 4},
                           {3 * piece, 100}}) {
    CAPTURE(each.sent);
    CAPTURE(each.wanted);
    watched::on_threads(
        3,
        [&](auto& comm) {
          collx::exchange ex(comm);
          std::vector<char> out(each.sent), in(each.wanted), tail(3);
          if (comm.rank() == 0) ex.send(out, 1), ex.send(tail, 1);
          if (comm.rank() == 1) ex.receive(in, 0), ex.receive(tail, 0);
          status const outcome = ex.try_run();
          collx::failure_report const& report = comm.failure();
          if (comm.rank() == 1) {
            bool const exact = each.sent < piece || each.sent <= each.wanted;
            if (outcome != status::mismatch || report.peer != 0 || report.bytes != each.wanted ||
                (exact ? report.peer_bytes != each.sent : report.peer_bytes <= each.wanted) ||
                std::string(report.collective) != "exchange")
              throw std::runtime_error(collx::error(report).what());
          } else if (outcome != status::ok && outcome != status::aborted) {
            throw std::runtime_error("neither ok nor aborted");
          }
        },
        small_staging);
  }
  watched::on_threads(2, [&](auto& comm) {
    collx::exchange ex(comm);
    std::vector<char> a(3), b(2);
    ex.send(a, comm.rank());
    ex.receive(b, comm.rank());
    status const outcome = ex.try_run();
    if (outcome != status::mismatch && outcome != status::aborted) throw std::runtime_error("to itself");
  });
}

TEST_CASE(
    "exchange: a collective's payload that is as long as a piece, and was to be fetched, is no message") {
  system_copies::say_if_refused();
  auto const codes = watched::on_processes(
      2,
      [](collx::communicator<collx::transport::shm>& comm) {
        collx::barrier(comm);  // both have said by its end whether they can read the other
        if (!permitted(comm)) return 0;
        std::vector<char> in(2 * piece), out(2 * piece);
        bool const collects = comm.rank() == 1;
        status const outcome = collects ? collx::try_all_to_all<collx::algo::direct_one_shot>(comm, in, out)
                                        : collx::try_receive(comm, out, 1);
        return outcome == (collects ? status::aborted : status::mismatch) ? 0 : 1;
      },
      {.staging_bytes = 64 * 1024, .single_copy_bytes = 1024});
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("exchange: wrong arguments are named, and change nothing") {
  watched::on_threads(2, [](auto& comm) {
    auto const refuses = [&](char const* what, auto const& call) {
      try {
        call();
      } catch (collx::error const& refused) {
        if (refused.code() != status::bad_argument) throw;
        if (std::string(refused.what()).find(what) == std::string::npos)
          throw std::runtime_error(refused.what());
        return;
      }
      throw std::runtime_error(std::string("accepted: ") + what);
    };
    std::vector<int> v(10), w(10);
    collx::exchange ex(comm, 3);
    refuses("message 0, 40 bytes to rank 2, names no rank", [&] { ex.send(v, 2); });
    refuses("from rank -1, names no rank", [&] { ex.receive(v, -1); });
    ex.send(v, comm.rank());
    ex.send(v, comm.rank());  // twice the same is fine
    refuses("message 2, 40 bytes from rank 0, overlaps message 0, 40 bytes to", [&] { ex.receive(v, 0); });
    ex.clear();
    ex.receive(w, comm.rank());
    refuses("overlaps message 0", [&] { ex.receive(std::span(w).subspan(9), 0); });
    ex.send(v, comm.rank());
    ex.send(std::span(w).first(0), 1 - comm.rank());
    refuses("larger capacity", [&] { ex.send(v, 0); });
    refuses("capacity must not be negative", [&] { collx::exchange(comm, -1); });
    refuses("send on rank ", [&] { collx::send(comm, v, 7); });
    refuses(": a rank sends to itself in an exchange", [&] { collx::receive(comm, v, comm.rank()); });
    if (collx::try_send(comm, v, -1) != status::bad_argument) throw std::runtime_error("try_send");
    ex.clear();
    v[0] = 5 + comm.rank();
    ex.send(v, 1 - comm.rank());
    ex.receive(w, 1 - comm.rank());
    ex.run();
    if (w[0] != 6 - comm.rank()) throw std::runtime_error("not received");
  });
}

TEST_CASE("exchange: on a line, messages that overlap are named by the line's own ranks") {
  watched::on_threads(4, [](auto& world) {
    if (world.rank() % 3 != 0) return;
    auto line = world.along({0, 3, 2});
    std::vector<int> v(10);
    collx::exchange ex(line);
    ex.receive(v, 1);
    try {
      ex.receive(v, 1);
    } catch (collx::error const& refused) {
      bool const told =
          std::string(refused.what())
              .find("message 1, 40 bytes from rank 1, overlaps message 0, 40 bytes from rank 1;") !=
          std::string::npos;
      if (told) return;
      throw;
    }
    throw std::runtime_error("accepted");
  });
}

TEST_CASE("exchange: nothing is listed or taken off while its request is in flight") {
  watched::on_threads(2, [](auto& comm) {
    auto const refuses = [](auto const& call) {
      try {
        call();
      } catch (collx::error const& refused) {
        std::string const said = refused.what();
        bool const told = said.find(" of 2: its request is in flight; wait for it") != std::string::npos;
        if (refused.code() == status::bad_argument && told) return;
        throw;
      }
      throw std::runtime_error("accepted");
    };
    rank_t const other = 1 - comm.rank();
    std::vector<int> v(10, comm.rank()), w(10);
    collx::exchange ex(comm, 3);
    ex.send(v, other);
    ex.receive(w, other);
    auto request = ex.start();
    refuses([&] { ex.send(v, other); });
    refuses([&] { ex.receive(std::span(v), other); });
    refuses([&] { ex.clear(); });
    request.wait();
    if (w[9] != other || ex.size() != 2) throw std::runtime_error("not as it was listed");
    ex.send(v, other);  // waited for: the list is the caller's again
    ex.clear();
    auto next = ex.start();
    while (!next.test()) std::this_thread::yield();
    ex.clear();
  });
}

TEST_CASE("send: two ranks that both send first are told what to do instead") {
  collx::transport::settings chosen = small_staging;
  chosen.timeout_us = 50'000;
  watched::on_threads(
      2,
      [](auto& comm) {
        std::vector<char> const large(100 * piece);
        try {
          collx::send(comm, large, 1 - comm.rank());
        } catch (collx::error const& failed) {
          if (failed.code() == status::aborted) return;  // the other one was first
          std::string const said = failed.what();
          bool const advised = said.find("put their messages into an exchange") != std::string::npos;
          bool const has_size = said.find(", 819200 bytes,") != std::string::npos;
          if (failed.code() == status::timeout && advised && has_size) return;
          throw;
        }
        throw std::runtime_error("sent, though nobody receives");
      },
      chosen);
}

TEST_CASE("a peer that is no rank does not become one on the way") {
  watched::on_threads(2, [](collx::communicator<collx::transport::threads>& comm) {
    int value = 0;
    // With their upper half cut off, these would be ranks 0 and 1.
    for (std::int64_t const peer :
         {std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1, -(std::int64_t{1} << 32), std::int64_t{-1}}) {
      collx::exchange wrong(comm);
      auto const is_refused = [&](auto const& call) {
        try {
          call();
        } catch (collx::error const& e) {
          return e.code() == status::bad_argument;
        }
        return false;
      };
      bool const all = is_refused([&] { collx::send(comm, std::span(&value, 1), peer); }) &&
                       is_refused([&] { collx::receive(comm, std::span(&value, 1), peer); }) &&
                       is_refused([&] { wrong.send(std::span(&value, 1), peer); }) &&
                       is_refused([&] { wrong.receive(std::span(&value, 1), peer); }) &&
                       collx::try_send(comm, std::span(&value, 1), peer) == status::bad_argument &&
                       collx::try_receive(comm, std::span(&value, 1), peer) == status::bad_argument;
      if (!all) throw std::runtime_error("taken for a rank: " + std::to_string(peer));
    }
  });
}

TEST_CASE("exchange: a peer that is killed is noticed, by those that wait for it to send or to read") {
  using faulty_shm = collx::transport::faulty<collx::transport::shm>;
  using collx::transport::fault_plan;
  for (fault_plan plan : {fault_plan{.stop_at_send = 1},
                          {.stop_at_send = 2},
                          {.stop_at_send = 5},
                          {.stop_at_consume = 1},
                          {.stop_at_consume = 4}}) {
    plan.kill_process = true;
    for (bool const started : {false, true}) {
      CAPTURE(plan.stop_at_send);
      CAPTURE(plan.stop_at_consume);
      CAPTURE(started);
      auto const codes = watched::on_processes<faulty_shm>(
          4,
          [&](collx::communicator<faulty_shm>& comm) {
            auto const out = comm.allocate<char>(30'000), in = comm.allocate<char>(4 * 30'000);
            collx::exchange ex(comm);
            for (rank_t r = 0; r < 4; ++r) {
              if (r == comm.rank()) continue;
              ex.send(out, r);
              ex.receive(in.span().subspan(static_cast<std::size_t>(r) * 30'000, 30'000), r);
            }
            // A rank may still be in here when another is through and told already.
            status outcome = collx::try_barrier(comm);
            if (comm.rank() == 2) comm.engine().endpoint().inject(plan);
            for (int i = 0; i < 3 && outcome == status::ok; ++i)
              outcome = started ? ex.start().try_wait() : ex.try_run();
            collx::failure_report const& report = comm.failure();
            // Not a time-out.
            bool const told = outcome == status::peer_lost || outcome == status::aborted;
            if (!told || report.peer != 2) throw std::runtime_error(collx::error(report).what());
          },
          {.staging_bytes = 64 * 1024});
      for (std::size_t r = 0; r < 4; ++r) CHECK(codes[r] == (r == 2 ? 128 + SIGKILL : 0));
    }
  }
}
