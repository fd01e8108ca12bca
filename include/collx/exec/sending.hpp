// SPDX-License-Identifier: Apache-2.0
// What steps send, and how: lent where it lies, staged, pushed or posted. The lower half of the step machine.
#pragma once

#include "collx/exec/fetching.hpp"
#include "collx/exec/lending.hpp"
#include "collx/exec/lent_blocks.hpp"
#include "collx/exec/pushing.hpp"
#include "collx/exec/resumable.hpp"

namespace collx::inline abi_1::exec {

template <class Endpoint>
class sending : public resumable<Endpoint> {
  using base = resumable<Endpoint>;

 public:
  void go_on_from(stopped_at const& at) noexcept {
    base::go_on_from(at);
    lent_ = at.lent;
  }

 protected:
  template <class Map>
  sending(Endpoint& endpoint, int lane, Map const& map) noexcept
      : base(endpoint, lane), memory_(map()), blocks_(memory_.where().size) {}

  using base::bytes_, base::endpoint_, base::fragment_, base::k_, base::lane_, base::step_, base::waits_for_;
  using base::in_company_, base::waits_for_message_, base::waits_for_others_, base::yields_;

  [[nodiscard]] bool may_send(rank_t peer, std::size_t bytes) noexcept {
    if (COLLX_LIKELY(endpoint_.can_send(lane_, peer))) return true;
    waits_for_ = peer;
    waits_for_message_ = false;
    bytes_ = bytes;
    return false;
  }

  [[nodiscard]] bool may_send_to_all(peer_set const& to, std::size_t bytes) noexcept {
    for (std::int32_t k = 0; k < to.count; ++k) {
      rank_t const peer = to.member(k, size());
      if (peer != rank() && !may_send(peer, bytes)) return false;
    }
    return true;
  }

  // Sends what lies in the user's buffer, which is his again when the endpoint is drained.
  void lend(rank_t peer, run const& payload) noexcept {
    waits_for_others_ = false;  // for staging memory, before it was known that none is needed
    endpoint_.send(lane_, peer, payload.data, payload.bytes, transport::handover::in_place);
    lent_ = lent_ || payload.bytes > Endpoint::inline_bytes;
  }

  // Whether other requests want their turns.
  [[nodiscard]] bool shares_turns() const noexcept { return yields_ || in_company_; }

  // Whether the block that this payload is the first fragment of may be lent whole.
  [[nodiscard]] COLLX_NEVER_INLINE bool may_lend_block(run const& first, place where,
                                                       primitive const& step) const noexcept {
    if (fragment_ != 0 || shares_turns() || first.bytes < lend_bytes_min) return false;
    std::size_t const bytes = memory_.block_bytes(where, first.first);
    return memory_.lends_block(bytes, first.bytes) &&
           direct({first.data, bytes, first.first, first.whole}, where, step);
  }
  COLLX_NEVER_INLINE void lend_block(peer_set const& to, rank_t peer, run const& first,
                                     place where) noexcept {
    blocks_.lend(endpoint_, lane_, to, k_, memory_.block_bytes(where, first.first),
                 [&]() noexcept { lend(peer, first); });
  }

  // Where there is no room, a receiver of an earlier message is waited for: should it be lost, that must
  // show. Room may come before that one gives another credit, so only advance() finds out.
  [[nodiscard]] COLLX_NEVER_INLINE bool stage(std::size_t bytes) noexcept {
    if (staged_ == nullptr) {
      staged_ = endpoint_.stage(lane_, bytes);
      waits_for_others_ = staged_ == nullptr;
      if (waits_for_others_) {
        waits_for_ = endpoint_.staging_held_by(lane_);
        bytes_ = bytes;
      }
    }
    return staged_ != nullptr;
  }

  // Whether send() can take this run where it lies: because it copies so little itself, or because
  // receivers may read it there.
  [[nodiscard]] bool direct(run const& payload, place where, primitive const& step) const noexcept {
    if (!payload.whole) return false;
    if (payload.bytes <= Endpoint::inline_bytes) return true;
    return stays_there(step, where, memory_.in_place()) &&
           ((payload.bytes >= lendable_from<Endpoint> &&
             endpoint_.reachable(payload.data, payload.bytes)) ||
            may_be_fetched(endpoint_, memory_, payload, step));
  }

  [[nodiscard]] COLLX_NEVER_INLINE forward_plan plan_forward(primitive const& step,
                                                             run const& result) noexcept {
    forward_plan plan = pushes().plan(step, result);
    plan.in_place = plan.stages && step.store && direct(result, step.target.where, step);
    plan.stages = (plan.stages && !plan.in_place) || (plan.posts && !step.store);
    return plan;
  }

  COLLX_NEVER_INLINE status forward(primitive const& step, run const& result,
                                    forward_plan const& plan) noexcept {
    run const payload{step.store ? result.data : staged_, result.bytes, result.first, true};
    for (std::int32_t k = 0; k < step.to.count; ++k) {
      rank_t const peer = step.to.member(k, size());
      if (peer == rank()) continue;
      std::byte* const pushed = plan.pushes ? pushed_target(step, peer) : nullptr;
      if (pushed != nullptr) endpoint_.send(lane_, peer, pushed, result.bytes, transport::handover::pushed);
      else if (status const posted = plan.posts ? pushes_to(peer, payload.bytes).post(step, peer, payload)
                                                : status::not_supported;
               posted != status::not_supported) {
        if (posted != status::ok) return posted;
      } else if (plan.in_place) lend(peer, result);
      else endpoint_.send(lane_, peer, staged_, result.bytes, transport::handover::staged);
    }
    return status::ok;
  }

  [[nodiscard]] pushing<Endpoint> pushes() noexcept { return {endpoint_, lane_, memory_, fragment_}; }
  [[nodiscard]] COLLX_NEVER_INLINE std::byte* pushed_target(primitive const& step, rank_t peer) noexcept {
    return pushes().target(step, peer);
  }
  // Those to one peer, of which a failure tells.
  [[nodiscard]] pushing<Endpoint> pushes_to(rank_t peer, std::size_t bytes) noexcept {
    waits_for_ = peer;
    bytes_ = bytes;
    return pushes();
  }

  // Whether both ends know that this message does not exist.
  [[nodiscard]] bool skips(run const& payload) const noexcept {
    return COLLX_UNLIKELY(memory_.skips_empty()) && payload.bytes == 0;
  }

  [[nodiscard]] run find(region const& r, std::int32_t k) const noexcept {
    return memory_.find(r, k, fragment_);
  }
  // Of the endpoint, in whose ranks peers are counted; memory_.where() is of the group.
  [[nodiscard]] rank_t rank() const noexcept { return endpoint_.rank(); }
  [[nodiscard]] rank_t size() const noexcept { return endpoint_.size(); }

  memory_map memory_;
  lent_blocks<Endpoint> blocks_;
  bool lent_ = false;
  std::byte* staged_ = nullptr;
};

}  // namespace collx::inline abi_1::exec
