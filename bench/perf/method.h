/* SPDX-License-Identifier: Apache-2.0 */
/* How a collective is timed: one text, included by collx_perf, gloo_perf and the limits (C++) and by
 * ../peers/mpi_perf (C), so that a comparison cannot drift apart. Pure arithmetic and the clock; it never
 * communicates.
 *
 * A sample is one batch: all ranks meet in a barrier, read the clock, run `iterations` calls back
 * to back, read the clock again. The sample is elapsed / iterations; the slowest rank counts.
 *
 * With fresh inputs every rank writes its whole input before each call. Batches of writes and calls take
 * turns with batches of the same writes alone, and the median of these is taken off. Before each batch, one
 * turn of what it times is not timed: the lines that the first turn writes are where they are in every later
 * one. */
#ifndef COLLX_BENCH_METHOD_H
#define COLLX_BENCH_METHOD_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
  method_batches_least = 5,
  method_batches_few = 20,
  method_batches_many = 100,
  method_iterations_least = 5,
  method_iterations_most = 500,
  method_buffers_least = 4,
  method_alignment_bytes = 64
};

#define METHOD_LAST_SMALL_BYTES ((int64_t)64 << 10)
#define METHOD_BATCH_BYTES ((int64_t)8 << 20)
#define METHOD_FIRST_BYTES ((int64_t)64 << 20)
#define METHOD_BUDGET_US 5e5

/* Twice the second-level cache of one core: a buffer used again has left that cache. */
static inline int64_t method_pool_bytes(void) {
  long const l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return 2 * (l2_bytes > 0 ? (int64_t)l2_bytes : (int64_t)2 << 20);
}

static inline int64_t method_stride_bytes(int64_t bytes) {
  int64_t const whole = bytes > 0 ? bytes : 1;
  return (whole + method_alignment_bytes - 1) / method_alignment_bytes * method_alignment_bytes;
}

/* How many buffers (or pairs of input and output) of `each_bytes` the calls rotate over; with
 * pool_bytes 0 there is one, and it stays hot. */
static inline int64_t method_buffers(int64_t each_bytes, int64_t pool_bytes) {
  int64_t const wanted = (pool_bytes + each_bytes - 1) / each_bytes;
  return pool_bytes <= 0 ? 1 : wanted < method_buffers_least ? (int64_t)method_buffers_least : wanted;
}

/* Which of `count` buffers a call takes: one after the other. Everybody counts up, and nobody divides: a
 * division would show in a 0.1 us call. */
typedef struct {
  int64_t count, at;
} method_rotation;

static inline int64_t method_next(method_rotation* turns) {
  int64_t const slot = turns->at;
  turns->at = slot + 1 == turns->count ? 0 : slot + 1;
  return slot;
}

#ifndef METHOD_HAS_CLOCK /* a test brings its own */
static inline double method_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}
#endif

static inline int method_compare_doubles(void const* a, void const* b) {
  double const x = *(double const*)a, y = *(double const*)b;
  return (x > y) - (x < y);
}

/* The sample at `part` (0..1) of `count` sorted samples, nearest rank. */
static inline double method_percentile(double const* sorted, int64_t count, double part) {
  int64_t const index = (int64_t)(part * (double)(count - 1) + 0.5);
  return sorted[index];
}

/* How often one size is run. */
typedef struct {
  int64_t warmup;     /* calls before the first sample: one turn of the rotation where time allows */
  int64_t iterations; /* calls in a batch */
  int64_t batches;
} method_plan;

static inline int64_t method_clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* Calls of the first batch, which says roughly how long one takes: fewer where calls are long. */
static inline int64_t method_first_calls(int64_t warmup_asked, int64_t bytes) {
  int64_t const by_size = METHOD_FIRST_BYTES / (bytes > 0 ? bytes : 1);
  return method_clamp(warmup_asked, 1, by_size > 2 ? by_size : 2);
}

/* `call_us` is what one call takes, roughly, on the slowest rank; 0 asked means: choose.
 * A batch is long against the skew with which ranks leave a barrier (some 0.1 us), and short
 * against a scheduler's time slice, so that one preemption spoils one sample. The budget matters
 * where a call is absurdly slow: ranks that spin on fewer cores take milliseconds. */
static inline method_plan method_make_plan(int64_t bytes, int64_t buffers, double call_us,
                                           int64_t iterations_asked, int64_t batches_asked) {
  double const calls_in_budget = METHOD_BUDGET_US / (call_us > 1e-3 ? call_us : 1e-3);
  int64_t const affordable = (int64_t)calls_in_budget;
  int64_t const by_size = METHOD_BATCH_BYTES / (bytes > 0 ? bytes : 1);
  int64_t const usual_batches =
      bytes <= METHOD_LAST_SMALL_BYTES ? (int64_t)method_batches_many : (int64_t)method_batches_few;
  method_plan plan;
  plan.iterations = method_clamp(by_size, method_iterations_least, method_iterations_most);
  plan.iterations = method_clamp(plan.iterations, 1, 1 + affordable / method_batches_few);
  if (iterations_asked > 0) plan.iterations = iterations_asked;
  plan.batches = method_clamp(affordable / plan.iterations, method_batches_least, usual_batches);
  if (batches_asked > 0) plan.batches = batches_asked;
  plan.warmup = method_clamp(buffers, 1, 1 + affordable / 4);
  return plan;
}

/* Element `index` of rank `rank` in a check: 1 to 5, exact in every type, and without a period, so
 * that blocks which ended up in each other's place show. */
static inline int method_value(int64_t index, int rank) {
  uint32_t mixed = (uint32_t)index * 2654435761u + (uint32_t)rank * 40503u;
  mixed ^= mixed >> 15;
  return (int)(mixed % 5u) + 1;
}

/* What `rank` writes into each element of a fresh input the `write`th time: 1 to 5, exact in every type, and
 * not what it wrote before. */
static inline int method_written(int64_t write, int rank) {
  return (int)(((uint64_t)write + (uint64_t)rank) % 5u) + 1;
}

/* A fresh input, as a program leaves one that has just computed it: plain stores. */
#ifdef __cplusplus
#define METHOD_ELEMENT T
template <class T>
#else
#define METHOD_ELEMENT float
#endif
static inline void method_write(METHOD_ELEMENT* input, int64_t count, METHOD_ELEMENT value) {
  for (int64_t i = 0; i < count; ++i) input[i] = value;
  __asm__ volatile("" : : "r"(input) : "memory"); /* somebody may read it: no store is dropped */
}
#undef METHOD_ELEMENT

/* Of `count` batches each: takes the median of the writes alone off every sample, and returns it. What the
 * calls do to the writing, whose lines others have read meanwhile, stays in the samples. */
static inline double method_take_off_writes(double* samples, double* writes, int64_t count) {
  qsort(writes, (size_t)count, sizeof *writes, method_compare_doubles);
  double const write_us = method_percentile(writes, count, 0.5);
  for (int64_t i = 0; i < count; ++i) samples[i] -= write_us;
  return write_us;
}

#endif
