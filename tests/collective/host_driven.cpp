// SPDX-License-Identifier: Apache-2.0
// Collectives that a thread of the host drives for a GPU, with a GPU played by threads: one that does what a
// stream holds, in order, and one that copies. The GPU's memory is ordinary memory that nobody else touches.
#include "collx/host_driven.hpp"

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collective/played_gpu.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "collx/transport/host_copies.hpp"
#include "meeting.hpp"
#include "watched.hpp"

namespace {

using namespace collx;

using played_gpu::copier, played_gpu::queue;
using driven = host_driven<transport::threads, copier>;

// All cases of one contract on one rank: several calls are in the stream at once, each with memory of its
// own.
template <class Contract, class Bind>
void walk(driven& gpu, queue& stream, Bind const& bind) {
  struct call {
    std::vector<oracle::element> memory;
    std::unique_ptr<oracle::participant> mine;
    std::string name;
  };
  std::vector<call> calls;
  oracle::collective const& what = oracle::collective_of<Contract>;
  cases::for_each(what, gpu.size(), [&](oracle::setting const& how) {
    call next;
    next.memory.resize(oracle::participant::needed(what, gpu.size(), how.count + 1));
    next.mine = std::make_unique<oracle::participant>(what, false, how, gpu.rank(), next.memory.data());
    next.name = cases::describe(what.name, algo::direct_one_shot::name, how);
    auto in = next.mine->in();
    auto out = next.mine->out();
    gpu.enqueue<automatic>(bind(problem{gpu.rank(), gpu.size()}, in, out, how.root), &stream);
    calls.push_back(std::move(next));
  });
  stream.wait();
  gpu.throw_if_failed();
  for (call const& each : calls) {
    std::string const wrong = each.mine->difference();
    if (!wrong.empty()) throw std::runtime_error(each.name + ": " + wrong);
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
        copier copies(half_bytes);
        queue stream;
        driven gpu(comm, copies);
        walk_all(gpu, stream);
      }));
    }
}

TEST_CASE("a call waits for its stream, and its stream for the call") {
  watched::on_threads(2, [](auto& comm) {
    copier copies(4096);
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

TEST_CASE("the next piece is on its way before one is combined, and results while the next is") {
  watched::on_threads(2, [](auto& comm) {
    copier copies(4096);
    queue stream;
    std::vector<int> data(4 * 4096 / 2 / sizeof(int) - 3, comm.rank() + 1);  // four pieces
    {
      driven gpu(comm, copies);
      gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{comm.rank(), 2}, data, sum), &stream);
      stream.wait();
    }
    // A piece is stored as soon as it is combined.
    if (copies.order() != "f0 f1 s0 f0 s1 f1 s0 s1 ") throw std::runtime_error(copies.order());
  });
}

TEST_CASE("a stream that stands still for good ends its calls, and those of the peers") {
  meeting after_calls(2);
  watched::on_threads(2, [&](auto& comm) {
    copier copies(4096);
    queue stream;
    std::atomic<bool> goes_on{false};
    std::vector<int> data(500, -1);
    bool told = false;
    {
      driven gpu(comm, copies);
      if (comm.rank() == 0)  // "a kernel" that is never done
        stream.put([&] {
          while (!goes_on.load(std::memory_order_relaxed)) sched_yield();
        });
      for (int call = 0; call < 2; ++call)
        gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{comm.rank(), 2}, data, sum), &stream);
      after_calls.attend(comm);  // or a call of the peer's is refused
      if (comm.rank() == 0) copies.die();
      while (!told) {
        sched_yield();
        try {
          gpu.throw_if_failed();
        } catch (error const& e) {
          told = comm.rank() == 1 || e.code() != status::ok;
        }
      }
    }  // does not wait for the stream
    // Relaxed: a flag. What the stream still does, it does to words that are there.
    goes_on.store(true, std::memory_order_relaxed);
    stream.wait();
  });
}

TEST_CASE("copies serve one after another, who does not take the last one's words for his") {
  watched::on_threads(2, [](auto& comm) {
    copier copies(4096);
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
  copier copies(4096);
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

TEST_CASE("a call that fails on a peer ends its own copies before its stream goes on") {
  int changed = 0;
  watched::on_threads(2, [&](auto& comm) {
    copier copies(4096);
    std::vector<int> data(2 * 4096 / 2 / sizeof(int), 1);  // two pieces
    queue stream;
    driven gpu(comm, copies);
    if (comm.rank() == 0) copies.slow_stores(std::chrono::milliseconds(100));
    else copies.fail_after(2);  // to store its first result: that of rank 0 is on its way
    gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{comm.rank(), 2}, data, sum), &stream);
    stream.put([&] { std::fill(data.begin(), data.end(), 77); });  // another use of the memory
    stream.wait();
    copies.wait();
    if (comm.rank() == 0)
      for (int const value : data) changed += value != 77;
  });
  CHECK(changed == 0);
}

TEST_CASE(
    "a stream that cannot be made to wait leaves out its call, and no later one begins before its own") {
  watched::on_threads(2, [](auto& comm) {
    copier copies(4096);
    queue stream, other;
    driven gpu(comm, copies);
    std::vector<int> data(500, -1);
    auto const call = [&](queue& where) {
      gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{comm.rank(), 2}, data, sum), &where);
    };
    copies.refuse_hold(true);
    bool refused = false;
    try {
      call(other);
    } catch (error const& e) {
      refused = e.code() == status::system_failure;
    }
    if (!refused) throw std::runtime_error("what the driver refuses is not told");
    copies.refuse_hold(false);
    other.wait();
    std::atomic<bool> goes_on{false};
    stream.put([&] {  // "a kernel" that takes its time
      while (!goes_on.load(std::memory_order_relaxed)) sched_yield();
      std::fill(data.begin(), data.end(), comm.rank() + 1);
    });
    call(stream);
    // A driver that takes the other stream's number for this one's would begin now. Relaxed: a flag.
    for (int i = 0; i < 1000; ++i) sched_yield();
    goes_on.store(true, std::memory_order_relaxed);
    stream.wait();
    gpu.throw_if_failed();
    if (data != std::vector<int>(500, 3)) throw std::runtime_error("the call began too early");
  });
}

TEST_CASE("ranks of one process with the same GPU know it, those with others or none do not") {
  watched::on_threads(4, [](auto& comm) {
    if (comm.rank() == 3) {
      transport::host_copies none(4096);
      host_driven<transport::threads, transport::host_copies> const here(comm, none);
      if (here.shares_device()) throw std::runtime_error("a rank without a GPU is said to share it");
    } else {
      copier copies(4096, comm.rank() / 2);
      driven const gpu(comm, copies);
      if (gpu.shares_device() != (comm.rank() < 2)) throw std::runtime_error("who shares a GPU is wrong");
    }
  });
  watched::on_threads(2, [](auto& comm) {
    transport::host_copies none(4096);
    host_driven<transport::threads, transport::host_copies> const here(comm, none);
    if (here.shares_device()) throw std::runtime_error("ranks without a GPU are said to share one");
  });
}

TEST_CASE("wrong arguments are refused at the call") {
  watched::on_threads(1, [](auto& comm) {
    copier copies(256), tiny(4);
    queue stream;
    std::vector<int> data(10, 1), other(11);
    {
      driven gpu(comm, copies);
      CHECK_THROWS_AS(
          gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{0, 1}, data, other, sum), &stream),
          error);
      std::span<int> const nothing(static_cast<int*>(nullptr), 10);
      auto const of_nothing = detail::bind_all_reduce(problem{0, 1}, nothing, data, sum);
      CHECK_THROWS_AS(gpu.template enqueue<automatic>(of_nothing, &stream), error);
    }
    driven gpu(comm, tiny);
    CHECK_THROWS_AS(
        gpu.template enqueue<automatic>(detail::bind_all_reduce(problem{0, 1}, data, sum), &stream), error);
  });
}
