// SPDX-License-Identifier: Apache-2.0
// libFuzzer: launchers' variables and ours, of any values; the files of a secret and of rank 0's address; and
// what a launcher says by PMI.
// Either an error that says what is wrong, or a rank in a job and a place that can be.
#include "collx/bootstrap/launcher.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collx/bootstrap/job_socket.hpp"
#include "collx/bootstrap/whereabouts.hpp"
#include "collx/transport/sockets/tcp_settings.hpp"
#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx;

constexpr char const* ours[] = {"COLLX_LAUNCHER",      "COLLX_RENDEZVOUS", "COLLX_TIMEOUT_US",
                                "COLLX_STAGING_BYTES", "COLLX_TCP_FLOWS",  "COLLX_TLS",
                                "MASTER_ADDR",         "MASTER_PORT",      "COLLX_TCP_SLICE_BYTES",
                                "COLLX_TCP_CHECK",     "COLLX_YIELD_US",   "SLURM_STEP_NODELIST",
                                "SLURM_JOB_NODELIST",  "COLLX_HEAP_BYTES", "COLLX_TCP_SLICES",
                                "COLLX_SECRET",        "COLLX_INTERFACE"};

// Those that came later, by the bytes 255, 254 and so on: what stands for the others stays as it is in the
// corpus.
constexpr char const* later[] = {"COLLX_PORTS", "COLLX_TCP_CONGESTION", "COLLX_TCP_BUFFER_BYTES"};

// Calls f(name) for every variable that is read, but for those that came later.
template <class F>
void for_each_variable(F const& f) {
  for (char const* each : ours) f(each);
  for (bootstrap::launcher const& each : bootstrap::launchers)
    for (char const* name : {each.rank, each.also, each.size[0], each.size[1], each.local_rank,
                             each.local_size, each.host_count, each.job[0], each.job[1]})
      if (name != nullptr) f(name);
  for (bootstrap::launcher const& each : bootstrap::launchers)
    for (char const* name : {each.apart[0], each.apart[1], each.socket})
      if (name != nullptr) f(name);
}

// "NUMBER VALUE" in each line.
void set_variables(std::string const& text) {
  std::size_t count = 0;
  for_each_variable([&](char const* name) { unsetenv(name), ++count; });
  for (char const* name : later) unsetenv(name);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    std::string const value = text.substr(at + 1, end - at - 1);
    std::size_t const from_the_end = 255u - static_cast<unsigned char>(text[at]);
    if (from_the_end < std::size(later)) {
      setenv(later[from_the_end], value.c_str(), 1);
      at = end + 1;
      continue;
    }
    std::size_t const wanted = static_cast<unsigned char>(text[at]) % count;
    std::size_t i = 0;
    for_each_variable([&](char const* name) {
      if (i++ == wanted) setenv(name, value.c_str(), 1);
    });
    at = end + 1;
  }
}

// Every way to be asked for slices has an answer that a flow can keep to.
void try_slices(transport::flows::slice_limits const& limits) {
  using namespace transport::flows;
  for (int d = 0; d < distance_count; ++d)
    for (char const* collective : {"all_reduce", "all_to_all", "barrier", ""}) {
      std::uint32_t const limit = limits.of(static_cast<distance>(d), collective, 3);
      require(limit >= 1 && limit <= slice_limits::limit_max);
    }
}

void try_interfaces() {
  array<net::interface_address> all(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::snprintf(all[i].name, sizeof all[i].name, "%s", std::array{"lo", "eth0", "a_name_of_15_ch"}[i]);
    all[i].at = net::address::loopback(0, i == 2 ? 6 : 4);
  }
  char const* const wanted = std::getenv("COLLX_INTERFACE");
  bool const spans_hosts = wanted != nullptr && wanted[0] == '!';
  (void)net::choose_interface(all, wanted, spans_hosts);
}

// Whichever of the ports is asked for, it is one of them.
void try_ports(net::port_range const& ports) {
  require(ports.is_any() || (ports.first <= ports.last && ports.count() <= 65535));
  for (std::uint32_t const which : {0u, 1u, 65'535u, 3'000'000'019u, ~0u})
    for (std::uint16_t const port : {ports.at(which), ports.place(which), ports.gate(which, which)})
      require(ports.is_any() || (port >= ports.first && port <= ports.last));
}

void require_secret(net::secret const& read, bool may_be_none) {
  std::size_t const bytes = read.bytes().size();
  require((may_be_none && bytes == 0) ||
          (bytes >= net::secret::bytes_min && bytes <= net::secret::bytes_max));
}

void try_file(std::string const& text) {
  static int const file = memfd_create("rank0", MFD_CLOEXEC);
  static std::string const path = "/proc/self/fd/" + std::to_string(file);
  require(ftruncate(file, 0) == 0 &&
          pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  require(fchmod(file, 0600) == 0);
  or_error([&] { require_secret(net::secret::from_file(path.c_str()), false); });
  bootstrap::launch me;
  bootstrap::meeting_place place;
  place.file = path.c_str();
  net::socket_settings const sockets;
  std::uint64_t token = 0;
  char const* why = "";
  // Names are not looked up: what is no number is nobody here.
  if (text.find_first_not_of("collx 0123456789abcdef.:[]\t\n") == std::string::npos)
    or_error([&] {
      std::uint64_t const until_us = now_us() + 60'000'000;
      (void)bootstrap::whereabouts{me, place, nullptr, sockets, true, until_us}.look(token, why);
    });
}

// Of a launcher that speaks PMI: a word is what it is found as, or there is none.
void try_launcher_answer(std::string const& text) {
  bootstrap::pmi_answer answer;
  std::snprintf(answer.line, sizeof answer.line, "%s", text.c_str());
  for (char const* name : {"cmd", "rc", "kvsname", "value", ""}) {
    char found[96];
    if (!answer.value(name, found)) continue;
    require(std::memchr(found, 0, sizeof found) != nullptr && std::strchr(found, ' ') == nullptr);
    std::string const word = std::string(name) + "=" + found, line = answer.line;
    require((' ' + line + ' ').find(' ' + word + ' ') != std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  std::string text(reinterpret_cast<char const*>(data + 1), size - 1);
  if (data[0] == 255) return try_launcher_answer(text), 0;
  if (data[0] % 4 == 0) {
    // What stands for the spaces of its beginning: all, some, or none of them.
    static constexpr char const* spaces[] = {" ", "", "\t", "\n"};
    std::string const begin = std::string("collx") + spaces[data[0] / 4 % 4] + "1" + spaces[data[0] / 16 % 4];
    return try_file(begin + "127.0.0.1:" + text), 0;
  }
  set_variables(text);
  or_error([&] {
    bootstrap::launch const me = bootstrap::launch::from_environment();
    require(me.size >= 1 && me.size <= 4096 && me.rank >= 0 && me.rank < me.size && me.local_rank < me.size);
    if (me.by != nullptr) {
      bootstrap::job_socket const name(me);
      require(name.text[0] == '\0' || (name.text[0] == '@' && std::memchr(name.text, 0, sizeof name.text)));
    }
    auto const place = bootstrap::meeting_place::of(me);
    require(place.file != nullptr || place.board != nullptr ||
            std::memchr(place.at.host, 0, sizeof place.at.host));
  });
  or_error([&] { try_slices(transport::tcp_settings::from_environment().slices); });
  or_error([&] { require_secret(net::secret::from_environment(), true); });
  or_error([] { try_ports(net::socket_settings::from_environment(1'000'000).ports); });
  try_interfaces();
  return 0;
}
