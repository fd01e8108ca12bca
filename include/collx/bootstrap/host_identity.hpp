// SPDX-License-Identifier: Apache-2.0
// A number that two processes have in common if they run on one host, in one network namespace.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "collx/core/error.hpp"
#include "collx/net/fd.hpp"

namespace collx::inline abi_1::bootstrap {

// A hash of what the kernel drew at boot and of this process's network namespace. Containers with a namespace
// of their own count as hosts of their own: they need not see each other's memory. Throws error
// (system_failure).
[[nodiscard]] COLLX_COLD inline std::uint64_t host_identity() {
  char boot[64] = {};
  struct stat space {};
  net::owned_fd const file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || read(file.get(), boot, sizeof boot) <= 0 || stat("/proc/self/ns/net", &space) != 0)
    throw error(status::system_failure, "this host cannot be told from others: /proc is missing; mount it");
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  auto const mix = [&](unsigned char byte) { hash = (hash ^ byte) * 1099511628211ull; };
  for (char const c : boot) mix(static_cast<unsigned char>(c));
  for (std::uint64_t const part : {std::uint64_t{space.st_dev}, std::uint64_t{space.st_ino}})
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(part >> shift & 0xff));
  return hash;
}

}  // namespace collx::inline abi_1::bootstrap
