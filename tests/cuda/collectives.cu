// SPDX-License-Identifier: Apache-2.0
// Collectives driven by kernels, on ranks that share this machine's GPUs, threads of one process and
// processes: against what the host computes, replayed by a graph, and misused.
#include <string>
#include <string_view>
#include <vector>

#include <collx/bootstrap/local.hpp>
#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "domains.cuh"
#include "gpu.hpp"
#include "graphs.cuh"
#include "misuse.cuh"
#include "rings/rings.cuh"
#include "switch.cuh"
#include "types.cuh"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::check, gpu_test::require, gpu_test::stream;

// The longest vector. Tools that make kernels many times slower get short ones.
std::size_t longest = std::size_t{1} << 20;
gpu_test::switch_trial in_switch{false, true};

// Small whole numbers, so that sums are exact in any order.
[[nodiscard]] std::vector<float> content_of(rank_t rank, std::size_t count) {
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i)
    v[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101);
  return v;
}

[[nodiscard]] std::vector<float> sum_of(rank_t size, std::size_t count) {
  std::vector<float> total(count);
  for (rank_t r = 0; r < size; ++r) {
    std::vector<float> const v = content_of(r, count);
    for (std::size_t i = 0; i < count; ++i) total[i] += v[i];
  }
  return total;
}

template <class Algorithm>
void try_all_reduce(gpu_communicator& gpu, stream const& s, char const* name) {
  for (std::size_t const count : {std::size_t{1}, std::size_t{63}, std::size_t{5000}, longest}) {
    std::vector<float> const expected = sum_of(gpu.size(), count);
    buffer<float> in(content_of(gpu.rank(), count)), out(std::vector<float>(count, -1.0f));
    all_reduce<Algorithm>(gpu, in, out, sum, on(s.id));
    all_reduce<Algorithm>(gpu, in, sum, on(s.id));
    gpu.synchronize(on(s.id));
    check(out.content() == expected, std::string(name) + ": all_reduce of " + std::to_string(count));
    check(in.content() == expected, std::string(name) + ": all_reduce in place of " + std::to_string(count));
  }
}

// Blocks to every root and from it. `part(v, r)`: the r-th block of a vector.
template <class Part>
void try_rooted(gpu_communicator& gpu, stream const& s, Part const& part) {
  std::size_t const count = 3000, all = count * static_cast<std::size_t>(gpu.size());
  std::vector<float> const mine = content_of(gpu.rank(), all);
  buffer<float> in(mine), one(part(mine, gpu.rank()));
  for (rank_t root = 0; root < gpu.size(); ++root) {
    buffer<float> large(std::vector<float>(all, -1.0f)), small(std::vector<float>(count, -1.0f));
    if (gpu.rank() == root) {
      gather(gpu, one, large, root, on(s.id));
      scatter(gpu, in, small, root, on(s.id));
    } else {
      gather(gpu, one, std::span<float>(), root, on(s.id));
      scatter(gpu, std::span<float const>(), small, root, on(s.id));
    }
    gpu.synchronize(on(s.id));
    check(small.content() == part(content_of(root, all), gpu.rank()), "scatter");
    for (rank_t r = 0; gpu.rank() == root && r < gpu.size(); ++r)
      check(part(large.content(), r) == part(content_of(r, all), r), "gather");
  }
  // Partial sums: rank r has those of the ranks up to itself, or before it.
  buffer<float> sums(std::vector<float>(all, -1.0f)), before(std::vector<float>(all, -1.0f));
  scan(gpu, in, sums, sum, on(s.id));
  exclusive_scan(gpu, in, before, sum, on(s.id));
  gpu.synchronize(on(s.id));
  check(sums.content() == sum_of(gpu.rank() + 1, all), "scan");
  if (gpu.rank() != 0) check(before.content() == sum_of(gpu.rank(), all), "exclusive_scan");
}

void try_the_others(gpu_communicator& gpu, stream const& s) {
  std::size_t const count = 3000, all = count * static_cast<std::size_t>(gpu.size());
  std::vector<float> const mine = content_of(gpu.rank(), all), total = sum_of(gpu.size(), all);
  auto const part = [&](std::vector<float> const& v, rank_t r) {
    auto const begin = v.begin() + static_cast<std::ptrdiff_t>(count) * r;
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  buffer<float> in(mine), one(part(mine, 0));
  buffer<float> small(std::vector<float>(count, 0.0f)), large(std::vector<float>(all, 0.0f));
  reduce_scatter(gpu, in, small, sum, on(s.id));
  gpu.synchronize(on(s.id));
  check(small.content() == part(total, gpu.rank()), "reduce_scatter");
  all_gather(gpu, small, large, on(s.id));
  gpu.synchronize(on(s.id));
  check(large.content() == total, "all_gather");
  all_to_all(gpu, in, large, on(s.id));
  gpu.synchronize(on(s.id));
  for (rank_t r = 0; r < gpu.size(); ++r)
    check(part(large.content(), r) == part(content_of(r, all), gpu.rank()), "all_to_all");
  broadcast(gpu, one, gpu.size() - 1, on(s.id));
  gpu.synchronize(on(s.id));
  check(one.content() == part(content_of(gpu.size() - 1, all), 0), "broadcast");
  reduce(gpu, one, small, sum, 0, on(s.id));
  barrier(gpu, on(s.id));
  gpu.synchronize(on(s.id));
  std::vector<float> expected = one.content();
  for (float& x : expected) x *= static_cast<float>(gpu.size());
  if (gpu.rank() == 0) check(small.content() == expected, "reduce");
  try_rooted(gpu, s, part);
}

// Blocks with counts of their own: rank s has 1000 + 100 s + 10 d elements for rank d.
void try_uneven(gpu_communicator& gpu, stream const& s) {
  auto const of = [](rank_t from, rank_t to) {
    return static_cast<std::size_t>(1000 + 100 * from + 10 * to);
  };
  rank_t const n = gpu.size(), me = gpu.rank();
  std::vector<std::size_t> sent, taken, all;
  std::vector<float> content, expected, everything;
  auto const add = [](std::vector<float>& to, std::size_t count, rank_t from, rank_t at) {
    to.insert(to.end(), count, static_cast<float>(10 * from + at));
  };
  for (rank_t r = 0; r < n; ++r) {
    sent.push_back(of(me, r)), taken.push_back(of(r, me)), all.push_back(of(r, 0));
    add(content, sent.back(), me, r), add(expected, taken.back(), r, me), add(everything, all.back(), r, 0);
  }
  std::vector<float> own(of(me, 0), static_cast<float>(10 * me));
  buffer<float> in(content), out(std::vector<float>(expected.size(), -1.0f));
  buffer<float> mine(own), gathered(std::vector<float>(everything.size(), -1.0f));
  buffer<float> back(std::vector<float>(own.size(), -1.0f));
  all_to_all_v(gpu, blocks{in, sent}, blocks{out, taken}, on(s.id));
  all_gather_v(gpu, mine, blocks{gathered, all}, on(s.id));
  // To the last rank and back: the others know their own counts only.
  rank_t const root = n - 1;
  buffer<float> collected(std::vector<float>(everything.size(), -1.0f));
  buffer<float> returned(std::vector<float>(own.size(), -1.0f));
  if (me == root) {
    gather_v(gpu, mine, blocks{collected, all}, root, on(s.id));
    scatter_v(gpu, blocks{collected, all}, returned, root, on(s.id));
  } else {
    gather_v(gpu, mine, blocks<float>{}, root, on(s.id));
    scatter_v(gpu, blocks<float>{}, returned, root, on(s.id));
  }
  reduce_scatter_v(gpu, blocks{gathered, all}, back, sum, on(s.id));
  gpu.synchronize(on(s.id));
  check(out.content() == expected, "all_to_all_v");
  check(gathered.content() == everything, "all_gather_v");
  if (me == root) check(collected.content() == everything, "gather_v");
  check(returned.content() == own, "scatter_v");
  std::vector<float> const total(own.size(), static_cast<float>(10 * me * n));
  check(back.content() == total, "reduce_scatter_v");
}

// Started ones, of which several are under way, and a persistent one, replayed.
void try_requests(gpu_communicator& gpu, stream const& s) {
  std::size_t const count = 5000;
  std::vector<float> const mine = content_of(gpu.rank(), count), expected = sum_of(gpu.size(), count);
  buffer<float> in(mine), out(std::vector<float>(count, -1.0f)), again(std::vector<float>(count, -1.0f));
  auto first = start::all_reduce(gpu, in, out, sum, on(s.id));
  auto second = start::all_reduce<algo::ring>(gpu, in, again, sum, on(s.id));
  second.wait();
  check(first.test() && second.test(), "what is in the stream before is done, too");
  check(out.content() == expected && again.content() == expected, "start::all_reduce");
  buffer<float> data(std::vector<float>(count, 1.0f));
  auto often = persistent::all_reduce(gpu, data, sum, on(s.id));
  check(often.test(), "what was not started is done");
  float value = 1;
  for (int i = 0; i < 3; ++i) {
    often.start();
    value *= static_cast<float>(gpu.size());
    if (i == 1) continue;  // two in a row without a wait between them
    while (!often.test()) {
    }
    check(data.content() == std::vector<float>(count, value), "persistent::all_reduce");
  }
  gpu.synchronize(on(s.id));
}

// Packets of the other width.
template <class Transport>
void try_wide_packets(communicator<Transport>& host, stream const& s) {
  gpu_settings chosen = gpu_settings::from_environment();
  chosen.packet_width = 24 - chosen.packet_width;
  gpu_communicator gpu(host, chosen);
  for (std::size_t const count : {std::size_t{1}, std::size_t{3}, std::size_t{62}, std::size_t{1000}}) {
    buffer<float> in(content_of(gpu.rank(), count));
    all_reduce<algo::direct_one_shot>(gpu, in, sum, on(s.id));
    gpu.synchronize(on(s.id));
    check(in.content() == sum_of(gpu.size(), count), "packets of the other width");
  }
}

// Calls in turn in two streams run in the order in which they were made.
template <class Transport>
void try_two_streams(communicator<Transport>& host, gpu_communicator& gpu, stream const& s,
                     stream const& other) {
  buffer<float> data(std::vector<float>(5000, 1.0f));
  float expected = 1;
  for (int i = 0; i < 6; ++i) {
    all_reduce(gpu, data, sum, on(i % 2 == 0 ? s.id : other.id));
    expected *= static_cast<float>(gpu.size());
  }
  gpu.synchronize(on(s.id));
  gpu.synchronize(on(other.id));
  check(data.content() == std::vector<float>(5000, expected), "calls in two streams");
  barrier(host);
}

// What the user puts into another stream comes before a collective, and behind it, by events.
template <class Transport>
void try_events(communicator<Transport>& host, gpu_communicator& gpu, stream const& s, stream const& other) {
  std::size_t const count = 5000, bytes = count * sizeof(float);
  buffer<float> source(std::vector<float>(count, 1.0f)), data(std::vector<float>(count, -1.0f));
  buffer<float> copy(std::vector<float>(count, -1.0f));
  barrier(host);  // nobody's kernels wait while events are made
  gpu_test::event const filled, summed;
  barrier(host);
  require(cudaMemcpyAsync(data.data(), source.data(), bytes, cudaMemcpyDeviceToDevice, other.id), "a copy");
  require(cudaEventRecord(filled.id, other.id), "cudaEventRecord");
  require(cudaStreamWaitEvent(s.id, filled.id, 0), "cudaStreamWaitEvent");
  all_reduce(gpu, data, sum, on(s.id));
  require(cudaEventRecord(summed.id, s.id), "cudaEventRecord");
  require(cudaStreamWaitEvent(other.id, summed.id, 0), "cudaStreamWaitEvent");
  require(cudaMemcpyAsync(copy.data(), data.data(), bytes, cudaMemcpyDeviceToDevice, other.id), "a copy");
  gpu.synchronize(on(other.id));
  check(copy.content() == std::vector<float>(count, static_cast<float>(gpu.size())), "events of the user");
  barrier(host);
}

void try_heap(gpu_communicator& gpu, stream const& s) {
  std::size_t const count = 100'000;
  auto mine = gpu.allocate<float>(count);
  check(reinterpret_cast<std::uintptr_t>(mine.data()) % 256 == 0, "allocate() aligns to 256 bytes");
  std::vector<float> const content = content_of(gpu.rank(), count);
  buffer<float>::fill(mine.data(), content);
  all_reduce<algo::ring>(gpu, mine, sum, on(s.id));
  gpu.synchronize(on(s.id));
  check(buffer<float>::read(mine.data(), count) == sum_of(gpu.size(), count),
        "all_reduce of symmetric memory");
}

// Driven by a thread of the host: no kernel.
template <class Transport>
void try_host_driven(communicator<Transport>& host, stream const& s) {
  std::size_t const count = 100'000;
  buffer<float> in(content_of(host.rank(), count)), out(std::vector<float>(count, -1.0f));
  buffer<float> all(std::vector<float>(count * static_cast<std::size_t>(host.size()), -1.0f));
  std::vector<float> const expected = sum_of(host.size(), count);
  buffer<float> summed(std::vector<float>(count, -1.0f)), workspace(std::vector<float>(count, -1.0f));
  transport::cuda_parts::copy_engine copies(1 << 16);
  barrier(host);  // from here on streams wait for other ranks
  {
    gpu_driven_by_host<Transport> gpu(host, copies);
    all_reduce(gpu, in, out, sum, on(s.id));
    all_gather(gpu, in, all, on(s.id));
    reduce_on_device::all_reduce(gpu, in, summed, workspace, sum, on(s.id));
    require(cudaStreamSynchronize(s.id), "cudaStreamSynchronize");
    gpu.throw_if_failed();
  }
  barrier(host);
  check(out.content() == expected, "host-driven all_reduce");
  check(summed.content() == expected, "host-driven all_reduce, added up by the GPU");
  std::vector<float> const gathered = all.content();
  for (rank_t r = 0; r < host.size(); ++r) {
    auto const begin = gathered.begin() + static_cast<std::ptrdiff_t>(count) * r;
    check(std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count)) == content_of(r, count),
          "host-driven all_gather");
  }
}

// What a rank was about when something failed: all of them say so, since the first one to give up need not be
// the one that has stopped.
template <class Part>
void stage(rank_t rank, char const* name, Part const& part) {
  try {
    part();
  } catch (std::exception const& e) {
    std::fprintf(stderr, "rank %d, %s: %s\n", rank, name, e.what());
    throw;
  }
}

__global__ void nothing() {}

// Launches in a stream before kernels of other ranks wait: the first launch in one waited for those, now and
// then, on an H200 (docs/gpu.md).
void begin(stream const& s) {
  nothing<<<1, 1, 0, s.id>>>();
  require(cudaStreamSynchronize(s.id), "an empty kernel");
}

template <class Transport>
void one_rank(communicator<Transport>& host) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  require(cudaSetDevice(host.rank() % devices), "cudaSetDevice");
  gpu_test::arena memory(std::size_t{64} << 20);
  stream const s, other;
  begin(s), begin(other);
  barrier(host);  // streams of all ranks are made one behind the other: no two of them share a queue, of 32
  gpu_settings chosen = gpu_settings::from_environment();
  auto const part = [&](char const* name, auto const& run) { stage(host.rank(), name, run); };
  chosen.heap_bytes = 1 << 20;
  part("wide packets", [&] { try_wide_packets(host, s); });
  part("abort", [&] { gpu_test::try_abort(host, s); });
  part("left out call", [&] { gpu_test::try_left_out_call(host, s); });
  part("left switch", [&] { gpu_test::try_left_switch(host, s); });
  part("made during capture", [&] { gpu_test::try_made_during_capture(host); });
  gpu_communicator gpu(host, chosen);
  auto const switches = [&] {
    part("switch of float", [&] { gpu_test::try_switch<float>(host, gpu, s, in_switch); });
    part("switch of float16", [&] { gpu_test::try_switch<float16>(host, gpu, s, in_switch); });
    part("switch of bfloat16", [&] { gpu_test::try_switch<bfloat16>(host, gpu, s, in_switch); });
    part("switch graph", [&] { gpu_test::try_switch_graph(host, gpu, s); });
  };
  if (in_switch.must) return switches();
  part("all reduce of direct_one_shot",
       [&] { try_all_reduce<algo::direct_one_shot>(gpu, s, "direct_one_shot"); });
  part("all reduce of direct_two_shot",
       [&] { try_all_reduce<algo::direct_two_shot>(gpu, s, "direct_two_shot"); });
  part("all reduce of ring", [&] { try_all_reduce<algo::ring>(gpu, s, "ring"); });
  part("all reduce of recursive_doubling",
       [&] { try_all_reduce<algo::recursive_doubling>(gpu, s, "recursive_doubling"); });
  part("types", [&] { gpu_test::try_types(gpu, s); });
  part("the others", [&] { try_the_others(gpu, s); });
  part("uneven", [&] { try_uneven(gpu, s); });
  part("heap", [&] { try_heap(gpu, s); });
  part("domains", [&] { gpu_test::try_domains(host, gpu, s); });
  barrier(host);
  part("registered", [&] { gpu_test::try_registered(host, gpu, s); });
  switches();
  part("graph", [&] { gpu_test::try_graph(host, gpu, s); });
  part("graph of two streams", [&] { gpu_test::try_graph_of_two_streams(host, gpu, s, other); });
  part("requests", [&] { try_requests(gpu, s); });
  barrier(host);
  part("two streams", [&] { try_two_streams(host, gpu, s, other); });
  part("events", [&] { try_events(host, gpu, s, other); });
  barrier(host);
  part("refused together", [&] { gpu_test::try_refused_together(host, gpu, s); });
  part("misuse", [&] { gpu_test::try_misuse(host, gpu, s); });
  part("host driven misuse", [&] { gpu_test::try_host_driven_misuse(host, s); });
  part("host driven", [&] { try_host_driven(host, s); });
}

// Ranks that are processes share a GPU by turns, each with a context of its own.
void as_processes(rank_t size) {
  auto const codes = watched::on_processes(size, [](auto& host) { one_rank(host); });
  for (std::size_t r = 0; r < codes.size(); ++r)
    check(codes[r] == 0, "rank " + std::to_string(r) + " of " + std::to_string(size) + " processes failed");
  std::printf("%d processes: passed\n", size);
  std::fflush(stdout);
}

void as_threads(rank_t size) {
  watched::on_threads(size, [](auto& host) { one_rank(host); });
  std::printf("%d threads: passed\n", size);
  std::fflush(stdout);
}

}  // namespace

// collectives [all|threads|processes [[LEAST-]MOST [small|tools [switch]]]]     all and 1-8 by default, of
// the numbers of ranks 1, 2, 4 and 8. tools: small, and for what runs one kernel after the other
// (compute-sanitizer), as with CUDA_LAUNCH_BLOCKING=1: no rank meets another on the host while its kernel
// waits for that one's. switch: what concerns the switch between GPUs, and no more; fails if ranks with GPUs
// of their own do not add up in it
int main(int argc, char** argv) {
  if (!gpu_test::may_begin()) return 0;
  std::string const what = argc > 1 ? argv[1] : "";
  std::string_view const how = argc > 3 ? argv[3] : "";
  if (how == "small" || how == "tools") longest = 10'000;
  char const* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  in_switch.has_late = how != "tools" && (blocking == nullptr || std::string_view(blocking) == "0");
  in_switch.must = argc > 4 && std::string_view(argv[4]) == "switch";
  try {
    auto const [least, most] = gpu_test::numbers_of_ranks(argc > 2 ? argv[2] : "8");
    if (!what.empty() && what != "all" && what != "threads" && what != "processes")
      throw std::invalid_argument("there is no '" + what + "' to be tested; say all, threads or processes");
    auto const is_asked_for = [&, least = least, most = most](rank_t size) {
      return least <= size && size <= most;
    };
    // Processes first: a process that has used CUDA cannot be forked.
    for (rank_t const size : {1, 2, 4, 8})
      if (is_asked_for(size) && what != "threads") as_processes(size);
    for (rank_t const size : {1, 2, 4, 8})
      if (is_asked_for(size) && what != "processes") as_threads(size);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
