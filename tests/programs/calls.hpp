// SPDX-License-Identifier: Apache-2.0
// Which calls a random program makes in one group: what all members draw alike, and what is each one's own.
#pragma once

#include "any/matrix.hpp"
#include "programs/flight.hpp"
#include "sample.hpp"

namespace programs {

// What members draw from. One of each kind, and what the library chooses: all of them in all forms are the
// matrix's. A sample (sample.hpp) has those that differ most, in how they move as in what they stage.
#if defined(COLLX_TEST_SAMPLE)
using algorithms =
    collx::type_list<collx::algo::direct_one_shot, collx::algo::knomial_tree<4>, collx::algo::ring>;
using ordered_algorithms = collx::type_list<collx::algo::direct_one_shot, collx::algo::knomial_tree<4>>;
using types = collx::type_list<std::int32_t, collx::bfloat16>;
inline constexpr collx::data_type drawn_types[] = {collx::data_type::int32, collx::data_type::bfloat16};
#else
using algorithms =
    collx::type_list<collx::algo::direct_one_shot, collx::algo::direct_two_shot, collx::algo::knomial_tree<4>,
                     collx::algo::pat, collx::algo::pairwise, collx::algo::recursive_doubling,
                     collx::algo::recursive_halving_doubling, collx::algo::ring>;
using ordered_algorithms = collx::type_list<collx::algo::direct_one_shot, collx::algo::knomial_tree<4>,
                                            collx::algo::recursive_doubling, collx::algo::chain>;
using types = collx::type_list<std::uint8_t, std::int32_t, std::uint64_t, collx::bfloat16, float>;
inline constexpr collx::data_type drawn_types[] = {collx::data_type::uint8, collx::data_type::int32,
                                                   collx::data_type::uint64, collx::data_type::bfloat16,
                                                   collx::data_type::float32};
#endif

// Ranks that one thread steps in turn never wait inside a call.
template <class Transport>
inline constexpr bool can_block = !requires(typename Transport::world & world) {
  world.random();
};

template <class Transport>
class drawn_calls {
 public:
  using communicator = collx::communicator<Transport>;

  // `own_seed`: of what is this rank's business. What members draw alike, functions are given as `same`.
  drawn_calls(communicator& comm, std::uint64_t own_seed) : comm_(comm), any_(erased(comm)), own_(own_seed) {}
  // A group that nobody else holds.
  drawn_calls(std::unique_ptr<communicator> comm, std::uint64_t own_seed)
      : held_(std::move(comm)), comm_(*held_), any_(erased(comm_)), own_(own_seed) {}
  drawn_calls(drawn_calls const&) = delete;

 protected:
  any_reference::scenario draw(replayable_random& same) {
    auto const n = static_cast<std::size_t>(comm_.size());
    any_reference::scenario how{};
    how.what = static_cast<collx::collective_kind>(same.below(collx::collective_kind_count));
    how.type = drawn_types[same.below(std::size(drawn_types))];
    do how.op = static_cast<collx::reduce_op>(same.below(collx::reduce_op_count));
    while (!any_reference::applies(how.op, how.type) || (how.op == collx::reduce_op::avg && is_scan(how)));
    auto const names = any_.algorithms(how.what);
    how.algorithm = names[one_in(same, 2) ? 0 : same.below(static_cast<std::uint32_t>(names.size()))];
    any_reference::shape const is = any_reference::shape_of(how.what);
    auto const most =
        static_cast<std::uint32_t>(200'000 / bytes_of(how.type) / (is.gives_all || is.takes_all ? n : 1));
    std::uint32_t const bounds[] = {2, 70, 70, 70, 3000, 3000, most / 4, most};
    how.count = same.below(bounds[same.below(one_in(same, 3) ? 8 : 5)] + 1);
    how.size = comm_.size();
    how.root = static_cast<rank_t>(same.below(static_cast<std::uint32_t>(n)));
    how.salt = static_cast<std::uint32_t>(same.next());
    how.in_place = one_in(own_, 2);
    how.apart = one_in(own_, 2);
    return how;
  }
  static bool is_scan(any_reference::scenario const& how) {
    return how.what == collx::collective_kind::scan || how.what == collx::collective_kind::exclusive_scan;
  }

  // The same on all members: whether an algorithm takes so many ranks, and messages in flight.
  auto make_erased(replayable_random& same) {
    any_reference::scenario how = draw(same);
    if (how.algorithm != std::string(collx::automatic::name) && !is_offered(how))
      how.algorithm = collx::automatic::name;
    auto const made = make_flight<erased_flight<Transport>>(comm_, how, own_);
    return made;
  }
  bool is_offered(any_reference::scenario const& how) {
    any_reference::participant mine(how, comm_.rank());
    try {
      (void)any_.prepare(mine.call());
      return true;
    } catch (collx::error const& refused) {
      if (refused.code() != status::not_supported) throw;
      return false;
    }
  }

  template <template <class> class Form>
  auto draw_ordered(replayable_random& same, oracle::setting& how) {
    auto const& all = schedules::all<Form, Transport, ordered_algorithms>();
    for (;;) {
      auto const& entry = all[same.below(static_cast<std::uint32_t>(all.size()))];
      auto const n = static_cast<std::uint32_t>(comm_.size());
      if (!entry.supports(comm_.size())) continue;
      if constexpr (!can_block<Transport>)
        if (static_cast<std::uint64_t>(entry.depth(comm_.size())) > comm_.engine().endpoint().depth())
          continue;
      std::uint32_t const most = one_in(same, 10) ? (entry.collective->sharded ? 9000 / n : 9000) : 50;
      how = {comm_.size(), same.below(most + 1), one_in(own_, 2),
             entry.collective->rooted ? static_cast<rank_t>(same.below(n)) : 0, same.below(512)};
      return entry;
    }
  }
  auto make_ordered(auto const& entry, oracle::setting const& how) {
    auto const made =
        make_flight<ordered_flight<Transport>>(comm_, *entry.collective, entry.in_order, how, own_);
    made->what = "ordered " + entry.describe(how) + made->what;
    return made;
  }
  auto make_tree(replayable_random& same) {
    std::int32_t const leaves = 1 + static_cast<std::int32_t>(same.below(20));
    std::size_t const count = same.below(one_in(same, 8) ? 4000 : 40);
    return make_flight<tree_flight<Transport>>(comm_, collx::fixed_tree{leaves}, count, same.next());
  }
  auto make_cut(replayable_random& same) {
    std::size_t const count = same.below(one_in(same, 4) ? 20'000 : 100);
    return make_flight<cut_flight<Transport>>(comm_, count, same.next());
  }

  auto make_exchange(replayable_random& same) {
    std::uint64_t const seed = same.next();
    return make_flight<exchange_flight<Transport>>(comm_, seed, own_.next());
  }
  auto make_neighbours(replayable_random& same) {
    auto const kind = static_cast<graphs::kind>(same.below(static_cast<std::uint32_t>(graphs::kind::last)));
    graphs::edges_t const edges = graphs::make_edges(kind, comm_.size(), same.next());
    std::size_t const count = same.below(one_in(same, 8) ? 6000 : 40);
    return make_flight<neighbour_flight<Transport>>(comm_, edges, count, same.below(4));
  }

 private:
  std::unique_ptr<communicator> held_;

 protected:
  communicator& comm_;
  collx::any_communicator any_;
  replayable_random own_;

 private:
  static collx::any_communicator erased(communicator& comm) {
    return collx::make_any<types, collx::any_ops, algorithms>(comm.along({0, 1, comm.size()}));
  }
};

}  // namespace programs
