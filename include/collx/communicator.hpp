// SPDX-License-Identifier: Apache-2.0
// What the user holds: one rank's membership in a group. Owns the endpoint, the requests in flight
// and the first failure. Collectives are free functions in collective/.
#pragma once

#include "collx/core/checking.hpp"
#include "collx/exec/engine.hpp"

namespace collx::inline abi_1 {

// Memory that peers can read and write in place: collectives on it copy nothing. Belongs to the
// communicator's world and must be destroyed before the last communicator of it, when no call and no request
// of this rank uses it; peers need not destroy theirs then. Movable (assignment swaps), not copyable.
template <class T, class World>
class symmetric_buffer {
  static_assert(std::is_trivially_copyable_v<T>,
                "collx: symmetric memory is for trivially copyable elements: peers copy their bytes");

 public:
  // Throws error (out_of_memory).
  symmetric_buffer(World& world, std::size_t count)
      : world_(&world), data_(reinterpret_cast<T*>(world.allocate(bytes_of(count)))), count_(count) {}
  symmetric_buffer(symmetric_buffer&& other) noexcept
      : world_(other.world_),
        data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  symmetric_buffer& operator=(symmetric_buffer&& other) noexcept {
    std::swap(world_, other.world_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~symmetric_buffer() {
    if (data_ != nullptr) world_->deallocate(reinterpret_cast<std::byte*>(data_), count_ * sizeof(T));
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T* begin() const noexcept { return data_; }
  [[nodiscard]] T* end() const noexcept { return data_ + count_; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data_, count_}; }

 private:
  [[nodiscard]] static std::size_t bytes_of(std::size_t count) {
    if (count <= PTRDIFF_MAX / sizeof(T)) return count * sizeof(T);
    throw_error(status::out_of_memory,
                "allocate: %zu elements of %zu bytes fit into no memory; is the count negative?", count,
                sizeof(T));
  }

  World* world_;
  T* data_;
  std::size_t count_;
};

template <class Endpoint>
class request;

// One rank of a group. One thread uses it at a time; different communicators may be used by different
// threads at once, but for one and those that along() makes of it, which count as one, and over mpi and ucx,
// where all belong to the thread that joined. All ranks call the same collectives in the same order.
//
// Requests, persistent collectives, exchanges, groups and meshes made with it must end before it.
// Movable, not copyable; assignment swaps. A group, a mesh, a gpu_communicator and a host_driven refer to the
// object, which must stay where it is while they live; the others do not mind a move. One that was moved from
// may be destroyed or assigned to; all other calls on it are undefined.
template <class Transport>
class communicator {
 public:
  using transport_type = Transport;
  using engine_type = exec::engine<typename Transport::endpoint>;
  using world_type = typename Transport::world;
  using request_type = request<typename Transport::endpoint>;  // what start:: returns

  // Internal: for transports and split. Takes over one count of the world's references, and the engine.
  communicator(world_type* world, engine_type* engine) noexcept
      : world_(world),
        engine_(engine),
        where_{engine->endpoint().rank(), engine->endpoint().size()},
        owns_engine_(true) {}
  communicator(communicator&& other) noexcept { swap(other); }
  communicator& operator=(communicator&& other) noexcept {
    swap(other);
    return *this;
  }
  // Concerns this rank alone: no peer need do the same. Waits for the requests that were started on it and
  // not waited for, and swallows their errors. Over tcp, composite, mpi and ucx it also waits, at most as
  // long as the time-out, until what was sent no longer depends on this rank; over mpi the last one of a
  // world frees an MPI_Comm, which is collective.
  ~communicator();

  // The ranks on an axis of this communicator's, one of which is this rank, as a communicator that shares
  // lanes, the first failure, time-out, checking, tuning and buffers with this one: what is said to one holds
  // for both. It takes no memory on any rank, and is made without a message. Its ranks_per_group is 1. It
  // must not outlive this one; and they are used by one thread at a time together. Its started requests share
  // lanes with those of the other lines: there must be one order of all of them in which every rank starts
  // its own, such as all rows before all columns. Throws error (bad_argument). mesh.hpp makes them by name.
  [[nodiscard]] communicator along(axis const& line) const&;
  communicator along(axis const& line) const&& = delete;

  [[nodiscard]] rank_t rank() const noexcept { return where_.rank; }
  [[nodiscard]] rank_t size() const noexcept { return where_.size; }

  // How long a collective on this communicator may wait without getting a step further before it fails with
  // status::timeout: on this rank, whatever others say. By default COLLX_TIMEOUT_US, or 30 s. With 0 whatever
  // is not there after a few looks is a failure; there is no value that means for ever.
  void timeout_us(std::uint64_t value) noexcept { engine_->timeout_us(value); }
  [[nodiscard]] std::uint64_t timeout_us() const noexcept { return engine_->timeout_us(); }

  // Says how ranks lie: k * count .. k * count + count - 1 are near each other, on one host, say. What
  // hierarchical algorithms go by, and over composite the library's own choice; 1, the default, is no
  // structure: they are flat then. connect() says it where it knows, split() and along() begin with 1. The
  // same on every rank, and a divisor of size(); throws error (bad_argument) otherwise.
  void ranks_per_group(rank_t count) {
    if (count < 1 || size() % count != 0) throw_bad_group(count, size());
    where_.inner = count;
  }
  [[nodiscard]] rank_t ranks_per_group() const noexcept { return where_.inner; }

  // How much is checked at run time; see core/checking.hpp. Must be the same on every rank.
  // Defined in collective/agreement.hpp.
  void checking(checking_level level);
  [[nodiscard]] checking_level checking() const noexcept {
    return engine_->checker() != nullptr ? checking_level::communication : checking_level::normal;
  }

  // What `selected` goes by on this communicator and those split from it, before the environment
  // (tune/settings.hpp). Must say the same on every rank, and outlive them; null: nothing.
  void tuning(tune::settings const* said) noexcept { engine_->said().tuning = said; }

  // Says in which kind of memory the buffers of this communicator's calls lie, and those of communicators
  // split from it afterwards. With `symmetric` the library's own choice of algorithm counts on peers reaching
  // them (a long `reduce` over shm takes about half the time). With `unshared`, or with `any`, which is what
  // holds before anything is said, it does not. A hint: buffers of another kind give the same results, later.
  // Must say the same on every rank.
  void buffers(memory_kind kind) noexcept { engine_->said().buffers = kind; }
  [[nodiscard]] memory_kind buffers() const noexcept { return engine_->said().buffers; }

  // Memory for collectives without copies: `count` objects of T, zeroed, aligned to a cache line. With the
  // transports that there are it concerns this rank alone: nothing is sent, counts may differ, and so it is
  // when the buffer ends. Call it on every rank all the same: others may exchange registrations here. Throws
  // error (out_of_memory).
  template <class T>
  [[nodiscard]] symmetric_buffer<T, world_type> allocate(std::size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw_absurd_count(count, where_);
    return {*world_, count};
  }

  // The ranks that pass the same color form a new communicator, ordered by (key, rank) as in MPI_Comm_split.
  // Collective over this communicator; inherits time-out, checking, tuning and buffers. There is no color for
  // "none": pass one that nobody else has, (void)world.split(color, 0).
  // Throws error: out_of_memory, not_supported (no number) or system_failure (no descriptor) on all ranks of
  // a color of which one cannot have its part, and then leaves this communicator as it was; or what a
  // collective throws, which does not. Where out_of_memory is this rank's alone, its text says what to do for
  // the others, who wait. Defined in collective/split.hpp.
  [[nodiscard]] communicator split(std::int32_t color, std::int32_t key);

  // Makes every wait on this world, here and on every other rank, end with status::aborted. Any thread may
  // call it while the communicator lives; over mpi and ucx the other ranks then hear of it when the thread
  // that joined next waits.
  void abort() noexcept {
    if (engine_ != nullptr) engine_->abort(status::aborted);  // or it was moved from
  }

  // What failed first on this communicator; code ok while nothing has.
  [[nodiscard]] failure_report const& failure() const noexcept { return engine_->failure(); }

  // Bytes of memory that peers can reach, reserved for this communicator on this rank: they count when they
  // are touched. None for one that shares (along()).
  [[nodiscard]] std::size_t reserved_bytes() const noexcept {
    return owns_engine_ ? engine_->endpoint().reserved_bytes() : 0;
  }

  // How many connections came to this process's gates, those of the meeting included, and were not let in:
  // port scanners, say, or ranks of a job with another secret (docs/bootstrap.md). Over tcp and composite; of
  // the whole process, whichever communicator is asked.
  [[nodiscard]] std::uint64_t strangers() const noexcept
    requires requires(world_type& all) { all.strangers(); }
  {
    return world_->strangers();
  }

  // Internal: engine(), world() and standing() are what collectives are made of, and may change.
  [[nodiscard]] engine_type& engine() const noexcept { return *engine_; }
  [[nodiscard]] world_type& world() const noexcept { return *world_; }
  [[nodiscard]] exec::standing standing() const noexcept { return {where_, along_, started_}; }
  // The rank of the world that a rank here is.
  [[nodiscard]] rank_t world_rank(rank_t rank) const noexcept {
    return engine_->endpoint().world_rank(along_.rank_of(rank));
  }

 private:
  communicator() = default;

  void swap(communicator& other) noexcept {
    std::swap(world_, other.world_);
    std::swap(engine_, other.engine_);
    std::swap(where_, other.where_);
    std::swap(along_, other.along_);
    std::swap(started_, other.started_);
    std::swap(owns_engine_, other.owns_engine_);
  }

  [[noreturn]] COLLX_COLD static void throw_bad_axis(axis const& line, problem const& where) {
    throw_error(
        status::bad_argument,
        "along: ranks %d, %d + %d, ... (%d of them) of %d do not include this rank, %d, or do not exist",
        line.base, line.base, line.pitch, line.size, where.size, where.rank);
  }
  [[noreturn]] COLLX_COLD static void throw_absurd_count(std::size_t count, problem const& where) {
    throw_error(status::out_of_memory,
                "allocate on rank %d of %d: %zu elements fit into no memory; is the count negative?",
                where.rank, where.size, count);
  }
  [[noreturn]] COLLX_COLD static void throw_bad_group(rank_t count, rank_t size) {
    throw_error(
        status::bad_argument,
        "ranks_per_group: %d is not a divisor of the communicator's size, which is %d; groups must be "
        "equally large",
        count, size);
  }

  world_type* world_ = nullptr;
  engine_type* engine_ = nullptr;
  problem where_{};
  axis along_{};
  std::uint32_t* started_ = nullptr;  // counts for a group that shares its engine
  bool owns_engine_ = false;
};

// Whether this process is a child, forked since, of the rank whose endpoint this is. What that rank has
// begun, and who is connected with it, are not the child's: whatever it moved along would be missing there.
template <class Endpoint>
[[nodiscard]] COLLX_COLD bool is_of_forked_child([[maybe_unused]] Endpoint const& one) noexcept {
  if constexpr (requires { one.is_copy(); }) return one.is_copy();
  else return false;
}

// Outside the class, so that `extern template` leaves it out: it refers to all that sets a world up.
template <class Transport>
communicator<Transport>::~communicator() {
  delete started_;
  if (!owns_engine_) return;
  if (!is_of_forked_child(engine_->endpoint())) {
    engine_->finish_all();
    engine_->endpoint().leave();
  }
  delete engine_;
  world_->drop();
}

template <class Transport>
communicator<Transport> communicator<Transport>::along(axis const& line) const& {
  rank_t const number = line.pitch > 0 ? (where_.rank - line.base) / line.pitch : -1;
  bool const exists = line.size > 0 && line.base >= 0 && line.pitch > 0 &&
                      line.base + std::int64_t{line.size - 1} * line.pitch < where_.size;
  if (!exists || number < 0 || number >= line.size || line.base + number * line.pitch != where_.rank)
    throw_bad_axis(line, where_);
  communicator shared;
  shared.world_ = world_;
  shared.engine_ = engine_;
  shared.where_ = {number, line.size};
  shared.along_ = embed(line, along_);
  shared.started_ = new std::uint32_t(0);
  return shared;
}

// A started collective. The buffers passed to it belong to the library until wait() returns or
// test() has returned true. Destroying an unfinished request waits for it, and swallows its error. It must be
// waited for, or end, before its communicator does. Movable, not copyable; assignment swaps, so what the left
// side stood for is waited for when the right side ends.
template <class Endpoint>
class request {
 public:
  request() = default;
  request(exec::engine<Endpoint>& engine, exec::ticket t) noexcept : engine_(&engine), ticket_(t) {}
  request(request&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)), ticket_(other.ticket_) {}
  request& operator=(request&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(ticket_, other.ticket_);
    return *this;
  }
  ~request() {
    if (engine_ != nullptr && !is_of_forked_child(engine_->endpoint())) (void)engine_->wait(ticket_);
  }

  // Moves all requests of the communicator along; true when this one is done. Throws what wait()
  // throws. A finished request is empty: test() and wait() on it return at once.
  [[nodiscard]] bool test() {
    if (engine_ == nullptr) return true;
    status const outcome = engine_->test(ticket_);
    if (outcome == status::pending) return false;
    finish(outcome);
    return true;
  }

  // Returns when the collective is done; throws error when it failed.
  void wait() {
    if (engine_ != nullptr) finish(engine_->wait(ticket_));
  }

  // The noexcept twins: pending, ok, or what went wrong.
  [[nodiscard]] status try_test() noexcept {
    if (engine_ == nullptr) return status::ok;
    status const outcome = engine_->test(ticket_);
    if (outcome != status::pending) engine_ = nullptr;
    return outcome;
  }
  [[nodiscard]] status try_wait() noexcept {
    return engine_ == nullptr ? status::ok : std::exchange(engine_, nullptr)->wait(ticket_);
  }

 private:
  void finish(status outcome) {
    exec::engine<Endpoint>* const engine = std::exchange(engine_, nullptr);
    if (outcome != status::ok) throw error(engine->failure());
  }

  exec::engine<Endpoint>* engine_ = nullptr;
  exec::ticket ticket_{};
};

}  // namespace collx::inline abi_1
