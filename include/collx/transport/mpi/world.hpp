// SPDX-License-Identifier: Apache-2.0
// One process's place among those it talks to over MPI: the duplicated communicator, which communicators of
// ours share it, and how they hear of a failure.
#pragma once

#include "collx/core/array.hpp"
#include "collx/transport/matched/world.hpp"
#include "collx/transport/mpi/traffic.hpp"

namespace collx::inline abi_1::transport {

class mpi_world : public matched::world<mpi_world, mpi_parts::traffic> {
  using base = matched::world<mpi_world, mpi_parts::traffic>;
  friend base;

 public:
  static constexpr char const* transport_name = "mpi";

  // Takes over `comm`, whose errors must be returned.
  COLLX_COLD mpi_world(MPI_Comm comm, rank_t rank, rank_t size, settings const& chosen)
      : base(rank, size, chosen),
        comm_(comm),
        number_max_((mpi_parts::tag_max() - first_tag(0)) / lane_count - 1),
        words_(new words(size)) {
    listen();
  }

  // Communicators are told apart by their tags, no MPI_Comm. Making one of those for a part of the ranks
  // takes more time, and freeing it is for all its ranks together, who end theirs when they like.
  [[nodiscard]] mpi_parts::wire wire(int number) const noexcept {
    return {comm_, first_tag(number)};
  }
  [[nodiscard]] int number_max() const noexcept { return number_max_; }

 private:
  static constexpr int alarm_tag = 1;
  [[nodiscard]] static constexpr int first_tag(int number) noexcept {
    return alarm_tag + 1 + number * lane_count;
  }

  struct alarm_message {
    std::int32_t code, reporter, culprit;
  };
  // What this rank tells the others of a failure, and the sends that do so. MPI may need it for longer than
  // there is a world.
  struct words {
    explicit words(rank_t size) : sends(static_cast<std::size_t>(size)) {
      for (MPI_Request& each : sends) each = MPI_REQUEST_NULL;
    }
    alarm_message said{};
    array<MPI_Request> sends;
  };

  COLLX_COLD ~mpi_world() {
    bool const after_mpi = is_over();
    if (after_mpi || has_told()) delete words_;
    if (after_mpi) return;
    if (ear_ != MPI_REQUEST_NULL) {
      (void)MPI_Cancel(&ear_);
      (void)MPI_Wait(&ear_, MPI_STATUS_IGNORE);
    }
    // Freeing is for all ranks together: after a failure not all may come.
    if (!has_failed()) (void)MPI_Comm_free(&comm_);
  }

  [[nodiscard]] static bool is_over() noexcept {
    int finalized = 0;
    return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
  }

  COLLX_COLD void listen() noexcept {
    if (MPI_Irecv(&heard_, sizeof heard_, MPI_BYTE, MPI_ANY_SOURCE, alarm_tag, comm_, &ear_) != MPI_SUCCESS)
      ear_ = MPI_REQUEST_NULL;
  }

  COLLX_COLD void hear() noexcept {
    int came = 0;
    if (ear_ == MPI_REQUEST_NULL) return;
    if (MPI_Test(&ear_, &came, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      ear_ = MPI_REQUEST_NULL;  // deadlines remain
      return;
    }
    if (came == 0) return;
    raise({static_cast<status>(heard_.code), heard_.reporter, heard_.culprit});
    leave_telling();  // whoever says so says it to all
    listen();         // others may have failed at the same time
  }

  // What MPI does not give back in time it has for ever.
  COLLX_COLD void give_up() noexcept { (void)stop_all(); }

  COLLX_COLD void tell_all(mapped::first_failure const& first) noexcept {
    alarm_message& said = words_->said;
    said = {static_cast<std::int32_t>(first.code), first.reporter, first.culprit};
    for (rank_t peer = 0; peer < size(); ++peer) {
      MPI_Request& request = words_->sends[static_cast<std::size_t>(peer)];
      if (peer == rank()) continue;
      if (MPI_Isend(&said, sizeof said, MPI_BYTE, peer, alarm_tag, comm_, &request) != MPI_SUCCESS)
        request = MPI_REQUEST_NULL;
    }
  }

  [[nodiscard]] COLLX_COLD bool has_told() noexcept {
    array<MPI_Request>& sends = words_->sends;
    int sent = 0;
    (void)MPI_Testall(static_cast<int>(sends.size()), sends.data(), &sent, MPI_STATUSES_IGNORE);
    return sent != 0;
  }

  MPI_Comm comm_;
  int number_max_;
  alarm_message heard_{};
  MPI_Request ear_ = MPI_REQUEST_NULL;
  words* words_;  // the world's own, unless MPI still reads it at the end
};

}  // namespace collx::inline abi_1::transport
