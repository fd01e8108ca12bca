// SPDX-License-Identifier: Apache-2.0
// communicator::checking(communication): ranks compare what they call before they do it. A program
// that never asks for it never compiles it.
#pragma once

#include <cstring>

#include "collx/collective/all_gather.hpp"

namespace collx::inline abi_1 {

namespace detail {

// What the ranks compare. Fixed size, no pointers. Types have numbers; names are for people. Those of
// algorithms that are made of others are long, and begin alike (algo/composed_name.hpp).
struct agreement_record {
  char form[32], collective[32], op[32], algorithm[96], element[sizeof(exec::element_kind::name)];
  std::uint64_t element_type, element_bytes, op_type, count;
  std::int64_t root, inner;
};

template <std::size_t Size>
void copy_name(char (&to)[Size], char const* from) noexcept {
  std::snprintf(to, Size, "%s", from);
}

[[nodiscard]] inline agreement_record record_of(exec::call const& what) noexcept {
  agreement_record record{};
  copy_name(record.form, what.form);
  copy_name(record.collective, what.collective);
  copy_name(record.algorithm, what.algorithm);
  copy_name(record.op, what.op);
  copy_name(record.element, what.element_type->name);
  record.element_type = what.element_type->number;
  record.element_bytes = what.element_type->bytes;
  record.op_type = what.op_type;
  record.count = what.count;
  record.root = what.root;
  record.inner = what.at.where.inner;
  return record;
}

// Writes the first argument in which two calls differ, in the order in which they depend on each
// other; false if they agree.
// `root_is`: as in exec::call.
[[nodiscard]] inline bool differ(agreement_record const& mine, agreement_record const& theirs,
                                 char const* root_is, failure_report& report) noexcept {
  auto const names = [&](char const* argument, char const* here, char const* there) {
    report.differs_in = argument;
    // Where there is no room for one, both are shown from where they differ, if they do.
    std::size_t alike = 0;
    bool const is_long = std::strlen(here) >= sizeof report.here || std::strlen(there) >= sizeof report.there;
    if (is_long && std::strcmp(here, there) != 0)
      while (here[alike] == there[alike]) ++alike;
    char const* const cut = alike == 0 ? "" : "...";
    std::snprintf(report.here, sizeof report.here, "%s%s", cut, here + alike);
    std::snprintf(report.there, sizeof report.there, "%s%s", cut, there + alike);
    return true;
  };
  auto const numbers = [&](char const* argument, auto here, auto there) {
    report.differs_in = argument;
    std::snprintf(report.here, sizeof report.here, "%lld", static_cast<long long>(here));
    std::snprintf(report.there, sizeof report.there, "%lld", static_cast<long long>(there));
    return true;
  };
  if (std::strcmp(mine.collective, theirs.collective) != 0)
    return names("collective", mine.collective, theirs.collective);
  // Of another form, its messages would be in another lane, and nobody's.
  if (std::strcmp(mine.form, theirs.form) != 0) return names("form", mine.form, theirs.form);
  if (mine.count != theirs.count) return numbers("count", mine.count, theirs.count);
  if (mine.element_type != theirs.element_type || mine.element_bytes != theirs.element_bytes) {
    constexpr int name_length = sizeof mine.element - 1;
    char here[sizeof mine.element + 32], there[sizeof here];
    for (auto const& [text, of] : {std::pair{&here, &mine}, std::pair{&there, &theirs}})
      std::snprintf(*text, sizeof *text, "%.*s of %llu bytes", name_length, of->element,
                    static_cast<unsigned long long>(of->element_bytes));
    return names("element type", here, there);
  }
  if (mine.op_type != theirs.op_type) return names("operator", mine.op, theirs.op);
  if (mine.root != theirs.root) return numbers(root_is, mine.root, theirs.root);
  if (std::strcmp(mine.algorithm, theirs.algorithm) != 0)
    return names("algorithm", mine.algorithm, theirs.algorithm);
  // Algorithms of two levels lay out the ranks by it.
  if (mine.inner != theirs.inner) return numbers("ranks_per_group", mine.inner, theirs.inner);
  return false;
}

// `all`: room for the records of all ranks.
template <class Endpoint>
[[nodiscard]] status agree_in(agreement_record* all, exec::engine<Endpoint>& engine,
                              exec::call const& what) noexcept {
  auto const size = static_cast<std::size_t>(what.at.where.size);
  agreement_record const mine = record_of(what);
  invocation<contract::all_gather, agreement_record, unreduced> exchange{};
  exchange.input = &mine;
  exchange.output = all;
  exchange.count = 1;
  exchange.at = what.at;
  exec::scheduled_call call = scheduled(
      choice_of<algo::direct_one_shot, contract::all_gather, agreement_record, unreduced>(), exchange);
  call.what = what;
  status const outcome = engine.run_uncounted(call);
  if (outcome != status::ok) return outcome;
  for (std::size_t r = 0; r < size; ++r) {
    failure_report report = engine.report_for(what);
    if (!differ(mine, all[r], what.root_is, report)) continue;
    exec::cursor peer;
    peer.waits_for = what.at.along.rank_of(static_cast<rank_t>(r));
    // Nothing was lent. Who says that it gives up would keep slower peers from finding the same.
    engine.record(status::mismatch, report, peer, false);
    return status::mismatch;
  }
  return status::ok;
}

// Every rank learns every rank's record and finds the same disagreements, so all of them fail.
template <class Endpoint>
[[nodiscard]] status agree(exec::engine<Endpoint>& engine, exec::call const& what) noexcept {
  std::byte* memory = nullptr;
  try {
    memory = engine.memory().take(static_cast<std::size_t>(what.at.where.size) * sizeof(agreement_record));
  } catch (std::bad_alloc const&) {
    engine.record(status::out_of_memory, engine.report_for(what), {},
                  false);  // the others wait for this rank
    return status::out_of_memory;
  }
  status const outcome = agree_in(reinterpret_cast<agreement_record*>(memory), engine, what);
  engine.memory().give(memory);
  return outcome;
}

}  // namespace detail

template <class Transport>
void communicator<Transport>::checking(checking_level level) {
  engine_->checker(level == checking_level::communication ? &detail::agree<typename Transport::endpoint>
                                                          : nullptr);
}

}  // namespace collx::inline abi_1
