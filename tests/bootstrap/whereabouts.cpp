// SPDX-License-Identifier: Apache-2.0
// The file in which rank 0 leaves its address, whoever may have written to it.
#include "collx/bootstrap/whereabouts.hpp"

#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "bootstrap/folder.hpp"

namespace {

using namespace collx;

// "PORT TOKEN" of what is found in a file that says `text`, or why nothing is.
std::string found_in(std::string const& text) {
  folder const here;
  std::string const path = here.at("meet");
  std::ofstream(path) << text;
  bootstrap::launch const me;
  bootstrap::meeting_place place;
  place.file = path.c_str();
  net::socket_settings const sockets;
  std::uint64_t token = 0;
  char const* why = "";
  net::address_list const all = bootstrap::whereabouts{me, place, nullptr, sockets, true}.look(token, why);
  return all.count == 0 ? why : std::to_string(all.at[0].port) + " " + std::to_string(token);
}

}  // namespace

TEST_CASE("a file is believed if all of it is there") {
  CHECK(found_in("collx 1 127.0.0.1:80 00000000000000ff\n") == "80 255");
  for (char const* const text :
       {"", "collx", "collx 1 127.0.0.1:80", "collx 1 127.0.0.1:80 00000000000000ff",
        "collx 1 127.0.0.1:80 ff\n", "collx 1 127.0.0.1 00000000000000ff\n",
        "collx 2 127.0.0.1:80 00000000000000ff\n",
        // Nothing that a space must stand for, to sscanf().
        "collx1127.0.0.1:80\n", "collx\t1\t127.0.0.1:80\n", "collx\n1\n127.0.0.1:80\n00000000000000ff\n"})
    CHECK_MESSAGE(found_in(text) == "its file is not there yet", text);
}
