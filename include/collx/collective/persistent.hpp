// SPDX-License-Identifier: Apache-2.0
// A collective that is set up once and started many times, as in MPI's persistent requests.
#pragma once

#include "collx/collective/call.hpp"

namespace collx::inline abi_1 {

// Everything is decided when it is made: arguments are checked, here and, if the communicator checks that,
// against the other ranks'; the algorithm is chosen. A start only moves data: it sends no message that the
// algorithm does not need. All ranks make it and start it in the same order among their collectives.
//
// The buffers (and counts, offsets) stay where they are for its life; they may be changed between wait()
// and the next start(). Not started while in flight: start() waits for the last one first.
template <class Contract, class T, class Op, class Endpoint>
class persistent_collective {
 public:
  using engine_type = exec::engine<Endpoint>;
  using arguments = detail::invocation<Contract, T, Op>;
  using launcher = request<Endpoint> (*)(engine_type&, detail::choice const&, arguments const&, priority);

  persistent_collective(engine_type& engine, arguments const& args, detail::choice const& with,
                        launcher launch, priority how) noexcept
      : engine_(&engine), args_(args), with_(with), launch_(launch), how_(how) {}

  void start() {
    wait();
    current_ = launch_(*engine_, with_, args_, how_);
  }
  // As those of a request; before the first start they return at once.
  [[nodiscard]] bool test() { return current_.test(); }
  void wait() { current_.wait(); }
  [[nodiscard]] status try_test() noexcept { return current_.try_test(); }
  [[nodiscard]] status try_wait() noexcept { return current_.try_wait(); }

  [[nodiscard]] char const* algorithm() const noexcept { return with_.name; }

 private:
  engine_type* engine_;
  arguments args_;
  detail::choice with_;
  launcher launch_;
  priority how_;
  request<Endpoint> current_;
};

}  // namespace collx::inline abi_1
