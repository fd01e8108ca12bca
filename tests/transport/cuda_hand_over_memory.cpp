// SPDX-License-Identifier: Apache-2.0
// Rank 0's descriptor, handed over where a rank has no memory left on the way: each allocation fails once,
// and nobody waits for that rank until the deadline.
// sanitizers: no, it replaces operator new itself
// compiled: apart, it replaces operator new
#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_or_none.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/transport/cuda/hand_over.hpp"
#include "scarce_memory.hpp"
#include "watched.hpp"

namespace {

using namespace collx;

constexpr std::uint64_t long_us = 60'000'000;

// How it went on this rank where so many allocations succeed.
template <class Comm>
status outcome_with(Comm& comm, int allocations) {
  auto const agree = [&](status mine) noexcept { return detail::outcome_of_all(comm, mine); };
  auto const together = [&](auto const& make) { detail::all_or_none("a test", comm.rank(), agree, make); };
  auto const gather = [&](auto const& mine, auto& all) { all_gather(comm, std::span(&mine, 1), all); };
  transport::cuda_parts::process_name const process{comm.rank(), 7};
  try {
    scarce_memory::allowance const few(allocations);
    (void)transport::cuda_parts::hand_over("a test", comm.rank(), static_cast<std::size_t>(comm.size()),
                                           process, -1, long_us, together, gather);
    return status::ok;
  } catch (error const& e) {
    return e.code();
  } catch (std::bad_alloc const&) {
    return status::out_of_memory;
  }
}

}  // namespace

TEST_CASE("a rank without memory leaves nobody waiting for its descriptor, at whichever allocation") {
  auto const codes = watched::on_processes(3, [](auto& comm) {
    bool enough = false;
    for (int allocations = 0; !enough; ++allocations) {
      if (allocations == 100) return 2;
      status const met = outcome_with(comm, comm.rank() == 1 ? allocations : -1);
      // Before desks are known: all are told. Then it closes its own, which those notice who need it, and so
      // on.
      bool const well =
          met == status::ok || met == status::out_of_memory || (met == status::peer_lost && comm.rank() != 1);
      if (!well) return 3;
      int done = comm.rank() == 1 && met == status::ok;
      broadcast(comm, std::span(&done, 1), 1);
      enough = done != 0;
    }
    return 0;
  });
  for (int const code : codes) CHECK(code == 0);
}
