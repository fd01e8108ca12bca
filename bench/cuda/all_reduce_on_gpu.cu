// SPDX-License-Identifier: Apache-2.0
// All-reduce driven by kernels, 2, 4 and 8 ranks (threads of this process), each on a GPU of its own where
// there are as many, else all on one: small ones replayed by a graph, with packets of both widths, beside
// launches of an empty kernel; large ones with the library's ring, beside a ring written by hand, and with
// what the library chooses. NCCL beside all, where it is installed; of ranks that share a GPU 2.30 or newer.
// Medians over repetitions; microseconds per call, of rank 0. The library's ring is to take 1.03 of the
// other's time at most. All sums are looked at.
//   all_reduce_on_gpu [small]
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <collx/algo/ring.hpp>
#include <collx/bootstrap/threads.hpp>
#include <collx/gpu.cuh>

#include "nccl.hpp"
#include "ring_by_hand.cuh"
#include "verdict.hpp"

namespace {

using namespace collx;

// All of these fewer where it is asked for.
int calls_per_graph = 20;
int repetitions = 21;
// Until a GPU that was idle has reached its clocks.
std::chrono::milliseconds warm_up{300};
std::vector<std::size_t> small_bytes{8, 64, 512, 4096, 16384, 65536};
std::vector<std::size_t> large_bytes{std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{256} << 20};

void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::_Exit(1);  // other ranks' kernels may wait for this one, and exit() for them
}

__global__ void nothing() {}

struct stream {
  cudaStream_t id = nullptr;
  stream() { require(cudaStreamCreateWithFlags(&id, cudaStreamNonBlocking), "cudaStreamCreate"); }
  stream(stream const&) = delete;
  ~stream() { (void)cudaStreamDestroy(id); }
};

template <class T>
T* on_device(std::size_t count) {
  T* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
  require(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
  require(cudaStreamSynchronize(nullptr), "cudaMemset");
  return memory;
}

// Every rank has its number plus one in all elements; `out` has been written by whoever was `timed`.
void fill(float* memory, std::size_t count, rank_t rank) {
  std::vector<float> const content(count, static_cast<float>(rank + 1));
  require(cudaMemcpy(memory, content.data(), count * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
  require(cudaStreamSynchronize(nullptr), "cudaMemcpy");
}
void require_sums(char const* timed, float* out, std::size_t count, rank_t size) {
  std::vector<float> got(count);
  require(cudaMemcpy(got.data(), out, count * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
  require(cudaMemset(out, 0, count * sizeof(float)), "cudaMemset");
  require(cudaStreamSynchronize(nullptr), "cudaMemset");
  auto const sum = static_cast<float>(size * (size + 1) / 2);
  if (std::count(got.begin(), got.end(), sum) == static_cast<std::ptrdiff_t>(count)) return;
  std::fprintf(stderr, "%s: wrong sums of %zu elements on %d ranks\n", timed, count, size);
  std::_Exit(1);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Times what is put into a stream. Made before ranks meet: to make an event may allocate, and so wait for the
// device, while a kernel of another rank waits for this one.
class stopwatch {
 public:
  stopwatch() {
    require(cudaEventCreate(&begin_), "cudaEventCreate");
    require(cudaEventCreate(&end_), "cudaEventCreate");
  }
  stopwatch(stopwatch const&) = delete;
  ~stopwatch() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }

  // Microseconds of one call out of `calls` that `launch()` puts into the stream.
  template <class Launch>
  double timed(stream const& s, int calls, Launch const& launch) const {
    std::vector<double> times;
    for (int i = 0; i < repetitions + 3; ++i) {
      require(cudaEventRecord(begin_, s.id), "cudaEventRecord");
      launch();
      require(cudaEventRecord(end_, s.id), "cudaEventRecord");
      require(cudaEventSynchronize(end_), "cudaEventSynchronize");
      float ms = 0;
      require(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
      if (i >= 3) times.push_back(static_cast<double>(ms) * 1000 / calls);
    }
    return median(times);
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// What the ranks of one run share.
struct shared {
  std::barrier<> meeting;
  by_hand::ring ring{};
  nccl::unique_id id{};
  bool compares_nccl = false;
  explicit shared(rank_t size) : meeting(size) {}
};

void require_nccl(int code, char const* what) {
  if (code == 0) return;
  std::fprintf(stderr, "NCCL: %s: error %d\n", what, code);
  std::_Exit(1);
}

template <class Record>
double replayed(stream const& s, std::barrier<>& meeting, int calls, Record const& record) {
  stopwatch const watch;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  require(cudaStreamBeginCapture(s.id, cudaStreamCaptureModeThreadLocal), "begin of capture");
  for (int i = 0; i < calls; ++i) record();
  require(cudaStreamEndCapture(s.id, &graph), "end of capture");
  require(cudaGraphInstantiate(&ready, graph, 0), "instantiation");
  require(cudaGraphUpload(ready, s.id), "upload");
  require(cudaStreamSynchronize(s.id), "upload");
  // What may wait for the device must not be done while a kernel of another rank waits for this one.
  meeting.arrive_and_wait();
  double const us = watch.timed(s, calls, [&] { require(cudaGraphLaunch(ready, s.id), "replay"); });
  meeting.arrive_and_wait();
  (void)cudaGraphExecDestroy(ready);
  (void)cudaGraphDestroy(graph);
  return us;
}

// Keeps the GPU busy; no rank waits for another.
void warm(stream const& s) {
  auto const end = std::chrono::steady_clock::now() + warm_up;
  do {
    for (int i = 0; i < 100; ++i) nothing<<<1, 32, 0, s.id>>>();
    require(cudaStreamSynchronize(s.id), "an empty kernel");
  } while (std::chrono::steady_clock::now() < end);
}

// `narrow` and `wide`: groups of the same ranks, with packets of 8 and 16 bytes.
void small_ones(gpu_communicator& narrow, gpu_communicator& wide, nccl::communicator other, stream const& s,
                std::barrier<>& meeting) {
  warm(s);
  double const bare = replayed(s, meeting, calls_per_graph, [&] { nothing<<<1, 32, 0, s.id>>>(); });
  bool const tells = narrow.rank() == 0;
  if (tells) std::printf("%d ranks: an empty kernel takes %.2f us\n", narrow.size(), bare);
  for (std::size_t const bytes : small_bytes) {
    std::size_t const count = bytes / sizeof(float);
    float *const in = on_device<float>(count), *const out = on_device<float>(count);
    fill(in, count, narrow.rank());
    std::span<float> const source(in, count), target(out, count);
    double const us =
        replayed(s, meeting, calls_per_graph, [&] { all_reduce(narrow, source, target, sum, on(s.id)); });
    narrow.synchronize(on(s.id));
    require_sums("packets of 8 bytes", out, count, narrow.size());
    double const us_wide =
        replayed(s, meeting, calls_per_graph, [&] { all_reduce(wide, source, target, sum, on(s.id)); });
    wide.synchronize(on(s.id));
    require_sums("packets of 16 bytes", out, count, narrow.size());
    if (tells)
      std::printf("  all_reduce %6zu B  %8.2f us  %5.1f empty kernels; wide packets %8.2f us", bytes, us,
                  us / bare, us_wide);
    if (other != nullptr) {
      double const theirs = replayed(s, meeting, calls_per_graph, [&] {
        require_nccl(
            nccl::functions::loaded().all_reduce(in, out, count, nccl::float32, nccl::sum, other, s.id),
            "all_reduce");
      });
      if (tells) std::printf("; NCCL %8.2f us", theirs);
    }
    if (tells) std::puts("");
    meeting.arrive_and_wait();
    (void)cudaFree(in);
    (void)cudaFree(out);
  }
}

// What a call costs the thread that makes it, while the stream is busy.
void host_cost(gpu_communicator& gpu, std::span<float> source, std::span<float> target, stream const& s,
               std::barrier<>& meeting) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    meeting.arrive_and_wait();
    auto const begin = std::chrono::steady_clock::now();
    for (int k = 0; k < calls_per_graph; ++k) all_reduce<algo::ring>(gpu, source, target, sum, on(s.id));
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
        calls_per_graph);
    gpu.synchronize(on(s.id));
  }
  if (gpu.rank() == 0) std::printf("  a call takes its thread %.2f us\n", median(times));
  meeting.arrive_and_wait();
}

// `staging_bytes`: of a lane, for the ring by hand, too, which takes its best of several lengths of a
// message.
void large_ones(gpu_communicator& gpu, std::size_t staging_bytes, nccl::communicator other, stream const& s,
                shared& all) {
  std::size_t const most = staging_bytes / by_hand::slots / sizeof(float);  // floats of a slot
  auto const lanes = static_cast<std::size_t>(gpu.lanes());
  for (std::size_t const bytes : large_bytes) {
    int const calls = bytes > std::size_t{16} << 20 ? 2 : calls_per_graph;
    std::size_t const count = bytes / sizeof(float);
    float *const in = on_device<float>(count), *const out = on_device<float>(count);
    fill(in, count, gpu.rank());
    std::span<float> const source(in, count), target(out, count);
    all.ring.members[gpu.rank()] = {in, out, on_device<float>(lanes * by_hand::slots * most),
                                    on_device<by_hand::flags>(lanes), on_device<std::uint64_t>(lanes)};
    all.ring.size = gpu.size();
    all.meeting.arrive_and_wait();
    by_hand::ring ring = all.ring;
    double const library =
        replayed(s, all.meeting, calls, [&] { all_reduce<algo::ring>(gpu, source, target, sum, on(s.id)); });
    gpu.synchronize(on(s.id));
    require_sums("the library's ring", out, count, gpu.size());
    all.meeting.arrive_and_wait();
    double const chosen =
        replayed(s, all.meeting, calls, [&] { all_reduce(gpu, source, target, sum, on(s.id)); });
    gpu.synchronize(on(s.id));
    require_sums("what the library chooses", out, count, gpu.size());
    all.meeting.arrive_and_wait();
    host_cost(gpu, source, target, s, all.meeting);
    double hand = 0;
    std::size_t best = 0;
    for (ring.slot_count = most; ring.slot_count >= std::max(most / 256, std::size_t{1024});
         ring.slot_count /= 4) {
      double const us = replayed(s, all.meeting, calls, [&] {
        by_hand::all_reduce<<<static_cast<unsigned>(lanes), 512, 0, s.id>>>(ring, gpu.rank(), count);
      });
      if (best == 0 || us < hand) hand = us, best = ring.slot_count;
    }
    require_sums("the ring by hand", out, count, gpu.size());
    all.meeting.arrive_and_wait();
    if (gpu.rank() == 0)
      std::printf(
          "  ring %6zu KiB  %10.1f us, by hand %10.1f us (messages of %zu KiB): %.3f of its time; chosen "
          "%10.1f us",
          bytes >> 10, library, hand, best * sizeof(float) >> 10, library / hand, chosen);
    if (other != nullptr) {
      double const theirs = replayed(s, all.meeting, calls, [&] {
        require_nccl(
            nccl::functions::loaded().all_reduce(in, out, count, nccl::float32, nccl::sum, other, s.id),
            "all_reduce");
      });
      if (gpu.rank() == 0) std::printf("; NCCL %10.1f us", theirs);
    }
    if (gpu.rank() == 0) {
      std::puts("");
      std::string const name =
          "ring_" + std::to_string(gpu.size()) + "_ranks_" + std::to_string(bytes >> 10) + "_KiB";
      verdict::tell(name.c_str(), library / hand, "<=", 1.03);
    }
    by_hand::member const& mine = all.ring.members[gpu.rank()];
    for (void* const memory :
         {static_cast<void*>(in), static_cast<void*>(out), static_cast<void*>(mine.staging),
          static_cast<void*>(mine.lanes), static_cast<void*>(mine.rounds)})
      (void)cudaFree(memory);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what has been measured is said, also if this is ended
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  (void)setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  if (verdict::is_small(argc, argv)) {
    repetitions = 1;
    calls_per_graph = 2;
    warm_up = {};
    small_bytes = {8, 4096};
    large_bytes = {std::size_t{1} << 16};
  }
  for (rank_t const size : {2, 4, 8}) {
    shared all(size);
    nccl::functions const& library = nccl::functions::loaded();
    all.compares_nccl = devices >= size ? library.found() : library.lets_ranks_share_a_gpu();
    if (all.compares_nccl) require_nccl(library.get_unique_id(&all.id), "unique id");
    std::printf("%d ranks on %s; NCCL %s\n", size, devices >= size ? "a GPU each" : "one GPU",
                all.compares_nccl ? "beside them"
                : library.found() ? "cannot: before 2.30 it needs a GPU for each rank"
                                  : "is not found (COLLX_NCCL names the library)");
    bootstrap::on_threads(size, [&](auto& host) {
      try {
        require(cudaSetDevice(devices >= size ? host.rank() : 0), "cudaSetDevice");
        stream const s;
        nccl::communicator other = nullptr;
        if (all.compares_nccl)
          require_nccl(nccl::functions::loaded().init_rank(&other, size, all.id, host.rank()), "init");
        gpu_settings chosen = gpu_settings::from_environment();
        chosen.packet_width = 16;
        gpu_communicator gpu(host, chosen);
        chosen.packet_width = 8;
        {
          gpu_communicator narrow(host, chosen);
          small_ones(narrow, gpu, other, s, all.meeting);
        }
        large_ones(gpu, chosen.staging_bytes, other, s, all);
        all.meeting.arrive_and_wait();
        if (other != nullptr) require_nccl(nccl::functions::loaded().destroy(other), "destroy");
      } catch (std::exception const& e) {
        std::fprintf(stderr, "rank %d of %d: %s\n", host.rank(), size, e.what());
        std::_Exit(1);  // the others would wait for this rank
      }
    });
  }
}
