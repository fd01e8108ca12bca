// SPDX-License-Identifier: Apache-2.0
// One rank's part in a meeting over a network: it registers with rank 0, dials its parent in the tree, and
// gets the table of all ranks from it.
#pragma once

#include <sys/resource.h>

#include "collx/bootstrap/host_identity.hpp"
#include "collx/bootstrap/meeting_errors.hpp"
#include "collx/bootstrap/membership.hpp"
#include "collx/bootstrap/tree.hpp"
#include "collx/bootstrap/waiting.hpp"
#include "collx/bootstrap/whereabouts.hpp"

namespace collx::inline abi_1::bootstrap {

// One rank's part in a meeting.
class meeting {
 public:
  meeting(launch const& me, network_settings const& chosen, net::secret const& shared)
      : me_(me),
        chosen_(chosen),
        by_pmi_(me),
        place_(meeting_place::of(me, &by_pmi_)),
        has_secret_(!shared.empty()),
        keys_(shared, net::job_number(place_.job[0] != '\0' ? place_.job : me.job)),
        told_(chosen.told),
        deadline_us_(deadline_in(chosen.timeout_us)),
        where_{me_, place_, chosen_.interfaces, chosen_.sockets, has_secret_, deadline_us_} {
    net::require_secret(chosen.protects, has_secret_);
    if (net::encrypts(chosen.protects)) tls_ = net::tls_context::create();
  }
  meeting(meeting const&) = delete;

  [[nodiscard]] COLLX_COLD network_membership alone() {
    open_gates(net::address::loopback(0));
    network_membership all = membership();
    all.put(0, mine_.entry);
    return all;
  }

  [[nodiscard]] COLLX_COLD network_membership host() {
    allow_descriptors();
    net::owned_fd listening = where_.listen();
    net::address const at = net::local_address(listening.get());
    open_gates(where_.own(at));
    session_ = random_number();
    std::uint64_t const token = place_.file == nullptr ? 0 : random_number();
    store serves(
        net::gate(std::move(listening), keys_for(token), expect(net::purpose::store), chosen_.sockets),
        me_.size, mine_, session_, deadline_us_, tls(), told_);
    tree below(net::gate(std::move(tree_socket_), keys_.for_job(session_), expect(net::purpose::tree),
                         chosen_.sockets),
               0, me_.size, tls());
    where_.tell(at.is_any() ? mine_.tree_gate.with_port(at.port) : at, token);
    removed_file const at_the_end{place_.file};
    for (;;) {
      bool const is_late = now_us() >= deadline_us_;  // asked first: what has come by now counts
      // Who comes when all have come may have the table, and mean the next meeting: it waits at the door, and
      // tries again when that is gone.
      if (!below.has_table()) serves.progress();
      if (serves.failure().kind != news_kind::good) below.fail(serves.failure());
      if (serves.is_complete() && !below.has_table())
        below.set_table([&](rank_t r) { return serves.entry(r); });
      status const now = below.progress();
      if (now == status::ok) break;
      if (now != status::pending) {
        serves.tell_all(below.failure());
        leave(below);
      }
      bool const sends = below.has_table();
      if (is_late)  // and the wait below ends at once
        below.fail(sends ? news{news_kind::never_came, below.missing_child(), 1} : serves.missing());
      wait_for(readable(sends ? -1 : serves.fd()), readable(below.fd()),
               soonest(sends ? deadline_us_ : serves.due_us(), below.due_us()));
    }
    messages_ += serves.messages();
    accepted_ += serves.door().count().welcomed;
    strangers_ += serves.door().count().strangers();
    return result(below);
  }

  [[nodiscard]] COLLX_COLD network_membership join() {
    net::line to_store = reach_store();
    open_gates(where_.own(net::local_address(to_store.get())));
    register_at(to_store);
    tree around(net::gate(std::move(tree_socket_), keys_.for_job(session_), expect(net::purpose::tree),
                          chosen_.sockets),
                me_.rank, me_.size, tls());
    net::address const parent = learn_parent(to_store, around);
    late_word more;
    // It listened before it registered: where nobody does, its process is gone.
    net::caller call(parent, to(tree_parent(me_.rank), net::purpose::tree), keys_.for_job(session_),
                     chosen_.sockets, deadline_us_, net::unanswered::means_lost);
    for (;;) {
      if (!has_parent_) hear_failure(to_store, more, around);
      status const now = around.progress();
      if (now == status::ok) break;
      if (now != status::pending) {
        if (!has_parent_) tell(to_store, around.failure());
        leave(around);
      }
      status const reached = has_parent_ ? status::pending : above_ ? above_.greet() : call.progress();
      if (reached == status::ok && !above_) {
        above_ = line_of(call);
        continue;
      }
      if (reached == status::ok) {
        has_parent_ = true;
        count_call();
        // The connection stays open until the table is here: if it were closed with something that has not
        // been read, the word might be lost with it.
        tell(to_store, {});
        around.set_parent(std::move(above_));
        continue;
      }
      if (reached != status::pending) {
        // Who had let this rank in, or had listened, was there: the call says nothing of why he is not any
        // more.
        if (above_ || reached == status::peer_lost) learn_reason(to_store, more, around);
        if (above_) around.fail({news_kind::left, tree_parent(me_.rank), 1, parent});
        if (around.failure().kind != news_kind::good) continue;
        around.fail({news_kind::never_reached_parent, me_.rank, 1, mine_.entry.gate});
        tell(to_store, around.failure());
        errors_.throw_call(call, reached, tree_parent(me_.rank));
      }
      if (now_us() >= deadline_us_) {
        bool const below = around.has_table();
        rank_t const whom = below ? around.missing_child() : tree_parent(me_.rank);
        around.fail(below ? news{news_kind::never_reached_parent, whom, 1}
                          : news{news_kind::left, whom, 1, parent});
        errors_.throw_meeting(status::timeout,
                              "rank %d has not %s; look at its own output, or raise COLLX_TIMEOUT_US", whom,
                              below ? "come to its parent in the tree" : "sent the table of all ranks");
      }
      bool const calls = !has_parent_ && !above_;
      wait_for(calls ? ready_for(call) : readable(above_.get()), readable(around.fd()),
               readable(has_parent_ ? -1 : to_store.get()),
               soonest(around.due_us(), calls ? call.due_us() : deadline_us_));
    }
    return result(around);
  }

 private:
  // Only what was received is believed: the table is of this rank's own size.
  [[nodiscard]] network_membership membership() {
    network_membership all(me_.rank, me_.size);
    all.credentials = keys_.for_job(session_);
    all.told = told_;
    all.gate =
        net::gate(std::move(link_socket_), all.credentials, expect(net::purpose::link), chosen_.sockets);
    all.messages = messages_;
    all.dialled = dialled_;
    all.accepted = accepted_;
    all.strangers = strangers_;
    return all;
  }

  [[nodiscard]] network_membership result(tree& around) {
    messages_ += around.messages();
    accepted_ += around.door().count().welcomed;
    strangers_ += around.door().count().strangers();
    network_membership all = membership();
    for (rank_t r = 0; r < me_.size; ++r) {
      table_entry line;
      if (!around.entry(r, line))
        errors_.throw_meeting(status::mismatch, "the table of all ranks is broken; use one version");
      all.put(r, line);
    }
    all.parent = around.take_parent();
    all.children = array<net::owned_fd>(around.child_count());
    for (std::size_t i = 0; i < around.child_count(); ++i) all.children[i] = around.take_child(i);
    return all;
  }

  void open_gates(net::address const& at) {
    link_socket_ = net::listen_at(at, chosen_.sockets);
    tree_socket_ = net::listen_at(at, chosen_.sockets);
    mine_.entry.gate = net::local_address(link_socket_.get());
    mine_.entry.host = sharing_identity();
    mine_.entry.machine = machine_identity();
    mine_.entry.processors = processor_set::of_this_thread();
    mine_.tree_gate = net::local_address(tree_socket_.get());
  }

  // Goes on until rank 0 has let this rank in: its name, file and process may all come later than this one.
  [[nodiscard]] net::line reach_store() {
    std::uint64_t pause_us = 500, token = 0, dialled = 0;  // the token of the last one that was called
    net::caller::rhythm pauses;
    for (char const* why = "";;) {
      bool const is_late = now_us() >= deadline_us_;
      net::address_list const found = where_.look(token, why);
      if (is_late)
        errors_.throw_meeting(status::timeout,
                              "rank 0 is not to be found%s%s; start it with the same settings, or raise "
                              "COLLX_TIMEOUT_US",
                              why[0] == '\0' ? "" : ": ", why);
      if (found.count != 0) {
        net::caller call(found, to(0, net::purpose::store), keys_for(token), chosen_.sockets, deadline_us_);
        if (token == dialled) call.keep(pauses);
        if (net::line reached = dial(call, token)) return reached;
        pauses = call.pauses(), dialled = token, why = "nobody answers there";
      } else {
        wait_for(readable(-1), readable(-1), now_us() + pause_us);
        pause_us = pause_us < 50'000 ? pause_us * 3 / 2 : pause_us;
      }
    }
  }

  // No connection: nobody has answered, or a file says by now that rank 0 is elsewhere. Whoever takes the
  // connection and says nothing may be a rank 0 that is busy, or have the port of one that is no more.
  [[nodiscard]] net::line dial(net::caller& call, std::uint64_t token) {
    bool const has_file = place_.file != nullptr;
    std::uint64_t look_again_us = now_us() + (has_file ? 50'000 : 1'000'000);
    for (;;) {
      status const now = call.progress();
      if (now == status::ok) {
        count_call();
        net::line made = line_of(call);
        if (greet(made, deadline_us_)) return made;
        now_us() >= deadline_us_ ? errors_.throw_silent_store() : errors_.throw_store();
      }
      // What a file left behind names may be another job's by now.
      bool const is_stale = has_file && now == status::mismatch && now_us() < deadline_us_;
      if (!is_stale && now != status::pending) errors_.throw_call(call, now, 0);
      if (is_stale) wait_for(readable(-1), readable(-1), now_us() + 20'000);
      bool const is_due = now_us() >= look_again_us;
      if (is_stale || (is_due && (call.fd() < 0 || where_.is_elsewhere(token)))) return {};
      if (is_due) look_again_us = now_us() + 100'000;
      wait_for(ready_for(call), readable(-1), soonest(call.due_us(), look_again_us));
    }
  }

  [[nodiscard]] net::line line_of(net::caller& call) const {
    net::line made(call, tls());
    if (!made) errors_.throw_meeting(status::out_of_memory, "there is no memory for an encrypted connection");
    return made;
  }

  void register_at(net::line& to_store) {
    std::byte text[registration::bytes_count], answer[receipt::bytes_count];
    mine_.encode(text);
    if (to_store.send(text) != static_cast<ssize_t>(sizeof text)) errors_.throw_store();
    std::size_t have = 0;
    while (have < sizeof answer) {
      if (now_us() >= deadline_us_) errors_.throw_silent_store();
      if (!hear(to_store, answer, sizeof answer, have)) errors_.throw_store();
      if (have < sizeof answer) wait_for(readable(to_store.get()), readable(-1), deadline_us_);
    }
    receipt what;
    if (!receipt::decode(answer, what))
      errors_.throw_meeting(status::mismatch, "rank 0 answers nonsense; use one version");
    if (what.what.kind != news_kind::good) errors_.throw_news(what.what);
    session_ = what.session;
    told_ = what.told;
    messages_ += 2;
    // Rank 0's clock decides, and says who is missing; this rank waits a little longer, to hear that.
    std::uint64_t const rest_us = what.rest_us < chosen_.timeout_us ? what.rest_us : chosen_.timeout_us;
    deadline_us_ = now_us() + rest_us + grace_us;
    // The longer the lower in the tree: whose own parent is silent says so first, and those below hear it.
    for (rank_t r = me_.rank; r != 0; r = tree_parent(r)) deadline_us_ += level_us;
  }

  // Waits for the second answer; children may come meanwhile.
  [[nodiscard]] net::address learn_parent(net::line& to_store, tree& around) {
    std::byte answer[direction::bytes_count];
    std::size_t have = 0;
    for (;;) {
      if (!hear(to_store, answer, sizeof answer, have)) around.fail({news_kind::left, 0, 1});
      if (have == sizeof answer) break;
      if (around.progress() != status::pending) {
        tell(to_store, around.failure());
        leave(around);
      }
      if (now_us() >= deadline_us_) {
        around.fail({news_kind::left, 0, 1});
        errors_.throw_meeting(status::timeout, "rank 0 fell silent; look at its own output");
      }
      wait_for(readable(to_store.get()), readable(around.fd()), soonest(around.due_us(), deadline_us_));
    }
    ++messages_;
    direction what;
    if (!direction::decode(answer, what))
      errors_.throw_meeting(status::mismatch, "rank 0 answers nonsense; use one version");
    if (what.what.kind != news_kind::good) {
      around.fail(what.what);
      leave(around);
    }
    return what.parent;
  }

  // What rank 0 says to a rank that has not reached its parent yet: that the meeting has failed.
  struct late_word {
    std::byte text[direction::bytes_count];
    std::size_t have = 0;
  };
  static void hear_failure(net::line& to_store, late_word& more, tree& around) noexcept {
    news word{news_kind::left, 0, 1};  // unless rank 0 says what
    bool is_there = true, has_new = true;
    while (is_there && has_new && more.have < sizeof more.text) {
      std::size_t const before = more.have;
      is_there = hear(to_store, more.text, sizeof more.text, more.have);
      has_new = more.have != before;
    }
    if (is_there && more.have < sizeof more.text) return;
    news said;
    if (is_there && news::decode(more.text, said) && said.kind != news_kind::good) word = said;
    around.fail(word);
  }

  // A parent may have gone, perhaps because of another rank. Rank 0 hears of either by another way, and then
  // says so; or the parent is there, and something between the two refuses.
  static void learn_reason(net::line& to_store, late_word& more, tree& around) noexcept {
    std::uint64_t const until_us = now_us() + grace_us;
    for (;;) {
      hear_failure(to_store, more, around);
      if (around.progress() != status::pending || now_us() >= until_us) return;
      wait_for(readable(to_store.get()), readable(around.fd()), until_us);
    }
  }

  // A word for rank 0. There is room for so few bytes; where there is none he has gone, and is heard to have.
  void tell(net::line& to_store, news const& word) noexcept {
    std::byte text[news::bytes_count];
    word.encode(text);
    ++messages_;
    (void)to_store.send(text);
  }

  // Says what has happened: for a while also to children that are still greeting, since they may be busy.
  [[noreturn]] COLLX_COLD void leave(tree& around) const {
    std::uint64_t const until_us = now_us() + grace_us;
    for (; around.has_more_to_tell() && now_us() < until_us; (void)around.progress())
      wait_for(readable(around.fd()), readable(-1), until_us);
    errors_.throw_news(around.failure());
  }

  // Rank 0 holds a connection for each rank that waits for its parent.
  void allow_descriptors() const {
    rlimit allowed{};
    auto const needed = static_cast<rlim_t>(me_.size) + 100;
    if (getrlimit(RLIMIT_NOFILE, &allowed) != 0 || allowed.rlim_cur >= needed) return;
    allowed.rlim_cur = needed < allowed.rlim_max ? needed : allowed.rlim_max;
    if (allowed.rlim_cur < needed || setrlimit(RLIMIT_NOFILE, &allowed) != 0)
      errors_.throw_meeting(status::system_failure,
                            "rank 0 needs %d descriptors; raise the hard limit (ulimit -Hn)",
                            static_cast<int>(needed));
  }

  [[nodiscard]] net::credentials keys_for(std::uint64_t token) const noexcept {
    return keys_.for_job(keys_.job() ^ token);
  }
  [[nodiscard]] net::expectation expect(net::purpose what) const noexcept {
    return {me_.rank, me_.size, net::mask_of(what), chosen_.flow_count, chosen_.protects};
  }
  [[nodiscard]] net::introduction to(rank_t whom, net::purpose what) const noexcept {
    return {what, me_.rank, whom, me_.size, 0, chosen_.flow_count, chosen_.protects};
  }
  // What connections are encrypted by; null: they are not.
  [[nodiscard]] net::tls_context const* tls() const noexcept { return tls_ ? &tls_ : nullptr; }
  void count_call() noexcept {
    ++dialled_;
    messages_ += 4;  // of the handshake
  }

  [[nodiscard]] std::uint64_t soonest(std::uint64_t one_us, std::uint64_t other_us) const noexcept {
    std::uint64_t const first = one_us < other_us ? one_us : other_us;
    return first < deadline_us_ ? first : deadline_us_;
  }

  [[nodiscard]] std::uint64_t random_number() const {
    std::byte bytes[8];
    if (!net::random_bytes(bytes))
      errors_.throw_meeting(status::system_failure, "the system has no random numbers");
    return net::get_u64(bytes);
  }

  static constexpr std::uint64_t grace_us = 2'000'000, level_us = 250'000;

  launch const& me_;
  network_settings const& chosen_;
  pmi_board by_pmi_;
  meeting_place place_;
  meeting_errors errors_{me_, place_};
  bool has_secret_;
  net::credentials keys_;
  std::uint64_t told_;  // this rank's, until rank 0's is known
  std::uint64_t deadline_us_;
  whereabouts where_;
  net::owned_fd link_socket_, tree_socket_;
  registration mine_;
  std::uint64_t session_ = 0, messages_ = 0, accepted_ = 0, strangers_ = 0;
  std::uint32_t dialled_ = 0;
  bool has_parent_ = false;
  net::tls_context tls_;  // none: bytes travel as they are
  net::line above_;       // to the parent, while it greets
};

}  // namespace collx::inline abi_1::bootstrap
