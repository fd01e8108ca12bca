// SPDX-License-Identifier: Apache-2.0
// Processes that share memory: nothing is left behind however they end, ranks do not outlive their
// parent, symmetric memory is handed out and taken back, and one that is killed is noticed.
#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::shm>;
using watched::on_processes;

std::set<std::string> names_in(char const* folder, std::string const& holding) {
  std::set<std::string> names;
  DIR* const listing = opendir(folder);
  if (listing == nullptr) return names;
  while (dirent const* entry = readdir(listing))
    if (std::string const name = entry->d_name; name.find(holding) != std::string::npos) names.insert(name);
  closedir(listing);
  return names;
}

// What a leak would show in: names in /dev/shm, and descriptors and mappings of this process.
struct footprint {
  std::set<std::string> shared = names_in("/dev/shm", "collx");
  std::size_t descriptors = names_in("/proc/self/fd", "").size();
  std::size_t mappings = mapped();

  static std::size_t mapped() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("memfd:collx") != std::string::npos;
    return count;
  }
  bool operator==(footprint const&) const = default;
};

// Every shared mapping of this process is of a file without a name.
bool shares_only_nameless_memory() {
  std::ifstream maps("/proc/self/maps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/shm") != std::string::npos) return false;
    found = found || line.find("/memfd:collx (deleted)") != std::string::npos;
  }
  return found;
}

// How much of the memory that this process shares as `name` lies on huge pages.
std::size_t huge_kib_of(std::string const& name) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t kib = 0;
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") < line.find(" ")) is_ours = line.find("/memfd:" + name) != std::string::npos;
    for (char const* each : {"ShmemPmdMapped:", "FilePmdMapped:"})
      if (is_ours && line.starts_with(each)) kib += std::stoul(line.substr(std::strlen(each)));
  }
  return kib;
}

// Whether this system puts shared memory on huge pages when it is asked to, and has as many as are taken
// below.
bool has_huge_pages() {
  constexpr std::size_t page = std::size_t{2} << 20, bytes = 8 * page;
  int const fd = static_cast<int>(syscall(SYS_memfd_create, "huge_probe", 0u));
  REQUIRE(ftruncate(fd, static_cast<off_t>(bytes)) == 0);
  void* const room = mmap(nullptr, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(room != MAP_FAILED);
  auto const begin = (reinterpret_cast<std::uintptr_t>(room) + page - 1) / page * page;
  auto* const at = reinterpret_cast<char*>(begin);
  REQUIRE(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
  std::memset(at, 1, bytes);
  constexpr int collapse = 25;  // MADV_COLLAPSE
  bool const has = madvise(at, bytes, collapse) == 0;
  std::memset(at, 2, bytes);
  bool const seen = huge_kib_of("huge_probe") * 1024 == bytes;
  munmap(room, bytes + page);
  close(fd);
  return has && seen;
}

void sum_once(communicator& comm) {
  std::vector<int> values(1000, 1);
  collx::all_reduce(comm, values);
  if (values != std::vector<int>(1000, comm.size())) throw std::runtime_error("wrong sum");
}

}  // namespace

TEST_CASE("shm: nothing is left behind after a normal end") {
  footprint const before;
  for (int const code : on_processes(3, [](communicator& comm) {
         sum_once(comm);
         auto const kept = comm.allocate<int>(100'000);
         if (!shares_only_nameless_memory()) throw std::runtime_error("shared memory has a name");
         sum_once(comm);
       }))
    CHECK(code == 0);
  CHECK(footprint() == before);
}

TEST_CASE("shm: nothing is left behind after an exception, and the other ranks end too") {
  footprint const before;
  auto const codes = on_processes(3, [](communicator& comm) {
    sum_once(comm);
    if (comm.rank() == 1) throw std::runtime_error("expected: this rank gives up");
    sum_once(comm);
  });
  for (int const code : codes) CHECK(code == 1);
  CHECK(footprint() == before);
}

TEST_CASE("shm: nothing is left behind when one rank is killed, and when all are") {
  footprint const before;
  for (bool const everybody : {false, true}) {
    shared_with_forks<arrivals> through;
    auto const codes = on_processes(3, [&](communicator& comm) {
      sum_once(comm);
      through->come();
      if (everybody || comm.rank() == 2) {
        through->wait_for(3);  // nobody is to fail in that sum
        kill(getpid(), SIGKILL);
      }
      std::vector<int> values(1000);
      status const outcome = collx::try_all_reduce(comm, values);
      if (outcome != status::peer_lost && outcome != status::aborted) throw std::runtime_error("no error");
    });
    for (std::size_t r = 0; r < 3; ++r) CHECK(codes[r] == (everybody || r == 2 ? 128 + SIGKILL : 0));
  }
  CHECK(footprint() == before);
}

TEST_CASE("shm: a rank killed from outside, anywhere in its work, is noticed by all others") {
  for (int after_us = 0; after_us < 2000; after_us += 100) {
    shared_with_forks<std::atomic<pid_t>> victim;
    auto const codes = on_processes(3,
                                    [&](communicator& comm) {
                                      if (comm.rank() == 1) *victim = getpid();
                                      std::thread killer;
                                      if (comm.rank() == 0)
                                        killer = std::thread([&] {
                                          while (*victim == 0) sched_yield();
                                          std::this_thread::sleep_for(std::chrono::microseconds(after_us));
                                          kill(*victim, SIGKILL);
                                        });
                                      std::vector<int> values(5000);
                                      status outcome = status::ok;
                                      while (outcome == status::ok)
                                        outcome = collx::try_all_reduce(comm, values);
                                      if (killer.joinable()) killer.join();
                                      if (outcome != status::peer_lost && outcome != status::aborted)
                                        throw std::runtime_error("not noticed");
                                      if (comm.failure().peer != 1)
                                        throw std::runtime_error("names another rank");
                                    },
                                    {.timeout_us = 60'000'000});
    CHECK(codes[0] == 0);
    CHECK(codes[1] == 128 + SIGKILL);
    CHECK(codes[2] == 0);
  }
}

TEST_CASE("shm: symmetric buffers on huge pages, if there are any, are zeroed, work, and are given back") {
  footprint const before;
  bool const there_are = has_huge_pages();
  if (!there_are) MESSAGE("SKIPPED: this system has no huge pages for shared memory, or none free");
  for (std::int32_t const huge : {0, 1})
    for (int const code :
         on_processes(2,
                      [&](communicator& comm) {
                        for (int round = 0; round < 3; ++round) {
                          auto const small = comm.allocate<int>(1000);
                          auto const large = comm.allocate<int>(1'500'000);
                          for (int const value : large.span())
                            if (value != 0) throw std::runtime_error("not zeroed");
                          for (int& value : large.span()) value = comm.rank() + 1;
                          if (huge == 1 && there_are && huge_kib_of("collx") < 2048 && has_huge_pages())
                            throw std::runtime_error("no huge page");
                          collx::all_reduce(comm, large.span());
                          for (int const value : large.span())
                            if (value != 3) throw std::runtime_error("wrong sum");
                        }
                      },
                      {.heap_bytes = std::size_t{16} << 20, .huge_pages = huge}))
      CHECK(code == 0);
  CHECK(footprint() == before);
}

TEST_CASE("shm: 64 ranks of one host start, and add up") {
  for (int const code : on_processes(64, sum_once)) CHECK(code == 0);
}

TEST_CASE("shm: a rank that has done its part may leave while others still work") {
  for (int round = 0; round < 20; ++round)
    for (int const code : on_processes(4, [&](communicator& comm) {
           std::vector<int> values(1 + 997 * static_cast<std::size_t>(round), comm.rank());
           collx::all_reduce(comm, values);
           if (values.back() != 6) throw std::runtime_error("wrong sum");
         }))
      CHECK(code == 0);
}

TEST_CASE("shm: ranks do not outlive the process that started them") {
  shared_with_forks<arrivals> alive;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans come to this process, which can then wait for them
  pid_t const parent = fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    (void)on_processes(3, [&](communicator&) {
      alive->come();
      for (;;) pause();
    });
    _exit(0);
  }
  alive->wait_for(3);
  kill(parent, SIGKILL);
  int ended = 0, how = 0;
  while (ended < 4 && waitpid(-1, &how, 0) > 0) {
    CHECK(WIFSIGNALED(how));
    CHECK(WTERMSIG(how) == SIGKILL);
    ++ended;
  }
  CHECK(ended == 4);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("shm: abort ends every rank's wait and says who did it") {
  for (int const code : on_processes(3, [](communicator& comm) {
         if (comm.rank() == 0) return comm.abort();
         std::vector<int> values(10);
         if (collx::try_all_reduce(comm, values) != status::aborted) throw std::runtime_error("not aborted");
         if (comm.failure().reported_by != 0) throw std::runtime_error("by another");
       }))
    CHECK(code == 0);
}

TEST_CASE("shm: symmetric memory is zero, reused and refused with advice when there is no more") {
  for (int const code : on_processes(2,
                                     [](communicator& comm) {
                                       for (int round = 0; round < 5; ++round) {
                                         auto const a = comm.allocate<unsigned char>(700'000);
                                         auto const nothing = comm.allocate<int>(0);
                                         auto b = comm.allocate<int>(10);
                                         for (unsigned char const byte : a)
                                           if (byte != 0) throw std::runtime_error("not zero");
                                         std::memset(a.data(), 0xFF, a.size());
                                         auto const moved = std::move(b);
                                         if (moved.size() != 10 || b.size() != 0)
                                           throw std::runtime_error("not moved");
                                       }
                                       try {
                                         auto const too_much = comm.allocate<int>(1 << 20);
                                         throw std::runtime_error("4 MiB out of 1 MiB");
                                       } catch (collx::error const& failure) {
                                         if (failure.code() != status::out_of_memory) throw;
                                         if (std::strstr(failure.what(), "COLLX_HEAP_BYTES") == nullptr)
                                           throw;
                                       }
                                       sum_once(comm);  // that was no failure of the communicator
                                     },
                                     {.staging_bytes = 64 * 1024, .heap_bytes = 1 << 20}))
    CHECK(code == 0);
}

TEST_CASE("shm: a rank can only join once, and only as a rank there is") {
  int const fd = collx::transport::shared_memory::segment::create(1, {.heap_bytes = 1 << 20});
  auto const first = collx::transport::shm::join(fd, 0);
  try {
    auto const second = collx::transport::shm::join(fd, 0);
    FAIL("joined twice");
  } catch (collx::error const& failure) {
    CHECK(std::string(failure.what()).find("rank 0 is already taken") != std::string::npos);
  }
  for (rank_t const wrong : {-1, 1, 1000})
    CHECK_THROWS_AS((void)collx::transport::shm::join(fd, wrong), collx::error);
  close(fd);
}

// A rank that is quick may have left when a peer, who has read that word, writes it back.
TEST_CASE("shm: the word that peers read and write outlives all worlds of its process, and is one for all") {
  namespace shared_memory = collx::transport::shared_memory;
  int const fds[2] = {shared_memory::segment::create(1, {.heap_bytes = 1 << 20}),
                      shared_memory::segment::create(1, {.heap_bytes = 1 << 20})};
  {
    auto const first = collx::transport::shm::join(fds[0], 0),
               second = collx::transport::shm::join(fds[1], 0);
  }
  auto const one = shared_memory::segment::attach(fds[0]), other = shared_memory::segment::attach(fds[1]);
  CHECK(one.of(0).known_word_at == other.of(0).known_word_at);
  CHECK(one.of(0).known_word == other.of(0).known_word);
  std::uint64_t word = 0;
  auto* const bytes = reinterpret_cast<std::byte*>(&word);
  std::uint64_t const at = one.of(0).known_word_at;
  CHECK(shared_memory::read_memory_of(getpid(), at, bytes, sizeof word) == status::ok);
  CHECK(word == one.of(0).known_word);
  for (int const fd : fds) close(fd);
}

TEST_CASE("shm: a descriptor of anything else is refused") {
  int const fd = static_cast<int>(syscall(SYS_memfd_create, "other", 0u));
  CHECK_THROWS_AS((void)collx::transport::shm::join(fd, 0), collx::error);
  REQUIRE(ftruncate(fd, 1 << 20) == 0);
  CHECK_THROWS_AS((void)collx::transport::shm::join(fd, 0), collx::error);
  close(fd);
  CHECK_THROWS_AS((void)collx::transport::shm::join(-1, 0), collx::error);
}
