// SPDX-License-Identifier: Apache-2.0
// The secret that all ranks of a job share, from a file or the environment; wiped when it is no longer
// needed.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <span>

#include "collx/core/environment.hpp"
#include "collx/net/fd.hpp"

namespace collx::inline abi_1::net {

// Overwrites bytes so that the compiler cannot leave it out.
inline void wipe(void* at, std::size_t bytes) noexcept { ::explicit_bzero(at, bytes); }

// 16 to 1024 bytes, or none. Never printed, not even in errors.
class secret {
 public:
  static constexpr std::size_t bytes_min = 16, bytes_max = 1024;

  secret() = default;
  secret(secret&& other) noexcept : size_(other.size_) {
    std::memcpy(bytes_, other.bytes_, size_);
    other.forget();
  }
  secret& operator=(secret&&) = delete;
  ~secret() { forget(); }

  // Of the bytes of a test or of a program that has its own ways. Throws error (bad_argument) for a wrong
  // length.
  [[nodiscard]] COLLX_COLD static secret of(std::span<char const> bytes,
                                            char const* source = "the job's secret") {
    secret made;
    if (bytes.size() < bytes_min || bytes.size() > bytes_max)
      throw_error(status::bad_argument,
                  "%s has %s bytes than a secret may have; make one of 16 to 1024 random bytes: "
                  "head -c 32 /dev/urandom | base64",
                  source, bytes.size() < bytes_min ? "fewer" : "more");
    made.size_ = bytes.size();
    std::memcpy(made.bytes_, bytes.data(), bytes.size());
    return made;
  }

  // From the file that COLLX_SECRET_FILE names, else from COLLX_SECRET, else none. White space at the end
  // does not count. Throws error (bad_argument) if the file cannot be read, or can be by others than its
  // owner; but one of root may be its group's to read.
  [[nodiscard]] COLLX_COLD static secret from_environment() {
    if (char const* const path = std::getenv("COLLX_SECRET_FILE")) return from_file(path);
    char const* const text = std::getenv("COLLX_SECRET");
    return text == nullptr ? secret() : of(without_end(std::span(text, std::strlen(text))), "COLLX_SECRET");
  }

  [[nodiscard]] COLLX_COLD static secret from_file(char const* path) {
    owned_fd const file(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) refuse_unopened(path, errno);
    struct stat found {};
    if (fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))
      refuse(path, "it is no plain file", "name a file that holds the secret");
    // Root's, for secrets that an orchestrator mounts; and readable for a group then, since who is not root
    // has no other way to it (Kubernetes gives it to the fsGroup), and root has chosen who is in it. The
    // group of a user's own file is often one that everybody is in, and its mode what umask made of it.
    mode_t const open_to = found.st_uid == 0 ? S_IRGRP : 0;
    if (found.st_uid != geteuid() && found.st_uid != 0)
      refuse(path, "it belongs to another user", "copy it, so that this user owns it");
    if ((found.st_mode & 077 & ~open_to) != 0)
      refuse(path, "others than its owner may read or write it",
             "chmod 600 it (a volume: defaultMode: 0400)");
    struct wiped {
      char text[bytes_max + 2];
      ~wiped() { wipe(text, sizeof text); }
    } content;
    std::size_t size = 0;
    while (size < sizeof content.text) {
      ssize_t const got = read(file.get(), content.text + size, sizeof content.text - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse(path, std::strerror(errno), "name a file that this process can read");
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    return of(without_end(std::span<char const>(content.text, size)), "the file of COLLX_SECRET_FILE");
  }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<char const> bytes() const noexcept { return {bytes_, size_}; }

 private:
  // What names no file may be the secret itself, in the wrong variable: shown only where it is written as a
  // path.
  [[noreturn]] COLLX_COLD static void refuse_unopened(char const* path, int why) {
    char const* const advice = "name a file that this process can read";
    if (path[0] == '/' || path[0] == '.') refuse(path, std::strerror(why), advice);
    throw_error(
        status::bad_argument,
        "COLLX_SECRET_FILE, %zu characters that are not shown here, names nothing to be opened: %s; %s, or "
        "set COLLX_SECRET if this is the secret itself",
        std::strlen(path), std::strerror(why), advice);
  }

  [[noreturn]] COLLX_COLD static void refuse(char const* path, char const* why, char const* advice) {
    throw_error(status::bad_argument, "COLLX_SECRET_FILE is \"%.200s\": %s; %s", path, why, advice);
  }

  [[nodiscard]] static std::span<char const> without_end(std::span<char const> text) noexcept {
    auto const white = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
    while (!text.empty() && white(text.back())) text = text.first(text.size() - 1);
    return text;
  }

  void forget() noexcept {
    wipe(bytes_, sizeof bytes_);
    size_ = 0;
  }

  char bytes_[bytes_max] = {};
  std::size_t size_ = 0;
};

}  // namespace collx::inline abi_1::net
