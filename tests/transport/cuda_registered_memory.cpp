// SPDX-License-Identifier: Apache-2.0
// Memory that ranks register together, over a driver that is played: opened once per allocation and process,
// closed when nobody uses it, nothing left where a step fails; and memory that cannot be exported, or was
// freed since.
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/transport/cuda/registered_memory.hpp"

namespace {

using namespace collx::transport::cuda_parts;
using collx::rank_t;
using collx::status;
namespace windows = collx::transport::windows;

// What all processes share: which handles there are, and where each is open.
struct machine {
  std::map<std::uint64_t, std::uintptr_t> handles;  // by number: the base of the allocation
  std::map<std::uintptr_t, std::uint64_t> open;     // by address: what is open there
  std::uint64_t last = 0;
  int opens = 0, closes_of_nothing = 0;
  std::string refused;  // the function that fails
  int opens_allowed = 1 << 20;
};

struct driver {
  machine* m;

  int export_handle(std::uintptr_t base, ipc_handle& made) noexcept {
    if (m->refused == "export") return 17;
    made = {};
    std::uint64_t const number = ++m->last;
    std::memcpy(made.bytes, &number, sizeof number);
    m->handles[number] = base;
    return 0;
  }
  int open_handle(ipc_handle const& handle, std::uintptr_t& address) noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, handle.bytes, sizeof number);
    if (m->refused == "open" || m->opens == m->opens_allowed || !m->handles.contains(number)) return 17;
    ++m->opens;
    address = std::uintptr_t{++m->last} << 32;
    m->open[address] = number;
    return 0;
  }
  int close_handle(std::uintptr_t address) noexcept {
    m->closes_of_nothing += m->open.erase(address) != 1;
    return 0;
  }
};
static_assert(ipc_driver<driver>);

using table = registered_memory<driver>;

constexpr std::uintptr_t base = 0x7f0000000000;
constexpr std::size_t whole = 1 << 20;

memory_place place_of(std::uint64_t id, std::uintptr_t at = base) {
  return {place_kind::device, 0, at, whole, id};
}

// Three ranks, of which the last two are one process. Each has an allocation at the same address as others of
// other processes.
struct ranks {
  machine m;
  table zero{driver{&m}, 0, 3, false}, one{driver{&m}, 1, 3, false}, two{driver{&m}, 2, 3, false};
  memory_place places[3] = {place_of(1), place_of(1), place_of(2, base + 4 * whole)};

  [[nodiscard]] table& of(int r) { return r == 0 ? zero : r == 1 ? one : two; }
  [[nodiscard]] std::vector<registration_offer> offers(std::size_t first, std::size_t bytes) {
    std::vector<registration_offer> all;
    for (int r = 0; r < 3; ++r)
      all.push_back(of(r).describe({r == 0 ? 10u : 20u, 5u}, places[r], places[r].base + first, bytes));
    return all;
  }
  // The place that all agree on.
  int open(std::size_t first = 64, std::size_t bytes = 4096) {
    auto const all = offers(first, bytes);
    int const at = zero.open(all, places[0]);
    CHECK(one.open(all, places[1]) == at);
    CHECK(two.open(all, places[2]) == at);
    return at;
  }
  void close(int at) {
    for (int r = 0; r < 3; ++r) of(r).close(at);
  }
};

// What rank `of` is seen as, by a rank.
windows::peer_view seen(table const& by, int of) {
  windows::peer_view view;
  view.registered = by.lists().data() + of * windows::registered_list;
  return view;
}

template <class F>
std::string thrown(status expected, F const& f) {
  try {
    f();
  } catch (collx::error const& e) {
    CHECK(e.code() == expected);
    return e.what();
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace

TEST_CASE("each rank maps the allocations of other processes, and those of its own are where they are") {
  ranks all;
  all.open();
  CHECK(all.m.opens == 4);  // two by rank 0, and one by each of the others
  std::uintptr_t const address = base + 100;
  CHECK(seen(all.zero, 0).shift_of(address) == 0);
  CHECK(seen(all.one, 2).shift_of(base + 4 * whole + 64) == 0);
  for (int const r : {1, 2}) {
    std::int64_t const shift = seen(all.of(r), 0).shift_of(address);
    CHECK(shift != 0);
    CHECK(all.m.open.contains(base + static_cast<std::uintptr_t>(shift)));  // where the allocation begins
    CHECK(seen(all.of(r), 0).shift_to(address + static_cast<std::uint64_t>(shift)) == shift);
    CHECK(seen(all.of(r), 0).shift_of(base + 63) == 0);
  }
  CHECK(seen(all.zero, 0).has_registered(base + 64, 4096));
  CHECK_FALSE(seen(all.zero, 0).has_registered(base + 64, 4097));
  CHECK_FALSE(seen(all.zero, 0).has_registered(base + 63, 8));
}

TEST_CASE("parts of one allocation are opened once, and closed with the last of them") {
  ranks all;
  int const first = all.open(64, 128), second = all.open(4096, 128);
  CHECK(second == first + 1);
  CHECK(all.m.opens == 4);
  all.close(first);
  CHECK(all.m.open.size() == 4);
  CHECK_FALSE(seen(all.zero, 0).has_registered(base + 64, 8));
  CHECK(seen(all.zero, 0).has_registered(base + 4096, 8));  // behind one that was given up
  CHECK(all.open(64, 128) == first);
  CHECK(all.m.opens == 4);
  all.close(first);
  all.close(second);
  CHECK(all.m.open.empty());
  CHECK(all.zero.is_empty());
  for (windows::registered_range const& each : all.zero.lists()) CHECK(each.end == 0);
  CHECK(all.m.closes_of_nothing == 0);
}

TEST_CASE("there are as many as lists have room for, and their end is never lost") {
  ranks all;
  for (int i = 0; i < windows::registrations_max; ++i) CHECK(all.open() == i);
  auto const offers = all.offers(0, 16);
  std::string const text = thrown(status::out_of_memory, [&] { (void)all.zero.open(offers, all.places[0]); });
  CHECK(text.find("as many as it may have") != std::string::npos);
  for (int r = 0; r < 3; ++r)
    CHECK(
        all.zero.lists()[static_cast<std::size_t>(r) * windows::registered_list + windows::registrations_max]
            .end == 0);
  for (int i = 0; i < windows::registrations_max; ++i) all.close(i);
  CHECK(all.m.open.empty());
}

TEST_CASE("a rank may have nothing to register") {
  ranks all;
  auto offers = all.offers(64, 4096);
  offers[0] = {};
  offers[0].process = {10, 5};
  for (int r = 0; r < 3; ++r) CHECK(all.of(r).open(offers, r == 0 ? memory_place{} : all.places[r]) == 0);
  CHECK(all.m.opens == 2);
  CHECK_FALSE(seen(all.one, 0).has_registered(base + 64, 8));
  all.close(0);
  CHECK(all.m.open.empty());
}

TEST_CASE("where a step fails nothing is left of it, and it is named") {
  ranks all;
  auto const offers = all.offers(64, 4096);
  all.m.refused = "open";
  std::string text = thrown(status::system_failure, [&] { (void)all.zero.open(offers, all.places[0]); });
  CHECK(text.find("mapping memory of rank 1") != std::string::npos);
  CHECK(text.find("error 17") != std::string::npos);
  CHECK(all.m.open.empty());
  CHECK(all.zero.is_empty());
  all.m.refused = "export";
  text = thrown(status::system_failure, [&] { (void)all.offers(0, 8); });
  CHECK(text.find("cudaIpcGetMemHandle: error 17") != std::string::npos);
  all.m.refused = "";
  CHECK(all.zero.open(offers, all.places[0]) == 0);
}

TEST_CASE("where a later peer's memory cannot be mapped, what was mapped of others before is closed") {
  ranks all;
  auto const offers = all.offers(64, 4096);
  all.m.opens_allowed = 1;
  std::string const text =
      thrown(status::system_failure, [&] { (void)all.zero.open(offers, all.places[0]); });
  CHECK(text.find("mapping memory of rank 2") != std::string::npos);
  CHECK(all.m.open.empty());  // or its owner could not free it
  // What an earlier registration has mapped stays.
  all.m.opens_allowed = 1 << 20;
  int const at = all.open(64, 128);
  std::size_t const open = all.m.open.size();
  all.places[2] = place_of(3, base + 8 * whole);
  auto const others = all.offers(0, 16);
  all.m.opens_allowed = all.m.opens;
  (void)thrown(status::system_failure, [&] { (void)all.zero.open(others, all.places[0]); });
  CHECK(all.m.open.size() == open);
  CHECK(all.m.closes_of_nothing == 0);
  all.close(at);
  CHECK(all.m.open.empty());
}

TEST_CASE("ranks of one process need no handles") {
  machine m;
  m.refused = "export";
  table zero(driver{&m}, 0, 2, true);
  auto const mine = zero.describe({10, 5}, place_of(1), base, 64);
  auto const theirs = zero.describe({10, 5}, place_of(2, base + whole), base + whole, 64);
  registration_offer const all[] = {mine, theirs};
  CHECK(zero.open(all, place_of(1)) == 0);
  CHECK(seen(zero, 1).shift_of(base + whole) == 0);
  CHECK(m.opens == 0);
}

TEST_CASE("memory that was freed is noticed when another allocation lies there") {
  ranks all;
  int const at = all.open();
  CHECK_FALSE(all.zero.is_stale(base + 64, place_of(1)));
  CHECK(all.zero.is_stale(base + 64, place_of(7)));
  CHECK(all.zero.is_stale(base + 64, memory_place{}));  // nothing lies there, or nobody says how much
  CHECK_FALSE(all.zero.is_stale(base + whole, place_of(7, base + whole)));
  // A larger one, of which a call is given what lies before and in the old one.
  memory_place const larger{place_kind::device, 0, base - whole, 3 * whole, 8};
  CHECK(all.zero.is_stale(base - whole, larger));
  all.places[0] = place_of(7);
  std::string const text = thrown(status::bad_argument, [&] { (void)all.offers(0, 8); });
  CHECK(text.find("freed since") != std::string::npos);
  all.close(at);
  all.open();
  CHECK_FALSE(all.zero.is_stale(base + 64, place_of(7)));
}

TEST_CASE("what cannot be exported is refused, each kind in its own words") {
  auto const says = [](memory_place const& place, bool is_plain, char const* words) {
    char const* const why = not_exported(place, 0, is_plain);
    REQUIRE(why != nullptr);
    CHECK(std::string(why).find(words) != std::string::npos);
  };
  CHECK(not_exported(place_of(1), 0, true) == nullptr);
  memory_place place = place_of(1);
  says(place, false, "cudaMallocAsync");
  place.device = 1;
  says(place, true, "another GPU");
  place.kind = place_kind::managed;
  says(place, true, "cudaMallocManaged");
  place.kind = place_kind::pinned;
  says(place, true, "memory of the host");
  says({}, true, "or freed");
  says(place_of(0), true, "no handle");
}
