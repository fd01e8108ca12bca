// SPDX-License-Identifier: Apache-2.0
// How failures are told to people: a fixed-size report filled on the data path without allocation,
// and the exception that set-up and blocking calls throw, built from it.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>

#include "collx/core/status.hpp"
#include "collx/core/text_writer.hpp"
#include "collx/core/types.hpp"

#if !defined(__cpp_exceptions)
#error "collx needs exceptions, also where you call the try_ forms alone: compile without -fno-exceptions"
#endif

namespace collx::inline abi_1 {

// Where a collective stood when it failed. Filled by the first failure of a communicator and kept. Ranks are
// the communicator's, or those of the one from which along() made it; what another rank said (`reported_by`,
// and `peer` then) is of the world.
struct failure_report {
  // What a kernel reports: the step alone (-1: none had begun), no time, and of bytes that were not what was
  // expected those that came.
  static constexpr std::int32_t step_count_unknown = -1;

  status code = status::ok;
  char const* collective = "";
  char const* algorithm = "";
  std::uint64_t sequence = 0;    // the number of this collective on its communicator, from 0
  rank_t rank = no_rank;         // who reports
  rank_t peer = no_rank;         // whom it waited for, or who failed
  std::int32_t step = -1;        // of the schedule
  std::int32_t step_count = 0;   // 0: the call had not begun; step_count_unknown
  std::uint64_t bytes = 0;       // of the message in question
  std::uint64_t peer_bytes = 0;  // with status::mismatch: what the peer sent
  std::uint64_t elapsed_us = 0;
  rank_t reported_by = no_rank;  // with status::aborted: the rank that gave up first
  // With status::mismatch found by comparing calls (checking_level::communication): in which
  // argument this rank's differs from the peer's, and both values.
  char const* differs_in = nullptr;
  char here[40] = {}, there[40] = {};
};

namespace detail {

[[nodiscard]] inline char const* advice(status code) noexcept {
  switch (code) {
    case status::timeout:
      return "check that every rank calls the same collectives in the same order and that the peer still "
             "runs; raise communicator::timeout_us, or COLLX_TIMEOUT_US, if it is only slow";
    case status::aborted:
      return "look at the first failing rank's message; this communicator cannot be used any more";
    case status::peer_lost:
      return "the process ended before its part was done; look at its own output, and, if it ended well, "
             "whether "
             "it made the same calls";
    case status::mismatch:
      return "pass the same count (where each pair has its own: as much as the peer sends), element type, "
             "operator, root and algorithm on every rank, in the same order of calls";
    case status::out_of_memory: return "the process has no memory left for the call; free some there";
    case status::system_failure:
      return "no descriptor is left for a connection with the peer (raise their limit, ulimit -n), or the "
             "system does not let this rank read the peer's buffer (pass ordinary memory, or set "
             "COLLX_SINGLE_COPY_BYTES=0 on every rank)";
    default: return "see docs/errors.md";
  }
}

// Messages between two ranks are waited for by these two alone.
[[nodiscard]] inline char const* advice(failure_report const& report) noexcept {
  if (report.code == status::timeout && std::strcmp(report.collective, "send") == 0)
    return "check that the peer receives the message and still runs; two ranks that both send first wait for "
           "each other: put their messages into an exchange (collx::exchange), which moves them at the same "
           "time; raise communicator::timeout_us, or COLLX_TIMEOUT_US, if it is only slow";
  return advice(report.code);
}

}  // namespace detail

// what() is a complete sentence that ends with what to do. Holds its text in place: throwing it
// allocates nothing beyond what the language runtime does.
class error : public std::exception {
 public:
  COLLX_COLD error(status code, char const* text) noexcept {
    report_.code = code;
    std::snprintf(text_, sizeof text_, "collx: %s", text);
  }

  COLLX_COLD explicit error(failure_report const& report) noexcept : report_(report) {
    text_writer out{text_, sizeof text_};
    if (report.code == status::ok) {
      out.add(
          "collx: nothing has failed on this communicator; what try_ refuses (bad argument, not supported), "
          "the same call without try_ says in words");
      return;
    }
    out.add("collx: %s<%s> #%llu on rank %d: %s", report.collective, report.algorithm,
            number(report.sequence), report.rank, name(report.code));
    if (report.peer != no_rank) out.add(", peer %d", report.peer);
    if (report.reported_by != no_rank)
      out.add(" (first reported by rank %d)", report.reported_by);
    if (report.differs_in != nullptr) {
      out.add(" was called with another %s: %s here, %s there; ", report.differs_in, report.here,
              report.there);
    } else {
      add_place(out, report);
    }
    out.add("%s", detail::advice(report));
  }

  [[nodiscard]] char const* what() const noexcept override { return text_; }
  [[nodiscard]] status code() const noexcept { return report_.code; }
  [[nodiscard]] failure_report const& report() const noexcept { return report_; }

 private:
  [[nodiscard]] static unsigned long long number(std::uint64_t n) noexcept { return n; }

  // Which step it was, how many bytes, and how long it took, as far as that is known.
  COLLX_COLD static void add_place(text_writer& out, failure_report const& report) noexcept {
    bool const by_kernel = report.step_count == failure_report::step_count_unknown;
    if (report.step_count == 0 || report.step < 0) {
      out.add(", before its first step");
    } else {
      out.add(", step %d", report.step);
      if (!by_kernel) out.add(" of %d", report.step_count);
      out.add(", %llu bytes", number(report.bytes));
      if (report.code == status::mismatch && by_kernel) out.add(" received and another number expected");
      else if (report.code == status::mismatch)
        out.add(" expected and %llu received", number(report.peer_bytes));
    }
    if (!by_kernel) out.add(", after %llu us", number(report.elapsed_us));
    out.add("; ");
  }

  failure_report report_{};
  char text_[640] = {};  // the longest message does not reach its end
};

// Throws an error whose text is put together as by printf.
[[noreturn]] COLLX_PRINTF(2, 3) COLLX_COLD inline void throw_error(status code, char const* format, ...) {
  char text[640];  // as much as an error holds
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw error(code, text);
}

}  // namespace collx::inline abi_1
