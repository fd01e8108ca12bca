// SPDX-License-Identifier: Apache-2.0
// Numbers that two processes have in common if they run on one host, in one network namespace, and if they
// can share memory besides.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "collx/core/error.hpp"
#include "collx/net/fd.hpp"
#include "collx/transport/shared_memory/process.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// FNV-1a.
class identity_hash {
 public:
  explicit identity_hash(std::uint64_t begin = 14695981039346656037ull) noexcept : value_(begin) {}

  void mix(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 1099511628211ull; }
  void mix_number(std::uint64_t number) noexcept {
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(number >> shift & 0xff));
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace detail

// A hash of what the kernel drew at boot and of this process's network namespace. Containers with a namespace
// of their own count as hosts of their own: they need not see each other's memory. Throws error
// (system_failure).
[[nodiscard]] COLLX_COLD inline std::uint64_t host_identity() {
  char boot[64] = {};
  struct stat space {};
  net::owned_fd const file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || read(file.get(), boot, sizeof boot) <= 0 || stat("/proc/self/ns/net", &space) != 0)
    throw error(status::system_failure, "this host cannot be told from others: /proc is missing; mount it");
  detail::identity_hash hash;
  for (char const c : boot) hash.mix(static_cast<unsigned char>(c));
  hash.mix_number(space.st_dev);
  hash.mix_number(space.st_ino);
  return hash.value();
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
  detail::identity_hash hash(host_identity());
  hash.mix_number(transport::shared_memory::process_namespace());
  if (stat(local_folder(), &folder) != 0) return hash.value();
  hash.mix_number(folder.st_dev);
  hash.mix_number(folder.st_ino);
  return hash.value();
}

}  // namespace collx::inline abi_1::bootstrap
