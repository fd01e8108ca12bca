// SPDX-License-Identifier: Apache-2.0
// For a rank without a GPU among ranks that have one: the copier (copier.hpp) of memory of the host. Its
// collectives are cut in the same pieces as those of the ranks whose memory is a GPU's, so both kinds fit
// together.
#pragma once

#include <atomic>
#include <memory>

#include <sched.h>

#include "collx/device/copy_cached.hpp"
#include "collx/transport/copier.hpp"

namespace collx::inline abi_1::transport {

class host_copies {
 public:
  // The thread that calls is the stream: what it did before is done, and it waits where a stream would.
  struct stream {};

  // `half_bytes`: that of the other ranks' copiers, or pieces do not fit.
  explicit host_copies(std::size_t half_bytes = std::size_t{4} << 20)
      : half_bytes_(half_bytes), memory_(std::make_unique<std::byte[]>(2 * half_bytes)) {}
  host_copies(host_copies const&) = delete;

  [[nodiscard]] int device() const noexcept { return -1; }
  [[nodiscard]] std::size_t half_bytes() const noexcept { return half_bytes_; }
  [[nodiscard]] std::byte* staging(int half) const noexcept {
    return memory_.get() + static_cast<std::size_t>(half) * half_bytes_;
  }
  [[nodiscard]] std::uint32_t* word(int i) noexcept { return words_ + i; }

  [[nodiscard]] status fetch(int, copied_rows const& rows) noexcept { return copy(rows); }
  [[nodiscard]] status store(int, copied_rows const& rows) noexcept { return copy(rows); }
  [[nodiscard]] status fetched(int) const noexcept { return status::ok; }
  [[nodiscard]] status stored(int) const noexcept { return status::ok; }

  [[nodiscard]] status state() const noexcept { return status::ok; }

  void mark(stream, std::uint32_t* word, std::uint32_t value) const noexcept {
    // Release: the thread that drives sees what this one did before.
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  // Nobody waits here: the call is put in only afterwards. wait() does.
  void hold(stream, std::uint32_t* word, std::uint32_t value) noexcept {
    last_word_ = word;
    last_value_ = value;
  }

  // Until the calls made so far are done, or have failed: host_driven::throw_if_failed() says which. Every
  // wait of the thread that drives has a deadline, and so has this one.
  void wait() const noexcept {
    if (last_word_ == nullptr) return;
    // Acquire: results are there. "Or later": the word may serve another call by now; numbers wrap around.
    while (static_cast<std::int32_t>(std::atomic_ref(*last_word_).load(std::memory_order_acquire) -
                                     last_value_) < 0)
      sched_yield();
  }

 private:
  static status copy(copied_rows const& rows) noexcept {
    for (std::size_t r = 0; r < rows.rows && rows.width_bytes != 0; ++r)
      device::copy_cached(rows.to + r * rows.to_pitch, rows.from + r * rows.from_pitch, rows.width_bytes);
    return status::ok;
  }

  std::size_t half_bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::uint32_t words_[64] = {};
  std::uint32_t* last_word_ = nullptr;
  std::uint32_t last_value_ = 0;
};

static_assert(copier<host_copies>);

}  // namespace collx::inline abi_1::transport
