// SPDX-License-Identifier: Apache-2.0
// The MPI requests in flight of one communicator, side by side as MPI_Testsome wants them.
#pragma once

#include "collx/transport/mpi/api.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport::mpi_parts {

class request_table {
 public:
  // What a request is of: a channel, and which of its sends; or its receive.
  struct owner {
    std::uint32_t channel;
    std::uint32_t part;
  };
  static constexpr std::uint32_t receive = 0xffffffff;

  // `capacity`: requests that may be in flight at once.
  explicit request_table(std::size_t capacity)
      : memory_(capacity * (sizeof(MPI_Request) + sizeof(owner))),
        requests_(reinterpret_cast<MPI_Request*>(memory_.data())),
        owners_(reinterpret_cast<owner*>(memory_.data() + capacity * sizeof(MPI_Request))) {}

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  // A place for one more request: `post(MPI_Request*)` fills it, and returns what MPI did. Kept if that is
  // MPI_SUCCESS.
  template <class Post>
  [[nodiscard]] int add(owner const& of, Post const& post) noexcept {
    int const code = post(&requests_[count_]);
    if (COLLX_LIKELY(code == MPI_SUCCESS)) owners_[count_++] = of;
    return code;
  }

  // Lets MPI get on; calls done(owner, MPI_Status const&, code) for every request that has ended.
  template <class Done>
  void test(Done const& done) noexcept {
    // From the back, so that the request that takes a gap has been tested already.
    for (std::size_t end = count_; end != 0;) {
      std::size_t const begin = end > at_once ? end - at_once : 0;
      test_some(begin, end, done);
      end = begin;
    }
  }

  // Asks MPI to give up the receives. They end in test() like any other.
  COLLX_COLD void cancel_receives() noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      if (owners_[i].part == receive) (void)MPI_Cancel(&requests_[i]);
  }
  [[nodiscard]] COLLX_COLD bool has_receives() const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      if (owners_[i].part == receive) return true;
    return false;
  }

 private:
  // On the stack, a status is 24 or 40 bytes. Few ranks have more in flight.
  static constexpr std::size_t at_once = 32;

  template <class Done>
  void test_some(std::size_t begin, std::size_t end, Done const& done) noexcept {
    int ended = 0;
    int which[at_once];
    MPI_Status how[at_once];
    int const code = MPI_Testsome(static_cast<int>(end - begin), requests_ + begin, &ended, which, how);
    if (ended == MPI_UNDEFINED || ended <= 0) return;
    // The code may say more than its class, in which case only MPI sets the field.
    int kind = code;
    if (COLLX_UNLIKELY(code != MPI_SUCCESS)) (void)MPI_Error_class(code, &kind);
    for (int i = 0; i < ended; ++i) {
      int const each = kind == MPI_ERR_IN_STATUS ? how[i].MPI_ERROR : code;
      done(owners_[begin + static_cast<std::size_t>(which[i])], how[i], each);
    }
    for (std::size_t i = end; i-- != begin;) {
      if (requests_[i] != MPI_REQUEST_NULL) continue;
      requests_[i] = requests_[--count_];
      owners_[i] = owners_[count_];
    }
  }

  zeroed_pages memory_;  // taken when touched: few ranks talk to all others
  MPI_Request* requests_;
  owner* owners_;
  std::size_t count_ = 0;
};

}  // namespace collx::inline abi_1::transport::mpi_parts
