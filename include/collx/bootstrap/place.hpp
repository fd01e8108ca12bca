// SPDX-License-Identifier: Apache-2.0
// Where rank 0 of a job is to be found, as the environment tells it.
#pragma once

#include <initializer_list>

#include "collx/bootstrap/pmi_board.hpp"
#include "collx/core/fnv1a.hpp"
#include "collx/net/port_range.hpp"

namespace collx::inline abi_1::bootstrap {

// The first name of a list as Slurm writes them: "node[03-07,9],login" is node03. Empty if it is longer than
// `out`.
template <std::size_t Size>
COLLX_COLD void first_of_node_list(char const* list, char (&out)[Size]) noexcept {
  std::size_t used = 0;
  bool in_brackets = false, past_first = false;
  for (; *list != '\0' && (in_brackets || *list != ','); ++list) {
    if (*list == '[') in_brackets = true;
    else if (*list == ']') in_brackets = past_first = false;
    else if (in_brackets && (*list == '-' || *list == ',')) past_first = true;
    else if (!past_first && used < Size) out[used++] = *list;
  }
  out[used < Size ? used : 0] = '\0';
}

// An address, or a file or the launcher's board, into which rank 0 writes one.
struct meeting_place {
  net::host_and_port at;  // its port is 0 with the others
  char const* file = nullptr;
  notice_board* board = nullptr;
  char const* told_by = "";  // the variable, for messages
  // Of the job, where the port is made of it: another one may have the same port.
  char job[sizeof job_socket::text] = "";

  // In this order: COLLX_RENDEZVOUS=file:PATH or tcp:HOST:PORT; MASTER_ADDR and MASTER_PORT, but where
  // torchrun says that all ranks are on this host; the launcher's board; the loopback address, if the
  // launcher says that all ranks are on this host; the first node of a Slurm step; `by_pmi`, if the launcher
  // can be asked so. Throws error (bad_argument) that says what to set.
  [[nodiscard]] COLLX_COLD static meeting_place of(launch const& me, pmi_board* by_pmi = nullptr) {
    meeting_place found;
    if (found.by_rendezvous(me) || (is_of_torchrun() && found.by_one_host(me)) || found.by_master() ||
        found.by_board(me) || found.by_one_host(me) || found.by_slurm(me) || found.by_pmi_of(by_pmi))
      return found;
    if (me.rendezvous != nullptr) {
      found.told_by = "COLLX_RENDEZVOUS";
      found.refuse(me.rendezvous,
                   "a path is where ranks of transport::shm meet; set it to file:PATH or tcp:HOST:PORT, or "
                   "set MASTER_ADDR and MASTER_PORT");
    }
    throw error(
        status::bad_argument,
        "nobody says where rank 0 is: set MASTER_ADDR and MASTER_PORT, or COLLX_RENDEZVOUS to tcp:HOST:PORT "
        "or to file:PATH of a file that all ranks can reach, the same on every rank");
  }

 private:
  [[nodiscard]] bool by_rendezvous(launch const& me) {
    char const* const text = me.rendezvous;
    if (text == nullptr) return false;
    told_by = "COLLX_RENDEZVOUS";
    bool const is_file = std::strncmp(text, "file:", 5) == 0, is_address = std::strncmp(text, "tcp:", 4) == 0;
    if (is_file && text[5] != '\0') file = text + 5;
    else if (is_file || (is_address && !net::host_and_port::parse(text + 4, at)))
      refuse(text, "set it to file:PATH, tcp:HOST:PORT or tcp:[IPV6]:PORT");
    return is_file || is_address;  // or it is the path of a socket, which is shm's
  }

  [[nodiscard]] bool by_master() {
    char const* const host = std::getenv("MASTER_ADDR");
    char const* const port = std::getenv("MASTER_PORT");
    if (host == nullptr && port == nullptr) return false;
    told_by = "MASTER_ADDR";
    if (host == nullptr || port == nullptr)
      throw error(status::bad_argument,
                  host != nullptr ? "MASTER_ADDR is set but MASTER_PORT is not; set both on every rank"
                                  : "MASTER_PORT is set but MASTER_ADDR is not; set both on every rank");
    // torchrun's own store listens at MASTER_PORT.
    bool const is_taken = is_of_torchrun();
    at.port = static_cast<std::uint16_t>(environment::number("MASTER_PORT", 0, 1, is_taken ? 65534 : 65535) +
                                         is_taken);
    if (host[0] == '\0' || std::strlen(host) >= sizeof at.host)
      refuse(host, "set it to the name or address of the host of rank 0");
    std::strcpy(at.host, host);
    return true;
  }

  [[nodiscard]] bool by_board(launch const& me) {
    board = me.board;
    if (board != nullptr) told_by = me.by->name;
    return board != nullptr;
  }

  // It sets MASTER_ADDR itself, to the host's full name where it finds no better one: an address of the
  // network, where nobody goes without a secret, though all ranks may be on this host.
  [[nodiscard]] static bool is_of_torchrun() noexcept {
    return std::getenv("TORCHELASTIC_RUN_ID") != nullptr;
  }

  // Its name may be all that tells one mpirun of an allocation from another.
  [[nodiscard]] bool by_one_host(launch const& me) {
    if (!me.is_one_host() || (me.size > 1 && me.by == nullptr)) return false;
    if (me.size > 1) {
      job_socket const name(me);
      if (name.text[0] == '\0') return false;
      std::strcpy(job, name.text);
      told_by = me.by->job[0] != nullptr ? me.by->job[0] : me.by->rank;
      at.port = port_for({job});
    }
    std::strcpy(at.host, "127.0.0.1");
    return true;
  }

  // Where Slurm's own tasks are, or ranks that somebody has numbered by hand as these. An MPI launcher in an
  // allocation puts rank 0 where it likes, and its ranks may be told of a step that is not theirs, with
  // another first node: that of the daemons which start them.
  [[nodiscard]] bool by_slurm(launch const& me) {
    if (me.by != nullptr && me.by->places_ranks && !are_numbers_of_slurm(me.rank, me.size)) return false;
    char const* list = std::getenv("SLURM_STEP_NODELIST");
    told_by = list != nullptr ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
    if (list == nullptr) list = std::getenv("SLURM_JOB_NODELIST");
    char const* const number = std::getenv("SLURM_JOB_ID");
    if (list == nullptr || number == nullptr) return false;
    first_of_node_list(list, at.host);
    if (at.host[0] == '\0') refuse(list, "set MASTER_ADDR and MASTER_PORT");
    // Slurm sorts the nodes of a step of several components, or with --distribution=arbitrary.
    char const* const own = std::getenv("SLURMD_NODENAME");
    if (me.rank == 0 && own != nullptr && std::strcmp(own, at.host) != 0)
      refuse(list,
             "rank 0 runs on another node than the first of these, where others look for it; set MASTER_ADDR "
             "and MASTER_PORT, or COLLX_RENDEZVOUS to file:PATH of a file that all ranks can reach");
    std::initializer_list<char const*> const names = {number, std::getenv("SLURM_STEP_ID"), me.job};
    at.port = port_for(names);
    std::snprintf(job, sizeof job, "slurm-%016llx",
                  static_cast<unsigned long long>(mixed(names, fnv1a_64_of_nothing, fnv1a_64<char>)));
    return true;
  }

  // Last: a process that has asked must not end without a word (pmi_line.hpp), and what is told in the
  // environment has no such conditions.
  [[nodiscard]] bool by_pmi_of(pmi_board* asked) {
    if (asked == nullptr || !asked->can_be_asked()) return false;
    board = asked;
    told_by = "PMI";
    return true;
  }

  // Of COLLX_PORTS, or 10000 to 29999: below the ports that the system gives to whoever dials. Of these, two
  // jobs that meet on one host at a time get the same one rarely. Then the second is told that its port is
  // taken.
  [[nodiscard]] static std::uint16_t port_for(std::initializer_list<char const*> names) {
    std::uint32_t const number = mixed(names, fnv1a_32_of_nothing, fnv1a_32<char>);
    net::port_range const chosen = net::port_range::from_environment();
    return chosen.is_any() ? net::port_range{10000, 29999}.at(number) : chosen.place(number);
  }

  // Of names, each with its zero; one that is not there counts as empty.
  template <class Number, class Mix>
  [[nodiscard]] static Number mixed(std::initializer_list<char const*> names, Number number, Mix mix) {
    for (char const* each : names) {
      char const* const name = each != nullptr ? each : "";
      number = mix(name, std::strlen(name) + 1, number);
    }
    return number;
  }

  [[noreturn]] COLLX_COLD void refuse(char const* value, char const* advice) const {
    throw_error(status::bad_argument, "%s is \"%.160s\"; %s", told_by, value, advice);
  }
};

}  // namespace collx::inline abi_1::bootstrap
