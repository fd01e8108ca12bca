// SPDX-License-Identifier: Apache-2.0
// What collx_perf says is wrong: nothing of what a collective must leave, and each element that differs. And
// where the buffers of its calls lie.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "../perf/buffers.hpp"
#include "../perf/reference.hpp"
#include "../perf/report.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
constexpr std::int64_t block = 7;

template <class Contract>
using reference = perf::reference<Contract, collx::sum_t, float>;

// The output of a rank as a collective leaves it: `value(i)` is element i.
template <class Contract, class Value>
void check(reference<Contract> const& of, Value const& value) {
  std::vector<float> output(static_cast<std::size_t>(of.output_count()));
  for (std::size_t i = 0; i < output.size(); ++i) output[i] = value(static_cast<std::int64_t>(i));
  CHECK(of.wrong(output) == 0);
  for (std::size_t const at : {std::size_t{0}, output.size() / 2, output.size() - 1}) {
    for (float const wrong : {output[at] + 1, -output[at], 0.0f, std::nanf("")}) {
      std::vector<float> spoiled = output;
      spoiled[at] = wrong;
      CHECK(of.wrong(spoiled) == 1);
    }
  }
  CHECK(of.wrong(std::vector<float>(output.size())) == static_cast<std::int64_t>(output.size()));
}

float given(std::int64_t index, rank_t rank) { return static_cast<float>(method_value(index, rank)); }

}  // namespace

TEST_CASE("every wrong element is counted, and no right one") {
  constexpr rank_t size = 3, rank = 1;
  check<collx::contract::all_reduce>({{rank, size, 0}, block},
                                     [](std::int64_t i) { return given(i, 0) + given(i, 1) + given(i, 2); });
  check<collx::contract::scan>({{rank, size, 0}, block},
                               [](std::int64_t i) { return given(i, 0) + given(i, 1); });
  check<collx::contract::reduce_scatter>({{rank, size, 0}, block}, [](std::int64_t i) {
    return given(rank * block + i, 0) + given(rank * block + i, 1) + given(rank * block + i, 2);
  });
  check<collx::contract::broadcast>({{rank, size, 2}, block}, [](std::int64_t i) { return given(i, 2); });
  check<collx::contract::all_gather>({{rank, size, 0}, block},
                                     [](std::int64_t i) { return given(i, static_cast<rank_t>(i / block)); });
}

TEST_CASE("of fresh inputs, only what was written last is right") {
  constexpr rank_t size = 3, rank = 1;
  constexpr std::int64_t last = 9;
  auto const stored = [](std::int64_t write, rank_t from) {
    return static_cast<float>(method_written(write, from));
  };
  check<collx::contract::all_reduce>({{rank, size, 0}, block, last}, [&](std::int64_t) {
    return stored(last, 0) + stored(last, 1) + stored(last, 2);
  });
  auto const gathered = [&](std::int64_t write) {
    return [&stored, write](std::int64_t i) { return stored(write, static_cast<rank_t>(i / block)); };
  };
  reference<collx::contract::all_gather> const of_gather{{rank, size, 0}, block, last};
  check<collx::contract::all_gather>(of_gather, gathered(last));
  for (std::int64_t const stale : {last - 1, last + 1}) {
    std::vector<float> output(static_cast<std::size_t>(size * block));
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = gathered(stale)(static_cast<std::int64_t>(i));
    CHECK(of_gather.wrong(output) == size * block);
  }
}

TEST_CASE("what an all_to_all of the bench takes is what the others gave") {
  constexpr rank_t size = 3;
  using of_rank = reference<collx::contract::all_to_all>;
  std::vector<std::vector<float>> inputs;
  for (rank_t r = 0; r < size; ++r) {
    inputs.emplace_back(static_cast<std::size_t>(size * block));
    of_rank{{r, size, 0}, block}.fill(inputs.back());
  }
  for (rank_t r = 0; r < size; ++r)
    check<collx::contract::all_to_all>({{r, size, 0}, block}, [&](std::int64_t i) {
      return inputs[static_cast<std::size_t>(i / block)][static_cast<std::size_t>(r * block + i % block)];
    });
}

TEST_CASE("what is wrong adds up over the rows, out of place and in place") {
  perf::options const asked;
  perf::report table(asked, {});
  perf::point const right{};
  perf::point wrong{};
  wrong.wrong = 2;
  perf::row row{};
  row.asked.collective = "all_reduce";
  auto const add = [&](std::optional<perf::point> const& out_of_place,
                       std::optional<perf::point> const& in_place) {
    row.out_of_place = out_of_place;
    row.in_place = in_place;
    table.add(row);
  };
  add(right, right);
  CHECK(table.wrong() == 0);
  add(wrong, right);
  add(right, wrong);
  add({}, wrong);
  CHECK(table.wrong() == 6);
}

TEST_CASE("buffers lie a cache line apart") {
  watched::on_threads(1, [](auto& world) {
    for (bool const symmetric : {false, true}) {
      perf::buffers<float, collx::transport::threads> const all(world, 4, 5, symmetric);
      for (std::int64_t slot = 0; slot < 4; ++slot) {
        if (all.at(slot).size() != 5) throw std::runtime_error("another size");
        if (all.at(slot).data() != all.at(0).data() + slot * method_alignment_bytes / 4)
          throw std::runtime_error("another place");
      }
    }
  });
}
