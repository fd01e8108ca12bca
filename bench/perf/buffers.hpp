// SPDX-License-Identifier: Apache-2.0
// The memory that measured calls walk over: equal buffers, a cache line apart, in one allocation,
// either private to the rank or symmetric. Every page is written before the clock starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "collx/communicator.hpp"
#include "method.h"

namespace perf {

template <class T, class Transport>
class buffers {
  using symmetric_memory = decltype(std::declval<collx::communicator<Transport>&>().template allocate<T>(0));

 public:
  buffers(collx::communicator<Transport>& world, std::int64_t buffer_count, std::int64_t each_count,
          bool symmetric)
      : each_(static_cast<std::size_t>(each_count)), stride_(stride_count(each_count)) {
    std::size_t const count = static_cast<std::size_t>(buffer_count) * stride_;
    if (symmetric) {
      symmetric_.emplace(world.template allocate<T>(count));
      data_ = symmetric_->data();
    } else {
      private_.reset(static_cast<T*>(std::aligned_alloc(page_bytes, whole_pages(count * sizeof(T)))));
      data_ = private_.get();
      if (data_ == nullptr)
        throw std::runtime_error("no memory for " + std::to_string(count * sizeof(T)) +
                                 " bytes of buffers; ask for smaller sizes, a smaller --pool or --state hot");
    }
    std::fill_n(data_, count, T{});
  }

  [[nodiscard]] std::span<T> at(std::int64_t slot) const {
    return {data_ + static_cast<std::size_t>(slot) * stride_, each_};
  }

 private:
  static constexpr std::size_t page_bytes = 4096;

  struct release {
    void operator()(T* memory) const { std::free(memory); }
  };

  static std::size_t stride_count(std::int64_t count) {
    return static_cast<std::size_t>(method_stride_bytes(count * std::int64_t{sizeof(T)})) / sizeof(T);
  }
  static std::size_t whole_pages(std::size_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
  }

  std::size_t each_, stride_;
  std::unique_ptr<T, release> private_;
  std::optional<symmetric_memory> symmetric_;
  T* data_ = nullptr;
};

}  // namespace perf
