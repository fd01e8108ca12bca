// SPDX-License-Identifier: Apache-2.0
// What a launcher of MPICH's kind (Hydra) and the processes that it starts say to each other: lines of words
// "NAME=VALUE" over a socket that a process has from its birth, whose number is in PMI_FD. It is the wire
// protocol of PMI-1: Balaji, Buntinas, Goodell, Gropp, Krishna, Lusk, Thakur: PMI: A Scalable Parallel
// Process-Management Interface for Extreme-Scale Systems (2010). No library is needed for it.
#pragma once

#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include "collx/core/clock.hpp"
#include "collx/core/error.hpp"
#include "collx/net/fd.hpp"

namespace collx::inline abi_1::bootstrap {

// A line of the launcher's. What it says is believed as far as it is a word of a line that fits.
struct pmi_answer {
  static constexpr std::size_t bytes_max = 2048;  // values have at most 1024, by what launchers say
  char line[bytes_max] = "";

  // The value of the word NAME=VALUE: up to the next space. False: there is none, or it is longer than `out`.
  template <std::size_t Size>
  [[nodiscard]] COLLX_COLD bool value(char const* name, char (&out)[Size]) const noexcept {
    std::size_t const length = std::strlen(name);
    for (char const* word = line; *word != '\0';) {
      std::size_t const bytes = std::strcspn(word, " ");
      if (bytes > length && std::strncmp(word, name, length) == 0 && word[length] == '=') {
        std::size_t const rest = bytes - length - 1;
        if (rest >= Size) return false;
        std::memcpy(out, word + length + 1, rest);
        out[rest] = '\0';
        return true;
      }
      word += bytes;
      word += std::strspn(word, " ");
    }
    return false;
  }
  [[nodiscard]] COLLX_COLD bool is(char const* name, char const* expected) const noexcept {
    char said[64];
    return value(name, said) && std::strcmp(said, expected) == 0;
  }
  // Whether the launcher has done what it was asked for. Only some answers say so.
  [[nodiscard]] COLLX_COLD bool is_good() const noexcept { return is("rc", "0"); }
};

// This process's end. One for a process: where another user of it (MPI) has asked something, nobody else may
// ask before that has been answered, so call MPI_Init and MPI_Finalize, and connect(), one after the other.
class pmi_line {
 public:
  explicit pmi_line(int fd) noexcept : fd_(fd), owner_(getpid()) {}
  pmi_line(pmi_line const&) = delete;
  // Whoever has asked something and goes without a word is taken for lost by Hydra, which then ends the job.
  ~pmi_line() {
    if (!has_asked_ || owner_ != getpid()) return;  // after fork() it is the parent's
    pmi_answer unused;
    if (send("cmd=finalize\n")) (void)receive("finalize_ack", unused, now_us() + patience_us);
  }

  // Sends a line (with its end), and waits for the line that begins with cmd=`answer_name`. pending: none has
  // come by the deadline; peer_lost: the launcher has closed its end, or never kept to this protocol.
  [[nodiscard]] COLLX_COLD status ask(char const* line, char const* answer_name, pmi_answer& answer,
                                      std::uint64_t deadline_us) noexcept {
    return send(line) ? receive(answer_name, answer, deadline_us) : status::peer_lost;
  }

  // How many meetings there have been: names of what ranks leave with the launcher are made of it, and all
  // ranks count alike.
  [[nodiscard]] unsigned next_meeting() noexcept { return ++meetings_; }
  // An answer that comes after its deadline would be taken for that to a later question.
  void lose_step() noexcept { is_out_of_step_ = true; }
  [[nodiscard]] bool is_out_of_step() const noexcept { return is_out_of_step_; }

 private:
  static constexpr std::uint64_t patience_us = 2'000'000;

  // The launcher reads at once, and questions are shorter than any socket's buffer: this does not wait.
  [[nodiscard]] COLLX_COLD bool send(char const* line) noexcept {
    has_asked_ = true;
    std::size_t const bytes = std::strlen(line);
    ssize_t sent;
    do sent = ::send(fd_, line, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes);
  }

  // Lines of other names answer what nobody waits for any more.
  [[nodiscard]] COLLX_COLD status receive(char const* name, pmi_answer& answer,
                                          std::uint64_t deadline_us) noexcept {
    for (;;) {
      status const got = receive_line(answer, deadline_us);
      if (got != status::ok || answer.is("cmd", name)) return got;
    }
  }

  // Byte by byte: what follows the line may be for another user of this socket.
  [[nodiscard]] COLLX_COLD status receive_line(pmi_answer& answer, std::uint64_t deadline_us) noexcept {
    for (std::size_t used = 0; used < pmi_answer::bytes_max;) {
      if (!net::ready_before(fd_, POLLIN, deadline_us)) return status::pending;
      char byte;
      ssize_t const got = recv(fd_, &byte, 1, MSG_DONTWAIT);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got != 1) return status::peer_lost;
      answer.line[used] = byte == '\n' ? '\0' : byte;
      if (byte == '\n') return status::ok;
      ++used;
    }
    return status::peer_lost;
  }

  int fd_;
  pid_t owner_;
  unsigned meetings_ = 0;
  bool has_asked_ = false, is_out_of_step_ = false;
};

}  // namespace collx::inline abi_1::bootstrap
