// SPDX-License-Identifier: Apache-2.0
// Every collective with every algorithm and every element type on one transport, through the type-erased
// communicator: so that types and operators cost one table, and each schedule is compiled once. The operators
// take turns, such that every collective meets each; so do in place or not, the form of the call, roots and
// counts, all drawn from a seed.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "any/reference.hpp"
#include "collx/any_communicator.hpp"
#include "collx/make_any.hpp"
#include "sample.hpp"

namespace any_matrix {

using any_reference::participant;
using any_reference::scenario;
using collx::any_communicator;
using collx::collective_kind;
using collx::data_type;
using collx::rank_t;
using collx::reduce_op;
using collx::status;

// As many ranks as have an exact reference.
inline constexpr rank_t size_max = 33;
// How many types each algorithm meets where ranks are many: all, with the numbers that takes_wide() takes.
inline constexpr std::size_t types_of_many_ranks = (collx::data_type_count + 3) / 4;

// COLLX_SEED=number draws others.
inline std::uint64_t seed() {
  char const* const value = std::getenv("COLLX_SEED");
  return value == nullptr ? 1 : std::strtoull(value, nullptr, 10);
}

template <class Transport>
any_communicator erased(collx::communicator<Transport>& comm) {
  return collx::make_any<sample::types_of<collx::any_types>, collx::any_ops, sample::algorithms>(
      comm.split(0, comm.rank()));
}

// Whether an algorithm's schedule says that it serves so many ranks, as the facade must find, too.
struct serves {
  std::string algorithm;
  rank_t size;
  bool found = false;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (algorithm == Algorithm::name && collx::supports<Schedule>(size)) found = true;
  }
};

template <class... Contracts>
bool is_served(collx::type_list<Contracts...>, collective_kind what, char const* algorithm, rank_t size) {
  serves asked{algorithm, size};
  std::size_t k = 0;
  ((k++ == static_cast<std::size_t>(what) ? collx::for_each_serving<sample::algorithms, Contracts>(asked)
                                          : void()),
   ...);
  return asked.found || std::string(algorithm) == collx::automatic::name;
}

// One rank's walk; all ranks draw the same. `types`: how many of them each algorithm meets, others with the
// next number of ranks. `transport`: its name.
class walk {
 public:
  walk(any_communicator& any, char const* transport, std::size_t types)
      : any_(any),
        transport_(transport),
        types_(types),
        random_(seed() * 1000 + static_cast<std::uint64_t>(any.size())),
        turn_(random_.below(collx::reduce_op_count)) {}

  // Returns how many calls that were. Throws at the first difference.
  std::size_t run() {
    for (std::size_t k = 0; k < collx::collective_kind_count; ++k) {
      auto const what = static_cast<collective_kind>(k);
      for (char const* const algorithm : any_.algorithms(what)) every_type(what, algorithm);
      if (!sample::is_sample && is_small() && types_ == collx::data_type_count &&
          any_reference::shape_of(what).combines)
        require_all_operators(what);
    }
    if (done_ < (sample::is_sample ? 10u : 7 * types_)) throw std::runtime_error("walked next to nothing");
    return done_;
  }

 private:
  void every_type(collective_kind what, char const* algorithm) {
    constexpr std::size_t all = collx::data_type_count;
    std::size_t const first = static_cast<std::size_t>(any_.size()) * types_ + seed();
    std::size_t const with_large = is_small() ? 1 + random_.below(all - 1) : all;  // none, of many ranks
    for (std::size_t t = 0; t < types_; ++t) {
      auto const type = static_cast<data_type>((first + t) % all);
      if (!is_compiled(type)) continue;
      scenario const how = draw(what, type, algorithm, t == with_large);
      try {
        if (!check(how)) {
          if (!is_served(collx::detail::any_contracts{}, what, algorithm, any_.size())) return;
          throw std::runtime_error("refused, although its schedule is for so many ranks");
        }
      } catch (std::exception const& wrong) {
        throw std::runtime_error(how.describe(any_.rank()) + " over " + transport_ + ": " + wrong.what() +
                                 "; repeat with COLLX_SEED=" + std::to_string(seed()));
      }
      ++done_;
      used_[static_cast<std::size_t>(what)][static_cast<std::size_t>(how.op)] = true;
    }
  }
  [[nodiscard]] bool is_small() const { return any_.size() <= 5; }

  // Not all of them are, where a sanitizer makes each expensive.
  static bool is_compiled(data_type type) {
    bool found = false;
    sample::types_of<collx::any_types>::for_each([&]<class T>() {
      found = found || collx::detail::place_in<T>(collx::any_types{}) == static_cast<std::size_t>(type);
    });
    return found;
  }

  scenario draw(collective_kind what, data_type type, char const* algorithm, bool large) {
    auto const n = static_cast<std::size_t>(any_.size());
    std::size_t const counts[] = {0, 1, n - 1, n, n + 1, 61, 333};
    any_reference::shape const is = any_reference::shape_of(what);
    std::size_t count = counts[random_.below(std::size(counts))];
    // Several fragments of 64 KiB of staging memory.
    if (large) count = 40'000 / bytes_of(type) / (is.gives_all || is.takes_all ? n : 1) + 3;
    auto const root = static_cast<rank_t>(random_.below(static_cast<std::uint32_t>(n)));
    bool const in_place = random_.below(2) == 0, apart = random_.below(2) == 0;
    auto const salt = static_cast<std::uint32_t>(random_.next());
    return {what,  type, next_operator(what, type), algorithm, count, any_.size(), root, in_place,
            apart, salt};
  }

  reduce_op next_operator(collective_kind what, data_type type) {
    for (;;) {
      auto const op = static_cast<reduce_op>(turn_++ % collx::reduce_op_count);
      if (has_meaning(what, op) && any_reference::applies(op, type)) return op;
    }
  }
  static bool has_meaning(collective_kind what, reduce_op op) {
    return op != reduce_op::avg || (what != collective_kind::scan && what != collective_kind::exclusive_scan);
  }

  // False: this algorithm is not for so many ranks, which no call finds out that has nothing to do.
  bool check(scenario const& how) {
    participant mine(how, any_.rank());
    collx::any_call call = mine.call();
    auto const require_right = [&](char const* form) {
      if (std::string const wrong = mine.difference(); !wrong.empty())
        throw std::runtime_error(std::string(form) + ": " + wrong);
    };
    status const outcome = any_.try_run(call);
    if (outcome == status::not_supported) return false;
    if (outcome == status::ok && how.count == 0 && !runs(call)) return false;
    if (outcome == status::bad_argument) any_.run(call);  // throws the words
    if (outcome != status::ok) throw collx::error(any_.failure());
    require_right("blocking");
    std::uint32_t const form = random_.below(4);
    if (form == 3) call.options.how = collx::priority::urgent;
    mine.restore();
    if (form < 2) {
      auto again = any_.prepare(call);
      again.start();
      again.wait();
      require_right("set up once");
      mine.restore();
      again.start();
      while (!again.test()) std::this_thread::yield();
      require_right("set up once, started again");
    } else {
      auto request = any_.start(call);
      while (!request.test()) std::this_thread::yield();
      require_right("started");
    }
    return true;
  }

  bool runs(collx::any_call const& call) {
    try {
      (void)any_.prepare(call);
      return true;
    } catch (collx::error const& refused) {
      if (refused.code() != status::not_supported) throw;
      return false;
    }
  }

  void require_all_operators(collective_kind what) const {
    for (std::size_t op = 0; op < collx::reduce_op_count; ++op)
      if (has_meaning(what, static_cast<reduce_op>(op)) && !used_[static_cast<std::size_t>(what)][op])
        throw std::runtime_error(std::string("no call with ") + name(static_cast<reduce_op>(op)));
  }

  any_communicator& any_;
  char const* transport_;
  std::size_t types_;
  collx::replayable_random random_;
  std::size_t turn_, done_ = 0;
  bool used_[collx::collective_kind_count][collx::reduce_op_count] = {};
};

// A rank's walk over its transport. Returns how many calls that were.
template <class Transport>
std::size_t walk_on(collx::communicator<Transport>& comm, std::size_t types = collx::data_type_count) {
  any_communicator any = erased(comm);
  std::size_t const done = walk(any, Transport::name, types).run();
  any.barrier();  // a rank that only sends must not end before all have joined
  return done;
}

}  // namespace any_matrix
