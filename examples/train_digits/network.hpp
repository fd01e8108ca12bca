// SPDX-License-Identifier: Apache-2.0
// A network with one hidden layer: 64 pixels, 64 hidden units (ReLU), 10 classes (softmax, cross
// entropy). All parameters are one vector of floats, so that a gradient is one vector to all-reduce.
// Knows nothing of ranks.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "digits.hpp"

namespace train_digits {

inline constexpr int hidden_count = 64;

// Where things lie in the parameter vector, and in the gradient.
inline constexpr std::size_t weights_1 = 0;                                                 // [pixel][hidden]
inline constexpr std::size_t bias_1 = weights_1 + pixel_count * hidden_count;               // [hidden]
inline constexpr std::size_t weights_2 = bias_1 + hidden_count;                             // [hidden][class]
inline constexpr std::size_t bias_2 = weights_2 + std::size_t{hidden_count} * class_count;  // [class]
inline constexpr std::size_t parameter_count = bias_2 + class_count;

using hidden_vector = std::array<float, hidden_count>;
using class_vector = std::array<float, class_count>;

[[nodiscard]] inline std::vector<float> initial_parameters(std::uint64_t seed) {
  random_source random(seed);
  std::vector<float> parameters(parameter_count, 0.0f);
  // He's rule for ReLU layers: variance 2/inputs; a uniform number in [-a, a) has variance a*a/3.
  float const limit_1 = std::sqrt(6.0f / pixel_count);
  float const limit_2 = std::sqrt(6.0f / hidden_count);
  for (std::size_t i = weights_1; i < bias_1; ++i) parameters[i] = random.symmetric(limit_1);
  for (std::size_t i = weights_2; i < bias_2; ++i) parameters[i] = random.symmetric(limit_2);
  return parameters;
}

struct activations {
  hidden_vector hidden{};
  class_vector score{};
};

[[nodiscard]] inline activations forward(std::span<float const> parameters, image const& input) {
  activations a;
  for (std::size_t j = 0; j < hidden_count; ++j) a.hidden[j] = parameters[bias_1 + j];
  for (std::size_t i = 0; i < pixel_count; ++i) {
    float const pixel = input.pixels[i];
    float const* const row = parameters.data() + weights_1 + i * hidden_count;
    for (std::size_t j = 0; j < hidden_count; ++j) a.hidden[j] += pixel * row[j];
  }
  for (float& unit : a.hidden) unit = unit > 0.0f ? unit : 0.0f;
  for (std::size_t k = 0; k < class_count; ++k) a.score[k] = parameters[bias_2 + k];
  for (std::size_t j = 0; j < hidden_count; ++j)
    for (std::size_t k = 0; k < class_count; ++k)
      a.score[k] += a.hidden[j] * parameters[weights_2 + j * class_count + k];
  return a;
}

[[nodiscard]] inline int predicted_digit(activations const& a) {
  std::size_t best = 0;
  for (std::size_t k = 1; k < class_count; ++k)
    if (a.score[k] > a.score[best]) best = k;
  return static_cast<int>(best);
}

// The softmax, in place, scaled so that exp() cannot overflow. Returns the cross entropy.
inline float softmax(class_vector& score, int digit) {
  auto const target = static_cast<std::size_t>(digit);
  float highest = score[0];
  for (float s : score) highest = s > highest ? s : highest;
  float const shifted = score[target] - highest;
  float sum = 0.0f;
  for (float& s : score) sum += s = std::exp(s - highest);
  for (float& s : score) s /= sum;
  return std::log(sum) - shifted;
}

// Adds this image's gradient to `sum`, element by element through `add(sum[i], value)`, and returns
// its loss. One image at a time: what is added does not depend on which images a rank holds.
template <class Element, class Add>
float add_gradient(std::span<float const> parameters, image const& input, std::span<Element> sum, Add add) {
  activations a = forward(parameters, input);
  float const loss = softmax(a.score, input.digit);
  class_vector& delta_2 = a.score;  // d loss / d score = probability - (1 for the right class)
  delta_2[static_cast<std::size_t>(input.digit)] -= 1.0f;

  hidden_vector delta_1{};
  for (std::size_t j = 0; j < hidden_count; ++j) {
    if (a.hidden[j] <= 0.0f) continue;
    std::size_t const row = weights_2 + j * class_count;
    for (std::size_t k = 0; k < class_count; ++k) {
      delta_1[j] += delta_2[k] * parameters[row + k];
      add(sum[row + k], a.hidden[j] * delta_2[k]);
    }
  }
  for (std::size_t i = 0; i < pixel_count; ++i) {
    float const pixel = input.pixels[i];
    if (pixel == 0.0f) continue;
    Element* const row = sum.data() + weights_1 + i * hidden_count;
    for (std::size_t j = 0; j < hidden_count; ++j) add(row[j], pixel * delta_1[j]);
  }
  for (std::size_t j = 0; j < hidden_count; ++j) add(sum[bias_1 + j], delta_1[j]);
  for (std::size_t k = 0; k < class_count; ++k) add(sum[bias_2 + k], delta_2[k]);
  return loss;
}

// Stochastic gradient descent with momentum.
class optimizer {
 public:
  optimizer(float learning_rate, float momentum)
      : learning_rate_(learning_rate), momentum_(momentum), velocity_(parameter_count, 0.0f) {}

  // `gradient(i)` is the mean gradient of parameter i.
  template <class Gradient>
  void step(std::span<float> parameters, Gradient gradient) {
    for (std::size_t i = 0; i < parameter_count; ++i) {
      velocity_[i] = momentum_ * velocity_[i] + gradient(i);
      parameters[i] -= learning_rate_ * velocity_[i];
    }
  }

 private:
  float learning_rate_;
  float momentum_;
  std::vector<float> velocity_;
};

}  // namespace train_digits
