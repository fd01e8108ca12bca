// SPDX-License-Identifier: Apache-2.0
// The words of PTX.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace emulated {

// One word after the other: a name, a number or an opcode with all that its dots join, a string with its
// quotes, or one other character. Empty at the end.
class tokens {
 public:
  explicit tokens(std::string_view text, std::int32_t line = 1) : text_(text), line_(line) { next(); }

  [[nodiscard]] std::string_view peek() const { return now_; }
  [[nodiscard]] std::int32_t line() const { return now_line_; }
  [[nodiscard]] bool at_end() const { return now_.empty(); }
  // Where the word that peek() shows begins.
  [[nodiscard]] std::size_t at() const { return static_cast<std::size_t>(now_.data() - text_.data()); }
  [[nodiscard]] std::string_view text() const { return text_; }

  std::string_view take() {
    std::string_view const word = now_;
    next();
    return word;
  }
  bool take_if(std::string_view word) {
    if (now_ != word) return false;
    next();
    return true;
  }
  void expect(std::string_view word) {
    if (!take_if(word)) fail("expected '" + std::string(word) + "' and found '" + std::string(now_) + "'");
  }
  [[noreturn]] void fail(std::string const& what) const {
    throw std::runtime_error("PTX line " + std::to_string(now_line_) + ": " + what);
  }

 private:
  [[nodiscard]] static bool is_part(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
  }

  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') ++line_, ++at_;
      else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      else if (text_.substr(at_, 2) == "//") at_ = std::min(text_.find('\n', at_), text_.size());
      else if (text_.substr(at_, 2) == "/*") at_ = std::min(text_.find("*/", at_), text_.size() - 2) + 2;
      else return;
    }
  }

  void next() {
    skip();
    now_line_ = line_;
    std::size_t const begin = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      at_ = text_.find('"', at_ + 1);
      if (at_ == std::string_view::npos) at_ = text_.size() - 1;
      ++at_;
    } else if (at_ < text_.size() && is_part(text_[at_])) {
      while (at_ < text_.size() && (is_part(text_[at_]) || text_.substr(at_, 2) == "::"))
        at_ += is_part(text_[at_]) ? 1 : 2;
    } else if (at_ < text_.size()) {
      ++at_;
    }
    now_ = text_.substr(begin, at_ - begin);
  }

  std::string_view text_, now_;
  std::size_t at_ = 0;
  std::int32_t line_, now_line_ = 1;
};

}  // namespace emulated
