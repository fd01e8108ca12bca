// SPDX-License-Identifier: Apache-2.0
// Where rank 0 is, handed over by MPICH's launcher (Hydra's mpiexec), on whatever hosts it has started ranks.
#pragma once

#include "collx/bootstrap/job_socket.hpp"
#include "collx/bootstrap/pmi_line.hpp"

namespace collx::inline abi_1::bootstrap {

// One meeting's. Says nothing to the launcher before it is used.
class pmi_board final : public notice_board {
 public:
  explicit pmi_board(launch const& me) noexcept : me_(me) {}

  // Whether a launcher that speaks PMI is at the other end of PMI_FD, as far as can be seen without asking:
  // the number may be that of any file by now.
  [[nodiscard]] COLLX_COLD bool can_be_asked() const noexcept {
    return me_.by != nullptr && me_.by->socket != nullptr && detail::launcher_behind(me_.by->socket) != 0;
  }

  COLLX_COLD void write(char const* text, std::uint64_t deadline_us) override {
    begin(deadline_us);
    put(name_of(0).text, text);
    gather();
  }

  [[nodiscard]] COLLX_COLD char const* read(std::uint64_t deadline_us) override {
    if (text_[0] != '\0') return text_;
    begin(deadline_us);
    put(name_of(me_.rank).text, "here");
    gather();
    char text[text_bytes_max];
    pmi_answer const got = get(0);
    if (!got.is_good() || !got.value("value", text) || text[0] == '\0')
      throw_error(status::system_failure,
                  "%s, rank %d of %d: the launcher does not have rank 0's address (\"%.100s\"); start all "
                  "ranks with the same settings",
                  where, me_.rank, me_.size, got.line);
    return std::strcpy(text_, text);
  }

 private:
  static constexpr char where[] = "meeting by PMI";

  struct key {
    char text[40];
  };
  // Under which a rank leaves something: rank 0 its address, the others that they are there.
  [[nodiscard]] key name_of(rank_t rank) const noexcept {
    key made;
    std::snprintf(made.text, sizeof made.text, "collx-%u-%d", meeting_, rank);
    return made;
  }

  // Of this process, until it ends.
  [[nodiscard]] COLLX_COLD static pmi_line& line_of(launcher const& by) {
    static pmi_line line(static_cast<int>(std::strtol(std::getenv(by.socket), nullptr, 10)));
    return line;
  }

  COLLX_COLD void begin(std::uint64_t deadline_us) {
    deadline_us_ = deadline_us;
    line_ = &line_of(*me_.by);
    if (line_->is_out_of_step())
      throw_error(status::system_failure,
                  "%s, rank %d of %d: an earlier meeting did not come about, and the launcher may still wait "
                  "for its ranks; start the job again, or set COLLX_RENDEZVOUS=file:PATH",
                  where, me_.rank, me_.size);
    meeting_ = line_->next_meeting();
    pmi_answer const begun = ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init");
    if (!begun.is_good()) throw_refused("init", begun);
    pmi_answer const named = ask("cmd=get_my_kvsname\n", "my_kvsname");
    if (!named.value("kvsname", store_)) throw_refused("get_my_kvsname", named);
  }

  COLLX_COLD void put(char const* name, char const* value) {
    char line[600];
    std::snprintf(line, sizeof line, "cmd=put kvsname=%s key=%s value=%s\n", store_, name, value);
    pmi_answer const done = ask(line, "put_result");
    if (!done.is_good()) throw_refused("put", done);
  }

  [[nodiscard]] COLLX_COLD pmi_answer get(rank_t of) {
    char line[600];
    std::snprintf(line, sizeof line, "cmd=get kvsname=%s key=%s\n", store_, name_of(of).text);
    return ask(line, "get_result");
  }

  // Until everybody has come: what ranks have put is everywhere then.
  COLLX_COLD void gather() {
    pmi_answer all;
    status const came = line_->ask("cmd=barrier_in\n", "barrier_out", all, deadline_us_);
    if (came == status::ok) return;
    line_->lose_step();
    if (came != status::pending) throw_lost("barrier_in");
    throw_missing();
  }

  // The launcher sends on what ranks of a host have put when all of that host have come.
  [[noreturn]] COLLX_COLD void throw_missing() {
    double const waited_s = static_cast<double>(deadline_us_ - began_us_) / 1e6;
    deadline_us_ = now_us() + patience_us;
    rank_t first = no_rank, missing = 0;
    for (rank_t r = 0; r < me_.size && now_us() < deadline_us_; ++r) {
      if (r == me_.rank || get(r).is_good()) continue;
      if (first == no_rank) first = r;
      ++missing;
    }
    throw_error(status::timeout,
                "%s, rank %d of %d: not all ranks have come within %.1f s; the launcher knows nothing of %d, "
                "rank %d first (all those of hosts where one is missing); look at their own output, or raise "
                "COLLX_TIMEOUT_US",
                where, me_.rank, me_.size, waited_s, missing, first);
  }

  [[nodiscard]] COLLX_COLD pmi_answer ask(char const* line, char const* answer_name) {
    pmi_answer answer;
    status const came = line_->ask(line, answer_name, answer, deadline_us_);
    if (came == status::ok) return answer;
    line_->lose_step();
    if (came == status::peer_lost) throw_lost(answer_name);
    throw_error(status::timeout,
                "%s, rank %d of %d: the launcher has not answered (%s); see its own output, or raise "
                "COLLX_TIMEOUT_US",
                where, me_.rank, me_.size, answer_name);
  }

  [[noreturn]] COLLX_COLD void throw_lost(char const* what) const {
    throw_error(status::system_failure,
                "%s, rank %d of %d: the launcher has closed the socket of PMI_FD (%s), as it does after "
                "MPI_Finalize, and when a process that has it has ended; connect before, or set "
                "COLLX_RENDEZVOUS=file:PATH",
                where, me_.rank, me_.size, what);
  }
  [[noreturn]] COLLX_COLD void throw_refused(char const* what, pmi_answer const& said) const {
    throw_error(status::system_failure,
                "%s, rank %d of %d: the launcher refuses %s (\"%.100s\"); set COLLX_RENDEZVOUS=file:PATH or "
                "tcp:HOST:PORT instead",
                where, me_.rank, me_.size, what, said.line);
  }

  static constexpr std::uint64_t patience_us = 2'000'000;

  launch const& me_;
  pmi_line* line_ = nullptr;
  unsigned meeting_ = 0;
  std::uint64_t began_us_ = now_us(), deadline_us_ = 0;
  char store_[257] = "";  // the launcher's name of this job's values; at most 256
  char text_[text_bytes_max] = "";
};

}  // namespace collx::inline abi_1::bootstrap
