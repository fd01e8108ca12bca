// SPDX-License-Identifier: Apache-2.0
// Ranks are processes of an MPI program: runs on whatever network the site's MPI knows. Needs only its
// point-to-point calls, from one thread. The CMake component collx::mpi; no other header includes this one.
#pragma once

#include "collx/core/processors.hpp"
#include "collx/transport/mpi/world.hpp"
#include "collx/transport/matched/membership.hpp"

namespace collx::inline abi_1::transport {

namespace mpi_parts {

struct place {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  int ranks_here = 1;
  bool follow = false;   // the ranks of this host follow each other
  bool sharing = false;  // some host has more ranks than those may use processors
};

COLLX_COLD inline void require(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  (void)MPI_Error_string(code, reason, &length);
  throw_error(status::system_failure, "transport::mpi: %s failed: %s", what, reason);
}

COLLX_COLD inline void require_usable_mpi() {
  int initialized = 0, finalized = 0, provided = 0, is_main = 0;
  require(MPI_Initialized(&initialized), "MPI_Initialized");
  require(MPI_Finalized(&finalized), "MPI_Finalized");
  if (initialized == 0 || finalized != 0)
    throw error(
        status::bad_argument,
        "transport::mpi: MPI is not running; call MPI_Init_thread with MPI_THREAD_FUNNELED first, and let "
        "communicators end before MPI_Finalize");
  require(MPI_Query_thread(&provided), "MPI_Query_thread");
  require(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
  if (is_main == 0 && provided < MPI_THREAD_SERIALIZED)
    throw error(
        status::bad_argument,
        "transport::mpi: this thread is not the one that initialised MPI; join there, or initialise with "
        "MPI_THREAD_SERIALIZED");
}

// How many processors the ranks of a communicator of one host may use together: a launcher may have bound
// each to some of its own. Collective over it.
[[nodiscard]] COLLX_COLD inline int count_processors(MPI_Comm host) {
  processor_set mine;
  mine.add_those_of_this_thread();
  std::uint64_t words[processor_set::word_count];
  for (int i = 0; i < processor_set::word_count; ++i) words[i] = mine.word(i);
  require(MPI_Allreduce(MPI_IN_PLACE, words, processor_set::word_count, MPI_UINT64_T, MPI_BOR, host),
          "MPI_Allreduce");
  int count = 0;
  for (std::uint64_t const word : words) count += __builtin_popcountll(word);
  return count;
}

// Collective over `given`.
[[nodiscard]] COLLX_COLD inline place look_around(MPI_Comm given) {
  place here;
  require(MPI_Comm_dup(given, &here.comm), "MPI_Comm_dup");
  require(MPI_Comm_set_errhandler(here.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  require(MPI_Comm_rank(here.comm, &here.rank), "MPI_Comm_rank");
  require(MPI_Comm_size(here.comm, &here.size), "MPI_Comm_size");
  MPI_Comm host = MPI_COMM_NULL;
  require(MPI_Comm_split_type(here.comm, MPI_COMM_TYPE_SHARED, here.rank, MPI_INFO_NULL, &host),
          "MPI_Comm_split_type");
  int first_and_last[2] = {-here.rank, here.rank};
  require(MPI_Comm_size(host, &here.ranks_here), "MPI_Comm_size");
  require(MPI_Allreduce(MPI_IN_PLACE, first_and_last, 2, MPI_INT, MPI_MAX, host), "MPI_Allreduce");
  int sharing = here.ranks_here > count_processors(host);
  require(MPI_Comm_free(&host), "MPI_Comm_free");
  require(MPI_Allreduce(MPI_IN_PLACE, &sharing, 1, MPI_INT, MPI_MAX, here.comm), "MPI_Allreduce");
  here.sharing = sharing != 0;
  here.follow = first_and_last[0] + first_and_last[1] + 1 == here.ranks_here;
  return here;
}

// What all ranks know of all of them.
struct agreement {
  int ranks_per_group = 1;  // ranks per host, where every host has so many that follow each other
  int refusing = no_rank;   // the last rank whose own settings are none to use
  bool same_staging = true;
  int without_memory = no_rank;  // the last rank that lacks memory for its part

  [[nodiscard]] bool lets_join() const noexcept {
    return refusing == no_rank && same_staging && without_memory == no_rank;
  }
};

[[nodiscard]] COLLX_COLD inline bool is_usable(settings const& chosen) noexcept {
  try {
    (void)chosen.checked();
    return true;
  } catch (error const&) {
    return false;
  }
}

// Collective over the ranks of a place.
[[nodiscard]] COLLX_COLD inline agreement compare(place const& here, settings const& chosen,
                                                  bool has_memory) {
  bool const usable = is_usable(chosen);
  int const staging = usable ? static_cast<int>(chosen.checked().staging_bytes) : 0;  // at most 1 GiB
  constexpr int nobody = no_rank;
  int most_and_least[6] = {here.follow ? here.ranks_here : here.size + 1,
                           -here.ranks_here,
                           staging,
                           -staging,
                           has_memory ? nobody : here.rank,
                           usable ? nobody : here.rank};
  require(MPI_Allreduce(MPI_IN_PLACE, most_and_least, 6, MPI_INT, MPI_MAX, here.comm), "MPI_Allreduce");
  agreement all;
  all.same_staging = most_and_least[2] == -most_and_least[3];
  all.without_memory = most_and_least[4];
  all.refusing = most_and_least[5];
  if (most_and_least[0] == -most_and_least[1] && most_and_least[0] < here.size)
    all.ranks_per_group = most_and_least[0];
  return all;
}

[[noreturn]] COLLX_COLD inline void throw_refusal(agreement const& all, place const& here,
                                                  settings const& chosen) {
  (void)chosen.checked();  // says what is wrong with them
  if (all.refusing != no_rank)
    throw_error(status::bad_argument,
                "transport::mpi: rank %d of %d: rank %d was given settings that cannot be used; its message "
                "says which",
                here.rank, here.size, all.refusing);
  // Receives have room for the longest message of a sender with the same settings.
  if (!all.same_staging)
    throw error(
        status::bad_argument,
        "transport::mpi: COLLX_STAGING_BYTES is not the same on all ranks; set it to one value everywhere");
  throw_error(status::out_of_memory,
              "transport::mpi: rank %d of %d: rank %d has no memory left for its part; free some there",
              here.rank, here.size, all.without_memory);
}

}  // namespace mpi_parts

struct mpi {
  static constexpr char const* name = "mpi";
  using world = mpi_world;
  using endpoint = matched::endpoint<mpi_world>;
  template <class As>
  using membership_of = matched::membership<As>;
  using membership = membership_of<mpi>;

  // The ranks of `comm` (no intercommunicator), which is duplicated: collective over it, and what the caller
  // does with it later is his. The calling thread is the one that uses the communicator, and all that are
  // split from it; with less than MPI_THREAD_SERIALIZED it is the one that initialised MPI. All end before
  // MPI_Finalize. Throws error: bad_argument and out_of_memory, on all ranks or none, and system_failure.
  // `As`: the transport itself, or a decorator of it.
  template <class As = mpi>
  [[nodiscard]] COLLX_COLD static communicator<As> join(
      MPI_Comm comm, settings const& chosen = settings::from_environment()) {
    using engine_type = exec::engine<typename As::endpoint>;
    mpi_parts::require_usable_mpi();
    mpi_parts::place here = mpi_parts::look_around(comm);
    mpi_world* world = nullptr;
    engine_type* engine = nullptr;
    try {
      settings sized = chosen.checked();
      sized.sharing = here.sharing;
      world = new mpi_world(here.comm, here.rank, here.size, sized);
      engine = As::membership::join_world(*world);
    } catch (std::bad_alloc const&) {  // the others are told below
    } catch (error const&) {           // the same: it is out_of_memory, or about the settings
    }
    mpi_parts::agreement const all = mpi_parts::compare(here, chosen, engine != nullptr);
    if (!all.lets_join()) {
      // Freeing the duplicate is for all ranks together, so that one which cannot join could not free it
      // alone. That is why each takes its memory before they compare: here all know that all do the same.
      // Where MPI itself fails, on this rank perhaps and no other, the duplicate is left to MPI.
      if (engine != nullptr) communicator<As>{world, engine};
      else if (world != nullptr) world->drop();
      else (void)MPI_Comm_free(&here.comm);
      mpi_parts::throw_refusal(all, here, chosen);
    }
    communicator<As> joined{world, engine};
    if (all.ranks_per_group > 1) joined.ranks_per_group(all.ranks_per_group);
    return joined;
  }
};

}  // namespace collx::inline abi_1::transport
