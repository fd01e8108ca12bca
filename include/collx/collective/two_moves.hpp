// SPDX-License-Identifier: Apache-2.0
// What takes two collectives with work of this rank around them, started and persistent:
// all_reduce_fixed_tree, staged_all_to_all. Both are started at once, the second one behind the first, so
// that it is the same requests in the same order on every rank. What is between them is done when the second
// one begins, within whichever call moves the communicator's requests along.
#pragma once

#include "collx/collective/forms.hpp"
#include "collx/exec/kept_memory.hpp"

namespace collx::inline abi_1 {

namespace detail {

// Whether a collective takes messages, and so a request; otherwise run_alone() does what there is to do.
template <class Contract, class T, class Op>
[[nodiscard]] bool takes_messages(invocation<Contract, T, Op> const& args) noexcept {
  return args.at.where.size > 1 && !moves_nothing(args);
}

// `before` is called when it begins: with its lane free, and what it is behind ended.
template <class Contract, class T, class Op, class Endpoint, class Before>
[[nodiscard]] exec::ticket start_move(exec::engine<Endpoint>& engine, choice const& with,
                                      invocation<Contract, T, Op> const& args, priority how,
                                      exec::ticket const* behind, Before const& before) noexcept {
  exec::scheduled_call const call = scheduled(with, args);
  // By value: it is called when nothing of this is left.
  auto const make = [kept = kept_call<Op, Endpoint>(engine, call, args.op), before](int lane) noexcept {
    before();
    return kept(lane);
  };
  return engine.start(call.what, make, how, behind);
}

template <class Algorithm, class Contract, class T, class Op, class Endpoint>
[[nodiscard]] choice choose_move(exec::engine<Endpoint>& engine, invocation<Contract, T, Op> const& args,
                                 char const* form) {
  return compiled_collective<Contract, T, Op, Endpoint, Algorithm>::choose(engine, args, form);
}

}  // namespace detail

// The request, with the members of `request`; and what persistent_of_two starts again and again. `Work` has
//   first(), second()               the two, as bound arguments
//   before(), between(), after()    what this rank does around them
//   bytes_needed(), use(memory)     memory that it works in, from the engine's kept memory
//   no_memory                       what to say where there is none
// and lies in that memory too, so that it stays where it is when this is moved.
template <class Work, class Endpoint>
class request_of_two {
 public:
  using engine_type = exec::engine<Endpoint>;

  request_of_two() = default;  // of nothing: done
  template <class Algorithm>
  request_of_two(engine_type& engine, Work&& work, priority how, std::type_identity<Algorithm> which)
      : request_of_two(engine, static_cast<Work&&>(work), how, which, true) {
    launch();
  }
  request_of_two(request_of_two&& other) noexcept { swap(other); }
  request_of_two& operator=(request_of_two&& other) noexcept {
    swap(other);
    return *this;
  }
  ~request_of_two() {
    if (running_ && !is_of_forked_child(engine_->endpoint())) (void)try_wait();
    release();
  }

  [[nodiscard]] bool test() {
    status const outcome = try_test();
    if (outcome != status::ok && outcome != status::pending) throw error(engine_->failure());
    return outcome == status::ok;
  }
  void wait() {
    if (try_wait() != status::ok) throw error(engine_->failure());
  }
  [[nodiscard]] status try_test() noexcept {
    if (!running_) return status::ok;
    status outcome = second_.try_test();
    if (outcome == status::ok) outcome = first_.try_test();
    return outcome == status::pending ? outcome : finish(outcome);
  }
  [[nodiscard]] status try_wait() noexcept { return running_ ? finish(second_.try_wait()) : status::ok; }

 protected:
  // Sets up; `once`: memory is given back when the first start has ended.
  template <class Algorithm>
  request_of_two(engine_type& engine, Work&& work, priority how, std::type_identity<Algorithm>, bool once)
      : engine_(&engine), how_(how), once_(once) {
    try {
      constexpr std::size_t alignment = exec::kept_memory::alignment;
      std::size_t const own = (sizeof(Work) + alignment - 1) / alignment * alignment;
      memory_ = engine.memory().take(own + work.bytes_needed());
      work_ = ::new (static_cast<void*>(memory_)) Work(static_cast<Work&&>(work));
      work_->use(memory_ + own);
      char const* const form = once ? detail::name_of_started(how) : detail::name_of_persistent(how);
      first_with_ = detail::choose_move<Algorithm>(engine, work_->first(), form);
      second_with_ = detail::choose_move<Algorithm>(engine, work_->second(), form);
    } catch (std::bad_alloc const&) {
      release();
      exec::call const what{.collective = Work::name};
      engine.record(status::out_of_memory, engine.report_for(what), {},
                    false);  // the others wait for this rank
      throw error(status::out_of_memory, Work::no_memory);
    } catch (...) {
      release();
      throw;
    }
  }

  void launch() noexcept {
    running_ = true;
    work_->before();
    auto const first = work_->first();
    auto const second = work_->second();
    bool const sends_first = detail::takes_messages(first);
    between_at_end_ = !detail::takes_messages(second);
    exec::ticket sent{};
    if (sends_first) {
      sent = detail::start_move(*engine_, first_with_, first, how_, nullptr, [] {});
      first_ = request<Endpoint>(*engine_, sent);
    } else {
      detail::run_alone(first);
      first_ = detail::request_of_nothing(*engine_);
    }
    if (between_at_end_) return;
    auto const between = [engine = engine_, work = work_] {
      if (engine->failure().code == status::ok) work->between();
    };
    second_ = request<Endpoint>(*engine_, detail::start_move(*engine_, second_with_, second, how_,
                                                             sends_first ? &sent : nullptr, between));
  }

  [[nodiscard]] Work const& work() const noexcept { return *work_; }

 private:
  status finish(status outcome) noexcept {
    status const first = first_.try_wait();  // ended before the second one began
    if (outcome == status::ok) outcome = first;
    if (outcome == status::ok && between_at_end_) {
      work_->between();
      detail::run_alone(work_->second());
    }
    if (outcome == status::ok) work_->after();
    running_ = false;
    if (once_) release();
    return outcome;
  }
  void release() noexcept {
    if (work_ != nullptr) work_->~Work();
    if (memory_ != nullptr) engine_->memory().give(memory_);
    work_ = nullptr;
    memory_ = nullptr;
  }
  void swap(request_of_two& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(memory_, other.memory_);
    std::swap(work_, other.work_);
    std::swap(first_with_, other.first_with_);
    std::swap(second_with_, other.second_with_);
    std::swap(how_, other.how_);
    std::swap(once_, other.once_);
    std::swap(running_, other.running_);
    std::swap(between_at_end_, other.between_at_end_);
    std::swap(first_, other.first_);
    std::swap(second_, other.second_);
  }

  engine_type* engine_ = nullptr;
  std::byte* memory_ = nullptr;
  Work* work_ = nullptr;
  detail::choice first_with_{}, second_with_{};
  priority how_ = priority::normal;
  bool once_ = true;
  bool running_ = false;
  bool between_at_end_ = false;  // the second one takes no messages, and so no request
  request<Endpoint> first_, second_;
};

// Set up once, started as often as wanted: as persistent_collective, whose rules for buffers, counts and
// order are those here (persistent.hpp). It keeps its memory for its life, so that a start allocates nothing.
template <class Work, class Endpoint>
class persistent_of_two : private request_of_two<Work, Endpoint> {
  using request_type = request_of_two<Work, Endpoint>;

 public:
  template <class Algorithm>
  persistent_of_two(exec::engine<Endpoint>& engine, Work&& work, priority how,
                    std::type_identity<Algorithm> which)
      : request_type(engine, static_cast<Work&&>(work), how, which, false), blocks_(blocks_now()) {}

  void start() {
    this->wait();
    if (COLLX_UNLIKELY(blocks_now() != blocks_)) detail::throw_changed_blocks(Work::name);
    this->launch();
  }
  using request_type::test;
  using request_type::try_test;
  using request_type::try_wait;
  using request_type::wait;

 private:
  [[nodiscard]] std::uint64_t blocks_now() const noexcept {
    if constexpr (requires { this->work().fingerprint(); }) return this->work().fingerprint();
    else return 0;
  }

  std::uint64_t blocks_;
};

}  // namespace collx::inline abi_1
