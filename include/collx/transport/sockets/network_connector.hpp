// SPDX-License-Identifier: Apache-2.0
// Connections over a network: dials the peers' gates, and lets in those that dial this rank's; encrypted, if
// that was chosen. Then a connection stands when TLS's handshake, too, has ended.
#pragma once

#include "collx/net/caller.hpp"
#include "collx/net/gate.hpp"
#include "collx/net/interfaces.hpp"
#include "collx/net/tls_context.hpp"
#include "collx/transport/sockets/connector.hpp"

namespace collx::inline abi_1::transport::sockets {

class network_connector : public connector {
 public:
  // `gate` lets in links for this rank; `addresses[r]`: where rank r's listens; `timeout_us`: how long
  // who has dialled this rank may stall in TLS's handshake; `protects`: what `gate` expects. Throws error
  // (bad_argument, system_failure) if connections are to be encrypted and cannot be.
  COLLX_COLD network_connector(rank_t rank, array<net::address> addresses, net::gate gate,
                               net::credentials const& mine, net::socket_settings const& chosen,
                               std::uint64_t timeout_us, net::protection protects = net::protection::none)
      : rank_(rank),
        addresses_(static_cast<array<net::address>&&>(addresses)),
        failed_(addresses_.size()),
        distances_(addresses_.size()),
        gate_(static_cast<net::gate&&>(gate)),
        mine_(mine),
        chosen_(chosen),
        first_timeout_us_(timeout_us),
        timeout_us_(timeout_us),
        protects_(protects) {
    net::require_secret(protects, mine.has_secret());
    if (net::encrypts(protects)) prepare_tls();
    find_distances();
  }
  ~network_connector() override {
    while (calls_ != nullptr) delete std::exchange(calls_, calls_->next);
    while (greetings_ != nullptr) delete std::exchange(greetings_, greetings_->next);
  }

  COLLX_COLD void dial(rank_t peer, int first, int end) noexcept override {
    forgive_pause();
    for (int f = end - 1; f >= first; --f) call(peer, f);
  }
  COLLX_COLD void knock(rank_t peer) noexcept override {
    if (is_calling(peer)) return;
    for (greeting* each = greetings_; each != nullptr; each = each->next)
      if (each->with.peer == peer) return;
    dial(peer, 0, 1);
  }

  [[nodiscard]] bool poll(connection& next) noexcept override {
    forgive_pause();
    return take_call(next) || take_guest(next) || (greetings_ != nullptr && take_greeted(next));
  }

  // Who has come to this rank's gate, and what became of them.
  [[nodiscard]] net::gate::counters const& guests() const noexcept { return gate_.count(); }
  [[nodiscard]] std::uint64_t strangers() const noexcept override {
    return turned_away_before_ + gate_.count().strangers();
  }
  // At other gates of this rank's, where ranks met.
  void turned_away_before(std::uint64_t strangers) noexcept { turned_away_before_ = strangers; }

  [[nodiscard]] int fd() const noexcept override { return tls_ ? watched_.fd() : gate_.fd(); }
  // Not who greets: fd() tells when he says something. Nor who is knocked at: he may compute for long.
  [[nodiscard]] bool is_dialling() const noexcept override { return dialling_ != 0; }
  [[nodiscard]] bool is_due() const noexcept override {
    if (!gate_.will_be_due() && greetings_ == nullptr && calls_ == nullptr) return false;
    std::uint64_t const now = now_us();
    // A deadline of a greeting is looked at often enough that the time in between is no pause of this rank's.
    bool const is_asked_often = calls_ != nullptr || greets_unwatched();
    return now >= gate_.due_us() || (is_asked_often && now - looked_us_ >= knock_look_us) ||
           (greetings_ != nullptr && now - looked_us_ >= timeout_us_ / 8);
  }
  COLLX_COLD void be_patient(std::uint64_t us) noexcept override {
    if (us <= timeout_us_) return;
    extend(us - timeout_us_);
    timeout_us_ = us;
  }
  // A peer lets in who has said all that he has to say, and then only hears the welcome late.
  [[nodiscard]] COLLX_COLD bool may_stand_there(rank_t peer) const noexcept override {
    for (one_call const* each = calls_; each != nullptr; each = each->next)
      if (each->talk.who().to == peer && each->talk.fd() >= 0 && !each->talk.wants_write()) return true;
    for (greeting const* each = greetings_; each != nullptr; each = each->next)
      if (each->with.peer == peer && each->side == net::tls_side::dials) return true;
    return false;
  }
  [[nodiscard]] flows::distance distance_to(rank_t peer) const noexcept override {
    return distances_[static_cast<std::size_t>(peer)];
  }
  [[nodiscard]] status outlook(rank_t peer) noexcept override {
    return failed_[static_cast<std::size_t>(peer)];
  }

 private:
  COLLX_COLD void prepare_tls() {
    tls_ = net::tls_context::create();
    watched_ = net::poller::create();
    if (!watched_.add(gate_.fd(), gate_tag)) net::throw_unwatched_gate();
  }

  COLLX_COLD void find_distances() {
    auto const own = [] {
      try {
        return net::local_interfaces();
      } catch (error const&) {  // who may not know his interfaces takes all but the loopback for far
        return array<net::interface_address>();
      }
    }();
    for (std::size_t r = 0; r < addresses_.size(); ++r)
      distances_[r] = net::is_of_this_host(own, addresses_[r])     ? flows::distance::host
                      : net::is_of_own_network(own, addresses_[r]) ? flows::distance::network
                                                                   : flows::distance::far;
  }

  struct one_call {
    net::caller talk;
    std::uint64_t begun_us;
    one_call* next;
    std::uint64_t lacks_us = 0;  // since when there is no descriptor for it; 0: there may be
  };
  // A connection whose sides know each other, in TLS's handshake.
  struct greeting {
    connection with;
    net::tls_stream* stream;  // with.secured is its owner
    net::tls_side side;
    std::uint64_t begun_us;     // when the one who dials did
    std::uint64_t deadline_us;  // never, where this rank has dialled; see call()
    greeting* next;
    bool is_watched;  // else the system has refused to, and it is looked at now and then
  };
  static constexpr std::uint64_t gate_tag = 0, greeting_tag = 1, never = ~std::uint64_t{0};
  static constexpr std::uint64_t knock_look_us = 10'000, shortage_us_max = 1'000'000;

  // Without a deadline: whoever is dialled may compute for as long as he likes before he looks. Whoever waits
  // for him has a deadline of his own, and who does not must not fail later for that.
  COLLX_COLD void call(rank_t peer, int flow) noexcept {
    auto* const made = new (std::nothrow) one_call{caller_for(peer, flow), now_us(), calls_};
    if (made == nullptr) return fail(peer, status::out_of_memory);
    calls_ = made;
    dialling_ += peer > rank_;
  }

  [[nodiscard]] COLLX_COLD net::caller caller_for(rank_t peer, int flow) const noexcept {
    net::introduction const me{net::purpose::link,
                               rank_,
                               peer,
                               static_cast<rank_t>(addresses_.size()),
                               static_cast<std::uint32_t>(flow),
                               gate_.flow_count(),
                               protects_};
    return {addresses_[static_cast<std::size_t>(peer)], me, mine_, chosen_, never,
            net::unanswered::means_lost};
  }

  // The program may have opened many files for a moment.
  [[nodiscard]] COLLX_COLD bool may_try_again(one_call& one) const noexcept {
    if (one.talk.why() != EMFILE && one.talk.why() != ENFILE) return false;
    std::uint64_t const now = now_us();
    if (one.lacks_us == 0) one.lacks_us = now;
    if (now - one.lacks_us >= shortage_us_max) return false;
    one.talk = caller_for(one.talk.who().to, static_cast<int>(one.talk.who().flow));
    return true;
  }

  [[nodiscard]] COLLX_COLD bool is_calling(rank_t peer) const noexcept {
    for (one_call const* each = calls_; each != nullptr; each = each->next)
      if (each->talk.who().to == peer) return true;
    return false;
  }

  // Another rank dials this one: what this rank has dialled to ask after it is no longer needed.
  COLLX_COLD void withdraw_knock(rank_t lower) noexcept {
    for (one_call** at = &calls_; *at != nullptr;)
      if ((*at)->talk.who().to == lower) delete std::exchange(*at, (*at)->next);
      else at = &(*at)->next;
  }

  [[nodiscard]] bool greets_unwatched() const noexcept {
    for (greeting const* each = greetings_; each != nullptr; each = each->next)
      if (!each->is_watched) return true;
    return false;
  }

  // Whether who listens where a rank did is somebody else, its port being another job's by now: that says as
  // much as if nobody did. A rank of this job may still have other settings.
  [[nodiscard]] static constexpr bool is_somebody_else(net::verdict why) noexcept {
    using enum net::verdict;
    return why == not_collx || why == wrong_version || why == wrong_secret || why == wrong_job ||
           why == wrong_size || why == wrong_rank;
  }

  // No connection will come. What this rank lacks for a knock it may have later.
  COLLX_COLD void fail(rank_t peer, status why) noexcept {
    if (peer > rank_ || why == status::peer_lost) failed_[static_cast<std::size_t>(peer)] = why;
  }

  // Who stalls is not late while this rank looked at nothing, because it computed: from one look to the next
  // nobody's time gets shorter by more than a quarter of the whole.
  void forgive_pause() noexcept {
    std::uint64_t const now = now_us(), pause_us = now - looked_us_, quarter_us = timeout_us_ / 4;
    looked_us_ = now;
    if (pause_us > quarter_us) extend(pause_us - quarter_us);
  }
  void extend(std::uint64_t more_us) noexcept {
    for (greeting* each = greetings_; each != nullptr; each = each->next)
      if (each->deadline_us != never) each->deadline_us += more_us;
  }

  // Those that this rank has dialled. True: `next` stands.
  [[nodiscard]] bool take_call(connection& next) noexcept {
    for (one_call** at = &calls_; *at != nullptr;) {
      status outcome = (*at)->talk.progress();
      if (outcome == status::pending && (*at)->talk.fd() >= 0) (*at)->lacks_us = 0;
      if (outcome == status::pending || (outcome == status::system_failure && may_try_again(**at))) {
        at = &(*at)->next;
        continue;
      }
      if (outcome == status::mismatch && is_somebody_else((*at)->talk.refusal())) outcome = status::peer_lost;
      one_call* const done = std::exchange(*at, (*at)->next);
      net::introduction const who = done->talk.who();
      dialling_ -= who.to > rank_;
      next = {who.to, static_cast<int>(who.flow), done->talk.take(), {}, who.from > who.to};
      net::secret_digest key;
      bool const agreed = outcome == status::ok && (!tls_ || done->talk.session_key(key));
      std::uint64_t const begun_us = done->begun_us;
      delete done;
      if (agreed && !tls_) return true;
      if (!agreed || !begin_greeting(next, net::tls_side::dials, key, begun_us))
        fail(who.to, outcome == status::ok ? status::system_failure : outcome);
    }
    return false;
  }

  // Those that have dialled this rank.
  [[nodiscard]] bool take_guest(connection& next) noexcept {
    for (net::guest in; gate_.poll(in);) {
      next = {in.who.from,
              static_cast<int>(in.who.flow),
              static_cast<net::owned_fd&&>(in.socket),
              {},
              in.who.from > in.who.to};
      if (next.peer < rank_ && next.flow == 0) withdraw_knock(next.peer);
      if (!tls_) return true;
      // It would not be taken, and what it costs would hold up those that will be.
      if (next.is_knock && is_calling(next.peer)) continue;
      (void)begin_greeting(next, net::tls_side::listens, in.key, now_us());
    }
    return false;
  }

  // False: there is no memory, or the system has none.
  [[nodiscard]] COLLX_COLD bool begin_greeting(connection& next, net::tls_side side, net::digest const& key,
                                               std::uint64_t begun_us) noexcept {
    auto* const stream = tls_.stream_over(next.fd.get(), side, key);
    next.secured.reset(stream);
    if (stream == nullptr) return false;
    std::uint64_t const deadline_us = side == net::tls_side::dials ? never : deadline_in(timeout_us_);
    auto* const made = new (std::nothrow)
        greeting{static_cast<connection&&>(next), stream, side, begun_us, deadline_us, greetings_, false};
    if (made == nullptr) return false;
    greetings_ = made;
    made->is_watched = watched_.add(made->with.fd.get(), greeting_tag);
    return true;
  }

  [[nodiscard]] COLLX_COLD bool take_greeted(connection& next) noexcept {
    for (greeting** at = &greetings_; *at != nullptr;) {
      greeting& one = **at;
      status outcome = one.stream->greet();
      if (outcome == status::pending && now_us() >= one.deadline_us) outcome = status::timeout;
      if (outcome == status::pending) {
        at = &one.next;
        continue;
      }
      watched_.remove(one.with.fd.get());
      if (outcome == status::ok) next = static_cast<connection&&>(one.with);
      else part(one, outcome);
      delete std::exchange(*at, one.next);
      if (outcome == status::ok) return true;
    }
    return false;
  }

  // Who has dialled has shown that he is a rank, and may have gone to compute since. So who listens ends a
  // greeting at the time-out and blames nobody: whoever waits for that rank has a deadline of his own. And
  // who dials and finds it ended after so long dials again. Who knocks is closed out by a peer that dials; he
  // may knock again, and that he lets go says nothing about him. All else is final, be it the peer himself
  // that failed or somebody on the path.
  COLLX_COLD void part(greeting const& one, status outcome) noexcept {
    bool const dialled = one.side == net::tls_side::dials;
    if (!dialled && (outcome == status::timeout || one.with.is_knock)) return;
    bool const may_be_late = now_us() - one.begun_us >= first_timeout_us_;
    bool const has_ended = dialled && outcome == status::peer_lost && !one.stream->has_failed();
    if (has_ended && one.with.is_knock) return;
    if (has_ended && may_be_late) return call(one.with.peer, one.with.flow);
    fail(one.with.peer, outcome);
  }

  rank_t rank_;
  array<net::address> addresses_;
  array<status> failed_;  // ok: nothing has
  array<flows::distance> distances_;
  net::gate gate_;
  net::credentials mine_;
  net::socket_settings chosen_;
  std::uint64_t first_timeout_us_;  // that of all ranks
  std::uint64_t timeout_us_, looked_us_ = now_us();
  std::uint64_t turned_away_before_ = 0;
  net::protection protects_;
  net::tls_context tls_;  // none: bytes travel as they are
  net::poller watched_;   // with it: the gate, and who greets
  one_call* calls_ = nullptr;
  int dialling_ = 0;  // calls that are no knocks
  greeting* greetings_ = nullptr;
};

}  // namespace collx::inline abi_1::transport::sockets
