// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a handshake with somebody who says anything. Without the secret nobody is welcomed; with it,
// only who introduces himself as expected.
#include "collx/net/handshake.hpp"

#include <algorithm>

#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx::net;

constexpr char text[] = "the secret of these tests";
constexpr std::byte nonce[conversation::nonce_bytes] = {};
constexpr expectation expects(protection protects) {
  return {5, 8, mask_of(purpose::link) | mask_of(purpose::tree), 4, protects};
}

credentials const& keys() {
  static credentials const made(secret::of(std::span(text, sizeof text - 1)), 7);
  return made;
}

// What the other side says, byte by byte.
struct script {
  std::span<std::uint8_t const> rest;
  [[nodiscard]] bool take(std::span<std::byte> out) {
    std::size_t const count = std::min(out.size(), rest.size());
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(rest[i]);
    rest = rest.subspan(count);
    return count == out.size();
  }
};

template <class Side>
verdict talk(Side& side, script says, std::size_t part) {
  for (;;) {
    auto const out = side.to_send();
    if (!out.empty()) {
      require(side.to_receive().empty());
      side.moved(std::min(part, out.size()), keys());
      continue;
    }
    auto const in = side.to_receive();
    if (in.empty() || !says.take(in.first(std::min(part, in.size())))) return side.outcome();
    side.moved(std::min(part, in.size()), keys());
  }
}

// An insider: what it says of itself is anything, but its proof is right.
void try_insider(script says, protection protects) {
  listening_side side(expects(protects), nonce);
  std::byte said[conversation::bytes_count] = {};
  put_u64(said, conversation::magic);
  put_u32(said + 8, conversation::version);
  if (!says.take(std::span(said).subspan(12, 60))) return;
  std::copy_n(said, 72, side.to_receive().begin());
  side.moved(72, keys());
  auto const challenge = side.to_send();
  require(challenge.size() == 48);
  std::copy(challenge.begin(), challenge.end(), said + 72);
  side.moved(48, keys());
  digest proof;
  require(hmac_sha256(keys().dials().bytes, std::span<std::byte const>(said, 120), proof));
  std::copy_n(proof.bytes, 32, side.to_receive().begin());
  side.moved(32, keys());
  side.moved(side.to_send().size(), keys());
  introduction const who = side.who();
  bool const fine = get_u64(said + 16) == 7 && who.size == 8 && who.to == 5 && who.from >= 0 &&
                    who.from < 8 && who.from != 5 && who.flow_count == 4 && who.protects == protects &&
                    ((who.what == purpose::link && who.flow < 4) ||
                     (who.what == purpose::tree && who.flow == 0));
  require((side.outcome() == verdict::welcome) == fine);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size < 2) return 0;
  script const says{{data + 2, size - 2}};
  std::size_t const part = 1 + data[1];
  if (data[0] % 3 == 0) {
    listening_side side(expects(protection::none), nonce);
    require(talk(side, says, part) != verdict::welcome);
  } else if (data[0] % 3 == 1) {
    dialling_side side(keys(), {purpose::link, 3, 5, 8, 2}, nonce);
    require(talk(side, says, part) != verdict::welcome);
  } else {
    try_insider(says, data[0] % 2 == 0 ? protection::none : protection::tls);
  }
  return 0;
}
