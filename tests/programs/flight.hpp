// SPDX-License-Identifier: Apache-2.0
// One call of a random program on one rank: its memory, its request, and what must come of it.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "any/reference.hpp"
#include "collective/exchange_plans.hpp"
#include "collective/graph_calls.hpp"
#include "collective/group_mixture.hpp"
#include "collective/schedules.hpp"
#include "collx/any_communicator.hpp"
#include "collx/collective/all_reduce_fixed_tree.hpp"
#include "collx/collective/multi_lane.hpp"
#include "collx/communicator.hpp"

namespace programs {

using collx::rank_t;
using collx::replayable_random;
using collx::status;

[[nodiscard]] inline bool one_in(replayable_random& random, std::uint32_t count) {
  return random.below(count) == 0;
}

// Where a call's buffers lie: this rank's own business.
template <class Transport>
class room {
 public:
  room(collx::communicator<Transport>& comm, replayable_random& own)
      : comm_(comm), symmetric_(one_in(own, 2)), begin_(8 * own.below(9)) {}

  [[nodiscard]] std::byte* make(std::size_t bytes) {
    bytes_ = bytes;
    if (symmetric_) shared_.emplace(comm_.template allocate<std::byte>(begin_ + bytes));
    else private_.resize(begin_ + bytes);
    return data();
  }
  [[nodiscard]] bool is_symmetric() const { return symmetric_; }
  // From now on it is the caller's: nobody may read what was there, and nobody may write.
  void spoil() { std::memset(data(), spoilt, bytes_); }
  [[nodiscard]] bool is_untouched() {
    return std::all_of(data(), data() + bytes_, [](std::byte b) { return b == std::byte{spoilt}; });
  }

 private:
  static constexpr unsigned char spoilt = 0xee;

  [[nodiscard]] std::byte* data() { return (symmetric_ ? shared_->data() : private_.data()) + begin_; }

  collx::communicator<Transport>& comm_;
  bool symmetric_;
  std::size_t begin_, bytes_ = 0;
  std::vector<std::byte> private_;
  std::optional<collx::symmetric_buffer<std::byte, typename Transport::world>> shared_;
};

class flight {
 public:
  virtual ~flight() = default;
  [[nodiscard]] virtual status try_test() noexcept = 0;
  [[nodiscard]] virtual status try_wait() noexcept = 0;
  // Destroys the request, which waits.
  virtual void drop() noexcept = 0;
  // When it is done: throws what is wrong.
  virtual void check() = 0;
  virtual void spoil() {}
  [[nodiscard]] virtual bool is_untouched() { return true; }

  std::string what;
  bool is_flying = false;
};

// Its request waits before its memory goes, wherever that lies.
template <class Flight, class... Arguments>
[[nodiscard]] std::shared_ptr<Flight> make_flight(Arguments&&... arguments) {
  return {new Flight(std::forward<Arguments>(arguments)...), [](Flight* f) {
            f->drop();
            delete f;
          }};
}

// One with a request of its own. Blocking calls leave it empty.
template <class Request>
class flight_with : public flight {
 public:
  [[nodiscard]] status try_test() noexcept override { return moving ? moving->try_test() : status::ok; }
  [[nodiscard]] status try_wait() noexcept override { return moving ? moving->try_wait() : status::ok; }
  void drop() noexcept override { moving.reset(); }

  std::optional<Request> moving;
};

inline void require_none(std::string const& difference) {
  if (!difference.empty()) throw std::runtime_error(difference);
}

// Any collective, with any type, operator and algorithm.
template <class Transport>
class erased_flight final : public flight_with<collx::any_request> {
 public:
  erased_flight(collx::communicator<Transport>& comm, any_reference::scenario const& how,
                replayable_random& own)
      : room_(comm, own), with_(how, comm.rank()) {
    with_.lie_at(room_.make(with_.bytes()));
    this->what = how.describe(comm.rank()) + (room_.is_symmetric() ? ", symmetric" : ", private");
  }

  [[nodiscard]] collx::any_call call() { return with_.call(); }
  void prepare(collx::any_communicator& any, collx::any_call const& c) { again_.emplace(any.prepare(c)); }
  [[nodiscard]] bool is_persistent() const { return again_.has_value(); }
  void start_again() {
    with_.restore();
    again_->start();
  }

  [[nodiscard]] status try_test() noexcept override { return again_ ? again_->try_test() : base::try_test(); }
  [[nodiscard]] status try_wait() noexcept override { return again_ ? again_->try_wait() : base::try_wait(); }
  void drop() noexcept override { again_ ? again_.reset() : base::drop(); }
  void check() override { require_none(with_.difference()); }
  void spoil() override { room_.spoil(); }
  [[nodiscard]] bool is_untouched() override { return room_.is_untouched(); }

 private:
  using base = flight_with<collx::any_request>;

  room<Transport> room_;
  any_reference::participant with_;
  std::optional<collx::any_persistent> again_;
};

// A schedule with an operator that is not commutative.
template <class Transport>
class ordered_flight final : public flight_with<typename collx::communicator<Transport>::request_type> {
 public:
  ordered_flight(collx::communicator<Transport>& comm, oracle::collective const& called, bool in_order,
                 oracle::setting const& how, replayable_random& own)
      : room_(comm, own),
        with(called, in_order, how, comm.rank(),
             reinterpret_cast<oracle::element*>(room_.make(
                 sizeof(oracle::element) * oracle::participant::needed(called, how.size, how.count)))) {
    this->what = room_.is_symmetric() ? ", symmetric" : ", private";
  }

  void check() override { require_none(with.difference()); }
  void spoil() override { room_.spoil(); }
  [[nodiscard]] bool is_untouched() override { return room_.is_untouched(); }

 private:
  room<Transport> room_;

 public:
  oracle::participant const with;
};

inline oracle::element drawn_element(std::uint64_t seed, std::int32_t of, std::size_t i) {
  return {any_reference::mixed(static_cast<std::uint32_t>(seed), of, 0, i) | 1,
          any_reference::mixed(static_cast<std::uint32_t>(seed), of, 1, i)};
}

// Over leaves of a tree: two requests, of which the second begins when the first has ended.
template <class Transport>
class tree_flight final
    : public flight_with<decltype(collx::start::all_reduce_fixed_tree(
          std::declval<collx::communicator<Transport>&>(), collx::fixed_tree{},
          std::declval<std::vector<oracle::element>&>(), std::declval<std::vector<oracle::element>&>(),
          collx::ordered(oracle::apply_in_order)))> {
 public:
  tree_flight(collx::communicator<Transport>& comm, collx::fixed_tree tree, std::size_t count,
              std::uint64_t seed)
      : comm_(comm), tree_(tree), seed_(seed), out_(count) {
    auto const mine = tree.share(comm.rank(), comm.size());
    for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf)
      for (std::size_t i = 0; i < count; ++i) in_.push_back(drawn_element(seed, leaf, i));
    this->what = "fixed tree of " + std::to_string(tree.leaves) + ", count " + std::to_string(count);
  }
  void start() {
    this->moving.emplace(
        collx::start::all_reduce_fixed_tree(comm_, tree_, in_, out_, collx::ordered(oracle::apply_in_order)));
  }
  void check() override {
    for (std::size_t i = 0; i < out_.size(); ++i) {
      oracle::element all = drawn_element(seed_, 0, i);
      for (std::int32_t leaf = 1; leaf < tree_.leaves; ++leaf)
        all = oracle::apply_in_order(all, drawn_element(seed_, leaf, i));
      if (all != out_[i]) throw std::runtime_error("element " + std::to_string(i));
    }
  }

 private:
  collx::communicator<Transport>& comm_;
  collx::fixed_tree tree_;
  std::uint64_t seed_;
  std::vector<oracle::element> in_, out_;
};

// Cut in parts, each a request in a lane of its own.
template <class Transport>
class cut_flight final
    : public flight_with<decltype(collx::start::all_reduce<collx::multi_lane<collx::algo::ring, 2>>(
          std::declval<collx::communicator<Transport>&>(), std::declval<std::vector<oracle::element>&>(),
          oracle::add))> {
 public:
  cut_flight(collx::communicator<Transport>& comm, std::size_t count, std::uint64_t seed)
      : comm_(comm), seed_(seed) {
    for (std::size_t i = 0; i < count; ++i) all_.push_back(drawn_element(seed, comm.rank(), i));
    this->what = "all_reduce<multi_lane<ring, 2>>, count " + std::to_string(count);
  }
  void start() {
    this->moving.emplace(
        collx::start::all_reduce<collx::multi_lane<collx::algo::ring, 2>>(comm_, all_, oracle::add));
  }
  void check() override {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      oracle::element sum;
      for (rank_t r = 0; r < comm_.size(); ++r) sum = oracle::add(sum, drawn_element(seed_, r, i));
      if (sum != all_[i]) throw std::runtime_error("element " + std::to_string(i));
    }
  }

 private:
  collx::communicator<Transport>& comm_;
  std::uint64_t seed_;
  std::vector<oracle::element> all_;
};

// Messages between any ranks.
template <class Transport>
class exchange_flight final : public flight_with<typename collx::communicator<Transport>::request_type> {
 public:
  exchange_flight(collx::communicator<Transport>& comm, std::uint64_t seed, std::uint64_t order)
      : all_(exchanges::random_plan(comm.size(), seed)), with(comm, all_, order) {
    this->what =
        "exchange, " + std::to_string(with.list.size()) + " of " + std::to_string(all_.size()) + " messages";
  }
  void check() override { require_none(with.difference()); }

 private:
  exchanges::plan all_;

 public:
  exchanges::participant<Transport> with;
};

// A collective on a graph.
template <class Transport>
class neighbour_flight final : public flight_with<typename collx::communicator<Transport>::request_type> {
 public:
  neighbour_flight(collx::communicator<Transport>& comm, graphs::edges_t const& edges, std::size_t count,
                   std::uint32_t which)
      : calls_(comm, edges, count), which_(which) {
    this->what = "neighbours, call " + std::to_string(which) + ", count " + std::to_string(count) + ", " +
                 std::to_string(edges.size()) + " edges";
  }
  void start() {
    this->moving.emplace(which_ == 0   ? calls_.gather()
                         : which_ == 1 ? calls_.to_all()
                         : which_ == 2 ? calls_.to_all_v()
                                       : calls_.gather_v());
  }
  void check() override {
    if (which_ == 0) calls_.check_gather();
    else if (which_ == 1) calls_.check_to_all();
    else if (which_ == 2) calls_.check_to_all_v();
    else calls_.check_gather_v();
  }

 private:
  graphs::calls<Transport> calls_;
  std::uint32_t which_;
};

// Several small ones as one.
template <class Transport>
class group_flight final : public flight_with<collx::group_request<collx::group<Transport>>> {
 public:
  group_flight(collx::communicator<Transport>& comm, std::size_t packed_bytes, std::size_t count)
      : calls_(comm.rank(), comm.size(), count), list_(comm, packed_bytes) {
    this->what = "group, " + std::to_string(packed_bytes) + " bytes packed, count " + std::to_string(count);
    calls_.list(list_);
  }
  [[nodiscard]] status try_run() noexcept { return list_.try_run(); }
  void start(collx::priority how) { this->moving.emplace(list_.start(how)); }
  void check() override { calls_.check(); }

 private:
  mixtures::mixture calls_;
  collx::group<Transport> list_;
};

}  // namespace programs
