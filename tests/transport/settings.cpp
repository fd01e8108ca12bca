// SPDX-License-Identifier: Apache-2.0
// Every number that transports read from the environment: what makes no sense is refused by the variable's
// name, before anything is set up, and the message says what would be right. Every variable of the library is
// in the documentation.
#include "collx/transport/settings.hpp"

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "collx/bootstrap/threads.hpp"
#include "collx/net/socket.hpp"
#include "collx/transport/sockets/tcp_settings.hpp"
#include "collx/transport/windows/gpu_settings.hpp"
#include "tidy/source_tree.hpp"
#include "watched.hpp"

namespace {

struct variable {
  char const* name;
  char const* too_small;  // null: nothing is
  char const* too_large;
};

constexpr char const* huge = "99999999999999999999";
constexpr variable numbers[] = {{"COLLX_TIMEOUT_US", "-1", huge},
                                {"COLLX_STAGING_BYTES", "65535", huge},
                                {"COLLX_HEAP_BYTES", "-1", huge},
                                {"COLLX_YIELD_US", "-1", huge},
                                {"COLLX_HUGE_PAGES", "-1", "2"},
                                {"COLLX_SINGLE_COPY_BYTES", "-2", huge},
                                {"COLLX_TCP_FLOWS", "0", "1000"},
                                {"COLLX_TCP_SLICE_BYTES", "16383", huge},
                                {"COLLX_TCP_CHECK", "-1", "2"},
                                {"COLLX_TLS", "-1", "2"},
                                {"COLLX_TCP_BUFFER_BYTES", "-1", huge},
                                {"COLLX_CUDA_LANES", "0", "257"},
                                {"COLLX_CUDA_STAGING_BYTES", "4095", huge},
                                {"COLLX_CUDA_PACKET_BYTES", "-1", huge},
                                {"COLLX_CUDA_PACKET_WIDTH", "7", "17"},
                                {"COLLX_CUDA_HEAP_BYTES", "-1", huge}};

// What is said of the environment as it is; empty: nothing is wrong.
std::string refusal() {
  try {
    (void)collx::transport::tcp_settings::from_environment();
    (void)collx::gpu_settings::from_environment();
    (void)collx::net::socket_settings::from_environment(1'000'000);
  } catch (collx::error const& failure) {
    CHECK(failure.code() == collx::status::bad_argument);
    return failure.what();
  }
  return {};
}

void check_refused(variable const& each, char const* value) {
  setenv(each.name, value, 1);
  std::string const text = refusal();
  unsetenv(each.name);
  CAPTURE(std::string(each.name));
  CAPTURE(std::string(value));
  CAPTURE(text);
  CHECK(text.find(each.name) != std::string::npos);
  CHECK(text.find("\"" + std::string(value) + "\"") != std::string::npos);
  CHECK(text.find("set it to") != std::string::npos);
}

}  // namespace

TEST_CASE("numbers in the environment that make no sense are refused by name") {
  for (variable const& each : numbers) unsetenv(each.name);
  CHECK(refusal() == "");
  for (variable const& each : numbers) {
    for (char const* value : {"", "many", "1 MB", "0x10", "1.5"}) check_refused(each, value);
    check_refused(each, each.too_small);
    check_refused(each, each.too_large);
  }
}

TEST_CASE("tcp: ranks compare when they meet whether they encrypt, and whether they send checksums") {
  using collx::net::protection;
  auto const compared = [](bool tls, bool checks) {
    collx::transport::tcp_settings chosen;
    chosen.tls = tls;
    chosen.checks = checks;
    return chosen.protection();
  };
  CHECK(compared(false, false) == protection::none);
  CHECK(compared(true, false) == protection::tls);
  CHECK(compared(false, true) == protection::checksums);
  CHECK(compared(true, true) == protection::tls_and_checksums);
}

TEST_CASE("tcp: slices so small that a receiver could not remember all of them are refused by name") {
  setenv("COLLX_TCP_FLOWS", "3", 1);
  setenv("COLLX_TCP_SLICE_BYTES", "16384", 1);
  std::string const text = refusal();
  CHECK(text.find("COLLX_TCP_SLICE_BYTES is 16384; set it to at least 34380") != std::string::npos);
  CHECK(text.find("or COLLX_STAGING_BYTES (4194304) to less") != std::string::npos);
  setenv("COLLX_TCP_FLOWS", "1", 1);
  CHECK(refusal() == "");  // those of one connection come in order
  unsetenv("COLLX_TCP_FLOWS");
  unsetenv("COLLX_TCP_SLICE_BYTES");

  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = std::size_t{1} << 20;
  chosen.limits = {.flows = 2, .slice_bytes = 10083, .slices_per_flow = 2};
  chosen.checked(2);
  --chosen.limits.slice_bytes;
  CHECK_THROWS_WITH_AS(chosen.checked(2),
                       "collx: tcp_settings::limits.slice_bytes is 10082; set it to at least 10083, or "
                       "common.staging_bytes (1048576) to less",
                       collx::error);
}

TEST_CASE("tcp: what a program sets and no message could be sent with is refused by name") {
  using tcp_settings = collx::transport::tcp_settings;
  auto const refusal_of = [](auto const& change) {
    tcp_settings chosen;
    change(chosen);
    try {
      chosen.checked(2);
    } catch (collx::error const& e) {
      CHECK(e.code() == collx::status::bad_argument);
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refusal_of([](tcp_settings&) {}).empty());
  for (int const flows : {-1, 0, 17})
    CHECK(refusal_of([=](tcp_settings& s) { s.limits.flows = flows; }) ==
          "collx: tcp_settings::limits.flows is " + std::to_string(flows) + "; set it to 1 to 16");
  for (int const flows : {1, 2})
    CHECK(refusal_of([=](tcp_settings& s) { s.limits = {.flows = flows, .slice_bytes = 0}; }) ==
          "collx: tcp_settings::limits.slice_bytes is 0; set it to at least 1");
  CHECK(refusal_of([](tcp_settings& s) { s.limits.slices_per_flow = 0; }) ==
        "collx: tcp_settings::limits.slices_per_flow is 0; set it to at least 1");
  for (std::size_t const bytes : {std::size_t{511}, std::size_t{4095}, (std::size_t{1} << 30) + 1})
    CHECK(refusal_of([=](tcp_settings& s) { s.common.staging_bytes = bytes; }) ==
          "collx: common.staging_bytes is " + std::to_string(bytes) + "; set it to 4096 to 1073741824");
}

TEST_CASE("tcp: staging memory that nobody has chosen is as it is best for so many ranks, paced or not") {
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = chosen.by_ranks;
  auto const of = [&](collx::rank_t ranks, bool paced) {
    return chosen.for_ranks(ranks, paced).common.staging_bytes;
  };
  constexpr std::size_t mebi = std::size_t{1} << 20;
  CHECK(of(2, true) == mebi);
  CHECK(of(2, false) == 2 * mebi);
  CHECK(of(4, true) == 2 * mebi);
  CHECK(of(3, false) == 3 * mebi / 2);  // measured for two alone
  CHECK(of(4, false) == 2 * mebi);
  for (bool const paced : {false, true}) CHECK(of(64, paced) == 4 * mebi);
  chosen.common.staging_bytes = 3 * mebi;
  for (bool const paced : {false, true}) CHECK(of(2, paced) == 3 * mebi);
}

TEST_CASE("what the environment says wrongly is told before any rank is started") {
  setenv("COLLX_TIMEOUT_US", "soon", 1);
  // unwatched: nothing is run
  CHECK_THROWS_AS(collx::bootstrap::on_threads(2, [](auto&) { FAIL("started"); }), collx::error);
  unsetenv("COLLX_TIMEOUT_US");
}

TEST_CASE("every variable of the library is documented, and every number of a transport is tested here") {
  std::string docs;
  for (tidy::source_file const& page : tidy::files_with({".md"}))
    if (page.path != "CHANGELOG.md")
      for (std::string const& line : page.lines) docs += line + "\n";
  std::size_t found = 0;
  for (tidy::source_file const& file : tidy::files_with({".hpp"})) {
    if (!file.path.starts_with("include/")) continue;
    for (std::string const& line : file.lines) {
      std::size_t const begin = line.find("\"COLLX_");
      if (begin == std::string::npos) continue;
      std::size_t const end = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", begin + 1);
      if (end == std::string::npos || line[end] != '"') continue;
      std::string const name = line.substr(begin + 1, end - begin - 1);
      ++found;
      CHECK_MESSAGE(docs.find(name) != std::string::npos, name << " of " << file.path << " is in no page");
      bool const is_number = line.find("number(\"" + name) != std::string::npos ||
                             line.find("read(\"" + name) != std::string::npos;
      bool tested = !is_number;
      for (variable const& each : numbers) tested = tested || name == each.name;
      CHECK_MESSAGE(tested, name << " of " << file.path << " is not among the numbers of this test");
    }
  }
  CHECK(found > 15);
}

TEST_CASE("settings that a program has made itself are refused where no message could be sent with them") {
  using collx::transport::settings;
  auto const said = [](settings const& chosen) -> std::string {
    try {
      watched::on_threads(1, [](auto&) {}, chosen);
    } catch (collx::error const& refused) {
      return refused.what();
    }
    return "";
  };
  for (std::size_t const bytes :
       {std::size_t{0}, std::size_t{256}, std::size_t{4095}, (std::size_t{1} << 30) + 1})
    CHECK(said({.staging_bytes = bytes}).find("settings.staging_bytes is " + std::to_string(bytes)) !=
          std::string::npos);
  CHECK(said({.heap_bytes = std::size_t{1} << 63}).find("settings.heap_bytes is 9223372036854775808") !=
        std::string::npos);
  CHECK(said({.staging_bytes = 4096}).empty());
  // What is no multiple of a page becomes one.
  settings const odd = settings{.staging_bytes = 100'001, .heap_bytes = (1 << 20) + 1}.checked();
  CHECK(odd.staging_bytes == 102'400);
  CHECK(odd.heap_bytes == (1 << 20) + 4096);
}
