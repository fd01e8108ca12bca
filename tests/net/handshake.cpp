// SPDX-License-Identifier: Apache-2.0
// The handshake as a function of bytes: whoever belongs to the job is welcomed, and every bit counts.
// component: tcp
#include "collx/net/handshake.hpp"

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"

namespace {

using namespace collx::net;
using collx::rank_t;
using bytes = std::vector<std::byte>;

constexpr std::size_t hello_bytes = 72, all_bytes = conversation::bytes_count;

credentials keys(char const* text = "the secret of these tests", std::uint64_t job = 7) {
  return {text[0] == '\0' ? secret() : secret::of(std::span(text, std::strlen(text))), job};
}

std::array<std::byte, 32> nonce(std::uint64_t seed) {
  std::array<std::byte, 32> made;
  collx::replayable_random random(seed);
  for (std::byte& each : made) each = static_cast<std::byte>(random.below(256));
  return made;
}

introduction const from_three{purpose::link, 3, 5, 8, 2, 4};
expectation const by_five{5, 8, mask_of(purpose::link) | mask_of(purpose::tree), 4};

// Both sides, and the wire between them: `alter` may change the byte at a place of the conversation.
struct exchange {
  credentials dials = keys(), listens = keys();
  introduction who = from_three;
  expectation whom = by_five;
  std::uint64_t seed = 1;
  std::size_t part = all_bytes;  // bytes moved at a time
  secret_digest key_of_dialler, key_of_listener;  // after a welcome
  std::function<void(std::size_t place, std::byte&)> alter = [](std::size_t, std::byte&) {};

  verdict at_dialler{}, at_listener{};
  introduction introduced;
  bytes wire;  // everything that was said, as it arrived

  exchange& run() {
    dialling_side one(dials, who, nonce(seed));
    listening_side other(whom, nonce(seed + 1));
    while (move(one, other, dials, listens) || move(other, one, listens, dials)) {
    }
    at_dialler = one.outcome();
    at_listener = other.outcome();
    introduced = other.who();
    REQUIRE((one.session_key(dials, key_of_dialler) && other.session_key(listens, key_of_listener)));
    return *this;
  }

 private:
  template <class From, class To>
  bool move(From& from, To& to, credentials const& of_from, credentials const& of_to) {
    auto const out = from.to_send();
    auto const in = to.to_receive();
    if (out.empty()) return false;
    bytes said(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(std::min(part, out.size())));
    from.moved(said.size(), of_from);
    if (in.empty()) return true;  // the other side has hung up
    REQUIRE(in.size() >= said.size());
    for (std::byte& each : said) {
      alter(wire.size(), each);
      wire.push_back(each);
    }
    std::copy(said.begin(), said.end(), in.begin());
    to.moved(said.size(), of_to);
    return true;
  }
};

// A listener that hears these bytes from somebody; what it sends goes nowhere.
verdict heard(listening_side& by, bytes const& said, credentials const& mine, std::size_t* sent = nullptr) {
  std::size_t i = 0;
  for (;;) {
    auto const out = by.to_send();
    if (sent != nullptr) *sent += out.size();
    if (!out.empty()) {
      by.moved(out.size(), mine);
      continue;
    }
    auto const in = by.to_receive();
    std::size_t const count = std::min(in.size(), said.size() - i);
    if (count == 0) return by.outcome();
    std::copy_n(said.begin() + static_cast<std::ptrdiff_t>(i), count, in.begin());
    by.moved(count, mine);
    i += count;
  }
}

}  // namespace

TEST_CASE("two of one job welcome each other, and the listener knows who came") {
  for (std::size_t const part : {all_bytes, std::size_t{1}, std::size_t{5}, std::size_t{13}}) {
    exchange talk;
    talk.part = part;
    talk.run();
    CHECK(talk.at_dialler == verdict::welcome);
    CHECK(talk.at_listener == verdict::welcome);
    CHECK(talk.introduced.what == purpose::link);
    CHECK(talk.introduced.from == 3);
    CHECK(talk.introduced.to == 5);
    CHECK(talk.introduced.size == 8);
    CHECK(talk.introduced.flow == 2);
    CHECK(talk.introduced.flow_count == 4);
    CHECK(talk.wire.size() == all_bytes);
  }
}

TEST_CASE("without a secret the same conversation takes place") {
  exchange talk;
  talk.dials = talk.listens = keys("");
  CHECK(talk.run().at_dialler == verdict::welcome);
  CHECK(talk.at_listener == verdict::welcome);
}

TEST_CASE(
    "whichever bit is changed on the way, the dialler is not welcomed; nor does the listener let it in") {
  for (std::size_t bit = 0; bit < all_bytes * 8; ++bit) {
    exchange talk;
    talk.alter = [bit](std::size_t place, std::byte& each) {
      if (place == bit / 8) each ^= std::byte{1} << (bit % 8);
    };
    talk.run();
    REQUIRE_MESSAGE(talk.at_dialler != verdict::welcome, "bit " << bit);
    // Its last message leaves the listener after it has decided; what happens to it later, it cannot know.
    bool const after_the_decision = bit / 8 >= conversation::verdict_at;
    REQUIRE_MESSAGE((talk.at_listener == verdict::welcome) == after_the_decision, "bit " << bit);
  }
}

TEST_CASE("another secret, or none, is refused, and both sides know why") {
  for (auto const& [one, other] :
       {std::pair("the secret of these tests", "the secret of these tesTs"),
        std::pair("", "the secret of these tests"), std::pair("the secret of these tests", "")}) {
    exchange talk;
    talk.dials = keys(one);
    talk.listens = keys(other);
    talk.run();
    CHECK(talk.at_dialler == verdict::wrong_secret);
    CHECK(talk.at_listener == verdict::wrong_secret);
  }
}

TEST_CASE("who knows the secret but is not expected is told why, by a listener that has proved itself") {
  auto const refused = [](auto&& change) {
    exchange talk;
    change(talk);
    talk.run();
    CHECK(talk.at_dialler == talk.at_listener);
    return talk.at_dialler;
  };
  CHECK(refused([](exchange& t) { t.dials = keys("the secret of these tests", 8); }) == verdict::wrong_job);
  CHECK(refused([](exchange& t) { t.who.size = 9; }) == verdict::wrong_size);
  CHECK(refused([](exchange& t) { t.who.to = 4; }) == verdict::wrong_rank);
  CHECK(refused([](exchange& t) { t.who.from = 5; }) == verdict::wrong_rank);
  CHECK(refused([](exchange& t) { t.who.from = 8; }) == verdict::wrong_rank);
  CHECK(refused([](exchange& t) { t.who.from = -1; }) == verdict::wrong_rank);
  CHECK(refused([](exchange& t) { t.who.flow = 4; }) == verdict::wrong_purpose);
  CHECK(refused([](exchange& t) { t.who.what = purpose::tree; }) == verdict::wrong_purpose);  // flow 2 of it
  CHECK(refused([](exchange& t) { t.who.what = purpose::store; }) == verdict::wrong_purpose);
  for (std::uint32_t const flows : {0u, 1u, 3u, 5u, 17u, 255u})
    CHECK(refused([&](exchange& t) { t.who.flow_count = flows; }) == verdict::wrong_flows);
  CHECK(std::string(advice(verdict::wrong_flows)).find("COLLX_TCP_FLOWS") != std::string::npos);
  for (std::uint32_t const what : {0u, 4u, 32u, 33u, 0xffffffffu})
    CHECK(refused([&](exchange& t) { t.who.what = static_cast<purpose>(what); }) == verdict::wrong_purpose);
}

TEST_CASE("what protects connections must be the same on both sides, and nobody can change it") {
  protection const all[] = {protection::none, protection::tls, protection::checksums,
                            protection::tls_and_checksums};
  for (protection const one : all)
    for (protection const other : all) {
      exchange talk;
      talk.who.protects = one;
      talk.whom.protects = other;
      talk.run();
      verdict const right = one == other                       ? verdict::welcome
                            : encrypts(one) != encrypts(other) ? verdict::wrong_protection
                                                               : verdict::wrong_checksums;
      CHECK(talk.at_dialler == right);
      CHECK(talk.at_listener == right);
    }
  CHECK(std::string(advice(verdict::wrong_protection)).find("COLLX_TLS") != std::string::npos);
  CHECK(std::string(advice(verdict::wrong_checksums)).find("COLLX_TCP_CHECK") != std::string::npos);
  // Somebody on the way who asks for none in the name of the dialler.
  exchange lowered;
  lowered.who.protects = protection::tls;
  lowered.alter = [](std::size_t place, std::byte& each) {
    if (place == 37) each = std::byte{0};
  };
  CHECK(lowered.run().at_listener == verdict::wrong_secret);
  exchange strange;
  strange.who.protects = static_cast<protection>(7);
  CHECK(strange.run().at_listener == verdict::wrong_protection);
}

TEST_CASE("both sides find the same key for their connection, and no other connection has it") {
  auto const equal = [](digest const& a, digest const& b) { return same(a.bytes, b.bytes, 32); };
  exchange first, second, other_secret, other_flow;
  first.run();
  CHECK(equal(first.key_of_dialler, first.key_of_listener));
  second.seed = 50;
  second.run();
  other_secret.dials = other_secret.listens = keys("another secret of 24 bytes");
  other_secret.run();
  other_flow.who.flow = 1;
  other_flow.run();
  for (exchange const* other : {&second, &other_secret, &other_flow}) {
    CHECK(other->at_listener == verdict::welcome);
    CHECK_FALSE(equal(first.key_of_dialler, other->key_of_dialler));
  }
  // Nor is it anything that was said.
  for (std::size_t place = 0; place + 32 <= all_bytes; ++place)
    CHECK_FALSE(same(first.wire.data() + place, first.key_of_dialler.bytes, 32));
}

TEST_CASE("another version is refused by both sides, before anything is proved") {
  exchange talk;
  talk.alter = [](std::size_t place, std::byte& each) {
    if (place == 11) each = std::byte{conversation::version + 1};
  };
  talk.run();
  CHECK(talk.at_listener == verdict::wrong_version);
  CHECK(talk.at_dialler == verdict::wrong_version);
  CHECK(talk.wire.size() == conversation::proof_at);
  exchange other;
  other.alter = [](std::size_t place, std::byte& each) {
    if (place == hello_bytes + 11) each = std::byte{conversation::version + 1};
  };
  CHECK(other.run().at_dialler == verdict::wrong_version);
}

TEST_CASE("what was said in another conversation is worth nothing in this one") {
  exchange first;
  first.run();
  REQUIRE(first.at_listener == verdict::welcome);
  // What the dialler said then, to a listener with a new number.
  bytes said(first.wire.begin(), first.wire.begin() + hello_bytes);
  said.insert(said.end(), first.wire.begin() + conversation::proof_at,
              first.wire.begin() + conversation::verdict_at);
  listening_side again(by_five, nonce(99));
  CHECK(heard(again, said, keys()) == verdict::wrong_secret);
  // To one that drew the same number it would be right: that is what the number is for.
  listening_side same(by_five, nonce(2));
  CHECK(heard(same, said, keys()) == verdict::welcome);
  // And what the listener said then, to a dialler with a new number.
  exchange second;
  second.seed = 500;
  second.alter = [&](std::size_t place, std::byte& each) {
    bool const by_listener =
        (place >= hello_bytes && place < conversation::proof_at) || place >= conversation::verdict_at;
    if (by_listener) each = first.wire[place];
  };
  CHECK(second.run().at_dialler == verdict::wrong_secret);
}

TEST_CASE("what a side said is no answer when it is said back to it") {
  // A listener without the secret that answers with the dialler's own bytes: its number, then its proof.
  exchange talk;
  bytes own;
  talk.alter = [&](std::size_t place, std::byte& each) {
    if (place >= hello_bytes + 16 && place < conversation::proof_at)
      each = talk.wire[place - hello_bytes - 16 + 40];
    if (place == conversation::verdict_at + 3) each = std::byte{1};
    if (place >= conversation::verdict_at + 4) each = talk.wire[place - conversation::verdict_at - 4 + 120];
  };
  CHECK(talk.run().at_dialler == verdict::wrong_secret);
  // Somebody who has a listener's proof by dialling it with its own number learns no dialler's proof from it.
  digest as_dialler, as_listener;
  std::byte const text[] = {std::byte{1}, std::byte{2}};
  REQUIRE(hmac_sha256(keys().dials().bytes, text, as_dialler));
  REQUIRE(hmac_sha256(keys().listens().bytes, text, as_listener));
  CHECK_FALSE(same(as_dialler.bytes, as_listener.bytes, digest::bytes_count));
}

TEST_CASE("a stranger is told nothing before it has said a whole greeting of ours") {
  std::size_t sent = 0;
  collx::replayable_random random(3);
  for (int i = 0; i < 2000; ++i) {
    bytes said(random.below(300));
    for (std::byte& each : said) each = static_cast<std::byte>(random.below(256));
    listening_side by(by_five, nonce(static_cast<std::uint64_t>(i)));
    verdict const now = heard(by, said, keys(), &sent);
    REQUIRE(now == (said.empty() ? verdict::undecided : verdict::not_collx));
  }
  CHECK(sent == 0);
}

TEST_CASE("a right greeting with nonsense behind it is a stranger's") {
  exchange first;
  first.run();
  collx::replayable_random random(4);
  for (int i = 0; i < 500; ++i) {
    bytes said(first.wire.begin(), first.wire.begin() + hello_bytes);
    for (int k = 0; k < 32; ++k) said.push_back(static_cast<std::byte>(random.below(256)));
    listening_side by(by_five, nonce(1));
    REQUIRE(heard(by, said, keys()) == verdict::wrong_secret);
  }
}

TEST_CASE("keys of different secrets, jobs and sides differ as they should") {
  auto const equal = [](digest const& a, digest const& b) { return same(a.bytes, b.bytes, 32); };
  CHECK(equal(keys().dials(), keys().for_job(99).dials()));
  CHECK_FALSE(equal(keys().dials(), keys().listens()));
  CHECK_FALSE(equal(keys().dials(), keys().encrypts()));
  CHECK_FALSE(equal(keys().listens(), keys().encrypts()));
  CHECK_FALSE(equal(keys().dials(), keys("another secret of 24 bytes").dials()));
  CHECK_FALSE(equal(keys("").dials(), keys().dials()));
  CHECK(keys().has_secret());
  CHECK_FALSE(keys("").has_secret());
}

// RFC 4231, test case 2: the code is HMAC-SHA-256 and nothing of our own.
TEST_CASE("the code is that of the standard") {
  constexpr char key[] = {'J', 'e', 'f', 'e'};
  constexpr char text[] = "what do ya want for nothing?";
  constexpr std::array<unsigned char, 32> right{
      0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
      0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
  digest code;
  REQUIRE(hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(text, sizeof text - 1)), code));
  CHECK(std::memcmp(code.bytes, right.data(), 32) == 0);
}
