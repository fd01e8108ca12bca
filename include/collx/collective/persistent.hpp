// SPDX-License-Identifier: Apache-2.0
// A collective that is set up once and started many times, as in MPI's persistent requests.
#pragma once

#include "collx/collective/call.hpp"

namespace collx::inline abi_1 {

namespace detail {

// Tells apart counts and offsets: they are read where the caller has them, and were checked once.
[[nodiscard]] inline std::uint64_t fingerprint(std::uint64_t print, std::size_t const* list,
                                               std::size_t length) noexcept {
  for (std::size_t i = 0; list != nullptr && i < length; ++i) {
    print = (print ^ list[i]) * 0x9e3779b97f4a7c15u;
    print ^= print >> 29;
  }
  return print;
}
[[nodiscard]] inline std::uint64_t fingerprint(exec::uneven_buffers const& tables, rank_t size) noexcept {
  std::uint64_t print = 0;
  for (std::size_t const* list :
       {tables.input.counts, tables.input.offsets, tables.output.counts, tables.output.offsets})
    print = fingerprint(print, list, static_cast<std::size_t>(size));
  return print;
}

[[noreturn]] COLLX_COLD inline void throw_changed_blocks(char const* collective) {
  throw_error(status::bad_argument,
              "%s: counts or offsets have changed since this persistent collective was made; make another "
              "one for other blocks",
              collective);
}

}  // namespace detail

// Everything is decided when it is made: arguments are checked, here and, if the communicator checks that,
// against the other ranks'; the algorithm is chosen. A start only moves data: it sends no message that the
// algorithm does not need. All ranks make it and start it in the same order among their collectives.
//
// The buffers, and counts and offsets where there are some, stay where they are for its life. What is in the
// buffers may be changed between wait() and the next start(); counts and offsets may not: start() throws
// error (bad_argument) and leaves the communicator as it was. Not started while in flight: start() waits for
// the last one first. It must end before the communicator it was made on. The operator is copied; what it
// refers to must stay as the buffers do. Movable, not copyable.
template <class Contract, class T, class Op, class Endpoint>
class persistent_collective {
 public:
  using engine_type = exec::engine<Endpoint>;
  using arguments = detail::invocation<Contract, T, Op>;
  using launcher = request<Endpoint> (*)(engine_type&, detail::choice const&, arguments const&, priority);

  persistent_collective(engine_type& engine, arguments const& args, detail::choice const& with,
                        launcher launch, priority how) noexcept
      : engine_(&engine), args_(args), with_(with), launch_(launch), how_(how), blocks_(blocks_now()) {}

  void start() {
    wait();
    if (COLLX_UNLIKELY(blocks_now() != blocks_)) detail::throw_changed_blocks(Contract::name);
    current_ = launch_(*engine_, with_, args_, how_);
  }
  // As those of a request; before the first start they return at once.
  [[nodiscard]] bool test() { return current_.test(); }
  void wait() { current_.wait(); }
  [[nodiscard]] status try_test() noexcept { return current_.try_test(); }
  [[nodiscard]] status try_wait() noexcept { return current_.try_wait(); }

  [[nodiscard]] char const* algorithm() const noexcept { return with_.name; }

 private:
  [[nodiscard]] std::uint64_t blocks_now() const noexcept {
    if constexpr (detail::is_uneven<Contract>) return detail::fingerprint(args_.tables, args_.at.where.size);
    else return 0;
  }

  engine_type* engine_;
  arguments args_;
  detail::choice with_;
  launcher launch_;
  priority how_;
  std::uint64_t blocks_;
  request<Endpoint> current_;
};

}  // namespace collx::inline abi_1
