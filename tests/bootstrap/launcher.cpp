// SPDX-License-Identifier: Apache-2.0
// What each launcher leaves in the environment, and what is made of it.
#include "collx/bootstrap/launcher.hpp"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "collx/bootstrap/place.hpp"

namespace {

using collx::rank_t;
using collx::bootstrap::launch;
using collx::bootstrap::meeting_place;
using variables = std::map<std::string, std::string>;

// Every variable that a launcher, or a meeting place, may look at.
void forget_everything() {
  for (auto const& each : collx::bootstrap::launchers)
    for (char const* name :
         {each.rank, each.also, each.size[0], each.size[1], each.local_rank, each.local_size, each.host_count,
          each.job[0], each.job[1], each.apart[0], each.apart[1], each.socket})
      if (name != nullptr) unsetenv(name);
  for (char const* name : {"COLLX_LAUNCHER", "COLLX_PORTS", "COLLX_RENDEZVOUS", "MASTER_ADDR", "MASTER_PORT",
                           "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST", "SLURMD_NODENAME"})
    unsetenv(name);
}

void set(variables const& all) {
  forget_everything();
  for (auto const& [name, value] : all) setenv(name.c_str(), value.c_str(), 1);
}

// "LAUNCHER RANK/SIZE local LOCAL_RANK/LOCAL_SIZE", or the error.
std::string told_by(variables const& all) {
  set(all);
  try {
    launch const me = launch::from_environment();
    return std::string(me.by == nullptr ? "nobody" : me.by->name) + " " + std::to_string(me.rank) + "/" +
           std::to_string(me.size) + " local " + std::to_string(me.local_rank) + "/" +
           std::to_string(me.local_size);
  } catch (collx::error const& failure) {
    CHECK(failure.code() == collx::status::bad_argument);
    return failure.what();
  }
}

// "HOST:PORT by VARIABLE", "file PATH", or the error.
std::string place_of(variables const& all) {
  set(all);
  try {
    meeting_place const at = meeting_place::of(launch::from_environment());
    if (at.file != nullptr) return std::string("file ") + at.file;
    return std::string(at.at.host) + ":" + std::to_string(at.at.port) + " by " + at.told_by;
  } catch (collx::error const& failure) {
    CHECK(failure.code() == collx::status::bad_argument);
    return failure.what();
  }
}

// What tells the job from others that meet at the same port.
std::string job(variables const& all) {
  set(all);
  return meeting_place::of(launch::from_environment()).job;
}

variables const torchrun{{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node0"},
                         {"MASTER_PORT", "29500"}};
variables const open_mpi{{"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "674430977"}};
variables const mpich{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
variables const slurm{{"SLURM_PROCID", "6"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_LOCALID", "2"},
                      {"SLURM_STEP_NUM_NODES", "2"},
                      {"SLURM_JOB_ID", "4711"},
                      {"SLURM_JOB_NODELIST", "node[03-07],login"}};
variables const kubernetes{{"JOB_COMPLETION_INDEX", "3"}, {"WORLD_SIZE", "4"}};

variables both(variables one, variables const& other) {
  one.insert(other.begin(), other.end());
  return one;
}
variables without(variables all, char const* name) {
  all.erase(name);
  return all;
}
variables with(variables all, char const* name, char const* value) {
  all[name] = value;
  return all;
}

bool holds(std::string const& all, std::string const& part) { return all.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("each launcher's own variables say who this process is") {
  CHECK(told_by({}) == "nobody 0/1 local -1/0");
  CHECK(told_by(torchrun) == "torchrun 5/8 local 1/4");
  CHECK(told_by(open_mpi) == "Open MPI 2/4 local 2/4");
  CHECK(told_by(mpich) == "MPICH 1/2 local 1/2");
  CHECK(told_by(slurm) == "Slurm 6/8 local 2/0");
  CHECK(told_by(with(slurm, "SLURM_STEP_NUM_TASKS", "7")) == "Slurm 6/7 local 2/0");
  CHECK(told_by(kubernetes) == "Kubernetes 3/4 local -1/0");
}

TEST_CASE("of several launchers the first of the table counts, or the one that is asked for") {
  CHECK(told_by(both(torchrun, slurm)) == "torchrun 5/8 local 1/4");
  CHECK(told_by(both(open_mpi, slurm)) == "Open MPI 2/4 local 2/4");
  CHECK(told_by(both(mpich, slurm)) == "MPICH 1/2 local 1/2");
  CHECK(told_by(both(kubernetes, mpich)) == "MPICH 1/2 local 1/2");
  CHECK(told_by(with(both(torchrun, slurm), "COLLX_LAUNCHER", "Slurm")) == "Slurm 6/8 local 2/0");
  CHECK(told_by(with(torchrun, "COLLX_LAUNCHER", "none")) == "nobody 0/1 local -1/0");
  CHECK(holds(told_by(with(torchrun, "COLLX_LAUNCHER", "Slurm")), "SLURM_PROCID is not set"));
  CHECK(holds(told_by(with(torchrun, "COLLX_LAUNCHER", "slurm")), "set it to one of torchrun"));
}

TEST_CASE("the shell of a batch script is nobody's rank") {
  CHECK(told_by(without(slurm, "SLURM_STEP_ID")) == "nobody 0/1 local -1/0");
}

TEST_CASE("what is missing or wrong is named") {
  CHECK(holds(told_by(without(torchrun, "WORLD_SIZE")), "RANK is set but WORLD_SIZE is not"));
  CHECK(holds(told_by(without(torchrun, "RANK")), "WORLD_SIZE is set but RANK is not"));
  CHECK(holds(told_by(without(open_mpi, "OMPI_COMM_WORLD_SIZE")), "but OMPI_COMM_WORLD_SIZE is not"));
  CHECK(holds(told_by(without(slurm, "SLURM_NTASKS")), "but SLURM_STEP_NUM_TASKS is not"));
  CHECK(holds(told_by(with(mpich, "PMI_RANK", "2")),
              "PMI_RANK is \"2\"; set it to a whole number from 0 to 1"));
  CHECK(holds(told_by(with(slurm, "SLURM_LOCALID", "x")), "SLURM_LOCALID"));
  CHECK(holds(told_by(with(kubernetes, "JOB_COMPLETION_INDEX", "")), "JOB_COMPLETION_INDEX"));
  CHECK(holds(told_by(with(kubernetes, "WORLD_SIZE", "1000000")), "from 1 to 4096"));
}

TEST_CASE("launchers tell whether there is one host or several, or nothing") {
  auto const hosts = [](variables const& all) {
    set(all);
    launch const me = launch::from_environment();
    return me.is_one_host() ? "one" : me.is_many_hosts() ? "many" : "unknown";
  };
  CHECK(hosts({}) == std::string("one"));
  CHECK(hosts(torchrun) == std::string("many"));
  CHECK(hosts(with(torchrun, "LOCAL_WORLD_SIZE", "8")) == std::string("one"));
  CHECK(hosts(without(torchrun, "LOCAL_WORLD_SIZE")) == std::string("unknown"));
  CHECK(hosts(open_mpi) == std::string("one"));
  CHECK(hosts(slurm) == std::string("many"));
  CHECK(hosts(with(slurm, "SLURM_STEP_NUM_NODES", "1")) == std::string("one"));
  CHECK(hosts(kubernetes) == std::string("unknown"));
}

TEST_CASE("where rank 0 is: a rendezvous, a master, Slurm's first node, this host") {
  CHECK(place_of(torchrun) == "node0:29500 by MASTER_ADDR");
  CHECK(place_of(with(torchrun, "TORCHELASTIC_RUN_ID", "job")) == "node0:29501 by MASTER_ADDR");
  // Which it sets to the network's name of a host that has all ranks; MASTER_ADDR by hand means it.
  variables const one_host = with(torchrun, "LOCAL_WORLD_SIZE", "8");
  CHECK(place_of(one_host) == "node0:29500 by MASTER_ADDR");
  CHECK(place_of(with(one_host, "TORCHELASTIC_RUN_ID", "job")).starts_with("127.0.0.1:"));
  CHECK(place_of(with(torchrun, "COLLX_RENDEZVOUS", "tcp:[::1]:77")) == "::1:77 by COLLX_RENDEZVOUS");
  CHECK(place_of(with(torchrun, "COLLX_RENDEZVOUS", "file:/shared/x")) == "file /shared/x");
  // The path of a socket is shm's.
  CHECK(place_of(with(torchrun, "COLLX_RENDEZVOUS", "/tmp/socket")) == "node0:29500 by MASTER_ADDR");
  CHECK(place_of(slurm).starts_with("node03:"));
  CHECK(place_of(with(slurm, "SLURM_STEP_NODELIST", "node05")).starts_with("node05:"));
  CHECK(place_of(both(slurm, torchrun)) == "node0:29500 by MASTER_ADDR");
  CHECK(place_of(open_mpi).starts_with("127.0.0.1:"));
  CHECK(place_of({}) == "127.0.0.1:0 by ");
  // Another job gets another port, all ranks of one job the same.
  CHECK(place_of(open_mpi) == place_of(with(open_mpi, "OMPI_COMM_WORLD_RANK", "0")));
  CHECK(place_of(open_mpi) != place_of(with(open_mpi, "PMIX_NAMESPACE", "674430978")));
  CHECK(place_of(slurm) != place_of(with(slurm, "SLURM_STEP_ID", "1")));
  // The same one in every version, since ranks may be of different programs.
  CHECK(place_of(slurm) == "node03:29007 by SLURM_JOB_NODELIST");
  // A port that is made up is one of those that may be listened at.
  CHECK(place_of(with(slurm, "COLLX_PORTS", "30007:30007")).starts_with("node03:30007 "));
  CHECK(place_of(with(open_mpi, "COLLX_PORTS", "30007:30007")).starts_with("127.0.0.1:30007 "));
  CHECK(place_of(with(torchrun, "COLLX_PORTS", "30007:30007")) == "node0:29500 by MASTER_ADDR");
  CHECK(holds(place_of(with(slurm, "COLLX_PORTS", "30007")), "COLLX_PORTS is \"30007\""));
}

TEST_CASE("an MPI launcher in Slurm: ranks of one host meet there, each job at a port of its own") {
  variables const in_slurm = both(open_mpi, slurm);
  CHECK(place_of(in_slurm).starts_with("127.0.0.1:"));
  // Two jobs of one allocation at a time.
  CHECK(place_of(in_slurm) != place_of(with(in_slurm, "PMIX_NAMESPACE", "674430978")));
  CHECK(place_of(in_slurm) != place_of(with(in_slurm, "PMIX_SERVER_URI2", "1.0;tcp4://127.0.0.1:4")));
  CHECK(place_of(in_slurm) == place_of(with(in_slurm, "OMPI_COMM_WORLD_RANK", "0")));
  // Whatever Slurm says of the shell, or the daemon, that the ranks come from.
  CHECK(place_of(in_slurm) == place_of(with(in_slurm, "SLURM_STEP_ID", "1")));
  CHECK(place_of(in_slurm) == place_of(open_mpi));
  // Where two have the same port all the same, neither lets in the other's ranks: keys are made of this.
  CHECK(job(in_slurm) != "");
  CHECK(job(in_slurm) == job(with(in_slurm, "OMPI_COMM_WORLD_RANK", "0")));
  CHECK(job(in_slurm) != job(with(in_slurm, "PMIX_SERVER_URI2", "1.0;tcp4://127.0.0.1:4")));
  // Who is told of no job, and of no process that started it, would meet with others.
  CHECK(holds(place_of(both(mpich, slurm)), "nobody says where rank 0 is"));
}

TEST_CASE("an MPI launcher in Slurm: of several hosts the first need not be that of rank 0") {
  for (variables const& all :
       {with(open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2"), without(open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE"),
        with(mpich, "MPI_LOCALNRANKS", "1"), without(mpich, "MPI_LOCALNRANKS")}) {
    CHECK(holds(place_of(both(all, slurm)), "nobody says where rank 0 is: set MASTER_ADDR and MASTER_PORT"));
    variables const master{{"MASTER_ADDR", "node4"}, {"MASTER_PORT", "29500"}};
    CHECK(place_of(both(both(all, slurm), master)) == "node4:29500 by MASTER_ADDR");
  }
}

TEST_CASE("Slurm's own tasks meet on its first node, also if they have variables of other launchers") {
  // srun --mpi=pmi2
  variables const as_mpich{{"PMI_RANK", "6"}, {"PMI_SIZE", "8"}};
  CHECK(told_by(both(as_mpich, slurm)) == "Slurm 6/8 local 2/0");
  CHECK(told_by(with(both(as_mpich, slurm), "COLLX_LAUNCHER", "MPICH")) == "MPICH 6/8 local -1/0");
  CHECK(told_by(with(both(as_mpich, slurm), "MPI_LOCALNRANKS", "4")) == "MPICH 6/8 local -1/4");
  CHECK(place_of(with(both(as_mpich, slurm), "SLURM_STEP_NUM_NODES", "1")).starts_with("127.0.0.1:"));
  CHECK(place_of(both(as_mpich, slurm)).starts_with("node03:"));
  CHECK(holds(place_of(both(with(as_mpich, "PMI_RANK", "5"), slurm)), "nobody says where rank 0 is"));
  CHECK(holds(place_of(both(with(as_mpich, "PMI_SIZE", "16"), slurm)), "nobody says where rank 0 is"));
  // RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS
  variables const by_hand{{"RANK", "6"}, {"WORLD_SIZE", "8"}};
  CHECK(place_of(both(by_hand, slurm)).starts_with("node03:"));
  CHECK(place_of(both(by_hand, slurm)) != place_of(both(by_hand, with(slurm, "SLURM_STEP_ID", "1"))));
  // Rank 0 of a step whose nodes are not in the order of its ranks.
  variables const first = with(slurm, "SLURM_PROCID", "0");
  CHECK(place_of(with(first, "SLURMD_NODENAME", "node03")).starts_with("node03:"));
  CHECK(holds(place_of(with(first, "SLURMD_NODENAME", "login")), "rank 0 runs on another node than the"));
  CHECK(place_of(with(slurm, "SLURMD_NODENAME", "login")).starts_with("node03:"));
  // All on one node.
  CHECK(place_of(with(slurm, "SLURM_STEP_NUM_NODES", "1")).starts_with("127.0.0.1:"));
}

TEST_CASE("Slurm's own tasks: two steps of a job that have one port do not let in each other's ranks") {
  variables const one = with(slurm, "COLLX_PORTS", "30007:30007"), other = with(one, "SLURM_STEP_ID", "1");
  CHECK(place_of(one) == place_of(other));
  CHECK(job(one) != "");
  CHECK(job(one) != job(other));
  CHECK(job(one) != job(with(one, "SLURM_JOB_ID", "4712")));
  CHECK(job(one) == job(with(one, "SLURM_PROCID", "0")));
  // The same one in every version.
  CHECK(job(one) == "slurm-d021baaa0ae51b5f");
  // RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS, with a name of its own for each job
  variables const by_hand = both(one, {{"RANK", "6"}, {"WORLD_SIZE", "8"}, {"TORCHELASTIC_RUN_ID", "a"}});
  CHECK(job(by_hand) != job(with(by_hand, "SLURM_STEP_ID", "1")));
  CHECK(job(by_hand) != job(with(by_hand, "TORCHELASTIC_RUN_ID", "b")));
}

TEST_CASE("when nobody says where rank 0 is, that is the error") {
  for (variables const& all : {kubernetes, mpich, with(open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "3")})
    CHECK(holds(place_of(all), "nobody says where rank 0 is: set MASTER_ADDR and MASTER_PORT"));
  CHECK(holds(place_of(with(kubernetes, "COLLX_RENDEZVOUS", "/tmp/socket")),
              "COLLX_RENDEZVOUS is \"/tmp/socket\"; a path is where ranks of transport::shm meet"));
  CHECK(holds(place_of(without(torchrun, "MASTER_PORT")), "MASTER_ADDR is set but MASTER_PORT is not"));
  CHECK(holds(place_of(without(torchrun, "MASTER_ADDR")), "MASTER_PORT is set but MASTER_ADDR is not"));
  CHECK(holds(place_of(with(torchrun, "MASTER_PORT", "70000")), "MASTER_PORT"));
  CHECK(holds(place_of(with(torchrun, "MASTER_ADDR", "")), "MASTER_ADDR is \"\""));
  for (char const* wrong : {"file:", "tcp:", "tcp:node", "tcp:::1:80", "tcp:node:0"})
    CHECK(holds(place_of(with(torchrun, "COLLX_RENDEZVOUS", wrong)), "file:PATH, tcp:HOST:PORT"));
}

TEST_CASE("the first node of a list as Slurm writes it") {
  auto const first = [](char const* list) {
    char out[32];
    collx::bootstrap::first_of_node_list(list, out);
    return std::string(out);
  };
  CHECK(first("node1") == "node1");
  CHECK(first("node1,node2") == "node1");
  CHECK(first("node[1-3]") == "node1");
  CHECK(first("node[007,9-11]") == "node007");
  CHECK(first("rack[1-2]node[3,4],x") == "rack1node3");
  CHECK(first("n[1-2]-ib,m") == "n1-ib");
  CHECK(first("") == "");
  CHECK(first("[") == "");
  CHECK(first((std::string(31, 'x') + ",y").c_str()) == std::string(31, 'x'));
  CHECK(first((std::string(32, 'x') + ",y").c_str()).empty());
}
