// SPDX-License-Identifier: Apache-2.0
// A launch: the turns of its blocks and threads.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>

#include <sched.h>

#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

// Of a launch: which thread goes next, and how far.
class lots {
 public:
  explicit lots(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t draw(std::uint32_t below) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::uint32_t>((state_ >> 33) % below);
  }

 private:
  std::uint64_t state_;
};

// What blocks of all launches take up together.
class residents {
 public:
  // The multiprocessor that has room for one more; -1 if none has.
  int enter(unsigned threads, std::size_t shared_bytes) {
    std::lock_guard const one_at_a_time(mutex_);
    for (unsigned k = 0; k < multiprocessors; ++k) {
      auto& [here, bytes, blocks] = of_[k];
      if (here + threads > threads_each || bytes + shared_bytes > shared_bytes_each || blocks == blocks_each)
        continue;
      here += threads, bytes += shared_bytes, ++blocks;
      return static_cast<int>(k);
    }
    return -1;
  }
  void leave(unsigned multiprocessor, unsigned threads, std::size_t shared_bytes) {
    std::lock_guard const one_at_a_time(mutex_);
    auto& [here, bytes, blocks] = of_[multiprocessor];
    here -= threads, bytes -= shared_bytes, --blocks;
  }

 private:
  struct load {
    unsigned threads = 0;
    std::size_t shared_bytes = 0;
    unsigned blocks = 0;
  };
  std::mutex mutex_;
  load of_[multiprocessors];
};
residents& of_all_launches() {
  static residents one;
  return one;
}

// Launches at work, of each domain of a device.
std::atomic<int>& at_work(int device, unsigned domain) {
  static std::atomic<int> counts[16][domains_most];
  return counts[device % 16][domain % domains_most];
}

class grid {
 public:
  grid(launch const& what, std::uint64_t number) : what_(what), number_(number), lots_(seed() + number) {
    ++at_work(what.device, what.domain);
  }
  grid(grid const&) = delete;
  ~grid() {
    for (auto const& b : blocks_) leave(*b);
    --at_work(what_.device, what_.domain);
  }

  void run() {
    std::size_t const count = what_.grid.count();
    for (std::size_t begun = 0; begun < count || !blocks_.empty();) {
      bool anybody_went_on = false;
      for (; begun < count && begin(static_cast<unsigned>(begun)); ++begun) anybody_went_on = true;
      // From another block each time, so that none is always the first.
      std::size_t const first = blocks_.empty() ? 0 : lots_.draw(static_cast<std::uint32_t>(blocks_.size()));
      for (std::size_t k = 0; k < blocks_.size(); ++k)
        turn(*blocks_[(first + k) % blocks_.size()], anybody_went_on);
      std::erase_if(blocks_, [this](auto& b) {
        if (!b->is_done) return false;
        leave(*b);
        std::move(b->threads.begin(), b->threads.end(), std::back_inserter(idle_threads_));
        b->threads.clear();
        idle_.push_back(std::move(b));
        return true;
      });
      // All that is left waits for others: of another launch, or for the host.
      if (!anybody_went_on) sched_yield();
    }
  }

 private:
  static std::uint64_t seed() {
    char const* const said = std::getenv("COLLX_EMULATED_SEED");
    return said != nullptr ? std::strtoull(said, nullptr, 10) : 1;
  }

  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(what_.block.count()); }
  [[nodiscard]] std::size_t shared_bytes() const {
    return what_.what->static_shared_bytes + what_.dynamic_shared_bytes;
  }
  void leave(block const& b) const { of_all_launches().leave(b.multiprocessor, threads(), shared_bytes()); }

  // The next block, if there is room for it.
  bool begin(unsigned number) {
    int const at = of_all_launches().enter(threads(), shared_bytes());
    if (at < 0) return false;
    if (idle_.empty()) idle_.push_back(std::make_unique<block>());
    blocks_.push_back(std::move(idle_.back()));
    idle_.pop_back();
    blocks_.back()->multiprocessor = static_cast<unsigned>(at);
    set_up(*blocks_.back(), number);
    return true;
  }

  void set_up(block& b, unsigned number) {
    dimensions const& g = what_.grid;
    dimensions const& d = what_.block;
    b.of = &what_;
    b.is_done = false;
    b.number = number;
    b.grid = number_;
    b.at = {number % g.x, number / g.x % g.y, number / (g.x * g.y)};
    b.shared.assign(b.dynamic_at() + what_.dynamic_shared_bytes, std::byte{0xa5});
    for (unsigned k = 0; k < d.count(); ++k) {
      if (idle_threads_.empty()) idle_threads_.push_back(std::make_unique<thread>());
      thread& t = *b.threads.emplace_back(std::move(idle_threads_.back()));
      idle_threads_.pop_back();
      t.restart();
      t.of = &b;
      t.number = k;
      t.at = {k % d.x, k / d.x % d.y, k / (d.x * d.y)};
      enter(t, *what_.what->body, nullptr);
    }
  }

  // Each of its threads for a while.
  void turn(block& b, bool& anybody_went_on) {
    std::size_t ended = 0, waiting = 0, count = b.threads.size();
    std::size_t const first = lots_.draw(static_cast<std::uint32_t>(count));
    for (std::size_t k = 0; k < count; ++k) {
      thread& t = *b.threads[(first + k) % count];
      if (t.state == thread_state::ready && step(t, 1 + lots_.draw(2000))) anybody_went_on = true;
      if (t.state == thread_state::ended) ++ended;
      if (t.state == thread_state::at_barrier) ++waiting;
    }
    if (waiting != 0) {
      if (release(b)) anybody_went_on = true;
      else if (waiting + ended == count)
        throw fault("a barrier that nobody else comes to: " + where(waiting_in(b)));
    }
    b.is_done = ended == count;
  }

  static thread const& waiting_in(block& b) {
    return **std::find_if(b.threads.begin(), b.threads.end(),
                          [](auto const& t) { return t->state == thread_state::at_barrier; });
  }

  // Called from the same places, too: a barrier in a function is one instruction for all who call it.
  static bool stand_at_one_place(thread const& a, thread const& b) {
    if (a.what != b.what || a.pc != b.pc || a.frames.size() != b.frames.size()) return false;
    for (std::size_t k = 0; k + 1 < a.frames.size(); ++k)  // that of the last one is a.pc
      if (a.frames[k].what != b.frames[k].what || a.frames[k].pc != b.frames[k].pc) return false;
    return true;
  }

  // Lets go who waits at a barrier that is complete.
  static bool release(block& b) {
    bool released = false;
    for (std::uint32_t id = 0; id < 16; ++id) {
      std::size_t here = 0, alive = 0;
      std::array<thread const*, 1024 / 32> firsts{};
      std::uint32_t wanted = 0;
      for (auto const& each : b.threads) {
        thread const& t = *each;
        alive += t.state != thread_state::ended ? 1 : 0;
        if (t.state != thread_state::at_barrier || t.barrier != id) continue;
        if (here != 0 && t.barrier_count != wanted) throw fault("a barrier of two counts: " + where(t));
        wanted = t.barrier_count;
        ++here;
        // bar.sync is aligned: all of a warp execute the same one of the text. So do all of a block where
        // nobody counts them: CUDA asks for that, and synccheck looks for it.
        thread const*& first = firsts[wanted != 0 ? t.number / 32 : 0];
        if (first == nullptr) first = &t;
        if (!stand_at_one_place(*first, t))
          throw fault("a barrier that threads come to in two places: " + where(*first) + " and " + where(t));
      }
      if (here == 0 || here < (wanted != 0 ? wanted : alive)) continue;
      // The count is that of a launch: who has ended before cannot come any more.
      if (wanted == 0 && alive != b.threads.size())
        throw fault("a barrier that not all threads come to: " + where(waiting_in(b)));
      for (auto const& t : b.threads)
        if (t->state == thread_state::at_barrier && t->barrier == id) t->state = thread_state::ready;
      released = true;
    }
    return released;
  }

  // So many instructions at most. False if it only waited.
  static bool step(thread& t, std::uint32_t instructions) {
    bool went_on = false;
    t.gives_way = false;
    try {
      for (; instructions != 0 && t.state == thread_state::ready; --instructions) {
        instruction const& next = t.what->code[static_cast<std::size_t>(t.pc++)];
        if (next.guard >= 0 &&
            (t.registers[next.guard] & 1) == static_cast<std::uint64_t>(next.guard_negated))
          continue;
        next.execute(t, next);
        if (t.gives_way) {
          // What it has polled it may look at; then others are next.
          t.gives_way = false;
          if (instructions > 40) instructions = 40;
        } else {
          went_on = went_on || instructions > 40;
        }
      }
    } catch (fault const& e) {
      throw fault(std::string(e.what()) + ": " + where(t));
    }
    return went_on || t.state != thread_state::ready;
  }

  launch const& what_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<block>> blocks_;  // that have begun, and not ended
  // Of launches before: their memory is used again, with whatever it holds.
  inline static thread_local std::vector<std::unique_ptr<block>> idle_;
  inline static thread_local std::vector<std::unique_ptr<thread>> idle_threads_;
  lots lots_;
};

}  // namespace

bool has_company_of_another_domain(launch const& mine) {
  for (unsigned domain = 0; domain < domains_most; ++domain)
    if (domain != mine.domain && at_work(mine.device, domain) != 0) return true;
  return false;
}

std::string run(launch const& what) {
  static std::atomic<std::uint64_t> launches{0};
  try {
    // Relaxed: a number of its own is all that is wanted.
    grid(what, launches.fetch_add(1, std::memory_order_relaxed)).run();
  } catch (fault const& e) {
    return std::string(e.what()) + " (kernel " + what.what->name + ")";
  }
  return {};
}

}  // namespace emulated
