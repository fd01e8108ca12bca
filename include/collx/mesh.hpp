// SPDX-License-Identifier: Apache-2.0
// Ranks as a grid with named axes, innermost first, as parallel training lays them out:
//
//   struct tp {}; struct cp {}; struct pp {}; struct dp {};            // names are any types of yours
//   collx::mesh<Transport, tp, cp, pp, dp> grid(world, {2, 2, 2, 2});  // 16 ranks; or
//   auto grid = collx::make_mesh<tp, cp, pp, dp>(world, {2, 2, 2, 2});
//   collx::all_reduce(grid.along<tp>(), activations);                  // rank 0 with 1
//   collx::all_reduce(grid.along<dp>(), gradients, collx::avg);        // rank 0 with 8
//
// Communicators along axes share everything with the world's: they take no memory and no messages to make.
// See communicator::along for what that asks of the caller.
#pragma once

#include "collx/communicator.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <class Name, class First, class... Rest>
[[nodiscard]] consteval std::size_t axis_index() {
  if constexpr (std::is_same_v<Name, First>) return 0;
  else return 1 + axis_index<Name, Rest...>();
}

template <class Name, class... Names>
inline constexpr bool is_axis = (std::is_same_v<Name, Names> || ...);

}  // namespace detail

template <class Transport, class... Names>
class mesh {
 public:
  using communicator_type = communicator<Transport>;
  static constexpr std::size_t axis_count = sizeof...(Names);

  // extents: ranks along each axis, innermost first; their product must be the size of `world`. Throws error
  // (bad_argument) otherwise. Sends nothing. `world` must outlive the mesh, which refers to it where it is:
  // do not move it. ranks_per_group() of the communicators along axes is 1, whatever that of `world` is.
  mesh(communicator_type& world, rank_t const (&extents)[axis_count])
      : world_(&world), lines_{line<Names>(world, extents)...} {
    rank_t pitch = 1;
    for (std::size_t i = 0; i < axis_count; ++i) {
      extents_[i] = extents[i];
      coordinates_[i] = world.rank() / pitch % extents[i];
      pitch *= extents[i];
    }
  }

  // The ranks that differ from this one in that coordinate only, in its order.
  template <class Name>
  [[nodiscard]] communicator_type& along() noexcept {
    return lines_[index<Name>()];
  }

  // This rank's place on an axis, and the number of places there.
  template <class Name>
  [[nodiscard]] rank_t coordinate() const noexcept {
    return coordinates_[index<Name>()];
  }
  template <class Name>
  [[nodiscard]] rank_t extent() const noexcept {
    return extents_[index<Name>()];
  }

  [[nodiscard]] communicator_type& world() const noexcept { return *world_; }

 private:
  template <class Name>
  [[nodiscard]] static consteval std::size_t index() {
    static_assert(detail::is_axis<Name, Names...>, "collx: this mesh has no axis of that name");
    return detail::axis_index<Name, Names...>();
  }

  template <class Name>
  [[nodiscard]] static communicator_type line(communicator_type const& world,
                                              rank_t const (&extents)[axis_count]) {
    check(world, extents);
    constexpr std::size_t own_axis = index<Name>();
    rank_t pitch = 1;
    for (std::size_t i = 0; i != own_axis; ++i) pitch *= extents[i];
    rank_t const extent = extents[own_axis];
    rank_t const own = world.rank() / pitch % extent;
    return world.along({world.rank() - own * pitch, pitch, extent});
  }

  static void check(communicator_type const& world, rank_t const (&extents)[axis_count]) {
    std::int64_t product = 1;
    for (rank_t const extent : extents) product = extent < 1 || product > world.size() ? 0 : product * extent;
    if (product > 0 && product == world.size()) return;
    char list[14 * axis_count + 1];  // a number has at most 11 characters
    text_writer out{list, sizeof list};
    for (rank_t const& extent : extents) out.add("%s%d", &extent == extents ? "" : " x ", extent);
    throw_error(
        status::bad_argument,
        "mesh on rank %d of %d: the extents, %s, must be positive, and their product the number of ranks",
        world.rank(), world.size(), list);
  }

  communicator_type* world_;
  communicator_type lines_[axis_count];
  rank_t extents_[axis_count] = {}, coordinates_[axis_count] = {};
};

// make_mesh<tp, dp>(world, {2, 4}): the transport is that of `world`.
template <class... Names, class Transport>
[[nodiscard]] mesh<Transport, Names...> make_mesh(communicator<Transport>& world,
                                                  rank_t const (&extents)[sizeof...(Names)]) {
  return {world, extents};
}

}  // namespace collx::inline abi_1
