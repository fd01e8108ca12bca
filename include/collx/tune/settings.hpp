// SPDX-License-Identifier: Apache-2.0
// What users say about the choice of algorithms: names for collectives, in code or in variables, and a
// table. One object may be given to a communicator; the environment makes another, for the process.
//
//   COLLX_ALGORITHM="all_reduce=ring,broadcast=chain"     names for collectives
//   COLLX_ALL_REDUCE_ALGORITHM=ring                       the same for one; goes before the list
//   COLLX_TUNING=my_machine.json                          a table that collx_tune has written
//
// They must say the same on every rank.
#pragma once

#include <cstdlib>
#include <cstring>

#include "collx/tune/candidate.hpp"
#include "collx/tune/load.hpp"

namespace collx::inline abi_1::tune {

namespace detail {

// Up to the next comma that does not stand in the name of an algorithm: hierarchical<direct_one_shot, ring>.
[[nodiscard]] inline std::size_t length_of_item(char const* text) {
  std::size_t length = 0;
  for (int open = 0; text[length] != '\0' && (open > 0 || text[length] != ','); ++length)
    open += (text[length] == '<') - (text[length] == '>');
  return length;
}

[[noreturn]] COLLX_COLD inline void refuse_collective(char const* where, char const* name, int length) {
  message text;
  text.add("%s names the collective '%.*s', and there is none; say one of:", where, length, name);
  contract::any_name([&](char const* known) { return text.add(" %s", known), false; });
  throw error(status::bad_argument, text.text());
}

}  // namespace detail

class settings {
 public:
  // An algorithm for a collective, and who said so: "" for code, else a variable.
  struct override {
    word collective, algorithm;
    char variable[48] = {};
  };

  settings() = default;

  // use("all_reduce", "ring"). Throws error (bad_argument) if there is no such collective. Whether the
  // algorithm can do what is asked of it turns out in the call, where ranks and operator are known.
  void use(char const* collective, char const* algorithm) {
    put("tune::settings::use", "", collective, std::strlen(collective), algorithm, std::strlen(algorithm));
  }
  // use("all_reduce=ring,broadcast=chain")
  void use(char const* assignments) { put_all("tune::settings::use", "", assignments); }
  // The same, known when compiling.
  template <class Contract, class Algorithm>
  void use() {
    static_assert(offers<Algorithm, Contract>(),
                  "collx: this algorithm offers no schedule for this collective; docs/algorithms.md lists "
                  "which do");
    use(Contract::name, Algorithm::name);
  }

  // A table, from tune::load() or built in code.
  void table(tuning&& rows) noexcept { table_ = static_cast<tuning&&>(rows); }

  [[nodiscard]] override const* find(word const& collective) const noexcept {
    for (int i = 0; i < override_count_; ++i)
      if (overrides_[i].collective == collective) return &overrides_[i];
    return nullptr;
  }
  [[nodiscard]] tuning const& table() const noexcept { return table_; }

  // What is wrong with them, or null. Only settings from the environment keep that to themselves until
  // a call, since nobody is there to catch it.
  [[nodiscard]] char const* fault() const noexcept { return fault_[0] == '\0' ? nullptr : fault_; }

  [[nodiscard]] static settings from_environment() noexcept {
    settings made;
    try {
      made.read_environment();
    } catch (error const& problem) {
      constexpr std::size_t prefix = sizeof "collx: " - 1;  // thrown again, it would stand there twice
      std::snprintf(made.fault_, sizeof made.fault_, "%s", problem.what() + prefix);
    }
    return made;
  }

 private:
  static constexpr int override_most = 32;

  void put(char const* where, char const* variable, char const* collective, std::size_t collective_length,
           char const* algorithm, std::size_t algorithm_length) {
    override made{word(collective, collective_length), word(algorithm, algorithm_length), {}};
    if (!contract::any_name([&](char const* known) { return word(known) == made.collective; }))
      detail::refuse_collective(where, collective, static_cast<int>(collective_length));
    std::snprintf(made.variable, sizeof made.variable, "%s", variable);
    for (int i = 0; i < override_count_; ++i)
      if (overrides_[i].collective == made.collective) return static_cast<void>(overrides_[i] = made);
    if (override_count_ == override_most)
      throw error(status::bad_argument, "tune::settings: more than 32 collectives are named");
    overrides_[override_count_++] = made;
  }

  void put_all(char const* where, char const* variable, char const* assignments) {
    for (char const* at = assignments; *at != '\0';) {
      std::size_t const length = detail::length_of_item(at);
      char const* const equals = static_cast<char const*>(std::memchr(at, '=', length));
      if (equals == nullptr || equals == at || equals + 1 == at + length) {
        message text;
        text.add("%s is \"%s\"; write collective=algorithm, and commas between them", where, assignments);
        throw error(status::bad_argument, text.text());
      }
      put(where, variable, at, static_cast<std::size_t>(equals - at), equals + 1,
          static_cast<std::size_t>(at + length - equals - 1));
      at += length + (at[length] == ',');
    }
  }

  COLLX_COLD void read_environment() {
    if (char const* const list = std::getenv("COLLX_ALGORITHM"))
      put_all("environment variable COLLX_ALGORITHM", "COLLX_ALGORITHM", list);
    contract::any_name([&](char const* collective) {
      char variable[48];
      std::snprintf(variable, sizeof variable, "COLLX_%s_ALGORITHM", collective);
      for (char* c = variable; *c != '\0'; ++c)
        if (*c >= 'a' && *c <= 'z') *c = static_cast<char>(*c - 'a' + 'A');
      if (char const* const algorithm = std::getenv(variable))
        put(variable, variable, collective, std::strlen(collective), algorithm, std::strlen(algorithm));
      return false;
    });
    if (char const* const path = std::getenv("COLLX_TUNING")) table_ = load(path);
  }

  override overrides_[override_most];
  int override_count_ = 0;
  tuning table_;
  char fault_[640] = {};
};

// The environment's settings, read at the first call that asks.
[[nodiscard]] inline settings const& settings_of_environment() noexcept {
  static settings const made = settings::from_environment();
  return made;
}

}  // namespace collx::inline abi_1::tune
