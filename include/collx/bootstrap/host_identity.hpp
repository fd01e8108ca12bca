// SPDX-License-Identifier: Apache-2.0
// Numbers that two processes have in common if they run on one machine, if they are in one network namespace
// besides, and if they can share memory.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "collx/core/error.hpp"
#include "collx/core/fnv1a.hpp"
#include "collx/net/fd.hpp"
#include "collx/transport/shared_memory/process.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// `identity` with one more number in it: the low bytes come first, whatever the machine.
[[nodiscard]] inline std::uint64_t mixed(std::uint64_t identity, std::uint64_t number) noexcept {
  unsigned char bytes[8];
  for (unsigned char& each : bytes) {
    each = static_cast<unsigned char>(number & 0xff);
    number >>= 8;
  }
  return fnv1a_64(bytes, sizeof bytes, identity);
}

[[noreturn]] COLLX_COLD inline void throw_no_proc() {
  throw error(status::system_failure, "this host cannot be told from others: /proc is missing; mount it");
}

}  // namespace detail

// A hash of what the kernel drew at boot: the same in all containers of a machine. Throws error
// (system_failure).
[[nodiscard]] COLLX_COLD inline std::uint64_t machine_identity() {
  char boot[64] = {};
  net::owned_fd const file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || read(file.get(), boot, sizeof boot) <= 0) detail::throw_no_proc();
  return fnv1a_64(boot, sizeof boot);
}

// The same with this process's network namespace. Containers with a namespace of their own count as hosts of
// their own: they need not see each other's memory. Throws error (system_failure).
[[nodiscard]] COLLX_COLD inline std::uint64_t host_identity() {
  struct stat space {};
  if (stat("/proc/self/ns/net", &space) != 0) detail::throw_no_proc();
  return detail::mixed(detail::mixed(machine_identity(), space.st_dev), space.st_ino);
}

// Where ranks that share memory, and have met over a network, meet once more.
[[nodiscard]] inline char const* local_folder() noexcept {
  char const* const chosen = std::getenv("TMPDIR");
  return chosen != nullptr && chosen[0] != '\0' ? chosen : "/tmp";
}

// The same with what else ranks must have in common to share memory, which those of containers need not: the
// numbers of processes, by which they know each other, and the folder where they meet. Not the mount
// namespace: what `ip netns exec` starts has one of its own, and the same folder. A folder that is missing is
// named when somebody is to be met there. Throws error (system_failure).
[[nodiscard]] COLLX_COLD inline std::uint64_t sharing_identity() {
  struct stat folder {};
  std::uint64_t const local = detail::mixed(host_identity(), transport::shared_memory::process_namespace());
  if (stat(local_folder(), &folder) != 0) return local;
  return detail::mixed(detail::mixed(local, folder.st_dev), folder.st_ino);
}

}  // namespace collx::inline abi_1::bootstrap
