// SPDX-License-Identifier: Apache-2.0
// Branches, calls, barriers, and what ends a thread.
#include <algorithm>

#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

using i = instruction;

void branch(thread& t, i const& o) { t.pc = o.targets[0]; }
void branch_by_index(thread& t, i const& o) {
  auto const at = get<std::uint32_t>(t, o.from[0]);
  if (at >= o.targets.size()) throw fault("brx.idx beyond its table");
  t.pc = o.targets[at];
}

void call(thread& t, i const& o) { enter(t, *o.callee, &o); }
void back(thread& t, i const&) { leave(t); }
void end(thread& t, i const&) { t.state = thread_state::ended; }
void trap(thread&, i const&) { throw fault("a trap"); }

// For `from[0]` threads, all if there is none.
void wait_at_barrier(thread& t, i const& o) {
  t.state = thread_state::at_barrier;
  t.barrier = static_cast<std::uint32_t>(bits_of(t, o.to));
  t.barrier_count = o.from[0].kind == source_kind::none ? 0 : get<std::uint32_t>(t, o.from[0]);
}

void give_way(thread& t, i const&) { t.gives_way = true; }

}  // namespace

execute_function decode_control(statement const& s, instruction& o) {
  std::string const& op = s.opcode[0];
  if (op == "bra") return branch;
  if (op == "brx") return branch_by_index;
  if (op == "call") return call;
  if (op == "ret") return back;
  if (op == "exit") return end;
  if (op == "trap" || op == "brkpt") return trap;
  if (op == "nanosleep") return give_way;
  if ((op == "bar" || op == "barrier") && s.has("sync")) return (void)o, wait_at_barrier;
  return nullptr;
}

}  // namespace emulated
