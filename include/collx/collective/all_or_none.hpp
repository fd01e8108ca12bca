// SPDX-License-Identifier: Apache-2.0
// What every rank makes for itself and all of them need: memory of GPUs, graphs. Where that fails on one rank
// all of them are told, at once; nobody waits for a part that will never be there.
#pragma once

#include <cstdint>
#include <exception>
#include <new>

#include "collx/collective/all_reduce.hpp"
#include "collx/op/reduction.hpp"

namespace collx::inline abi_1::detail {

// How a step went on all ranks: ok, or what the lowest rank that failed has met with. `who` is no_rank where
// the ranks could not even ask each other.
struct common_outcome {
  status code = status::ok;
  rank_t who = no_rank;
};

// Collective; also a barrier. `mine`: how the step went on this rank.
template <class Transport>
[[nodiscard]] common_outcome outcome_of_all(communicator<Transport>& comm, status mine) noexcept {
  constexpr std::int64_t well = INT64_MAX;
  // Rank and code as one number, of which the lowest is that of the lowest rank.
  std::int64_t const told = mine == status::ok ? well : std::int64_t{comm.rank()} << 8 | std::int64_t(mine);
  std::int64_t first = well;
  if (status const asked = try_all_reduce(comm, std::span(&told, 1), std::span(&first, 1), min);
      asked != status::ok)
    return {asked, no_rank};
  if (first == well) return {};
  return {static_cast<status>(first & 0xff), static_cast<rank_t>(first >> 8)};
}

[[noreturn]] COLLX_COLD inline void throw_not_on_all(char const* what, rank_t rank,
                                                     common_outcome const& met) {
  if (met.who == no_rank)
    throw_error(met.code,
                "%s on rank %d: the ranks did not meet on the host's communicator (%s); see its failure()",
                what, rank, name(met.code));
  throw_error(met.code,
              "%s on rank %d: rank %d could not do its part (%s), so that no rank has done it; look at that "
              "rank's message",
              what, rank, met.who, name(met.code));
}

// Runs make() and tells all ranks how that went. Where it throws on one rank this throws on all of them: what
// was thrown there, and on the others an error that names the lowest such rank. `agree(mine)`:
// outcome_of_all() on the ranks' communicator. Before it throws, a rank has undone nothing but what unwinding
// does.
template <class Agree, class Make>
void all_or_none(char const* what, rank_t rank, Agree const& agree, Make const& make) {
  status mine = status::ok;
  std::exception_ptr thrown;
  try {
    make();
  } catch (error const& e) {
    mine = e.code() == status::ok ? status::system_failure : e.code();
    thrown = std::current_exception();
  } catch (std::bad_alloc const&) {
    mine = status::out_of_memory;
    thrown = std::current_exception();
  } catch (...) {
    mine = status::system_failure;
    thrown = std::current_exception();
  }
  common_outcome const met = agree(mine);
  if (thrown) std::rethrow_exception(thrown);
  if (met.code != status::ok) throw_not_on_all(what, rank, met);
}

}  // namespace collx::inline abi_1::detail
