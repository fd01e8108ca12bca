// SPDX-License-Identifier: Apache-2.0
// Finds the words for a number that depends on the number of ranks: the first of a list of formulas
// that agrees with the number for every size asked. So a new algorithm needs no text of its own for
// the table of algorithms, and no text in it can be wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "collx/algo/power_of_two.hpp"

namespace tools {

// An exact fraction; equal if they are, reduced or not.
struct fraction {
  std::int64_t over = 0;
  std::int64_t under = 1;

  friend bool operator==(fraction a, fraction b) { return a.over * b.under == b.over * a.under; }
  friend bool operator<(fraction a, fraction b) { return a.over * b.under < b.over * a.under; }
};

struct formula {
  char const* text;
  fraction (*value)(std::int64_t n);
};

struct sample {
  std::int32_t size = 0;
  fraction value{};
};

inline std::int64_t floor_log2(std::int64_t n) {
  return collx::algo::detail::floor_log2(static_cast<std::int32_t>(n));
}
inline std::int64_t ceil_log2(std::int64_t n) {
  return collx::algo::detail::ceil_log2(static_cast<std::int32_t>(n));
}
// The largest power of four that is <= n; `q` in the texts.
inline std::int64_t below_by_four(std::int64_t n) { return std::int64_t{1} << floor_log2(n) / 2 * 2; }
inline std::int64_t ceil_log4(std::int64_t n) { return (ceil_log2(n) + 1) / 2; }
// The largest power of two that is <= n; `p` in the texts.
inline std::int64_t below(std::int64_t n) { return std::int64_t{1} << floor_log2(n); }

// The largest power of four below n; `t` in the texts. Requires n > 1.
inline std::int64_t four_below(std::int64_t n) { return std::int64_t{1} << (2 * (floor_log2(n - 1) / 2)); }

// The digits of x to a base: their sum (`s` in the texts, base of four), and how many are not 0.
inline std::int64_t digit_sum(std::int64_t x, std::int64_t base) {
  return x == 0 ? 0 : x % base + digit_sum(x / base, base);
}
inline std::int64_t digits_not_zero(std::int64_t x, std::int64_t base) {
  return x == 0 ? 0 : (x % base != 0) + digits_not_zero(x / base, base);
}
// Of all numbers below n; d(K) in the texts.
inline std::int64_t digits_below(std::int64_t n, std::int64_t base) {
  std::int64_t sum = 0;
  for (std::int64_t x = 1; x < n; ++x) sum += digits_not_zero(x, base);
  return sum;
}

// Messages of recursive multiplying by four, where n = f q, and where it is not.
inline std::int64_t multiplied_by_four(std::int64_t n) {
  std::int64_t const q = below_by_four(n), f = n / q;
  return 3 * floor_log2(q) / 2 + f + n % f + digit_sum(n / f, 4) - 2;
}

// The sum of min(2^i, r) over i < log2 p, with r = n - p: of guests' blocks, in doubling.
inline std::int64_t doubled_guests(std::int64_t n) {
  std::int64_t const p = below(n);
  std::int64_t sum = 0;
  for (std::int64_t width = 1; width < p; width *= 2) sum += width < n - p ? width : n - p;
  return sum;
}

// The same in swing (`g` in the texts), from its definition: which ranks' blocks meet in whose hands.
inline std::int64_t swung_guests(std::int64_t n) {
  std::int64_t const p = below(n), r = n - p;
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < r; ++rank) {
    std::vector<std::int64_t> held{rank};
    std::int64_t guests = 1;
    for (std::int64_t level = floor_log2(p) - 1; level > 0; --level) {
      std::int64_t const hop =
          (level % 2 == 0 ? 1 + (std::int64_t{2} << level) : 1 - (std::int64_t{2} << level)) / 3;
      std::vector<std::int64_t> both = held;
      for (std::int64_t const x : held) both.push_back(((x % 2 == 0 ? x + hop : x - hop) + 2 * p) % p);
      held = both;
      for (std::int64_t const x : held) guests += x < r;
    }
    most = guests > most ? guests : most;
  }
  return most;
}

// A number of rounds or messages.
inline std::vector<formula> const& round_formulas() {
  static std::vector<formula> const list{
      {"1", [](std::int64_t) { return fraction{1}; }},
      {"2", [](std::int64_t) { return fraction{2}; }},
      {"8", [](std::int64_t) { return fraction{8}; }},
      {"2, or 1 if n = 2", [](std::int64_t n) { return fraction{n == 2 ? 1 : 2}; }},
      {"16, or 8 if n = 2", [](std::int64_t n) { return fraction{n == 2 ? 8 : 16}; }},
      {"min(n, 4)", [](std::int64_t n) { return fraction{n < 4 ? n : 4}; }},
      {"3(n-1)", [](std::int64_t n) { return fraction{3 * (n - 1)}; }},
      {"⌈n/2⌉", [](std::int64_t n) { return fraction{(n + 1) / 2}; }},
      {"⌈n/2⌉, or 3 if n = 3", [](std::int64_t n) { return fraction{n == 3 ? 3 : (n + 1) / 2}; }},
      {"⌈log₂(n-1)⌉ + 1", [](std::int64_t n) { return fraction{ceil_log2(n - 1) + 1}; }},
      {"n-1", [](std::int64_t n) { return fraction{n - 1}; }},
      {"n", [](std::int64_t n) { return fraction{n}; }},
      {"2(n-1)", [](std::int64_t n) { return fraction{2 * (n - 1)}; }},
      {"n/2",
       [](std::int64_t n) {
         return fraction{n, 2};
       }},
      {"⌊n/2⌋", [](std::int64_t n) { return fraction{n / 2}; }},
      {"n-1 + ⌊n/2⌋", [](std::int64_t n) { return fraction{n - 1 + n / 2}; }},
      {"n-1, or n if n is odd", [](std::int64_t n) { return fraction{n - 1 + n % 2}; }},
      {"⌊log₂ n⌋", [](std::int64_t n) { return fraction{floor_log2(n)}; }},
      {"⌈log₂ n⌉", [](std::int64_t n) { return fraction{ceil_log2(n)}; }},
      {"2⌊log₂ n⌋", [](std::int64_t n) { return fraction{2 * floor_log2(n)}; }},
      {"2⌈log₂ n⌉", [](std::int64_t n) { return fraction{2 * ceil_log2(n)}; }},
      {"⌈log₄ n⌉", [](std::int64_t n) { return fraction{ceil_log4(n)}; }},
      {"2⌈log₄ n⌉", [](std::int64_t n) { return fraction{2 * ceil_log4(n)}; }},
      {"⌈log₂ n⌉ + n-1", [](std::int64_t n) { return fraction{ceil_log2(n) + n - 1}; }},
      {"⌈log₄ n⌉, or + 1 if 2q < n ≠ 3q",
       [](std::int64_t n) {
         std::int64_t const q = below_by_four(n);
         return fraction{ceil_log4(n) + (n > 2 * q && n != 3 * q)};
       }},
      {"⌈log₂ n⌉ + n-1", [](std::int64_t n) { return fraction{ceil_log2(n) + n - 1}; }},
      {"⌊log₂ n⌋ + 1, or 1 if n = 2",
       [](std::int64_t n) { return fraction{n == 2 ? 1 : floor_log2(n) + 1}; }},
      {"2⌈log₄ n⌉, or 2 less if n < 4t/3",
       [](std::int64_t n) { return fraction{2 * ceil_log4(n) - 2 * (3 * n < 4 * four_below(n))}; }},
      {"2⌊log₂ n⌋ - 1", [](std::int64_t n) { return fraction{2 * floor_log2(n) - 1}; }},
      {"⌊log₂ n⌋ + 2", [](std::int64_t n) { return fraction{floor_log2(n) + 2}; }},
      {"⌈log₂ n⌉ + 1", [](std::int64_t n) { return fraction{ceil_log2(n) + 1}; }},
      {"2⌊log₂ n⌋ + 2", [](std::int64_t n) { return fraction{2 * floor_log2(n) + 2}; }},
      {"⌊log₂ n⌋ + 1", [](std::int64_t n) { return fraction{floor_log2(n) + 1}; }},
      {"2⌊log₂ n⌋ + 1", [](std::int64_t n) { return fraction{2 * floor_log2(n) + 1}; }},
      {"½⌊log₂ n⌋(⌊log₂ n⌋ + 1)",
       [](std::int64_t n) {
         std::int64_t const levels = floor_log2(n);
         return fraction{levels * (levels + 1), 2};
       }},
      {"½(⌊log₂ n⌋ + 1)(⌊log₂ n⌋ + 2)",
       [](std::int64_t n) {
         std::int64_t const levels = floor_log2(n);
         return fraction{(levels + 1) * (levels + 2), 2};
       }},
      {"3 log₄ t + ⌈n/t⌉ - 1",
       [](std::int64_t n) {
         std::int64_t const t = four_below(n);
         return fraction{3 * floor_log2(t) / 2 + (n - 1) / t};
       }},
      {"3 log₄ q + f + n mod f + s(⌊n/f⌋) - 2",
       [](std::int64_t n) { return fraction{multiplied_by_four(n)}; }},
      {"⌊log₂ n⌋ + 1, or + 2 if r > 2⌈p/6⌉",
       [](std::int64_t n) {
         std::int64_t const p = below(n);
         return fraction{floor_log2(n) + 1 + (n - p > 2 * ((p + 5) / 6))};
       }},
      {"⌊log₂ n⌋ + 1, or + 2 if n > 3p/2",
       [](std::int64_t n) { return fraction{floor_log2(n) + 1 + (2 * n > 3 * below(n))}; }},
  };
  return list;
}

// A fraction or multiple of the vector's M bytes.
inline std::vector<formula> const& vector_formulas() {
  static std::vector<formula> const list{
      {"0", [](std::int64_t) { return fraction{0}; }},
      {"M", [](std::int64_t) { return fraction{1}; }},
      {"2 M", [](std::int64_t) { return fraction{2}; }},
      {"M/2",
       [](std::int64_t) {
         return fraction{1, 2};
       }},
      {"M/n",
       [](std::int64_t n) {
         return fraction{1, n};
       }},
      {"(n-1)/n M",
       [](std::int64_t n) {
         return fraction{n - 1, n};
       }},
      {"2(n-1)/n M",
       [](std::int64_t n) {
         return fraction{2 * (n - 1), n};
       }},
      {"(n-1) M", [](std::int64_t n) { return fraction{n - 1}; }},
      {"2(p-1)/p M",
       [](std::int64_t n) {
         return fraction{2 * (below(n) - 1), below(n)};
       }},
      {"(3/2 - 1/p) M",
       [](std::int64_t n) {
         return fraction{3 * below(n) - 2, 2 * below(n)};
       }},
      {"(n-1)/n M, or (3n-1)/2n M if n is odd, M if n = 3",
       [](std::int64_t n) {
         if (n == 3) return fraction{1};
         return n % 2 == 0 ? fraction{n - 1, n} : fraction{3 * n - 1, 2 * n};
       }},
      {"(n + p - 1 + Σ min(2ⁱ, r))/n M",
       [](std::int64_t n) {
         return fraction{n + below(n) - 1 + doubled_guests(n), n};
       }},
      {"(n + p - 1 + g)/n M",
       [](std::int64_t n) {
         return fraction{n + below(n) - 1 + swung_guests(n), n};
       }},
      {"d(2)/n M",
       [](std::int64_t n) {
         return fraction{digits_below(n, 2), n};
       }},
      {"d(4)/n M",
       [](std::int64_t n) {
         return fraction{digits_below(n, 4), n};
       }},
      {"(3 log₄ q + f + n mod f + s(⌊n/f⌋) - 2) M",
       [](std::int64_t n) { return fraction{multiplied_by_four(n)}; }},
      {"2(n-1) M", [](std::int64_t n) { return fraction{2 * (n - 1)}; }},
      {"⌈n/2⌉/n M",
       [](std::int64_t n) {
         return fraction{(n + 1) / 2, n};
       }},
      {"½⌈log₂ n⌉ M",
       [](std::int64_t n) {
         return fraction{ceil_log2(n), 2};
       }},
      {"⌊log₂ n⌋ M", [](std::int64_t n) { return fraction{floor_log2(n)}; }},
      {"⌈log₂ n⌉ M", [](std::int64_t n) { return fraction{ceil_log2(n)}; }},
      {"(⌈log₂(n-1)⌉ + 1) M", [](std::int64_t n) { return fraction{ceil_log2(n - 1) + 1}; }},
      {"2 M, or M if n = 2", [](std::int64_t n) { return fraction{n == 2 ? 1 : 2}; }},
      {"0, or M if n > 16", [](std::int64_t n) { return fraction{n > 16}; }},
      {"min(n, 4)/2 M",
       [](std::int64_t n) {
         return fraction{n < 4 ? n : 4, 2};
       }},
      {"p/n M",
       [](std::int64_t n) {
         return fraction{below(n), n};
       }},
      {"t/n M",
       [](std::int64_t n) {
         return fraction{four_below(n), n};
       }},
      {"(3 log₄ t + ⌈n/t⌉ - 1) M",
       [](std::int64_t n) {
         std::int64_t const t = four_below(n);
         return fraction{3 * floor_log2(t) / 2 + (n - 1) / t};
       }},
      {"(3 - 2/p) M",
       [](std::int64_t n) {
         return fraction{3 * below(n) - 2, below(n)};
       }},
  };
  return list;
}

inline std::string decimal(fraction f) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(f.over) / static_cast<double>(f.under));
  std::string digits = text;
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

// "⌊log₂ n⌋" -> "log₂ n"
inline std::string without_rounding(std::string text) {
  for (std::string const mark : {"⌊", "⌋", "⌈", "⌉"})
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.erase(at, mark.size());
  return text;
}

// The first formula that agrees with all samples, or nothing. Logarithms of powers of two are whole, to
// the base of two.
inline std::string match(std::vector<sample> const& samples, std::vector<formula> const& list) {
  bool powers = true;
  for (sample const& s : samples) powers = powers && collx::algo::detail::is_power_of_two(s.size);
  for (formula const& candidate : list) {
    bool agrees = true;
    for (sample const& s : samples) agrees = agrees && candidate.value(s.size) == s.value;
    if (!agrees) continue;
    bool const whole = powers && std::string(candidate.text).find("₄") == std::string::npos;
    return whole ? without_rounding(candidate.text) : candidate.text;
  }
  return {};
}

// In words, without regard to what kind of number a size is; the range, if no formula agrees.
inline std::string describe_alike(std::vector<sample> const& samples, std::vector<formula> const& list) {
  std::string const exact = match(samples, list);
  if (!exact.empty()) return exact;
  fraction least = samples.front().value;
  fraction most = least;
  for (sample const& s : samples) {
    least = s.value < least ? s.value : least;
    most = most < s.value ? s.value : most;
  }
  return decimal(least) + " to " + decimal(most) + (&list == &vector_formulas() ? " M" : "");
}

// The same, with powers of two and the other sizes apart if they need different words.
inline std::string describe(std::vector<sample> const& samples, std::vector<formula> const& list) {
  std::string const all = match(samples, list);
  if (!all.empty()) return all;
  std::vector<sample> powers;
  std::vector<sample> others;
  for (sample const& s : samples)
    (collx::algo::detail::is_power_of_two(s.size) ? powers : others).push_back(s);
  if (powers.empty() || others.empty()) return describe_alike(samples, list);
  return describe_alike(powers, list) + "; else " + describe_alike(others, list);
}

}  // namespace tools
