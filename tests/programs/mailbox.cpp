// SPDX-License-Identifier: Apache-2.0
// Random programs (programs/program.hpp) on messages that a seed delivers in any order, late and with late
// credits: ranks of one thread, so that the whole run replays.
// thread sanitizer: no, one thread steps all ranks
#include "collx/bootstrap/mailbox.hpp"

#include <memory>
#include <vector>

#include "collx/transport/faulty.hpp"
#include "programs/program.hpp"
#include "sample.hpp"

namespace {

using transport = collx::transport::faulty<collx::transport::mailbox>;

// Empty, or what went wrong.
std::string run(std::uint64_t seed) {
  programs::world_of const world(seed);
  collx::replayable_random random(world.more);
  std::uint64_t const depth = 2 + random.below(3);
  collx::bootstrap::mailbox_ranks<transport> ranks(world.size, random.next(), world.chosen, depth);
  std::uint32_t const delay = random.below(6), refusal = random.below(5);
  std::vector<std::unique_ptr<programs::program<transport>>> all;
  for (collx::rank_t r = 0; r < world.size; ++r) {
    ranks[r].engine().endpoint().inject({.seed = random.next(),
                                         .delay_polls_max = random.below(delay + 1),
                                         .refuse_one_in = refusal == 0 ? 0 : 1 + refusal});
    all.push_back(std::make_unique<programs::program<transport>>(seed, ranks[r]));
  }
  std::size_t open = all.size();
  std::vector<bool> done(open, false);
  for (int looks = 0; open != 0; ++looks) {
    std::size_t const r = random.below(static_cast<std::uint32_t>(all.size()));
    try {
      if (looks == 20'000'000) throw std::runtime_error("hangs");
      if (done[r] || !all[r]->resume()) continue;
    } catch (std::exception const& wrong) {
      return all[r]->give_up(wrong);
    }
    done[r] = true;
    --open;
  }
  return {};
}

}  // namespace

TEST_CASE("mailbox: random programs give what they must") {
  seeds::for_each_seed(sample::is_sample ? 40 : 150, "test_programs_mailbox", run);
}
