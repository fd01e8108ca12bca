// SPDX-License-Identifier: Apache-2.0
// Where chunks lie in the buffers of a call on a host, and what follows from it for caches, and for what
// the system may copy between processes.
#pragma once

#include "collx/device/stream.hpp"
#include "collx/exec/chunk_map.hpp"
#include "collx/exec/input_history.hpp"
#include "collx/transport/concept.hpp"

namespace collx::inline abi_1::exec {

class memory_map : public chunk_map {
 public:
  memory_map() = default;
  // As chunk_map.
  memory_map(problem const& p, geometry const& cut, std::int32_t chunk_count, std::size_t element_bytes,
             buffers const& user, std::byte* scratch) noexcept
      : chunk_map(p, cut, chunk_count, element_bytes, user, scratch),
        far_(is_far()),
        streams_(far_ && !user_.in_place) {}
  // That of a call that differs from another one in its buffers only. `output_again`: as in buffers.
  memory_map(memory_map const& like, std::byte* input, std::byte* output, bool output_again) noexcept
      : memory_map(like) {
    user_.input = input;
    user_.output = output;
    user_.output_again = output_again;
    far_ = is_far();
    streams_ = far_ && !user_.in_place;
  }

  // Whether payloads that receivers cannot reach may be left to them all the same.
  [[nodiscard]] bool lets_fetch() const noexcept { return block_bytes_ <= user_.fetched_block_bytes_max; }
  // The same where staging is found to be slow: then one copy by the system, by whomever and however long, is
  // less than two; but not where ranks that share processors combine, who would copy a second time.
  [[nodiscard]] bool lets_fetch_if_slow() const noexcept { return !crowded_ || !user_.combines; }
  // For ranks that share processors, who wait for each other's work anyway: one copy by the system is less
  // of it than two by ranks, unless something is combined on the way, or vectors exceed the caches of
  // processors that lie near each other. Where more than 4 share them, vectors that a call does not find in
  // the caches must be shorter, and consist of a block for each rank.
  void fetch_as_crowded() noexcept {
    crowded_ = true;
    std::size_t const shorter_bytes_max = user_.sharded ? device::fetched_bytes_max() / 8 : 0;
    std::size_t const cold_bytes_max =
        problem_.size <= 4 ? device::fetched_bytes_max() / 2 : shorter_bytes_max;
    std::size_t const vector_bytes_max =
        user_.output_again ? 2 * device::fetched_bytes_max() : cold_bytes_max;
    std::size_t const blocks = user_.sharded ? static_cast<std::size_t>(problem_.size) : 1;
    user_.fetched_block_bytes_max = user_.combines ? 0 : vector_bytes_max / blocks;
  }
  // Whether an input that the program writes before each call is staged where another one is left to
  // receivers: whose processors hold its lines then, and must give them back to be written. What goes to
  // everybody is, and what is combined; blocks that differ, and vectors of which both sides copy a half,
  // while they are small, but not sums in place, which change by themselves.
  [[nodiscard]] bool stages_if_rewritten() const noexcept {
    if (!lets_fetch() || block_bytes_ < device::remembered_bytes_min()) return false;
    if (input_bytes() < input_history::bytes_min) return false;
    if (user_.lets_post)
      return block_bytes_ < 8 * device::stream_bytes_min() && !(user_.combines && user_.in_place);
    return user_.combines || user_.input_window.count == 1 || block_bytes_ < 2 * device::stream_bytes_min();
  }
  void stage_payloads() noexcept { user_.fetched_block_bytes_max = 0; }
  // This rank's input, where its blocks are all alike and follow each other; else of no bytes.
  [[nodiscard]] std::byte const* input() const noexcept { return user_.input; }
  [[nodiscard]] std::size_t input_bytes() const noexcept {
    bool const whole = !uneven_ && user_.block_pitch == 0 && user_.input_window.stride == 1;
    return whole ? static_cast<std::size_t>(user_.input_window.count) * block_bytes_ : 0;
  }
  // Whether this rank knows where blocks lie in its peers' buffers: offset_at() may be asked.
  [[nodiscard]] bool knows_peers() const noexcept { return !uneven_ && user_.numbers_peers; }
  // Whether results are stored past the caches: large ones, unless the call is in place, or one of many with
  // the same buffers, which fit a cache, or fits the part of a shared cache that keeps results. To stream to
  // lines that a cache holds is slower than to store.
  [[nodiscard]] bool streams() const noexcept { return streams_; }
  // The same for what is pushed to a peer that has not read it.
  [[nodiscard]] bool streams_to_peers() const noexcept { return far_; }
  [[nodiscard]] std::size_t output_bytes() const noexcept {
    return static_cast<std::size_t>(user_.output_window.count) * block_bytes_;
  }
  // From where the output begins to where its last block ends.
  [[nodiscard]] std::size_t output_extent_bytes() const noexcept {
    if (user_.output_window.count == 0) return 0;
    return static_cast<std::size_t>(user_.output_window.count - 1) * block_pitch_ * element_bytes_ +
           block_bytes_;
  }
  // Whether peers may have the system store to the output where they cannot. The vector is then copied by
  // parts, some of which are fetched, all or none.
  [[nodiscard]] bool lets_post() const noexcept { return user_.lets_post && lets_fetch(); }
  // Of one block that is neither combined nor one of several, as of a broadcast, both sides copy a part, and
  // nobody has anything else to do.
  [[nodiscard]] transport::copying copying() const noexcept {
    bool const by_both = lets_post() && !user_.combines && user_.output_window.count == 1;
    return by_both ? transport::copying::by_both : transport::copying::by_receivers;
  }
  // What a payload counts for where it is asked whether it is worth the system's call. Where buffers are used
  // again, the system copies from cache to cache, and is worth it for a quarter.
  [[nodiscard]] std::size_t worth(std::size_t bytes) const noexcept {
    return user_.output_again ? 4 * bytes : bytes;
  }
  [[nodiscard]] std::size_t worth(run const& payload) const noexcept {
    return worth(lets_post() ? block_bytes_ : payload.bytes);
  }
  // Whether blocks may be lent whole, with their first fragments: receivers then take all of one at once, and
  // ranks do not wait for each other once per fragment.
  [[nodiscard]] bool lends_blocks() const noexcept { return moves_blocks() && cut_.fragments() > 1; }
  // Whether that holds of a block of so many bytes, of which the first fragment has so many.
  [[nodiscard]] static bool lends_block(std::size_t bytes, std::size_t first_bytes) noexcept {
    return bytes > first_bytes && bytes <= device::fetched_bytes_max();
  }
  // Whether others may do so: they know other counts, perhaps.
  [[nodiscard]] bool moves_blocks() const noexcept {
    return user_.moves_blocks && problem_.size <= lending_ranks_max;
  }
  // Whether nothing that this rank has yet to send lies where others' blocks go.
  [[nodiscard]] bool takes_blocks_whole() const noexcept {
    return !user_.in_place || user_.input_window.count <= 1;
  }
  // Bytes of a block before a fragment that it has.
  [[nodiscard]] std::size_t bytes_before(std::size_t fragment) const noexcept {
    return elements(fragment).begin * element_bytes_;
  }

  // Where a region of the output lies in another rank's output, in bytes from its begin. Requires
  // knows_peers().
  [[nodiscard]] std::size_t offset_at(rank_t rank, region const& r, std::size_t fragment) const noexcept {
    block_window theirs = user_.output_window;
    theirs.first += (rank - problem_.rank) * user_.output_pitch;
    return place_in(theirs, fragment, r.first_for(0, chunk_count_)).begin * element_bytes_;
  }

 private:
  [[nodiscard]] bool is_far() const noexcept {
    return block_bytes_ > device::stream_bytes_min() && !is_hot();
  }
  [[nodiscard]] COLLX_NEVER_INLINE bool is_hot() const noexcept {
    std::int32_t const in = user_.input_window.count, out = user_.output_window.count;
    std::int32_t const blocks = !user_.in_place ? in + out : in > out ? in : out;
    std::size_t const bytes = static_cast<std::size_t>(blocks) * block_bytes_;
    if (user_.output_again && bytes <= device::hot_bytes_max()) return true;
    // What is combined has more streams to read, and is better past the caches unless it is used again.
    auto const fits = [&](std::size_t taken_bytes, std::size_t sixteenths) noexcept {
      return device::fits_result_cache(taken_bytes, static_cast<std::size_t>(problem_.size), sixteenths);
    };
    if (user_.output_again) return fits(bytes, user_.combines ? 8 : 12);
    return !user_.combines && fits(bytes + 1, 4);  // a quarter itself is too much
  }

  static constexpr rank_t lending_ranks_max = 64;  // of which step machines remember something in a word

  bool far_ = false, streams_ = false, crowded_ = false;
};

}  // namespace collx::inline abi_1::exec
