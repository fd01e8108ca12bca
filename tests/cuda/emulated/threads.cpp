// SPDX-License-Identifier: Apache-2.0
// The frames of threads, the memory they find, and what they know of themselves.
#include <algorithm>
#include <ctime>

#include "cuda/emulated/thread.hpp"

namespace emulated {

void enter(thread& t, function const& what, instruction const* call) {
  if (!what.unread.empty() || what.code.empty())
    throw fault("a call of " + what.name + ", which has no body here");
  frame const caller = t.frames.empty() ? frame{nullptr, 0, 0, 0, nullptr} : t.frames.back();
  std::size_t const registers_at = t.frames.empty() ? 0 : caller.registers_at + caller.what->register_count;
  auto const rounded = [](std::size_t n) { return (n + 15) / 16 * 16; };
  std::size_t const stack_at = t.frames.empty() ? 0
                                                : caller.stack_at + rounded(caller.what->parameter_bytes) +
                                                      rounded(caller.what->local_bytes);
  std::byte* const passes = t.parameters;
  if (!t.frames.empty()) t.frames.back().pc = t.pc;
  t.frames.push_back({&what, 0, registers_at, stack_at, call});
  // As if nobody had cleared them.
  t.register_stack.resize(std::max(t.register_stack.size(), registers_at + what.register_count),
                          0xa5a5a5a5a5a5a5a5);
  std::size_t const stack_needed = stack_at + rounded(what.parameter_bytes) + rounded(what.local_bytes);
  if (t.frames.size() == 1) {
    std::size_t const wanted = stack_needed + (what.calls ? stack_bytes : 0);
    if (t.stack.size() < wanted) t.stack.resize(wanted, std::byte{0xa5});
  }
  if (stack_needed > t.stack.size()) throw fault("the stack of a thread is full");
  t.registers = t.register_stack.data() + registers_at;
  t.parameters = t.stack.data() + stack_at;
  t.local = t.parameters + rounded(what.parameter_bytes);
  t.what = &what;
  t.pc = 0;
  if (call == nullptr) return;
  for (std::size_t k = 0; k < call->passed.size(); ++k)
    std::memcpy(t.parameters + what.parameters.at(k).offset, passes + call->passed[k].first,
                std::min<std::size_t>(call->passed[k].second, what.parameters[k].bytes));
}

void leave(thread& t) {
  frame const left = t.frames.back();
  t.frames.pop_back();
  if (t.frames.empty()) {
    t.state = thread_state::ended;
    return;
  }
  std::byte const* const result = t.parameters + left.what->result.offset;
  frame const& now = t.frames.back();
  t.registers = t.register_stack.data() + now.registers_at;
  t.parameters = t.stack.data() + now.stack_at;
  t.local = t.parameters + (now.what->parameter_bytes + 15) / 16 * 16;
  t.what = now.what;
  t.pc = now.pc;
  std::memcpy(t.parameters + left.call->returned.first, result,
              std::min<std::size_t>(left.call->returned.second, left.what->result.bytes));
}

namespace {

// Wide enough for what is known, and for what is asked.
bool covers(range const& r, std::uintptr_t at, std::size_t bytes) {
  return at >= r.begin && at < r.end && r.end - at >= bytes;
}

std::byte* bytes_of(range const& r, std::uintptr_t at) {
  return reinterpret_cast<std::byte*>(at + static_cast<std::uintptr_t>(r.shift));
}

bool find_own(thread& t, std::uintptr_t at, range& found) {
  auto const within = [&](void const* begin, std::size_t bytes) {
    auto const first = reinterpret_cast<std::uintptr_t>(begin);
    if (at < first || at - first >= bytes) return false;
    found = {first, first + bytes};
    return true;
  };
  return within(t.of->shared.data(), t.of->shared.size()) || within(t.stack.data(), t.stack.size()) ||
         within(t.of->of->parameters.data(), t.of->of->parameters.size()) || t.of->of->code->holds(at, found);
}

}  // namespace

std::string text_of(std::uintptr_t at) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(at));
  return text;
}

std::byte* find_memory(thread& t, std::uintptr_t at, std::size_t bytes, char const* how) {
  if ((at & (bytes - 1)) != 0)  // a power of two
    throw fault(std::string("misaligned ") + how + " of " + std::to_string(bytes) + " bytes at " +
                text_of(at));
  // Acquire: pairs with the runtime's, which counts on when a range has gone.
  std::uint64_t const changes = ranges_changed.load(std::memory_order_acquire);
  if (changes != t.known_at) t.known[0] = t.known[1] = {}, t.known_at = changes;
  for (range const& each : t.known)
    if (covers(each, at, bytes)) return bytes_of(each, at);
  range found;
  if ((!find_own(t, at, found) && !find_range(at, found)) || !covers(found, at, bytes)) {
    replicas behind;
    throw fault(std::string("invalid ") + how + " of " + std::to_string(bytes) + " bytes at " + text_of(at) +
                (find_replicas(at, bytes, behind) == nullptr
                     ? ", a multicast address, which is for multimem alone"
                     : ", where nothing is allocated"));
  }
  t.known[t.replaced++ % 2] = found;
  return bytes_of(found, at);
}

bool module::holds(std::uintptr_t at, range& found) const {
  auto const begin = reinterpret_cast<std::uintptr_t>(program_->memory);
  if (at < begin || at - begin >= program_->used_bytes) return false;
  found = {begin, begin + program_->used_bytes};
  return true;
}

std::uint64_t read_special(thread const& t, special_register which) {
  launch const& l = *t.of->of;
  auto const now_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  };
  std::uint32_t const lane = t.lane();
  using r = special_register;
  switch (which) {
    case r::tid_x: return t.at.x;
    case r::tid_y: return t.at.y;
    case r::tid_z: return t.at.z;
    case r::ntid_x: return l.block.x;
    case r::ntid_y: return l.block.y;
    case r::ntid_z: return l.block.z;
    case r::ctaid_x: return t.of->at.x;
    case r::ctaid_y: return t.of->at.y;
    case r::ctaid_z: return t.of->at.z;
    case r::nctaid_x: return l.grid.x;
    case r::nctaid_y: return l.grid.y;
    case r::nctaid_z: return l.grid.z;
    case r::laneid: return lane;
    case r::warpid: return t.number / 32;
    case r::nwarpid: return (l.block.count() + 31) / 32;
    case r::smid: return t.of->multiprocessor;
    case r::nsmid: return multiprocessors;
    case r::gridid: return t.of->grid;
    case r::clock: return now_ns() & 0xffffffff;
    case r::clock64: return now_ns();
    case r::globaltimer: return now_ns();
    case r::globaltimer_lo: return now_ns() & 0xffffffff;
    case r::lanemask_eq: return std::uint32_t{1} << lane;
    case r::lanemask_lt: return (std::uint32_t{1} << lane) - 1;
    case r::lanemask_le: return (std::uint64_t{2} << lane) - 1;
    case r::lanemask_gt: return ~((std::uint64_t{2} << lane) - 1) & 0xffffffff;
    case r::lanemask_ge: return ~((std::uint64_t{1} << lane) - 1) & 0xffffffff;
    case r::dynamic_smem_size: return l.dynamic_shared_bytes;
    case r::total_smem_size: return t.of->shared.size();
    case r::count: break;
  }
  return 0;
}

std::string where(thread const& t) {
  auto const three = [](dimensions const& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  std::string text = "block " + three(t.of->at) + ", thread " + three(t.at);
  if (t.what != nullptr) {
    std::size_t const at = static_cast<std::size_t>(std::max(t.pc - 1, 0));
    text += ", " + t.what->name;
    if (at < t.what->code.size()) text += ", PTX line " + std::to_string(t.what->code[at].line);
  }
  return text;
}

}  // namespace emulated
