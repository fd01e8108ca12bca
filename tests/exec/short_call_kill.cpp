// SPDX-License-Identifier: Apache-2.0
// Short calls lend symmetric memory, and end when it has been read. A process is killed (SIGKILL) just then:
// one that is to read what others have lent, or one that has lent, and waits for its readers.
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <signal.h>

#include "collx/collx.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;

constexpr rank_t ranks = 3, victim = 1;
constexpr std::uint64_t deadline_us = 60'000'000;

// Any of them: each is lent by all that send, in a step of theirs.
constexpr std::size_t count = 3 * 1024;
static_assert(count * sizeof(int) > 8 * collx::exec::lend_bytes_min &&
              count * sizeof(int) <= collx::exec::short_staged_bytes);

// Who is killed: the reader with what it has read not acknowledged, or the lender before it looks for
// receipts.
enum class doomed { reader, lender };

// What ranks tell each other, and the test, in memory that all processes share.
struct scene {
  arrivals begun;     // out of the barrier before
  arrivals draining;  // lenders that wait for their readers, and have no executor yet
  arrivals outlived;  // by those whose first call has ended well
  struct survivor {
    bool failed = false, names_victim = false, is_usable = false, is_right = true;
    bool has_lent = false;
    int ended_well = 0;
    std::uint64_t took_us = 0;  // the call that failed
  } seen[ranks];
};

// Has the call that it watches go on as a short one up to its end, and one rank killed there.
template <class Endpoint>
class draining_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;

  void watch(scene& with, doomed who, int lenders) noexcept {
    scene_ = &with;
    who_ = who;
    lenders_ = lenders;
  }
  void watch_no_more() noexcept { scene_ = nullptr; }
  [[nodiscard]] bool has_lent() const noexcept { return has_lent_; }

  // An executor says where its output is.
  void begin(int lane, std::byte* output, std::size_t bytes = 0) noexcept {
    has_executor_ = output != nullptr;
    Endpoint::begin(lane, output, bytes);
  }

  // Messages of who is to be killed as a lender are looked at when it is gone.
  [[nodiscard]] bool arrived(int lane, rank_t peer, collx::transport::arrival& what) noexcept {
    if (scene_ != nullptr) {
      bool const outlives = peer == victim && who_ == doomed::lender;
      while (Endpoint::interrupted(peer) == status::ok && (outlives || !Endpoint::arrived(lane, peer, what)))
        sched_yield();
    }
    return Endpoint::arrived(lane, peer, what);
  }

  void consume(int lane, rank_t peer) noexcept {
    if (scene_ != nullptr && who_ == doomed::reader && this->rank() == victim) {
      scene_->draining.wait_for(lenders_);
      raise(SIGKILL);
    }
    Endpoint::consume(lane, peer);
  }

  [[nodiscard]] rank_t unread_by(int lane) noexcept {
    if (scene_ != nullptr && !has_lent_ && !has_executor_) {
      has_lent_ = true;
      if (who_ == doomed::lender && this->rank() == victim) raise(SIGKILL);
      scene_->draining.come();
    }
    return Endpoint::unread_by(lane);
  }

 private:
  scene* scene_ = nullptr;
  doomed who_ = doomed::reader;
  int lenders_ = 0;
  bool has_executor_ = false, has_lent_ = false;
};

struct draining_shm {
  using world = collx::transport::shm::world;
  using endpoint = draining_endpoint<collx::transport::shm::endpoint>;
  using membership = collx::transport::shm::membership_of<draining_shm>;
};
using communicator = collx::communicator<draining_shm>;
using block = std::span<int>;

// Every element that a rank passes is its number and one. `result`: of block b, made by rank r's call.
struct lent_call {
  char const* name;
  bool has_root, root_reads;
  std::size_t in_blocks, out_blocks;
  status (*run)(communicator&, block in, block out, rank_t root);
  int (*result)(rank_t root, int b);
};

using direct = collx::algo::direct_one_shot;
constexpr int sum_of_all = 1 + 2 + 3;
constexpr lent_call calls[] = {
    {"all_gather", false, false, 1, ranks,
     [](communicator& comm, block in, block out, rank_t) {
       return collx::try_all_gather<direct>(comm, in, out);
     },
     [](rank_t, int b) { return b + 1; }},
    {"all_to_all", false, false, ranks, ranks,
     [](communicator& comm, block in, block out, rank_t) {
       return collx::try_all_to_all<direct>(comm, in, out);
     },
     [](rank_t, int b) { return b + 1; }},
    {"all_reduce", false, false, 1, 1,
     [](communicator& comm, block in, block out, rank_t) {
       return collx::try_all_reduce<direct>(comm, in, out);
     },
     [](rank_t, int) { return sum_of_all; }},
    {"broadcast", true, false, 1, 1,
     [](communicator& comm, block in, block out, rank_t root) {
       return collx::try_broadcast<direct>(comm, comm.rank() == root ? in : out, root);
     },
     [](rank_t root, int) { return root + 1; }},
    {"scatter", true, false, ranks, 1,
     [](communicator& comm, block in, block out, rank_t root) {
       return collx::try_scatter<direct>(comm, in, out, root);
     },
     [](rank_t root, int) { return root + 1; }},
    {"reduce", true, true, 1, 1,
     [](communicator& comm, block in, block out, rank_t root) {
       return collx::try_reduce<direct>(comm, in, out, collx::sum, root);
     },
     [](rank_t, int) { return sum_of_all; }},
};

// The victim is who reads, or lends.
rank_t root_of(lent_call const& what, doomed who) {
  return what.root_reads == (who == doomed::reader) ? victim : 0;
}
bool lends(lent_call const& what, rank_t root, rank_t rank) {
  return !what.has_root || (rank == root) != what.root_reads;
}

// Whether this rank's part of the results is what it must be; others have none.
bool has_result(lent_call const& what, rank_t root, rank_t rank, block out) {
  if (what.has_root && (rank == root) != what.root_reads) return true;  // it was given none
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] != what.result(root, static_cast<int>(i / count))) return false;
  return true;
}

// Memory of that size can be written, given back, and had again.
bool is_usable(communicator& comm, collx::symmetric_buffer<int, draining_shm::world> lent) {
  std::size_t const size = lent.size();
  for (int const value : {-1, -2}) {
    std::fill(lent.begin(), lent.end(), value);
    if (std::count(lent.begin(), lent.end(), value) != static_cast<std::ptrdiff_t>(size)) return false;
    { auto const given_back = std::move(lent); }
    lent = comm.allocate<int>(size);
  }
  return true;
}

void survive(communicator& comm, lent_call const& what, doomed who, scene& with) {
  rank_t const root = root_of(what, who);
  auto in = comm.allocate<int>(what.in_blocks * count), out = comm.allocate<int>(what.out_blocks * count);
  std::fill(in.begin(), in.end(), comm.rank() + 1);
  int lenders = 0;
  for (rank_t r = 0; r < ranks; ++r) lenders += r != victim && lends(what, root, r);
  auto& endpoint = comm.engine().endpoint();
  scene::survivor& mine = with.seen[comm.rank()];
  // Nobody may be gone before all have left this barrier.
  collx::barrier(comm);
  with.begun.come();
  with.begun.wait_for(ranks);
  endpoint.watch(with, who, lenders);
  for (int i = 0; i < 100 && !mine.failed; ++i) {
    std::uint64_t const before = collx::now_us();
    status const outcome = what.run(comm, in.span(), out.span(), root);
    endpoint.watch_no_more();
    mine.took_us = collx::now_us() - before;
    mine.failed = outcome != status::ok;
    if (mine.failed) break;
    mine.is_right = mine.is_right && has_result(what, root, comm.rank(), out.span());
    if (mine.ended_well++ != 0 || who == doomed::reader) continue;
    // The next call fails, and would end others' first one.
    with.outlived.come();
    with.outlived.wait_for(ranks - 1);
  }
  mine.has_lent = endpoint.has_lent();
  mine.names_victim = comm.failure().peer == victim;
  mine.is_usable = is_usable(comm, std::move(in));
}

void kill_and_check(lent_call const& what, doomed who) {
  std::string const collective = what.name;
  CAPTURE(collective);
  shared_with_forks<scene> with;
  auto const codes = watched::on_processes<draining_shm>(
      ranks, [&](communicator& comm) { survive(comm, what, who, *with); }, {.timeout_us = deadline_us});
  CHECK(codes[victim] == 128 + SIGKILL);
  for (rank_t const r : {0, 2}) {
    CAPTURE(r);
    scene::survivor const& seen = with->seen[r];
    bool const lent = lends(what, root_of(what, who), r);
    CHECK(codes[static_cast<std::size_t>(r)] == 0);
    CHECK(seen.has_lent == lent);
    CHECK(seen.failed);
    CHECK(seen.names_victim);
    CHECK(seen.took_us < deadline_us / 2);
    if (who == doomed::lender) CHECK(seen.ended_well > 0);
    else if (lent) CHECK(seen.ended_well == 0);
    CHECK(seen.is_right);
    CHECK(seen.is_usable);
  }
}

}  // namespace

TEST_CASE("short calls: who is killed with what was lent unread is named by the call that lent it") {
  for (lent_call const& what : calls) kill_and_check(what, doomed::reader);
}

TEST_CASE("short calls: what a rank has lent is read, though it is killed while it waits for that") {
  for (lent_call const& what : calls) kill_and_check(what, doomed::lender);
}
