// SPDX-License-Identifier: Apache-2.0
// The network of train_digits, trained on GPUs: each rank computes the gradient of its share of a batch in
// kernels; one more kernel adds up the gradients of all ranks by the schedule composed in
// ../train_digits/gradient_sum.hpp, and takes the optimiser's step with each sum as soon as it is there.
//   train_digits_gpu [RANKS [DATA [EPOCHS [PERCENT]]]]   ranks (2) are processes, which share GPUs if there
//                                                       are fewer; fails if less than PERCENT (95) of the
//                                                       test images are right
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>

#include <collx/bootstrap/local.hpp>
#include <collx/gpu.cuh>
#include <collx/transport/shm.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "../train_digits/gradient_sum.hpp"
#include "../train_digits/network.hpp"
#include "step.cuh"

namespace {

using namespace train_digits;
using collx::rank_t;

constexpr std::size_t test_image_count = 360;
constexpr std::size_t batch = 64;
constexpr std::uint64_t seed = 1;

// Asked in a process of its own: one that has asked CUDA cannot be forked any more.
int count_gpus() {
  pid_t const child = fork();
  if (child == 0) {
    int count = 0;
    _exit(cudaGetDeviceCount(&count) == cudaSuccess ? count : 0);
  }
  int outcome = 0;
  return child > 0 && waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) ? WEXITSTATUS(outcome) : 0;
}

double accuracy(std::span<float const> parameters, std::vector<image> const& images) {
  std::size_t right = 0;
  for (image const& each : images) right += predicted_digit(forward(parameters, each)) == each.digit;
  return static_cast<double>(right) / static_cast<double>(images.size());
}

// All ranks walk through the same order, and each takes its part of every batch.
std::vector<float> train(collx::gpu_communicator& gpu, std::vector<image> const& images, int epochs) {
  gpu_model model(images, initial_parameters(seed), batch);
  auto const share = [&](rank_t r, std::size_t of) {
    return of * static_cast<std::size_t>(r) / static_cast<std::size_t>(gpu.size());
  };
  std::vector<int> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    shuffle(order, seed + static_cast<std::uint64_t>(epoch));
    model.order(order);
    for (std::size_t at = 0; at < order.size(); at += batch) {
      std::size_t const now = std::min(batch, order.size() - at);
      std::size_t const begin = share(gpu.rank(), now), end = share(gpu.rank() + 1, now);
      model.add_gradients(at + begin, end - begin, 1.0f / static_cast<float>(now));
      collx::all_reduce_then<composed>(gpu, model.gradient(), model.gradient(), collx::sum, model.step(),
                                       collx::on(model.stream()));
    }
  }
  gpu.synchronize(collx::on(model.stream()));
  return model.parameters();
}

template <class World>
void run_rank(World& world, digits const& data, int epochs, int gpus, double& reached) {
  require(cudaSetDevice(world.rank() % gpus), "cudaSetDevice");
  collx::gpu_communicator gpu(world);
  std::vector<float> const parameters = train(gpu, data.training, epochs);
  std::vector<float> all(parameters.size() * static_cast<std::size_t>(world.size()));
  collx::all_gather(world, parameters, all);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != parameters[i % parameters.size()]) {
      std::fprintf(stderr, "train_digits_gpu: rank %d and rank %zu have different models\n", world.rank(),
                   i / parameters.size());
      std::_Exit(1);
    }
  reached = accuracy(parameters, data.test);
  if (world.rank() != 0) return;
  std::printf("%d ranks on %d GPUs, the same model on all; test accuracy: %.2f %%\n", world.size(),
              std::min(world.size(), gpus), 100 * reached);
  std::fflush(stdout);
}

// A whole number from 1 to `most`; `otherwise`, if there is no such argument.
[[nodiscard]] int number(int argc, char** argv, int index, char const* name, int most, int otherwise) {
  if (index >= argc) return otherwise;
  std::string_view const text = argv[index];
  int value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    throw std::runtime_error(std::string(name) + " is '" + argv[index] + "'; say a number from 1 to " +
                             std::to_string(most) + ": train_digits_gpu [RANKS [DATA [EPOCHS [PERCENT]]]]");
  return value;
}

}  // namespace

int main(int argc, char** argv) try {
  rank_t const ranks = number(argc, argv, 1, "RANKS", 128, 2);
  digits const data = split(load_digits(argc > 2 ? argv[2] : TRAIN_DIGITS_DATA), test_image_count, seed);
  int const epochs = number(argc, argv, 3, "EPOCHS", 10'000, 40);
  int const required_percent = number(argc, argv, 4, "PERCENT", 100, 95);
  int const gpus = count_gpus();
  if (gpus == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  auto const codes = collx::bootstrap::on_processes(ranks, [&](auto& world) {
    double reached = 0;
    run_rank(world, data, epochs, gpus, reached);
    if (100 * reached >= required_percent) return;
    if (world.rank() == 0)
      std::fprintf(stderr, "train_digits_gpu: fewer than %d %% of the test images are right\n",
                   required_percent);
    std::_Exit(1);
  });
  for (int const code : codes)
    if (code != 0) return 1;
} catch (std::exception const& e) {
  std::fprintf(stderr, "train_digits_gpu: %s\n", e.what());
  return 2;
}
