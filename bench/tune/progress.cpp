// SPDX-License-Identifier: Apache-2.0
// Drawing on stderr, so that stdout keeps the results.
#include "progress.hpp"

#include <cstdio>

#include <unistd.h>

namespace tuning {

double progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

int progress::tenths() const { return total_ == 0 ? 10 : static_cast<int>(10 * done_ / total_); }

void progress::count(std::size_t more) {
  done_ += more;
  tenths_told_ = tenths();
}

void progress::step(std::string const& what) {
  ++done_;
  if (isatty(STDERR_FILENO) != 0) return draw(what);
  if (tenths() != tenths_told_) tell(what);
}

void progress::tell(std::string const& where) {
  tenths_told_ = tenths();
  std::fprintf(stderr, "%3d %%, %.0f s, at %s\n", 10 * tenths_told_, seconds(), where.c_str());
}

void progress::draw(std::string const& what) const {
  constexpr int width = 30;
  double const part = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
  std::string const bar(static_cast<std::size_t>(part * width), '#');
  double const made = static_cast<double>(done_ - skipped_);
  double const left_s = made > 0 ? seconds() / made * static_cast<double>(total_ - done_) : 0;
  std::fprintf(stderr, "\r[%-*s] %3.0f %%  %zu of at most %zu, up to %.0f s left  %-60.60s", width,
               bar.c_str(), 100 * part, done_, total_, left_s, what.c_str());
  std::fflush(stderr);
}

void progress::finish() {
  bool const is_drawn = isatty(STDERR_FILENO) != 0;
  // What is spared at the end takes no step.
  if (done_ == total_ && done_ != skipped_ && tenths() != tenths_told_) {
    if (is_drawn) draw("");
    else tell("the end");
  }
  if (is_drawn) std::fprintf(stderr, "\n");
}

}  // namespace tuning
