// SPDX-License-Identifier: Apache-2.0
// A random program that all ranks of a world run: collectives of every kind and form on the world and on
// groups split from it, several in flight at once, waited for in other orders, and on two groups by two
// threads at once. Everything follows from a seed, but who runs when: what ranks must do alike from the
// seed alone, what is a rank's own business (memory, delays, in which order it waits) from the seed and its
// rank. What must come of each call is computed without the library.
//
// Requests move along only while somebody waits on their communicator. So all waits are alike on all ranks of
// a group, in orders of their own; and of groups that share an engine (communicator::along) at the same place
// in the program, for everything in flight there: a line's request may be behind one of ranks outside it.
//
// A failure says the seed, the program so far, and how to repeat it. COLLX_SEED=number runs one seed alone,
// COLLX_SEEDS=count another number of them, and COLLX_STEPS=count only so many steps of each.
#pragma once

#include <exception>
#include <functional>
#include <thread>

#include "programs/member.hpp"
#include "transport/seeds.hpp"

namespace programs {

// What a seed says about the world.
struct world_of {
  explicit world_of(std::uint64_t seed) {
    replayable_random random(seed);
    size = one_in(random, 12) ? 1 : 2 + static_cast<rank_t>(random.below(one_in(random, 2) ? 7 : 3));
    steps = static_cast<int>(seeds::from_environment("COLLX_STEPS", 10 + random.below(50)));
    std::size_t const staging[] = {64 * 1024, 64 * 1024, 128 * 1024, 512 * 1024};
    std::size_t const single_copy[] = {0, 1000, collx::transport::settings::by_processors};
    chosen.timeout_us = seeds::from_environment("COLLX_TIMEOUT_US", 30'000'000);
    chosen.staging_bytes = staging[random.below(4)];
    chosen.single_copy_bytes = single_copy[random.below(3)];
    chosen.yield_us = one_in(random, 3) ? 0 : 200;
    more = random.next();
  }
  rank_t size;
  int steps;
  collx::transport::settings chosen;
  std::uint64_t more;  // for what only some transports have
};

// Where its ranks are, if they are not all on one host.
inline std::vector<std::uint64_t> drawn_hosts(world_of const& world) {
  replayable_random random(world.more);
  std::vector<std::uint64_t> host_of;
  for (rank_t r = 0; r < world.size; ++r) host_of.push_back(1 + random.below(3));
  return host_of;
}

inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  return replayable_random(seed * 0x9e3779b97f4a7c15u + a * 1'000'003 + b).next();
}

// What a test does to a rank: whenever it has joined a group, and before each step.
template <class Communicator>
struct meddling {
  std::function<void(Communicator&)> joined{};
  std::function<void(int step)> at_step{};
};

// One rank's run of the program.
template <class Transport>
class program {
 public:
  using communicator = collx::communicator<Transport>;

  program(std::uint64_t seed, communicator& comm, meddling<communicator> meddles = {})
      : meddles_(std::move(meddles)),
        seed_(seed),
        steps_(world_of(seed).steps),
        me_(comm.rank()),
        size_(comm.size()),
        same_(mixed(seed, 1)) {
    if (meddles_.joined) meddles_.joined(comm);
    std::vector<rank_t> everybody;
    for (rank_t r = 0; r < size_; ++r) everybody.push_back(r);
    families_.push_back(
        {{everybody}, 0, 0, 0, std::make_unique<member<Transport>>(comm, own_seed(), diary_)});
  }

  program(program const&) = delete;
  // Lines share what their group has.
  ~program() {
    while (!families_.empty()) families_.pop_back();
  }

  // True when it is done; false: somebody else must have a turn. Throws what went wrong.
  [[nodiscard]] bool resume() {
    for (;;) {
      for (; !acting_.empty(); acting_.pop_back())
        if (!acting_.back()->settle()) return false;
      if (step_ >= steps_) {
        if (!end()) return true;
        continue;
      }
      if (meddles_.at_step) meddles_.at_step(step_);
      diary_.push_back("step " + std::to_string(step_));
      step();
      ++step_;
    }
  }

  // Of a failure on one of its communicators: the rank of the world that it names. What another rank has said
  // is so numbered already, what this one has seen itself as in its group.
  rank_t world_rank_in(collx::failure_report const& report) const {
    if (report.code == status::aborted) return report.peer;
    for (family const& each : families_) {
      auto const& group = each.groups[group_of(each)];
      collx::failure_report const& its = each.mine->comm().failure();
      bool const is_it = its.code == report.code && its.sequence == report.sequence &&
                         its.collective == report.collective && its.peer == report.peer;
      // Lines are numbered as the group that they are in, which comes before them.
      if (is_it && report.peer >= 0 && static_cast<std::size_t>(report.peer) < group.size())
        return group[static_cast<std::size_t>(report.peer)];
    }
    return collx::no_rank;
  }

  // When resume() has thrown: ends what is in flight, which would wait when it is destroyed, and returns
  // what to say. The program is printed, but where this rank was only told to end.
  std::string give_up(std::exception const& wrong) {
    families_.front().mine->comm().abort();
    std::string const text = "seed " + std::to_string(seed_) + ", rank " + std::to_string(me_) + " of " +
                             std::to_string(size_) + ", step " + std::to_string(step_) + ": " + wrong.what();
    if (text.find(": aborted") == std::string::npos) {
      std::string story = text + "\nrepeat with COLLX_SEED=" + std::to_string(seed_) + "; the program:\n";
      for (auto const& line : diary_) story += (line.starts_with("step") ? "  " : "    ") + line + "\n";
      std::fputs(story.c_str(), stderr);  // at once: what comes from many ranks mixes
    }
    return text;
  }

 private:
  // Groups that were made together: each rank is in one of them.
  struct family {
    std::vector<std::vector<rank_t>> groups;
    std::size_t parent, engine;  // families on one engine are used by one thread
    int acts;                    // on this engine, since nothing was in flight there
    std::unique_ptr<member<Transport>> mine;
  };

  std::uint64_t own_seed() { return mixed(seed_, 2 + families_.size(), static_cast<std::uint64_t>(me_) + 1); }
  std::size_t group_of(family const& of) const {
    for (std::size_t g = 0; g < of.groups.size(); ++g)
      if (std::find(of.groups[g].begin(), of.groups[g].end(), me_) != of.groups[g].end()) return g;
    throw std::logic_error("every rank is in a group");
  }
  std::uint32_t any_family() { return same_.below(static_cast<std::uint32_t>(families_.size())); }

  void step() {
    std::uint32_t const f = any_family();
    switch (same_.below(16)) {
      case 0:
      case 1:
        if (can_block<Transport> && families_.size() < 5) return split(f);
        break;
      case 2:
        if (can_block<Transport> && families_.size() < 5) return line_up(f);
        break;
      case 3:
        if (families_.size() > 1) return end_last();
        break;
      case 4:
      case 5: {
        std::uint32_t const g = any_family();
        if (families_[f].engine != families_[g].engine && can_block<Transport> && !is_shared(f) &&
            !is_shared(g))
          return beside(f, g);
        break;
      }
      default: break;
    }
    if (is_shared(f) && families_[families_[f].engine].acts > acts_max) return wait_on(families_[f].engine);
    diary_.push_back("on family " + std::to_string(f) + ":");
    act(f, static_cast<std::uint64_t>(step_) * 64, *families_[f].mine);
    acting_.push_back(families_[f].mine.get());
  }

  // More requests than an engine has room for would wait; some calls are two.
  static constexpr int acts_max = 6;

  bool is_shared(std::size_t f) const {
    std::size_t const engine = families_[f].engine;
    return std::count_if(families_.begin(), families_.end(),
                         [&](family const& each) { return each.engine == engine; }) > 1;
  }
  // For everything in flight there.
  void wait_on(std::size_t engine) {
    for (family& each : families_) {
      if (each.engine != engine) continue;
      each.mine->wait_for_all();
      each.acts = 0;
      acting_.push_back(each.mine.get());
    }
  }
  void settle_now(std::size_t engine) {
    wait_on(engine);
    for (; !acting_.empty(); acting_.pop_back()) (void)acting_.back()->settle();
  }

  // Groups need not do the same.
  void act(std::size_t f, std::uint64_t number, member<Transport>& mine) {
    ++families_[families_[f].engine].acts;
    replayable_random same(mixed(seed_, 100 + number, 1 + group_of(families_[f])));
    mine.act(same);
  }

  void split(std::size_t f) {
    std::uint32_t const colors = 1 + same_.below(3);
    bool const backwards = one_in(same_, 2);
    std::vector<std::int32_t> color;
    for (rank_t r = 0; r < size_; ++r) color.push_back(static_cast<std::int32_t>(same_.below(colors)));
    diary_.push_back("split family " + std::to_string(f) + " into " + std::to_string(families_.size()) +
                     ", color " + std::to_string(color[static_cast<std::size_t>(me_)]));
    family made{{}, f, families_.size(), 0, nullptr};
    for (auto const& group : families_[f].groups)
      for (std::uint32_t c = 0; c < colors; ++c) {
        std::vector<rank_t> with;
        for (rank_t const r : group)
          if (color[static_cast<std::size_t>(r)] == static_cast<std::int32_t>(c)) with.push_back(r);
        if (backwards) std::reverse(with.begin(), with.end());
        if (!with.empty()) made.groups.push_back(with);
      }
    auto& parent = families_[f].mine->comm();
    take(std::move(made),
         parent.split(color[static_cast<std::size_t>(me_)], backwards ? -parent.rank() : parent.rank()));
  }

  // Lines of ranks that are equally far from each other; they share what the group has.
  void line_up(std::size_t f) {
    settle_now(families_[f].engine);
    std::uint32_t const drawn = same_.below(8);
    auto const pitch_of = [&](std::size_t size) {
      std::size_t pitch = 1 + drawn % size;
      while (size % pitch != 0) --pitch;
      return pitch;
    };
    family made{{}, f, families_[f].engine, 0, nullptr};
    for (auto const& group : families_[f].groups) {
      std::size_t const pitch = pitch_of(group.size());
      for (std::size_t base = 0; base < pitch; ++base) {
        made.groups.emplace_back();
        for (std::size_t i = base; i < group.size(); i += pitch) made.groups.back().push_back(group[i]);
      }
    }
    auto& parent = families_[f].mine->comm();
    auto const size = static_cast<std::size_t>(parent.size()), pitch = pitch_of(size);
    diary_.push_back("lines in family " + std::to_string(f) + " are " + std::to_string(families_.size()) +
                     ", pitch " + std::to_string(pitch));
    auto const step = static_cast<rank_t>(pitch);
    take(std::move(made), parent.along({parent.rank() % step, step, static_cast<rank_t>(size / pitch)}));
    let_share(families_[f].engine);
  }
  void let_share(std::size_t engine) {
    for (family& each : families_)
      if (each.engine == engine) each.mine->shares(is_shared(engine));
  }

  void take(family&& made, communicator comm) {
    auto const& group = made.groups[group_of(made)];
    if (comm.size() != static_cast<rank_t>(group.size()) ||
        group[static_cast<std::size_t>(comm.rank())] != me_)
      throw std::runtime_error("rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) +
                               " is in another group than it should be");
    made.mine = std::make_unique<member<Transport>>(std::make_unique<communicator>(std::move(comm)),
                                                    own_seed(), diary_);
    families_.push_back(std::move(made));
    bool const is_line = families_.back().engine != families_.size() - 1;
    if (meddles_.joined && !is_line) meddles_.joined(families_.back().mine->comm());
  }

  // With what it has in flight.
  void end_last() {
    std::size_t const engine = families_.back().engine;
    bool const is_line = is_shared(families_.size() - 1);
    if (is_line) settle_now(engine);
    diary_.push_back("end family " + std::to_string(families_.size() - 1));
    families_.pop_back();
    if (is_line) let_share(engine);
  }

  // Two threads, each with a group.
  void beside(std::size_t f, std::size_t g) {
    std::uint64_t const acts = 1 + same_.below(4);
    diary_.push_back("on family " + std::to_string(f) + ", while another thread is on " + std::to_string(g) +
                     ":");
    diary others;
    std::exception_ptr failure;
    auto const several = [&](std::size_t family_of, std::uint64_t first) {
      auto& mine = *families_[family_of].mine;
      for (std::uint64_t i = first; i < first + acts; ++i) {
        act(family_of, static_cast<std::uint64_t>(step_) * 64 + i, mine);
        (void)mine.settle();
      }
    };
    families_[g].mine->says_to(others);
    std::thread other([&] {
      try {
        several(g, 32);
      } catch (...) {
        failure = std::current_exception();
        families_[g].mine->comm().abort();
      }
    });
    try {
      several(f, 0);
    } catch (...) {
      families_[f].mine->comm().abort();
      other.join();
      for (auto const& line : others) diary_.push_back("| " + line);
      throw;
    }
    other.join();
    families_[g].mine->says_to(diary_);
    for (auto const& line : others) diary_.push_back("| " + line);
    if (failure) std::rethrow_exception(failure);
  }

  // False: there is nothing left to wait for.
  bool end() {
    if (ended_ == families_.size()) {
      for (auto const& each : families_) each.mine->require_untouched();
      // Who has only sent must not leave before all have what was sent.
      if constexpr (can_block<Transport>)
        if (!barred_) collx::barrier(families_.front().mine->comm());
      barred_ = true;
      return false;
    }
    wait_on(families_[ended_++].engine);
    return true;
  }

  meddling<communicator> meddles_;
  std::uint64_t seed_;
  int steps_, step_ = 0;
  rank_t me_, size_;
  replayable_random same_;
  diary diary_;
  std::vector<family> families_;
  std::vector<member<Transport>*> acting_;  // whose waits are not over
  std::size_t ended_ = 0;
  bool barred_ = false;
};

// As the main function of a rank that may block.
inline auto as_rank_main(std::uint64_t seed) {
  return [seed]<class Transport>(collx::communicator<Transport>& comm) {
    program<Transport> mine(seed, comm);
    try {
      while (!mine.resume()) continue;
    } catch (std::exception const& wrong) {
      throw std::runtime_error(mine.give_up(wrong));
    }
  };
}

}  // namespace programs
