// SPDX-License-Identifier: Apache-2.0
// Where the system's configuration of OpenSSL allows keys without an exchange of new ones (psk_ke), whoever
// learns the secret later could read what was recorded: connections do not offer it.
// component: tcp
// compiled: apart, it changes OpenSSL's configuration for its whole process
#include <memory>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <openssl/conf.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "collx/net/fd.hpp"
#include "collx/net/tls_context.hpp"

namespace {

using namespace collx::net;
using text = std::vector<unsigned char>;

template <auto Free>
struct freed_by {
  void operator()(auto* what) const { (void)Free(what); }
};

// As in a file that OPENSSL_CONF names.
void configure_openssl(std::string_view lines) {
  std::unique_ptr<BIO, freed_by<&BIO_free>> const file(
      BIO_new_mem_buf(lines.data(), static_cast<int>(lines.size())));
  std::unique_ptr<CONF, freed_by<&NCONF_free>> const read(NCONF_new(nullptr));
  long wrong_line = 0;
  REQUIRE(NCONF_load_bio(read.get(), file.get(), &wrong_line) == 1);
  REQUIRE(CONF_modules_load(read.get(), nullptr, 0) == 1);
}

// What stands in a message, of lengths that it says itself.
struct reader {
  text const& from;
  std::size_t at = 0;

  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    for (; bytes != 0; --bytes) value = value << 8 | from.at(at++);
    return value;
  }
  void pass(std::size_t bytes) { at += bytes; }
};

// How the keys may be agreed on, as a ClientHello says (RFC 8446, 4.1.2 and 4.2.9).
text key_exchange_modes(text const& hello) {
  constexpr std::size_t record_header = 5, message_header = 4, version = 2, random = 32;
  constexpr std::size_t psk_key_exchange_modes = 45;
  reader in{hello, record_header + message_header + version + random};
  in.pass(in.number(1));  // session
  in.pass(in.number(2));  // ciphers
  in.pass(in.number(1));  // compression
  std::size_t const end = in.number(2) + in.at;
  while (in.at < end) {
    std::size_t const kind = in.number(2), bytes = in.number(2);
    auto const begin = hello.begin() + static_cast<std::ptrdiff_t>(in.at);
    if (kind == psk_key_exchange_modes) return {begin + 1, begin + static_cast<std::ptrdiff_t>(bytes)};
    in.pass(bytes);
  }
  return {};
}

text first_words_of(tls_context const& context) {
  int both[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
  owned_fd const here(both[0]), there(both[1]);
  std::unique_ptr<tls_stream> const dialler(context.stream_over(here.get(), tls_side::dials, digest{}));
  REQUIRE(dialler != nullptr);
  CHECK(dialler->greet() == collx::status::pending);
  text words(4096);
  ssize_t const got = recv(there.get(), words.data(), words.size(), 0);
  REQUIRE(got > 0);
  words.resize(static_cast<std::size_t>(got));
  return words;
}

}  // namespace

TEST_CASE("keys without an exchange are not offered, even where the system's configuration allows them") {
  configure_openssl(
      "openssl_conf = all\n[all]\nssl_conf = modules\n[modules]\nsystem_default = defaults\n"
      "[defaults]\nOptions = AllowNoDHEKEX\n");
  std::unique_ptr<SSL_CTX, freed_by<&SSL_CTX_free>> const any(SSL_CTX_new(TLS_method()));
  REQUIRE((SSL_CTX_get_options(any.get()) & SSL_OP_ALLOW_NO_DHE_KEX) != 0);  // it does allow them

  constexpr unsigned char psk_dhe_ke = 1;
  CHECK(key_exchange_modes(first_words_of(tls_context::create())) == text{psk_dhe_ke});
}
