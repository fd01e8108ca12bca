// SPDX-License-Identifier: Apache-2.0
// The network of ../train_digits/network.hpp in memory of a GPU, and the kernels of one training step. The
// gradient of a parameter is added up by one thread, image after image: the same bits in every run.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

#include "../train_digits/network.hpp"

namespace train_digits {

inline void require(cudaError_t code, char const* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

// An image without std::array, whose members do not claim the device.
struct gpu_image {
  float pixels[pixel_count];
  int digit;
};

[[nodiscard]] inline std::vector<gpu_image> plain(std::vector<image> const& images) {
  std::vector<gpu_image> all(images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::copy(images[i].pixels.begin(), images[i].pixels.end(), all[i].pixels);
    all[i].digit = images[i].digit;
  }
  return all;
}

// What an image leaves behind for the gradients.
struct traces {
  float hidden[hidden_count];
  float delta_1[hidden_count];
  float delta_2[class_count];
};

// Memory of the current GPU.
template <class T>
class gpu_array {
 public:
  explicit gpu_array(std::size_t count) : count_(count) {
    require(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    require(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
    require(cudaStreamSynchronize(nullptr), "cudaMemset");
  }
  explicit gpu_array(std::vector<T> const& content) : gpu_array(content.size()) {
    require(cudaMemcpy(data_, content.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    require(cudaStreamSynchronize(nullptr), "cudaMemcpy");  // it may return before the bytes are there
  }
  gpu_array(gpu_array const&) = delete;
  ~gpu_array() { (void)cudaFree(data_); }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::span<T> span() const { return {data_, count_}; }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

// One block an image, one thread a hidden unit: forward, and back as far as both layers' deltas.
__global__ void trace_images(gpu_image const* images, int const* order, float const* parameters,
                             traces* out) {
  gpu_image const& input = images[order[blockIdx.x]];
  traces& mine = out[blockIdx.x];
  __shared__ float hidden[hidden_count], score[class_count];
  unsigned const j = threadIdx.x;
  float unit = parameters[bias_1 + j];
  for (unsigned i = 0; i < pixel_count; ++i)
    unit += input.pixels[i] * parameters[weights_1 + i * hidden_count + j];
  hidden[j] = mine.hidden[j] = unit > 0 ? unit : 0;
  __syncthreads();
  if (j < class_count) {
    score[j] = parameters[bias_2 + j];
    for (unsigned h = 0; h < hidden_count; ++h)
      score[j] += hidden[h] * parameters[weights_2 + h * class_count + j];
  }
  __syncthreads();
  float highest = score[0], sum = 0;
  for (float const s : score) highest = s > highest ? s : highest;
  for (float const s : score) sum += expf(s - highest);
  auto const delta = [&](unsigned k) {
    return expf(score[k] - highest) / sum - (static_cast<int>(k) == input.digit ? 1.0f : 0.0f);
  };
  if (j < class_count) mine.delta_2[j] = delta(j);
  float back = 0;
  for (unsigned k = 0; k < class_count; ++k) back += delta(k) * parameters[weights_2 + j * class_count + k];
  mine.delta_1[j] = unit > 0 ? back : 0;
}

// One thread a parameter.
__global__ void add_gradients(gpu_image const* images, int const* order, traces const* all, int count,
                              float scale, float* gradient) {
  std::size_t const p = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (p >= parameter_count) return;
  float sum = 0;
  for (int b = 0; b < count; ++b) {
    traces const& t = all[b];
    if (p < bias_1) sum += images[order[b]].pixels[p / hidden_count] * t.delta_1[p % hidden_count];
    else if (p < weights_2) sum += t.delta_1[p - bias_1];
    else if (p < bias_2)
      sum += t.hidden[(p - weights_2) / class_count] * t.delta_2[(p - weights_2) % class_count];
    else sum += t.delta_2[p - bias_2];
  }
  gradient[p] = sum * scale;
}

// Gradient descent with momentum, for one parameter: what is fused behind the all_reduce.
struct descent {
  float* parameters;
  float* velocity;
  float learning_rate = 0.1f, momentum = 0.9f;

  __host__ __device__ void operator()(std::size_t i, float gradient) const {
    velocity[i] = momentum * velocity[i] + gradient;
    parameters[i] -= learning_rate * velocity[i];
  }
};

class gpu_model {
 public:
  gpu_model(std::vector<image> const& images, std::vector<float> const& parameters, std::size_t batch)
      : images_(plain(images)), order_(images.size()), parameters_(parameters), traces_(batch) {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  gpu_model(gpu_model const&) = delete;
  ~gpu_model() { (void)cudaStreamDestroy(stream_); }

  // Images are taken in this order from here on.
  void order(std::vector<int> const& order) {
    require(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    require(cudaMemcpy(order_.data(), order.data(), order.size() * sizeof(int), cudaMemcpyHostToDevice),
            "cudaMemcpy");
    require(cudaStreamSynchronize(nullptr), "cudaMemcpy");
  }

  // The gradients of `count` images, `scale` times, from the first-th on; zeros if there are none.
  void add_gradients(std::size_t first, std::size_t count, float scale) {
    int const* const order = order_.data() + first;
    if (count != 0)
      trace_images<<<static_cast<unsigned>(count), hidden_count, 0, stream_>>>(
          images_.data(), order, parameters_.data(), traces_.data());
    constexpr unsigned threads = 256, blocks = (parameter_count + threads - 1) / threads;
    train_digits::add_gradients<<<blocks, threads, 0, stream_>>>(
        images_.data(), order, traces_.data(), static_cast<int>(count), scale, gradient_.data());
    require(cudaPeekAtLastError(), "the gradients");
  }

  [[nodiscard]] std::span<float> gradient() const { return gradient_.span(); }
  [[nodiscard]] descent step() const { return {parameters_.data(), velocity_.data()}; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] std::vector<float> parameters() const {
    std::vector<float> copy(parameter_count);
    require(cudaMemcpy(copy.data(), parameters_.data(), copy.size() * sizeof(float), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    return copy;
  }

 private:
  gpu_array<gpu_image> images_;
  gpu_array<int> order_;
  gpu_array<float> parameters_, velocity_{parameter_count}, gradient_{parameter_count};
  gpu_array<traces> traces_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace train_digits
