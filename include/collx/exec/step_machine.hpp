// SPDX-License-Identifier: Apache-2.0
// Performs steps, one after the other, whatever schedule, element type and operator they belong to:
// all of an executor that need not be compiled again for each of them. Never allocates, never
// throws, never blocks.
#pragma once

#include "collx/device/cache_hint.hpp"
#include "collx/device/copy_cached.hpp"
#include "collx/device/cpu.hpp"
#include "collx/exec/operator_calls.hpp"
#include "collx/exec/sending.hpp"

namespace collx::inline abi_1::exec {

// The rule is the fused one that the verifier assumes: a step waits for all its messages and all
// its credits, then reads, combines, stores and sends at once.
template <class Endpoint>
class step_machine : public sending<Endpoint> {
  using base = sending<Endpoint>;

 public:
  // `map()` returns the memory_map; it is made where it stays.
  template <class Map>
  step_machine(Endpoint& endpoint, int lane, workspace& work, Map const& map, combine_function how,
               preparation const* prepare) noexcept
      : base(endpoint, lane, map), work_(work), combine_(how), prepare_(prepare) {
    endpoint_.begin(lane, memory_.output(), memory_.output_extent_bytes());
    if (COLLX_UNLIKELY(memory_.lets_post())) pushing<Endpoint>::offer(endpoint, lane, memory_);
  }

  void go_on_from(stopped_at const& at) noexcept {
    base::go_on_from(at);
    if (at.announced) phase_ = phase::receive;
  }

 protected:
  [[nodiscard]] memory_map const& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t fragment() const noexcept { return fragment_; }
  [[nodiscard]] std::int32_t step() const noexcept { return step_; }
  [[nodiscard]] bool in_fragment() const noexcept { return step_ < step_count_; }
  [[nodiscard]] bool in_call() const noexcept { return fragment_ < memory_.fragments(); }
  // Whether the user's buffers are his again.
  [[nodiscard]] bool drained() noexcept { return base::drained(lent_); }
  void step_count(std::int32_t count) noexcept { step_count_ = count; }

  void next_step() noexcept {
    ++step_;
    k_ = 0;
    staged_ = nullptr;
    fetches_ = false;
    waits_for_ = no_rank;
    phase_ = phase::begin;
  }

  // Returns whether the next one waits for another turn.
  bool next_fragment() noexcept {
    endpoint_.end_fragment(lane_);
    step_ = 0;
    ++fragment_;
    // A block that is lent is there with all its fragments: nothing else would end this turn.
    return (yields_ || COLLX_UNLIKELY(in_company_ && blocks_.holds())) && in_call();
  }

  // Does the current step, or as much of it as can be done without waiting (pending).
  status perform(primitive const& step, void const* op) noexcept {
    if (step.from.empty()) return originate(step, op);
    if (phase_ == phase::begin) {
      if constexpr (Endpoint::is_mapped) prepare_target(step);
      else announce(step);
      phase_ = phase::receive;
    }
    return step.reduce ? reduce(step, op) : relay(step, op);
  }

 private:
  using base::bytes_, base::endpoint_, base::fragment_, base::lane_, base::looks_, base::peer_bytes_;
  using base::k_, base::step_, base::step_count_, base::waits_for_, base::waits_for_message_, base::yields_;
  using base::blocks_, base::direct, base::find, base::forward, base::lend, base::lend_block, base::lent_;
  using base::in_company_, base::may_lend_block, base::shares_turns;
  using base::may_send, base::may_send_to_all, base::memory_, base::plan_forward, base::pushed_target;
  using base::pushes, base::pushes_to, base::rank, base::size, base::skips, base::stage, base::staged_;

  enum class phase : std::uint8_t { begin, receive, send, tell };  // tell: of what was stored already

  // Nothing to receive: store a local copy, send the operand; the k-th peer may get its own run.
  status originate(primitive const& step, void const* op) noexcept {
    bool const own = is_unprepared(step.operand);
    if (phase_ == phase::begin) {
      bool const spreads = COLLX_UNLIKELY(step.push && step.store && !own) &&
                           pushes().spread(step, find(step.operand, 0), work_.destinations.data());
      phase_ = spreads ? phase::tell : phase::send;
      if (step.store && !spreads) copy_locally(memory_, step, 0, fragment_);
      if (own && step.store) prepare_->region(memory_, step.target, 0, fragment_, prepare_->elements, op);
    }
    // What was stored is prepared; in place, it is the operand itself.
    region const& sent = own && step.store ? step.target : step.operand;
    for (; k_ < step.to.count; ++k_) {
      rank_t const peer = step.to.member(k_, size());
      if (peer == rank()) continue;
      if (blocks_.is_sent(step.to, k_)) continue;
      run const operand = find(sent, k_);
      if (skips(operand)) continue;
      if (!may_send(peer, operand.bytes)) return status::pending;
      if (COLLX_UNLIKELY((step.push && !own) || sent.count == 0))
        if (status const outcome =
                pushes_to(peer, operand.bytes).push(step, peer, operand, phase_ == phase::tell);
            outcome != status::not_supported) {
          if (outcome != status::ok) return outcome;
          continue;
        }
      if (COLLX_UNLIKELY(memory_.lends_blocks()) && !own && may_lend_block(operand, sent.where, step)) {
        lend_block(step.to, peer, operand, sent.where);
        continue;
      }
      if (!own && direct(operand, sent.where, step)) {
        lend(peer, operand);
        continue;
      }
      if (staged_ == nullptr || sent.per_peer != 0) {
        staged_ = nullptr;
        if (!stage(operand.bytes)) return status::pending;
        if (COLLX_LIKELY(operand.whole)) stage_copy(operand);
        else pack(memory_, sent, operand, fragment_, staged_);
        if (own && !step.store) prepare_->elements(staged_, operand.bytes, op);
      }
      endpoint_.send(lane_, peer, staged_, operand.bytes, transport::handover::staged);
    }
    return status::ok;
  }

  void stage_copy(run const& payload) noexcept {
    if constexpr (Endpoint::fetches)
      endpoint_.stage_copy(lane_, staged_, payload.data, payload.bytes, memory_.copying());
    else device::copy_cached(staged_, payload.data, payload.bytes);
  }

  // What schedules read from place::input is this rank's contribution as given: the verifier proves it.
  [[nodiscard]] bool is_unprepared(region const& r) const noexcept {
    return COLLX_UNLIKELY(prepare_ != nullptr) && r.where == place::input;
  }

  // Tells a message transport where each message of this step is wanted.
  void announce(primitive const& step) noexcept {
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, size());
      if (peer == rank()) continue;
      run const target = find(step.target, k);
      if (skips(target)) continue;
      bool const straight = !step.reduce && step.store && target.whole;
      endpoint_.expect(lane_, peer, straight ? target.data : nullptr, target.bytes);
    }
  }

  // The message is still on its way: have the lines of its result at hand when it comes.
  void prepare_target(primitive const& step) noexcept {
    if (!step.store || step.target.per_peer != 0 || memory_.in_place()) return;
    run const target = find(step.target, 0);
    if (target.whole && target.bytes <= prepared_bytes_max)
      device::prefetch_exclusive(target.data, target.bytes);
  }

  // Fan-in: every source in one pass, to the target, to peers' targets and to staging at once.
  status reduce(primitive const& step, void const* op) noexcept {
    run const target = find(step.target, 0);
    run const operand = find(step.operand, 0);
    for (; k_ < step.from.count; ++k_) {
      rank_t const peer = step.from.member(k_, size());
      std::byte const*& source = work_.sources[static_cast<std::size_t>(k_)];
      if (peer == rank()) {
        source = operand.data;
        continue;
      }
      transport::arrival message;
      if (status const outcome = receive(peer, target.bytes, message); outcome != status::ok) return outcome;
      source = message.data;
      if constexpr (Endpoint::fetches) {
        if (COLLX_LIKELY(source != nullptr)) continue;
        source = endpoint_.landing(k_, step.from.count);
        fetches_ = true;
      }
    }
    forward_plan plan;
    if (!step.to.empty()) {
      if (!may_send_to_all(step.to, target.bytes)) return status::pending;
      plan = plan_forward(step, target);
      if (plan.stages && !stage(target.bytes)) return status::pending;
    }
    bool const fetches = Endpoint::fetches && COLLX_UNLIKELY(fetches_);
    if constexpr (Endpoint::fetches)
      if (fetches) {
        auto const piecewise = [&](std::byte* to, std::size_t at, std::size_t bytes) noexcept {
          combine_piece(step, to, at, bytes, plan, op);
        };
        status const outcome = fetcher().combine(work_, step, operand, target, piecewise);
        if (outcome != status::ok) return outcome;
      }
    if (!fetches) combine(step, operand, target, plan, op);
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, size());
      if (peer != rank()) endpoint_.consume(lane_, peer);
    }
    return step.to.empty() ? status::ok : forward(step, target, plan);
  }

  // Messages that are results themselves: store each, and pass a single one on.
  status relay(primitive const& step, void const* op) noexcept {
    for (; k_ < step.from.count; ++k_) {
      rank_t const peer = step.from.member(k_, size());
      run const target = find(step.target, k_);
      if (peer == rank()) {
        if (step.store) copy_locally(memory_, step, k_, fragment_);
        if (step.store && is_unprepared(step.operand))
          prepare_->region(memory_, step.target, k_, fragment_, prepare_->elements, op);
        continue;
      }
      if (skips(target)) continue;
      if (blocks_.is_taken(step.from, k_)) continue;
      transport::arrival message;
      // One that is taken by parts lies there until the last of them.
      std::size_t const expected =
          blocks_.is_held(step.from, k_) ? memory_.find(step.target, k_, 0).bytes : target.bytes;
      if (status const outcome = receive(peer, expected, message); outcome != status::ok) return outcome;
      if (COLLX_UNLIKELY(memory_.moves_blocks())) {
        status const outcome = take_block(step, peer, target, message);
        if (outcome == status::ok) continue;
        if (outcome != status::not_supported) return outcome;
      }
      if (!may_send_to_all(step.to, target.bytes)) return status::pending;
      forward_plan const plan = plan_forward(step, target);
      if (plan.stages && !stage(target.bytes)) return status::pending;
      if constexpr (Endpoint::fetches)
        if (COLLX_UNLIKELY(message.data == nullptr)) {
          std::byte* const to = plan.stages ? staged_ : target.data;
          status const outcome = fetcher().take(peer, step, target, to);
          if (outcome != status::ok) return outcome;
          message.data = to;
        }
      if (plan.stages && message.data != staged_)
        device::copy_cached(staged_, message.data, target.bytes);
      // A message that was pushed, or received straight into place, already lies there.
      if (step.store && message.data != target.data) {
        // A result that goes on to others from here is read again at once: keep it in the cache.
        unpack(memory_, message.data, step.target, target, fragment_, memory_.streams() && !plan.in_place);
      }
      endpoint_.consume(lane_, peer);
      if (status const outcome = forward(step, target, plan); outcome != status::ok) return outcome;
    }
    return status::ok;
  }

  // Takes what a message is the begin of, if a block was lent. not_supported: none was.
  COLLX_NEVER_INLINE status take_block(primitive const& step, rank_t peer, run const& target,
                                       transport::arrival const& message) noexcept {
    std::size_t const bytes = blocks_.lent_bytes(endpoint_, lane_, peer);
    if (bytes == 0) return status::not_supported;
    // Ranks that call in different orders may lend blocks where others are in the middle of one, of which
    // they expect a fragment, which is less.
    bool const begins = fragment_ == 0 || blocks_.is_held(step.from, k_);
    std::size_t const expected =
        begins ? memory_.block_bytes(step.target.where, target.first) : target.bytes;
    if (bytes != expected) {
      waits_for_ = peer;
      bytes_ = expected;
      peer_bytes_ = bytes;
      return status::mismatch;
    }
    lent_part const part = blocks_.part(memory_, fragment_, target, bytes, !shares_turns());
    if (message.data != nullptr) {
      device::copy(part.to.data, message.data + part.at, part.to.bytes, memory_.streams());
    } else if constexpr (Endpoint::fetches) {
      status const outcome = fetcher().fetch(peer, part.at, part.to);
      if (outcome != status::ok) return outcome;
    } else {
      return status::not_supported;
    }
    if (blocks_.took(step.from, k_, part, bytes)) endpoint_.consume(lane_, peer);
    return status::ok;
  }

  // ---- receiving -------------------------------------------------------------------------------

  status receive(rank_t peer, std::size_t expected_bytes, transport::arrival& message) noexcept {
    for (std::uint32_t looks = looks_; !endpoint_.arrived(lane_, peer, message);
         device::cpu::pause_between_looks()) {
      if (COLLX_LIKELY(--looks != 0)) continue;
      waits_for_ = peer;
      waits_for_message_ = true;
      bytes_ = expected_bytes;
      return status::pending;
    }
    std::size_t sent_bytes = message.bytes;
    if (COLLX_LIKELY(sent_bytes == expected_bytes)) {
      if (COLLX_LIKELY(sent_bytes < lend_bytes_min)) return status::ok;
      std::size_t const block_bytes = bytes_of_strange_block(peer);
      if (COLLX_LIKELY(block_bytes == 0)) return status::ok;
      sent_bytes = block_bytes;
    }
    waits_for_ = peer;
    bytes_ = expected_bytes;
    peer_bytes_ = sent_bytes;
    return status::mismatch;
  }

  // Of a block that is lent whole to a rank that waits for something else, since ranks call in different
  // orders: its sender would take all of it for read, and neither side would hear of the rest. Else 0.
  [[nodiscard]] COLLX_NEVER_INLINE std::size_t bytes_of_strange_block(rank_t peer) const noexcept {
    return memory_.moves_blocks() ? 0 : blocks_.lent_bytes(endpoint_, lane_, peer);
  }

  // For messages without data.
  [[nodiscard]] fetching<Endpoint> fetcher() noexcept {
    return {endpoint_, lane_, memory_, fragment_, waits_for_, bytes_};
  }

  void combine(primitive const& step, run const& operand, run const& target, forward_plan const& plan,
               void const* op) noexcept {
    if (COLLX_LIKELY(target.whole && operand.whole))
      return combine_piece(step, target.data, 0, target.bytes, plan, op);
    combine_pieces(step, operand, target, plan, op);
  }

  // Messages are packed; the operand and the target lie chunk by chunk.
  COLLX_NEVER_INLINE void combine_pieces(primitive const& step, run const& operand, run const& target,
                                         forward_plan const& plan, void const* op) noexcept {
    std::int32_t self = 0;
    while (self < step.from.count && step.from.member(self, size()) != rank()) ++self;
    std::size_t done = 0;
    for (std::int32_t i = 0; i < step.target.count; ++i) {
      piece const result = memory_.chunk(target, step.target, i, fragment_);
      if (self < step.from.count)
        work_.sources[static_cast<std::size_t>(self)] =
            memory_.chunk(operand, step.operand, i, fragment_).data;
      combine_piece(step, result.data, done, result.bytes, plan, op);
      for (std::int32_t k = 0; k < step.from.count; ++k)
        if (k != self) work_.sources[static_cast<std::size_t>(k)] += result.bytes;
      done += result.bytes;
    }
  }

  void combine_piece(primitive const& step, std::byte* target, std::size_t staged_at, std::size_t bytes,
                     forward_plan const& plan, void const* op) noexcept {
    std::int32_t count = 0;
    std::byte** const destinations = work_.destinations.data();
    if (step.store) destinations[count++] = target;
    if (plan.pushes)
      for (std::int32_t k = 0; k < step.to.count; ++k)
        if (std::byte* const to = pushed_target(step, step.to.member(k, size())))
          destinations[count++] = to + staged_at;
    // A complete result is not read again soon; what is staged, lent or posted is, at once.
    bool const read_again = plan.in_place || plan.posts;
    std::int32_t const streamed = step.complete && memory_.streams() && !read_again ? count : 0;
    if (plan.stages) destinations[count++] = staged_ + staged_at;
    if (is_unprepared(step.operand)) {
      std::int32_t own = 0;
      while (own < step.from.count && step.from.member(own, size()) != rank()) ++own;
      return prepare_->combine({destinations, count, work_.sources.data(), step.from.count, own, bytes,
                                memory_.element_bytes(), op, step.complete, memory_.where().size, streamed},
                               combine_, prepare_->elements);
    }
    combine_(destinations, count, work_.sources.data(), step.from.count, bytes, op, step.complete,
             memory_.where().size, streamed);
  }

  // Results up to this size are fetched into the first-level cache before they are written.
  static constexpr std::size_t prepared_bytes_max = 4096;

  workspace& work_;
  combine_function combine_;
  preparation const* prepare_;
  phase phase_ = phase::begin;
  bool fetches_ = false;  // a source of this step's fan-in is without data
};

}  // namespace collx::inline abi_1::exec
