// SPDX-License-Identifier: Apache-2.0
// connect(): the world communicator of a process that a launcher started.
#pragma once

#include <cstring>

#include "collx/bootstrap/job_socket.hpp"
#include "collx/bootstrap/rendezvous.hpp"
#include "collx/transport/shm.hpp"

namespace collx::inline abi_1 {

namespace bootstrap {

// Whether a value of COLLX_RENDEZVOUS is one for ranks that meet over a network (place.hpp), which as a path
// would have each rank wait alone for the others.
[[nodiscard]] inline bool names_network_meeting(char const* rendezvous) noexcept {
  return std::strncmp(rendezvous, "tcp:", 4) == 0 || std::strncmp(rendezvous, "file:", 5) == 0;
}

// What transport::shm needs of a launch with more than one rank. Throws error naming what is wrong.
COLLX_COLD inline void require_one_host(launch const& me) {
  if (me.local_rank != no_rank && me.local_rank != me.rank)
    throw_error(
        status::not_supported,
        "%s differs from %s: transport::shm joins ranks of one host only; start all ranks on one host",
        me.by->local_rank, me.by->rank);
  if (me.is_many_hosts())
    throw_error(
        status::not_supported,
        "%s says that some of the %d ranks are on other hosts: transport::shm joins ranks of one host "
        "only; start all ranks on one host, or use transport::composite",
        me.by->local_size != nullptr ? me.by->local_size : me.by->host_count, me.size);
}

// Where they meet: what COLLX_RENDEZVOUS says, or `by_job`, if the launcher tells enough. Throws error naming
// what is missing or wrong.
[[nodiscard]] COLLX_COLD inline char const* local_meeting_place(launch const& me, job_socket const& by_job) {
  if (me.rendezvous == nullptr) {
    if (me.is_one_host() && by_job.text[0] != '\0') return by_job.text;
    throw_error(
        status::bad_argument,
        "COLLX_RENDEZVOUS is not set, and the launcher (which set %s) does not say %s; set it, on every "
        "rank, to the path of a socket that rank 0 may create, one of its own for each job",
        me.by->rank, me.is_one_host() ? "which job this is" : "that all ranks are on this host");
  }
  if (names_network_meeting(me.rendezvous))
    throw_error(status::bad_argument,
                "COLLX_RENDEZVOUS is \"%.120s\", where ranks of transport::tcp meet; for transport::shm "
                "set it to the path of a socket that rank 0 may create",
                me.rendezvous);
  return me.rendezvous;
}

// How processes that use a transport meet: connect() does what this says. One for each transport.
template <class Transport>
struct start_of {
  static_assert(!std::is_same_v<Transport, Transport>,
                "collx: connect() knows transport::shm (collx/bootstrap/connect.hpp) and transport::tcp "
                "(collx/bootstrap/tcp.hpp), mpi and ucx likewise");
};

template <>
struct start_of<transport::shm> {
  using settings = transport::settings;

  [[nodiscard]] COLLX_COLD static communicator<transport::shm> connect(settings const& chosen) {
    launch const me = launch::from_environment();
    require_one_host(me);
    if (me.size == 1) {
      net::owned_fd const alone(transport::shared_memory::segment::create(1, chosen));
      return transport::shm::join(alone.get(), 0);
    }
    job_socket const by_job(me);
    net::owned_fd const segment = meet_at(local_meeting_place(me, by_job), me.rank, me.size, chosen);
    return transport::shm::join(segment.get(), me.rank);
  }
};

}  // namespace bootstrap

// The communicator of all processes of this job. All ranks call it, and it returns when all have. It may be
// called again, by all: each call makes another world, beside those there are or after they have failed.
// Throws error: bad_argument for a wrong environment, timeout naming a rank that never came, peer_lost naming
// one that ended meanwhile, aborted naming either where another rank has said so first, not_supported for
// ranks of several hosts on a transport for one, out_of_memory, system_failure for a system call that failed,
// which it names.
template <class Transport>
[[nodiscard]] COLLX_COLD communicator<Transport> connect(
    typename bootstrap::start_of<Transport>::settings const& chosen =
        bootstrap::start_of<Transport>::settings::from_environment()) {
  return bootstrap::start_of<Transport>::connect(chosen);
}

}  // namespace collx::inline abi_1
