// SPDX-License-Identifier: Apache-2.0
// Private payloads that receivers, or their senders, have the system copy: the same results as staged ones,
// whatever their size and alignment; staged where it refuses; an error, not a wait for ever, if a peer dies.
// ctest: TIMEOUT 300
// thread sanitizer: no, each rank is a process of one thread
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/algo/bruck.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/algo/ring.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/split.hpp"
#include "collx/transport/faulty.hpp"
#include "sample.hpp"
#include "shared_with_forks.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::shm;

using communicator = collx::communicator<fetching>;

// Everything above what fits a letter, so that small messages are fetched too.
collx::transport::settings const always{.staging_bytes = 64 * 1024, .single_copy_bytes = 33};
collx::transport::settings const never{.staging_bytes = 64 * 1024, .single_copy_bytes = 0};

// Whether all ranks can read is found out by each as it joins, and so known to all that are in a barrier.
template <class Transport>
void wait_until_permitted(collx::communicator<Transport>& comm) {
  collx::barrier(comm);
}

int value(rank_t from, std::size_t i) { return from * 1'000'003 + static_cast<int>(i % 7919); }

// Of every element: a text would be made of `what` each time.
void require(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(std::string("wrong result: ") + what);
}

// `count` elements in private memory that begin `offset` bytes behind the begin of a line.
template <class T = int>
struct blocks {
  blocks(std::size_t count, std::size_t offset) : memory(count * sizeof(T) + 64 + offset) {
    data = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64 + offset);
    all = {data, count};
  }
  std::vector<std::byte> memory;
  T* data;
  std::span<T> all;
};

template <class Algorithm, class T = int>
void gather(communicator& comm, std::size_t count, std::size_t offset) {
  auto const size = static_cast<std::size_t>(comm.size());
  blocks<T> in(count, offset), out(count * size, offset + sizeof(T));
  for (std::size_t i = 0; i < count; ++i) in.data[i] = static_cast<T>(value(comm.rank(), i));
  collx::all_gather<Algorithm>(comm, in.all, out.all);
  for (std::size_t i = 0; i < count * size; ++i)
    require(out.data[i] == static_cast<T>(value(static_cast<rank_t>(i / count), i % count)), Algorithm::name);
}

template <class Algorithm>
void transpose(communicator& comm, std::size_t count, std::size_t offset) {
  auto const size = static_cast<std::size_t>(comm.size());
  blocks<> in(count * size, offset), out(count * size, offset + 4);
  for (std::size_t i = 0; i < count * size; ++i) in.data[i] = value(comm.rank(), i);
  collx::all_to_all<Algorithm>(comm, in.all, out.all);
  std::size_t const mine = static_cast<std::size_t>(comm.rank()) * count;
  for (std::size_t i = 0; i < count * size; ++i)
    require(out.data[i] == value(static_cast<rank_t>(i / count), mine + i % count), Algorithm::name);
}

template <class Algorithm>
void reduce_parts(communicator& comm, std::size_t count, std::size_t offset) {
  auto const size = static_cast<std::size_t>(comm.size());
  blocks<> in(count * size, offset), out(count, offset + 4);
  for (std::size_t i = 0; i < count * size; ++i) in.data[i] = value(comm.rank(), i);
  collx::reduce_scatter<Algorithm>(comm, in.all, out.all, collx::sum);
  std::size_t const mine = static_cast<std::size_t>(comm.rank()) * count;
  for (std::size_t i = 0; i < count; ++i) {
    int sum = 0;
    for (rank_t r = 0; r < comm.size(); ++r) sum += value(r, mine + i);
    require(out.data[i] == sum, Algorithm::name);
  }
}

// With private outputs, and with those that the other rank can reach.
void reduce_together(communicator& comm, std::size_t count, std::size_t offset) {
  using collx::algo::direct_two_shot;
  auto const shared = comm.allocate<int>(2 * count);
  for (bool const reachable : {false, true}) {
    blocks<> own_in(count, offset), own_out(count, offset + 4);
    std::span<int> const in = reachable ? shared.span().first(count) : own_in.all;
    std::span<int> const out = reachable ? shared.span().subspan(count) : own_out.all;
    for (std::size_t i = 0; i < count; ++i) in[i] = value(comm.rank(), i);
    auto const check = [&] {
      for (std::size_t i = 0; i < count; ++i) {
        int sum = 0;
        for (rank_t r = 0; r < comm.size(); ++r) sum += value(r, i);
        require(out[i] == sum, "direct_two_shot");
      }
    };
    collx::all_reduce<direct_two_shot>(comm, in, out);
    check();
    std::fill(out.begin(), out.end(), 0);
    rank_t const root = comm.size() - 1;
    collx::reduce<direct_two_shot>(comm, in, out, collx::sum, root);
    if (comm.rank() == root) check();
    std::copy(in.begin(), in.end(), out.begin());
    collx::all_reduce<direct_two_shot>(comm, out);
    check();
  }
}

// From every root.
void spread(communicator& comm, std::size_t count, std::size_t offset) {
  for (rank_t root = 0; root < comm.size(); ++root) {
    blocks<> in(count, offset), out(count, offset + 4);
    for (std::size_t i = 0; i < count; ++i) in.data[i] = value(comm.rank(), i);
    collx::broadcast<collx::algo::push_pull>(comm, in.all, out.all, root);
    for (std::size_t i = 0; i < count; ++i) require(out.data[i] == value(root, i), "push_pull");
  }
}

// Messages in one letter, of every size below and above a piece that is combined, and of many fragments.
void walk(communicator& comm) {
  using collx::algo::direct_one_shot;
  for (std::size_t const count : {1u, 8u, 9u, 1000u, 8191u, 40'001u, 150'007u})
    for (std::size_t const offset : {0u, 4u, 60u}) {
      if (count > 100'000 && offset != 4) continue;  // slow, and the ring turns the same way
      gather<direct_one_shot>(comm, count, offset);
      gather<direct_one_shot, unsigned char>(comm, count, offset + 1);
      gather<collx::algo::ring>(comm, count, offset);
      gather<collx::algo::bruck<2>>(comm, count, offset);
      transpose<direct_one_shot>(comm, count, offset);
      transpose<collx::algo::bruck<2>>(comm, count, offset);
      reduce_parts<direct_one_shot>(comm, count, offset);
      reduce_parts<collx::algo::ring>(comm, count, offset);
    }
  for (std::size_t const count : {8u, 1000u, 8191u, 40'001u}) {
    spread(comm, count, 4);
    reduce_together(comm, count, 4);
  }
}

bool all_ended_well(collx::bootstrap::exit_codes const& codes) {
  for (int const code : codes)
    if (code != 0) return false;
  return true;
}

// As users may write one: fan-ins of many messages that may be without data.
struct shared_two_shot {
  static constexpr char const* name = "shared_two_shot";
  struct all_reduce : collx::algo::direct_two_shot::all_reduce {
    static constexpr bool shares_copying(rank_t) { return true; }
  };
};

template <std::size_t Bytes>
struct large {
  std::uint64_t words[Bytes / 8];
};

template <std::size_t Bytes>
void reduce_large(communicator& comm, std::uint64_t round) {
  std::vector<large<Bytes>> v(2 * static_cast<std::size_t>(comm.size()));
  for (large<Bytes>& each : v)
    for (std::uint64_t& word : each.words) word = static_cast<std::uint64_t>(comm.rank()) + round;
  collx::all_reduce<shared_two_shot>(comm, v, [](large<Bytes> a, large<Bytes> const& b) {
    for (std::size_t i = 0; i < Bytes / 8; ++i) a.words[i] += b.words[i];
    return a;
  });
  auto const ranks = static_cast<std::uint64_t>(comm.size());
  for (large<Bytes> const& each : v)
    for (std::uint64_t const word : each.words)
      require(word == ranks * (ranks - 1) / 2 + ranks * round, "large elements");
}

}  // namespace

TEST_CASE("single copy: results are those of staged payloads, and it is used") {
  system_copies::say_if_refused();
  for (rank_t const size : {2, 3, 4})
    for (bool const used : {true, false}) {
      if (sample::is_sample && size == 4) continue;  // a minute under the address sanitizer
      CAPTURE(size);
      CAPTURE(used);
      CHECK(all_ended_well(watched::on_processes<fetching>(
          size,
          [&](communicator& comm) {
            if (used) wait_until_permitted(comm);
            walk(comm);
            auto& endpoint = comm.engine().endpoint();
            bool const expected = used && permitted(comm);
            if ((endpoint.fetched > 0) != expected || (endpoint.posted > 0) != expected)
              throw std::runtime_error("single copy is used where it must not be, or not where it must");
          },
          used ? always : never)));
    }
}

TEST_CASE("single copy: of any number of ranks, an element of each lands, or they are staged") {
  collx::transport::settings roomy = always;
  roomy.staging_bytes = 1 << 19;
  auto const codes = watched::on_processes<fetching>(
      collx::transport::mapped::fetched_ranks_max,
      [](communicator& comm) {
        wait_until_permitted(comm);
        reduce_large<3072>(comm, 1);
        require((comm.engine().endpoint().fetched > 0) == permitted(comm), "fetched");
        reduce_large<4096>(comm, 2);
      },
      roomy);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("single copy: a communicator of some of the ranks, and memory of both kinds") {
  CHECK(all_ended_well(watched::on_processes<fetching>(
      4,
      [&](communicator& comm) {
        wait_until_permitted(comm);
        auto half = comm.split(comm.rank() % 2, -comm.rank());
        walk(half);
        std::size_t const count = 30'000;
        std::vector<int> own(count, comm.rank()), all(count * 4);
        auto const shared = comm.allocate<int>(count);
        std::fill_n(shared.data(), count, comm.rank());
        bool const is_private = comm.rank() % 2 == 0;
        collx::all_gather<collx::algo::ring>(comm, is_private ? std::span<int>(own) : shared.span(), all);
        for (std::size_t i = 0; i < all.size(); ++i)
          require(all[i] == static_cast<int>(i / count), "mixed memory");
      },
      always)));
}

TEST_CASE("single copy: where the system refuses, payloads are staged") {
  if (getuid() != 0) {
    MESSAGE("SKIPPED: only root can become somebody who may not read");
    return;
  }
  constexpr int cannot = 77;  // root of a container that has no other users
  int const fd = collx::transport::shared_memory::segment::create(2, always);
  pid_t ranks[2];
  for (rank_t r = 0; r < 2; ++r) {
    ranks[r] = fork();
    REQUIRE(ranks[r] >= 0);
    if (ranks[r] != 0) continue;
    int code = cannot;
    if (setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0 &&
        prctl(PR_SET_DUMPABLE, 0) == 0) {
      try {
        auto comm = shm::join<fetching>(fd, r);
        watched::rank_of_process const here(comm);
        walk(comm);
        auto const& endpoint = comm.engine().endpoint();
        code = found_permission(comm) || endpoint.fetched != 0 || endpoint.posted != 0 ? 2 : 0;
      } catch (std::exception const& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        code = 3;
      }
    }
    _exit(code);
  }
  close(fd);
  for (pid_t const rank : ranks) {
    int how = 0;
    REQUIRE(waitpid(rank, &how, 0) == rank);
    CHECK(WIFEXITED(how));
    if (WEXITSTATUS(how) == cannot) MESSAGE("SKIPPED: root cannot become another user here");
    else CHECK(WEXITSTATUS(how) == 0);
  }
}

TEST_CASE("single copy: memory that the system does not read for others is not offered to them") {
  collx::transport::shared_memory::own_memory memory;
  std::vector<std::byte> const ordinary(100'000);
  iovec one{const_cast<std::byte*>(ordinary.data()), 1};
  std::byte copy;
  iovec const to{&copy, 1};
  if (process_vm_readv(getpid(), &to, 1, &one, 1, 0) != 1) {
    MESSAGE("SKIPPED: this system lets nobody read memory of processes");
    return;
  }
  CHECK(memory.readable(ordinary.data(), ordinary.size()));
  CHECK(memory.readable(ordinary.data(), 1));
  std::size_t const bytes = std::size_t{8} << 20;
  auto* const begin = static_cast<std::byte*>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  REQUIRE(static_cast<void*>(begin) != MAP_FAILED);
  CHECK_FALSE(memory.readable(begin, bytes));
  mprotect(begin, bytes / 2, PROT_READ);
  CHECK(memory.readable(begin, bytes / 2));
  CHECK_FALSE(memory.readable(begin, bytes));
  munmap(begin, bytes);
}

TEST_CASE("single copy: what cannot be copied after all is an error on every rank") {
  for (bool const posts : {false, true}) {
    CAPTURE(posts);
    auto const codes = watched::on_processes<fetching>(
        2,
        [&](communicator& comm) {
          wait_until_permitted(comm);
          comm.engine().endpoint().fails = comm.rank() == 1;
          std::vector<int> in(10'000), out(20'000);
          status const outcome = posts ? collx::try_broadcast<collx::algo::push_pull>(comm, out, 1)
                                       : collx::try_all_gather(comm, in, out);
          if (!permitted(comm)) return outcome == status::ok ? 0 : 1;
          std::string const text = collx::error(comm.failure()).what();
          if (comm.rank() == 0) return outcome == status::aborted ? 0 : 1;
          return outcome == status::system_failure && comm.failure().peer == 0 &&
                         text.find("COLLX_SINGLE_COPY_BYTES=0") != std::string::npos
                     ? 0
                     : 1;
        },
        always);
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("single copy: nothing is written to a rank that has given up") {
  static int word = 1;  // at the same address in both processes
  auto const codes = watched::on_processes<fetching>(
      2,
      [](communicator& comm) {
        wait_until_permitted(comm);
        auto& world = comm.engine().endpoint().space();
        auto const write = [&](int what) {
          return world.write_private(1, reinterpret_cast<std::uintptr_t>(&word),
                                     reinterpret_cast<std::byte const*>(&what), sizeof what);
        };
        if (permitted(comm) && comm.rank() == 0 && write(2) != status::ok) return 1;
        collx::barrier(comm);
        if (permitted(comm) && comm.rank() == 1 && word != 2) return 2;
        // Whoever is through may have given up before the other one is.
        status const met = collx::try_barrier(comm);
        if (met != status::ok && met != status::aborted) return 5;
        comm.abort();
        world.wait_for_writers(world.chosen().timeout_us);
        if (comm.rank() == 0) return write(3) == status::aborted ? 0 : 3;
        return word == 3 ? 4 : 0;
      },
      always);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("single copy: a rank killed with payloads unread, or read and not acknowledged, is noticed") {
  using faulty_shm = collx::transport::faulty<shm>;
  for (std::uint64_t round = 1; round <= 20; ++round) {
    CAPTURE(round);
    bool const at_send = round <= 16, posts = round > 10 && round <= 18;
    rank_t const root = at_send && round % 2 == 1 ? 1 : 0;  // it takes nothing
    collx::transport::fault_plan plan{.kill_process = true};
    (at_send ? plan.stop_at_send : plan.stop_at_consume) = at_send ? round : round % 2 + 1;
    shared_with_forks<arrivals> through;
    auto const codes = watched::on_processes<faulty_shm>(
        3,
        [&](collx::communicator<faulty_shm>& comm) {
          wait_until_permitted(comm);
          through->come();
          if (comm.rank() == 1) through->wait_for(3);  // nobody is to fail in that barrier
          if (comm.rank() == 1) comm.engine().endpoint().inject(plan);
          std::vector<int> in(3 * 60'000), out(3 * 60'000);
          for (;;) {
            status const outcome = posts ? collx::try_broadcast<collx::algo::push_pull>(comm, out, root)
                                         : collx::try_all_to_all<collx::algo::direct_one_shot>(comm, in, out);
            if (outcome == status::ok) continue;
            bool const named = comm.failure().peer == 1;
            return named && (outcome == status::peer_lost || outcome == status::aborted) ? 0 : 1;
          }
        },
        {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .single_copy_bytes = 33});
    CHECK(codes[0] == 0);
    CHECK(codes[1] == 128 + SIGKILL);
    CHECK(codes[2] == 0);
  }
}
