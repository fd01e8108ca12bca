// SPDX-License-Identifier: Apache-2.0
// What a process proves itself with: keys that are made of the job's secret, and the job's number.
#pragma once

#include "collx/core/fnv1a.hpp"
#include "collx/net/mac.hpp"

namespace collx::inline abi_1::net {

// A number for a job's name: it tells jobs apart, and is no secret.
[[nodiscard]] inline std::uint64_t job_number(char const* name) noexcept { return fnv1a_64(name); }

// The keys of the two sides of a handshake, and the one that keys of connections come from, derived with HKDF
// (RFC 5869) from the secret, which is not kept. They differ, so that nothing that one side said can be said
// back to it, and no proof is a key. Without a secret the keys are known
// to all: the same code runs, and keeps out mistakes, not people.
class credentials {
 public:
  // No keys yet; of no use until assigned to.
  credentials() = default;
  // Throws error (system_failure) if OpenSSL has no HMAC-SHA-256.
  COLLX_COLD credentials(secret const& of, std::uint64_t job) : job_(job), has_secret_(!of.empty()) {
    static constexpr char salt[] = "collx job secret, version 1";
    digest root;
    bool const well = hmac_sha256(std::as_bytes(std::span(salt)), std::as_bytes(of.bytes()), root) &&
                      expand(root, "collx: the side that dials", dials_) &&
                      expand(root, "collx: the side that listens", listens_) &&
                      expand(root, "collx: what connections are encrypted with", encrypts_);
    wipe(&root, sizeof root);
    if (!well) throw error(status::system_failure, "OpenSSL has no HMAC-SHA-256; install one that has");
  }
  credentials(credentials const&) = default;
  credentials& operator=(credentials const&) = default;
  ~credentials() {
    wipe(&dials_, sizeof dials_);
    wipe(&listens_, sizeof listens_);
    wipe(&encrypts_, sizeof encrypts_);
  }

  [[nodiscard]] std::uint64_t job() const noexcept { return job_; }
  [[nodiscard]] bool has_secret() const noexcept { return has_secret_; }
  [[nodiscard]] digest const& dials() const noexcept { return dials_; }
  [[nodiscard]] digest const& listens() const noexcept { return listens_; }
  [[nodiscard]] digest const& encrypts() const noexcept { return encrypts_; }

  // The same keys for another job.
  [[nodiscard]] credentials for_job(std::uint64_t job) const noexcept {
    credentials copy = *this;
    copy.job_ = job;
    return copy;
  }

 private:
  // One block of HKDF-Expand, which is all that a key of 32 bytes takes.
  template <std::size_t Length>
  [[nodiscard]] static bool expand(digest const& root, char const (&label)[Length], digest& out) noexcept {
    char text[Length];  // the label's final zero makes room for the number of the block
    std::memcpy(text, label, Length);
    text[Length - 1] = 1;
    return hmac_sha256(root.bytes, std::as_bytes(std::span(text)), out);
  }

  digest dials_, listens_, encrypts_;
  std::uint64_t job_ = 0;
  bool has_secret_ = false;
};

}  // namespace collx::inline abi_1::net
