// SPDX-License-Identifier: Apache-2.0
// Ranks that hand each other rank 0's address by PMI, and a launcher of these tests which keeps to the
// protocol or does not. tests/hosts has MPICH's own.
// thread sanitizer: no, each rank is a process of one thread
// ctest: LABELS waits
#include "collx/bootstrap/pmi_board.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/wait.h>

#include "bootstrap/connecting.hpp"

namespace {

using collx::now_us;
using collx::rank_t;
using collx::status;
using collx::bootstrap::launch;
using collx::bootstrap::pmi_answer;
using collx::bootstrap::pmi_board;
using collx::bootstrap::pmi_line;

constexpr std::uint64_t long_us = 100'000'000, short_us = 300'000;

// What an answer becomes on its way to a rank. Empty: nothing is said. "<close>": the launcher's end is
// closed.
using distortion = std::function<std::string(std::string const& asked, std::string const& answer)>;

// The launcher's end of the sockets of some ranks, which are processes of its own, as Hydra's are.
class hydra {
 public:
  explicit hydra(distortion distort = {}) : distort_(std::move(distort)) {}
  hydra(hydra const&) = delete;
  ~hydra() {
    for (rank& each : ranks_) {
      close(each.socket), close(each.text);
      if (!each.is_absent) continue;
      kill(each.process, SIGKILL);
      waitpid(each.process, nullptr, 0);
    }
  }

  // A process that never says anything, nor ends before this does.
  void start_absent(rank_t me, rank_t size) {
    start(me, size, [](launch const&) {
      for (;;) pause();
      return std::string();
    });
    ranks_.back().is_absent = true;
  }

  // A process that does what `be` does and says what that returns. It is rank number `me` of `size`.
  template <class Be>
  void start(rank_t me, rank_t size, Be const& be) {
    int ends[2], text[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    REQUIRE(pipe2(text, O_CLOEXEC) == 0);
    pid_t const process = fork();
    REQUIRE(process >= 0);
    if (process == 0) {
      for (rank const& other : ranks_) close(other.socket);
      close(ends[0]);
      live(me, size, ends[1], text[1], be);
    }
    close(ends[1]), close(text[1]);
    ranks_.push_back({process, ends[0], text[0], ""});
  }

  // Answers until all have ended but for the absent ones. What each has said.
  std::vector<std::string> serve() {
    std::vector<std::string> said(ranks_.size());
    std::size_t alive = 0;
    for (rank const& each : ranks_) alive += !each.is_absent;
    while (alive > 0) {
      std::vector<pollfd> all;
      for (rank const& each : ranks_)
        all.push_back({each.socket, POLLIN, 0}), all.push_back({each.text, POLLIN, 0});
      REQUIRE(poll(all.data(), all.size(), -1) > 0);
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        rank& each = ranks_[i];
        if (all[2 * i].revents != 0) listen_to(each);
        if (all[2 * i + 1].revents != 0 && !hear(each, said[i])) --alive;
      }
    }
    return said;
  }

  std::vector<std::string> asked;  // all of it
  int finalized = 0;

 private:
  struct rank {
    pid_t process;
    int socket, text;    // -1: closed
    std::string half;    // of a line
    bool waits = false;  // in a barrier
    bool is_absent = false;
  };

  template <class Be>
  [[noreturn]] static void live(rank_t me, rank_t size, int socket, int text, Be const& be) {
    connecting::forget_variables();
    setenv("PMI_RANK", std::to_string(me).c_str(), 1);
    setenv("PMI_SIZE", std::to_string(size).c_str(), 1);
    setenv("PMI_FD", std::to_string(socket).c_str(), 1);
    std::string said;
    try {
      said = be(launch::from_environment());
    } catch (std::exception const& failure) {
      said = failure.what();
    }
    (void)!write(text, said.data(), said.size());
    _exit(0);
  }

  // Whether it goes on.
  static bool hear(rank& each, std::string& said) {
    char part[512];
    ssize_t const got = read(each.text, part, sizeof part);
    if (got > 0) return said.append(part, static_cast<std::size_t>(got)), true;
    close(each.text);
    each.text = -1;
    CHECK(waitpid(each.process, nullptr, 0) == each.process);
    return false;
  }

  void listen_to(rank& each) {
    char part[512];
    ssize_t const got = read(each.socket, part, sizeof part);
    if (got <= 0) return hang_up(each);
    each.half.append(part, static_cast<std::size_t>(got));
    for (std::size_t end; (end = each.half.find('\n')) != std::string::npos;) {
      std::string const line = each.half.substr(0, end);
      each.half.erase(0, end + 1);
      asked.push_back(line);
      answer(each, line);
    }
  }

  static void hang_up(rank& each) {
    if (each.socket >= 0) close(each.socket);
    each.socket = -1;
  }

  [[nodiscard]] static std::string word(std::string const& line, std::string const& name) {
    std::size_t const at = line.find(" " + name + "=");
    if (at == std::string::npos) return "";
    std::size_t const begin = at + name.size() + 2;
    return line.substr(begin, line.find(' ', begin) - begin);
  }

  void answer(rank& each, std::string const& line) {
    if (line == "cmd=init pmi_version=1 pmi_subversion=1")
      say(each, line, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    else if (line == "cmd=get_my_kvsname") say(each, line, "cmd=my_kvsname kvsname=kvs_1_0_host");
    else if (line == "cmd=finalize") ++finalized, say(each, line, "cmd=finalize_ack");
    else if (line == "cmd=barrier_in") bring(each, line);
    else if (word(line, "kvsname") != "kvs_1_0_host") say(each, line, "cmd=error rc=-1 msg=no_such_store");
    else if (line.starts_with("cmd=put ")) {
      bool const is_new = put_.emplace(word(line, "key"), word(line, "value")).second;
      say(each, line, is_new ? "cmd=put_result rc=0 msg=success" : "cmd=put_result rc=-1 msg=duplicate_key");
    } else if (line.starts_with("cmd=get ")) {
      auto const found = put_.find(word(line, "key"));
      say(each, line,
          found == put_.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                              : "cmd=get_result rc=0 msg=success value=" + found->second);
    } else FAIL_CHECK("a rank asks " << line);
  }

  void bring(rank& each, std::string const& line) {
    each.waits = true;
    for (rank const& other : ranks_)
      if (!other.waits) return;
    for (rank& other : ranks_) other.waits = false, say(other, line, "cmd=barrier_out");
  }

  void say(rank& each, std::string const& asked_line, std::string const& text) {
    std::string const said = distort_ ? distort_(asked_line, text + "\n") : text + "\n";
    if (said == "<close>") return hang_up(each);
    for (std::size_t at = 0; at < said.size();) {  // byte by byte: a rank sees parts of lines
      if (send(each.socket, &said[at], 1, MSG_NOSIGNAL) != 1) return hang_up(each);
      ++at;
    }
  }

  distortion distort_;
  std::vector<rank> ranks_;
  std::map<std::string, std::string> put_;
};

// As a meeting does it: rank 0 tells, the others read.
std::string meet(launch const& me, std::uint64_t wait_us, std::string const& address = "10.0.0.1:2900") {
  pmi_board board(me);
  if (!board.can_be_asked()) return "nobody to ask";
  std::uint64_t const deadline_us = now_us() + wait_us;
  if (me.rank == 0) return board.write(address.c_str(), deadline_us), "told";
  std::string const first = board.read(deadline_us), again = board.read(deadline_us);
  return first == again ? first : "twice not the same";
}

// What a rank of two says if what the launcher answers is distorted.
std::vector<std::string> distorted(distortion const& how, std::uint64_t wait_us = long_us) {
  hydra one(how);
  for (rank_t r = 0; r < 2; ++r) one.start(r, 2, [&](launch const& me) { return meet(me, wait_us); });
  return one.serve();
}

// For answers to lines that begin so.
distortion for_lines(std::string const& begin, std::string const& instead) {
  return [=](std::string const& asked, std::string const& answer) {
    return asked.starts_with(begin) ? instead : answer;
  };
}

}  // namespace

TEST_CASE("pmi_answer: words are told apart, whatever else is in the line") {
  pmi_answer answer;
  auto const value = [&](char const* line, char const* name) {
    std::snprintf(answer.line, sizeof answer.line, "%s", line);
    char out[8];
    return answer.value(name, out) ? std::string(out) : std::string("none");
  };
  CHECK(value("cmd=get_result rc=0 msg=success value=1.2:3", "value") == "1.2:3");
  CHECK(value("cmd=get_result rc=0 msg=success value=1.2:3", "rc") == "0");
  CHECK(value("xvalue=1 value=2", "value") == "2");
  CHECK(value("values=1 value=", "value") == "");
  CHECK(value("value=a=b", "value") == "a=b");
  CHECK(value("  value=1", "value") == "1");
  CHECK(value("value", "value") == "none");
  CHECK(value("", "value") == "none");
  CHECK(value("value=1234567", "value") == "1234567");
  CHECK(value("value=12345678", "value") == "none");  // longer than there is room
}

TEST_CASE("pmi_board: ranks learn what rank 0 has written, time after time") {
  for (rank_t const size : {2, 5}) {
    hydra one;
    for (rank_t r = 0; r < size; ++r)
      one.start(r, size, [](launch const& me) {
        return meet(me, long_us, "10.0.0.1:1") + " " + meet(me, long_us, "10.0.0.2:2");
      });
    std::vector<std::string> const said = one.serve();
    CHECK(said[0] == "told told");
    for (std::size_t r = 1; r < said.size(); ++r) CHECK(said[r] == "10.0.0.1:1 10.0.0.2:2");
  }
}

TEST_CASE("pmi_line: whoever has asked says that it ends, once, and nobody else does") {
  hydra one;
  one.start(0, 1, [](launch const&) {
    int const fd = std::atoi(std::getenv("PMI_FD"));
    {
      pmi_line const unused(fd);
    }
    pmi_line line(fd);
    pmi_answer answer;
    REQUIRE(line.ask("cmd=get_my_kvsname\n", "my_kvsname", answer, now_us() + long_us) == status::ok);
    pid_t const child = fork();
    if (child == 0) line.~pmi_line(), _exit(0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    return std::string("ended");
  });
  CHECK(one.serve() == std::vector<std::string>{"ended"});
  CHECK(one.finalized == 1);
  CHECK(one.asked == std::vector<std::string>{"cmd=get_my_kvsname", "cmd=finalize"});
}

TEST_CASE("pmi_board: lines that nobody has asked for are passed over") {
  auto const said = distorted(
      [](std::string const&, std::string const& answer) { return "cmd=something_else rc=-1\n\n" + answer; });
  CHECK(said == std::vector<std::string>{"told", "10.0.0.1:2900"});
}

TEST_CASE("pmi_board: what the launcher refuses is told in its own words") {
  for (std::string const& said : distorted(for_lines("cmd=init", "cmd=response_to_init rc=-1\n")))
    connecting::check_error(said, {"meeting by PMI, rank", "refuses init", "rc=-1", "COLLX_RENDEZVOUS"});
  for (std::string const& said : distorted(for_lines("cmd=get_my", "cmd=my_kvsname\n")))
    connecting::check_error(said, {"refuses get_my_kvsname", "\"cmd=my_kvsname\""});
  for (std::string const& said :
       distorted(for_lines("cmd=get_my", "cmd=my_kvsname kvsname=" + std::string(257, 'x') + "\n")))
    connecting::check_error(said, {"refuses get_my_kvsname"});
  for (std::string const& said : distorted(for_lines("cmd=put", "cmd=put_result rc=-1 msg=full\n")))
    connecting::check_error(said, {"refuses put", "msg=full"});
}

TEST_CASE("pmi_board: an address that is none, or too long, is not taken") {
  for (char const* wrong :
       {"cmd=get_result rc=-1 msg=key_not_found value=unknown\n", "cmd=get_result rc=0\n",
        "cmd=get_result rc=0 value=\n",
        "cmd=get_result rc=0 value=0123456789012345678901234567890123456789012345678901234567890"
        "12345678901234567890123456789012345\n"}) {
    auto const said = distorted(for_lines("cmd=get ", wrong));
    CHECK(said[0] == "told");
    connecting::check_error(said[1], {"rank 1 of 2", "does not have rank 0's address", "cmd=get_result"});
  }
}

TEST_CASE("pmi_board: a launcher that closes its end, or speaks another language, is an error at once") {
  for (char const* when : {"cmd=init", "cmd=get_my", "cmd=put", "cmd=barrier_in"})
    for (std::string const& said : distorted(for_lines(when, "<close>")))
      connecting::check_error(said, {"has closed the socket of PMI_FD", "COLLX_RENDEZVOUS=file:PATH"});
  for (std::string const& said : distorted(for_lines("cmd=init", std::string(3000, 'x') + "\n")))
    connecting::check_error(said, {"has closed the socket"});
}

TEST_CASE("pmi_board: a launcher that does not answer is named at the deadline") {
  for (char const* when : {"cmd=init", "cmd=get_my", "cmd=put"})
    for (std::string const& said : distorted(for_lines(when, ""), short_us))
      connecting::check_error(said, {"the launcher has not answered", "COLLX_TIMEOUT_US"});
  // Half a line is none.
  for (std::string const& said : distorted(for_lines("cmd=init", "cmd=response_to_init rc=0"), short_us))
    connecting::check_error(said, {"the launcher has not answered (response_to_init)"});
}

TEST_CASE("pmi_board: ranks that do not come are named, and the next meeting by it is refused") {
  hydra one;
  auto const try_twice = [](launch const& me) {
    std::string said;
    for (int times = 0; times < 2; ++times) {
      try {
        said += meet(me, 6'000'000);
      } catch (std::exception const& failure) {
        said += std::string(failure.what()) + "\n";
      }
    }
    return said;
  };
  for (rank_t r = 0; r < 4; ++r) r == 2 ? one.start_absent(r, 4) : one.start(r, 4, try_twice);
  std::vector<std::string> const said = one.serve();
  for (std::size_t const r : {0u, 1u, 3u})
    connecting::check_error(said[r], {"not all ranks have come within ", "knows nothing of 1, rank 2 first",
                                      "an earlier meeting did not come about"});
}

TEST_CASE("pmi_board: it takes a socket that a process above has made, and a launcher which has one") {
  hydra one;
  one.start(0, 1, [](launch const& me) {
    if (!pmi_board(me).can_be_asked()) return std::string("not the launcher's");
    for (char const* wrong : {"", "x", "-1", "100000", "0x3"}) {
      setenv("PMI_FD", wrong, 1);
      if (pmi_board(me).can_be_asked()) return std::string(wrong);
    }
    int own[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, own) != 0) return std::string("no sockets");
    setenv("PMI_FD", std::to_string(own[0]).c_str(), 1);
    if (pmi_board(me).can_be_asked()) return std::string("its own");
    unsetenv("PMI_FD");
    launch nobody;
    return std::string(pmi_board(me).can_be_asked() || pmi_board(nobody).can_be_asked() ? "none" : "right");
  });
  CHECK(one.serve() == std::vector<std::string>{"right"});
}
