// SPDX-License-Identifier: Apache-2.0
// What really goes over a message transport is what the schedule says: an endpoint writes down what the
// executor asks of it, in order (which message is wanted, from whom, how long and where; which was taken;
// what is sent, to whom, from where), and that is what follows from the schedule's steps, fragment by
// fragment. So is what the executor's trace says.
// sanitizers: no, half a minute, for an executor that the matrices run under them
#include <map>
#include <memory>
#include <sstream>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "exec/traced.hpp"
#include "sample.hpp"

namespace {

using collx::rank_t;
using collx::transport::handover;

enum class act { expects, takes, sends };

// `at`: where a message is wanted, or lies in the user's buffer; null: anywhere, or in memory of the
// endpoint.
struct post {
  act what;
  rank_t peer;
  std::size_t bytes = 0;
  std::byte const* at = nullptr;
  friend bool operator==(post const&, post const&) = default;
  friend std::ostream& operator<<(std::ostream& out, post const& p) {
    char const* const names[] = {"expects from ", "takes from ", "sends to "};
    out << names[static_cast<int>(p.what)] << p.peer << ": " << p.bytes << " bytes at "
        << static_cast<void const*>(p.at);
    return out;
  }
};

template <class Endpoint>
class recording_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;

  void expect(int lane, rank_t peer, std::byte* destination, std::size_t bytes) noexcept {
    posts.push_back({act::expects, peer, bytes, destination});
    Endpoint::expect(lane, peer, destination, bytes);
  }
  void consume(int lane, rank_t peer) noexcept {
    posts.push_back({act::takes, peer});
    Endpoint::consume(lane, peer);
  }
  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes, handover how) noexcept {
    posts.push_back({act::sends, peer, bytes, how == handover::in_place ? payload : nullptr});
    Endpoint::send(lane, peer, payload, bytes, how);
  }

  void begin(int lane, std::byte* output, std::size_t output_bytes = 0) noexcept {
    last_lane = lane;
    Endpoint::begin(lane, output, output_bytes);
  }

  std::vector<post> posts;
  int last_lane = 0;
};

struct recording {
  using world = collx::transport::mailbox::world;
  using endpoint = recording_endpoint<collx::transport::mailbox::endpoint>;
  using membership = collx::transport::mailbox::membership_of<recording>;
};

using step_of = decltype(collx::exec::erased_schedule::step);

// What one rank has to post for a call, from nothing but its schedule's steps and where its chunks lie.
class expected_posts {
 public:
  expected_posts(collx::exec::memory_map const& map, std::size_t fragments, std::int32_t steps, step_of step)
      : map_(map), where_(map.where()) {
    for (fragment_ = 0; fragment_ < fragments; ++fragment_)
      for (std::int32_t i = 0; i < steps; ++i) add(step(where_, i));
  }

  // Empty, or the first difference. Whether a payload is lent to the receiver where it lies, or staged, is
  // not the schedule's to say, but where it must be copied.
  [[nodiscard]] std::string difference(std::vector<post> const& found) const {
    std::ostringstream text;
    for (std::size_t i = 0; i < std::max(found.size(), wanted_.size()); ++i) {
      if (i >= found.size()) text << "lacks: " << wanted_[i].what;
      else if (i >= wanted_.size()) text << "too many: " << found[i];
      else if (!wanted_[i].allows(found[i])) text << found[i] << ", but the schedule: " << wanted_[i].what;
      else continue;
      return "post " + std::to_string(i) + " " + text.str();
    }
    return {};
  }

 private:
  struct wanted {
    post what;
    bool may_be_lent = false;
    [[nodiscard]] bool allows(post const& found) const {
      post as_staged = what;
      if (what.what == act::sends) as_staged.at = nullptr;
      return found == as_staged || (found == what && (may_be_lent || what.what != act::sends));
    }
  };

  void add(collx::primitive const& step) {
    for_each(step.from, [&](std::int32_t k, rank_t peer) {
      auto const to = map_.find(step.target, k, fragment_);
      bool const straight = !step.reduce && step.store && to.whole;
      wanted_.push_back({{act::expects, peer, to.bytes, straight ? to.data : nullptr}});
    });
    if (step.from.empty()) return send(step, step.operand);
    for_each(step.from, [&](std::int32_t k, rank_t peer) {
      wanted_.push_back({{act::takes, peer}});
      if (!step.reduce) send_result(step, k);
    });
    if (step.reduce) send_result(step, 0);
  }

  void send_result(collx::primitive const& step, std::int32_t k) {
    auto const result = map_.find(step.target, k, fragment_);
    for_each(step.to, [&](std::int32_t, rank_t peer) {
      push(step, peer, result, step.store ? step.target.where : collx::place::scratch);
    });
  }
  void send(collx::primitive const& step, collx::region const& from) {
    for_each(step.to, [&](std::int32_t k, rank_t peer) {
      push(step, peer, map_.find(from, k, fragment_), from.where);
    });
  }

  void push(collx::primitive const& step, rank_t peer, collx::exec::run const& payload, collx::place where) {
    bool const is_small = payload.bytes <= recording::endpoint::inline_bytes;  // copied at once
    bool const stays = !step.copy || where == collx::place::input;             // no call here is in place
    bool const lent = payload.whole && (is_small || (stays && where != collx::place::scratch));
    wanted_.push_back({{act::sends, peer, payload.bytes, payload.data}, lent});
  }

  template <class F>
  void for_each(collx::peer_set const& peers, F const& f) const {
    for (std::int32_t k = 0; k < peers.count; ++k)
      if (rank_t const peer = peers.member(k, where_.size); peer != where_.rank) f(k, peer);
  }

  collx::exec::memory_map const& map_;
  collx::problem where_;
  std::size_t fragment_ = 0;
  std::vector<wanted> wanted_;
};

using worlds = collx::bootstrap::mailbox_ranks<recording>;

struct every_call {
  void run_all(traced::entry const& called) {
    oracle::collective const& what = *called.collective;
    for (rank_t size = 1; size <= 9; ++size)
      for (std::size_t const count :
           {std::size_t{0}, static_cast<std::size_t>(size + 4), cases::large_count(what, size)})
        for (rank_t const root : cases::roots(what, size))
          if (called.supports(size)) run(called, size, count, root);
  }

  void run(traced::entry const& called, rank_t size, std::size_t count, rank_t root) {
    CAPTURE(called.collective->name);
    CAPTURE(called.algorithm);
    CAPTURE(size);
    CAPTURE(count);
    CAPTURE(root);
    auto& ranks = world_of(size, called.of(size, root).depth);
    std::vector<traced::traced_rank> all(static_cast<std::size_t>(size), {called, size, count});
    collx::array<collx::request<recording::endpoint>> requests(all.size());
    for (rank_t r = 0; r < size; ++r) {
      auto const i = static_cast<std::size_t>(r);
      auto& engine = ranks[r].engine();
      requests[i] = {engine,
                     engine.start({called.collective->name, called.algorithm}, all[i].maker(engine, root))};
    }
    REQUIRE(ranks.drive(requests) == collx::status::ok);
    auto const proved = traced::proof::of(called, size, root);
    for (rank_t r = 0; r < size; ++r) {
      CAPTURE(r);
      auto& mine = all[static_cast<std::size_t>(r)];
      mine.check(proved, {r, size, root});
      auto& endpoint = ranks[r].engine().endpoint();
      auto const map = mine.map(endpoint, endpoint.last_lane, root);
      expected_posts const expected(map, mine.fragments, called.schedule->step_count(map.where()),
                                    called.schedule->step);
      REQUIRE(expected.difference(endpoint.posts) == "");
      posts += endpoint.posts.size();
      endpoint.posts.clear();
    }
    most_fragments = std::max(most_fragments, all[0].fragments);
  }

  // Worlds serve many calls: to make them takes longer than those.
  worlds& world_of(rank_t size, std::int32_t depth) {
    std::unique_ptr<worlds>& found = known[{size, depth}];
    if (found == nullptr)
      found =
          std::make_unique<worlds>(size, 3, collx::transport::settings{.staging_bytes = cases::staging_bytes},
                                   static_cast<std::uint64_t>(depth));
    return *found;
  }

  std::map<std::pair<rank_t, std::int32_t>, std::unique_ptr<worlds>> known;
  std::size_t most_fragments = 0, posts = 0;
};

}  // namespace

TEST_CASE("mailbox: what is posted, and the steps taken, are those of the schedule, for every fragment") {
  every_call all;
  for (traced::entry const& each : traced::every_schedule<sample::algorithms>()) all.run_all(each);
  CHECK(all.most_fragments > 1);
  MESSAGE("posts that were as they should be: " << all.posts);
}
