// SPDX-License-Identifier: Apache-2.0
// Numbers from the environment: exact, within bounds, or an error that names the variable.
#include "collx/core/environment.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/transport/settings.hpp"

namespace {

constexpr char const* variable = "COLLX_TEST_NUMBER";

std::int64_t read(char const* value) {
  if (value == nullptr) unsetenv(variable);
  else setenv(variable, value, 1);
  return collx::environment::number(variable, 42, -5, 100);
}

std::string refusal(char const* value) {
  try {
    return "accepted: " + std::to_string(read(value));
  } catch (collx::error const& failure) {
    CHECK(failure.code() == collx::status::bad_argument);
    return failure.what();
  }
}

}  // namespace

TEST_CASE("what is a number within the bounds is taken, what is not set has its default") {
  CHECK(read(nullptr) == 42);
  CHECK(read("0") == 0);
  CHECK(read("-5") == -5);
  CHECK(read("100") == 100);
  CHECK(read("007") == 7);
}

TEST_CASE("everything else is refused with the variable, the value and the bounds") {
  for (char const* value : {"", " ", "x", "1x", "1 ", "1.5", "0x10", "1e2", "-6", "101",
                            "9999999999999999999999", "--1", "+-1"}) {
    std::string const text = refusal(value);
    CAPTURE(text);
    CHECK(text.find(variable) != std::string::npos);
    CHECK(text.find("\"" + std::string(value) + "\"") != std::string::npos);
    CHECK(text.find("from -5 to 100") != std::string::npos);
  }
}

TEST_CASE("a value of any length is refused without harm") {
  std::string const endless(5000, '9');
  std::string const text = refusal(endless.c_str());
  CHECK(text.find(variable) != std::string::npos);
  CHECK(text.find("from -5 to 100, or unset it") != std::string::npos);
}

TEST_CASE("settings: defaults, overrides, whole pages, and refusals by name") {
  char const* const variables[] = {"COLLX_TIMEOUT_US", "COLLX_STAGING_BYTES", "COLLX_HEAP_BYTES",
                                   "COLLX_YIELD_US"};
  for (char const* name : variables) unsetenv(name);
  auto chosen = collx::transport::settings::from_environment();
  CHECK(chosen.timeout_us == 30'000'000);
  CHECK(chosen.staging_bytes == 1 << 19);
  CHECK(chosen.yield_us == 200);
  setenv("COLLX_TIMEOUT_US", "17", 1);
  setenv("COLLX_STAGING_BYTES", "100001", 1);
  setenv("COLLX_HEAP_BYTES", "1048577", 1);
  setenv("COLLX_YIELD_US", "0", 1);
  chosen = collx::transport::settings::from_environment();
  CHECK(chosen.timeout_us == 17);
  CHECK(chosen.staging_bytes == 25 * 4096);
  CHECK(chosen.heap_bytes == 257 * 4096);
  CHECK(chosen.yield_us == 0);
  setenv("COLLX_STAGING_BYTES", "65535", 1);
  CHECK_THROWS_AS((void)collx::transport::settings::from_environment(), collx::error);
  for (char const* name : variables) unsetenv(name);
}
