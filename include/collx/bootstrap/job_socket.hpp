// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job on one host meet if nobody says where: at a socket named after the job, as far as
// its launcher tells it from others.
#pragma once

#include "collx/bootstrap/launcher.hpp"
#include "collx/core/fnv1a.hpp"
#include "collx/net/descriptor_message.hpp"
#include "collx/transport/shared_memory/process.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// The process that made the socket which `variable` names, if it is an ancestor of this one; else 0. The
// number may be that of anything else by now, and what leads to a service of the system would be the same in
// all jobs. So would the first process of all.
[[nodiscard]] COLLX_COLD inline pid_t launcher_behind(char const* variable) noexcept {
  char const* const text = std::getenv(variable);
  char* end = nullptr;
  long const fd = text == nullptr ? -1 : std::strtol(text, &end, 10);
  if (fd < 0 || fd > INT32_MAX || *end != '\0' || end == text) return 0;
  pid_t const maker = net::other_end_of(static_cast<int>(fd)).process;
  pid_t ancestor = getppid();
  while (ancestor > 1 && ancestor != maker) ancestor = transport::shared_memory::parent_of(ancestor);
  return ancestor > 1 ? ancestor : 0;
}

}  // namespace detail

// A name that the ranks of one job have in common and no other job of this host has at the same time. It is
// not in a file system: it is gone with the process that listens at it, however that ends.
struct job_socket {
  char text[48] = "";  // empty: the launcher does not tell this job from others

  COLLX_COLD explicit job_socket(launch const& me) noexcept {
    launcher const& by = *me.by;
    mix(by.name);
    bool told = false;
    if (char const* const job = launch::first_set(by.job)) told = mix(std::getenv(job));
    for (char const* const each : by.apart)
      if (each != nullptr) mix(std::getenv(each));
    if (by.socket != nullptr) told = mix_process(detail::launcher_behind(by.socket));
    if (told)
      std::snprintf(text, sizeof text, "@collx-%u-%016llx", geteuid(),
                    static_cast<unsigned long long>(number_));
  }

 private:
  // A number of a process, with the namespace that it is one of: containers that share abstract names,
  // because they share a network, may each have their own.
  COLLX_COLD bool mix_process(pid_t process) noexcept {
    unsigned long long const where = process == 0 ? 0 : transport::shared_memory::process_namespace();
    if (where == 0) return false;
    char numbers[40];
    std::snprintf(numbers, sizeof numbers, "%d %llu", process, where);
    return mix(numbers);
  }

  // Whether there was something.
  bool mix(char const* part) noexcept {
    if (part == nullptr || part[0] == '\0') return false;
    number_ = fnv1a_64(part, std::strlen(part) + 1, number_);
    return true;
  }

  std::uint64_t number_ = fnv1a_64_of_nothing;
};

}  // namespace collx::inline abi_1::bootstrap
