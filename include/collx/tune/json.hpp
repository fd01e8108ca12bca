// SPDX-License-Identifier: Apache-2.0
// Reads the JSON of tuning tables, value by value, into what the caller knows to expect. Strict: what is
// not understood is an error that names file and line. Strings may hold \" and \\, and no other escape.
#pragma once

#include <charconv>
#include <cmath>
#include <cstring>

#include "collx/core/error.hpp"
#include "collx/tune/message.hpp"

namespace collx::inline abi_1::tune {

class json_reader {
 public:
  // `text` ends with '\0' and stays where it is.
  json_reader(char const* text, char const* file)
      : begin_(text), at_(text), end_(text + std::strlen(text)), file_(file) {}

  // Calls f(key) for every member; f reads the value.
  template <class F>
  void object(F const& f) {
    walk('{', '}', [&] {
      char key[40];
      string(key);
      expect(':');
      f(static_cast<char const*>(key));
    });
  }

  // Calls f() for every element; f reads it.
  template <class F>
  void array(F const& f) {
    walk('[', ']', f);
  }

  template <std::size_t Room>
  void string(char (&to)[Room]) {
    expect('"');
    std::size_t used = 0;
    for (; *at_ != '"'; ++at_) {
      if (*at_ == '\0' || *at_ == '\n') refuse("a string does not end");
      if (*at_ == '\\') {
        ++at_;
        if (*at_ != '"' && *at_ != '\\') refuse("only \\\" and \\\\ may stand after a \\");
      }
      if (used + 1 == Room) refuse("a string is too long");
      to[used++] = *at_;
    }
    to[used] = '\0';
    ++at_;
  }

  [[nodiscard]] double number() {
    skip_space();
    // Not strtod(), to which a program's locale may say that decimals stand behind a comma.
    double value = 0;
    auto const read = std::from_chars(at_, end_, value);
    // "nan" is a number here, too: no time can be.
    if (read.ec != std::errc() || !std::isfinite(value)) refuse("a number should stand here");
    at_ = read.ptr;
    return value;
  }

  [[nodiscard]] double time() {
    double const value = number();
    if (value < 0) refuse("a time should stand here, 0 or more");
    return value;
  }

  // A whole number from `low` to `high`.
  [[nodiscard]] long long whole(long long low, long long high) {
    double const value = number();
    if (!(value >= static_cast<double>(low) && value <= static_cast<double>(high)) ||
        value != static_cast<double>(static_cast<long long>(value))) {
      message text;
      text.add("a whole number from %lld to %lld should stand here", low, high);
      refuse(text.text());
    }
    return static_cast<long long>(value);
  }

  void end() {
    skip_space();
    if (*at_ != '\0') refuse("something follows the end of the table");
  }

  [[noreturn]] COLLX_COLD void refuse(char const* what) const {
    int line = 1;
    for (char const* c = begin_; c < at_; ++c) line += *c == '\n';
    message text;
    text.add("%s, line %d: %s", file_, line, what);
    throw error(status::bad_argument, text.text());
  }

 private:
  template <class F>
  void walk(char open, char close, F const& f) {
    expect(open);
    if (next(close)) return;
    do f();
    while (next(','));
    expect(close);
  }

  void skip_space() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
  }

  bool next(char c) {
    skip_space();
    if (*at_ != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (next(c)) return;
    message text;
    text.add("'%c' should stand here", c);
    refuse(text.text());
  }

  char const* begin_;
  char const* at_;
  char const* end_;
  char const* file_;
};

}  // namespace collx::inline abi_1::tune
