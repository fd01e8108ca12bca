// SPDX-License-Identifier: Apache-2.0
// Whether private payloads are staged, or lent for the system to copy them once, where the system's copy is
// slower than one of this process's. Then it depends on how quickly lines change hands: cores that share a
// cache pass them several times as quickly as cores that do not, ranks are moved between such, and the
// system's copy always takes the same. So whoever stages sees how long it takes.
#pragma once

#include "collx/core/clock.hpp"
#include "collx/core/config.hpp"
#include "collx/device/copy_cached.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/mapped/layout.hpp"

namespace collx::inline abi_1::transport::mapped {

// How long the system takes to copy a page, in ns, where it is slow at that; 0 where it is quick: then
// payloads are lent, whatever staging takes. In doubt, for which a busy second thread of the core is enough,
// staging need not be as slow to be given up, and nothing is lent that is staged where the system is quick.
struct system_page {
  double ns = 0;
  bool is_doubtful = false;
  bool is_crowded = false;  // ranks share processors
};

// One rank's, of one kind of payloads. Used by one thread at a time.
class staging_pace {
 public:
  // Shorter copies are not looked at.
  static constexpr std::size_t noted_bytes_min = 8 * 1024;
  // Of others one in so many, until one is slow: the clock is asked twice for each.
  static constexpr std::uint32_t noted_one_in = 4;
  // Slow and quick ones weigh against each other, so that it adds up where more than a quarter are slow: of
  // ranks that share processors, some peers are on this one's, where staging is always quick. So many slow
  // ones in a row, or thrice as many of which half are slow, are no accident; a quarter of that is, with
  // eight ranks on two processors.
  static constexpr int slow_weight = 3, quick_weight = 1;
  static constexpr int slow_in_a_row_max = 16;
  // Lent for so long, and so many questions, at least, before staging is tried again; longer each time that
  // it is found slow at once, so that trying costs a small share.
  static constexpr std::uint64_t patience_us_min = 50'000, patience_us_max = 6'400'000;
  static constexpr std::uint32_t questions_min = 512;

  // `ring_bytes`: what is staged goes round in so much memory, which is no peer's before the first round.
  COLLX_COLD void start(copying how, system_page page, std::size_t ring_bytes) noexcept {
    double const by_receivers = page.is_doubtful  ? by_receivers_in_doubt_max
                                : page.is_crowded ? by_receivers_crowded_max
                                                  : by_receivers_max;
    page_ns_max_ = page.ns * (how == copying::by_both ? by_both_max : by_receivers);
    warm_bytes_ = 2 * ring_bytes;
    is_doubtful_ = page.is_doubtful;
  }

  [[nodiscard]] bool lends() noexcept {
    if (COLLX_LIKELY(page_ns_max_ == 0)) return true;
    return lends_ && (++questions_ < questions_min || still_lends(now_us()));
  }

  // Payloads are lent because staging was found to be slow, where the system is slow at copying, too: lent
  // are smaller ones, then, and in more collectives. In doubt what is lent is what a quick system would be
  // lent.
  [[nodiscard]] bool is_slow() noexcept {
    return COLLX_UNLIKELY(page_ns_max_ != 0) && !is_doubtful_ && lends();
  }

  // Copies to staging memory that has been written before.
  void copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    if (COLLX_LIKELY(page_ns_max_ == 0 || bytes < noted_bytes_min || !is_noted(bytes))) {
      device::copy_cached(to, from, bytes);
      return;
    }
    std::uint64_t const begin_ns = now_ns();
    device::copy_cached(to, from, bytes);
    std::uint64_t const end_ns = now_ns();
    note(bytes, end_ns - begin_ns, end_ns / 1000);
  }

  // What copy() has found.
  void note(std::size_t bytes, std::uint64_t took_ns, std::uint64_t now_us) noexcept {
    staged_bytes_ += bytes;
    if (lends_ || staged_bytes_ < warm_bytes_) return;
    bool const slow = static_cast<double>(took_ns) * page_bytes > page_ns_max_ * static_cast<double>(bytes);
    slowness_ += slow ? slow_weight : -quick_weight;
    if (slowness_ < 0) slowness_ = 0;
    if (slowness_ >= slow_in_a_row_max * slow_weight) begin_to_lend(now_us);
  }
  [[nodiscard]] bool still_lends(std::uint64_t now_us) noexcept {
    if (now_us < until_us_) return true;
    lends_ = false;
    staged_bytes_ = 0;
    return false;
  }

 private:
  static constexpr double page_bytes = 4096;
  // A page of an all_gather is written by its sender and read by its receiver, or copied once; a reduction
  // reads it anyway. Measured (AMD EPYC): near cores write one in 0.3 to 0.6 of the system's time (third and
  // fourth generation), far ones in 1.5 to 2.5 (third) and 5.5 (fourth). Ranks that share processors also
  // take long for what no cache holds: with 1.25, all_to_alls of 2 MiB took 1.5 of their time (4 ranks on 2).
  static constexpr double by_receivers_max = 1.25, by_receivers_crowded_max = 2.5;
  static constexpr double by_receivers_in_doubt_max = 0.8;
  // Of a broadcast that both sides copy, the system's copy takes half of its time.
  static constexpr double by_both_max = 0.75;

  [[nodiscard]] bool is_noted(std::size_t bytes) noexcept {
    if (slowness_ != 0 || ++copies_ % noted_one_in == 0) return true;
    staged_bytes_ += bytes;
    return false;
  }

  COLLX_COLD void begin_to_lend(std::uint64_t now_us) noexcept {
    bool const again = tried_ && staged_bytes_ < 64 * warm_bytes_;
    patience_us_ = again ? 2 * patience_us_ : patience_us_min;
    if (patience_us_ > patience_us_max) patience_us_ = patience_us_max;
    until_us_ = now_us + patience_us_;
    tried_ = lends_ = true;
    questions_ = 0;
    slowness_ = 0;
  }

  double page_ns_max_ = 0;
  std::size_t warm_bytes_ = 0, staged_bytes_ = 0;  // since staging was begun with
  std::uint64_t until_us_ = 0, patience_us_ = patience_us_min;
  std::uint32_t questions_ = 0, copies_ = 0;
  int slowness_ = 0;
  bool lends_ = false, tried_ = false, is_doubtful_ = false;
};

// One rank's, of all its payloads.
class staging_paces {
 public:
  COLLX_COLD void start(system_page page, std::size_t ring_bytes) noexcept {
    of(copying::by_receivers).start(copying::by_receivers, page, ring_bytes);
    of(copying::by_both).start(copying::by_both, page, ring_bytes);
    ring_bytes_ = ring_bytes;
    has_started_ = true;
  }
  // Until then all payloads are lent that may be, and none is timed.
  [[nodiscard]] bool has_started() const noexcept { return has_started_; }

  [[nodiscard]] bool lends(copying how) noexcept { return of(how).lends() || is_slow(); }
  [[nodiscard]] bool is_slow() noexcept { return of(copying::by_receivers).is_slow(); }
  // The first round of a lane's memory takes pages from the system, and says nothing.
  void copy(int lane, std::byte* to, std::byte const* from, std::size_t bytes, copying how) noexcept {
    std::size_t& touched = touched_bytes_[lane];
    if (COLLX_LIKELY(touched >= ring_bytes_)) return of(how).copy(to, from, bytes);
    touched += bytes;
    device::copy_cached(to, from, bytes);
  }

 private:
  [[nodiscard]] staging_pace& of(copying how) noexcept { return each_[static_cast<int>(how)]; }

  staging_pace each_[2];
  std::size_t ring_bytes_ = 0, touched_bytes_[lane_count] = {};
  bool has_started_ = false;
};

}  // namespace collx::inline abi_1::transport::mapped
