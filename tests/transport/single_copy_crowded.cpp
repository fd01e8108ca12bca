// SPDX-License-Identifier: Apache-2.0
// What ranks that share processors let the system copy once, where nobody has said what is worth it: where
// the system is quick at it, and where staging is found to be slow.
// thread sanitizer: no, each rank is a process of one thread
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sched.h>

#include "collx/algo/direct.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::algo::direct_one_shot;
using communicator = collx::communicator<fetching>;

// The ranks that are forked meanwhile may run on one processor only.
class one_processor {
 public:
  one_processor() {
    REQUIRE(sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t first;
    CPU_ZERO(&first);
    for (int p = 0; CPU_COUNT(&first) == 0; ++p)
      if (CPU_ISSET(p, &before_)) CPU_SET(p, &first);
    REQUIRE(sched_setaffinity(0, sizeof first, &first) == 0);
  }
  one_processor(one_processor const&) = delete;
  ~one_processor() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// How many messages a rank fetches in two calls with the same buffers: in the first, and in the second.
struct fetched_twice {
  int first = 0, again = 0;
};

template <class Call>
fetched_twice calls(communicator& comm, Call const& call) {
  int& fetched = comm.engine().endpoint().fetched;
  fetched_twice counted;
  for (int* const of_call : {&counted.first, &counted.again}) {
    fetched = 0;
    call();
    *of_call = fetched;
  }
  return counted;
}

fetched_twice transpose(communicator& comm, std::size_t block_bytes) {
  auto const size = static_cast<std::size_t>(comm.size());
  std::vector<std::uint8_t> in(size * block_bytes), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<std::uint8_t>(comm.rank() * 31 + static_cast<int>(i % 251));
  fetched_twice const counted = calls(comm, [&] { collx::all_to_all<direct_one_shot>(comm, in, out); });
  std::size_t const mine = static_cast<std::size_t>(comm.rank()) * block_bytes;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t const from = i / block_bytes;
    auto const should = static_cast<std::uint8_t>(from * 31 + (mine + i % block_bytes) % 251);
    if (out[i] != should) throw std::runtime_error("wrong element " + std::to_string(i));
  }
  return counted;
}

void require(bool holds, char const* what, fetched_twice const& counted) {
  if (!holds)
    throw std::runtime_error(std::string(what) + ": fetched " + std::to_string(counted.first) + ", then " +
                             std::to_string(counted.again));
}

}  // namespace

TEST_CASE("single copy: ranks that share processors copy once what is not combined and fits the caches") {
  system_copies::say_if_refused();
  one_processor const shared;
  auto const codes = watched::on_processes<fetching>(
      2,
      [](communicator& comm) {
        constexpr std::size_t slice_bytes = 96 * 1024;  // of a vector that fits any second-level cache
        // All have said at the end of a call whether they can read the others.
        fetched_twice counted = transpose(comm, slice_bytes);
        if (!permitted(comm)) return 0;
        counted = transpose(comm, slice_bytes);
        require(counted.first == 1 && counted.again == 1, "all_to_all", counted);

        std::size_t const large = collx::device::fetched_bytes_max() / 2;
        counted = transpose(comm, large);
        require(counted.first == 0 && counted.again > 0, "all_to_all of large blocks", counted);
        counted = transpose(comm, 4 * large);
        require(counted.first == 0 && counted.again == 0, "all_to_all of huge blocks", counted);

        std::vector<int> in(slice_bytes), out(slice_bytes / 2);
        counted = calls(comm, [&] { collx::reduce_scatter<direct_one_shot>(comm, in, out, collx::sum); });
        require(counted.first == 0 && counted.again == 0, "reduce_scatter", counted);
        return 0;
      },
      {.system_copy_cost_max = 1e9});
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("single copy: where staging is found to be slow, they copy once whatever is not combined") {
  system_copies::say_if_refused();
  one_processor const shared;
  auto const codes = watched::on_processes<fetching>(2, [](communicator& comm) {
    std::size_t const huge = 2 * collx::device::fetched_bytes_max();
    (void)transpose(comm, 1024);
    if (!permitted(comm)) return 0;
    std::vector<int> in(huge / 2), out(huge / 4);
    auto& endpoint = comm.engine().endpoint();
    // How long the system is said to take for a page.
    for (double const page_ns : {1e-6, 1e9}) {
      endpoint.paces() = {};
      endpoint.paces().start({page_ns}, 128 * 1024);
      fetched_twice counted;
      // Staging is tried again, after a while.
      for (int i = 0; i < 10 && counted.again == 0; ++i) counted = transpose(comm, huge);
      require((counted.again > 0) == (page_ns < 1), "all_to_all of huge blocks, staged slowly", counted);
      counted = calls(comm, [&] { collx::reduce_scatter<direct_one_shot>(comm, in, out, collx::sum); });
      require(counted.first == 0 && counted.again == 0, "reduce_scatter, staged slowly", counted);
    }
    return 0;
  });
  for (int const code : codes) CHECK(code == 0);
}
