// SPDX-License-Identifier: Apache-2.0
// Trains a small network on handwritten digits, data-parallel over the processes of one machine, and
// shows that it ends with the model that one process alone would have found.
//
//   train_digits --ranks 2                    starts 2 processes itself
//   train_digits --ranks 3 --reproducible     the same bits for any number of ranks
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <collx/bootstrap/connect.hpp>
#include <collx/bootstrap/local.hpp>
#include <collx/collective/split.hpp>
#include <collx/schedule/type_list.hpp>
#include <collx/transport/shm.hpp>

#include "report.hpp"

namespace {

using namespace train_digits;

using world_t = collx::communicator<collx::transport::shm>;

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

template <class Sum>
using all_reduce_call = void (*)(world_t&, std::span<typename Sum::element>);

template <class Sum, class Algorithm>
void sum_gradients(world_t& world, std::span<typename Sum::element> gradient) {
  collx::all_reduce<Algorithm>(world, gradient, Sum::combine);
}

template <class Sum>
all_reduce_call<Sum> call_named(std::string const& name) {
  all_reduce_call<Sum> found = nullptr;
  std::string known;
  algorithms::for_each([&]<class Algorithm>() {
    known += std::string(" ") + Algorithm::name;
    if (name == Algorithm::name) found = &sum_gradients<Sum, Algorithm>;
  });
  if (found == nullptr) throw usage_error("unknown algorithm '" + name + "'; there are:" + known);
  return found;
}

// What every rank does; rank 0 speaks.
template <class Sum>
exit_status run_rank(world_t& world, options const& o, digits const& data) {
  bool const speaks = world.rank() == 0;
  auto const call = call_named<Sum>(o.algorithm);
  if (speaks)
    print_opening(o, data, world.size(), Sum::name, (parameter_count + 1) * sizeof(typename Sum::element));

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

exit_status run_checked(world_t& world, options const& o, digits const& data) {
  try {
    return o.reproducible ? run_rank<fixed_point_sum>(world, o, data) : run_rank<float_sum>(world, o, data);
  } catch (std::range_error const& e) {
    if (world.rank() == 0) std::fprintf(stderr, "\ntrain_digits: %s\n", e.what());
    return diverged;
  } catch (collx::error const& e) {
    std::fprintf(stderr, "\ntrain_digits: %s\n", e.what());
    return communication_failed;
  }
}

int start_ranks(options const& o, digits const& data) {
  auto const codes = collx::bootstrap::on_processes(o.ranks, [&](world_t& world) {
    exit_status const status = run_checked(world, o, data);
    std::fflush(nullptr);
    if (status != done) std::_Exit(status);  // this rank's process ends here, with a code of its own
  });
  for (std::size_t rank = 0; rank < codes.size(); ++rank)
    if (codes[rank] > 128)
      std::fprintf(stderr, "train_digits: rank %zu was killed by signal %d\n", rank, codes[rank] - 128);
  for (int code : codes)
    if (code != done) return code;
  return done;
}

}  // namespace

int main(int argc, char** argv) try {
  options const o = parse_options(argc, argv);
  if (o.help) return std::fputs(usage, stdout), done;
  (void)call_named<float_sum>(o.algorithm);
  digits const data = split(load_digits(o.data), test_image_count, o.training.seed);
  if (!started_by_launcher()) return start_ranks(o, data);
  if (o.ranks_given)
    throw usage_error("--ranks cannot be given where RANK and WORLD_SIZE are set: the launcher decides");
  auto world = collx::connect<collx::transport::shm>();
  return run_checked(world, o, data);
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
