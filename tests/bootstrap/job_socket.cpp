// SPDX-License-Identifier: Apache-2.0
// Names at which ranks of one host meet where nobody says where: which launchers give one, what tells jobs
// apart, and connect() with them.
// thread sanitizer: no, its threads have numbers of their own where a test counts those of processes
#include "collx/bootstrap/job_socket.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bootstrap/connecting.hpp"

using namespace connecting;

namespace {

// A number that no other run of this test has at the same time.
std::string own_job() { return "collx_test_" + std::to_string(getpid()); }

environment open_mpi(rank_t rank, rank_t size, std::string const& job) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(size)},
          {"PMIX_NAMESPACE", job},
          {"COLLX_HEAP_BYTES", std::to_string(1 << 20)},
          {"COLLX_TIMEOUT_US", "100000000"}};
}
environment mpich(rank_t rank, rank_t size) {
  return {{"PMI_RANK", std::to_string(rank)},
          {"PMI_SIZE", std::to_string(size)},
          {"MPI_LOCALRANKID", std::to_string(rank)},
          {"MPI_LOCALNRANKS", std::to_string(size)},
          {"COLLX_HEAP_BYTES", std::to_string(1 << 20)},
          {"COLLX_TIMEOUT_US", "100000000"}};
}
environment const slurm{{"SLURM_PROCID", "1"},  {"SLURM_STEP_ID", "0"},        {"SLURM_NTASKS", "2"},
                        {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", "4711"}};
environment const torchrun{{"RANK", "1"},
                           {"WORLD_SIZE", "2"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "node0"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "none"}};

environment with(environment all, char const* name, std::string const& value) {
  all[name] = value;
  return all;
}
environment without(environment all, char const* name) {
  all.erase(name);
  return all;
}

std::string name_for(environment const& mine) {
  forget_variables();
  for (auto const& [name, value] : mine) setenv(name.c_str(), value.c_str(), 1);
  std::string const name = collx::bootstrap::job_socket(collx::bootstrap::launch::from_environment()).text;
  forget_variables();
  return name;
}

// Two ends of a socket that this process has made, as Hydra makes one for each rank.
struct socket_pair {
  socket_pair() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0); }
  socket_pair(socket_pair const&) = delete;
  ~socket_pair() { close(ends[0]), close(ends[1]); }
  int ends[2];
};

// What a process says which is the third of a PID namespace of its own, and which the second one has started,
// by a socket, as Hydra does. Empty: it may not have such a namespace. That stays as long as this lives: the
// number of one that is gone may be another one's next.
struct in_own_namespace {
  in_own_namespace() {
    int text[2], end[2];
    REQUIRE(pipe(text) == 0);
    REQUIRE(pipe(end) == 0);
    pid_t const outside = fork();
    if (outside == 0) close(end[1]), live(text[1], end[0]);
    close(text[1]), close(end[0]);
    char said[100] = {};
    CHECK(read(text[0], said, sizeof said - 1) >= 0);
    name = said;
    held = open(("/proc/" + std::to_string(outside) + "/ns/pid_for_children").c_str(), O_RDONLY | O_CLOEXEC);
    close(text[0]), close(end[1]);
    int how = -1;
    CHECK(waitpid(outside, &how, 0) == outside);
    CHECK(how == 0);
  }
  in_own_namespace(in_own_namespace const&) = delete;
  ~in_own_namespace() { close(held); }

  std::string name;
  int held;

 private:
  static void wait_for(pid_t child) {
    int how = -1;
    if (waitpid(child, &how, 0) != child || how != 0) _exit(1);
  }
  [[noreturn]] static void live(int text, int end) {
    if (unshare(CLONE_NEWPID) != 0) _exit(0);
    pid_t const first = fork();
    if (first != 0) wait_for(first), _exit(0);
    pid_t const launcher = fork();
    if (launcher != 0) wait_for(launcher), _exit(0);
    int ends[2];
    if (getpid() != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(2);
    pid_t const rank = fork();
    if (rank != 0) wait_for(rank), _exit(0);
    std::string const said = name_for(with(mpich(0, 2), "PMI_FD", std::to_string(ends[1])));
    if (said.empty() || write(text, said.data(), said.size()) < 0) _exit(3);
    char unused;
    _exit(read(end, &unused, 1) == 0 ? 0 : 4);  // until it is held
  }
};

}  // namespace

TEST_CASE("job_socket: ranks of a job have the same name, other jobs have others") {
  std::string const name = name_for(open_mpi(0, 2, "1"));
  CHECK(name == "@collx-" + std::to_string(geteuid()) + "-992093bbcfebc066");
  CHECK(name_for(open_mpi(1, 2, "1")) == name);
  CHECK(name_for(open_mpi(0, 2, "2")) != name);
  // Numbers of jobs may be hashes; a server of a launcher has a port of its own.
  CHECK(name_for(with(open_mpi(0, 2, "1"), "PMIX_SERVER_URI2", "1.0;tcp4://127.0.0.1:4")) != name);
  CHECK(name_for(slurm) == name_for(with(slurm, "SLURM_PROCID", "0")));
  for (char const* each : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME"})
    CHECK_MESSAGE(name_for(with(slurm, each, "12")) != name_for(slurm), each);
  CHECK(name_for(with(with(slurm, "SLURM_JOB_ID", "1"), "SLURM_STEP_ID", "12")) !=
        name_for(with(with(slurm, "SLURM_JOB_ID", "11"), "SLURM_STEP_ID", "2")));
  for (char const* each : {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    CHECK_MESSAGE(name_for(with(torchrun, each, "12")) != name_for(torchrun), each);
}

TEST_CASE("job_socket: there is none where the launcher does not say which job it is") {
  CHECK(name_for(without(torchrun, "TORCHELASTIC_RUN_ID")).empty());
  CHECK(name_for(without(slurm, "SLURM_JOB_ID")).empty());
  CHECK(name_for(without(open_mpi(0, 2, ""), "PMIX_NAMESPACE")).empty());
  CHECK(name_for(open_mpi(0, 2, "")).empty());
  CHECK(name_for({{"JOB_COMPLETION_INDEX", "0"}, {"WORLD_SIZE", "2"}}).empty());
}

TEST_CASE("job_socket: of MPICH's launcher it is known which process it is, if that is one") {
  CHECK(name_for(mpich(0, 2)).empty());
  for (char const* wrong : {"", "x", "-1", "3x", "100000", "99999999999999999999", "0x3"})
    CHECK_MESSAGE(name_for(with(mpich(0, 2), "PMI_FD", wrong)).empty(), wrong);
  // What leads to this process itself leads to nobody who could have started it.
  socket_pair const own;
  CHECK(name_for(with(mpich(0, 2), "PMI_FD", std::to_string(own.ends[1]))).empty());
}

TEST_CASE("job_socket: launchers that have the same number in containers of one network are told apart") {
  in_own_namespace const one;
  if (one.name.empty()) {
    MESSAGE("SKIPPED: it takes the right to make a namespace of processes");
    return;
  }
  CHECK(in_own_namespace().name != one.name);
}

TEST_CASE("connect: under a launcher that says which job it is nobody need say where to meet") {
  std::vector<process> ranks;
  for (rank_t r = 0; r < 3; ++r)  // two jobs in turns
    for (char const* job : {"_a", "_b"}) ranks.emplace_back(open_mpi(r, 3, own_job() + job));
  check_all_joined(ranks, {0, 0, 1, 1, 2, 2}, 3);
}

TEST_CASE("connect: ranks of an mpiexec of MPICH meet by the process that started them") {
  std::vector<process> ranks;
  socket_pair const first, second;
  ranks.emplace_back(with(mpich(0, 2), "PMI_FD", std::to_string(first.ends[1])));
  ranks.emplace_back(with(mpich(1, 2), "PMI_FD", std::to_string(second.ends[1])));
  check_all_joined(ranks, {0, 1}, 2);
  check_error(said_with(mpich(1, 2)), {"COLLX_RENDEZVOUS is not set", "PMI_RANK", "which job this is"});
}

TEST_CASE("connect: COLLX_RENDEZVOUS goes before the job's name") {
  std::string const elsewhere = "@" + own_job() + "_elsewhere";
  std::vector<process> ranks;
  ranks.emplace_back(with(open_mpi(0, 2, own_job()), "COLLX_RENDEZVOUS", elsewhere));
  ranks.emplace_back(with(of_rank(1, 2, elsewhere), "PMIX_NAMESPACE", own_job()));
  check_all_joined(ranks, {0, 1}, 2);
}

TEST_CASE("connect: a job's name that another process has is refused, and free when that is killed") {
  environment const job = open_mpi(0, 2, own_job());
  {
    process zero(job);
    close(connected_to(name_for(job)));
    check_error(said_with(job), {name_for(job), "another process listens there", "set COLLX_RENDEZVOUS"});
  }  // SIGKILL
  std::vector<process> ranks;
  for (rank_t r = 0; r < 2; ++r) ranks.emplace_back(open_mpi(r, 2, own_job()));
  check_all_joined(ranks, {0, 1}, 2);
}

TEST_CASE("connect: ranks of several hosts, or of who knows how many, are told so") {
  for (rank_t const rank : {0, 1}) {
    environment const two_hosts = with(open_mpi(rank, 4, own_job()), "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
    check_error(said_with(two_hosts),
                {"OMPI_COMM_WORLD_LOCAL_SIZE says that some of the 4 ranks are on other hosts", "composite"});
  }
  check_error(said_with(without(with(slurm, "SLURM_LOCALID", "1"), "SLURM_STEP_NUM_NODES")),
              {"COLLX_RENDEZVOUS is not set", "SLURM_PROCID", "that all ranks are on this host"});
}
