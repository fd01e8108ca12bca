// SPDX-License-Identifier: Apache-2.0
// memory_limit COLLECTIVE [--flag value]...: how long the memory needs for what the collective must move,
// when nobody has to wait for anybody. As many processes as ranks, one per core where there are enough,
// each stream their share (streams.hpp) at the same time; the fastest of several loops counts. By the
// method of ../perf/method.h, so that bench/compare can start it in the same rounds as the libraries.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <sys/mman.h>

#include "../plain/options.hpp"
#include "../plain/team.hpp"
#include "../plain/timing.hpp"
#include "kernel.hpp"

namespace {

using limit::kernel;
using limit::streams;
using limit::variant;
using plain::options;
using plain::team;

void copy_with_library(streams const& s, float const* const* in, float* const* out, std::size_t count) {
  for (int w = 0; w < s.writes; ++w) std::memcpy(out[w], in[s.reads == 1 ? 0 : w], count * sizeof(float));
}

kernel find_kernel(streams const& s, variant const& how) {
  if (how.lines == 0) return s.sums ? nullptr : copy_with_library;
  if (how.width_bytes == 64) return __builtin_cpu_supports("avx512f") ? limit::avx512::find(s, how) : nullptr;
  if (how.width_bytes == 32) return __builtin_cpu_supports("avx2") ? limit::avx2::find(s, how) : nullptr;
  return limit::generic::find(s, how);
}

constexpr variant variants[] = {
    {"avx512", 64, false, 1},
    {"avx512, 4 lines", 64, false, 4},
    {"avx512 past cache", 64, true, 1},
    {"avx512 past cache, 4 lines", 64, true, 4},
    {"avx512 past cache, 4 pages", 64, true, 1, 4},
    {"avx2", 32, false, 1},
    {"avx2 past cache", 32, true, 1},
    {"avx2 past cache, 4 pages", 32, true, 1, 4},
    {"sse2", 16, false, 1},
    {"sse2 past cache", 16, true, 1},
    {"memcpy", 0, false, 0},
};

// The streams of one rank. Every stream of a call lies in a buffer of its own; calls rotate over `buffers`
// such sets, as those of the libraries do. On huge pages where the system has them: the limit is what
// the memory can do.
class rank_memory {
 public:
  rank_memory(options const& o, streams const& s, std::int64_t bytes)
      : streams_(s), at_(static_cast<std::size_t>(s.reads + s.writes)) {
    std::int64_t const block_bytes = (bytes + o.ranks - 1) / o.ranks;
    count_ = static_cast<std::size_t>(block_bytes + 3) / sizeof(float);
    stride_ =
        static_cast<std::size_t>(method_stride_bytes(static_cast<std::int64_t>(count_ * sizeof(float))));
    auto const each = static_cast<std::int64_t>(stride_) * std::max(s.reads + s.writes, 1);  // one rank: none
    buffers_ = method_buffers(each, o.pool_bytes);
    size_ = static_cast<std::size_t>(each * buffers_);
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("out of memory; use smaller --bytes");
    madvise(memory_, size_, MADV_HUGEPAGE);
    std::memset(memory_, 0, size_);
  }
  ~rank_memory() { munmap(memory_, size_); }
  rank_memory(rank_memory const&) = delete;
  rank_memory& operator=(rank_memory const&) = delete;

  [[nodiscard]] std::int64_t buffers() const { return buffers_; }

  void run(kernel loop, std::int64_t slot) {
    char* next = static_cast<char*>(memory_) + static_cast<std::size_t>(slot) * stride_ * at_.size();
    for (float*& stream : at_) {
      stream = reinterpret_cast<float*>(next);
      next += stride_;
    }
    loop(streams_, at_.data(), at_.data() + streams_.reads, count_);
  }

  // How many elements the loop moves wrongly.
  [[nodiscard]] std::int64_t wrong(kernel loop) {
    run(loop, 0);  // finds the streams of the first set
    for (int r = 0; r < streams_.reads; ++r)
      for (std::size_t i = 0; i < count_; ++i) stream(r)[i] = static_cast<float>(value(i, r));
    run(loop, 0);
    std::int64_t wrong_count = 0;
    for (int w = 0; w < streams_.writes; ++w)
      for (std::size_t i = 0; i < count_; ++i)
        wrong_count += static_cast<int>(stream(streams_.reads + w)[i]) != expected(i, w);
    return wrong_count;
  }

 private:
  [[nodiscard]] float* stream(int index) const { return at_[static_cast<std::size_t>(index)]; }

  static int value(std::size_t index, int read) {
    return method_value(static_cast<std::int64_t>(index), read);
  }

  [[nodiscard]] int expected(std::size_t index, int write) const {
    if (!streams_.sums) return value(index, streams_.reads == 1 ? 0 : write);
    int sum = 0;
    for (int r = 0; r < streams_.reads; ++r) sum += value(index, r);
    return sum;
  }

  streams streams_;
  std::vector<float*> at_;  // where the streams of this call begin, reads first
  std::size_t count_ = 0, stride_ = 0, size_ = 0;
  std::int64_t buffers_ = 0;
  void* memory_ = nullptr;
};

// The loop that is fastest in a short trial, and how to time it fully.
struct choice {
  kernel loop = nullptr;
  method_plan plan{};
};

choice choose(options const& o, team& ranks, rank_memory& memory, streams const& s, std::int64_t bytes,
              method_rotation& turns) {
  constexpr std::int64_t trial_batches = 3;
  choice best;
  double best_us = std::numeric_limits<double>::infinity();
  for (variant const& how : variants) {
    kernel const loop = find_kernel(s, how);
    if (loop == nullptr) continue;
    auto const call = [&](std::int64_t slot) { memory.run(loop, slot); };
    if (best.loop == nullptr) best.plan = plain::warm_up(ranks, o, bytes, turns, call);
    double const us = plain::time_batches(ranks, best.plan.iterations, trial_batches, turns, call).median_us;
    if (us < best_us) best_us = us, best.loop = loop;
  }
  return best;
}

void run_size(options const& o, team& ranks, streams const& s, std::int64_t bytes) {
  rank_memory memory(o, s, bytes);
  method_rotation turns{memory.buffers(), 0};
  choice const best = choose(o, ranks, memory, s, bytes, turns);
  plain::timing const t = plain::time_batches(ranks, best.plan.iterations, best.plan.batches, turns,
                                              [&](std::int64_t slot) { memory.run(best.loop, slot); });
  std::int64_t const wrong = ranks.total(o.check ? memory.wrong(best.loop) : 0);
  if (ranks.rank() == 0) plain::print_point(o, bytes, memory.buffers(), t, wrong);
}

int run(options const& o) {
  if (o.fresh) throw std::invalid_argument("no limit is known for fresh inputs; leave out --fresh");
  streams const s = limit::streams_of(o.collective, o.ranks, o.in_place);
  team ranks(o.ranks, o.pinned);
  return ranks.run([&](int) {
    for (std::int64_t const bytes : o.bytes) run_size(o, ranks, s, bytes);
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(plain::parse(argc, argv));
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "memory_limit: %s\n", problem.what());
    return 2;
  }
}
