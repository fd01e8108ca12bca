// SPDX-License-Identifier: Apache-2.0
// Collectives on memory of a GPU that a thread of the host drives, over any transport: copy engines bring
// pieces to memory of the host and results back, in stream order; no kernel runs, but for what the user's
// streams do anyway. See docs/gpu_collectives.md.
#pragma once

#include <atomic>
#include <thread>

#include <sched.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/forms.hpp"
#include "collx/core/array.hpp"
#include "collx/core/clock.hpp"
#include "collx/transport/copier.hpp"
#include "collx/transport/cuda/process_name.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <class Endpoint>
concept is_of_one_thread = requires { requires Endpoint::is_of_one_thread; };

}  // namespace detail

// One rank's thread. While it lives, the communicator is its own: the user calls nothing on it. Calls are
// made in the same order on all ranks, and done in that order: what one of them waits for must not wait for a
// later one.
template <class Transport, transport::copier Copier>
class host_driven {
  static_assert(
      !detail::is_of_one_thread<typename Transport::endpoint>,
      "collx: communicators over mpi and ucx belong to the thread that joined, and these calls are made "
      "by one of their own; take shm, threads, tcp or composite");

 public:
  using communicator_type = communicator<Transport>;
  using stream = typename Copier::stream;
  static constexpr bool runs_on_gpus = true;

  // Collective over `comm`: ranks tell each other which GPU they have. `copies` and `comm` must outlive this
  // object. Throws error, as all_gather does.
  host_driven(communicator_type& comm, Copier& copies)
      : comm_(comm),
        copies_(copies),
        rank_(comm.rank()),
        size_(comm.size()),
        shares_device_(ask_for_neighbours()),
        before_(last_number()),
        thread_([this] { serve(); }) {}
  host_driven(host_driven const&) = delete;
  // Does what was called first.
  ~host_driven() {
    // Release: the thread sees every command that was put in before.
    ending_.store(true, std::memory_order_release);
    thread_.join();
  }

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return size_; }
  [[nodiscard]] Copier& copies() const noexcept { return copies_; }
  // Whether another rank of this process has the same GPU: then no stream may be one that waits for others'
  // by itself, as a rank that is held there would hold the one it waits for.
  [[nodiscard]] bool shares_device() const noexcept { return shares_device_; }

  // What a call met with that was done meanwhile: throws error, as its blocking form would have.
  void throw_if_failed() {
    // Acquire: the communicator's report was written before.
    status const code = failed_.load(std::memory_order_acquire);
    if (COLLX_LIKELY(code == status::ok)) return;
    // What has failed here aborted the communicator, whose report says no more than that.
    if (comm_.failure().code == code) throw error(comm_.failure());
    throw error(
        code,
        "host-driven collective: a copy between the GPU and the host failed, or a stream stands still "
        "for good; look at CUDA's own error");
  }

  // For collectives (host_driven_forms below): puts a call into a stream. Throws error for bad arguments, for
  // what an earlier call met with, and (timeout) if the calls before it do not end.
  template <class Algorithm, class Contract, class T, class Op>
  void enqueue(detail::invocation<Contract, T, Op> const& args, stream where) {
    using arguments = detail::invocation<Contract, T, Op>;
    static_assert(!detail::is_uneven<Contract> && !detail::is_apart<Contract>,
                  "collx: calls that the host drives take blocks that are all alike");
    static_assert(sizeof(arguments) <= sizeof(command::arguments) && std::is_trivially_copyable_v<arguments>);
    arguments const of_this_rank = detail::called_by({rank_, size_, args.root}, args);
    if (of_this_rank.is_wrong()) detail::throw_wrong(of_this_rank);
    throw_if_failed();
    if (detail::needs_elements<Contract> && args.count == 0) return;
    require_piece<Contract, T>();
    command& next = commands_[called_ % depth];
    std::uint64_t const began = now_us();
    // Acquire: the slot's last command has been read before it is written.
    while (called_ - done_.load(std::memory_order_acquire) >= depth) {
      if (now_us() - began > comm_.timeout_us())
        throw error(status::timeout,
                    "host-driven collective: the calls before it do not end; do their streams run?");
      sched_yield();
    }
    next.perform = [](host_driven& self, command const& mine) noexcept {
      struct {
        std::byte bytes[sizeof(arguments)];
      } copy;  // an operator need not have a default constructor
      std::memcpy(&copy, mine.arguments, sizeof copy);
      return self.perform<Algorithm>(__builtin_bit_cast(arguments, copy));
    };
    std::memcpy(next.arguments, &args, sizeof args);
    std::uint32_t const number = number_of(called_);
    copies_.mark(where, reached(called_), number);
    try {
      copies_.hold(where, finished(called_), number);
    } catch (...) {
      // The stream writes the number all the same, and it must not be taken for that of the next call.
      next.perform = [](host_driven&, command const&) noexcept { return status::ok; };
      publish();
      throw;
    }
    publish();
  }

 private:
  static constexpr std::uint64_t depth = 32;

  struct command {
    status (*perform)(host_driven&, command const&) noexcept;
    alignas(16) std::byte arguments[192];
  };

  // Release: publishes the command.
  void publish() noexcept { put_.store(++called_, std::memory_order_release); }

  // What a rank tells the others. Plain bytes.
  struct seat {
    transport::cuda_parts::process_name process;
    std::int64_t device;
  };

  [[nodiscard]] bool ask_for_neighbours() {
    seat const mine{transport::cuda_parts::process_name::mine(), copies_.device()};
    array<seat> all(static_cast<std::size_t>(size_));
    all_gather(comm_, std::as_bytes(std::span(&mine, 1)),
               std::as_writable_bytes(std::span(all.data(), all.size())));
    int here = 0;
    for (seat const& each : all) here += each.process == mine.process && each.device == mine.device;
    return mine.device >= 0 && here > 1;
  }

  [[nodiscard]] std::uint32_t* reached(std::uint64_t call) {
    return copies_.word(static_cast<int>(call % depth));
  }
  [[nodiscard]] std::uint32_t* finished(std::uint64_t call) {
    return copies_.word(static_cast<int>(depth + call % depth));
  }

  // Calls are numbered on from those of whoever used these copies before: his numbers are still in the words,
  // and streams may not have seen the last ones yet.
  [[nodiscard]] std::uint32_t number_of(std::uint64_t call) const {
    return before_ + static_cast<std::uint32_t>(call) + 1;
  }
  [[nodiscard]] std::uint32_t last_number() {
    std::uint32_t last = 0;
    for (int i = 0; i < static_cast<int>(2 * depth); ++i) {
      // Relaxed: a number, which nobody changes any more.
      std::uint32_t const number = std::atomic_ref(*copies_.word(i)).load(std::memory_order_relaxed);
      if (static_cast<std::int32_t>(number - last) > 0) last = number;
    }
    return last;
  }

  // ---- the thread --------------------------------------------------------------------------------

  void serve() noexcept {
    for (std::uint64_t call = 0;; ++call) {
      // Acquire: see enqueue() and the destructor, which sets `ending_` after the last call.
      while (put_.load(std::memory_order_acquire) == call) {
        if (ending_.load(std::memory_order_acquire) && put_.load(std::memory_order_acquire) == call) return;
        rest();
      }
      std::uint32_t const number = number_of(call);
      status const come = await_stream(call, number);
      command const& mine = commands_[call % depth];
      // After a failure streams go on all the same, with undefined results: nobody hangs.
      if (failed_.load(std::memory_order_relaxed) == status::ok)  // relaxed: written by this thread only
        if (status const outcome = come == status::ok ? mine.perform(*this, mine) : come;
            outcome != status::ok) {
          comm_.abort();  // where only a copy of this rank has failed the others would wait for it
          end_copies();   // before the stream, and the memory's owner, go on
          failed_.store(outcome, std::memory_order_release);  // release: see throw_if_failed()
        }
      idle_ = 0;
      // Release: results are in the GPU's memory before the stream goes on.
      std::atomic_ref(*finished(call)).store(number, std::memory_order_release);
      done_.store(call + 1, std::memory_order_release);  // release: the command has been read
    }
  }

  // What runs before in the stream may take long, so this wait has no deadline but the stream's own end: a
  // stream that stands still for good never comes.
  [[nodiscard]] status await_stream(std::uint64_t call, std::uint32_t number) noexcept {
    constexpr std::uint32_t looks_between_checks = 256;
    // Acquire: what the stream did before it wrote the word is done.
    while (std::atomic_ref(*reached(call)).load(std::memory_order_acquire) != number) {
      rest();
      if (idle_ % looks_between_checks != 0) continue;
      if (status const state = copies_.state(); state != status::ok) return state;
    }
    return status::ok;
  }

  // Looks often for a while, then seldom: a rank that has nothing to do leaves its processor to others.
  void rest() noexcept {
    if (++idle_ < 2000) {
      sched_yield();
      return;
    }
    timespec const pause{0, 20'000};
    (void)nanosleep(&pause, nullptr);
  }

  // Piece by piece: while the ranks combine one, the next one is fetched and the last one stored.
  template <class Algorithm, class Contract, class T, class Op>
  [[nodiscard]] status perform(detail::invocation<Contract, T, Op> const& args) noexcept {
    problem const p{rank_, size_, args.root};
    auto const inputs = static_cast<std::size_t>(Contract::input(p).count);
    auto const outputs = static_cast<std::size_t>(Contract::output(p).count);
    std::size_t const most = piece_elements<Contract, T>();
    std::size_t const pieces = args.count == 0 ? 1 : (args.count + most - 1) / most;
    auto const count_of = [&](std::size_t i) { return i + 1 < pieces ? most : args.count - i * most; };
    auto const fetch = [&](std::size_t i) noexcept {
      std::size_t const width = count_of(i) * sizeof(T);
      return copies_.fetch(half_of(i), {input_of(i), width, bytes(behind(args.input, i * most)),
                                        args.count * sizeof(T), width, inputs});
    };
    if (status const s = fetch(0); s != status::ok) return s;
    for (std::size_t i = 0; i < pieces; ++i) {
      if (i + 1 < pieces) {
        // The other half is free once the result before last is stored.
        if (status const s = await([&] { return copies_.stored(half_of(i + 1)); }); s != status::ok) return s;
        if (status const s = fetch(i + 1); s != status::ok) return s;
      }
      if (status const s = await([&] { return copies_.fetched(half_of(i)); }); s != status::ok) return s;
      auto piece = args;
      piece.in_place = false;
      piece.count = count_of(i);
      piece.input = reinterpret_cast<T const*>(input_of(i));
      piece.output = reinterpret_cast<T*>(input_of(i) + inputs * piece.count * sizeof(T));
      status const outcome = detail::run<Algorithm>(comm_.engine(), detail::called_on(comm_, piece));
      if (outcome != status::ok) return outcome;
      std::size_t const width = piece.count * sizeof(T);
      status const stored =
          copies_.store(half_of(i), {bytes(behind(args.output, i * most)), args.count * sizeof(T),
                                     bytes(piece.output), width, width, outputs});
      if (stored != status::ok) return stored;
    }
    for (int half = 0; half < 2; ++half)
      if (status const s = await([&] { return copies_.stored(half); }); s != status::ok) return s;
    return status::ok;
  }

  // What a call that has failed has queued: copies that came later would write to memory that is used for
  // something else by then.
  void end_copies() noexcept {
    for (int half = 0; half < 2; ++half) {
      (void)await([&] { return copies_.fetched(half); });
      (void)await([&] { return copies_.stored(half); });
    }
  }

  template <class Done>
  [[nodiscard]] status await(Done const& done) noexcept {
    std::uint64_t const began = now_us();
    for (;;) {
      status const outcome = done();
      if (outcome != status::pending) return outcome;
      if (now_us() - began > comm_.timeout_us()) return status::timeout;
      sched_yield();
    }
  }

  // Elements of each block that go at a time: the same on all ranks, whatever their own windows are.
  template <class Contract, class T>
  [[nodiscard]] std::size_t piece_elements() const {
    auto const blocks = static_cast<std::size_t>(Contract::sharded ? 2 * size_ : 2);
    return copies_.half_bytes() / blocks / sizeof(T);
  }

  template <class Contract, class T>
  void require_piece() const {
    if (piece_elements<Contract, T>() != 0) return;
    throw error(
        status::not_supported,
        "host-driven collective: the staging memory does not hold one element for each rank; give it more");
  }

  // Where a rank gives or gets nothing there may be no buffer, and no offset either.
  template <class T>
  [[nodiscard]] static T* behind(T* buffer, std::size_t elements) noexcept {
    return buffer == nullptr ? buffer : buffer + elements;
  }

  [[nodiscard]] static int half_of(std::size_t piece) { return static_cast<int>(piece % 2); }
  [[nodiscard]] std::byte* input_of(std::size_t piece) { return copies_.staging(half_of(piece)); }
  template <class T>
  [[nodiscard]] static auto bytes(T* p) {
    using byte = std::conditional_t<std::is_const_v<T>, std::byte const, std::byte>;
    return reinterpret_cast<byte*>(p);
  }

  communicator_type& comm_;
  Copier& copies_;
  rank_t rank_, size_;
  bool shares_device_;
  std::uint32_t before_;  // the number of the last call of an earlier user of these copies
  command commands_[depth]{};
  std::uint64_t called_ = 0;
  std::uint32_t idle_ = 0;
  std::atomic<std::uint64_t> put_{0}, done_{0};
  std::atomic<bool> ending_{false};
  std::atomic<status> failed_{status::ok};
  std::thread thread_;
};

}  // namespace collx::inline abi_1
