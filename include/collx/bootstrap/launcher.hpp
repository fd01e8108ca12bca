// SPDX-License-Identifier: Apache-2.0
// Who this process is: what launchers tell in the environment, as one table.
#pragma once

#include <cstring>

#include "collx/bootstrap/notice_board.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::bootstrap {

// The variables of one launcher. Null: it has none for this.
struct launcher {
  char const* name;
  char const* rank;        // set: this launcher started the process
  char const* also;        // only if this one is set, too
  char const* size[2];     // the first that is set counts; here and below
  char const* local_rank;  // among the ranks of this host
  char const* local_size;  // ranks on this host
  char const* host_count;  // hosts of the job
  char const* job[2];      // a name of the job that no other job has at the same time
  char const* apart[2] = {};  // what else tells jobs of one host apart, all that are set
  // A descriptor that leads to the process which started the ranks of this host.
  char const* socket = nullptr;
  bool places_ranks = false;  // on hosts in an order of its own, also in another launcher's allocation
};

// In the order in which they are asked: who sets RANK means it, mpirun inside a Slurm allocation is Open MPI,
// and a task of srun is Slurm's unless an MPI launcher counts otherwise. The shell of a batch script has
// SLURM_PROCID, too, but no step: it is nobody's rank.
inline constexpr launcher launchers[] = {
    {"torchrun",
     "RANK",
     nullptr,
     {"WORLD_SIZE"},
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     nullptr,
     {"TORCHELASTIC_RUN_ID"},
     {"MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     nullptr,
     {"OMPI_COMM_WORLD_SIZE"},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     {"PMIX_SERVER_URI2", "OMPI_MCA_orte_hnp_uri"},
     nullptr,
     true},
    {"MPICH",
     "PMI_RANK",
     nullptr,
     {"PMI_SIZE"},
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     nullptr,
     {},
     {},
     "PMI_FD",
     true},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_STEP_ID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     "SLURM_LOCALID",
     nullptr,
     "SLURM_STEP_NUM_NODES",
     {"SLURM_JOB_ID"},
     {"SLURM_STEP_ID", "SLURM_CLUSTER_NAME"}},
    {"Kubernetes", "JOB_COMPLETION_INDEX", nullptr, {"WORLD_SIZE"}, nullptr, nullptr, nullptr, {}},
};

// Whether Slurm, which has started this process itself, gives it these numbers. srun --mpi=pmi2 sets
// variables of MPICH's launcher, too.
[[nodiscard]] COLLX_COLD inline bool are_numbers_of_slurm(long rank, long size) noexcept {
  char const* const task = std::getenv("SLURM_PROCID");
  char const* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks == nullptr) tasks = std::getenv("SLURM_NTASKS");
  return std::getenv("SLURM_STEP_ID") != nullptr && task != nullptr && tasks != nullptr &&
         std::strtol(task, nullptr, 10) == rank && std::strtol(tasks, nullptr, 10) == size;
}

// What the environment says about this process.
struct launch {
  rank_t rank = 0;
  rank_t size = 1;
  rank_t local_rank = no_rank;       // no_rank: not told
  rank_t local_size = 0;             // 0: not told
  rank_t host_count = 0;             // 0: not told
  launcher const* by = nullptr;      // null: nobody; there is one rank
  char const* job = "";              // empty: not told
  char const* rendezvous = nullptr;  // COLLX_RENDEZVOUS
  notice_board* board = nullptr;     // where rank 0 may write its address; from_environment() knows none

  // The first launcher of the table that has left its rank; with none there is one rank. COLLX_LAUNCHER names
  // the one to ask instead ("none": nobody). Throws error (bad_argument) naming the variable that is missing
  // or wrong.
  [[nodiscard]] COLLX_COLD static launch from_environment(rank_t size_max = transport::size_max) {
    launch found;
    found.rendezvous = std::getenv("COLLX_RENDEZVOUS");
    found.by = who_started();
    if (found.by == nullptr) return found;
    launcher const& by = *found.by;
    char const* const size = first_set(by.size);
    if (size == nullptr)
      refuse("%s is set but %s is not; set both, or neither for one rank", by.rank, by.size[0]);
    found.size = number(size, 1, 1, size_max);
    found.rank = number(by.rank, 0, 0, found.size - 1);
    found.local_rank = number(by.local_rank, no_rank, 0, found.size - 1);
    found.local_size = number(by.local_size, 0, 1, found.size);
    found.host_count = number(by.host_count, 0, 1, found.size);
    if (char const* const job = first_set(by.job)) found.job = std::getenv(job);
    return found;
  }

  // Whether all ranks run on this host, as far as the launcher tells.
  [[nodiscard]] bool is_one_host() const noexcept {
    return size == 1 || local_size == size || host_count == 1;
  }
  [[nodiscard]] bool is_many_hosts() const noexcept {
    return host_count > 1 || (local_size != 0 && local_size < size);
  }

  // The first of two variables that is set; null: neither.
  [[nodiscard]] static char const* first_set(char const* const (&variables)[2]) noexcept {
    for (char const* each : variables)
      if (each != nullptr && std::getenv(each) != nullptr) return each;
    return nullptr;
  }

 private:
  [[noreturn]] COLLX_COLD static void refuse(char const* format, char const* one, char const* other) {
    throw_error(status::bad_argument, format, one, other);
  }

  [[nodiscard]] static rank_t number(char const* variable, rank_t absent, rank_t low, rank_t high) {
    return variable == nullptr ? absent
                               : static_cast<rank_t>(environment::number(variable, absent, low, high));
  }

  // Of the variables of an MPI launcher, which has not said who is on this host: whether they are Slurm's,
  // whose own say more.
  [[nodiscard]] COLLX_COLD static bool is_slurms(launcher const& each) noexcept {
    if (!each.places_ranks || std::getenv(each.local_size) != nullptr) return false;
    char const* const size = first_set(each.size);
    return size != nullptr && are_numbers_of_slurm(std::strtol(std::getenv(each.rank), nullptr, 10),
                                                   std::strtol(std::getenv(size), nullptr, 10));
  }

  [[nodiscard]] COLLX_COLD static launcher const* who_started() {
    char const* const wanted = std::getenv("COLLX_LAUNCHER");
    if (wanted != nullptr && std::strcmp(wanted, "none") == 0) return nullptr;
    char const* orphan = nullptr;  // a number of ranks that no rank goes with
    for (launcher const& each : launchers) {
      if (wanted != nullptr && std::strcmp(wanted, each.name) != 0) continue;
      bool const is_it =
          std::getenv(each.rank) != nullptr && (each.also == nullptr || std::getenv(each.also) != nullptr);
      if (is_it && (wanted != nullptr || !is_slurms(each))) return &each;
      if (wanted != nullptr)
        refuse(
            "COLLX_LAUNCHER is \"%.60s\", but %s is not set; unset COLLX_LAUNCHER, or start "
            "this process with it",
            wanted, each.rank);
      if (orphan == nullptr && std::strcmp(each.name, "torchrun") == 0) orphan = first_set(each.size);
    }
    if (wanted != nullptr)
      refuse(
          "COLLX_LAUNCHER is \"%.60s\"; set it to one of torchrun, \"Open MPI\", MPICH, Slurm, Kubernetes, "
          "none%s",
          wanted, "");
    if (orphan != nullptr)
      refuse("%s is set but %s is not; set both, or neither for one rank", orphan, "RANK");
    return nullptr;
  }
};

}  // namespace collx::inline abi_1::bootstrap
