// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a gate, and at it strangers who say anything and come and go, callers with another secret or for
// another rank, and some who belong to the job. Those get in, and nobody else does.
#include "collx/net/gate.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "collx/net/caller.hpp"
#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx;

net::credentials const& keys(bool are_ours) {
  static constexpr char ours[] = "the secret of these tests", others[] = "the secret of other tests";
  static net::credentials const right(net::secret::of(std::span(ours, sizeof ours - 1)), 7);
  static net::credentials const wrong(net::secret::of(std::span(others, sizeof others - 1)), 7);
  return are_ours ? right : wrong;
}

class crowd {
 public:
  static constexpr std::size_t callers_max = 6, strangers_max = 80;  // more than a gate holds
  static constexpr std::uint64_t patience_us = 20'000'000;

  crowd()
      : gate_(net::listen_at(net::address::loopback(0), {}), keys(true),
              {0, 9, net::mask_of(net::purpose::link), 2, net::protection::none}),
        until_us_(now_us() + patience_us) {}

  void add_caller(std::uint32_t how) {
    if (callers_.size() == callers_max) return;
    // Ranks, so that it is known who each guest must be.
    net::introduction who{net::purpose::link, static_cast<rank_t>(1 + callers_.size()), 0, 9, 0, 2};
    bool const has_secret = how % 4 != 1;
    bool const is_here = how % 4 != 2;
    if (!is_here) who.to = 5;
    callers_.push_back({std::make_unique<net::caller>(gate_.where(), who, keys(has_secret),
                                                      net::socket_settings{}, until_us_),
                        has_secret && is_here, false});
  }
  void add_stranger() {
    if (strangers_.size() == strangers_max) return;
    strangers_.push_back(net::begin_connect(gate_.where(), {}));
    end_at_once(strangers_.back());
  }
  // What this one says; nothing: it leaves.
  void say(std::size_t which, std::span<std::uint8_t const> what) {
    if (strangers_.empty()) return;
    net::owned_fd& one = strangers_[which % strangers_.size()];
    if (what.empty()) one.reset();
    else if (one) (void)!::send(one.get(), what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void progress() {
    net::guest came;
    while (gate_.poll(came)) {
      auto const which = static_cast<std::size_t>(came.who.from - 1);
      require(came.who.what == net::purpose::link && which < callers_.size());
      require(callers_[which].belongs && !callers_[which].is_in);
      callers_[which].is_in = true;
      end_at_once(came.socket);
      guests_.push_back(std::move(came.socket));
    }
    require(gate_.in_handshake() <= net::gate::guests_max && gate_.count().welcomed == guests_.size());
    for (caller& each : callers_) {
      if (each.said != status::pending) continue;
      each.said = each.call->progress();
      require(each.said == status::pending || (each.said == status::ok) == each.belongs);
      require(each.said != status::ok || each.is_in);
    }
  }

  void finish() {
    // Nobody stands in the way of those who belong here, even if all others stay.
    while (std::any_of(callers_.begin(), callers_.end(),
                       [](caller const& each) { return each.belongs && each.said == status::pending; }))
      progress();
    for (caller const& each : callers_) require(!each.belongs || each.said == status::ok);
    guests_.clear();  // before their callers
    callers_.clear();
    strangers_.clear();
    net::guest nobody;
    do require(!gate_.poll(nobody) && now_us() < until_us_);
    while (gate_.in_handshake() != 0);
  }

 private:
  struct caller {
    std::unique_ptr<net::caller> call;
    bool belongs, is_in;
    status said = status::pending;
  };

  // Thousands of inputs a second would use up all ports for the minute that the kernel keeps a connection
  // which ended as it should.
  static void end_at_once(net::owned_fd const& socket) {
    linger const none{1, 0};
    (void)setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }

  net::gate gate_;
  std::uint64_t until_us_;
  std::vector<caller> callers_;
  std::vector<net::owned_fd> strangers_, guests_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  crowd now;
  for (std::span<std::uint8_t const> rest(data, size); !rest.empty();) {
    std::uint32_t const what = rest[0];
    rest = rest.subspan(1);
    std::size_t const which = rest.empty() ? 0 : rest[0];
    std::size_t const bytes = std::min<std::size_t>(what >> 3, rest.size());
    switch (what % 8) {
      case 0: now.add_caller(what >> 3); break;
      case 1:
        for (std::uint32_t i = 0; i <= what >> 3; ++i) now.add_stranger();
        break;
      case 2:
      case 3:
        now.say(which, rest.first(bytes));
        rest = rest.subspan(bytes);
        break;
      default: now.progress(); break;
    }
  }
  now.finish();
  return 0;
}
