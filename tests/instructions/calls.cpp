// SPDX-License-Identifier: Apache-2.0
// Blocking collectives of 8 bytes, and of a little more, on 2 ranks, for count.py, which runs this program
// under callgrind and counts what is executed inside the functions counted_*. One thread is both ranks: the
// measured one makes real calls, and its peer's letter always lies there before it looks. So nothing is
// polled for, and what is left is the path of a small message, the same in every run. Buffers are private:
// what does not fit a letter is staged.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/net/fd.hpp"
#include "collx/transport/shm.hpp"

using collx::transport::shm;
using communicator = collx::communicator<shm>;

namespace {

constexpr int warm_up = 64, calls = 512;
constexpr std::size_t bytes = 8;
constexpr collx::rank_t peer_rank = 1;

constexpr std::size_t bytes_max = 2048;

struct buffers {
  alignas(64) float in[bytes_max / sizeof(float)] = {1, 2};
  alignas(64) float out[2 * bytes_max / sizeof(float)] = {};
  std::size_t count = 0;  // for those that are called with different ones
};

// The other rank: sends and takes letters as its own call would, in the same thread.
class prompt_peer {
 public:
  explicit prompt_peer(communicator& comm) : mine_(comm.engine().endpoint()) {}

  void send(std::size_t payload_bytes) {
    if (!mine_.can_send(0, 0)) std::abort();
    mine_.begin(0, nullptr);
    std::byte* const staged = mine_.stage(0, payload_bytes);
    if (staged == nullptr) std::abort();
    std::memcpy(staged, payload_, payload_bytes);
    mine_.send(0, 0, staged, payload_bytes, collx::transport::handover::staged);
    mine_.end_fragment(0);
  }
  void take() {
    collx::transport::arrival letter;
    if (!mine_.arrived(0, 0, letter)) std::abort();
    mine_.consume(0, 0);
  }

 private:
  shm::endpoint& mine_;
  float payload_[bytes_max / sizeof(float)] = {3, 4};
};

}  // namespace

// Plain names, by which callgrind knows them. Each is its call and nothing else.
extern "C" {
[[gnu::noinline]] void counted_all_reduce(communicator& comm, buffers& data) {
  collx::all_reduce(comm, std::span<float const, 2>(data.in, 2), std::span<float, 2>(data.out, 2));
}
[[gnu::noinline]] void counted_broadcast_root(communicator& comm, buffers& data) {
  collx::broadcast(comm, std::span<float, 2>(data.in, 2), 0);
}
[[gnu::noinline]] void counted_broadcast_leaf(communicator& comm, buffers& data) {
  collx::broadcast(comm, std::span<float, 2>(data.out, 2), peer_rank);
}
[[gnu::noinline]] void counted_reduce_root(communicator& comm, buffers& data) {
  collx::reduce(comm, std::span<float const, 2>(data.in, 2), std::span<float, 2>(data.out, 2), collx::sum, 0);
}
[[gnu::noinline]] void counted_reduce_leaf(communicator& comm, buffers& data) {
  collx::reduce(comm, std::span<float const, 2>(data.in, 2), std::span<float, 2>(data.out, 2), collx::sum,
                peer_rank);
}
[[gnu::noinline]] void counted_all_gather(communicator& comm, buffers& data) {
  collx::all_gather(comm, std::span<float const, 1>(data.in, 1), std::span<float, 2>(data.out, 2));
}
[[gnu::noinline]] void counted_all_reduce_more(communicator& comm, buffers& data) {
  collx::all_reduce(comm, std::span<float const>(data.in, data.count), std::span(data.out, data.count));
}
[[gnu::noinline]] void counted_broadcast_more_root(communicator& comm, buffers& data) {
  collx::broadcast(comm, std::span(data.in, data.count), 0);
}
[[gnu::noinline]] void counted_broadcast_more_leaf(communicator& comm, buffers& data) {
  collx::broadcast(comm, std::span(data.out, data.count), peer_rank);
}
[[gnu::noinline]] void counted_all_gather_more(communicator& comm, buffers& data) {
  collx::all_gather(comm, std::span<float const>(data.in, data.count), std::span(data.out, 2 * data.count));
}
[[gnu::noinline]] void counted_barrier(communicator& comm, buffers&) { collx::barrier(comm); }

// callgrind begins to count here, and writes down what it has.
[[gnu::noinline]] void end_of_warm_up() { asm volatile("" ::: "memory"); }
[[gnu::noinline]] void end_of_calls() { asm volatile("" ::: "memory"); }
}

namespace {

struct measured {
  char const* name;
  void (*call)(communicator&, buffers&);
  bool takes, sends;
  std::size_t bytes;
};

constexpr measured all[] = {
    {"all_reduce", counted_all_reduce, true, true, bytes},
    {"broadcast_root", counted_broadcast_root, false, true, bytes},
    {"broadcast_leaf", counted_broadcast_leaf, true, false, bytes},
    {"reduce_root", counted_reduce_root, true, false, bytes},
    {"reduce_leaf", counted_reduce_leaf, false, true, bytes},
    {"all_gather", counted_all_gather, true, true, bytes / 2},
    {"barrier", counted_barrier, true, true, 0},
    {"all_reduce_512_B", counted_all_reduce_more, true, true, 512},
    {"all_reduce_2_KiB", counted_all_reduce_more, true, true, 2048},
    {"broadcast_root_512_B", counted_broadcast_more_root, false, true, 512},
    {"broadcast_leaf_512_B", counted_broadcast_more_leaf, true, false, 512},
    {"all_gather_512_B", counted_all_gather_more, true, true, 512},
};

void make_calls(measured const& what, communicator& comm, prompt_peer& peer, buffers& data, int count) {
  for (int i = 0; i < count; ++i) {
    if (what.takes) peer.send(what.bytes);
    what.call(comm, data);
    if (what.sends) peer.take();
  }
}

}  // namespace

int main() {
  collx::transport::settings chosen;
  chosen.heap_bytes = 1 << 20;
  collx::net::owned_fd const segment(collx::transport::shared_memory::segment::create(2, chosen));
  // Joining waits for all ranks. This thread uses both of them once they have joined.
  std::optional<communicator> theirs;
  std::thread peer_joins([&] { theirs.emplace(shm::join(segment.get(), peer_rank)); });
  communicator mine = shm::join(segment.get(), 0);
  peer_joins.join();
  prompt_peer peer(*theirs);
  for (measured const& what : all) {
    auto const data = std::make_unique<buffers>();
    data->count = what.bytes / sizeof(float);
    make_calls(what, mine, peer, *data, warm_up);
    end_of_warm_up();
    make_calls(what, mine, peer, *data, calls);
    end_of_calls();
    std::printf("%s %d\n", what.name, calls);
  }
}
