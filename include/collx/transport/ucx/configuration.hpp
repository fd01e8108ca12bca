// SPDX-License-Identifier: Apache-2.0
// How UCX is configured: as the UCX_* variables say, and by what follows from how the world is.
#pragma once

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "collx/core/types.hpp"
#include "collx/transport/ucx/api.hpp"

namespace collx::inline abi_1::transport::ucx_parts {

struct worker_settings {
  rank_t ranks = 1, ranks_here = 1;  // in the world; on this host
  std::uint64_t timeout_us = 30'000'000;
  bool stays_home = false;  // no secret: nobody on other hosts may reach it
};

// Whether what UCX_TLS says (`all`; null: not set) leaves one of these in use. "^a,b" is all but those.
[[nodiscard]] inline bool is_among_transports(char const* all,
                                              std::initializer_list<char const*> names) noexcept {
  if (all == nullptr || std::strcmp(all, "all") == 0) return true;
  bool found = false;
  for (char const* const name : names) found = found || std::strstr(all, name) != nullptr;
  return all[0] == '^' ? !found : found;
}

class configuration {
 public:
  // Throws error: bad_argument, system_failure.
  explicit configuration(worker_settings const& chosen) : configuration() {
    if (chosen.stays_home) stay_home(chosen.ranks);
    // A peer whose end nothing else tells of is asked after so often, that a lost one is known in time.
    set("UCX_KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", milliseconds(chosen.timeout_us / 4'000).text);
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    // Newer ones have other names for these, and are left as they are.
    if (major != 1 || minor >= 17) return;
    // UCX warns of variables that it has no use for.
    char const* const all = std::getenv("UCX_TLS");
    // Otherwise UCX takes shared memory for a transport that does not tell of lost peers, and leaves it
    // alone.
    if (is_among_transports(all, {"posix", "sysv", "shm", "sm", "mm"}))
      set("UCX_POSIX_ERROR_HANDLING", "MM_ERROR_HANDLING", "y");
    // An event may be of a connection that ended with the event before it, on which UCX 1.13 ends the
    // program.
    if (is_among_transports(all, {"tcp"})) set("UCX_TCP_MAX_POLL", "MAX_POLL", "1");
  }
  configuration(configuration const&) = delete;
  ~configuration() { ucp_config_release(config_); }
  [[nodiscard]] ucp_config_t const* get() const noexcept { return config_; }

 private:
  configuration() {
    require(ucp_config_read(nullptr, nullptr, &config_), "ucp_config_read", "look at the UCX_* variables");
  }

  // UCX lets in whoever knows an address, and a connection says nothing of who opened it.
  void stay_home(rank_t ranks) {
    char const* const asked = std::getenv("UCX_NET_DEVICES");
    if (ranks > 1 && asked != nullptr && std::strcmp(asked, "lo") != 0)
      throw_error(
          status::bad_argument,
          "transport::ucx: UCX_NET_DEVICES is \"%.100s\", but this job has no secret, and without one "
          "nothing goes over a network; set COLLX_SECRET_FILE, or unset UCX_NET_DEVICES",
          asked);
    require(ucp_config_modify(config_, "NET_DEVICES", "lo"), "ucp_config_modify", "set COLLX_SECRET_FILE");
  }

  struct milliseconds {
    char text[32];
    explicit milliseconds(std::uint64_t count) noexcept {
      std::uint64_t const usual = 20'000, least = 100;
      count = count < least ? least : count > usual ? usual : count;
      std::snprintf(text, sizeof text, "%llums", static_cast<unsigned long long>(count));
    }
  };

  // Unless the user has. Older and newer versions may not know it, which is no reason to stop.
  void set(char const* variable, char const* name, char const* value) noexcept {
    if (std::getenv(variable) == nullptr) (void)ucp_config_modify(config_, name, value);
  }
  ucp_config_t* config_ = nullptr;
};

}  // namespace collx::inline abi_1::transport::ucx_parts
