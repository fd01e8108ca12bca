// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: every rank holds the whole model, takes its share of each batch, and all
// ranks apply the same summed gradient. The same code trains on one rank and on many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <collx/collective/all_gather.hpp>
#include <collx/collective/broadcast.hpp>
#include <collx/core/fnv1a.hpp>

#include "gradient_sum.hpp"
#include "measure.hpp"
#include "network.hpp"

namespace train_digits {

struct plan {
  std::size_t batch = 64;  // images of a step, over all ranks
  int epochs = 30;
  float learning_rate = 0.1f;
  float momentum = 0.9f;
  std::uint64_t seed = 1;
};

// What an observer sees after each epoch.
struct epoch_result {
  int epoch = 0;
  double loss = 0.0;      // mean over the epoch's training images
  double accuracy = 0.0;  // on the test images, 0 to 1
};

struct outcome {
  std::vector<float> parameters;
  epoch_result last;
  bool same_on_every_rank = false;
  measurements measured;
};

// Over the bits: equal models, equal fingerprints.
[[nodiscard]] inline std::uint64_t fingerprint(std::span<float const> parameters) {
  auto const bits = std::as_bytes(parameters);
  return collx::fnv1a_64(bits.data(), bits.size());
}

// A rank's share of `count` things: sizes differ by one at most, and are zero where there are more
// ranks than things.
[[nodiscard]] inline std::span<image const> share(std::span<image const> images, std::size_t rank,
                                                  std::size_t size) {
  std::size_t const first = images.size() * rank / size;
  std::size_t const last = images.size() * (rank + 1) / size;
  return images.subspan(first, last - first);
}

template <class Sum, class Communicator>
class trainer {
 public:
  using element = typename Sum::element;
  // The composed collective, bound to its algorithm.
  using all_reduce_call = void (*)(Communicator&, std::span<element>);

  trainer(Communicator& world, digits const& data, plan const& how, all_reduce_call sum_gradients)
      : world_(world),
        data_(data),
        plan_(how),
        sum_gradients_(sum_gradients),
        training_(data.training),
        sum_(world.template allocate<element>(parameter_count + 1)),
        optimizer_(how.learning_rate, how.momentum) {}

  // Calls observe(epoch_result) on every rank after each epoch.
  template <class Observe>
  outcome run(Observe observe) {
    outcome result;
    measured_.whole_us = timed_us([&] {
      first_parameters();
      for (int epoch = 1; epoch <= plan_.epochs; ++epoch) {
        result.last = {epoch, train_epoch(epoch), test_accuracy()};
        observe(result.last);
      }
      result.same_on_every_rank = compare_ranks();
    });
    result.parameters = parameters_;
    result.measured = measured_;
    return result;
  }

 private:
  static constexpr double loss_max = 1000.0;

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(world_.rank()); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(world_.size()); }

  void first_parameters() {
    parameters_.assign(parameter_count, 0.0f);
    if (rank() == 0) parameters_ = initial_parameters(plan_.seed);
    std::span<float> const whole(parameters_);
    measured_.parameters.record(whole.size_bytes(), [&] { collx::broadcast(world_, whole, 0); });
  }

  // Returns the mean loss. Images left over behind the last full batch have their turn in another epoch.
  double train_epoch(int epoch) {
    shuffle(training_, plan_.seed + static_cast<std::uint64_t>(epoch));
    std::size_t const step_count = training_.size() / plan_.batch;
    double loss = 0.0;
    for (std::size_t step = 0; step < step_count; ++step)
      loss += train_step(std::span<image const>(training_).subspan(step * plan_.batch, plan_.batch));
    return loss / static_cast<double>(step_count);
  }

  // One global batch. The loss travels behind the gradient: a second collective would cost a latency.
  double train_step(std::span<image const> batch) {
    std::span<element> const sum = sum_.span();
    auto const add = [](element& to, float value) { Sum::add(to, value); };  // inlines; a pointer may not
    double compute_us = timed_us([&] {
      std::ranges::fill(sum, element{});
      for (image const& input : share(batch, rank(), size())) {
        float const loss = add_gradient(parameters_, input, sum, add);
        Sum::add(sum[parameter_count], loss);
      }
    });
    measured_.gradient.record(sum.size_bytes(), [&] { sum_gradients_(world_, sum); });
    float const images = static_cast<float>(batch.size());
    compute_us += timed_us(
        [&] { optimizer_.step(parameters_, [&](std::size_t i) { return Sum::value(sum[i]) / images; }); });
    measured_.compute.add(compute_us);
    return checked_loss(static_cast<double>(Sum::value(sum[parameter_count])) /
                        static_cast<double>(batch.size()));
  }

  // Every rank holds the same loss, so all of them give up at the same step. The comparison is
  // written so that a NaN fails it.
  static double checked_loss(double loss) {
    if (loss < loss_max) return loss;
    throw std::range_error(
        "the training diverged: the loss of a batch is beyond 1000 or not a number; "
        "give a lower --learning-rate");
  }

  double test_accuracy() {
    std::int64_t right = 0;
    for (image const& input : share(data_.test, rank(), size()))
      right += predicted_digit(forward(parameters_, input)) == input.digit;
    measured_.answers.record(
        sizeof right, [&] { collx::all_reduce(world_, std::span<std::int64_t>(&right, 1), collx::sum); });
    return static_cast<double>(right) / static_cast<double>(data_.test.size());
  }

  bool compare_ranks() {
    std::uint64_t const mine = fingerprint(parameters_);
    std::vector<std::uint64_t> all(size());
    measured_.fingerprints.record(all.size() * sizeof mine, [&] {
      collx::all_gather(world_, std::span<std::uint64_t const>(&mine, 1), std::span<std::uint64_t>(all));
    });
    for (std::uint64_t theirs : all)
      if (theirs != mine) return false;
    return true;
  }

  Communicator& world_;
  digits const& data_;
  plan plan_;
  all_reduce_call sum_gradients_;
  std::vector<image> training_;
  std::vector<float> parameters_;
  // Memory of the communicator: peers read it in place, nothing is staged.
  decltype(std::declval<Communicator&>().template allocate<element>(1)) sum_;
  optimizer optimizer_;
  measurements measured_;
};

}  // namespace train_digits
