// SPDX-License-Identifier: Apache-2.0
// How two processes prove to each other that they belong to one job, as a pure function of bytes: no socket,
// no clock, no allocation of ours. docs/bootstrap.md says what it protects from.
#pragma once

#include "collx/core/types.hpp"
#include "collx/net/bytes.hpp"
#include "collx/net/credentials.hpp"
#include "collx/net/protection.hpp"

namespace collx::inline abi_1::net {

// What a connection is for.
enum class purpose : std::uint32_t { store = 1, tree, link };

[[nodiscard]] constexpr std::uint32_t mask_of(purpose one) noexcept {
  return std::uint32_t{1} << static_cast<std::uint32_t>(one);
}

// Who dials whom, and what for; all of it under the authentication codes of both sides.
struct introduction {
  purpose what = purpose::link;
  rank_t from = no_rank;
  rank_t to = no_rank;
  rank_t size = 0;         // ranks of the job
  std::uint32_t flow = 0;  // which of the connections between the two; below 2^16
  std::uint32_t flow_count = 1;            // how many there are between any two ranks; below 2^8
  protection protects = protection::none;  // what follows the handshake
};

// Whom a listener lets in.
struct expectation {
  rank_t me = 0;
  rank_t size = 1;
  std::uint32_t purposes = mask_of(purpose::link);  // mask_of(...) | mask_of(...)
  std::uint32_t flow_count = 1;  // as many must the other side have; flows of links are below it, others' 0
  protection protects = protection::none;
};

// What a listener has decided.
enum class verdict : std::uint32_t {
  undecided = 0,
  welcome,
  not_collx,  // something else speaks; never sent
  wrong_version,
  wrong_secret,
  wrong_job,
  wrong_size,
  wrong_rank,        // not whom it was meant for, or from a rank that cannot be
  wrong_purpose,     // or a flow that is not there
  wrong_protection,  // one encrypts
  wrong_checksums,
  wrong_flows,
};

// The last part of a sentence: "... refused this process: <this>".
[[nodiscard]] constexpr char const* advice(verdict why) noexcept {
  switch (why) {
    case verdict::not_collx: return "what listens there is not collx; give this job a port of its own";
    case verdict::wrong_version: return "it runs another version of collx; use one version";
    case verdict::wrong_secret:
      return "it has another secret; give all ranks the same COLLX_SECRET_FILE or COLLX_SECRET";
    case verdict::wrong_job: return "it belongs to another job; give each job a port of its own";
    case verdict::wrong_size: return "it was started with another number of ranks; give all ranks the same";
    case verdict::wrong_rank:
      return "it has another rank, or this one is out of range; give each process its own";
    case verdict::wrong_purpose:
      return "it expects another kind of connection; use one version and the same settings";
    case verdict::wrong_protection:
      return "one of the two encrypts and the other does not; give all ranks the same COLLX_TLS";
    case verdict::wrong_checksums:
      return "one of the two sends checksums and the other does not; give all ranks the same COLLX_TCP_CHECK";
    case verdict::wrong_flows:
      return "one of the two has more connections than the other; give all ranks the same COLLX_TCP_FLOWS";
    default: return "it gave no reason";
  }
}

// The whole conversation lies in one buffer. Four turns of fixed length; the sides take turns, the dialler
// begins:
//   hello      magic 8, version 4, purpose 4, job 8, from 4, to 4, size 4, flows 1, protection 1, flow 2,
//              nonce 32
//   challenge  magic 8, version 4, verdict 4 (undecided, or wrong_version and the end), nonce 32
//   proof      the dialler's code of everything before it
//   welcome    verdict 4, the listener's code of everything before this code
// Numbers are in the order of the network. A side reads exactly the bytes of the turn, so what follows the
// handshake stays in the socket. A listener tells a stranger nothing but its version and a random number. The
// version is also that of what is said behind the handshake: when ranks meet, and between them later.
class conversation {
 public:
  static constexpr std::uint64_t magic = 0x636f'6c6c'7874'6370ull;  // "collxtcp"
  static constexpr std::uint32_t version = 11;
  static constexpr std::size_t nonce_bytes = 32, proof_at = 120, verdict_at = 152, bytes_count = 188;

  // What to send now; empty if it is the other side's turn, or the end.
  [[nodiscard]] std::span<std::byte const> to_send() const noexcept {
    return open_ && my_turn() ? std::span<std::byte const>(said_ + at_, turn_end[turn_] - at_)
                              : std::span<std::byte const>();
  }
  // Where what is received next belongs.
  [[nodiscard]] std::span<std::byte> to_receive() noexcept {
    return open_ && !my_turn() ? std::span<std::byte>(said_ + at_, turn_end[turn_] - at_)
                               : std::span<std::byte>();
  }
  // undecided while the conversation goes on.
  [[nodiscard]] verdict outcome() const noexcept { return open_ ? verdict::undecided : decided_; }

  // After a welcome: a key for this connection, which both sides find and nobody else: a code of all that was
  // said, both random numbers with it. False if OpenSSL fails.
  [[nodiscard]] bool session_key(credentials const& mine, secret_digest& out) const noexcept {
    return code_of(bytes_count, mine.encrypts(), out);
  }

 protected:
  enum turn : std::uint8_t { hello, challenge, proof, welcome };
  static constexpr std::size_t turn_end[4] = {72, proof_at, verdict_at, bytes_count};

  explicit conversation(bool begins) noexcept : begins_(begins) {}

  [[nodiscard]] bool my_turn() const noexcept { return (turn_ % 2 == 0) == begins_; }
  [[nodiscard]] turn now() const noexcept { return static_cast<turn>(turn_); }
  [[nodiscard]] std::size_t so_far() const noexcept { return at_; }

  // So many bytes of this turn have been sent or received; true at its end.
  [[nodiscard]] bool advance(std::size_t bytes) noexcept {
    at_ += bytes;
    return at_ == turn_end[turn_];
  }
  void next_turn() noexcept {
    if (open_ && ++turn_ == 4) open_ = false;
  }
  [[nodiscard]] verdict decided() const noexcept { return decided_; }
  void decide(verdict what) noexcept { decided_ = what; }
  void end(verdict what) noexcept {
    decided_ = what;
    open_ = false;
  }

  void put_magic(std::size_t at) noexcept {
    put_u64(said_ + at, magic);
    put_u32(said_ + at + 8, version);
  }
  // Of the turn that begins at `begin`: whether what is there so far can be ours. Nonsense need not be waited
  // for.
  [[nodiscard]] bool begins_like_ours(std::size_t begin) const noexcept {
    std::byte expected[8];
    put_u64(expected, magic);
    std::size_t const have = at_ - begin < sizeof expected ? at_ - begin : sizeof expected;
    return std::memcmp(said_ + begin, expected, have) == 0;
  }
  [[nodiscard]] bool code_of(std::size_t bytes, digest const& key, digest& out) const noexcept {
    return hmac_sha256(key.bytes, std::span<std::byte const>(said_, bytes), out);
  }
  [[nodiscard]] bool has_code(std::size_t at, digest const& key) const noexcept {
    digest right;
    return code_of(at, key, right) && same(said_ + at, right.bytes, digest::bytes_count);
  }
  void put_code(std::size_t at, digest const& key) noexcept {
    digest code;
    if (!code_of(at, key, code))
      return end(verdict::wrong_secret);  // never a code of zeros that was not computed
    std::memcpy(said_ + at, code.bytes, digest::bytes_count);
  }

  std::byte said_[bytes_count] = {};

 private:
  bool begins_;
  bool open_ = true;
  std::uint8_t turn_ = 0;
  std::size_t at_ = 0;
  verdict decided_ = verdict::undecided;
};

// The side that dials.
class dialling_side : public conversation {
 public:
  // Not yet begun: nothing to send, nothing to receive.
  dialling_side() noexcept : conversation(true) { end(verdict::undecided); }

  // `nonce`: 32 random bytes, never used twice.
  dialling_side(credentials const& mine, introduction const& who,
                std::span<std::byte const, nonce_bytes> nonce) noexcept
      : conversation(true) {
    put_magic(0);
    put_u32(said_ + 12, static_cast<std::uint32_t>(who.what));
    put_u64(said_ + 16, mine.job());
    put_u32(said_ + 24, static_cast<std::uint32_t>(who.from));
    put_u32(said_ + 28, static_cast<std::uint32_t>(who.to));
    put_u32(said_ + 32, static_cast<std::uint32_t>(who.size));
    put_u32(said_ + 36, who.flow_count << 24 | static_cast<std::uint32_t>(who.protects) << 16 | who.flow);
    std::memcpy(said_ + 40, nonce.data(), nonce_bytes);
  }

  // Whether the listener has said anything.
  [[nodiscard]] bool has_heard() const noexcept { return so_far() > turn_end[hello]; }

  // So many bytes of to_send() have been sent, or have been received into to_receive().
  void moved(std::size_t bytes, credentials const& mine) noexcept {
    bool const complete = advance(bytes);
    if (now() == challenge && !begins_like_ours(turn_end[hello])) return end(verdict::not_collx);
    if (!complete) return;
    if (now() == challenge) prove(mine);
    if (now() == welcome) judge(mine);
    next_turn();
  }

 private:
  void prove(credentials const& mine) noexcept {
    std::byte const* const said = said_ + turn_end[hello];
    if (get_u32(said + 8) != version || get_u32(said + 12) != 0) return end(verdict::wrong_version);
    put_code(proof_at, mine.dials());
  }

  // A refusal without a right code comes from a listener with another secret. It is never a welcome.
  void judge(credentials const& mine) noexcept {
    std::uint32_t const said = get_u32(said_ + verdict_at);
    bool const proven = has_code(verdict_at + 4, mine.listens());
    bool const known = said >= static_cast<std::uint32_t>(verdict::welcome) &&
                       said <= static_cast<std::uint32_t>(verdict::wrong_flows);
    end(proven && known ? static_cast<verdict>(said) : verdict::wrong_secret);
  }
};

// The side that listens.
class listening_side : public conversation {
 public:
  // Not yet begun: nothing to send, nothing to receive.
  listening_side() noexcept : conversation(false) { end(verdict::undecided); }

  // `nonce`: 32 random bytes, never used twice.
  listening_side(expectation const& whom, std::span<std::byte const, nonce_bytes> nonce) noexcept
      : conversation(false), expected_(whom) {
    put_magic(turn_end[hello]);
    std::memcpy(said_ + turn_end[hello] + 16, nonce.data(), nonce_bytes);
  }

  // So many bytes of to_send() have been sent, or have been received into to_receive(). `mine`: the same each
  // time.
  void moved(std::size_t bytes, credentials const& mine) noexcept {
    bool const complete = advance(bytes);
    if (now() == hello && !begins_like_ours(0)) return end(verdict::not_collx);
    if (!complete) return;
    if (now() == hello) compare_versions();
    if (now() == challenge && decided() != verdict::undecided) return end(decided());
    if (now() == proof) judge(mine);
    next_turn();
  }

  // Believe it only after a welcome.
  [[nodiscard]] introduction who() const noexcept {
    introduction found;
    found.what = static_cast<purpose>(get_u32(said_ + 12));
    found.from = static_cast<rank_t>(get_u32(said_ + 24));
    found.to = static_cast<rank_t>(get_u32(said_ + 28));
    found.size = static_cast<rank_t>(get_u32(said_ + 32));
    std::uint32_t const connection = get_u32(said_ + 36);
    found.flow = connection & 0xffff;
    found.flow_count = connection >> 24;
    found.protects = static_cast<protection>(connection >> 16 & 0xff);
    return found;
  }

 private:
  // Told with the challenge, without a proof: another version may know no proof of ours.
  void compare_versions() noexcept {
    if (get_u32(said_ + 8) == version) return;
    put_u32(said_ + turn_end[hello] + 12, static_cast<std::uint32_t>(verdict::wrong_version));
    decide(verdict::wrong_version);
  }

  // Who cannot prove itself learns only that; the code of its refusal is left zero.
  void judge(credentials const& mine) noexcept {
    bool const proven = has_code(proof_at, mine.dials());
    verdict const say = proven ? opinion(mine) : verdict::wrong_secret;
    put_u32(said_ + verdict_at, static_cast<std::uint32_t>(say));
    decide(say);
    if (proven) put_code(verdict_at + 4, mine.listens());
  }

  [[nodiscard]] verdict opinion(credentials const& mine) const noexcept {
    introduction const them = who();
    auto const what = get_u32(said_ + 12);
    if (get_u64(said_ + 16) != mine.job()) return verdict::wrong_job;
    if (them.size != expected_.size) return verdict::wrong_size;
    if (them.to != expected_.me || them.from < 0 || them.from >= expected_.size || them.from == expected_.me)
      return verdict::wrong_rank;
    if (what < 1 || what > 3 || (expected_.purposes & mask_of(them.what)) == 0) return verdict::wrong_purpose;
    if (them.flow_count != expected_.flow_count) return verdict::wrong_flows;
    if (them.flow >= (them.what == purpose::link ? expected_.flow_count : 1)) return verdict::wrong_purpose;
    if (them.protects == expected_.protects) return verdict::welcome;
    return encrypts(them.protects) != encrypts(expected_.protects) ? verdict::wrong_protection
                                                                   : verdict::wrong_checksums;
  }

  expectation expected_;
};

}  // namespace collx::inline abi_1::net
