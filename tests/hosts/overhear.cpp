// SPDX-License-Identifier: Apache-2.0
// overhear INTERFACE WORDS: listens to all that passes an interface until it is told to end (SIGTERM), and
// says how often the words could be read in it. One packet at a time: words at a boundary are missed.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: overhear INTERFACE WORDS"), 1;
  std::string_view const words = argv[2];
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  int const told = signalfd(-1, &end, SFD_CLOEXEC);
  int const ear = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
  int const much = 64 << 20;
  (void)setsockopt(ear, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof much);
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(ETH_P_ALL);
  where.sll_ifindex = static_cast<int>(if_nametoindex(argv[1]));
  if (ear < 0 || told < 0 || bind(ear, reinterpret_cast<sockaddr const*>(&where), sizeof where) != 0)
    return std::printf("error: %s: %s\n", argv[1], std::strerror(errno)), 1;
  std::puts("listening");
  std::fflush(stdout);

  std::vector<char> packet(1 << 18);
  unsigned long long bytes = 0, times = 0;
  for (;;) {
    pollfd what[2] = {{ear, POLLIN, 0}, {told, POLLIN, 0}};
    if (poll(what, 2, -1) < 0 && errno != EINTR) return 1;
    ssize_t const got = recv(ear, packet.data(), packet.size(), MSG_DONTWAIT);
    if (got > 0) {
      std::string_view const said(packet.data(), static_cast<std::size_t>(got));
      bytes += said.size();
      for (std::size_t at = said.find(words); at != said.npos; at = said.find(words, at + 1)) ++times;
    } else if (what[1].revents != 0) {
      break;  // and nothing is left to hear
    }
  }
  std::printf("overheard %llu bytes, and the words %llu times\n", bytes, times);
}
