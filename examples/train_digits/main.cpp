// SPDX-License-Identifier: Apache-2.0
// Trains a small network on handwritten digits, data-parallel over processes, and shows that it ends with the
// model that one process alone would have found.
//
//   train_digits --ranks 2                    starts 2 processes itself
//   train_digits --ranks 3 --reproducible     the same bits for any number of ranks
//   mpirun -n 4 train_digits                  one rank of a job that somebody else started, on this host
//   mpirun -n 4 train_digits --transport tcp  the same, on any hosts
#include <cstdio>
#include <exception>

#include <collx/bootstrap/connect.hpp>
#include <collx/bootstrap/local.hpp>
#include <collx/collective/split.hpp>
#include <collx/schedule/type_list.hpp>
#include <collx/transport/shm.hpp>
#if defined(TRAIN_DIGITS_TCP)
#include <collx/bootstrap/tcp.hpp>
#include <collx/bootstrap/tcp_processes.hpp>
#endif

#include "report.hpp"

namespace {

using namespace train_digits;

enum exit_status : int {
  done = 0,
  goal_missed = 1,
  bad_usage = 2,
  bad_data = 3,
  communication_failed = 4,
  diverged = 5
};

constexpr std::size_t test_image_count = 360;

// The algorithms that --algorithm knows. One's own stands beside the library's as an equal.
using algorithms =
    collx::type_list<composed, collx::algo::direct_one_shot, collx::algo::direct_two_shot, collx::algo::ring>;

// How the ranks come together: started here, or by a launcher.
struct over_shm {
  static constexpr char const* name = "shm";
  static constexpr char const* words = "shared memory";
  using world = collx::communicator<collx::transport::shm>;
  static world connect() { return collx::connect<collx::transport::shm>(); }
  template <class RankMain>
  static auto start(int ranks, RankMain const& rank_main) {
    return collx::bootstrap::on_processes(ranks, rank_main);
  }
};
#if defined(TRAIN_DIGITS_TCP)
struct over_tcp {
  static constexpr char const* name = "tcp";
  static constexpr char const* words = "TCP";
  using world = collx::communicator<collx::transport::tcp>;
  static world connect() { return collx::connect<collx::transport::tcp>(); }
  template <class RankMain>
  static auto start(int ranks, RankMain const& rank_main) {
    return collx::bootstrap::on_tcp_processes(ranks, rank_main);
  }
};
using transports = collx::type_list<over_shm, over_tcp>;
#else
using transports = collx::type_list<over_shm>;
#endif

template <class World, class Sum>
using all_reduce_call = void (*)(World&, std::span<typename Sum::element>);

template <class World, class Sum, class Algorithm>
void sum_gradients(World& world, std::span<typename Sum::element> gradient) {
  collx::all_reduce<Algorithm>(world, gradient, Sum::combine);
}

template <class World, class Sum>
all_reduce_call<World, Sum> call_named(std::string const& name) {
  all_reduce_call<World, Sum> found = nullptr;
  std::string known;
  algorithms::for_each([&]<class Algorithm>() {
    known += std::string(" ") + Algorithm::name;
    if (name == Algorithm::name) found = &sum_gradients<World, Sum, Algorithm>;
  });
  if (found == nullptr) throw usage_error("unknown algorithm '" + name + "'; there are:" + known);
  return found;
}

// What every rank does; rank 0 speaks.
template <class Sum, class Over>
exit_status run_rank(typename Over::world& world, options const& o, digits const& data) {
  using world_t = typename Over::world;
  bool const speaks = world.rank() == 0;
  auto const call = call_named<world_t, Sum>(o.algorithm);
  if (speaks)
    print_opening(o, data, world.size(), Over::words, Sum::name,
                  (parameter_count + 1) * sizeof(typename Sum::element));

  progress_line progress(o.training.epochs);
  outcome const many = trainer<Sum, world_t>(world, data, o.training, call).run([&](epoch_result const& r) {
    if (speaks) progress.show(r);
  });
  // A communicator of one for each rank; rank 0 trains again on its own, on the same global batches.
  world_t alone = world.split(world.rank(), 0);
  if (!speaks) return done;
  print_step_time(many.measured);
  print_communication(many.measured);

  outcome const one = trainer<Sum, world_t>(alone, data, o.training, call).run([](epoch_result const&) {});
  bool const same = print_comparison<Sum>(many, one);
  bool const accurate = 100.0 * many.last.accuracy >= o.required_accuracy;
  std::printf("test accuracy: %.2f %% (%s %.4g %%)\n", 100.0 * many.last.accuracy,
              accurate ? "at least" : "BELOW the required", o.required_accuracy);
  return same && accurate ? done : goal_missed;
}

template <class Over>
exit_status run_checked(typename Over::world& world, options const& o, digits const& data) {
  try {
    return o.reproducible ? run_rank<fixed_point_sum, Over>(world, o, data)
                          : run_rank<float_sum, Over>(world, o, data);
  } catch (std::range_error const& e) {
    if (world.rank() == 0) std::fprintf(stderr, "\ntrain_digits: %s\n", e.what());
    return diverged;
  } catch (collx::error const& e) {
    std::fprintf(stderr, "\ntrain_digits: %s\n", e.what());
    return communication_failed;
  }
}

template <class Over>
int start_ranks(options const& o, digits const& data) {
  auto const codes =
      Over::start(o.ranks, [&](typename Over::world& world) { return run_checked<Over>(world, o, data); });
  for (std::size_t rank = 0; rank < codes.size(); ++rank)
    if (codes[rank] > 128)
      std::fprintf(stderr, "train_digits: rank %zu was killed by signal %d\n", rank, codes[rank] - 128);
  for (int code : codes)
    if (code != done) return code;
  return done;
}

template <class Over>
int run(options const& o, digits const& data) {
  (void)call_named<typename Over::world, float_sum>(o.algorithm);
  if (!started_by_launcher()) return start_ranks<Over>(o, data);
  if (o.ranks_given) throw usage_error("--ranks cannot be given to a rank of a job: the launcher decides");
  auto world = Over::connect();
  return run_checked<Over>(world, o, data);
}

int run_over(std::string const& transport, options const& o, digits const& data) {
  int (*found)(options const&, digits const&) = nullptr;
  std::string known;
  transports::for_each([&]<class Over>() {
    known += std::string(" ") + Over::name;
    if (transport == Over::name) found = &run<Over>;
  });
  if (found == nullptr) throw usage_error("unknown transport '" + transport + "'; this build has:" + known);
  return found(o, data);
}

}  // namespace

int main(int argc, char** argv) try {
  options const o = parse_options(argc, argv);
  if (o.help) return std::fputs(usage, stdout), done;
  digits const data = split(load_digits(o.data), test_image_count, o.training.seed);
  return run_over(o.transport, o, data);
} catch (train_digits::usage_error const& e) {
  std::fprintf(stderr, "train_digits: %s\n\n%s", e.what(), train_digits::usage);
  return bad_usage;
} catch (train_digits::data_error const& e) {
  std::fprintf(stderr, "train_digits: %s\n", e.what());
  return bad_data;
} catch (std::exception const& e) {
  std::fprintf(stderr, "train_digits: %s\n", e.what());
  return communication_failed;
}
