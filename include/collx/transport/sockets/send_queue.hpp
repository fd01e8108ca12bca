// SPDX-License-Identifier: Apache-2.0
// How much of what a connection sends waits in the system's queue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/net/socket.hpp"

namespace collx::inline abi_1::transport::sockets {

// How a connection's queue is kept.
enum class queueing : std::uint8_t {
  usual,              // as the system has it for all
  paced_within_host,  // short while long slices go both ways
  paced,              // short once a slice is long
  among_others,       // short: of several that share the slices of a peer
};

// A connection that is paced, as by bbr, gets on slowly where long slices go both ways at once and all of one
// lies in the queue of the system, which must send it between the answers to what arrives. So little may wait
// there as long as slices do so. One that goes alone is written at once within a host, which is faster; over
// a network bbr may then find the path to be slow, for as long as it is used (docs/decisions.md).
//
// Of several connections, that with the least under way gets the next slice (flows/flow_choice.hpp). What the
// system has taken is no longer under way, so queues of megabytes would have the first ones get all of it.
class send_queue {
 public:
  // Within a host nothing is gained of 256 KiB.
  static constexpr std::size_t long_bytes_min = 192 * 1024, long_within_host_bytes_min = 384 * 1024;

  // Of a connection that is open now.
  void reset(int fd, queueing how) noexcept {
    leaves_host_ = how == queueing::paced;
    long_bytes_min_ = leaves_host_                         ? long_bytes_min
                      : how == queueing::paced_within_host ? long_within_host_bytes_min
                                                           : SIZE_MAX;
    bytes_max_ = 0;
    alone_ = alone_max;
    if (how == queueing::among_others) limit(fd, short_bytes);
  }

  // The first of a slice of so many bytes is about to be written.
  void begins_to_write(int fd, std::size_t bytes) noexcept {
    if (COLLX_LIKELY(bytes < long_bytes_min_)) return;
    bool const meets = alone_ < alone_max;
    alone_ += meets;
    int const wanted_bytes_max = leaves_host_ ? short_bytes : meets ? short_within_host_bytes : 0;
    if (wanted_bytes_max != bytes_max_) change(fd, wanted_bytes_max);
  }
  // The first of one has been read.
  void begins_to_read(std::size_t bytes) noexcept {
    if (COLLX_UNLIKELY(bytes >= long_bytes_min_)) alone_ = 0;
  }

 private:
  static constexpr int short_bytes = 128 * 1024, short_within_host_bytes = 64 * 1024;
  // So many in a row may go before one comes: as many as a lane has under way each way, and one.
  static constexpr std::uint8_t alone_max = 3;

  COLLX_NEVER_INLINE void change(int fd, int bytes_max) noexcept {
    bytes_max_ = bytes_max;
    limit(fd, bytes_max);
  }
  // 0: what the system has for all. Where it refuses, it only takes longer.
  static void limit(int fd, int bytes) noexcept {
    (void)net::set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
  }

  std::size_t long_bytes_min_ = SIZE_MAX;
  int bytes_max_ = 0;  // that may wait now; 0: what the system has for all
  bool leaves_host_ = false;
  std::uint8_t alone_ = alone_max;  // written since the last one came
};

}  // namespace collx::inline abi_1::transport::sockets
