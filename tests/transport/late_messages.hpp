// SPDX-License-Identifier: Apache-2.0
// Seeds of late messages and late credits between processes, whatever the transport: they change no result.
// What comes late, and what is called, follows from the seed; who runs when does not.
#pragma once

#include <algorithm>

#include "collx/algo/all.hpp"
#include "transport/seeds.hpp"

namespace late_messages {

using collx::rank_t;
// One of each kind; the mailbox runs all algorithms.
using algorithms =
    collx::type_list<collx::algo::direct_two_shot, collx::algo::knomial_tree<4>, collx::algo::ring>;

// Started collectives in waves, and blocking ones between them, on one rank. Throws what is wrong.
template <class Transport>
void call_all(collx::communicator<Transport>& comm, seeds::flights<Transport> const& calls) {
  std::vector<int> values(50);
  for (std::size_t first = 0; first < calls.size(); first += 2) {
    std::vector<seeds::request_of<Transport>> requests;
    std::size_t const end = std::min(first + 2, calls.size());
    for (std::size_t i = first; i < end; ++i) requests.push_back(calls[i]->start(comm));
    std::fill(values.begin(), values.end(), comm.rank() + 1);
    collx::all_reduce(comm, values);
    for (auto& each : requests) each.wait();
    int const sum = comm.size() * (comm.size() + 1) / 2;
    if (values != std::vector<int>(values.size(), sum)) throw std::runtime_error("a wrong sum");
    for (std::size_t i = first; i < end; ++i)
      if (std::string const wrong = calls[i]->difference(comm.rank()); !wrong.empty())
        throw std::runtime_error(wrong);
  }
}

// Empty, or what went wrong. `Started`: says by which transport, and run(size, rank_main) runs ranks as
// processes, under a watchdog.
template <class Started>
std::string run(std::uint64_t seed) {
  using transport = typename Started::transport;
  seeds::drawn<transport, algorithms> from(seed, false);
  from.size = std::clamp(from.size, rank_t{2}, rank_t{4});
  // Every rank is late with something.
  from.faults.resize(static_cast<std::size_t>(from.size), from.faults[0]);
  for (auto& plan : from.faults) plan.delay_polls_max += 3, plan.refuse_one_in += 2;
  seeds::flights<transport> calls;
  for (int i = 0; i < 4; ++i)
    for (auto& each : from.draw_some(2)) calls.push_back(std::move(each));
  auto const codes = Started::run(from.size, [&](collx::communicator<transport>& comm) {
    auto& endpoint = comm.engine().endpoint();
    endpoint.inject(from.faults[static_cast<std::size_t>(comm.rank())]);
    call_all(comm, calls);
    if (endpoint.withheld() == 0) throw std::runtime_error("nothing was late");
  });
  for (int const code : codes)
    if (code != 0) return seeds::list_of(calls) + "a rank ended with " + std::to_string(code);
  return {};
}

}  // namespace late_messages
