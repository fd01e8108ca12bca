// SPDX-License-Identifier: Apache-2.0
// checking_level::communication between processes, over shared memory and over TCP: arguments in which ranks
// differ are found before any data move, and the ranks that find it name both values. All arguments in which
// ranks can differ: agreement.cpp.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <atomic>
#include <new>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "collx/collective/agreement.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::status;

constexpr rank_t size = 3, wrong = 1;

// How a rank differs from the others, and the words for it on both sides.
struct difference {
  char const* in;
  char const* right;
  char const* wrong;
};
constexpr difference count{"count", "10", "11"}, operation{"operator", "sum", "max"},
    collective{"collective", "all_reduce", "barrier"}, root{"root", "0", "2"};

template <class Communicator>
void call(Communicator& comm, difference const& what, bool is_wrong) {
  std::vector<int> values(is_wrong && &what == &count ? 11 : 10);
  if (&what == &root) collx::broadcast(comm, values, is_wrong ? 2 : 0);
  else if (&what == &collective && is_wrong) collx::barrier(comm);
  else if (&what == &operation && is_wrong) collx::all_reduce(comm, values, collx::max);
  else collx::all_reduce(comm, values, collx::sum);
}

struct shared_count {
  shared_count() {
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    value = ::new (page) std::atomic<int>(0);
  }
  shared_count(shared_count const&) = delete;
  ~shared_count() { munmap(static_cast<void*>(value), 4096); }
  std::atomic<int>* value;
};

// One rank, a process: throws, unless it is told of the difference, or stopped by a rank that was told
// before.
template <class Communicator>
void one_rank(Communicator& comm, difference const& what, std::atomic<int>& found) {
  comm.checking(collx::checking_level::communication);
  collx::barrier(comm);
  bool const is_wrong = comm.rank() == wrong;
  try {
    call(comm, what, is_wrong);
  } catch (collx::error const& failure) {
    std::string const text = failure.what();
    if (failure.code() == status::aborted && comm.failure().code == status::aborted) return;
    ++found;
    bool const complete =
        failure.code() == status::mismatch && comm.failure().code == status::mismatch &&
        text.find(std::string("another ") + what.in + ": " + (is_wrong ? what.wrong : what.right) +
                  " here, " + (is_wrong ? what.right : what.wrong) + " there") != std::string::npos &&
        text.find("#1 on rank " + std::to_string(comm.rank())) != std::string::npos &&
        text.find(is_wrong ? "peer 0" : "peer 1") != std::string::npos;
    if (!complete) throw std::runtime_error("a report that is not complete: " + text);
    return;
  }
  throw std::runtime_error(std::string("another ") + what.in + " was not found");
}

// `run(rank_main)`: runs ranks as processes and returns how they ended.
template <class Run>
void check(Run const& run) {
  for (difference const* what : {&count, &operation, &collective, &root}) {
    CAPTURE(std::string(what->in));
    shared_count const found;
    for (int const code : run([&](auto& comm) { one_rank(comm, *what, *found.value); })) CHECK(code == 0);
    CHECK(*found.value >= 1);
  }
}

}  // namespace

TEST_CASE("shm: arguments that differ between processes are found") {
  check([](auto const& rank_main) { return watched::on_processes(size, rank_main); });
}

TEST_CASE("tcp: arguments that differ between processes are found") {
  check([](auto const& rank_main) { return watched::on_tcp_processes(size, rank_main); });
}
