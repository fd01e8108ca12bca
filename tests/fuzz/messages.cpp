// SPDX-License-Identifier: Apache-2.0
// libFuzzer: addresses and the messages of a meeting. What decodes is what an encoder writes.
#include "collx/bootstrap/messages.hpp"

#include <cstring>
#include <string>

#include "collx/bootstrap/place.hpp"
#include "collx/bootstrap/rank_list.hpp"
#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx::bootstrap;
using collx::net::address;

template <class Message>
void try_message(std::byte const* data, std::size_t size) {
  Message what;
  if (size < Message::bytes_count || !Message::decode(data, what)) return;
  std::byte back[Message::bytes_count];
  what.encode(back);
  require(std::memcmp(back, data, sizeof back) == 0);
}

void try_text(std::string const& text) {
  collx::net::host_and_port at;
  if (collx::net::host_and_port::parse(text.c_str(), at)) {
    std::string const port = ":" + std::to_string(at.port), host = at.host;
    require(at.port != 0 && !host.empty() && text.find(host) != std::string::npos);
    require(text.size() > port.size());
  }
  char first[16];
  first_of_node_list(text.c_str(), first);
  require(std::strlen(first) < sizeof first);
  char const* rest = text.c_str();
  for (collx::rank_t rank; (rank = next_of_rank_list(rest, 5)) != collx::no_rank;)
    require(rank >= 0 && rank < 5 && rest > text.c_str() && rest <= text.c_str() + text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  auto const* const bytes = reinterpret_cast<std::byte const*>(data + 1);
  switch (data[0] % 6) {
    case 0: {
      address found;
      if (size <= address::wire_bytes || !address::decode(bytes, found)) return 0;
      std::byte back[address::wire_bytes];
      found.encode(back);
      require(std::memcmp(back, bytes, sizeof back) == 0);
      sockaddr_storage at;
      require(found.to_system(at) != 0);
      return 0;
    }
    case 1: try_message<news>(bytes, size - 1); return 0;
    case 2: try_message<registration>(bytes, size - 1); return 0;
    case 3: try_message<receipt>(bytes, size - 1); return 0;
    case 4:
      // Bad news has no address behind it.
      if (size > 4 && data[4] == 1) try_message<direction>(bytes, size - 1);
      return 0;
    default: try_text(std::string(reinterpret_cast<char const*>(data + 1), size - 1)); return 0;
  }
}
