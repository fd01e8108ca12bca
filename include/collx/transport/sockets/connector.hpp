// SPDX-License-Identifier: Apache-2.0
// Where a world gets its connections from: asked for when a rank first has to do with another, and handed
// over when they stand and both sides know whom they talk to.
#pragma once

#include <utility>

#include "collx/core/status.hpp"
#include "collx/core/types.hpp"
#include "collx/net/fd.hpp"
#include "collx/net/secured_stream.hpp"
#include "collx/transport/flows/slice_limits.hpp"

namespace collx::inline abi_1::transport::sockets {

// A connected, non-blocking socket, and whom it leads to.
struct connection {
  rank_t peer = no_rank;
  int flow = 0;  // 0: for control
  net::owned_fd fd;
  net::owned_stream secured = {};  // what goes through it, if it is to be encrypted
  bool is_knock = false;           // the higher of the two ranks has dialled; see connector::knock()
};

// Set-up only, so that its virtual calls cost nothing that counts.
class connector {
 public:
  connector() = default;
  connector(connector const&) = delete;
  virtual ~connector() = default;

  // Begins to connect to a peer of higher rank, for the flows [first, end); lower ones come by themselves.
  virtual void dial(rank_t peer, int first, int end) noexcept = 0;
  // Dials a peer of lower rank, for control, unless that is being done: whether it is still there. outlook()
  // tells if it is not; if it is, it may take the connection, or close it.
  virtual void knock(rank_t /*peer*/) noexcept {}
  // The next connection that stands, without waiting. False: none now.
  [[nodiscard]] virtual bool poll(connection& next) noexcept = 0;
  // A descriptor that is readable when poll() may have something to do.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  // Whether poll() should be asked even while fd() is silent: somebody is being dialled.
  [[nodiscard]] virtual bool is_dialling() const noexcept = 0;
  // Whether poll() should be asked now, although nothing has happened: somebody has been silent for too long,
  // or somebody else may have answered a knock.
  [[nodiscard]] virtual bool is_due() const noexcept { return false; }
  // Somebody may wait so long from now on: no attempt to connect is given up sooner.
  virtual void be_patient(std::uint64_t /*us*/) noexcept {}
  // Whether a connection that this rank has dialled may stand at the peer's, and not here yet.
  [[nodiscard]] virtual bool may_stand_there(rank_t /*peer*/) const noexcept { return false; }
  // How far away a peer is, as far as this host can tell.
  [[nodiscard]] virtual flows::distance distance_to(rank_t) const noexcept { return flows::distance::host; }
  // How many connections came to this process and were not let in.
  [[nodiscard]] virtual std::uint64_t strangers() const noexcept { return 0; }
  // ok, or why waiting for the first connection with that peer is pointless.
  [[nodiscard]] virtual status outlook(rank_t peer) noexcept = 0;
};

// The one who has it deletes it. Made of a new one as it is, so that none is lost on its way to a world.
class owned_connector {
 public:
  owned_connector(connector* one) noexcept : one_(one) {}
  owned_connector(owned_connector&& other) noexcept : one_(std::exchange(other.one_, nullptr)) {}
  owned_connector& operator=(owned_connector&&) = delete;
  ~owned_connector() { delete one_; }
  [[nodiscard]] connector* operator->() const noexcept { return one_; }
  [[nodiscard]] connector& operator*() const noexcept { return *one_; }

 private:
  connector* one_;
};

}  // namespace collx::inline abi_1::transport::sockets
