// SPDX-License-Identifier: Apache-2.0
// Messages whose length is where something changes: nothing, a byte, what fits into a head's company, a
// slice, a credit's weight, all that a message may be; and signals that interrupt whoever sleeps.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <csignal>
#include <ctime>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "collx/core/random.hpp"
#include "watched_tcp.hpp"

namespace {

using communicator = collx::communicator<collx::transport::tcp>;
using collx::transport::tcp_settings;

constexpr std::uint32_t slice = 1024, staging = 64 * 1024;

std::vector<std::size_t> telling_lengths() {
  std::vector<std::size_t> all{0, 1, 2, 3};
  // What is inlined; slices; what is copied behind its head; a small message; the reader's buffer; the
  // longest message.
  for (std::size_t const edge : {64u, slice, 2048u, 3 * slice, 4096u, 8192u, staging / 2})
    for (std::size_t const bytes : {edge - 1, edge, edge + 1}) all.push_back(bytes);
  return all;
}

void fill(std::vector<unsigned char>& text, std::size_t bytes, std::uint64_t seed) {
  collx::replayable_random random(seed);
  text.resize(bytes);
  for (unsigned char& each : text) each = static_cast<unsigned char>(random.below(256));
}

// Every length from each rank to the other one, alone and behind one of every other length.
int say_all(communicator& comm) {
  std::vector<unsigned char> said, heard, expected;
  auto const lengths = telling_lengths();
  for (std::size_t const first : lengths)
    for (std::size_t const second : lengths)
      for (int const from : {0, 1})
        for (std::size_t const bytes : {first, second}) {
          fill(expected, bytes, bytes + static_cast<std::size_t>(from));
          if (comm.rank() == from) {
            collx::send(comm, std::span<unsigned char const>(expected), 1 - from);
          } else {
            heard.assign(bytes, 0);
            collx::receive(comm, std::span(heard), from);
            if (heard != expected) return 1;
          }
        }
  return 0;
}

// Several of each length, which are all here before the receiver asks for the first.
int say_before_it_is_wanted(communicator& comm) {
  constexpr int messages = 3;
  std::vector<unsigned char> heard, expected;
  for (std::size_t const bytes : telling_lengths()) {
    if (bytes >= staging / 2 - 1) break;  // a large send waits for its receiver
    for (std::uint64_t i = 0; comm.rank() == 0 && i < messages; ++i) {
      fill(expected, bytes, bytes + i);
      collx::send(comm, std::span<unsigned char const>(expected), 1);
    }
    // Comes behind them.
    int word = 1;
    collx::start::all_reduce(comm, std::span(&word, 1), collx::sum).wait();
    for (std::uint64_t i = 0; comm.rank() == 1 && i < messages; ++i) {
      fill(expected, bytes, bytes + i);
      heard.assign(bytes, 0);
      collx::receive(comm, std::span(heard), 0);
      if (heard != expected) return 1;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("tcp: messages of every length at which something changes arrive whole") {
  for (int const flows : {1, 3})
    for (bool const checks : {false, true}) {
      CAPTURE(flows);
      CAPTURE(checks);
      tcp_settings chosen;
      chosen.common.timeout_us = 80'000'000;
      chosen.common.staging_bytes = staging;
      chosen.checks = checks;
      if (flows != 1) chosen.limits = {.flows = flows, .slice_bytes = slice, .slices_per_flow = 2};
      for (int const code : watched::on_tcp_processes(2, say_all, chosen)) CHECK(code == 0);
      for (int const code : watched::on_tcp_processes(2, say_before_it_is_wanted, chosen)) CHECK(code == 0);
    }
}

TEST_CASE("tcp: signals that interrupt every wait change nothing") {
  tcp_settings chosen;
  chosen.common.timeout_us = 80'000'000;
  chosen.common.yield_us = 0;  // whoever waits sleeps
  auto const codes = watched::on_tcp_processes(
      2,
      [](communicator& comm) {
        static volatile std::sig_atomic_t rung = 0;
        struct sigaction at_signal {};
        at_signal.sa_handler = [](int) { rung = rung + 1; };  // without SA_RESTART
        sigaction(SIGUSR1, &at_signal, nullptr);
        sigevent how{};
        how.sigev_notify = SIGEV_SIGNAL;
        how.sigev_signo = SIGUSR1;
        timer_t timer{};
        itimerspec const often{{0, 200'000}, {0, 200'000}};
        if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0 || timer_settime(timer, 0, &often, nullptr) != 0)
          return 2;
        std::vector<int> values(100'000);
        for (int round = 0, on = 1; on != 0; ++round) {
          for (int& each : values) each = round + comm.rank();
          collx::all_reduce(comm, std::span(values));
          for (int const each : values)
            if (each != 2 * round + 1) return 1;
          on = rung < 100 || round < 20;
          collx::broadcast(comm, std::span(&on, 1), 0);
        }
        timer_delete(timer);
        return 0;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}
