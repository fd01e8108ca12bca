// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the rendezvous of one host, with guests who say anything, and with a rank 0 that answers
// anything. Who belongs to the job is welcomed once, everybody else is told why not, and no descriptor is
// left open.
#include "collx/bootstrap/rendezvous.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx;
using bootstrap::detail::hello;
using bootstrap::detail::verdict;
using net::owned_fd;

// All that an input opens has low numbers.
int count_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 128; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

ino_t number_of_file(int fd) {
  struct stat found {};
  require(fstat(fd, &found) == 0);
  return found.st_ino;
}

// Guests connect one after the other, say all they ever say, and are answered in that order.
class visit {
 public:
  static constexpr rank_t size = 4;
  static constexpr std::size_t guests_max = 40;  // none waits to be connected

  visit() {
    char folder[] = "/tmp/collx_fuzz_XXXXXX";
    require(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path_ = folder_ + "/meet";
    host_.emplace(path_.c_str(), size, now_us() + 20'000'000);
  }
  ~visit() {
    host_.reset();
    rmdir(folder_.c_str());
  }

  void add_any(input& in) {
    std::uint32_t const how = in.byte();
    hello says{};
    says.rank = static_cast<rank_t>(in.byte() % 6) - 1;
    says.size = size;
    if ((how & 1) != 0) says.magic ^= std::uint64_t{1} << in.byte() % 64;
    if ((how & 2) != 0) says.version += in.byte();
    if ((how & 4) != 0) says.size = static_cast<rank_t>(in.byte());
    if ((how & 8) != 0) says.rank = static_cast<rank_t>(in.byte() << 24);
    std::size_t const bytes = (how & 16) != 0 ? in.byte() % (2 * sizeof says) : sizeof says;
    add(says, bytes, (how & 32) != 0);
  }
  void add_missing() {
    for (rank_t r = 1; r < size; ++r)
      if (!welcomed_[r]) add({.rank = r, .size = size}, sizeof(hello), false);
  }
  [[nodiscard]] bool is_full() const { return guests_.size() + size > guests_max; }

  void serve() {
    owned_fd const segment(static_cast<int>(syscall(SYS_memfd_create, "fuzz", 1u)));
    host_->serve(segment.get());
    host_.reset();
    for (guest& each : guests_) {
      if (!each.socket) continue;
      verdict said{};
      owned_fd got;
      bool const answered =
          bootstrap::detail::receive_verdict(each.socket.get(), said, got) == collx::status::ok;
      require(answered == each.expects.has_value());
      if (answered) require(said == *each.expects && static_cast<bool>(got) == (said == verdict::welcome));
      if (got) require(number_of_file(got.get()) == number_of_file(segment.get()));
    }
  }

 private:
  struct guest {
    owned_fd socket;                 // none: it has left before it was answered
    std::optional<verdict> expects;  // none: no answer
  };

  void add(hello const& says, std::size_t bytes, bool leaves) {
    owned_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un const where = bootstrap::detail::address_of(path_.c_str());
    require(connect(socket.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where) == 0);
    std::byte text[2 * sizeof says] = {};
    std::memcpy(text, &says, sizeof says);
    require(::send(socket.get(), text, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes));
    require(shutdown(socket.get(), SHUT_WR) == 0);
    if (leaves) socket.reset();
    bool const is_over = welcomed_[1] && welcomed_[2] && welcomed_[3];
    std::optional<verdict> expects;
    hello const right{};
    if (!is_over && bytes >= sizeof says && says.magic == right.magic) {
      bool const is_rank = says.rank >= 1 && says.rank < size;
      expects = says.version != right.version      ? verdict::wrong_version
                : says.size != size                ? verdict::wrong_size
                : !is_rank || welcomed_[says.rank] ? verdict::rank_taken
                                                   : verdict::welcome;
      if (expects == verdict::welcome && !leaves) welcomed_[says.rank] = true;
    }
    guests_.push_back({std::move(socket), expects});
  }

  std::string folder_, path_;
  std::optional<bootstrap::detail::host> host_;
  std::vector<guest> guests_;
  bool welcomed_[size] = {};
};

// An answer of any length, with any number of descriptors.
void try_answer(input in) {
  int both[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
  owned_fd const ours(both[0]);
  owned_fd theirs(both[1]);
  std::uint32_t const descriptors = in.byte() % 4;
  iovec payload{const_cast<std::uint8_t*>(in.at), in.left};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  if (descriptors != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    int const some[3] = {STDERR_FILENO, STDERR_FILENO, STDERR_FILENO};
    std::memcpy(CMSG_DATA(rights), some, descriptors * sizeof(int));
  }
  require(::sendmsg(theirs.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(in.left));
  theirs.reset();
  verdict said{};
  owned_fd got;
  bool const answered =
      bootstrap::detail::receive_verdict(ours.get(), said, got) == collx::status::ok;
  require(answered == (in.left >= sizeof said));
  if (answered) require(static_cast<bool>(got) == (descriptors != 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  int const before = count_descriptors();
  input in{data + 1, size - 1};
  if (data[0] % 2 == 0) {
    visit now;
    while (in.left != 0 && !now.is_full()) now.add_any(in);
    now.add_missing();
    now.serve();
  } else {
    try_answer(in);
  }
  require(count_descriptors() == before);
  return 0;
}
