// SPDX-License-Identifier: Apache-2.0
// The steps of a call whose messages all fit a letter, or are staged or lent as one fragment, as far as they
// can be done at once: what the step machine would do, without all that such a call does not need (fragments,
// blocks lent whole, fetching, pushing). The schedule's first steps are evaluated when compiling, as far as
// they do not depend on the ranks. It keeps no state: where it cannot go on, or does not know how, it says
// how far it came, and the machine goes on from there. An endpoint that has none has no short_bytes().
#pragma once

#include "collx/device/copy_few.hpp"
#include "collx/device/cpu.hpp"
#include "collx/exec/host_executor.hpp"
#include "collx/exec/lending.hpp"

namespace collx::inline abi_1::exec {

namespace detail {

// Steps that a short call is compiled for. A longer schedule gains nothing: its messages follow each other.
inline constexpr std::int32_t short_steps = 2;

// Whether no step of one rank both takes and sends, and there are but few.
template <schedule S>
[[nodiscard]] consteval bool is_short_for(problem p) {
  if (S::step_count(p) > short_steps || scratch_chunks<S>(p.shape()) != 0) return false;
  for (std::int32_t i = 0; i < S::step_count(p); ++i)
    if (primitive const step = S::step(p, i); !step.from.empty() && !step.to.empty()) return false;
  return true;
}

// Decides what is compiled, not what is right, so that a sample will do.
template <schedule S>
[[nodiscard]] consteval bool is_short() {
  for (rank_t const size : {2, 7})
    for (rank_t rank = 0; rank < size; ++rank)
      if (!supports<S>(shape(size)) || !is_short_for<S>({rank, size, 0})) return false;
  return true;
}

// What a step may do, of a rooted contract's root or of all others: what is found for a sample of ranks is
// compiled, and all else is left to the machine.
struct short_kinds {
  bool originates = false, reduces = false, takes = false;
};

template <schedule S, std::int32_t Index, bool AtRoot>
[[nodiscard]] consteval short_kinds kinds_of() {
  short_kinds found;
  for (rank_t const size : {2, 7})
    for (rank_t rank = 0; rank < size; ++rank) {
      problem const p{rank, size, 0};
      if ((S::contract::rooted && (rank == 0) != AtRoot) || Index >= S::step_count(p)) continue;
      primitive const step = S::step(p, Index);
      (step.from.empty() ? found.originates : step.reduce ? found.reduces : found.takes) = true;
    }
  return found;
}

}  // namespace detail

// Whether calls with this schedule are compiled as short ones too.
template <schedule S, class T, class Op, class Endpoint>
inline constexpr bool may_be_short = [] {
  if constexpr (requires(Endpoint const& e) { e.short_bytes(); })
    return detail::is_short<S>() && !(S::contract::from_all && prepares<Op, T>);
  else return false;
}();

// Messages beyond a letter that short calls stage or lend: up to there it shows that an executor takes longer
// to make.
inline constexpr std::size_t short_staged_bytes = 16384;

// Whether nobody's executor would cut blocks of so many bytes in fragments, which one rank's short call does
// not, and another one's executor would. Executors cut by largest_staged(), and this asks the same; but where
// the documented cost, which bounds that, is a chunk for each rank at most, nothing is looked up: so it is of
// the direct schedules, whose formulas a compiler compares with the size.
template <schedule S, class Endpoint>
[[nodiscard]] bool stays_whole(Endpoint const& endpoint, problem const& p, std::size_t block_bytes) noexcept {
  COLLX_ASSUME(p.size >= 1);
  if (COLLX_UNLIKELY(documented_cost<S>(p.shape()).chunks > p.size))
    return geometry::stays_whole(block_bytes, 1, static_cast<std::size_t>(largest_staged<S>(p.shape())),
                                 endpoint.staging_bytes());
  return geometry::stays_whole(block_bytes, 1, static_cast<std::size_t>(p.size), endpoint.staging_bytes());
}

// One call. `block_bytes`: of each of the contract's blocks, endpoint.short_bytes() at most; or, if it
// `stages`, more than that, and at most short_staged_bytes. Of both, such that stays_whole(). Whether it
// stages is known when compiling, and is an argument all the same: without optimisation, both kinds are then
// compiled once.
template <schedule S, class T, class Op, class Endpoint>
class short_call {
  using contract = typename S::contract;

 public:
  short_call(Endpoint& endpoint, workspace& work, problem const& where, T const* input, T* output,
             std::size_t block_bytes, Op const& op, std::uint32_t looks, bool stages, bool in_place) noexcept
      : endpoint_(endpoint),
        work_(work),
        where_(where),
        input_(reinterpret_cast<std::byte const*>(input)),
        output_(reinterpret_cast<std::byte*>(output)),
        block_bytes_(block_bytes),
        op_(op),
        looks_(looks),
        stages_(stages),
        in_place_(in_place) {}

  // Everything inlined: a primitive of which all is known but the ranks never exists in memory.
  [[nodiscard]] COLLX_ALWAYS_INLINE stopped_at run() noexcept {
    static_assert(detail::short_steps == 2);
    shape const n = where_.shape();
    std::int32_t const count = S::step_count(where_);
    if (chunk_count<S>(n) != contract::blocks(where_.size) || scratch_chunks<S>(n) != 0 ||
        count > detail::short_steps)
      return {0, 0};
    // Nobody is told where the output is: whoever stores there has an executor.
    if (stages_) endpoint_.begin(lane, nullptr);
    if (count > 0)
      if (std::int32_t const peers = perform<0>(); COLLX_UNLIKELY(peers != all_peers))
        return {0, peers, lent_, announced_};
    if (count > 1)
      if (std::int32_t const peers = perform<1>(); COLLX_UNLIKELY(peers != all_peers))
        return {1, peers, lent_, announced_};
    if ((lent_ || finishes_sends<Endpoint>) && COLLX_UNLIKELY(!drained())) return {count, 0, lent_};
    if (stages_) endpoint_.end_fragment(lane);
    return {stopped_at::at_the_end, 0};
  }

 private:
  static constexpr int lane = 0;
  static constexpr std::int32_t all_peers = -1;
  // Beyond, it pays to find out which vectors there are.
  static constexpr std::size_t few_bytes_max = 256;

  // This and what it calls return how many peers of the step are done.
  template <std::int32_t Index>
  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t perform() noexcept {
    // The root's steps and the others' are compiled apart, and so each as one that is known.
    if constexpr (contract::rooted)
      if (where_.rank == where_.root)
        return perform<detail::kinds_of<S, Index, true>()>(
            S::step({where_.rank, where_.size, where_.rank, where_.inner}, Index));
    return perform<detail::kinds_of<S, Index, false>()>(S::step(where_, Index));
  }

  template <detail::short_kinds Kinds>
  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t perform(primitive const& step) noexcept {
    if (!is_plain(step.from) || !is_plain(step.to)) return 0;
    if (step.from.empty()) {
      if constexpr (Kinds.originates) return originate(step);
    } else if (step.to.empty() && is_plain(step.target, step.from.count)) {
      if constexpr (Kinds.reduces)
        if (step.reduce) return reduce(step);
      if constexpr (Kinds.takes)
        if (!step.reduce) return take(step);
    }
    return 0;
  }

  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t originate(primitive const& step) noexcept {
    if (!is_plain(step.operand, step.to.count)) return 0;
    if (step.store) copy(find_target(step.target, 0), find(step.operand, 0));
    staged_from_ = nullptr;
    copies_ = stages_ && is_rewritten(step);
    rank_t peer = step.to.first;
    for (std::int32_t k = 0; k < step.to.count; ++k, peer = next(step.to, peer)) {
      if (peer == where_.rank) continue;
      if (COLLX_UNLIKELY(!endpoint_.can_send(lane, peer))) return k;
      std::byte const* const payload = find(step.operand, k);
      if (!stages_) endpoint_.send(lane, peer, payload, block_bytes_, transport::handover::in_place);
      else if (!send_elsewhere(peer, payload, step)) return k;
    }
    return all_peers;
  }

  [[nodiscard]] std::size_t lent_from(primitive const& step) const noexcept {
    return lent_from_short_calls<Endpoint>(contract::rooted && step.operand.per_peer == 0,
                                           where_.size == 2 && asks_for_rewriting());
  }

  // Whether the program writes before each call what would be lent. Asked once, of all that there is to send.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool asks_for_rewriting() const noexcept {
    return !contract::rooted && Endpoint::is_mapped && !in_place_;
  }
  [[nodiscard]] COLLX_ALWAYS_INLINE bool is_rewritten(primitive const& step) const noexcept {
    if (!asks_for_rewriting() || block_bytes_ < lent_from(step) || block_bytes_ >= short_staged_bytes ||
        !endpoint_.reachable(input_, block_bytes_))
      return false;
    return work_.inputs.is_rewritten(input_,
                                     static_cast<std::size_t>(contract::input(where_).count) * block_bytes_);
  }

  [[nodiscard]] COLLX_ALWAYS_INLINE bool may_be_lent(std::byte const* payload,
                                                     primitive const& step) const noexcept {
    bool const stays = stays_there(step, step.operand.where, in_place_);
    return stays && !copies_ && block_bytes_ >= lent_from(step) && endpoint_.reachable(payload, block_bytes_);
  }

  // Those for which it may count what the machine takes into account: whether the output is used again, which
  // makes a payload worth four times as much; and how quickly they are staged.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool is_long() const noexcept {
    if constexpr (Endpoint::fetches) return block_bytes_ > Endpoint::timed_copy_bytes_min;
    else return false;
  }

  // What peers fetch is worth an executor.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool may_be_fetched(std::byte const* payload) const noexcept {
    if constexpr (Endpoint::fetches)
      return endpoint_.fetchable(payload, block_bytes_, is_long() ? 4 * block_bytes_ : block_bytes_);
    else return false;
  }

  // Inlined, as what it calls: a call would let `this` escape, and then stages_ is no constant any more.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool send_elsewhere(rank_t peer, std::byte const* payload,
                                                        primitive const& step) noexcept {
    if (payload != staged_from_) {
      if (may_be_lent(payload, step)) {
        endpoint_.send(lane, peer, payload, block_bytes_, transport::handover::in_place);
        return lent_ = true;
      }
      if (!copies_ && may_be_fetched(payload)) return false;
      staged_ = endpoint_.stage(lane, block_bytes_);
      if (staged_ == nullptr) return false;
      stage_copy(payload);
      staged_from_ = payload;
    }
    endpoint_.send(lane, peer, staged_, block_bytes_, transport::handover::staged);
    return true;
  }

  // Long ones are timed, where it depends on that whether the next are fetched instead.
  COLLX_ALWAYS_INLINE void stage_copy(std::byte const* payload) noexcept {
    if constexpr (Endpoint::fetches)
      if (is_long())
        return endpoint_.stage_copy(lane, staged_, payload, block_bytes_, transport::copying::by_receivers);
    device::copy(staged_, payload, block_bytes_, false);
  }

  // Whether everybody has read what was lent.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool drained() noexcept {
    for (std::uint32_t looks = looks_; endpoint_.unread_by(lane) != no_rank; before_next_look())
      if (COLLX_UNLIKELY(--looks == 0)) return false;
    return true;
  }

  // Bytes that come over a connection must be taken from it.
  COLLX_ALWAYS_INLINE void before_next_look() noexcept {
    if constexpr (Endpoint::is_mapped) device::cpu::pause_between_looks(!contract::rooted && !stages_);
    else endpoint_.progress();
  }

  // Where each message of this step is wanted, said once: the machine, if it goes on from here, says nothing.
  COLLX_ALWAYS_INLINE void announce(primitive const& step) noexcept {
    if constexpr (!Endpoint::is_mapped) {
      rank_t peer = step.from.first;
      for (std::int32_t k = 0; k < step.from.count; ++k, peer = next(step.from, peer)) {
        if (peer == where_.rank) continue;
        bool const straight = !step.reduce && step.store;
        endpoint_.expect(lane, peer, straight ? find_target(step.target, k) : nullptr, block_bytes_);
      }
      announced_ = true;
    }
  }

  // Every source in one pass. Nothing is consumed before all are there, so there is nothing to go on from.
  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t reduce(primitive const& step) noexcept {
    if (!step.store) return 0;
    announce(step);
    std::byte const** const sources = work_.sources.data();
    rank_t peer = step.from.first;
    for (std::int32_t k = 0; k < step.from.count; ++k, peer = next(step.from, peer)) {
      transport::arrival message{find(step.operand, 0), block_bytes_};
      if (peer != where_.rank && !arrived(peer, message)) return 0;
      sources[k] = message.data;
    }
    std::byte* const target = find_target(step.target, 0);
    combine(target, sources, step.from.count, step.complete);
    peer = step.from.first;
    for (std::int32_t k = 0; k < step.from.count; ++k, peer = next(step.from, peer))
      if (peer != where_.rank) consume(peer);
    announced_ = false;
    return all_peers;
  }

  COLLX_ALWAYS_INLINE void combine(std::byte* target, std::byte const* const* sources, std::int32_t count,
                                   bool complete) const noexcept {
    if constexpr (contract::from_all && !erased<Op>)
      if (!stages_ && COLLX_LIKELY(count == 2 && block_bytes_ <= few_bytes_max))
        if (device::combine_few(reinterpret_cast<T*>(target), reinterpret_cast<T const*>(sources[0]),
                                reinterpret_cast<T const*>(sources[1]), block_bytes_ / sizeof(T), op_,
                                complete, where_.size))
          return;
    if constexpr (contract::from_all) {
      constexpr combine_function how = detail::combine_for<contract, T, Op>();
      how(&target, 1, sources, count, block_bytes_, &op_, complete, where_.size, 0);
    }
  }

  // Messages that are results themselves.
  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t take(primitive const& step) noexcept {
    announce(step);
    rank_t peer = step.from.first;
    for (std::int32_t k = 0; k < step.from.count; ++k, peer = next(step.from, peer)) {
      std::byte* const target = find_target(step.target, k);
      if (peer == where_.rank) {
        if (step.store) copy(target, find(step.operand, 0));
        continue;
      }
      transport::arrival message;
      if (!arrived(peer, message)) return k;
      if (step.store) copy(target, message.data);
      consume(peer);
    }
    announced_ = false;
    return all_peers;
  }

  // A message that does not fit is found again, and reported, by the machine, as is one that is the begin of
  // a longer block; one without data is fetched by it.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool arrived(rank_t peer, transport::arrival& message) noexcept {
    for (std::uint32_t looks = looks_; !endpoint_.arrived(lane, peer, message); before_next_look())
      if (COLLX_UNLIKELY(--looks == 0)) return false;
    return message.bytes == block_bytes_ &&
           (!stages_ || (message.data != nullptr && !is_begin_of_block(peer)));
  }
  [[nodiscard]] bool is_begin_of_block(rank_t peer) noexcept {
    if constexpr (requires { Endpoint::lends_blocks; }) return endpoint_.lent_block_bytes(lane, peer) != 0;
    else return false;
  }

  // Where all send to all, the next call begins with a letter to the same peer.
  COLLX_ALWAYS_INLINE void consume(rank_t peer) noexcept {
    endpoint_.consume(lane, peer);
    if constexpr (!contract::rooted && Endpoint::is_mapped) endpoint_.prepare_letter(lane, peer);
  }

  COLLX_ALWAYS_INLINE void copy(std::byte* to, std::byte const* from) const noexcept {
    if (to == from) return;
    if (stages_ || block_bytes_ > few_bytes_max) device::copy(to, from, block_bytes_, false);
    else device::copy_few(to, from, block_bytes_);
  }

  [[nodiscard]] COLLX_ALWAYS_INLINE std::size_t offset(block_window const& window, region const& r,
                                                       std::int32_t k) const noexcept {
    std::int32_t const behind = first_chunk(r, k) - window.first;
    return static_cast<std::size_t>(window.stride == 1 ? behind : behind / window.stride) * block_bytes_;
  }

  // One chunk per peer, found without dividing: at most one turn round the end.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool is_plain(region const& r, std::int32_t peers) const noexcept {
    std::int32_t const whole = ring_of(r);
    return r.count == 1 && (r.per_peer == 0 || (r.per_peer > 0 && r.first >= 0 && r.first < whole &&
                                                std::int64_t{peers - 1} * r.per_peer < whole));
  }
  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t ring_of(region const& r) const noexcept {
    return r.modulus == 0 ? chunk_count<S>(where_.shape()) : r.modulus;
  }
  [[nodiscard]] COLLX_ALWAYS_INLINE std::int32_t first_chunk(region const& r, std::int32_t k) const noexcept {
    std::int32_t const straight = r.first + k * r.per_peer, whole = ring_of(r);
    return r.base + (r.per_peer == 0 || straight < whole ? straight : straight - whole);
  }

  // The same of peers.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool is_plain(peer_set const& set) const noexcept {
    return set.along.is_whole() && set.stride >= 0 && set.stride <= where_.size;
  }
  [[nodiscard]] COLLX_ALWAYS_INLINE rank_t next(peer_set const& set, rank_t peer) const noexcept {
    rank_t const straight = peer + set.stride;
    return straight < where_.size ? straight : straight - where_.size;
  }

  [[nodiscard]] COLLX_ALWAYS_INLINE std::byte const* find(region const& r, std::int32_t k) const noexcept {
    if (r.where == place::input) return input_ + offset(contract::input(where_), r, k);
    return find_target(r, k);
  }
  [[nodiscard]] COLLX_ALWAYS_INLINE std::byte* find_target(region const& r, std::int32_t k) const noexcept {
    return output_ + offset(contract::output(where_), r, k);
  }

  Endpoint& endpoint_;
  workspace& work_;
  problem where_;
  std::byte const* input_;
  std::byte* output_;
  std::size_t block_bytes_;
  Op const& op_;
  std::uint32_t looks_;
  bool stages_;
  bool in_place_;
  bool lent_ = false;
  bool copies_ = false;                     // what might be lent
  bool announced_ = false;                  // the step that is being done
  std::byte const* staged_from_ = nullptr;  // what lies at staged_
  std::byte* staged_ = nullptr;
};

}  // namespace collx::inline abi_1::exec
