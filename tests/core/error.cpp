// SPDX-License-Identifier: Apache-2.0
// What errors say: every part of a report, advice for every status, and never more than its room.
#include "collx/core/error.hpp"

#include <cstring>
#include <string>

#include <doctest/doctest.h>

using collx::status;

namespace {

constexpr status all_statuses[] = {status::ok,
                                   status::pending,
                                   status::timeout,
                                   status::aborted,
                                   status::peer_lost,
                                   status::mismatch,
                                   status::bad_argument,
                                   status::out_of_memory,
                                   status::not_supported,
                                   status::system_failure};

collx::failure_report full_report(status code) {
  collx::failure_report report;
  report.code = code;
  report.collective = "all_reduce";
  report.algorithm = "ring";
  report.sequence = 12345678901;
  report.rank = 3;
  report.peer = 4;
  report.step = 5;
  report.step_count = 14;
  report.bytes = 1'000'000'007;
  report.peer_bytes = 999;
  report.elapsed_us = 30'000'001;
  return report;
}

bool holds(char const* text, char const* part) { return std::strstr(text, part) != nullptr; }

}  // namespace

TEST_CASE("a report names collective, algorithm, number, rank, peer, step, bytes, time and what to do") {
  collx::error const failure(full_report(status::timeout));
  CHECK(failure.code() == status::timeout);
  CHECK(failure.report().peer == 4);
  for (char const* part : {"collx: all_reduce<ring> #12345678901 on rank 3: timeout, peer 4", "step 5 of 14",
                           "1000000007 bytes", "after 30000001 us", "check that every rank calls the same"})
    CHECK_MESSAGE(holds(failure.what(), part), std::string(failure.what()) << " lacks " << part);
}

TEST_CASE("a lost peer may have ended well, after other calls") {
  CHECK(holds(collx::error(full_report(status::peer_lost)).what(),
              "and, if it ended well, whether it made the same calls"));
}

TEST_CASE("a mismatch names both byte counts, or both arguments") {
  CHECK(holds(collx::error(full_report(status::mismatch)).what(),
              "1000000007 bytes expected and 999 received"));
  // Of an all_to_all_v, or a message, no rank can pass what all others do.
  CHECK(holds(collx::error(full_report(status::mismatch)).what(), "as much as the peer sends"));
  collx::failure_report report = full_report(status::mismatch);
  report.differs_in = "root";
  std::strcpy(report.here, "1");
  std::strcpy(report.there, "2");
  CHECK(holds(collx::error(report).what(), "was called with another root: 1 here, 2 there"));
}

TEST_CASE("a call that had not begun has no step, and a kernel reports what one of its threads knew") {
  collx::failure_report report = full_report(status::timeout);
  report.step = 0, report.step_count = 0;
  collx::error const queued(report);
  CHECK(holds(queued.what(), "peer 4, before its first step, after 30000001 us; check"));

  report.step = 5, report.step_count = collx::failure_report::step_count_unknown;
  CHECK(holds(collx::error(report).what(), "peer 4, step 5, 1000000007 bytes; check"));
  report.code = status::mismatch;
  CHECK(holds(collx::error(report).what(),
              "step 5, 1000000007 bytes received and another number expected; pass the same"));
  report.code = status::aborted, report.step = -1;
  CHECK(holds(collx::error(report).what(), "peer 4, before its first step; look at the first"));
}

TEST_CASE("where nothing has failed, the text says where refusals are told") {
  CHECK(std::string(collx::error(collx::failure_report{}).what()) ==
        "collx: nothing has failed on this communicator; what try_ refuses (bad argument, not supported), "
        "the same call without try_ says in words");
}

TEST_CASE("an aborted rank names who gave up first, by his number in the world") {
  collx::failure_report report = full_report(status::aborted);
  report.reported_by = 7;
  CHECK(holds(collx::error(report).what(), "first reported by rank 7"));
  // Which may be this rank's in its communicator, and somebody else's.
  report.reported_by = report.rank;
  CHECK(holds(collx::error(report).what(), "first reported by rank"));
  report.reported_by = collx::no_rank;
  CHECK_FALSE(holds(collx::error(report).what(), "first reported"));
}

TEST_CASE("nobody is named where nobody is known") {
  collx::failure_report report = full_report(status::aborted);
  report.peer = collx::no_rank;
  CHECK_FALSE(holds(collx::error(report).what(), "peer"));
}

TEST_CASE("every status that a failure can have has an advice of its own") {
  std::pair<status, char const*> const known[] = {
      {status::timeout, "in the same order"},       {status::aborted, "first failing rank"},
      {status::peer_lost, "its own output"},        {status::mismatch, "the same count"},
      {status::out_of_memory, "memory left"},       {status::system_failure, "ulimit -n"},
      {status::bad_argument, "see docs/errors.md"},
  };
  for (auto const& [code, words] : known) CHECK(holds(collx::detail::advice(code), words));
}

TEST_CASE("every status has a name, and some advice") {
  for (status const code : all_statuses) {
    CHECK(std::strlen(collx::name(code)) > 1);
    CHECK(std::string(collx::name(code)) != "unknown status");
    CHECK(std::strlen(collx::detail::advice(code)) > 5);
    for (status const other : all_statuses)
      if (code != other) CHECK(std::string(collx::name(code)) != collx::name(other));
  }
  CHECK(std::string(collx::name(static_cast<status>(200))) == "unknown status");
}

TEST_CASE("a single message that nobody takes in time has an advice of its own") {
  collx::failure_report report = full_report(status::timeout);
  report.collective = "send";
  report.algorithm = "one message";
  for (char const* part : {"send<one message> #", "check that the peer receives", "collx::exchange",
                           "raise communicator::timeout_us"})
    CHECK_MESSAGE(holds(collx::error(report).what(), part), part);
  report.code = status::mismatch;
  CHECK_FALSE(holds(collx::error(report).what(), "exchange"));
}

TEST_CASE("texts that are too long are cut off, not written past the end") {
  std::string const endless(10'000, 'x');
  collx::error const plain(status::system_failure, endless.c_str());
  CHECK(std::strlen(plain.what()) < 700);
  CHECK(holds(plain.what(), "collx: xxx"));
  collx::failure_report report = full_report(status::timeout);
  report.collective = endless.c_str();
  CHECK(std::strlen(collx::error(report).what()) < 700);
  collx::error const copy = plain;
  CHECK(std::string(copy.what()) == plain.what());
}
