// SPDX-License-Identifier: Apache-2.0
// Where rank 0 of a job is to be found, as the environment tells it.
#pragma once

#include <initializer_list>

#include "collx/bootstrap/launcher.hpp"
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

  // In this order: COLLX_RENDEZVOUS=file:PATH or tcp:HOST:PORT; MASTER_ADDR and MASTER_PORT; the launcher's
  // board; the first node of a Slurm step; the loopback address, if the launcher says that all ranks are on
  // this host. Throws error (bad_argument) that says what to set.
  [[nodiscard]] COLLX_COLD static meeting_place of(launch const& me) {
    meeting_place found;
    if (found.by_rendezvous(me) || found.by_master() || found.by_board(me) || found.by_slurm() ||
        found.by_one_host(me))
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
    bool const is_taken = std::getenv("TORCHELASTIC_RUN_ID") != nullptr;
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

  [[nodiscard]] bool by_slurm() {
    char const* list = std::getenv("SLURM_STEP_NODELIST");
    told_by = list != nullptr ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
    if (list == nullptr) list = std::getenv("SLURM_JOB_NODELIST");
    char const* const job = std::getenv("SLURM_JOB_ID");
    if (list == nullptr || job == nullptr) return false;
    first_of_node_list(list, at.host);
    if (at.host[0] == '\0') refuse(list, "set MASTER_ADDR and MASTER_PORT");
    at.port = port_for(job, std::getenv("SLURM_STEP_ID"));
    return true;
  }

  [[nodiscard]] bool by_one_host(launch const& me) {
    if (!me.is_one_host() || (me.job[0] == '\0' && me.size > 1)) return false;
    told_by = me.by == nullptr ? "" : me.by->job[0];
    std::strcpy(at.host, "127.0.0.1");
    at.port = me.size == 1 ? 0 : port_for(me.job, nullptr);
    return true;
  }

  // Of COLLX_PORTS, or 10000 to 29999: below the ports that the system gives to whoever dials. Of these, two
  // jobs that meet on one host at a time get the same one rarely. Then the second is told that its port is
  // taken.
  [[nodiscard]] static std::uint16_t port_for(char const* job, char const* step) {
    std::uint32_t hash = 2166136261u;  // FNV-1a
    for (char const* part : {job, step})
      for (; part != nullptr && *part != '\0'; ++part)
        hash = (hash ^ static_cast<unsigned char>(*part)) * 16777619u;
    net::port_range const chosen = net::port_range::from_environment();
    return chosen.is_any() ? net::port_range{10000, 29999}.at(hash) : chosen.place(hash);
  }

  [[noreturn]] COLLX_COLD void refuse(char const* value, char const* advice) const {
    char text[400];
    std::snprintf(text, sizeof text, "%s is \"%.160s\"; %s", told_by, value, advice);
    throw error(status::bad_argument, text);
  }
};

}  // namespace collx::inline abi_1::bootstrap
