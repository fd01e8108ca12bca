// SPDX-License-Identifier: Apache-2.0
// One call of a collective on a group of windows, as the threads of one lane of one rank make it.
#pragma once

#include "collective/oracle.hpp"
#include "collx/exec/lane_cut.hpp"
#include "collx/exec/lane_machine.hpp"
#include "transport/window_group.hpp"

namespace window_group {

using team_t = device_test::host_team;

// What a lane of a rank does in one call. `workspace`: of the lane. `after`: the epilogue.
template <collx::schedule S, class T, class Op, class After = collx::exec::no_epilogue>
bool perform_on(windows::view const& mine, traits const& chosen, int lane, team_t& team,
                collx::exec::lane_workspace& workspace, T const* in, T* out, oracle::setting const& how,
                Op const& op, After const& after = {}) {
  collx::problem const where{mine.rank, how.size, how.root};
  auto const user = [&] {
    return collx::exec::even_buffers<typename S::contract>(where, in, out, how.in_place);
  };
  collx::exec::chunk_map const map =
      collx::exec::map_lanes<S>(where, user, how.count, sizeof(T), chosen.staging_bytes, chosen.lanes);
  // As a kernel does it (exec/device_executor.cuh).
  windows::lane_port const port(mine, lane, workspace.near);
  collx::exec::lane_machine<S::contract::from_all, T, Op, team_t, windows::lane_port> machine(
      team, port, workspace, map, op);
  if (!collx::exec::may_begin(team, port, workspace, [&] { machine.template look_ahead<S>(); })) return false;
  if constexpr (std::is_same_v<After, collx::exec::no_epilogue>) return machine.template perform_all<S>();
  else return machine.template perform_all_then<S>(after);
}

// The same with the rank's own view.
template <collx::schedule S, class T, class Op, class After = collx::exec::no_epilogue>
bool perform(group& all, rank_t rank, int lane, team_t& team, collx::exec::lane_workspace& workspace,
             T const* in, T* out, oracle::setting const& how, Op const& op, After const& after = {}) {
  return perform_on<S>(all.view(rank), all.chosen(), lane, team, workspace, in, out, how, op, after);
}

}  // namespace window_group
