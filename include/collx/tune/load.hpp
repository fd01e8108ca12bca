// SPDX-License-Identifier: Apache-2.0
// tune::load(path): a table that collx_tune has written, or somebody by hand. docs/choice.md describes
// the format.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "collx/tune/json.hpp"
#include "collx/tune/table.hpp"

namespace collx::inline abi_1::tune {

namespace detail {

// The whole file and a '\0'. Throws error (bad_argument).
[[nodiscard]] COLLX_COLD inline array<char> text_of(char const* path) {
  constexpr long most = 16L << 20;
  std::FILE* const file = std::fopen(path, "rb");
  long size = -1;
  if (file != nullptr && std::fseek(file, 0, SEEK_END) == 0) size = std::ftell(file);
  bool readable = size >= 0 && size <= most && std::fseek(file, 0, SEEK_SET) == 0;
  array<char> text(readable ? static_cast<std::size_t>(size) + 1 : 0);
  if (readable) readable = std::fread(text.data(), 1, text.size() - 1, file) == text.size() - 1;
  int const why = errno;
  if (file != nullptr) std::fclose(file);
  // Who reads it ends at a byte 0.
  bool const is_text = !readable || std::strlen(text.data()) + 1 == text.size();
  if (!readable || !is_text) {
    message what;
    what.add("the tuning table %s cannot be read (%s); name a file that collx_tune has written", path,
             size > most || !is_text ? "it is no such file" : std::strerror(why));
    throw error(status::bad_argument, what.text());
  }
  return text;
}

// One table's JSON, read twice: to count what arrays must hold, and to fill them.
class table_reader {
 public:
  table_reader(char const* text, char const* path, tuning& into)
      : json_(text, path), into_(into) {}

  COLLX_COLD void read() {
    json_.object([&](char const* key) {
      char words[200];
      if (is(key, "format")) {
        json_.string(words);
        if (!is(words, "collx tuning 1")) json_.refuse("the format should be \"collx tuning 1\"");
      } else if (is(key, "machine") || is(key, "written_by")) json_.string(words);
      else if (is(key, "rules")) json_.array([&] { add(into_.rules, rules_, rule_here()); });
      else if (is(key, "models")) json_.array([&] { add(into_.models, models_, model_here()); });
      else refuse_key(key, "format machine written_by models rules");
    });
    json_.end();
  }

  [[nodiscard]] std::size_t rules() const { return rules_; }
  [[nodiscard]] std::size_t models() const { return models_; }

 private:
  static bool is(char const* a, char const* b) { return std::strcmp(a, b) == 0; }

  template <class T>
  static void add(array<T>& rows, std::size_t& count, T const& row) {
    if (count < rows.size()) rows[count] = row;
    ++count;
  }

  [[nodiscard]] rule rule_here() {
    rule made;
    json_.object([&](char const* key) {
      constexpr long long ranks_most = any_size - 1;
      if (is(key, "collective")) made.collective = word_here();
      else if (is(key, "algorithm")) made.algorithm = word_here();
      else if (is(key, "transport")) made.when.transport = word_here();
      else if (is(key, "memory")) made.when.memory = memory_here();
      else if (is(key, "bytes_max"))
        made.when.bytes_max = static_cast<std::size_t>(json_.whole(0, 1LL << 50));
      else if (is(key, "ranks_max")) made.when.ranks_max = static_cast<rank_t>(json_.whole(1, ranks_most));
      else if (is(key, "ranks_per_group_max"))
        made.when.ranks_per_group_max = static_cast<rank_t>(json_.whole(1, ranks_most));
      else
        refuse_key(key,
                   "collective algorithm transport memory bytes_max ranks_max ranks_per_group_max");
    });
    if (made.collective.empty() || made.algorithm.empty())
      json_.refuse("a rule needs a \"collective\" and an \"algorithm\"");
    return made;
  }

  [[nodiscard]] fitted_model model_here() {
    fitted_model made;
    json_.object([&](char const* key) {
      if (is(key, "transport")) made.transport = word_here();
      else if (is(key, "memory")) made.memory = memory_here();
      else if (is(key, "round_us")) made.parameters.round_us = json_.time();
      else if (is(key, "gap_us")) made.parameters.gap_us = json_.time();
      else if (is(key, "gap_us_per_byte")) made.parameters.gap_us_per_byte = json_.time();
      else if (is(key, "gamma_us_per_byte")) made.parameters.gamma_us_per_byte = json_.time();
      else refuse_key(key, "transport memory round_us gap_us gap_us_per_byte gamma_us_per_byte");
    });
    return made;
  }

  [[nodiscard]] word word_here() {
    char text[sizeof(word::text)];
    json_.string(text);
    return word(text);
  }

  [[nodiscard]] memory_kind memory_here() {
    char text[16];
    json_.string(text);
    for (memory_kind const kind : {memory_kind::any, memory_kind::unshared, memory_kind::symmetric})
      if (is(text, name(kind))) return kind;
    json_.refuse("the memory should be \"any\", \"private\" or \"symmetric\"");
  }

  [[noreturn]] void refuse_key(char const* key, char const* known) {
    message text;
    text.add("'%s' is not known here; say one of: %s", key, known);
    json_.refuse(text.text());
  }

  json_reader json_;
  tuning& into_;
  std::size_t rules_ = 0, models_ = 0;
};

}  // namespace detail

// The table that `text` describes; `origin` is what messages call it. Throws error (bad_argument) that
// names the line and what should stand there.
[[nodiscard]] COLLX_COLD inline tuning parse(char const* text, char const* origin) {
  tuning made;
  detail::table_reader counting(text, origin, made);
  counting.read();
  made.rules = array<rule>(counting.rules());
  made.models = array<fitted_model>(counting.models());
  made.file = array<char>(std::strlen(origin) + 1);
  std::memcpy(made.file.data(), origin, made.file.size());
  detail::table_reader(text, origin, made).read();
  return made;
}

// The same from a file.
[[nodiscard]] COLLX_COLD inline tuning load(char const* path) {
  array<char> const text = detail::text_of(path);
  return parse(text.data(), path);
}

}  // namespace collx::inline abi_1::tune
