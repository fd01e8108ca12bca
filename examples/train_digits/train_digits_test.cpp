// SPDX-License-Identifier: Apache-2.0
// What train_digits does with bad files and bad command lines, and the arithmetic that its equality
// of models rests on. Training itself is tested by running the program (examples/CMakeLists.txt).
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "options.hpp"
#include "report.hpp"

using namespace train_digits;

namespace {

// `count` valid lines.
std::string lines(std::size_t count) {
  std::string line;
  for (int i = 0; i < pixel_count; ++i) line += std::to_string(i % (pixel_max + 1)) + ",";
  line += "7\n";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += line;
  return text;
}

std::string refusal(std::string const& text, std::size_t expected) {
  try {
    (void)parse_digits(text, "some.csv", expected);
  } catch (data_error const& e) {
    return e.what();
  }
  return "accepted";
}

std::string refusal(std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "train_digits");
  try {
    (void)parse_options(static_cast<int>(arguments.size()), arguments.data());
  } catch (usage_error const& e) {
    return e.what();
  }
  return "accepted";
}

bool contains(std::string const& text, char const* part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the shipped data are 1797 images of ten digits, split the same way for the same seed") {
  std::vector<image> const images = load_digits(TRAIN_DIGITS_DATA);
  REQUIRE(images.size() == image_count);
  std::vector<int> of_digit(class_count);
  for (image const& i : images) ++of_digit[static_cast<std::size_t>(i.digit)];
  CHECK(of_digit == std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});

  digits const a = split(images, 360, 5);
  digits const b = split(images, 360, 5);
  CHECK(a.training.size() == 1437);
  CHECK(a.test.size() == 360);
  bool equal = true;
  for (std::size_t i = 0; i < a.test.size(); ++i) equal = equal && a.test[i].pixels == b.test[i].pixels;
  CHECK(equal);
}

TEST_CASE("a bad data file is refused with its line and what to do") {
  std::string const good = lines(3);
  CHECK(parse_digits(good, "some.csv", 3).size() == 3);
  CHECK(contains(refusal(good, 4), "some.csv:4: the file ends after 3 of 4 images"));
  CHECK(contains(refusal(good, 2), "some.csv:3: more than 2 images"));
  CHECK(contains(refusal("", 1), "ends after 0 of 1"));
  CHECK(contains(refusal(good.substr(0, good.size() - 1), 3),
                 "some.csv:3: the file ends in the middle of a line"));
  CHECK(contains(refusal("1,2,3\n", 1), "expected 65 values"));
  CHECK(contains(refusal("x" + good, 3), "some.csv:1: expected an integer, found 'x0'"));
  CHECK(contains(refusal("17" + good.substr(1), 3), "value 17 is outside 0..16"));
  CHECK(contains(refusal("-1" + good.substr(1), 3), "value -1 is outside 0..16"));
  CHECK(contains(refusal("99999999999" + good.substr(1), 3), "expected an integer"));
  CHECK(contains(refusal("1.5" + good.substr(1), 3), "separated by commas"));
  CHECK(contains(refusal("\n" + good, 4), "expected an integer, found ''"));

  std::string tail = lines(1);
  tail.replace(tail.size() - 2, 1, "10");
  CHECK(contains(refusal(tail, 1), "value 10 is outside 0..9"));
  tail.replace(tail.size() - 3, 2, "1,1");
  CHECK(contains(refusal(tail, 1), "behind the 65th value"));
  tail.replace(tail.size() - 4, 3, "1\r");
  CHECK(contains(refusal(tail, 1), "behind the 65th value"));
  CHECK(contains(refusal(good, 4), "git checkout"));

  CHECK_THROWS_WITH_AS((void)load_digits("/no/such/file.csv"),
                       "cannot open /no/such/file.csv: No such file or directory. Give the path of "
                       "examples/data/digits.csv with --data",
                       data_error);
  CHECK_THROWS_AS((void)load_digits("/tmp"), data_error);
}

TEST_CASE("a bad command line is refused with what to write instead") {
  CHECK(contains(refusal({"--ranks", "0"}), "--ranks wants a number from 1 to 128, not '0'"));
  CHECK(contains(refusal({"--ranks", "100000"}), "from 1 to 128"));
  CHECK(contains(refusal({"--ranks=2x"}), "not '2x'"));
  CHECK(contains(refusal({"--ranks"}), "--ranks wants a number"));
  CHECK(contains(refusal({"--data"}), "--data wants a value"));
  CHECK(contains(refusal({"--rank", "2"}), "unknown option '--rank'"));
  CHECK(contains(refusal({"--batch", "0"}), "from 1 to 1024"));
  CHECK(contains(refusal({"--learning-rate", "nan"}), "from 0 to 10"));
  CHECK(contains(refusal({"--require-accuracy", "101"}), "from 0 to 100"));
  CHECK(contains(refusal({"--seed", "-1"}), "not '-1'"));

  char const* const good[] = {"train_digits", "--ranks=3", "--reproducible", "--batch", "10"};
  options const o = parse_options(5, good);
  CHECK(o.ranks == 3);
  CHECK(o.reproducible);
  CHECK(o.training.batch == 10);
}

TEST_CASE("shares cover a batch once, whatever the number of ranks") {
  std::vector<image> const batch(64);
  for (std::size_t size = 1; size <= 70; ++size) {
    std::size_t covered = 0;
    for (std::size_t rank = 0; rank < size; ++rank) {
      std::span<image const> const mine = share(batch, rank, size);
      CHECK(mine.data() == batch.data() + covered);
      covered += mine.size();
    }
    CHECK(covered == batch.size());
  }
}

TEST_CASE("fixed-point sums have the same bits in any order, and clip what they cannot hold") {
  random_source random(7);
  std::vector<float> values(64);
  for (float& v : values) v = random.symmetric(3.0f);
  fixed_point forwards, backwards;
  double exact = 0.0;
  for (float v : values) fixed_point_sum::add(forwards, v), exact += v;
  for (std::size_t i = values.size(); i-- > 0;) fixed_point_sum::add(backwards, values[i]);
  CHECK(forwards.steps == backwards.steps);
  CHECK(fixed_point_sum::value(forwards) == doctest::Approx(exact));

  for (float v : {1e30f, std::numeric_limits<float>::infinity()}) {
    fixed_point sum;
    fixed_point_sum::add(sum, v);
    CHECK(fixed_point_sum::value(sum) == fixed_point_sum::value_max);
    fixed_point_sum::add(sum, -v);
    CHECK(sum.steps == 0);
  }
}

TEST_CASE("a model that differs from that of one rank by more than the sum promises is a failure") {
  outcome one;
  one.parameters = initial_parameters(3);
  one.same_on_every_rank = true;
  CHECK(print_comparison<fixed_point_sum>(one, one));
  CHECK(print_comparison<float_sum>(one, one));

  outcome last_bit = one;
  last_bit.parameters[7] = std::nextafter(one.parameters[7], 1.0f);
  CHECK_FALSE(print_comparison<fixed_point_sum>(last_bit, one));
  CHECK(print_comparison<float_sum>(last_bit, one));

  outcome another = one, diverse = one, no_number = one;
  another.parameters = initial_parameters(4);
  diverse.same_on_every_rank = false;
  no_number.parameters[7] = std::nanf("");
  for (outcome const* each : {&another, &diverse, &no_number}) {
    CHECK_FALSE(print_comparison<fixed_point_sum>(*each, one));
    CHECK_FALSE(print_comparison<float_sum>(*each, one));
  }
}

TEST_CASE("the gradient is the slope of the loss") {
  std::vector<image> const images = load_digits(TRAIN_DIGITS_DATA);
  std::vector<float> parameters = initial_parameters(3);
  std::vector<float> gradient(parameter_count, 0.0f);
  auto const loss_at = [&](std::size_t i, float change) {
    std::vector<float> changed = parameters;
    changed[i] += change;
    std::vector<float> ignored(parameter_count);
    return add_gradient(std::span<float const>(changed), images[0], std::span<float>(ignored),
                        &float_sum::add);
  };
  (void)add_gradient(std::span<float const>(parameters), images[0], std::span<float>(gradient),
                     &float_sum::add);
  for (std::size_t i = 0; i < parameter_count; i += 61) {
    float const slope = (loss_at(i, 1e-2f) - loss_at(i, -1e-2f)) / 2e-2f;
    CHECK(gradient[i] == doctest::Approx(slope).epsilon(0.02).scale(0.1));
  }
}
