// SPDX-License-Identifier: Apache-2.0
// The file in which rank 0 leaves its address, whoever may have written to it; and the name of its host,
// which nobody may know.
#include "collx/bootstrap/whereabouts.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/folder.hpp"
#include "net/silent_names.hpp"

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
  bootstrap::whereabouts const where{me, place, nullptr, sockets, true, now_us() + 60'000'000};
  net::address_list const all = where.look(token, why);
  return all.count == 0 ? why : std::to_string(all.at[0].port) + " " + std::to_string(token);
}

// Where rank 0 is said to be.
bootstrap::meeting_place named(char const* at) {
  bootstrap::meeting_place place;
  place.told_by = "MASTER_ADDR";
  REQUIRE(net::host_and_port::parse(at, place.at));
  return place;
}

constexpr int not_allowed = 77;

// In a process of check_elsewhere().
void run(char const* command) {
  if (std::system(command) != 0) _exit(not_allowed);
}

// Whether `holds` does, in a network of its own.
void check_elsewhere(bool (*holds)()) {
  pid_t const elsewhere = fork();
  if (elsewhere == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(not_allowed);
    _exit(holds() ? 0 : 1);
  }
  int how = 0;
  REQUIRE(waitpid(elsewhere, &how, 0) == elsewhere);
  if (WEXITSTATUS(how) == not_allowed) {
    MESSAGE("SKIPPED: it takes ip, and the right to make a network of its own");
    return;
  }
  CHECK(how == 0);
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

TEST_CASE("a file is written anew, whoever has made one of that name before") {
  folder const here;
  std::string const path = here.at("meet"), own = here.at("own");
  std::ofstream(own) << "something else";
  REQUIRE(link(own.c_str(), (path + "." + std::to_string(getpid())).c_str()) == 0);
  bootstrap::launch const me;
  bootstrap::meeting_place place;
  place.file = path.c_str();
  net::socket_settings const sockets;
  bootstrap::whereabouts const where{me, place, nullptr, sockets, false, now_us() + 60'000'000};
  where.tell(net::address::loopback(80), 255);
  // What others have open is not what ranks read.
  std::ofstream(own, std::ios::app) << " altogether";
  std::uint64_t token = 0;
  char const* why = "";
  REQUIRE(where.look(token, why).count == 1);
  CHECK(token == 255);
  std::ifstream file(own);
  std::string said;
  std::getline(file, said);
  CHECK(said == "something else altogether");
  unlink(own.c_str());
}

TEST_CASE("a file of another user is believed by nobody without a secret") {
  folder const here;
  std::string const path = here.at("meet");
  std::ofstream(path) << "collx 1 127.0.0.1:80 00000000000000ff\n";
  bootstrap::launch const me;
  bootstrap::meeting_place place;
  place.file = path.c_str();
  net::socket_settings const sockets;
  bootstrap::whereabouts where{me, place, nullptr, sockets, false, now_us() + 60'000'000};
  std::uint64_t token = 0;
  char const* why = "";
  CHECK(where.look(token, why).count == 1);
  CHECK(where.is_elsewhere(254));
  if (geteuid() == 65534 || chown(path.c_str(), 65534, 65534) != 0) {
    MESSAGE("SKIPPED: it takes the right to give files away");
    return;
  }
  CHECK(where.look(token, why).count == 0);
  CHECK(std::string(why).find("its file belongs to another user") == 0);
  CHECK_FALSE(where.is_elsewhere(254));
  where.has_secret = true;  // with which rank 0 proves who it is
  CHECK(where.look(token, why).count == 1);
}

TEST_CASE("what is no plain file says nothing") {
  folder const here;
  std::string const path = here.at("meet");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  net::owned_fd const fifo(open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::string const text = "collx 1 127.0.0.1:80 00000000000000ff\n";
  REQUIRE(write(fifo.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  bootstrap::launch const me;
  bootstrap::meeting_place place;
  place.file = path.c_str();
  net::socket_settings const sockets;
  bootstrap::whereabouts const where{me, place, nullptr, sockets, true, now_us() + 60'000'000};
  std::uint64_t token = 0;
  char const* why = "";
  CHECK(where.look(token, why).count == 0);
  CHECK(std::string(why) == "its file is not there yet");

  // Nor does a link, whose target may be of somebody who never meant to say it.
  std::string const good = here.at("good");
  std::ofstream(good) << text;
  REQUIRE(unlink(path.c_str()) == 0);
  REQUIRE(symlink(good.c_str(), path.c_str()) == 0);
  CHECK(where.look(token, why).count == 0);
  CHECK(std::string(why) == "its file is not there yet");
  place.file = good.c_str();
  bootstrap::whereabouts const there{me, place, nullptr, sockets, true, now_us() + 60'000'000};
  CHECK(there.look(token, why).count == 1);
  (void)unlink(good.c_str());
}

TEST_CASE("a file that names the network: without a secret a rank waits for another, until the deadline") {
  folder const here;
  std::string const path = here.at("meet");
  std::ofstream(path) << "collx 1 192.0.2.77:9 00000000000000ff\n";
  bootstrap::launch me;
  me.rank = 3;
  me.size = 8;
  bootstrap::meeting_place place;
  place.file = path.c_str();
  net::socket_settings const sockets;
  bootstrap::whereabouts where{me, place, nullptr, sockets, false, now_us() + 60'000'000};
  std::uint64_t token = 0;
  char const* why = "";
  CHECK(where.look(token, why).count == 0);
  CHECK(std::string(why).find("without a secret") != std::string::npos);
  where.deadline_us = now_us();
  try {
    (void)where.look(token, why);
    FAIL("it goes there");
  } catch (error const& late) {
    CHECK(late.code() == status::timeout);
    std::string const said = late.what();
    CHECK_MESSAGE(said.find("rank 3 of 8: that file names 192.0.2.77:9, where no rank goes without a secret; "
                            "give this rank the same COLLX_SECRET_FILE") != std::string::npos,
                  said);
  }
  where.has_secret = true;
  CHECK(where.look(token, why).count == 1);
}

TEST_CASE("a name that nobody knows yet: rank 0 listens all the same, if strangers are kept out") {
  auto const nobody_knows = [](char const*, std::uint16_t, int) {
    net::known_addresses known;
    known.why = "Name or service not known";
    return known;
  };
  bootstrap::launch me;
  me.rank = 0;
  me.size = 2;
  bootstrap::meeting_place place = named("pod-0.job:1");
  place.at.port = 0;
  net::socket_settings const sockets;
  bootstrap::whereabouts where{me, place, nullptr, sockets, true, now_us() + 60'000'000, nobody_knows};
  net::owned_fd const open = where.listen();
  REQUIRE(open);
  CHECK(net::local_address(open.get()).is_any());
  where.has_secret = false;
  CHECK_THROWS_WITH_AS((void)where.listen(),
                       doctest::Contains("\"pod-0.job\", which is no name this host knows"), error);
}

// Debian's /etc/hosts has the host's own name at 127.0.1.1, where no other host gets.
TEST_CASE("a name that is this host only on this host: rank 0 listens at all addresses for others") {
  auto const as_debian_says = [](char const*, std::uint16_t port, int) {
    net::known_addresses known;
    net::address own = net::address::loopback(port);
    own.bytes[2] = 1;
    known.all.add(own);
    return known;
  };
  bootstrap::meeting_place place = named("node1:1");
  place.at.port = 0;
  net::socket_settings const sockets;
  for (int const hosts : {1, 2}) {
    CAPTURE(hosts);
    bootstrap::launch me;
    me.rank = 0;
    me.size = 2;
    me.host_count = hosts;
    bootstrap::whereabouts const where{me,   place, nullptr, sockets,
                                       true, now_us() + 60'000'000, as_debian_says};
    net::owned_fd const open = where.listen();
    net::address const at = net::local_address(open.get());
    CHECK(at.is_any() == (hosts == 2));
    if (hosts == 1) CHECK(std::string(net::address_text(at.with_port(7)).text) == "127.0.1.1:7");
    // The ranks of node1 get there by that address, and those of other hosts must not be told it.
    std::uint64_t token = 0;
    char const* why = "";
    CHECK(where.look(token, why).at[0].is_loopback());
    bool const has_network =
        net::choose_interface(net::local_interfaces(), nullptr, true).version != 0;
    CHECK(where.own(net::address::loopback(5)).is_loopback() == (hosts == 1 || !has_network));
  }
}

TEST_CASE("a link-local IPv6 address is none to give to ranks of other hosts") {
  bootstrap::meeting_place const place = named("[fe80::1]:29500");
  net::socket_settings const sockets;
  net::address towards;
  towards.version = 6;
  towards.port = 7;
  towards.scope = 2;
  towards.bytes[0] = 0xfe, towards.bytes[1] = 0x80, towards.bytes[15] = 2;
  bootstrap::launch me;
  me.rank = 1;
  me.size = 2;
  bootstrap::whereabouts const where{me, place, nullptr, sockets, true, now_us() + 60'000'000};
  me.host_count = 1;
  CHECK(where.own(towards) == towards.with_port(0));
  me.host_count = 2;
  net::address found;
  try {
    found = where.own(towards);  // another one of this host
  } catch (error const& none) {
    CHECK(none.code() == status::bad_argument);
    CHECK(std::string(none.what()).find("no address but [fe80::2%2]") != std::string::npos);
  }
  CHECK_FALSE(found.is_link_local());
}

// Where a bridge of containers comes first: peers who were told its address would look for rank 0 at home.
TEST_CASE("of several addresses that nobody chose between, peers are told that of the default route") {
  check_elsewhere([] {
    constexpr char network[] =
        "ip link set lo up && ip addr add 172.17.0.1/16 dev lo && ip addr add 10.0.0.5/24 dev lo && "
        "ip route add default dev lo src 10.0.0.5";
    run(network);
    bootstrap::launch me;
    me.size = 2;
    me.host_count = 2;
    bootstrap::meeting_place place;
    place.file = "somewhere";
    net::socket_settings const sockets;
    auto const own = [&](char const* interfaces) {
      bootstrap::whereabouts const where{me, place, interfaces, sockets, true, now_us() + 60'000'000};
      return std::string(net::address_text(where.own(net::address::loopback(0))).text);
    };
    bool const right = own(nullptr) == "10.0.0.5:0" && own("lo") == "127.0.0.1:0";
    run("ip route del default");
    return right && own(nullptr) == "172.17.0.1:0";
  });
}

// Others may have no IPv6, or get to one of its networks only.
TEST_CASE("a name with several addresses: rank 0 listens at all of them, and its peers get the first") {
  check_elsewhere([] {
    constexpr char network[] =
        "ip link set lo up && ip addr add 172.17.0.1/16 dev lo && ip addr add 10.0.0.5/24 dev lo && "
        "ip route add default dev lo src 172.17.0.1";
    run(network);
    auto const several = [](char const*, std::uint16_t port, int) {
      net::known_addresses known;
      for (char const* const each : {"192.0.2.77", "10.0.0.5", "172.17.0.1"})
        known.all.add(net::ask_system(each, port, AI_NUMERICHOST).all.at[0]);
      return known;
    };
    bootstrap::launch me;
    me.size = 2;
    me.host_count = 2;
    bootstrap::meeting_place place = named("node7:1");
    place.at.port = 0;
    net::socket_settings const sockets;
    bootstrap::whereabouts const where{me,   place, nullptr, sockets,
                                       true, now_us() + 60'000'000, several};
    net::address const at = net::local_address(where.listen().get());
    return at.is_any() && std::string(net::address_text(where.own(at)).text) == "10.0.0.5:0";
  });
}

TEST_CASE("a name of which nobody says anything ends the meeting at the deadline, and is named") {
  silent_names names;
  bootstrap::launch me;
  me.rank = 3;
  me.size = 8;
  bootstrap::meeting_place place = named("node7:29500");
  net::socket_settings const sockets;
  bootstrap::whereabouts const where{me, place, nullptr, sockets, true, now_us() + 150'000, names.ask};
  std::uint64_t token = 0;
  char const* why = "";
  std::string said;
  try {
    (void)where.look(token, why);
  } catch (error const& late) {
    CHECK(late.code() == status::timeout);
    said = late.what();
  }
  CHECK_MESSAGE(said.starts_with("collx: meeting at node7:29500, rank 3 of 8: nobody has said within "),
                said);
  CHECK(said.find(" s which address \"node7\" stands for; name rank 0 by its address") != said.npos);
  CHECK(said.find("/etc/resolv.conf") != said.npos);
  // So it does where rank 0 listens.
  CHECK_THROWS_WITH_AS((void)where.listen(), doctest::Contains("which address \"node7\" stands for"), error);
  // What was found out before is the better reason.
  why = "nobody answers there";
  CHECK(where.look(token, why).count == 0);
  CHECK(std::string(why) == "nobody answers there");
  // However long the name, the advice is there to its end.
  me.rank = 123'456'788, me.size = me.rank + 1;
  REQUIRE(net::host_and_port::parse((std::string(250, 'x') + ":29500").c_str(), place.at));
  CHECK_THROWS_WITH_AS((void)where.listen(), doctest::Contains("/etc/resolv.conf answer"), error);
  CHECK(names.come(4));
}
