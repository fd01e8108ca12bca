// SPDX-License-Identifier: Apache-2.0
// Scratch has as many slots as a schedule says, also one whose vector is a single chunk.
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/reduce.hpp"
#include "collx/schedule/verify.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using namespace collx;

// Ranks 2 and 3 send to rank 1, which keeps both results apart, and sends that of rank 2 and its own first.
struct two_slots {
  static constexpr char const* name = "two_slots";

  struct reduce {
    using contract = contract::reduce;
    static constexpr bool keeps_rank_order = true;
    static constexpr COLLX_HD bool supports(rank_t n) { return n == 4; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t) { return 2; }
    static constexpr COLLX_HD std::int32_t step_count(problem p) {
      return p.rank == 0 ? 2 : p.rank == 1 ? 4 : 1;
    }
    static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      region const in{place::input, 0, 1}, out{place::output, 0, 1};
      region const first{place::scratch, 0, 1}, second{place::scratch, 1, 1};
      if (p.rank > 1) return {.to = only(1), .operand = in, .target = out};
      if (p.rank == 0)
        return {.from = in_rank_order(0, 1),
                .operand = s == 0 ? in : out,
                .target = out,
                .reduce = true,
                .store = true,
                .complete = s == 1};
      if (s == 0) return {.from = only(3), .target = first, .store = true};
      if (s == 1)
        return {.from = in_rank_order(1, 2), .operand = in, .target = second, .reduce = true, .store = true};
      return {.to = only(0), .operand = s == 2 ? second : first, .target = out};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t) { return {2, 2, 2}; }
  };
};

}  // namespace

TEST_CASE("slots of scratch lie apart, whatever the number of chunks") {
  CHECK(verify<two_slots::reduce>(4).ok());
  watched::on_threads(
      4,
      [](auto& comm) {
        for (std::size_t const count : {1u, 100u, 5000u, 100'000u}) {
          std::vector<int> in(count), out(count);
          auto const value = [](int rank, std::size_t i) {
            return 1 << (7 * rank) | static_cast<int>(i % 7);
          };
          for (std::size_t i = 0; i < count; ++i) in[i] = value(comm.rank(), i);
          std::vector<int> const own = in;
          collx::reduce<two_slots>(comm, std::span<int const>(in), std::span(out), sum, 0);
          require(in == own, "the input");
          for (std::size_t i = 0; comm.rank() == 0 && i < count; ++i) {
            int total = 0;
            for (int r = 0; r < 4; ++r) total += value(r, i);
            require(out[i] == total, "the sum");
          }
        }
      },
      {.staging_bytes = 64 * 1024});
}
