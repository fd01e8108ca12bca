// SPDX-License-Identifier: Apache-2.0
// Ranks count the processors that they may use, all together: not those that are online, and not only their
// own.
#include "collx/core/processors.hpp"

#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sched.h>

#include "collx/transport/shm.hpp"
#include "collx/transport/threads.hpp"
#include "watchdog.hpp"

namespace {

// Binds the calling thread, as taskset does, for as long as this lives.
class bound_to {
 public:
  explicit bound_to(std::size_t processor) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    bound_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  bound_to(bound_to const&) = delete;
  ~bound_to() { sched_setaffinity(0, sizeof before_, &before_); }
  [[nodiscard]] bool bound() const { return bound_; }

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

std::vector<std::size_t> usable() {
  cpu_set_t allowed;
  std::vector<std::size_t> numbers;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return numbers;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST_CASE("processors: a set counts each once") {
  collx::processor_set set;
  CHECK(set.count() == 0);
  for (int processor : {0, 63, 64, 4095, 63, -1, 4096}) set.add(processor);
  CHECK(set.count() == 4);
}

TEST_CASE("processors: of a thread that is bound, only those it is bound to") {
  collx::processor_set all;
  all.add_those_of_this_thread();
  CHECK(all.count() == static_cast<int>(usable().size()));
  bound_to const only(usable().front());
  REQUIRE(only.bound());
  collx::processor_set mine;
  mine.add_those_of_this_thread();
  CHECK(mine.count() == 1);
  auto* const world = new collx::transport::threads_world(2, {});
  CHECK(world->processors() == 1);
  std::vector<collx::communicator<collx::transport::threads>> ranks;
  for (collx::rank_t r = 0; r < 2; ++r) ranks.push_back(collx::transport::threads::join(*world, r));
  CHECK(ranks[0].engine().wakefulness().spins == 0);  // two ranks on one processor
  ranks.clear();
  world->drop();
}

TEST_CASE("processors: a summary counts them, and tells sets from others") {
  auto const all = collx::processor_set::of_this_thread();
  CHECK(all.count == usable().size());
  CHECK(all == collx::processor_set::of_this_thread());
  std::vector<std::size_t> const numbers = usable();
  std::vector<std::uint32_t> marks;
  for (std::size_t const number : {numbers.front(), numbers.back()}) {
    bound_to const only(number);
    REQUIRE(only.bound());
    auto const one = collx::processor_set::of_this_thread();
    CHECK(one.count == 1);
    marks.push_back(one.mark);
  }
  CHECK((marks[0] == marks[1]) == (numbers.size() == 1));
}

namespace {

// How often two ranks spin that are bound as given before they join, as launchers bind them.
std::uint32_t spins_when_bound(std::size_t first, std::size_t second) {
  int const fd = collx::transport::shared_memory::segment::create(2, {});
  std::size_t const where[] = {first, second};
  std::uint32_t spins[2] = {};
  watchdog dog;
  std::vector<std::thread> ranks;
  for (collx::rank_t r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      bound_to const only(where[r]);
      auto comm = collx::transport::shm::join(fd, r);
      auto const seen = dog.watch(comm);
      spins[r] = comm.engine().wakefulness().spins;
    });
  for (std::thread& each : ranks) each.join();
  close(fd);
  CHECK(spins[0] == spins[1]);
  return spins[0];
}

}  // namespace

TEST_CASE("processors: ranks that are bound to one each spin, ranks that share one do not") {
  std::vector<std::size_t> const numbers = usable();
  CHECK(spins_when_bound(numbers[0], numbers[0]) == 0);
  if (numbers.size() > 1) CHECK(spins_when_bound(numbers[0], numbers[1]) > 0);
}
