// SPDX-License-Identifier: Apache-2.0
// graph: from whom a rank takes and to whom it gives in neighbour_all_gather and neighbour_all_to_all, and
// what both have in common.
#pragma once

#include <initializer_list>

#include "collx/collective/blocks.hpp"
#include "collx/collective/exchange.hpp"

namespace collx::inline abi_1 {

// One rank's part of a directed graph of the communicator's ranks, as MPI_Dist_graph_create_adjacent takes
// it: an edge that a rank has among its destinations, the other end has among its sources. Ranks may occur
// several times (the k-th edge is then the same one on both ends), this rank included. Copied and allocated
// here, once; the ranks of the graph need not all make it. Belongs to the communicator it is made with,
// and outlives the requests started with it.
class graph {
 public:
  using must_be_named = void;  // in calls that use it later

  // Throws error (bad_argument) naming a rank that there is not, or that this rank has an edge to itself
  // that only begins or only ends here.
  template <class Transport>
  graph(communicator<Transport>& comm, std::span<rank_t const> sources, std::span<rank_t const> destinations)
      : order_(comm.size(), static_cast<std::int32_t>(sources.size() + destinations.size())),
        peers_(sources.size() + destinations.size()),
        destination_count_(destinations.size()),
        along_(comm.standing().along),
        engine_(&comm.engine()) {
    std::int64_t own = 0;
    for (rank_t const peer : destinations) own += add(peer, comm, "destinations");
    for (rank_t const peer : sources) own -= add(peer, comm, "sources");
    if (own != 0)
      detail::throw_wrong_argument("graph", detail::where(comm),
                                   "a rank must be as often among its own sources as among its destinations",
                                   own, 0);
    detail::reserve_chains(comm.engine());
  }
  // graph(comm, {left, right}, {left, right})
  template <class Transport>
  graph(communicator<Transport>& comm, std::initializer_list<rank_t> sources,
        std::initializer_list<rank_t> destinations)
      : graph(comm, std::span(sources.begin(), sources.size()),
              std::span(destinations.begin(), destinations.size())) {}

  [[nodiscard]] std::span<rank_t const> destinations() const noexcept {
    return {peers_.data(), destination_count_};
  }
  [[nodiscard]] std::span<rank_t const> sources() const noexcept {
    return {peers_.data() + destination_count_, peers_.size() - destination_count_};
  }
  [[nodiscard]] exec::message_chains chains() const noexcept { return order_.chains(); }
  [[nodiscard]] axis const& along() const noexcept { return along_; }
  [[nodiscard]] bool made_with(void const* engine, axis const& along) const noexcept {
    return engine == engine_ && along == along_;
  }

 private:
  // Returns whether it is an edge of the rank to itself.
  template <class Transport>
  bool add(rank_t peer, communicator<Transport>& comm, char const* list) {
    if (peer < 0 || peer >= comm.size())
      throw_error(status::bad_argument,
                  "graph on rank %d: rank %d among its %s is no rank of the %d there are", comm.rank(), peer,
                  list, comm.size());
    std::int32_t const number = order_.count();
    peers_[static_cast<std::size_t>(number)] = peer;
    order_.append(peer, static_cast<std::size_t>(number) < destination_count_);
    return peer == comm.rank();
  }

  exec::message_order order_;
  array<rank_t> peers_;  // destinations, then sources
  std::size_t destination_count_;
  axis along_;
  void const* engine_;
};

namespace detail {

// Where the blocks of one buffer lie: equally far apart (all at the same place: not apart at all), or as a
// table of counts has it.
struct block_places {
  std::byte* data = nullptr;
  std::size_t bytes = 0, stride_bytes = 0;
  std::size_t const* counts = nullptr;
  std::size_t const* offsets = nullptr;
  std::size_t element_bytes = 1;

  [[nodiscard]] std::byte* at(std::size_t k) const noexcept {
    if (counts == nullptr) return data + k * stride_bytes;
    if (offsets != nullptr) return data + offsets[k] * element_bytes;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < k; ++i) begin += counts[i];
    return data + begin * element_bytes;
  }
  [[nodiscard]] std::size_t size(std::size_t k) const noexcept {
    return counts == nullptr ? bytes : counts[k] * element_bytes;
  }
};

template <class T>
[[nodiscard]] block_places equal_places(T* data, std::size_t count, std::size_t stride) noexcept {
  return {reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(data)), count * sizeof(T),
          stride * sizeof(T)};
}
template <class T>
[[nodiscard]] block_places table_places(blocks<T> const& b) noexcept {
  block_places places = equal_places(b.data.data(), 0, 0);
  places.counts = b.counts.data();
  places.offsets = b.offsets.empty() ? nullptr : b.offsets.data();
  places.element_bytes = sizeof(T);
  return places;
}

// One message for every edge, worked out from the buffers when it is needed.
struct neighbour_messages {
  exec::message_chains order{};
  rank_t const* peers = nullptr;
  axis along{};
  std::size_t destination_count = 0;
  block_places input{}, output{};

  [[nodiscard]] exec::message_chains const& chains() const noexcept { return order; }
  [[nodiscard]] exec::message operator[](std::int32_t i) const noexcept {
    auto const k = static_cast<std::size_t>(i);
    rank_t const peer = along.rank_of(peers[k]);
    if (k < destination_count) return {input.at(k), input.size(k), peer, true};
    return {output.at(k - destination_count), output.size(k - destination_count), peer, false};
  }
};

// A call on a graph, bound and checked.
struct neighbour_call {
  exec::call what{};
  neighbour_messages messages{};
  graph const* edges = nullptr;  // while the call is made; the messages refer to what it holds
  exec::standing at{};
  rank_t root = 0;  // none
  char const* fault = nullptr;
  std::int64_t given = 0, needed = 0;

  [[nodiscard]] exec::call describe(char const* form = "blocking") const noexcept {
    exec::call described = what;
    described.form = form;
    described.at = at;
    return described;
  }
};

// A name for messages, in the place of a contract: there is no schedule, and so none to choose.
template <class T>
using neighbour_arguments = invocation<struct on_a_graph, T, unreduced>;

template <class T>
[[nodiscard]] neighbour_call bind_to_graph(char const* name, graph const& edges,
                                           neighbour_arguments<T> const& args, block_places const& input,
                                           block_places const& output) noexcept {
  neighbour_call call;
  call.what.collective = name;
  call.what.algorithm = "all at once";
  call.what.element_type = &element_kind_of<T>;
  call.messages = {
      edges.chains(), edges.destinations().data(), edges.along(), edges.destinations().size(), input, output};
  call.edges = &edges;
  call.fault = args.fault;
  call.given = args.given;
  call.needed = args.needed;
  return call;
}

inline constexpr char const* other_graph = "the graph was made with another communicator; make one with this";

template <class Algorithm>
inline constexpr bool names_no_algorithm =
    std::is_same_v<Algorithm, automatic> || std::is_same_v<Algorithm, default_algorithm>;

// What COLLX_DETAIL_FORMS ends in, for calls on a graph.
template <class Algorithm, class Endpoint>
[[nodiscard]] status run(exec::engine<Endpoint>& engine, neighbour_call const& call) noexcept {
  static_assert(names_no_algorithm<Algorithm>, "collx: on a graph there is no algorithm to choose");
  if (call.fault != nullptr || !call.edges->made_with(&engine, call.at.along)) return status::bad_argument;
  if (engine.checker() != nullptr)
    if (status const agreed = engine.checker()(engine, call.describe()); agreed != status::ok) return agreed;
  return engine.run([&]() noexcept { return call.describe(); },
                    [&](int lane) noexcept { return make_exchange(engine, lane, call.messages); });
}

template <class Endpoint>
void require_on_graph(exec::engine<Endpoint>& engine, neighbour_call const& call) {
  if (call.fault != nullptr)
    throw_wrong_argument(call.what.collective, call.at.where, call.fault, call.given, call.needed);
  if (!call.edges->made_with(&engine, call.at.along))
    throw_wrong_argument(call.what.collective, call.at.where, other_graph, 0, 0);
}

template <class Algorithm, class Endpoint>
void run_or_throw(exec::engine<Endpoint>& engine, neighbour_call const& call) {
  require_on_graph(engine, call);
  if (run<Algorithm>(engine, call) != status::ok) throw error(engine.failure());
}

template <class Endpoint>
[[nodiscard]] request<Endpoint> start_on_graph(exec::engine<Endpoint>& engine, neighbour_call const& call,
                                               priority how) {
  // By value: it is called when the lane is free.
  auto const make = [&engine, messages = call.messages](int lane) noexcept {
    return make_exchange(engine, lane, messages);
  };
  return {engine, engine.start(call.describe(), make, how)};
}

template <class Algorithm, class Endpoint>
[[nodiscard]] request<Endpoint> begin(exec::engine<Endpoint>& engine, neighbour_call const& call,
                                      priority how) {
  static_assert(names_no_algorithm<Algorithm>, "collx: on a graph there is no algorithm to choose");
  require_on_graph(engine, call);
  if (engine.checker() != nullptr &&
      engine.checker()(engine, call.describe(name_of_started(how))) != status::ok)
    throw error(engine.failure());
  return start_on_graph(engine, call, how);
}

}  // namespace detail

// A call on a graph that is set up once, with the contract of `persistent_collective` (persistent.hpp):
// arguments are checked, and compared with the other ranks' if the communicator checks that, when it is
// made; a start only sends the messages of the edges. Belongs to its graph, and must not outlive it.
template <class Endpoint>
class persistent_graph_call {
 public:
  persistent_graph_call(exec::engine<Endpoint>& engine, detail::neighbour_call const& call,
                        priority how) noexcept
      : engine_(&engine), call_(call), how_(how), blocks_(blocks_now()) {}

  // Waits for the last start first. Throws error (bad_argument) if counts or offsets have changed.
  void start() {
    wait();
    if (COLLX_UNLIKELY(blocks_now() != blocks_)) detail::throw_changed_blocks(call_.what.collective);
    current_ = detail::start_on_graph(*engine_, call_, how_);
  }
  // As those of a request; before the first start they return at once.
  [[nodiscard]] bool test() { return current_.test(); }
  void wait() { current_.wait(); }
  [[nodiscard]] status try_test() noexcept { return current_.try_test(); }
  [[nodiscard]] status try_wait() noexcept { return current_.try_wait(); }

  [[nodiscard]] char const* algorithm() const noexcept { return call_.what.algorithm; }

 private:
  [[nodiscard]] std::uint64_t blocks_now() const noexcept {
    detail::block_places const &input = call_.messages.input, &output = call_.messages.output;
    // Not of the graph, which may have been moved since.
    std::size_t const destinations = call_.messages.destination_count;
    std::size_t const sources = static_cast<std::size_t>(call_.messages.order.count) - destinations;
    std::uint64_t print = detail::fingerprint(0, input.counts, destinations);
    print = detail::fingerprint(print, input.offsets, destinations);
    print = detail::fingerprint(print, output.counts, sources);
    return detail::fingerprint(print, output.offsets, sources);
  }

  exec::engine<Endpoint>* engine_;
  detail::neighbour_call call_;
  priority how_;
  std::uint64_t blocks_;
  request<Endpoint> current_;
};

namespace detail {

template <class Algorithm, class Endpoint>
[[nodiscard]] persistent_graph_call<Endpoint> prepare(exec::engine<Endpoint>& engine,
                                                      neighbour_call const& call, priority how) {
  static_assert(names_no_algorithm<Algorithm>, "collx: on a graph there is no algorithm to choose");
  require_on_graph(engine, call);
  if (engine.checker() != nullptr &&
      engine.checker()(engine, call.describe(name_of_persistent(how))) != status::ok)
    throw error(engine.failure());
  return {engine, call, how};
}

}  // namespace detail
}  // namespace collx::inline abi_1
