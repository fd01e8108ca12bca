// SPDX-License-Identifier: Apache-2.0
// libFuzzer: tuning tables and what users say of algorithms in variables. Either an error that says what is
// wrong, or rules and models with which a choice can be made.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#include "collx/tune/settings.hpp"
#include "fuzz/fuzzing.hpp"

namespace {

using namespace collx;

void try_table(std::string const& text) {
  tune::tuning table = tune::parse(text.c_str(), "table.json");
  tune::word const shm("shm");
  tune::question const smallest{0, {1, 1}, &shm};
  for (tune::rule const& each : table.rules) {
    require(!each.collective.empty() && !each.algorithm.empty());
    require(each.when.ranks_max >= 1 && each.when.ranks_per_group_max >= 1);
    if (each.when.transport.empty() && each.when.memory == tune::memory_kind::any)
      require(each.when.holds(smallest));
  }
  for (tune::fitted_model const& each : table.models) {
    require(std::memchr(each.transport.text, 0, sizeof each.transport.text) != nullptr);
    tune::log_gp const& took = each.parameters;
    for (double const us : {took.round_us, took.gap_us, took.gap_us_per_byte, took.gamma_us_per_byte})
      require(std::isfinite(us));
  }
  require(std::string(table.origin()) == "table.json");
}

void try_names(std::string const& text) {
  tune::settings said;
  said.use(text.c_str());
  auto const* const found = said.find(tune::word("all_reduce"));
  require(found == nullptr || (!found->algorithm.empty() && found->variable[0] == '\0'));
  said.use(text.c_str());  // what was said before is replaced
}

void try_environment(std::string const& text) {
  setenv("COLLX_ALGORITHM", text.c_str(), 1);
  tune::settings const said = tune::settings::from_environment();
  require(said.fault() == nullptr || said.fault()[0] != '\0');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  std::string const text(reinterpret_cast<char const*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0: or_error([&] { try_names(text); }); break;
    case 1: try_environment(text); break;
    default: or_error([&] { try_table(text); }); break;
  }
  return 0;
}
