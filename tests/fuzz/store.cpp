// SPDX-License-Identifier: Apache-2.0
// libFuzzer: rank 0's store, and a rank's place in the tree, visited by processes that know the secret, and
// say anything.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include <sys/socket.h>

#include "collx/bootstrap/meeting.hpp"

namespace {

using namespace collx;
constexpr char text[] = "the secret of these tests";
constexpr rank_t ranks = 6;

net::credentials const& keys() {
  static net::credentials const made(net::secret::of(std::span(text, sizeof text - 1)), 7);
  return made;
}

// What is let in by `inside` at `gate`, with `progress` to move it on; no socket if it is not.
template <class Progress>
net::owned_fd visit(net::address const& gate, net::purpose why, rank_t from, Progress const& progress) {
  net::caller call(gate, {why, from, 0, ranks, 0}, keys(), {}, now_us() + 1'000'000);
  status now = status::pending;
  while ((now = call.progress()) == status::pending) progress();
  return now == status::ok ? call.take() : net::owned_fd{};
}

// Leaves nothing behind: thousands of inputs a second would use up all ports for the minute that the kernel
// keeps a connection which ended as it should.
void leave_at_once(net::owned_fd& guest) {
  linger const none{1, 0};
  if (guest) (void)setsockopt(guest.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  guest.reset();
}

// A whole message of a rank, but for what the input puts over it: how many bytes, from where on, and which.
class spoilt {
 public:
  spoilt(std::uint8_t const* data, std::size_t size, std::size_t& at) : data_(data), size_(size), at_(at) {}
  template <std::size_t Bytes>
  void send(net::owned_fd const& guest, std::byte (&whole)[Bytes], std::size_t changed) {
    std::size_t const from = at_ < size_ ? data_[at_++] % Bytes : 0;
    for (std::size_t i = 0; i < changed && at_ < size_; ++i)
      whole[(from + i) % Bytes] = static_cast<std::byte>(data_[at_++]);
    (void)!::send(guest.get(), whole, Bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

 private:
  std::uint8_t const* data_;
  std::size_t size_;
  std::size_t& at_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  bool const is_store = data[0] % 2 == 0;
  net::purpose const why = is_store ? net::purpose::store : net::purpose::tree;
  net::owned_fd listening = net::listen_at(net::address::loopback(0), {});
  net::address const gate = net::local_address(listening.get());
  net::expectation const whom{0, ranks, net::mask_of(why), 1, net::protection::none};
  net::gate door(std::move(listening), keys(), whom, {});
  bootstrap::registration const mine{{gate, 1}, gate};
  std::optional<bootstrap::store> store;
  std::optional<bootstrap::tree> tree;
  if (is_store) store.emplace(std::move(door), ranks, mine, 5, now_us() + 1'000'000);
  else tree.emplace(std::move(door), 0, ranks);
  auto const progress = [&] {
    if (store) store->progress();
    else (void)tree->progress();
  };
  net::owned_fd guests[4];
  std::size_t at = 1;
  spoilt messages(data, size, at);
  rank_t came = 0;
  while (at < size) {
    std::uint8_t const what = data[at++];
    net::owned_fd& guest = guests[what % 4];
    if (what < 64)
      leave_at_once(guest), guest = visit(gate, why, 1 + (what >> 2) % (ranks - 1), progress), ++came;
    else if (what < 72) guest.reset();
    else if (what < 80) leave_at_once(guest);
    else if (what < 96 && tree && !tree->has_table()) tree->set_table([&](rank_t) { return mine.entry; });
    else if (what < 96 && guest) {  // its registration
      std::byte whole[bootstrap::registration::bytes_count];
      mine.encode(whole);
      messages.send(guest, whole, (what - 80) / 4);
    } else if (what < 112 && guest) {  // news, such as that it has reached its parent
      std::byte whole[bootstrap::news::bytes_count];
      bootstrap::news{}.encode(whole);
      messages.send(guest, whole, (what - 96) / 4);
    } else if (guest) {
      std::size_t const bytes = std::min<std::size_t>(what - 112, size - at);
      (void)!send(guest.get(), data + at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
      at += bytes;
    }
    progress();
    if (came == 8) break;
  }
  for (int i = 0; i < 4; ++i) progress();
  for (net::owned_fd& guest : guests) leave_at_once(guest);
  if (store && store->is_complete())
    for (rank_t r = 0; r < ranks; ++r)
      if (store->entry(r).gate.version == 0) std::abort();
  return 0;
}
