// SPDX-License-Identifier: Apache-2.0
// The peer of collx_perf: the same collectives, timed by the same method (../perf/method.h), on Gloo over
// its TCP transport on the loopback interface. bench/compare builds it, starts it, and reads the JSON
// lines that rank 0 prints. It times floats and sums; Gloo chooses its algorithms.
//
// Gloo has no launcher: the ranks are forked, find one another through files in a temporary folder, and
// are timed through a shared page, because Gloo's own barrier would let them go a hundred microseconds apart.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "../perf/own_host.hpp"
#include "../plain/options.hpp"
#include "../plain/team.hpp"
#include "../plain/timing.hpp"

namespace {

using plain::options;
using plain::team;

struct collective {
  char const* name;
  bool input_sharded, output_sharded;  // this buffer holds one rank's block, not the whole vector
  bool blocks;                         // the vector has a block per rank
  bool reduces, rooted, only_in_place;
};

// Gloo's only reduce_scatter is a class of its older interface that overwrites its input: left out.
constexpr collective collectives[] = {
    {"all_reduce", false, false, false, true, false, false},
    {"all_gather", true, false, true, false, false, false},
    {"all_to_all", false, false, true, false, false, false},
    {"broadcast", false, false, false, false, true, true},
    {"reduce", false, false, false, true, true, false},
    {"barrier", false, false, false, false, false, false},
};

collective const& find(std::string const& name) {
  for (collective const& each : collectives)
    if (name == each.name) return each;
  throw std::invalid_argument("Gloo has no " + name +
                              "; say all_reduce, all_gather, all_to_all, broadcast, reduce or barrier");
}

// ---- one size of one collective, and where its buffers lie; counts are of floats, per rank ----

class job {
 public:
  job(options const& o, collective const& what, std::shared_ptr<gloo::Context> const& context,
      std::int64_t bytes)
      : what_(what),
        context_(context),
        call_(call_of(what.name)),
        root_(o.root),
        in_place_(o.in_place || what.only_in_place) {
    std::int64_t const blocks = what.blocks ? context->size : 1;
    std::int64_t const unit_bytes = std::int64_t{sizeof(float)} * blocks;
    block_count_ = is_barrier() ? 0 : (bytes + unit_bytes - 1) / unit_bytes;
    input_count_ = what.input_sharded ? block_count_ : block_count_ * blocks;
    output_count_ = what.output_sharded ? block_count_ : block_count_ * blocks;
    input_stride_ = stride(in_place_ ? block_count_ * blocks : input_count_);
    output_stride_ = stride(in_place_ ? block_count_ * blocks : output_count_);
    std::int64_t const each = in_place_ ? output_stride_ : input_stride_ + output_stride_;
    buffers_ = method_buffers(each * std::int64_t{sizeof(float)}, o.pool_bytes);
    inputs_ = allocate(in_place_ ? 0 : buffers_ * input_stride_);
    outputs_ = allocate(buffers_ * output_stride_);
  }

  [[nodiscard]] std::int64_t buffers() const { return buffers_; }
  [[nodiscard]] bool in_place() const { return in_place_; }

  void call(std::int64_t slot) { (this->*call_)(slot); }

  // A fresh input; of a broadcast, only the root has one.
  void write() {
    bool const has_input = what_.reduces || !what_.rooted || context_->rank == root_;
    ++writes_;
    method_write(own_input(), has_input ? input_count_ : 0,
                 static_cast<float>(method_written(writes_, context_->rank)));
  }

  // The last call that was timed must have seen what was written last.
  [[nodiscard]] std::int64_t wrong_of_last_write() const {
    return is_barrier() ? 0
                        : wrong_in([this](std::int64_t, int rank) { return method_written(writes_, rank); });
  }

  [[nodiscard]] std::int64_t wrong() {
    if (is_barrier()) return 0;
    for (std::int64_t i = 0; i < input_count_; ++i)
      own_input()[i] = static_cast<float>(method_value(i, context_->rank));
    call(0);
    return wrong_in([](std::int64_t index, int rank) { return method_value(index, rank); });
  }

 private:
  struct release {
    void operator()(float* memory) const { std::free(memory); }
  };
  using memory = std::unique_ptr<float, release>;
  using one_call = void (job::*)(std::int64_t slot);

  static one_call call_of(std::string_view name) {
    if (name == "all_reduce") return &job::all_reduce;
    if (name == "all_gather") return &job::all_gather;
    if (name == "all_to_all") return &job::all_to_all;
    if (name == "broadcast") return &job::broadcast;
    return name == "reduce" ? &job::reduce : &job::barrier;
  }

  static constexpr std::size_t page_bytes = 4096;

  static std::int64_t stride(std::int64_t count) {
    return method_stride_bytes(count * std::int64_t{sizeof(float)}) / std::int64_t{sizeof(float)};
  }

  // Zeros, so that every page exists before the clock starts.
  static memory allocate(std::int64_t count) {
    std::size_t const bytes =
        (static_cast<std::size_t>(count) * sizeof(float) + page_bytes - 1) / page_bytes * page_bytes;
    memory found(static_cast<float*>(std::aligned_alloc(page_bytes, bytes + page_bytes)));
    if (!found) throw std::runtime_error("out of memory; use fewer or smaller --bytes");
    std::fill_n(found.get(), (bytes + page_bytes) / sizeof(float), 0.0F);
    return found;
  }

  [[nodiscard]] bool is_barrier() const { return std::string_view(what_.name) == "barrier"; }
  [[nodiscard]] float* output(std::int64_t slot) const { return outputs_.get() + slot * output_stride_; }
  [[nodiscard]] float* input(std::int64_t slot) const {
    return in_place_ ? output(slot) : inputs_.get() + slot * input_stride_;
  }
  // In place, an all_gather's own block lies in the middle of the output.
  [[nodiscard]] float* own_input() const {
    return input(0) + (in_place_ && what_.input_sharded ? context_->rank * block_count_ : 0);
  }
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  void all_reduce(std::int64_t slot) {
    gloo::AllreduceOptions o(context_);
    if (!in_place_) o.setInput(input(slot), size(input_count_));
    o.setOutput(output(slot), size(output_count_));
    o.setReduceFunction(
        static_cast<void (*)(void*, void const*, void const*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(o);
  }

  void all_gather(std::int64_t slot) {
    gloo::AllgatherOptions o(context_);
    if (!in_place_) o.setInput(input(slot), size(input_count_));
    o.setOutput(output(slot), size(output_count_));
    gloo::allgather(o);
  }

  void all_to_all(std::int64_t slot) {
    gloo::AlltoallOptions o(context_);
    o.setInput(input(slot), size(input_count_));
    o.setOutput(output(slot), size(output_count_));
    gloo::alltoall(o);
  }

  void broadcast(std::int64_t slot) {
    gloo::BroadcastOptions o(context_);
    o.setOutput(output(slot), size(output_count_));
    o.setRoot(root_);
    gloo::broadcast(o);
  }

  void reduce(std::int64_t slot) {
    gloo::ReduceOptions o(context_);
    if (!in_place_) o.setInput(input(slot), size(input_count_));
    o.setOutput(output(slot), size(output_count_));
    o.setRoot(root_);
    o.setReduceFunction(
        static_cast<void (*)(void*, void const*, void const*, std::size_t)>(&gloo::sum<float>));
    gloo::reduce(o);
  }

  void barrier(std::int64_t) {
    gloo::BarrierOptions o(context_);
    gloo::barrier(o);
  }

  // given(index, rank): what a rank put in.
  template <class Given>
  [[nodiscard]] std::int64_t wrong_in(Given const& given) const {
    if (what_.reduces && what_.rooted && context_->rank != root_) return 0;
    std::int64_t wrong_count = 0;
    for (std::int64_t i = 0; i < output_count_; ++i)
      wrong_count += static_cast<double>(output(0)[i]) != expected(i, given);
    return wrong_count;
  }

  template <class Given>
  [[nodiscard]] double expected(std::int64_t index, Given const& given) const {
    auto const block_of = static_cast<int>(index / block_count_);
    if (what_.reduces) {
      double sum = 0;
      for (int rank = 0; rank < context_->size; ++rank) sum += given(index, rank);
      return sum;
    }
    if (what_.rooted) return given(index, root_);
    if (what_.input_sharded) return given(index % block_count_, block_of);
    return given(context_->rank * block_count_ + index % block_count_, block_of);
  }

  collective const& what_;
  std::shared_ptr<gloo::Context> context_;
  one_call call_;
  int root_;
  bool in_place_;
  std::int64_t block_count_, input_count_, output_count_, input_stride_, output_stride_, buffers_;
  std::int64_t writes_ = 0;
  memory inputs_, outputs_;
};

// ---- the ranks ----

// Where ranks leave their addresses for one another.
class meeting_place {
 public:
  meeting_place() {
    std::string pattern = (std::filesystem::temp_directory_path() / "collx_gloo_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder " + pattern);
    path_ = pattern;
  }
  ~meeting_place() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  meeting_place(meeting_place const&) = delete;
  meeting_place& operator=(meeting_place const&) = delete;
  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  std::string path_;
};

std::shared_ptr<gloo::Context> connect(std::string const& path, int rank, int ranks) {
  perf::enter_host(rank);
  gloo::transport::tcp::attr here;
  if (perf::has_own_hosts()) here.hostname = perf::address_of_host(rank);
  else here.iface = "lo";
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(here);
  auto const context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  // Gloo of 2025 and later shares the store.
  auto const store = std::make_shared<gloo::rendezvous::FileStore>(path);
  [&](auto& joins) {
    if constexpr (requires { joins.connectFullMesh(store, device); }) joins.connectFullMesh(store, device);
    else joins.connectFullMesh(*store, device);
  }(*context);
  return context;
}

void run_size(options const& o, collective const& what, std::shared_ptr<gloo::Context> const& context,
              team& ranks, std::int64_t bytes) {
  job work(o, what, context, bytes);
  auto const call = [&work](std::int64_t slot) { work.call(slot); };
  plain::timing t;
  std::int64_t wrong = 0;
  if (o.fresh) {
    t = plain::time_fresh(
        ranks, o, bytes, [&work] { work.write(); }, call);
    wrong = ranks.total(o.check ? work.wrong_of_last_write() : 0);
  } else {
    method_rotation turns{work.buffers(), 0};
    method_plan const plan = plain::warm_up(ranks, o, bytes, turns, call);
    t = plain::time_batches(ranks, plan.iterations, plan.batches, turns, call);
  }
  wrong += ranks.total(o.check ? work.wrong() : 0);
  options shown = o;
  shown.in_place = work.in_place();
  if (ranks.rank() == 0) plain::print_point(shown, bytes, work.buffers(), t, wrong);
}

int run(options const& o) {
  collective const& what = find(o.collective);
  if (o.in_place && o.collective == "all_to_all")
    throw std::invalid_argument("Gloo has no all_to_all in place");
  meeting_place const place;
  // Not pinned: each rank has a second thread that moves its bytes.
  team ranks(o.ranks, false);
  return ranks.run([&](int rank) {
    std::shared_ptr<gloo::Context> const context = connect(place.path(), rank, o.ranks);
    for (std::int64_t const bytes : o.bytes) run_size(o, what, context, ranks, bytes);
    ranks.meet();  // nobody closes a connection that another still uses
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(plain::parse(argc, argv));
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "gloo_perf: %s\n", problem.what());
    return 2;
  }
}
