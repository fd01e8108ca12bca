// SPDX-License-Identifier: Apache-2.0
// Calls of PMIx with a deadline. Most of them wait for the launcher's server, some for other ranks, and not
// every server keeps to the time-out that it is told; one that is stopped keeps to none.
#pragma once

#include <cstring>

#include <pmix.h>

#include "collx/core/side_call.hpp"

namespace collx::inline abi_1::bootstrap {

// What a call said, as far as anybody here wants to know.
struct pmix_answer {
  pmix_status_t code = PMIX_ERR_TIMEOUT;
  bool came = true;          // false: the launcher has said nothing at all
  std::int64_t number = -1;  // -1: none
  char text[1024] = {};      // empty: none
  pmix_proc_t self{};        // of PMIx_Init

  void take(pmix_value_t const& value) noexcept {
    if (value.type == PMIX_UINT32) number = value.data.uint32;
    else if (value.type == PMIX_UINT16) number = value.data.uint16;
    else if (value.type == PMIX_STRING && value.data.string != nullptr)
      std::snprintf(text, sizeof text, "%s", value.data.string);
  }
};

using pmix_call = side_call<pmix_answer>;

enum class pmix_wait { for_data, not_at_all };

// PMIx from PMIx_Init to PMIx_Finalize. Every call throws error (timeout) at the deadline, naming itself.
class pmix_use {
 public:
  COLLX_COLD explicit pmix_use(std::uint64_t deadline_us) : deadline_us_(deadline_us) {
    pmix_answer const begun =
        ask("PMIx_Init", [](pmix_answer& answer) { answer.code = PMIx_Init(&answer.self, nullptr, 0); });
    if (begun.code != PMIX_SUCCESS)
      throw_error(status::bad_argument,
                  "PMIx_Init: %s; start this process with mpirun of Open MPI or srun --mpi=pmix, or use "
                  "connect() and MASTER_ADDR",
                  PMIx_Error_string(begun.code));
    self_ = begun.self;
  }
  pmix_use(pmix_use const&) = delete;
  // A server that has not answered once is not waited for again.
  ~pmix_use() {
    if (is_silent_) return;
    try {
      pmix_call const ending("PMIx_Finalize",
                             [](pmix_answer& answer) { answer.code = PMIx_Finalize(nullptr, 0); });
      (void)ending.wait_until(now_us() + patience_us);
    } catch (...) {  // it ends with the process
    }
  }

  [[nodiscard]] pmix_proc_t const& self() const noexcept { return self_; }
  [[nodiscard]] char const* job() const noexcept { return self_.nspace; }

  [[nodiscard]] std::uint64_t deadline_us() const noexcept { return deadline_us_; }
  void until(std::uint64_t deadline_us) noexcept { deadline_us_ = deadline_us; }

  // For servers that keep to it: they are told, so that they forget what nobody waits for any more.
  [[nodiscard]] int rest_s() const noexcept {
    std::uint64_t const now = now_us();
    return now >= deadline_us_ ? 1 : static_cast<int>((deadline_us_ - now + 999'999) / 1'000'000);
  }

  template <class What>
  [[nodiscard]] COLLX_COLD pmix_answer ask(char const* name, What const& what) const {
    pmix_call const asked(name, what);
    if (asked.wait_until(deadline_us_)) return asked.answer();
    throw_silent(name);
  }
  // Whether the launcher's server says anything: what it is asked for, nobody has.
  [[nodiscard]] COLLX_COLD bool is_answered() const {
    return get("collx.nothing", PMIX_RANK_WILDCARD, pmix_wait::not_at_all).came;
  }
  [[noreturn]] COLLX_COLD void throw_silent(char const* name) const {
    give_up();
    throw_error(status::timeout,
                "%s: the launcher has not answered; see its own output, or raise COLLX_TIMEOUT_US", name);
  }
  void give_up() const noexcept { is_silent_ = true; }

  // What the launcher, or a rank, has said. `not_at_all`: as far as the server of this host knows now; an
  // answer of a moment, whatever the deadline, and none is PMIX_ERR_TIMEOUT.
  [[nodiscard]] COLLX_COLD pmix_answer get(char const* what, pmix_rank_t of, pmix_wait how) const {
    struct question {
      char key[64];
      pmix_proc_t whom;
      int rest_s;
      bool at_once;
    } asked{};
    std::snprintf(asked.key, sizeof asked.key, "%s", what);
    PMIX_LOAD_PROCID(&asked.whom, self_.nspace, of);
    asked.at_once = how == pmix_wait::not_at_all;
    asked.rest_s = asked.at_once ? 1 : rest_s();
    auto const call = [asked](pmix_answer& answer) {
      pmix_info_t wish[2];
      PMIX_INFO_LOAD(&wish[0], PMIX_TIMEOUT, &asked.rest_s, PMIX_INT);
      PMIX_INFO_LOAD(&wish[1], PMIX_IMMEDIATE, &asked.at_once, PMIX_BOOL);
      pmix_value_t* found = nullptr;
      answer.code = PMIx_Get(&asked.whom, asked.key, wish, 2, &found);
      if (answer.code == PMIX_SUCCESS) answer.take(*found);
      if (found != nullptr) PMIX_VALUE_RELEASE(found);
    };
    if (!asked.at_once) return ask("PMIx_Get", call);
    pmix_call const quick("PMIx_Get", call);
    if (quick.wait_until(now_us() + patience_us)) return quick.answer();
    give_up();
    pmix_answer none;
    none.came = false;
    return none;
  }

 private:
  static constexpr std::uint64_t patience_us = 2'000'000;

  std::uint64_t deadline_us_;
  pmix_proc_t self_{};
  mutable bool is_silent_ = false;
};

}  // namespace collx::inline abi_1::bootstrap
