// SPDX-License-Identifier: Apache-2.0
// Every mistake that a user can make in the arguments of a collective, in every form of it: refused on the
// rank that made it, by name, before a byte is read, written or sent, and the communicator works as before.
#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/collective/send_receive.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::blocks;
using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::threads>;
using in_t = std::span<int const>;
using out_t = std::span<int>;
using counts_t = std::vector<std::size_t>;
using flat = collx::algo::direct_one_shot;

constexpr std::size_t count = 6, absurd = std::numeric_limits<std::size_t>::max();
// The least number of ints whose bytes cannot be told apart by a pointer difference.
constexpr std::size_t too_many = PTRDIFF_MAX / sizeof(int) + 1;

// A rank with memory of which every byte that is not meant to change is known.
class tester {
 public:
  explicit tester(communicator& comm) : comm_(comm), n_(static_cast<std::size_t>(comm.size())) {}

  // The k-th part of the memory, which is far from the others.
  [[nodiscard]] out_t part(std::size_t k, std::size_t n) { return {&memory_[(2 * k + 1) * apart], n}; }
  [[nodiscard]] communicator& comm() const { return comm_; }
  [[nodiscard]] std::size_t ranks() const { return n_; }
  [[nodiscard]] rank_t rank() const { return comm_.rank(); }

  template <class F>
  void refuses(char const* collective, std::string const& why, F const& f) {
    std::string const begin = "collx: " + std::string(collective) + " on rank " + std::to_string(rank()) +
                              " of " + std::to_string(comm_.size()) + ": ";
    std::string text = "accepted";
    try {
      f();
    } catch (collx::error const& error) {
      text = error.what();
      require(error.code() == status::bad_argument, text);
    }
    require(text.starts_with(begin) && text.find(why) != std::string::npos, begin + why + " <> " + text);
    require(std::ranges::all_of(memory_, [](int i) { return i == guard; }), begin + why + " touched memory");
    require(comm_.failure().code == status::ok, begin + why + " failed the communicator");
  }

 private:
  static constexpr int guard = -559038737;
  static constexpr std::size_t apart = 64;

  communicator& comm_;
  std::size_t n_;
  std::vector<int> memory_ = std::vector<int>(10 * apart, guard);
};

// All forms of one collective, on a tester's communicator: compiled once for each list of types.
namespace wrong {
#define FORMS(name)                                                                                    \
  constexpr auto name = [](tester& t, std::string const& why, auto... a) {                             \
    t.refuses(#name, why, [&] { collx::name<flat>(t.comm(), a...); });                                 \
    t.refuses(#name, why, [&] { (void)collx::start::name<flat>(t.comm(), a...); });                    \
    t.refuses(#name, why, [&] { (void)collx::persistent::name<flat>(t.comm(), a...); });               \
    require(collx::try_##name<flat>(t.comm(), a...) == status::bad_argument, "try_" #name ": " + why); \
  }
FORMS(all_reduce);
FORMS(reduce_scatter);
FORMS(all_gather);
FORMS(all_to_all);
FORMS(broadcast);
FORMS(reduce);
FORMS(gather);
FORMS(scatter);
FORMS(scan);
FORMS(exclusive_scan);
FORMS(all_gather_v);
FORMS(reduce_scatter_v);
FORMS(all_to_all_v);
FORMS(gather_v);
FORMS(scatter_v);
#undef FORMS
}  // namespace wrong

// What ranks do wrong; and what works afterwards.
template <class F>
void on_ranks(F const& f) {
  for (rank_t size = 1; size <= 3; ++size)
    watched::on_threads(size, [&](communicator& comm) {
      tester t(comm);
      f(t);
      require(comm.engine().sequence() == 0, "a refused call was counted");
      std::vector<int> one(1, comm.rank()), sum(1);
      collx::reduce<flat>(comm, one, sum, collx::sum, 0);
      require(comm.rank() != 0 || sum[0] == comm.size() * (comm.size() - 1) / 2, "the next collective");
    });
}

// A list of counts for blocks of one element per rank, and with one of them changed.
counts_t ones(tester const& t) { return counts_t(t.ranks(), 1); }

}  // namespace

TEST_CASE("refused: counts that do not fit together") {
  on_ranks([](tester& t) {
    std::size_t const n = t.ranks();
    rank_t const root = t.rank();  // each in turn has it wrong
    in_t const in = t.part(0, count), longer_in = t.part(0, count * n + 1);
    out_t const out = t.part(2, count), longer_out = t.part(2, count * n + 1);
    wrong::all_reduce(t, "as many elements as the output", longer_in, out, collx::sum);
    wrong::scan(t, "as many elements as the output", longer_in, out, collx::sum);
    wrong::exclusive_scan(t, "as many elements as the output", longer_in, out, collx::sum);
    wrong::reduce_scatter(t, "as many elements as all outputs", longer_in, out, collx::sum);
    wrong::all_gather(t, "as many elements as all inputs", in, longer_out);
    if (n > 1) wrong::all_to_all(t, "a multiple of size", longer_in, longer_out);
    wrong::all_to_all(t, "as many elements as the output", longer_in, t.part(2, n));
    wrong::broadcast(t, "as many elements as the output", longer_in, out, root);
    wrong::reduce(t, "as many elements as the input", longer_in, out, collx::sum, root);
    wrong::gather(t, "as many elements as all inputs", in, longer_out, root);
    wrong::scatter(t, "as many elements as all outputs", longer_in, out, root);
  });
}

TEST_CASE("refused: a root that is no rank") {
  on_ranks([](tester& t) {
    in_t const in = t.part(0, count);
    out_t const out = t.part(2, count);
    counts_t const counts = ones(t);
    // As integers of other types, too: the last two would be rank 0 with their upper half cut off.
    for (std::int64_t const root :
         {std::int64_t{-1}, static_cast<std::int64_t>(t.ranks()), std::int64_t{INT32_MAX},
          std::int64_t{INT32_MIN}, std::int64_t{1} << 32, -(std::int64_t{1} << 32)}) {
      std::string const why = "the root must be a rank of the communicator, less than its size (given " +
                              std::to_string(root) + ")";
      wrong::broadcast(t, why, in, out, root);
      wrong::reduce(t, why, in, out, collx::sum, root);
      wrong::gather(t, why, in, out, root);
      wrong::scatter(t, why, in, out, root);
      wrong::gather_v(t, why, in, blocks<int>{out, counts}, root);
      wrong::scatter_v(t, why, blocks<int const>{in, counts}, out, root);
    }
  });
}

TEST_CASE("refused: memory that is null, of elements that there must be") {
  on_ranks([](tester& t) {
    std::size_t const n = t.ranks();
    rank_t const root = t.rank();
    in_t const in = t.part(0, count), all_in = t.part(0, count * n), no_in(static_cast<int*>(nullptr), count),
               no_all_in(static_cast<int*>(nullptr), count * n), no_one(static_cast<int*>(nullptr), 1);
    out_t const out = t.part(2, count), all_out = t.part(2, count * n), one = t.part(4, 1),
                no_out(static_cast<int*>(nullptr), count), no_all_out(static_cast<int*>(nullptr), count * n);
    std::string const input = "the input is null", output = "the output is null";
    wrong::all_reduce(t, input, no_in, out, collx::sum);
    wrong::all_reduce(t, output, in, no_out, collx::sum);
    wrong::scan(t, input, no_in, out, collx::sum);
    wrong::scan(t, output, in, no_out, collx::sum);
    wrong::exclusive_scan(t, input, no_in, out, collx::sum);
    if (t.rank() != 0) wrong::exclusive_scan(t, output, in, no_out, collx::sum);
    wrong::reduce_scatter(t, input, no_all_in, out, collx::sum);
    wrong::reduce_scatter(t, output, all_in, no_out, collx::sum);
    wrong::all_gather(t, input, no_in, all_out);
    wrong::all_gather(t, output, in, no_all_out);
    wrong::all_to_all(t, input, no_all_in, all_out);
    wrong::all_to_all(t, output, all_in, no_all_out);
    wrong::broadcast(t, input, no_in, out, root);
    wrong::broadcast(t, output, in, no_out, root);
    wrong::reduce(t, input, no_in, out, collx::sum, root);
    wrong::reduce(t, output, in, no_out, collx::sum, root);
    wrong::gather(t, input, no_in, all_out, root);
    wrong::gather(t, output, in, no_all_out, root);
    wrong::scatter(t, input, no_all_in, out, root);
    wrong::scatter(t, output, all_in, no_out, root);
    counts_t const counts = ones(t);
    std::string const some = "the memory of the blocks is null";
    wrong::all_gather_v(t, input, no_one, blocks<int>{all_out, counts});
    wrong::all_gather_v(t, some, in_t(one), blocks<int>{no_all_out, counts});
    wrong::reduce_scatter_v(t, some, blocks<int const>{no_all_in, counts}, one, collx::sum);
    wrong::all_to_all_v(t, some, blocks<int const>{no_all_in, counts}, blocks<int>{all_out, counts});
    wrong::all_to_all_v(t, some, blocks<int const>{all_in, counts}, blocks<int>{no_all_out, counts});
    wrong::gather_v(t, input, no_one, blocks<int>{all_out, counts}, root);
    wrong::gather_v(t, some, in_t(one), blocks<int>{no_all_out, counts}, root);
    wrong::scatter_v(t, some, blocks<int const>{no_all_in, counts}, one, root);
    if (n > 1) wrong::gather_v(t, input, no_one, blocks<int>{}, root == 0 ? 1 : 0);
    if (n > 1)
      wrong::scatter_v(t, output, blocks<int const>{}, out_t(static_cast<int*>(nullptr), 1),
                       root == 0 ? 1 : 0);
  });
}

TEST_CASE("refused: buffers that overlap, or are in place where they must not be") {
  on_ranks([](tester& t) {
    std::size_t const n = t.ranks(), own = static_cast<std::size_t>(t.rank()) * count;
    rank_t const root = t.rank();
    out_t const all = t.part(2, 2 * count * n + 1);
    in_t const begin = all.first(count), all_in = all.first(count * n);
    std::string const why = "input and output overlap; pass the same memory";
    auto const far = [&](std::size_t given, std::size_t needed) {
      return "as in place demands, or separate buffers (given " + std::to_string(given) + ", needed " +
             std::to_string(needed) + ")";
    };
    wrong::all_reduce(t, why, begin, all.subspan(1, count), collx::sum);
    wrong::all_reduce(t, far(1, 0), in_t(all.subspan(1, count)), all.first(count), collx::sum);
    wrong::scan(t, why, begin, all.subspan(count - 1, count), collx::sum);
    wrong::exclusive_scan(t, why, begin, all.subspan(1, count), collx::sum);
    wrong::broadcast(t, why, begin, all.subspan(1, count), root);
    wrong::reduce(t, why, begin, all.subspan(1, count), collx::sum, root);
    wrong::all_to_all(t, why, all_in, all.subspan(1, count * n));
    wrong::all_gather(t, far(own + 1, own), in_t(all.subspan(own + 1, count)), all.first(count * n));
    wrong::reduce_scatter(t, why, all_in, all.subspan(own + 1, count), collx::sum);
    wrong::gather(t, why, in_t(all.subspan(own + 1, count)), all.first(count * n), root);
    wrong::scatter(t, why, all_in, all.subspan(own + 1, count), root);
    counts_t const counts(n, count);
    wrong::all_gather_v(t, why, in_t(all.subspan(own + 1, count)), blocks<int>{all, counts});
    wrong::reduce_scatter_v(t, why, blocks<int const>{in_t(all), counts}, all.subspan(own + 1, count),
                            collx::sum);
    wrong::gather_v(t, why, in_t(all.subspan(own + 1, count)), blocks<int>{all, counts}, root);
    wrong::scatter_v(t, why, blocks<int const>{in_t(all), counts}, all.subspan(own + 1, count), root);
    auto const shared = [](std::size_t elements) {
      return "no in-place form, and input and output overlap in so many elements; pass separate buffers "
             "(given " +
             std::to_string(elements) + ", needed 0)";
    };
    blocks<int const> const all_of_it{in_t(all), counts}, first_half{all_in, counts};
    wrong::all_to_all_v(t, shared(all.size()), all_of_it, blocks<int>{all, counts});
    wrong::all_to_all_v(t, shared(3), first_half, blocks<int>{all.subspan(count * n - 3), counts});
  });
}

TEST_CASE("refused: lists of counts and offsets that are wrong") {
  on_ranks([](tester& t) {
    std::size_t const n = t.ranks();
    rank_t const root = t.rank();
    in_t const one_in = t.part(0, 1), in = t.part(0, n);
    out_t const one = t.part(2, 1), out = t.part(4, n);
    auto const each = [&](std::string const& why, counts_t const& counts, counts_t const& offsets) {
      blocks<int const> const from{in, counts, offsets};
      blocks<int> const to{out, counts, offsets};
      counts_t const right = ones(t);
      wrong::all_gather_v(t, why, one_in, to);
      wrong::reduce_scatter_v(t, why, from, one, collx::sum);
      wrong::all_to_all_v(t, why, from, blocks<int>{out, right});
      wrong::all_to_all_v(t, why, blocks<int const>{in, right}, to);
      wrong::gather_v(t, why, one_in, to, root);
      wrong::scatter_v(t, why, from, one, root);
    };
    each("needs a count, and an offset or none, for every rank", counts_t(n + 1, 1), {});
    each("needs a count, and an offset or none, for every rank", counts_t(n - 1, 1), {});
    each("needs a count, and an offset or none, for every rank", counts_t(n, 1), counts_t(n + 1, 0));
    each("a block ends behind the end", counts_t(n, 2), {});
    each("a block ends behind the end", counts_t(n, absurd), {});
    each("a block ends behind the end", counts_t(n, 1), counts_t(n, absurd));
    each("a block ends behind the end", counts_t(n, absurd), counts_t(n, 1));
    if (n > 1) each("two blocks of the", counts_t(n, 1), counts_t(n, 0));
    counts_t const none(n, 0), right = ones(t);
    wrong::all_gather_v(t, "as many elements as the own block", in_t(t.part(0, 2)), blocks<int>{out, right});
    wrong::reduce_scatter_v(t, "as many elements as the own block", blocks<int const>{in, right},
                            t.part(2, 2), collx::sum);
    wrong::gather_v(t, "as many elements as its own block", in_t(t.part(0, 2)), blocks<int>{out, right},
                    root);
    wrong::scatter_v(t, "as many elements as its own block", blocks<int const>{in, right}, t.part(2, 2),
                     root);
    wrong::all_to_all_v(t, "as it takes from itself", blocks<int const>{in, right}, blocks<int>{out, none});
  });
}

TEST_CASE("refused: counts that no memory can hold, named with the count") {
  on_ranks([](tester& t) {
    std::size_t const n = t.ranks();
    rank_t const root = t.rank();
    // The last one is small enough, but not for every rank's.
    for (std::size_t const c : {absurd, absurd / sizeof(int), too_many, (too_many - 1) / n + 1}) {
      std::string const why =
          "so many elements fit into no memory; is the count negative? (given " + std::to_string(c);
      in_t const in(&t.part(0, 1)[0], c), wrapped_in(&t.part(0, 1)[0], c * n);
      out_t const out(&t.part(2, 1)[0], c), wrapped_out(&t.part(2, 1)[0], c * n);
      wrong::all_gather(t, why, in, wrapped_out);
      wrong::reduce_scatter(t, why, wrapped_in, out, collx::sum);
      wrong::gather(t, why, in, wrapped_out, root);
      wrong::scatter(t, why, wrapped_in, out, root);
      if (c < too_many) continue;
      wrong::all_reduce(t, why, in, out, collx::sum);
      wrong::scan(t, why, in, out, collx::sum);
      wrong::exclusive_scan(t, why, in, out, collx::sum);
      wrong::broadcast(t, why, in, out, root);
      wrong::reduce(t, why, in, out, collx::sum, root);
      wrong::all_to_all(t, why, in, out);
      counts_t const counts = ones(t);
      wrong::all_gather_v(t, why, in_t(t.part(0, 1)), blocks<int>{out, counts});
      wrong::reduce_scatter_v(t, why, blocks<int const>{in, counts}, t.part(2, 1), collx::sum);
      wrong::all_to_all_v(t, why, blocks<int const>{in, counts}, blocks<int>{out, counts});
      wrong::gather_v(t, why, in, blocks<int>{}, n == 1 ? root : root == 0 ? 1 : 0);
      wrong::scatter_v(t, why, blocks<int const>{}, out, n == 1 ? root : root == 0 ? 1 : 0);
    }
  });
}

TEST_CASE("refused: single messages to nobody, from null, and of absurd size") {
  on_ranks([](tester& t) {
    out_t const v = t.part(0, count), null(static_cast<int*>(nullptr), count), huge(v.data(), too_many);
    rank_t const size = static_cast<rank_t>(t.ranks()), other = t.rank() == 0 ? 1 : 0;
    auto const both = [&](std::string const& why, out_t data, rank_t peer) {
      t.refuses("send", why, [&] { collx::send(t.comm(), data, peer); });
      t.refuses("receive", why, [&] { collx::receive(t.comm(), data, peer); });
      require(collx::try_send(t.comm(), data, peer) == status::bad_argument, "try_send: " + why);
      require(collx::try_receive(t.comm(), data, peer) == status::bad_argument, "try_receive: " + why);
    };
    both("the peer must be a rank", v, -1);
    both("the peer must be a rank", v, size);
    both("a rank sends to itself in an exchange only", v, t.rank());
    if (size == 1) return;
    both("its memory is null", null, other);
    both("so many elements fit into no memory", huge, other);
    both("so many elements fit into no memory", out_t(v.data(), absurd), other);
    collx::exchange list(t.comm());
    t.refuses("exchange", "message 0, 24 bytes to rank", [&] { list.send(null, other); });
    t.refuses("exchange", "its memory is null", [&] { list.receive(null, other); });
    t.refuses("exchange", "so many elements fit into no memory", [&] { list.send(huge, other); });
    t.refuses("exchange", "names no rank", [&] { list.receive(v, size); });
    t.refuses("exchange", "the capacity must not be negative", [&] { collx::exchange(t.comm(), -1); });
    list.send(v.first(2), other);
    t.refuses("exchange", "overlaps message 0", [&] { list.receive(v.subspan(1), other); });
  });
}

TEST_CASE("buffers that a rank need not have may be null") {
  for (rank_t size = 1; size <= 3; ++size)
    watched::on_threads(size, [](communicator& comm) {
      std::vector<int> in(1, 1), all(static_cast<std::size_t>(comm.size()), 1), out(1);
      in_t const no_in(static_cast<int*>(nullptr), 1);
      out_t const no_out(static_cast<int*>(nullptr), 1);
      bool const is_root = comm.rank() == 0;
      collx::reduce<flat>(comm, in, is_root ? out_t(out) : no_out, collx::sum, 0);
      collx::gather<flat>(comm, in_t(in), is_root ? out_t(all) : no_out, 0);
      collx::scatter<flat>(comm, is_root ? in_t(all) : no_in, out_t(out), 0);
      collx::broadcast<flat>(comm, is_root ? in_t(in) : no_in, out_t(out), 0);
      collx::exclusive_scan<flat>(comm, in_t(in), is_root ? no_out : out_t(out), collx::sum);
      collx::all_reduce<flat>(comm, no_in.first(0), no_out.first(0), collx::sum);
    });
}

TEST_CASE("symmetric memory of absurd size is refused") {
  on_ranks([](tester& t) {
    for (std::size_t const c : {absurd, absurd / sizeof(int) + 2, too_many}) {
      std::string text = "accepted";
      try {
        (void)t.comm().allocate<int>(c);
      } catch (collx::error const& error) {
        require(error.code() == status::out_of_memory, error.what());
        text = error.what();
      }
      require(text.find(std::to_string(c) + " elements fit into no memory") != std::string::npos, text);
    }
  });
}
