// SPDX-License-Identifier: Apache-2.0
// Least squares with four unknowns at most: every set of parameters that may be above zero is tried.
#include "fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "../perf/names.hpp"
#include "collx/tune/candidate.hpp"

namespace tuning {
namespace {

using collx::tune::factors;

constexpr std::size_t unknowns = 4;
using row = std::array<double, unknowns>;

struct sample {
  factors counts;
  std::size_t bytes = 0;
  double us = 0;
};

// What the unknowns are multiplied with in each model.
row hockney_row(sample const& s) {
  double const bytes = static_cast<double>(s.bytes);
  return {s.counts.rounds, s.counts.sent_blocks * bytes, s.counts.combined_blocks * bytes, 0};
}
row loggp_row(sample const& s) {
  double const bytes = static_cast<double>(s.bytes);
  return {s.counts.rounds, std::max(0.0, s.counts.messages - s.counts.rounds), s.counts.sent_blocks * bytes,
          s.counts.combined_blocks * bytes};
}

// Solves a x = b for the unknowns in `mask` by elimination with pivoting; the others are 0. False where
// the equations do not decide.
bool solve(std::array<row, unknowns> a, row b, unsigned mask, row& x) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < unknowns; ++i)
    if ((mask >> i & 1) != 0) used.push_back(i);
  for (std::size_t k = 0; k < used.size(); ++k) {
    std::size_t best = k;
    for (std::size_t r = k; r < used.size(); ++r)
      if (std::abs(a[used[r]][used[k]]) > std::abs(a[used[best]][used[k]])) best = r;
    if (std::abs(a[used[best]][used[k]]) < 1e-12) return false;
    std::swap(a[used[best]], a[used[k]]);
    std::swap(b[used[best]], b[used[k]]);
    for (std::size_t r = k + 1; r < used.size(); ++r) {
      double const part = a[used[r]][used[k]] / a[used[k]][used[k]];
      for (std::size_t const c : used) a[used[r]][c] -= part * a[used[k]][c];
      b[used[r]] -= part * b[used[k]];
    }
  }
  x = {};
  for (std::size_t k = used.size(); k-- > 0;) {
    double rest = b[used[k]];
    for (std::size_t c = k + 1; c < used.size(); ++c) rest -= a[used[k]][used[c]] * x[used[c]];
    x[used[k]] = rest / a[used[k]][used[k]];
  }
  return true;
}

template <class RowOf>
row least_squares(std::vector<sample> const& samples, RowOf const& row_of) {
  // Each column scaled to length 1: bytes and rounds are six powers of ten apart.
  row scale{};
  for (sample const& s : samples) {
    row const r = row_of(s);
    for (std::size_t i = 0; i < unknowns; ++i) scale[i] += r[i] / s.us * (r[i] / s.us);
  }
  for (double& each : scale) each = each > 0 ? std::sqrt(each) : 1;
  std::array<row, unknowns> a{};
  row b{};
  for (sample const& s : samples) {
    row r = row_of(s);
    for (std::size_t i = 0; i < unknowns; ++i) r[i] /= s.us * scale[i];
    for (std::size_t i = 0; i < unknowns; ++i) {
      b[i] += r[i];
      for (std::size_t j = 0; j < unknowns; ++j) a[i][j] += r[i] * r[j];
    }
  }
  row best{};
  double best_value = 0;  // of x' a x - 2 b' x: the squared error, but for what does not depend on x
  for (unsigned mask = 1; mask < 1U << unknowns; ++mask) {
    row x{};
    if (!solve(a, b, mask, x) || *std::min_element(x.begin(), x.end()) < 0) continue;
    double value = 0;
    for (std::size_t i = 0; i < unknowns; ++i) value -= b[i] * x[i];  // at a minimum a x = b
    if (value < best_value) best_value = value, best = x;
  }
  for (std::size_t i = 0; i < unknowns; ++i) best[i] /= scale[i];
  return best;
}

template <class Model>
error_of_model error_on(std::vector<sample> const& samples, Model const& model) {
  std::vector<double> off;
  for (sample const& s : samples) off.push_back(std::abs(model(s.counts, s.bytes) / s.us - 1));
  std::sort(off.begin(), off.end());
  return {off[off.size() / 2], off[off.size() * 9 / 10]};
}

// Every measured time with the counts of its schedule. A barrier moves no bytes, but has rounds.
std::vector<sample> samples_of(results const& measured, std::string const& transport,
                               std::string const& memory) {
  std::vector<sample> samples;
  for (auto const& each : measured) {
    auto const& cell = each.first;  // no structured binding: older compilers let no lambda capture one
    auto const& algorithms = each.second;
    if (cell.where.transport != transport || cell.where.memory != memory) continue;
    collx::for_each_schedule<collx::algo::all, perf::collectives>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          if (cell.collective != Contract::name) return;
          auto const found = algorithms.find(Algorithm::name);
          if (found == algorithms.end() || !(found->second > 0)) return;
          samples.push_back({collx::tune::factors_of<Schedule>(cell.where.ranks),
                             static_cast<std::size_t>(cell.block_bytes), found->second});
        });
  }
  return samples;
}

}  // namespace

collx::tune::memory_kind memory_of(std::string const& name) {
  using collx::tune::memory_kind;
  return name == "private"     ? memory_kind::unshared
         : name == "symmetric" ? memory_kind::symmetric
                               : memory_kind::any;
}

std::vector<fit> fit_models(results const& measured) {
  std::map<std::pair<std::string, std::string>, bool> kinds;
  for (auto const& [cell, algorithms] : measured) kinds[{cell.where.transport, cell.where.memory}] = true;
  std::vector<fit> fits;
  for (auto const& [kind, any] : kinds) {
    std::vector<sample> const samples = samples_of(measured, kind.first, kind.second);
    if (samples.empty()) continue;
    row const h = least_squares(samples, hockney_row), l = least_squares(samples, loggp_row);
    fit made{kind.first, kind.second, {h[0], h[1], h[2]}, {l[0], l[1], l[2], l[3]}, {}, {}, samples.size()};
    made.hockney_error = error_on(samples, made.hockney);
    made.loggp_error = error_on(samples, made.loggp);
    fits.push_back(made);
  }
  return fits;
}

}  // namespace tuning
