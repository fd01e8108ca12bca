// SPDX-License-Identifier: Apache-2.0
// connect_by_pmix<transport::tcp>(): who the ranks are, and where rank 0 is, asked of the launcher by PMIx
// (Open MPI's mpirun, PRRTE's prun, Slurm's srun --mpi=pmix). No address and no file has to be given, on
// whatever hosts the ranks are. Needs libpmix (the CMake component collx::pmix).
#pragma once

#include <pmix.h>

#include "collx/bootstrap/composite.hpp"
#include "collx/bootstrap/notice_board.hpp"
#include "collx/bootstrap/pmix_call.hpp"
#include "collx/bootstrap/rank_list.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// What a launcher says of a job's size and of this process's rank; -1: nothing that is a number. A job whose
// size is not known is not one of one rank: each would be done by itself. Throws error (bad_argument).
COLLX_COLD inline void require_place_in_job(std::int64_t size, std::int64_t rank) {
  if (size < 1 || size > transport::size_max)
    throw_error(status::bad_argument,
                "PMIx gives %lld as PMIX_JOB_SIZE (-1: none); it must be 1 to %d: start fewer ranks, or use "
                "connect() with RANK, WORLD_SIZE and MASTER_ADDR if the launcher does not say it",
                static_cast<long long>(size), transport::size_max);
  if (rank < 0 || rank >= size)
    throw_error(status::bad_argument,
                "PMIx gives %lld as the rank of this process, in a job of %lld; use connect() with RANK, "
                "WORLD_SIZE and MASTER_ADDR",
                static_cast<long long>(rank), static_cast<long long>(size));
}

}  // namespace detail

// This process as its launcher knows it, as long as the object lives. A program that uses MPI as well may
// have it before MPI_Init or after: PMIx counts who uses it. After it has ended, and MPI has not begun, not
// every version of PMIx can begin again: have MPI begin first, or hold a pmix_use.
class pmix_job : public notice_board {
 public:
  // `timeout_us`: how long the launcher may take to answer all that it is asked, and the other ranks to come.
  // Throws error: bad_argument if no launcher that speaks PMIx has started this process, or if it does not
  // say how many ranks there are; timeout.
  COLLX_COLD explicit pmix_job(std::uint64_t timeout_us)
      : timeout_us_(timeout_us), use_(deadline_in(timeout_us)) {
    pmix_proc_t const self = use_.self();
    std::int64_t const size = number_of(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD);
    detail::require_place_in_job(size, self.rank);
    me_.by = &row;
    me_.size = static_cast<rank_t>(size);
    me_.rank = static_cast<rank_t>(self.rank);
    // Whatever else is said only helps.
    std::int64_t const local_size = number_of(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD);
    std::int64_t const local_rank = number_of(PMIX_LOCAL_RANK, self.rank);
    if (local_size >= 1 && local_size <= size) me_.local_size = static_cast<rank_t>(local_size);
    if (local_rank >= 0 && local_rank < size) me_.local_rank = static_cast<rank_t>(local_rank);
    me_.job = use_.job();
    me_.rendezvous = std::getenv("COLLX_RENDEZVOUS");
    me_.board = this;
  }

  [[nodiscard]] launch const& me() const noexcept { return me_; }

  COLLX_COLD void write(char const* text, std::uint64_t deadline_us) override {
    use_.until(deadline_us);
    std::snprintf(text_, sizeof text_, "%s", text);
    meeting_ = next_meeting();
    put(key("rank0"), text_);
    gather();
  }

  [[nodiscard]] COLLX_COLD char const* read(std::uint64_t deadline_us) override {
    if (text_[0] != '\0') return text_;
    use_.until(deadline_us);
    meeting_ = next_meeting();
    put(key("present"), "here");
    gather();
    pmix_answer const got = get(key("rank0"), 0, pmix_wait::for_data);
    std::size_t const length = std::strlen(got.text);
    if (got.code != PMIX_SUCCESS || length == 0 || length >= sizeof text_)
      fail(status::system_failure, "PMIx_Get of rank 0's address", got.code,
           "start all ranks of this job with connect_by_pmix(), and the same settings");
    std::memcpy(text_, got.text, length + 1);
    return text_;
  }

 private:
  // What the table of launchers has for others: words for messages, and no variables.
  static constexpr launcher row{"PMIx", "PMIX_RANK", nullptr, {}, "PMIX_RANK", nullptr, nullptr, {}};
  static_assert(sizeof pmix_answer::text >= text_bytes_max);

  // A process may meet again, and what was put under a key may be given out for ever. All ranks count alike.
  [[nodiscard]] static unsigned next_meeting() noexcept {
    static unsigned meetings = 0;
    return ++meetings;
  }
  // "rank0": the address of rank 0; "present": one of the others has come.
  struct key_text {
    char text[32];
  };
  [[nodiscard]] key_text key(char const* of) const noexcept {
    key_text made;
    std::snprintf(made.text, sizeof made.text, "collx.%s.%u", of, meeting_);
    return made;
  }

  void put(key_text const& under, char const* text) const {
    struct {
      char key[32], text[text_bytes_max];
    } copy{};
    std::memcpy(copy.key, under.text, sizeof copy.key);
    std::snprintf(copy.text, sizeof copy.text, "%s", text);
    pmix_answer const done = use_.ask("PMIx_Put", [copy](pmix_answer& answer) mutable {
      pmix_value_t value;
      PMIX_VALUE_CONSTRUCT(&value);
      value.type = PMIX_STRING;
      value.data.string = copy.text;  // PMIx_Put copies it
      answer.code = PMIx_Put(PMIX_GLOBAL, copy.key, &value);
      if (answer.code == PMIX_SUCCESS) answer.code = PMIx_Commit();
    });
    if (done.code != PMIX_SUCCESS)
      fail(status::system_failure, "PMIx_Put", done.code, "see the launcher's own output");
  }

  // Until everybody has come: what rank 0 has put is everywhere then.
  void gather() const {
    pmix_call const waiting("PMIx_Fence", [rest_s = use_.rest_s()](pmix_answer& answer) {
      pmix_info_t how[2];
      bool const collect = true;
      PMIX_INFO_LOAD(&how[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
      PMIX_INFO_LOAD(&how[1], PMIX_TIMEOUT, &rest_s, PMIX_INT);
      answer.code = PMIx_Fence(nullptr, 0, how, 2);
    });
    bool const ended = waiting.wait_until(use_.deadline_us());
    pmix_status_t const came = ended ? waiting.answer().code : PMIX_ERR_TIMEOUT;
    if (came == PMIX_SUCCESS) return;
    if (!ended && !use_.is_answered()) use_.throw_silent("PMIx_Fence");
    if (!ended) use_.give_up();
    if (came != PMIX_ERR_TIMEOUT)
      fail(status::system_failure, "PMIx_Fence", came,
           "a rank has ended: look at the output of all ranks; each must call connect_by_pmix() once");
    char missing[100];
    throw_error(status::timeout,
                "meeting by PMIx, rank %d of %d: not all ranks have come within %.1f s: %s; look at its own "
                "output: each rank must call connect_by_pmix() once; or raise COLLX_TIMEOUT_US",
                me_.rank, me_.size, static_cast<double>(timeout_us_) / 1e6, name_missing(missing));
  }

  // Who has left nothing with the server of this host, which knows of its own ranks only.
  template <std::size_t N>
  [[nodiscard]] char const* name_missing(char (&text)[N]) const {
    pmix_answer const here = get(PMIX_LOCAL_PEERS, PMIX_RANK_WILDCARD, pmix_wait::not_at_all);
    char const* at = here.text;
    for (rank_t rank; (rank = next_of_rank_list(at, me_.size)) != no_rank;) {
      if (rank == me_.rank) continue;
      pmix_answer const its =
          get(key(rank == 0 ? "rank0" : "present"), static_cast<pmix_rank_t>(rank), pmix_wait::not_at_all);
      if (its.code == PMIX_SUCCESS) continue;
      std::snprintf(text, sizeof text, "rank %d of this host is missing", rank);
      return text;
    }
    return "one of another host is missing";
  }

  [[nodiscard]] pmix_answer get(char const* what, pmix_rank_t of, pmix_wait how) const {
    return use_.get(what, of, how);
  }
  [[nodiscard]] pmix_answer get(key_text const& what, pmix_rank_t of, pmix_wait how) const {
    return get(what.text, of, how);
  }
  // -1: not told, or no number.
  [[nodiscard]] std::int64_t number_of(char const* what, pmix_rank_t of) const {
    pmix_answer const said = use_.get(what, of, pmix_wait::for_data);
    return said.code == PMIX_SUCCESS ? said.number : -1;
  }

  [[noreturn]] COLLX_COLD static void fail(status code, char const* call, pmix_status_t why,
                                           char const* advice) {
    throw_error(code, "%s: %s; %s", call, PMIx_Error_string(why), advice);
  }

  std::uint64_t timeout_us_;
  pmix_use use_;
  launch me_;
  unsigned meeting_ = 0;
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
