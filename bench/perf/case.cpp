// SPDX-License-Identifier: Apache-2.0
// One measurement on one transport and element type (COLLX_PERF_TRANSPORT, COLLX_PERF_TYPE):
// buffers, warm-up, timed batches, check. The build compiles this text once per pair.
#include "case.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "buffers.hpp"
#include "calls.hpp"
#include "collx/tune/selector.hpp"
#include "method.h"
#include "names.hpp"
#include "reference.hpp"
#include "timing.hpp"
#include "transports.hpp"

namespace perf {
namespace {

// Everything one measurement needs that depends on the collective.
template <class Contract, class Algorithm, class Op, class T, class Transport>
class measurement {
  using world_type = collx::communicator<Transport>;

 public:
  measurement(world_type& world, job const& asked)
      : world_(world),
        asked_(asked),
        reference_{{world.rank(), world.size(), asked.root}, blocks_of(world, asked)} {
    whole_count_ = reference_.block_count * (Contract::sharded ? world.size() : 1);
    in_count_ = asked.in_place || !one_block_in() ? whole_count_ : reference_.block_count;
    out_count_ = asked.in_place || !one_block_out() ? whole_count_ : reference_.block_count;
    std::int64_t each_bytes = method_stride_bytes(in_count_ * element_bytes);
    if (!asked.in_place) each_bytes += method_stride_bytes(out_count_ * element_bytes);
    std::int64_t const buffer_count = method_buffers(each_bytes, asked.pool_bytes);
    world.buffers(asked.symmetric ? collx::memory_kind::symmetric : collx::memory_kind::unshared);
    inputs_.emplace(world, buffer_count, in_count_, asked.symmetric);
    if (!asked.in_place) outputs_.emplace(world, buffer_count, out_count_, asked.symmetric);
    result_.bytes = whole_count_ * element_bytes;
    result_.count = reference_.block_count;
    result_.buffers = buffer_count;
    if (reference_.input_count() > 0) fresh_ = arguments_at(0).in;  // of a broadcast, only the root has one
  }

  // Timed on zeros: repeated in place, a sum of anything else would overflow. Fresh inputs are written anew.
  point run() {
    auto const call = [this](std::int64_t slot) { call_slot(slot); };
    if (asked_.fresh) {
      time_fresh_calls(world_, asked_, result_, [this] { write(); }, call);
    } else {
      time_calls(world_, asked_, result_, call);
    }
    if (!asked_.check || whole_count_ == 0) return result_;
    if (asked_.fresh) result_.wrong = total(world_, wrong_of_last_write());
    result_.wrong += total(world_, count_wrong());
    return result_;
  }

 private:
  static constexpr std::int64_t element_bytes = sizeof(T);
  static constexpr std::int64_t checked_slots = 4;

  // Of a sharded collective, which side holds one block and not one for every rank. Asked of a root,
  // which has both sides whatever the collective.
  static constexpr bool one_block_in() { return Contract::sharded && Contract::input({0, 2}).count == 1; }
  static constexpr bool one_block_out() { return Contract::sharded && Contract::output({0, 2}).count == 1; }

  static std::int64_t blocks_of(world_type& world, job const& asked) {
    if (std::is_same_v<Contract, collx::contract::barrier>) return 0;
    std::int64_t const unit_bytes = element_bytes * (Contract::sharded ? world.size() : 1);
    return (asked.bytes + unit_bytes - 1) / unit_bytes;
  }

  // The rank's own block of a whole vector.
  std::span<T> mine_of(std::span<T> whole) const {
    auto const block = static_cast<std::size_t>(reference_.block_count);
    return whole.subspan(static_cast<std::size_t>(world_.rank()) * block, block);
  }

  arguments<T> arguments_at(std::int64_t slot) const {
    std::span<T> const first = inputs_->at(slot);
    if (!asked_.in_place) return {first, outputs_->at(slot), asked_.root};
    return {one_block_in() ? mine_of(first) : first, one_block_out() ? mine_of(first) : first, asked_.root};
  }

  void call_slot(std::int64_t slot) {
    call<Contract>::template make<Algorithm>(world_, arguments_at(slot), Op{}, asked_.in_place);
  }

  void write() {
    auto const count = static_cast<std::int64_t>(fresh_.size());
    method_write(fresh_.data(), count, written<T, Op>(++writes_, world_.rank()));
  }

  // The last call that was timed must have seen what was written last.
  std::int64_t wrong_of_last_write() {
    reference_.write = writes_;
    std::int64_t const wrong_count = wrong_in(0);
    reference_.write = 0;
    return wrong_count;
  }

  std::int64_t count_wrong() {
    std::int64_t const slots = std::min(result_.buffers, checked_slots);
    for (std::int64_t slot = 0; slot < slots; ++slot) fill(slot);
    for (std::int64_t slot = 0; slot < slots; ++slot) call_slot(slot);
    std::int64_t wrong_count = 0;
    for (std::int64_t slot = 0; slot < slots; ++slot) wrong_count += wrong_in(slot);
    return wrong_count;
  }

  void fill(std::int64_t slot) {
    bool const holds_input = reference_.input_count() > 0;  // of a broadcast, only the root does
    if (holds_input) reference_.fill(arguments_at(slot).in);
  }

  std::int64_t wrong_in(std::int64_t slot) {
    bool const has_result = reference_.output_count() > 0;  // of a reduce, only the root does
    return has_result ? reference_.wrong(arguments_at(slot).out) : 0;
  }

  world_type& world_;
  job const& asked_;
  reference<Contract, Op, T> reference_;
  std::int64_t whole_count_ = 0, in_count_ = 0, out_count_ = 0;
  std::optional<buffers<T, Transport>> inputs_, outputs_;
  std::span<T> fresh_;  // what is written before each call
  std::int64_t writes_ = 0;
  point result_;
};

// From names to types, one name at a time. Nothing, where what is named was not compiled.
template <class Contract, class Op, class T, class Transport>
std::optional<point> run_algorithm(collx::communicator<Transport>& world, job const& asked) {
  if (asked.algorithm == "auto")
    return measurement<Contract, collx::automatic, Op, T, Transport>(world, asked).run();
  if (asked.algorithm == "selected")
    return measurement<Contract, collx::selected, Op, T, Transport>(world, asked).run();
  std::optional<point> result;
  collx::for_each_serving<algorithms_over<Transport>, Contract>([&]<class Algorithm, class, class>() {
    if (asked.algorithm == Algorithm::name)
      result = measurement<Contract, Algorithm, Op, T, Transport>(world, asked).run();
  });
  return result;
}

template <class Contract, class T, class Transport>
std::optional<point> run_collective(collx::communicator<Transport>& world, job const& asked) {
  if constexpr (Contract::from_all && !std::is_same_v<Contract, collx::contract::barrier>) {
    std::optional<point> result;
    operators::for_each([&]<class Op>() {
      if constexpr (has_meaning<Contract, Op>)
        if (asked.redop == Op::name) result = run_algorithm<Contract, Op, T>(world, asked);
    });
    return result;
  } else {
    return run_algorithm<Contract, collx::sum_t, T>(world, asked);
  }
}

}  // namespace

template <class T, class Transport>
point run_case(collx::communicator<Transport>& world, job const& asked) {
  std::optional<point> result;
  collectives::for_each([&]<class Contract>() {
    // A barrier moves no elements: of one type it is measured, with the others it is not compiled.
    constexpr bool typeless = std::is_same_v<Contract, collx::contract::barrier>;
    if constexpr (!typeless || std::is_same_v<T, first_of<types_over<Transport>>>)
      if (asked.collective == Contract::name) result = run_collective<Contract, T>(world, asked);
  });
  if (!result)
    throw std::logic_error("not compiled: " + asked.collective + ", operator " + asked.redop +
                           ", algorithm " + asked.algorithm);
  return *result;
}

template point run_case<COLLX_PERF_TYPE>(collx::communicator<COLLX_PERF_TRANSPORT>&, job const&);

}  // namespace perf
