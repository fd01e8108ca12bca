// SPDX-License-Identifier: Apache-2.0
// The command line and the environment of train_digits. Refuses what it does not understand, and
// says what to write instead.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include <collx/bootstrap/launcher.hpp>

#include "trainer.hpp"

#ifndef TRAIN_DIGITS_DATA
#define TRAIN_DIGITS_DATA "examples/data/digits.csv"
#endif

namespace train_digits {

inline constexpr int rank_count_max = 128;
inline constexpr std::size_t batch_max = 1024;
static_assert(batch_max * fixed_point_sum::value_max * fixed_point_sum::steps_per_unit < 0x1p63f,
              "the sum of a batch must fit");

struct options {
  int ranks = 2;
  bool ranks_given = false;
  bool reproducible = false;
  bool help = false;
  std::string algorithm = "composed";
  std::string transport = "shm";
  std::string data = TRAIN_DIGITS_DATA;
  double required_accuracy = 95.0;  // percent
  plan training;
};

inline constexpr char const* usage =
    "usage: train_digits [options]\n"
    "  --ranks N             processes to start on this machine, 1 to 128 (default 2)\n"
    "  --reproducible        sum in fixed point: the same model, bit for bit, for any number of ranks\n"
    "  --algorithm NAME      schedule of the gradient all_reduce (default composed; a wrong name lists all)\n"
    "  --transport NAME      shm, or tcp where OpenSSL is installed (default shm)\n"
    "  --epochs N            passes over the training images, 1 to 10000 (default 30)\n"
    "  --batch N             images of one step over all ranks, 1 to 1024 (default 64)\n"
    "  --learning-rate X     0 to 10 (default 0.1)\n"
    "  --seed N              of the split, the first parameters and the order of images (default 1)\n"
    "  --require-accuracy P  exit with 1 below P percent right on the test images (default 95)\n"
    "  --data FILE           the images (default: examples/data/digits.csv of the sources)\n"
    "  --help                this text\n"
    "Started by a launcher (RANK and WORLD_SIZE, mpirun, srun, ...) it is one rank of that job.\n"
    "Exit status: 0 done; 1 accuracy or equality missed; 2 bad command line; 3 bad data;\n"
    "4 communication failed; 5 training diverged.\n";

struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

template <class Number>
Number number_in(std::string_view flag, std::string_view text, Number min, Number max) {
  Number value{};
  auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool const whole = failed == std::errc{} && end == text.data() + text.size();
  // `!(a && b)`, so that a NaN is refused.
  if (!whole || !(value >= min && value <= max)) {
    auto const print = [](Number n) {
      auto s = std::to_string(n);
      return s.substr(0, s.find('.'));
    };
    throw usage_error(std::string(flag) + " wants a number from " + print(min) + " to " + print(max) +
                      ", not '" + std::string(text) + "'");
  }
  return value;
}

inline void apply(options& o, std::string_view flag, std::string_view text) {
  if (flag == "--ranks") o.ranks = number_in(flag, text, 1, rank_count_max), o.ranks_given = true;
  else if (flag == "--algorithm") o.algorithm = text;
  else if (flag == "--transport") o.transport = text;
  else if (flag == "--epochs") o.training.epochs = number_in(flag, text, 1, 10000);
  else if (flag == "--batch") o.training.batch = number_in<std::size_t>(flag, text, 1, batch_max);
  else if (flag == "--learning-rate") o.training.learning_rate = number_in(flag, text, 0.0f, 10.0f);
  else if (flag == "--seed") o.training.seed = number_in<std::uint64_t>(flag, text, 0, UINT64_MAX);
  else if (flag == "--require-accuracy") o.required_accuracy = number_in(flag, text, 0.0, 100.0);
  else if (flag == "--data") o.data = text;
  else throw usage_error("unknown option '" + std::string(flag) + "'; --help lists them");
}

}  // namespace detail

// Both `--flag value` and `--flag=value`.
[[nodiscard]] inline options parse_options(int argc, char const* const* argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      o.help = true;
      continue;
    }
    if (flag == "--reproducible") {
      o.reproducible = true;
      continue;
    }
    std::size_t const equals = flag.find('=');
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = flag.substr(equals + 1);
      flag = flag.substr(0, equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      detail::apply(o, flag, "");  // an unknown flag is the likelier mistake
      throw usage_error(std::string(flag) + " wants a value");
    }
    detail::apply(o, flag, value);
  }
  return o;
}

// Otherwise this program starts its ranks itself.
[[nodiscard]] inline bool started_by_launcher() {
  return collx::bootstrap::launch::from_environment().by != nullptr;
}

}  // namespace train_digits
