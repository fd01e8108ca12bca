// SPDX-License-Identifier: Apache-2.0
// Collectives that a thread of the host drives for a GPU, with a GPU played by threads: one that does what a
// stream holds, in order, and one that copies. The GPU's memory is ordinary memory that nobody else touches.
#include "collx/host_driven.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "watched.hpp"

namespace {

using namespace collx;

// Does what it is given, one after the other, in a thread of its own.
class queue {
 public:
  queue() : thread_([this] { serve(); }) {}
  queue(queue const&) = delete;
  ~queue() {
    put({});
    thread_.join();
  }

  void put(std::function<void()> what) {
    std::lock_guard const only_me(mutex_);
    work_.push_back(std::move(what));
    changed_.notify_all();
  }
  // Until everything that was put in is done.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty(); });
      std::function<void()> const next = std::move(work_.front());
      work_.pop_front();
      if (!next) return;
      busy_ = true;
      lock.unlock();
      next();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false;
  std::thread thread_;
};

class played_copier {
 public:
  using stream = queue*;

  explicit played_copier(std::size_t half_bytes) : half_bytes_(half_bytes), memory_(2 * half_bytes) {}

  [[nodiscard]] std::size_t half_bytes() const { return half_bytes_; }
  [[nodiscard]] std::byte* staging(int half) {
    return memory_.data() + static_cast<std::size_t>(half) * half_bytes_;
  }
  [[nodiscard]] std::uint32_t* word(int i) { return &words_[i]; }

  [[nodiscard]] status fetch(int half, transport::copied_rows const& rows) noexcept {
    return copy(fetches_, half, rows);
  }
  [[nodiscard]] status store(int half, transport::copied_rows const& rows) noexcept {
    return copy(stores_, half, rows);
  }
  [[nodiscard]] status fetched(int half) noexcept { return state(fetches_, half); }
  [[nodiscard]] status stored(int half) noexcept { return state(stores_, half); }

  void mark(stream where, std::uint32_t* word, std::uint32_t value) {
    where->put([=] { std::atomic_ref(*word).store(value, std::memory_order_release); });
  }
  void hold(stream where, std::uint32_t* word, std::uint32_t value) {
    where->put([=] {
      auto const is_before = [&] {
        return static_cast<std::int32_t>(std::atomic_ref(*word).load(std::memory_order_acquire) - value) < 0;
      };
      while (is_before()) sched_yield();
    });
  }

  // Copies end with this from the n-th one on (0: the next).
  void fail_after(int n) { fails_after_ = n; }

 private:
  struct direction {
    std::atomic<int> queued[2]{}, done[2]{};
    queue engine;
  };

  [[nodiscard]] status copy(direction& way, int half, transport::copied_rows const& rows) noexcept {
    if (fails_after_ >= 0 && fails_after_-- == 0) return status::system_failure;
    // Relaxed: read by the thread that queues.
    way.queued[half].fetch_add(1, std::memory_order_relaxed);
    way.engine.put([&way, half, rows] {
      for (std::size_t r = 0; r < rows.rows && rows.width_bytes != 0; ++r)
        std::memcpy(rows.to + r * rows.to_pitch, rows.from + r * rows.from_pitch, rows.width_bytes);
      // Release: what was copied is there.
      way.done[half].fetch_add(1, std::memory_order_release);
    });
    return status::ok;
  }
  [[nodiscard]] static status state(direction& way, int half) noexcept {
    bool const all =
        way.done[half].load(std::memory_order_acquire) == way.queued[half].load(std::memory_order_relaxed);
    return all ? status::ok : status::pending;
  }

  std::size_t half_bytes_;
  std::vector<std::byte> memory_;
  std::uint32_t words_[64] = {};
  direction fetches_, stores_;
  int fails_after_ = -1;
};

using driven = host_driven<transport::threads, played_copier>;

// All cases of one contract on one rank: several calls are in the stream at once, each with memory of its
// own.
template <class Contract, class Bind>
void walk(driven& gpu, queue& stream, Bind const& bind) {
  using participant = oracle::participant<Contract, decltype(oracle::add)>;
  struct call {
    std::vector<oracle::element> memory;
    std::unique_ptr<participant> mine;
    std::string name;
  };
  std::vector<call> calls;
  cases::for_each<Contract>(gpu.size(), [&](oracle::setting const& how) {
    call next;
    next.memory.resize(participant::needed(gpu.size(), how.count + 1));
    next.mine = std::make_unique<participant>(how, gpu.rank(), next.memory.data());
    next.name = cases::describe<algo::direct_one_shot, Contract>(how);
    auto in = next.mine->in();
    auto out = next.mine->out();
    gpu.enqueue<automatic>(bind(problem{gpu.rank(), gpu.size()}, in, out, how.root), &stream);
    calls.push_back(std::move(next));
  });
  stream.wait();
  gpu.throw_if_failed();
  for (call const& each : calls) {
    std::string const what = each.mine->difference();
    if (!what.empty()) throw std::runtime_error(each.name + ": " + what);
  }
}

void walk_all(driven& gpu, queue& stream) {
  walk<contract::all_reduce>(gpu, stream, [](problem p, auto& in, auto& out, rank_t) {
    return detail::bind_all_reduce(p, in, out, oracle::add);
  });
  walk<contract::reduce_scatter>(gpu, stream, [](problem p, auto& in, auto& out, rank_t) {
    return detail::bind_reduce_scatter(p, in, out, oracle::add);
  });
  walk<contract::all_gather>(gpu, stream, [](problem p, auto& in, auto& out, rank_t) {
    return detail::bind_all_gather(p, in, out);
  });
  walk<contract::all_to_all>(gpu, stream, [](problem p, auto& in, auto& out, rank_t) {
    return detail::bind_all_to_all(p, in, out);
  });
  walk<contract::reduce>(gpu, stream, [](problem p, auto& in, auto& out, rank_t root) {
    return detail::bind_reduce(p, in, out, oracle::add, root);
  });
}

}  // namespace

TEST_CASE("host-driven collectives leave what the reference says, piece by piece") {
  for (rank_t const size : {1, 2, 3, 4})
    for (std::size_t const half_bytes : {std::size_t{1} << 10, std::size_t{1} << 20}) {
      CAPTURE(size);
      CAPTURE(half_bytes);
      CHECK_NOTHROW(watched::on_threads(size, [&](auto& comm) {
        played_copier copies(half_bytes);
        queue stream;
        driven gpu(comm, copies);
        walk_all(gpu, stream);
      }));
    }
}

TEST_CASE("a call waits for its stream, and its stream for the call") {
  watched::on_threads(2, [](auto& comm) {
    played_copier copies(4096);
    queue stream;
    driven gpu(comm, copies);
    std::vector<int> data(5000, -1);
    bool seen = false;
    stream.put([&] { std::fill(data.begin(), data.end(), comm.rank() + 1); });  // "a kernel" before
    gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{comm.rank(), 2}, data, sum), &stream);
    stream.put([&] { seen = data == std::vector<int>(5000, 3); });  // and one after
    stream.wait();
    if (!seen) throw std::runtime_error("the stream went on too early");
  });
}

TEST_CASE("copies serve one after another, who does not take the last one's words for his") {
  watched::on_threads(2, [](auto& comm) {
    played_copier copies(4096);
    queue stream;
    for (int user = 0; user < 3; ++user) {
      driven gpu(comm, copies);
      std::vector<int> data(5000, -1);
      std::atomic<bool> goes_on{false};
      stream.put([&] {  // "a kernel" that takes its time
        while (!goes_on.load(std::memory_order_relaxed)) sched_yield();
        std::fill(data.begin(), data.end(), comm.rank() + 1);
      });
      gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{comm.rank(), 2}, data, sum), &stream);
      // A driver that does not wait for the stream would begin now. Relaxed: a flag, nothing more.
      for (int i = 0; i < 1000; ++i) sched_yield();
      goes_on.store(true, std::memory_order_relaxed);
      stream.wait();
      if (data != std::vector<int>(5000, 3)) throw std::runtime_error("the call began too early");
    }
  });
}

TEST_CASE("a copy that fails is reported, and no stream hangs") {
  played_copier copies(4096);
  int reported = 0;
  watched::on_threads(1, [&](auto& comm) {
    queue stream;
    driven gpu(comm, copies);
    std::vector<int> data(5000, 1);
    copies.fail_after(3);
    for (int i = 0; i < 3; ++i) {
      try {
        gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{0, 1}, data, sum), &stream);
      } catch (error const& e) {
        reported += e.code() == status::system_failure;
      }
      stream.wait();
    }
    CHECK_THROWS_AS(gpu.throw_if_failed(), error);
  });
  CHECK(reported == 2);
}

TEST_CASE("wrong arguments are refused at the call") {
  watched::on_threads(1, [](auto& comm) {
    played_copier copies(256), tiny(4);
    queue stream;
    std::vector<int> data(10, 1), other(11);
    {
      driven gpu(comm, copies);
      CHECK_THROWS_AS(
          gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{0, 1}, data, other, sum), &stream),
          error);
    }
    driven gpu(comm, tiny);
    CHECK_THROWS_AS(
        gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{0, 1}, data, sum), &stream), error);
  });
}
