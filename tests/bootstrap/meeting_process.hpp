// SPDX-License-Identifier: Apache-2.0
// Forked processes that meet over the loopback interface, and parts of a rank that a test plays by hand.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "collx/bootstrap/network.hpp"
#include "net/reserved_port.hpp"
#include "require.hpp"

namespace meeting {

namespace bootstrap = collx::bootstrap;
namespace net = collx::net;
using collx::now_us;
using collx::rank_t;
using collx::status;

inline constexpr char const* the_secret = "the secret of these tests";
inline constexpr std::uint64_t long_us = 60'000'000;

// How a process differs from an ordinary rank.
struct plan {
  rank_t rank = 0, size = 1;
  std::string place;                // COLLX_RENDEZVOUS
  std::string secret = the_secret;  // empty: none
  std::uint64_t timeout_us = long_us;
  net::protection protects = net::protection::none;
  std::uint32_t flow_count = 1;
  net::port_range ports{};
  std::uint64_t strangers_min = 0;  // as many are counted at least
};

inline std::uint64_t sum_of(bootstrap::network_membership const& all) {
  std::uint64_t sum = 0;
  for (net::address const& each : all.addresses) {
    std::byte wire[net::address::wire_bytes];
    each.encode(wire);
    for (std::byte const byte : wire) sum = sum * 31 + static_cast<std::uint64_t>(byte);
  }
  for (std::uint64_t const each : all.hosts) sum = sum * 31 + each;
  return sum;
}

// Sums the ranks up the tree, over the connections that the meeting left open.
inline rank_t sum_up_the_tree(bootstrap::network_membership& all) {
  rank_t sum = all.rank;
  for (net::owned_fd const& each : all.children) {
    rank_t below = 0;
    require(net::ready_before(each.get(), POLLIN, now_us() + long_us), "a child is silent");
    require(recv(each.get(), &below, sizeof below, 0) == sizeof below, "a child has gone");
    sum += below;
  }
  if (all.rank != 0)
    require(send(all.parent.get(), &sum, sizeof sum, MSG_NOSIGNAL) == sizeof sum, "the parent has gone");
  return sum;
}

// Every rank dials the next one, and lets in the one before.
inline void shake_hands(bootstrap::network_membership& all, bootstrap::network_settings const& chosen) {
  rank_t const next = (all.rank + 1) % all.size, before = (all.rank + all.size - 1) % all.size;
  net::caller call(all.addresses[static_cast<std::size_t>(next)],
                   {net::purpose::link, all.rank, next, all.size, 0, chosen.flow_count, chosen.protects},
                   all.credentials, chosen.sockets, now_us() + long_us, net::unanswered::means_lost);
  net::guest who;
  bool came = false;
  status reached = status::pending;
  while (reached == status::pending || !came) {
    reached = call.progress();
    came = all.gate.poll(who) || came;
    require(reached == status::pending || reached == status::ok, "the next rank does not let this one in");
    if (reached == status::pending || !came)
      bootstrap::wait_for(bootstrap::ready_for(call), bootstrap::readable(all.gate.fd()), now_us() + 50'000);
  }
  require(who.who.from == before, "somebody else came");
}

inline net::credentials keys() {
  return {net::secret::of(std::span(the_secret, std::strlen(the_secret))), net::job_number("")};
}

// The socket of a caller that is let in.
inline net::owned_fd reach(net::caller call) {
  while (call.progress() == status::pending)
    bootstrap::wait_for(bootstrap::ready_for(call), bootstrap::readable(-1), call.due_us());
  require(call.progress() == status::ok, "not let in");
  return call.take();
}

template <class Message>
Message heard(net::owned_fd const& from) {
  std::byte text[Message::bytes_count];
  require(net::ready_before(from.get(), POLLIN, now_us() + long_us), "silence");
  require(recv(from.get(), text, sizeof text, MSG_WAITALL) == static_cast<ssize_t>(sizeof text),
          "the other end has gone");
  Message what;
  require(Message::decode(text, what), "nonsense");
  return what;
}

template <class Message>
Message heard(net::line& from) {
  std::byte text[Message::bytes_count];
  for (std::size_t have = 0; have < sizeof text;) {
    require(bootstrap::hear(from, text, sizeof text, have), "the other end has gone");
    if (have < sizeof text)
      bootstrap::wait_for(bootstrap::readable(from.get()), bootstrap::readable(-1), now_us() + long_us);
  }
  Message what;
  require(Message::decode(text, what), "nonsense");
  return what;
}

// As reach(), encrypted; this side has not greeted yet.
inline net::line line_to(net::caller call, net::tls_context const& tls) {
  while (call.progress() == status::pending)
    bootstrap::wait_for(bootstrap::ready_for(call), bootstrap::readable(-1), call.due_us());
  require(call.progress() == status::ok, "not let in");
  return {call, &tls};
}

// By hand, what a rank does until rank 0 has its registration. `listening`: where its children will call. The
// connection to rank 0.
inline net::owned_fd register_by_hand(rank_t rank, rank_t size, std::string const& place,
                                      net::owned_fd const& listening) {
  bootstrap::registration mine;
  mine.entry = {net::local_address(listening.get()), bootstrap::sharing_identity()};
  mine.tree_gate = mine.entry.gate;
  std::byte said[bootstrap::registration::bytes_count];
  mine.encode(said);
  net::host_and_port at;
  require(net::host_and_port::parse(place.c_str() + 4, at), "no place");
  auto to_store = reach({net::address::loopback(at.port),
                         {net::purpose::store, rank, 0, size, 0},
                         keys(),
                         {},
                         now_us() + long_us});
  require(send(to_store.get(), said, sizeof said, MSG_NOSIGNAL) == sizeof said, "rank 0 has gone");
  return to_store;
}
// Of one that nobody will find.
inline net::owned_fd register_by_hand(rank_t rank, rank_t size, std::string const& place) {
  return register_by_hand(rank, size, place, net::listen_at(net::address::loopback(0), {}));
}

// What a rank says to rank 0 behind its registration: good news are that it has reached its parent.
inline void tell(net::owned_fd const& to_store, bootstrap::news const& word) {
  std::byte text[bootstrap::news::bytes_count];
  word.encode(text);
  require(send(to_store.get(), text, sizeof text, MSG_NOSIGNAL) == sizeof text, "rank 0 has gone");
}

// And until its parent has let it in, and rank 0 knows. The connection to its parent.
inline net::owned_fd enter_tree(rank_t rank, rank_t size, std::string const& place) {
  auto const to_store = register_by_hand(rank, size, place);
  auto const session = heard<bootstrap::receipt>(to_store).session;
  auto const parent = heard<bootstrap::direction>(to_store).parent;
  auto to_parent = reach({parent,
                          {net::purpose::tree, rank, bootstrap::tree_parent(rank), size, 0},
                          keys().for_job(session),
                          {},
                          now_us() + long_us});
  tell(to_store, {});
  return to_parent;
}

// By hand and encrypted, a child of rank 0 until rank 0 has let it in as its parent: it has not greeted
// there.
struct encrypted_child {
  net::tls_context tls = net::tls_context::create();
  net::line to_store, to_parent;

  encrypted_child(rank_t rank, rank_t size, std::string const& place) {
    auto const protects = net::protection::tls;
    net::host_and_port at;
    require(net::host_and_port::parse(place.c_str() + 4, at), "no place");
    to_store = line_to({net::address::loopback(at.port),
                        {net::purpose::store, rank, 0, size, 0, 1, protects},
                        keys(),
                        {},
                        now_us() + long_us},
                       tls);
    require(bootstrap::greet(to_store, now_us() + long_us), "rank 0 does not greet");
    // Of one that nobody will find.
    bootstrap::registration mine;
    mine.entry = {net::local_address(net::listen_at(net::address::loopback(0), {}).get()),
                  bootstrap::sharing_identity()};
    mine.tree_gate = mine.entry.gate;
    say(to_store, mine);
    auto const session = heard<bootstrap::receipt>(to_store).session;
    auto const parent = heard<bootstrap::direction>(to_store).parent;
    to_parent = line_to({parent,
                         {net::purpose::tree, rank, 0, size, 0, 1, protects},
                         keys().for_job(session),
                         {},
                         now_us() + long_us},
                        tls);
  }

  template <class Message>
  static void say(net::line& to, Message const& what) {
    std::byte text[Message::bytes_count];
    what.encode(text);
    require(to.send(text) == static_cast<ssize_t>(sizeof text), "rank 0 has gone");
  }
};

// A process that meets the others, and what became of it.
class process {
 public:
  explicit process(plan const& its) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) live(its, ends[1]);
    close(ends[1]);
    text_.reset(ends[0]);
  }
  process(process&& other) noexcept : pid_(std::exchange(other.pid_, 0)), text_(std::move(other.text_)) {}
  process& operator=(process&&) = delete;
  ~process() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] int text() const { return text_.get(); }
  // Gives it a millisecond, in which it must not end: for loops that wait for something it does.
  void let_go_on() {
    if (net::ready_before(text_.get(), POLLIN, now_us() + 1000)) FAIL("a rank has ended: " << said());
  }

  void end() const { REQUIRE(kill(pid_, SIGKILL) == 0); }
  void stop() const {
    REQUIRE(kill(pid_, SIGSTOP) == 0);
    REQUIRE(waitpid(pid_, nullptr, WUNTRACED) == pid_);
  }
  void go_on() const { REQUIRE(kill(pid_, SIGCONT) == 0); }

  // Waits for its end and returns what it said: "RANK of SIZE knows TABLE", or its error.
  std::string said() {
    std::string all;
    char part[512];
    for (ssize_t got; (got = read(text_.get(), part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(got));
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
    return all;
  }

 private:
  [[noreturn]] static void live(plan const& its, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(300);
    std::string text;
    try {
      setenv("COLLX_RENDEZVOUS", its.place.c_str(), 1);
      bootstrap::launch me;
      me.rank = its.rank;
      me.size = its.size;
      me.rendezvous = std::getenv("COLLX_RENDEZVOUS");
      bootstrap::network_settings chosen;
      chosen.timeout_us = its.timeout_us;
      chosen.protects = its.protects;
      chosen.flow_count = its.flow_count;
      chosen.sockets.ports = its.ports;
      chosen.told = 100 + static_cast<std::uint64_t>(its.rank);
      auto all = bootstrap::meet_over_network(
          me, chosen,
          its.secret.empty() ? net::secret()
                             : net::secret::of(std::span(its.secret.data(), its.secret.size())));
      require(all.rank == its.rank && all.size == its.size, "another rank or size");
      require(all.told == 100, "not rank 0's number");
      require(all.dialled <= 2, "too many connections");
      require(all.children.size() <= 4, "too many children");
      // At rank 0 each rank once, and perhaps one that is refused because there is such a rank already.
      std::uint64_t const surplus = all.accepted - all.children.size();
      auto const others = static_cast<std::uint64_t>(all.size - 1);
      require(its.rank == 0 ? surplus == others || surplus == others + 1 : surplus == 0,
              "too many connections to this rank");
      require(all.strangers >= its.strangers_min, "not all strangers were counted");
      for (net::address const& each : all.addresses)
        require(its.ports.is_any() || (each.port >= its.ports.first && each.port <= its.ports.last),
                "a port outside");
      for (std::uint64_t const host : all.hosts) require(host == all.hosts[0], "hosts differ");
      if (all.size > 1) shake_hands(all, chosen);
      // The tree's connections are closed where nobody else could use them.
      bool const kept = !net::encrypts(its.protects);
      require(kept || !all.parent, "an encrypted connection was kept");
      require(!kept || sum_up_the_tree(all) == all.size * (all.size - 1) / 2 || all.rank != 0, "another sum");
      text = std::to_string(all.rank) + " of " + std::to_string(all.size) + " knows " +
             std::to_string(sum_of(all));
    } catch (std::exception const& failure) {
      text = failure.what();
    }
    (void)!write(out, text.data(), text.size());
    _exit(0);
  }

  pid_t pid_ = 0;
  net::owned_fd text_;
};

// A place that is this program's until it ends.
inline std::string free_place(std::uint8_t version = 4) {
  static std::vector<reserved_port> kept;
  kept.emplace_back(version);
  return std::string("tcp:") + net::address_text(kept.back().where()).text;
}

inline plan ordinary(rank_t rank, rank_t size, std::string const& place) {
  plan its;
  its.rank = rank;
  its.size = size;
  its.place = place;
  return its;
}

inline bool holds(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace meeting
