// SPDX-License-Identifier: Apache-2.0
// What kernels run, run by threads, where every block has a count of its own: bound, told and cut as calls on
// a GPU are, and with tables that are attached to the map elsewhere, as in a kernel.
#include <atomic>
#include <numeric>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/lane_call.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/exec/lane_machine.hpp"
#include "transport/window_group.hpp"

namespace {

using namespace collx;
using team_t = device_test::host_team;
using counts_t = std::vector<std::size_t>;

enum class pattern { small, sparse, one_receiver, large, last };

// What rank s has for rank d.
std::size_t count_of(pattern how, rank_t size, rank_t s, rank_t d) {
  auto const mixed = static_cast<std::size_t>(s * 7 + d * 3);
  switch (how) {
    case pattern::small: return 1 + mixed % 11;
    case pattern::sparse: return mixed % 3 == 0 ? 1 + mixed : 0;
    case pattern::one_receiver: return d == size / 2 ? 40 + static_cast<std::size_t>(s) : 0;
    case pattern::large: return 1000 + 3500 * (mixed % 5);  // not the same number of fragments on all ranks
    case pattern::last: break;
  }
  return 0;
}

int value(rank_t from, rank_t to, std::size_t i) {
  return from * 1'000'003 + to * 10'007 + static_cast<int>(i) * 7;
}

// Some blocks: packed, or from the last to the first with gaps.
struct memory {
  counts_t counts, offsets;
  std::vector<int> data;
  bool packed;

  memory(counts_t each, bool in_order) : counts(std::move(each)), offsets(counts.size()), packed(in_order) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::size_t const r = packed ? i : counts.size() - 1 - i;
      offsets[r] = end;
      end += counts[r] + (packed ? 0 : 3);
    }
    data.assign(end, -1);
  }
  blocks<int> view() { return packed ? blocks<int>{data, counts} : blocks<int>{data, counts, offsets}; }
  template <class F>
  void fill(F const& f) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t i = 0; i < counts[r]; ++i) data[offsets[r] + i] = f(static_cast<rank_t>(r), i);
  }
};

// One call on all ranks. `bind(rank)` returns its arguments.
template <schedule S, class Bind>
bool succeeds(window_group::traits const& chosen, Bind const& bind) {
  window_group::group all(chosen);
  std::vector<exec::lane_workspace> workspaces(static_cast<std::size_t>(chosen.size * chosen.lanes));
  std::atomic<int> failed{0};
  all.run(
      [](rank_t) { return true; },
      [&](rank_t r, int lane, team_t& team) {
        problem p{r, chosen.size};
        auto const args = bind(p);
        p.root = args.root;
        using args_t = std::remove_const_t<decltype(args)>;
        if (args.fault != nullptr) FAIL_CHECK(args.fault);
        auto told = detail::lane_tables_of(args, p.size);
        exec::chunk_map map = detail::map_call<S>(p, args, told, chosen.staging_bytes, chosen.lanes);
        auto const elsewhere = told;
        told = {};  // whoever still reads these finds nothing
        attach(map, elsewhere);
        auto& mine = workspaces[static_cast<std::size_t>(r * chosen.lanes + lane)];
        transport::windows::lane_port const port(all.view(r), lane);
        using op_t = decltype(args_t::op);
        exec::lane_machine<S::contract::from_all, int, op_t, team_t, transport::windows::lane_port> machine(
            team, port, mine, map, args.op);
        bool const done = exec::may_begin(team, port, mine, [&] { machine.template look_ahead<S>(); }) &&
                          machine.template perform_all<S>();
        // Relaxed: read after all threads have ended.
        if (!done) failed.fetch_add(1, std::memory_order_relaxed);
      });
  return failed.load(std::memory_order_relaxed) == 0;
}

std::vector<memory> of_all(rank_t size, auto const& counts_at, bool packed) {
  std::vector<memory> made;
  for (rank_t r = 0; r < size; ++r) made.emplace_back(counts_at(r), packed);
  return made;
}

template <class Algorithm>
void gathers(window_group::traits const& chosen, pattern how, bool packed) {
  rank_t const n = chosen.size;
  counts_t counts;
  for (rank_t r = 0; r < n; ++r) counts.push_back(count_of(how, n, r, n / 2));
  auto in = of_all(
      n, [&](rank_t r) { return counts_t{counts[static_cast<std::size_t>(r)]}; }, true);
  auto out = of_all(
      n, [&](rank_t) { return counts; }, packed);
  memory expected(counts, packed);
  expected.fill([](rank_t r, std::size_t i) { return value(r, 0, i); });
  for (rank_t r = 0; r < n; ++r)
    in[static_cast<std::size_t>(r)].fill([&](rank_t, std::size_t i) { return value(r, 0, i); });
  CHECK(succeeds<typename Algorithm::all_gather>(chosen, [&](problem p) {
    auto const at = static_cast<std::size_t>(p.rank);
    return detail::bind_all_gather_v(p, in[at].data, out[at].view());
  }));
  for (memory const& each : out) CHECK(each.data == expected.data);
}

template <class Algorithm>
void scatters(window_group::traits const& chosen, pattern how, bool packed) {
  rank_t const n = chosen.size;
  counts_t counts;
  for (rank_t r = 0; r < n; ++r) counts.push_back(count_of(how, n, n / 2, r));
  auto in = of_all(
      n, [&](rank_t) { return counts; }, packed);
  auto out = of_all(
      n, [&](rank_t r) { return counts_t{counts[static_cast<std::size_t>(r)]}; }, true);
  for (rank_t r = 0; r < n; ++r)
    in[static_cast<std::size_t>(r)].fill([&](rank_t d, std::size_t i) { return value(r, d, i); });
  CHECK(succeeds<typename Algorithm::reduce_scatter>(chosen, [&](problem p) {
    auto const at = static_cast<std::size_t>(p.rank);
    return detail::bind_reduce_scatter_v(p, in[at].view(), out[at].data, sum);
  }));
  std::size_t wrong = 0;
  for (rank_t d = 0; d < n; ++d)
    for (std::size_t i = 0; i < counts[static_cast<std::size_t>(d)]; ++i) {
      int total = 0;
      for (rank_t r = 0; r < n; ++r) total += value(r, d, i);
      wrong += out[static_cast<std::size_t>(d)].data[i] != total;
    }
  CHECK(wrong == 0);
}

template <class Algorithm>
void exchanges(window_group::traits const& chosen, pattern how, bool packed) {
  rank_t const n = chosen.size;
  auto const row = [&](rank_t r, bool sends) {
    counts_t counts;
    for (rank_t other = 0; other < n; ++other)
      counts.push_back(sends ? count_of(how, n, r, other) : count_of(how, n, other, r));
    return counts;
  };
  auto in = of_all(
      n, [&](rank_t r) { return row(r, true); }, packed);
  auto out = of_all(
           n, [&](rank_t r) { return row(r, false); }, packed),
       expected = out;
  for (rank_t r = 0; r < n; ++r) {
    in[static_cast<std::size_t>(r)].fill([&](rank_t d, std::size_t i) { return value(r, d, i); });
    expected[static_cast<std::size_t>(r)].fill([&](rank_t s, std::size_t i) { return value(s, r, i); });
  }
  CHECK(succeeds<typename Algorithm::all_to_all>(chosen, [&](problem p) {
    auto const at = static_cast<std::size_t>(p.rank);
    return detail::bind_all_to_all_v(p, in[at].view(), out[at].view());
  }));
  for (std::size_t r = 0; r < out.size(); ++r) CHECK(out[r].data == expected[r].data);
}

// The root knows all counts, the others their own.
template <class Algorithm>
void collects(window_group::traits const& chosen, pattern how, bool packed, rank_t root) {
  rank_t const n = chosen.size;
  counts_t counts;
  for (rank_t r = 0; r < n; ++r) counts.push_back(count_of(how, n, r, root));
  auto in = of_all(
      n, [&](rank_t r) { return counts_t{counts[static_cast<std::size_t>(r)]}; }, true);
  memory out(counts, packed), expected(counts, packed);
  expected.fill([&](rank_t r, std::size_t i) { return value(r, root, i); });
  for (rank_t r = 0; r < n; ++r)
    in[static_cast<std::size_t>(r)].fill([&](rank_t, std::size_t i) { return value(r, root, i); });
  CHECK(succeeds<typename Algorithm::gather>(chosen, [&](problem p) {
    auto const at = static_cast<std::size_t>(p.rank);
    auto const args =
        detail::bind_gather_v(p, in[at].data, p.rank == root ? out.view() : blocks<int>{}, root);
    p.root = root;
    CHECK(detail::input_extent(p, args) == counts[at]);
    CHECK((detail::output_extent(p, args) != 0) == (p.rank == root && !out.data.empty() && args.count != 0));
    return args;
  }));
  CHECK(out.data == expected.data);
}

template <class Algorithm>
void hands_out(window_group::traits const& chosen, pattern how, bool packed, rank_t root) {
  rank_t const n = chosen.size;
  counts_t counts;
  for (rank_t r = 0; r < n; ++r) counts.push_back(count_of(how, n, root, r));
  memory in(counts, packed);
  in.fill([&](rank_t r, std::size_t i) { return value(root, r, i); });
  auto out = of_all(
      n, [&](rank_t r) { return counts_t{counts[static_cast<std::size_t>(r)]}; }, true);
  CHECK(succeeds<typename Algorithm::scatter>(chosen, [&](problem p) {
    auto const at = static_cast<std::size_t>(p.rank);
    auto const args =
        detail::bind_scatter_v(p, p.rank == root ? in.view() : blocks<int>{}, out[at].data, root);
    p.root = root;
    CHECK(detail::output_extent(p, args) == counts[at]);
    return args;
  }));
  std::size_t wrong = 0;
  for (rank_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < counts[static_cast<std::size_t>(r)]; ++i)
      wrong += out[static_cast<std::size_t>(r)].data[i] != value(root, r, i);
  CHECK(wrong == 0);
}

void try_all(window_group::traits const& chosen) {
  CAPTURE(chosen.size);
  CAPTURE(chosen.lanes);
  CAPTURE(chosen.packet_bytes);
  for (int i = 0; i < static_cast<int>(pattern::last); ++i)
    for (bool const packed : {true, false}) {
      CAPTURE(i);
      CAPTURE(packed);
      auto const how = static_cast<pattern>(i);
      gathers<algo::direct_one_shot>(chosen, how, packed);
      gathers<algo::ring>(chosen, how, packed);
      scatters<algo::direct_one_shot>(chosen, how, packed);
      scatters<algo::ring>(chosen, how, packed);
      exchanges<algo::direct_one_shot>(chosen, how, packed);
      exchanges<algo::pairwise>(chosen, how, packed);
      collects<algo::direct_one_shot>(chosen, how, packed, chosen.size - 1);
      hands_out<algo::direct_one_shot>(chosen, how, packed, chosen.size / 2);
    }
}

}  // namespace

TEST_CASE("lanes move blocks that have counts of their own") {
  for (rank_t size = 1; size <= 4; ++size) {
    try_all({.size = size, .lanes = 2, .staging_bytes = 16 * 1024, .reaches_all = size % 2 == 0});
    try_all({.size = size,
             .threads = 2,
             .packet_bytes = 256,
             .width = transport::windows::packet_width::wide,
             .reaches_all = size % 2 == 1});
  }
}
