// SPDX-License-Identifier: Apache-2.0
// Runs combine_kernel and copy_kernel on a GPU, and the same text on the host, over the same memory image;
// afterwards the images must be equal, to the last byte of what lies beside the vectors.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <collx/core/random.hpp>
#include <collx/device/cuda/kernels.cuh>

namespace device_trials {

using collx::device::launch_result;

inline void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// One launch. Vectors lie `shift_bytes` behind a line of 256 bytes, each `spread_bytes` further than the
// last.
struct outline {
  std::size_t count;
  int source_count, destination_count;
  std::size_t shift_bytes, spread_bytes;
  int in_place;  // the source that the first destination is; -1: none
  bool finish;
  int prepared;
};

// An operator on an element type, of which the runner need know no more.
struct subject {
  char const* type;
  char const* op;
  std::size_t element_bytes, element_alignment;
  collx::device::tile_sizes tiles;  // of its kernel, in elements
  void (*fill)(std::byte* vector, std::size_t count, collx::replayable_random& random);
  launch_result (*on_device)(outline const&, std::byte* const* destinations, std::byte* const* sources);
  void (*on_host)(outline const&, std::byte* const* destinations, std::byte* const* sources);
};

inline constexpr int vectors_max = 16;

template <class T>
struct typed {
  T* to[vectors_max] = {};
  T const* from[vectors_max] = {};
  typed(outline const& how, std::byte* const* destinations, std::byte* const* sources) {
    for (int j = 0; j < how.destination_count; ++j) to[j] = reinterpret_cast<T*>(destinations[j]);
    for (int k = 0; k < how.source_count; ++k) from[k] = reinterpret_cast<T const*>(sources[k]);
  }
};

// Small numbers, with fractions where the type has them: no result overflows an integer or is a NaN.
template <class T>
void fill_numbers(std::byte* vector, std::size_t count, collx::replayable_random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    if constexpr (std::is_integral_v<T>) value = static_cast<T>(random.below(5));
    else value = static_cast<T>(static_cast<float>(random.below(17)) * 0.375f - 3);
    std::memcpy(vector + i * sizeof(T), &value, sizeof value);
  }
}

template <class T>
void fill_bytes(std::byte* vector, std::size_t count, collx::replayable_random& random) {
  for (std::size_t i = 0; i < count * sizeof(T); ++i) vector[i] = static_cast<std::byte>(random.next());
}

// Op is made anew where it is called: it has no state, or that of its default.
template <class T, class Op>
subject combining(char const* type, char const* op, decltype(subject::fill) fill = fill_numbers<T>) {
  return {type,
          op,
          sizeof(T),
          alignof(T),
          collx::device::detail::combined_tiles<T, Op>,
          fill,
          [](outline const& how, std::byte* const* destinations, std::byte* const* sources) {
            typed<T> const all(how, destinations, sources);
            return collx::device::launch_combine(all.to, how.destination_count, all.from, how.source_count,
                                                 how.count, Op{}, how.finish, how.source_count, nullptr,
                                                 how.prepared);
          },
          [](outline const& how, std::byte* const* destinations, std::byte* const* sources) {
            typed<T> const all(how, destinations, sources);
            collx::device::solo_team alone;
            collx::device::combine(alone, all.to, how.destination_count, all.from, how.source_count,
                                   how.count, Op{}, how.finish, how.source_count, how.prepared);
          }};
}

// Copies the first source.
template <class T>
subject copying(char const* type) {
  constexpr std::size_t word_bytes = alignof(T) < 8 ? alignof(T) : 8;
  using word = collx::device::detail::copied_word<word_bytes>;
  constexpr collx::device::tile_sizes words = collx::device::detail::copied_tiles<word>;
  return {type,
          "copy",
          sizeof(T),
          alignof(T),
          {words.whole * word_bytes / sizeof(T), words.least * word_bytes / sizeof(T)},
          fill_bytes<T>,
          [](outline const& how, std::byte* const* destinations, std::byte* const* sources) {
            typed<T> const all(how, destinations, sources);
            return collx::device::launch_copy(all.to, how.destination_count, all.from[0], how.count, nullptr);
          },
          [](outline const& how, std::byte* const* destinations, std::byte* const* sources) {
            typed<T> const all(how, destinations, sources);
            collx::device::solo_team alone;
            collx::device::copy(alone, all.to, how.destination_count, all.from[0], how.count);
          }};
}

template <class T>
void add_operators(std::vector<subject>& all, char const* type) {
  all.push_back(combining<T, collx::sum_t>(type, "sum"));
  all.push_back(combining<T, collx::prod_t>(type, "prod"));
  all.push_back(combining<T, collx::min_t>(type, "min"));
  all.push_back(combining<T, collx::max_t>(type, "max"));
  all.push_back(combining<T, collx::avg_t>(type, "avg"));
  all.push_back(combining<T, collx::logical_and_t>(type, "land"));
  all.push_back(combining<T, collx::logical_or_t>(type, "lor"));
  if constexpr (std::is_integral_v<T>) {
    all.push_back(combining<T, collx::bit_and_t>(type, "band"));
    all.push_back(combining<T, collx::bit_or_t>(type, "bor"));
    all.push_back(combining<T, collx::bit_xor_t>(type, "bxor"));
  }
}

// The vectors of one trial: a piece of memory, once on the host and once on the device.
class image {
 public:
  image(subject const& what, outline const& how) : how_(how) {
    int const vectors = how.source_count + how.destination_count;
    slot_ = (how.count * what.element_bytes + 64 * vectors_max + 511) / 256 * 256;
    bytes_.assign(slot_ * static_cast<std::size_t>(vectors), std::byte{0xAB});
    collx::replayable_random random(how.count + static_cast<std::size_t>(how.source_count));
    std::byte* vectors_at[vectors_max];
    place(bytes_.data(), vectors_at, vectors_at + how.destination_count);
    for (int k = 0; k < how.source_count; ++k)
      what.fill(vectors_at[how.destination_count + k], how.count, random);
  }

  // Whether the device makes of it what the host does.
  bool agrees(subject const& what) {
    std::byte* device = nullptr;
    require(cudaMalloc(&device, bytes_.size()), "cudaMalloc");
    require(cudaMemcpy(device, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice), "to the device");
    std::byte* at[vectors_max];
    place(device, at, at + how_.destination_count);
    launch_result const result = what.on_device(how_, at, at + how_.destination_count);
    require(result.error, "launch");
    std::vector<std::byte> back(bytes_.size());
    require(cudaMemcpy(back.data(), device, back.size(), cudaMemcpyDeviceToHost), "from the device");
    require(cudaFree(device), "cudaFree");
    place(bytes_.data(), at, at + how_.destination_count);
    what.on_host(how_, at, at + how_.destination_count);
    return result.code == collx::status::ok && back == bytes_;
  }

 private:
  void place(std::byte* base, std::byte** destinations, std::byte** sources) const {
    for (int i = 0; i < how_.destination_count + how_.source_count; ++i) {
      std::byte* const at = base + static_cast<std::size_t>(i) * slot_ + how_.shift_bytes +
                            static_cast<std::size_t>(i) * how_.spread_bytes;
      (i < how_.destination_count ? destinations[i] : sources[i - how_.destination_count]) = at;
    }
    if (how_.in_place >= 0) destinations[0] = sources[how_.in_place];
  }

  outline how_;
  std::size_t slot_ = 0;
  std::vector<std::byte> bytes_;
};

// Those of more than one tile of a kernel: whole ones, of which there must be `enough`, and the least ones,
// with a part of one behind them; with elements in front of the first line; and taken one by one.
inline void add_tiled(std::vector<outline>& all, subject const& what, std::size_t enough) {
  for (bool const whole : {false, true}) {
    std::size_t const tile = whole ? what.tiles.whole : what.tiles.least;
    std::size_t const count = (whole ? enough : 2) * tile + tile / 2 + 1;
    all.push_back({count, 2, 1, 0, 0, -1, false, -1});
    all.push_back({count, 3, 2, what.element_alignment, 0, 1, true, 0});
    all.push_back({count, 2, 1, 0, what.element_alignment, -1, true, 1});
  }
  all.push_back({3 * what.tiles.least, 2, 1, 0, 0, 0, false, -1});
}

// Long ones too, unless what runs them is slow.
inline std::vector<outline> outlines(subject const& what, bool small, std::size_t multiprocessors) {
  std::vector<outline> all;
  std::size_t const aligned = what.element_alignment;
  for (std::size_t const count : {1u, 3u, 17u, 70u, 1000u, 70001u}) {
    if (small && count > 1000) continue;
    for (int const sources : {1, 2, 3, 8})
      for (std::size_t const spread : {std::size_t{0}, aligned}) {
        all.push_back({count, sources, 1 + sources % 3, 0, spread, -1, sources % 2 == 0, sources - 1});
        all.push_back({count, sources, 1, aligned, spread, sources / 2, true, 0});
      }
  }
  add_tiled(all, what, collx::device::detail::blocks_wanted * multiprocessors);
  return all;
}

// For main(), with its arguments, of which `small` leaves out long vectors: 0 if all agree, or there is no
// GPU.
inline int run(std::vector<subject> const& subjects, int argc, char** argv) {
  bool const small = argc > 1 && std::strcmp(argv[1], "small") == 0;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  int multiprocessors = 0, wrong = 0;
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "multiprocessors");
  for (subject const& what : subjects) {
    int wrong_here = 0;
    for (outline const& how : outlines(what, small, static_cast<std::size_t>(multiprocessors)))
      wrong_here += !image(what, how).agrees(what);
    std::printf("%-20s %-12s %s\n", what.type, what.op, wrong_here == 0 ? "agrees" : "DIFFERS");
    wrong += wrong_here;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace device_trials
