// SPDX-License-Identifier: Apache-2.0
// connect_by_pmix<transport::tcp>(): who the ranks are, and where rank 0 is, asked of the launcher by PMIx
// (Open MPI's mpirun, PRRTE's prun, Slurm's srun --mpi=pmix). No address and no file has to be given, on
// whatever hosts the ranks are. Needs libpmix (the CMake component collx::pmix).
#pragma once

#include <pmix.h>

#include "collx/bootstrap/composite.hpp"
#include "collx/bootstrap/notice_board.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// What a launcher says of a job's size and of this process's rank; -1: nothing that is a number. A job whose
// size is not known is not one of one rank: each would be done by itself. Throws error (bad_argument).
COLLX_COLD inline void require_place_in_job(std::int64_t size, std::int64_t rank) {
  char text[300];
  if (size < 1 || size > transport::size_max)
    std::snprintf(text, sizeof text,
                  "PMIx gives %lld as PMIX_JOB_SIZE (-1: none); it must be 1 to %d: start fewer ranks, or "
                  "use connect() with RANK, WORLD_SIZE and MASTER_ADDR if the launcher does not say it",
                  static_cast<long long>(size), transport::size_max);
  else if (rank < 0 || rank >= size)
    std::snprintf(text, sizeof text,
                  "PMIx gives %lld as the rank of this process, in a job of %lld; use connect() with RANK, "
                  "WORLD_SIZE and MASTER_ADDR",
                  static_cast<long long>(rank), static_cast<long long>(size));
  else return;
  throw error(status::bad_argument, text);
}

}  // namespace detail

// This process as its launcher knows it, as long as the object lives. A program that uses MPI as well may
// have it before MPI_Init or after: PMIx counts who uses it.
class pmix_job : public notice_board {
 public:
  // `timeout_us`: how long rank 0's address is waited for. Throws error (bad_argument) if no launcher that
  // speaks PMIx has started this process, or if it does not say how many ranks there are.
  COLLX_COLD explicit pmix_job(std::uint64_t timeout_us) : timeout_us_(timeout_us) {
    pmix_status_t const begun = PMIx_Init(&self_, nullptr, 0);
    if (begun != PMIX_SUCCESS)
      fail(status::bad_argument, "PMIx_Init", begun,
           "start this process with mpirun of Open MPI or srun --mpi=pmix, or use connect() and MASTER_ADDR");
    use_.began = true;
    std::int64_t const size = number_of(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD);
    detail::require_place_in_job(size, self_.rank);
    me_.by = &row;
    me_.size = static_cast<rank_t>(size);
    me_.rank = static_cast<rank_t>(self_.rank);
    // Whatever else is said only helps.
    std::int64_t const local_size = number_of(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD);
    std::int64_t const local_rank = number_of(PMIX_LOCAL_RANK, self_.rank);
    if (local_size >= 1 && local_size <= size) me_.local_size = static_cast<rank_t>(local_size);
    if (local_rank >= 0 && local_rank < size) me_.local_rank = static_cast<rank_t>(local_rank);
    me_.job = self_.nspace;
    me_.rendezvous = std::getenv("COLLX_RENDEZVOUS");
    me_.board = this;
  }

  [[nodiscard]] launch const& me() const noexcept { return me_; }

  COLLX_COLD void write(char const* text) override {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    std::snprintf(text_, sizeof text_, "%s", text);
    value.type = PMIX_STRING;
    value.data.string = text_;  // PMIx_Put copies it
    pmix_status_t done = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (done == PMIX_SUCCESS) done = PMIx_Commit();
    if (done != PMIX_SUCCESS) fail(status::system_failure, "PMIx_Put", done, "see the launcher's own output");
    gather();
  }

  [[nodiscard]] COLLX_COLD char const* read() override {
    if (text_[0] != '\0') return text_;
    gather();
    pmix_proc_t zero;
    PMIX_LOAD_PROCID(&zero, self_.nspace, 0);
    pmix_value_t* found = nullptr;
    pmix_status_t const got = PMIx_Get(&zero, key, nullptr, 0, &found);
    bool const is_text = got == PMIX_SUCCESS && found->type == PMIX_STRING && found->data.string != nullptr;
    if (is_text) std::snprintf(text_, sizeof text_, "%s", found->data.string);
    if (found != nullptr) PMIX_VALUE_RELEASE(found);
    if (!is_text)
      fail(status::system_failure, "PMIx_Get of rank 0's address", got,
           "start all ranks of this job with connect_by_pmix(), and the same settings");
    return text_;
  }

 private:
  // What the table of launchers has for others: words for messages, and no variables.
  static constexpr launcher row{"PMIx", "PMIX_RANK", nullptr, {}, "PMIX_RANK", nullptr, nullptr, {}};
  static constexpr char key[] = "collx.rank0";

  // Until everybody has come: what rank 0 has put is everywhere then.
  void gather() const {
    pmix_info_t how[2];
    bool const collect = true;
    int const timeout_s = static_cast<int>((timeout_us_ + 999'999) / 1'000'000);
    PMIX_INFO_LOAD(&how[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&how[1], PMIX_TIMEOUT, &timeout_s, PMIX_INT);
    pmix_status_t const came = PMIx_Fence(nullptr, 0, how, 2);
    if (came == PMIX_SUCCESS) return;
    fail(came == PMIX_ERR_TIMEOUT ? status::timeout : status::system_failure, "PMIx_Fence", came,
         "look at the output of all ranks: each must call connect_by_pmix() once");
  }

  // -1: not told, or no number.
  [[nodiscard]] std::int64_t number_of(char const* what, pmix_rank_t of) const {
    pmix_proc_t whom;
    PMIX_LOAD_PROCID(&whom, self_.nspace, of);
    pmix_value_t* found = nullptr;
    if (PMIx_Get(&whom, what, nullptr, 0, &found) != PMIX_SUCCESS) return -1;
    std::int64_t value = -1;
    if (found->type == PMIX_UINT32) value = found->data.uint32;
    else if (found->type == PMIX_UINT16) value = found->data.uint16;
    PMIX_VALUE_RELEASE(found);
    return value;
  }

  [[noreturn]] COLLX_COLD static void fail(status code, char const* call, pmix_status_t why,
                                           char const* advice) {
    char text[400];
    std::snprintf(text, sizeof text, "%s: %s; %s", call, PMIx_Error_string(why), advice);
    throw error(code, text);
  }

  // A member, so that it ends also if the constructor throws.
  struct use_of_pmix {
    bool began = false;
    ~use_of_pmix() {
      if (began) PMIx_Finalize(nullptr, 0);
    }
  };

  std::uint64_t timeout_us_;
  use_of_pmix use_;
  pmix_proc_t self_{};
  launch me_;
  char text_[text_bytes_max] = {};
};

}  // namespace collx::inline abi_1::bootstrap

namespace collx::inline abi_1 {

// connect(), for ranks that a launcher with PMIx has started. `Transport`: tcp or composite<shm, tcp>.
// COLLX_RENDEZVOUS and MASTER_ADDR, where they are set, go before what the launcher knows. Throws error as
// connect() does.
template <class Transport>
[[nodiscard]] COLLX_COLD communicator<Transport> connect_by_pmix(
    typename bootstrap::start_of<Transport>::settings const& chosen =
        bootstrap::start_of<Transport>::settings::from_environment()) {
  bootstrap::pmix_job const job(chosen.common.timeout_us);
  return bootstrap::start_of<Transport>::connect(chosen, job.me());
}

}  // namespace collx::inline abi_1
