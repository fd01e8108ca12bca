// SPDX-License-Identifier: Apache-2.0
// What a rank says of a meeting that fails: which meeting, who says it, whom to look at and what to change.
#pragma once

#include "collx/bootstrap/launcher.hpp"
#include "collx/bootstrap/messages.hpp"
#include "collx/bootstrap/place.hpp"
#include "collx/bootstrap/store.hpp"
#include "collx/net/caller.hpp"

namespace collx::inline abi_1::bootstrap {

// Of one rank. Refers to both for as long as it lives.
class meeting_errors {
 public:
  meeting_errors(launch const& me, meeting_place const& place) noexcept : me_(me), place_(place) {}

  template <class... Arguments>
  [[noreturn]] COLLX_COLD void throw_meeting(status code, char const* format, Arguments... arguments) const {
    char text[600];
    text_writer out{text, sizeof text};
    if (place_.file != nullptr) out.add("meeting by %.150s", place_.file);
    else if (place_.board != nullptr) out.add("meeting by %s", place_.told_by);
    else out.add("meeting at %.150s:%u", place_.at.host, place_.at.port);
    out.add(", rank %d of %d: ", me_.rank, me_.size);
    if constexpr (sizeof...(Arguments) == 0) out.add("%s", format);
    else out.add(format, arguments...);
    throw error(code, text);
  }

  [[noreturn]] COLLX_COLD void throw_news(news const& bad) const {
    if (bad.kind == news_kind::rank_taken)
      throw_meeting(status::bad_argument,
                    "another process is rank %d already; give every process a rank of its own", me_.rank);
    if (bad.kind == news_kind::left)
      throw_meeting(status::peer_lost,
                    "rank %d%s%s was lost before everybody had met; look at its own output", bad.rank,
                    bad.at.version == 0 ? "" : " at ",
                    bad.at.version == 0 ? "" : net::address_text(bad.at).text);
    if (bad.kind == news_kind::never_reached_parent)
      throw_meeting(status::timeout,
                    "rank %d%s%s has come, but not to its parent in the tree, rank %d%s; look at its own "
                    "output (a firewall? see COLLX_PORTS), or raise COLLX_TIMEOUT_US",
                    bad.rank, bad.at.version == 0 ? "" : " at ",
                    bad.at.version == 0 ? "" : net::address_text(bad.at).text, tree_parent(bad.rank),
                    bad.count > 1 ? ", and it is not the only one" : "");
    if (bad.count > 1)
      throw_meeting(status::timeout,
                    "rank %d never came, nor did %u others; start all %d ranks, with the same "
                    "settings, or raise COLLX_TIMEOUT_US",
                    bad.rank, bad.count - 1, me_.size);
    throw_meeting(status::timeout,
                  "rank %d never came; start all %d ranks, with the same settings, or raise "
                  "COLLX_TIMEOUT_US",
                  bad.rank, me_.size);
  }

  [[noreturn]] COLLX_COLD void throw_store() const {
    throw_meeting(status::peer_lost, "rank 0 was lost before everybody had met; look at its own output");
  }

  [[noreturn]] COLLX_COLD void throw_silent_store() const {
    throw_meeting(status::timeout, "rank 0 does not answer; look at its own output");
  }

  [[noreturn]] COLLX_COLD void throw_call(net::caller const& call, status how, rank_t whom) const {
    net::address_text const at(call.whom());
    if (how == status::mismatch)
      throw_meeting(status::bad_argument, "rank %d at %s refused this process: %s", whom, at.text,
                    net::advice(call.refusal()));
    if (how == status::system_failure)
      throw_meeting(how,
                    "no socket for rank %d at %s: %s; raise the limit on descriptors, or choose another "
                    "COLLX_TCP_CONGESTION",
                    whom, at.text, call.reason());
    if (how == status::peer_lost)
      throw_meeting(how,
                    "rank %d at %s has come, and does not answer (%s); look at its own output (a firewall? "
                    "see COLLX_PORTS)",
                    whom, at.text, call.reason());
    throw_meeting(how,
                  "rank %d at %s does not answer (%s); start it with the same settings, or raise "
                  "COLLX_TIMEOUT_US",
                  whom, at.text, call.reason());
  }

 private:
  launch const& me_;
  meeting_place const& place_;
};

}  // namespace collx::inline abi_1::bootstrap
