/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of collx_perf: the same collectives, timed by the same method (../perf/method.h), on the MPI
 * it is compiled with. bench/compare builds it once per MPI, starts it, and reads the JSON lines
 * that rank 0 prints. It times floats and sums; it never chooses an MPI's algorithm or settings. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "../perf/method.h"

/* One size of one collective, and where its buffers lie. Counts are of floats, per rank. */
typedef struct {
  int rank, size, root, in_place;
  int64_t bytes, block_count, input_count, output_count;
  int64_t buffers, input_stride_bytes, output_stride_bytes;
  char *inputs, *outputs; /* in place: the same memory */
  float* own_input;       /* in the first buffer; in place, an all_gather's own block lies in the middle */
  int64_t fresh_count, writes; /* elements that are written before each call, and how often they were */
} job;

static float* input_of(job const* j, int64_t slot) {
  return (float*)(void*)(j->inputs + slot * j->input_stride_bytes);
}

static float* output_of(job const* j, int64_t slot) {
  return (float*)(void*)(j->outputs + slot * j->output_stride_bytes);
}

static void const* source_of(job const* j, int64_t slot) {
  return j->in_place ? MPI_IN_PLACE : (void const*)input_of(j, slot);
}

/* ---- the collectives: one call, and how many blocks of the vector go in and come out ---- */

static void call_all_reduce(job const* j, int64_t slot) {
  MPI_Allreduce(source_of(j, slot), output_of(j, slot), (int)j->block_count, MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
}

static void call_reduce_scatter(job const* j, int64_t slot) {
  MPI_Reduce_scatter_block(source_of(j, slot), output_of(j, slot), (int)j->block_count, MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD);
}

static void call_all_gather(job const* j, int64_t slot) {
  int const block = (int)j->block_count;
  MPI_Allgather(source_of(j, slot), block, MPI_FLOAT, output_of(j, slot), block, MPI_FLOAT, MPI_COMM_WORLD);
}

static void call_all_to_all(job const* j, int64_t slot) {
  int const block = (int)j->block_count;
  MPI_Alltoall(source_of(j, slot), block, MPI_FLOAT, output_of(j, slot), block, MPI_FLOAT, MPI_COMM_WORLD);
}

static void call_broadcast(job const* j, int64_t slot) {
  MPI_Bcast(output_of(j, slot), (int)j->block_count, MPI_FLOAT, j->root, MPI_COMM_WORLD);
}

static void call_reduce(job const* j, int64_t slot) {
  /* In place is said by the root alone; the others' input is where the root has its output. */
  void const* const source = j->rank == j->root ? source_of(j, slot) : input_of(j, slot);
  MPI_Reduce(source, output_of(j, slot), (int)j->block_count, MPI_FLOAT, MPI_SUM, j->root, MPI_COMM_WORLD);
}

static void call_barrier(job const* j, int64_t slot) {
  (void)j, (void)slot;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void write_input(job* j) {
  ++j->writes;
  method_write(j->own_input, j->fresh_count, (float)method_written(j->writes, j->rank));
}

static void only_write(job* j, int64_t calls, method_rotation* turns) {
  (void)turns;
  for (int64_t i = 0; i < calls; ++i) write_input(j);
}

/* A whole batch of each, so that no call is made through a pointer that collx does without. */
typedef void (*batch)(job*, int64_t calls, method_rotation*);
#define CALLS_OF(name)                                                               \
  static void calls_of_##name(job* j, int64_t calls, method_rotation* turns) {       \
    for (int64_t i = 0; i < calls; ++i) call_##name(j, method_next(turns));          \
  }                                                                                  \
  static void fresh_calls_of_##name(job* j, int64_t calls, method_rotation* turns) { \
    for (int64_t i = 0; i < calls; ++i) {                                            \
      write_input(j);                                                                \
      call_##name(j, method_next(turns));                                            \
    }                                                                                \
  }
CALLS_OF(all_reduce)
CALLS_OF(reduce_scatter)
CALLS_OF(all_gather)
CALLS_OF(all_to_all)
CALLS_OF(broadcast)
CALLS_OF(reduce)
CALLS_OF(barrier)

typedef struct {
  char const* name;
  batch run, run_fresh;
  int input_sharded, output_sharded; /* this buffer holds one rank's block, not the whole vector */
  int reduces, rooted, only_in_place, carries_nothing;
  int transposes; /* both buffers hold a block per rank */
} collective;

static collective const collectives[] = {
    {"all_reduce", calls_of_all_reduce, fresh_calls_of_all_reduce, 0, 0, 1, 0, 0, 0, 0},
    {"reduce_scatter", calls_of_reduce_scatter, fresh_calls_of_reduce_scatter, 0, 1, 1, 0, 0, 0, 0},
    {"all_gather", calls_of_all_gather, fresh_calls_of_all_gather, 1, 0, 0, 0, 0, 0, 0},
    {"all_to_all", calls_of_all_to_all, fresh_calls_of_all_to_all, 0, 0, 0, 0, 0, 0, 1},
    {"broadcast", calls_of_broadcast, fresh_calls_of_broadcast, 0, 0, 0, 1, 1, 0, 0},
    {"reduce", calls_of_reduce, fresh_calls_of_reduce, 0, 0, 1, 1, 0, 0, 0},
    {"barrier", calls_of_barrier, fresh_calls_of_barrier, 0, 0, 0, 0, 0, 1, 0},
};

/* ---- the command line ---- */

typedef struct {
  collective const* what;
  char const* bytes; /* a,b,c */
  int in_place, root, check, fresh;
  int64_t iterations, batches, warmup, pool_bytes; /* 0 iterations or batches: by size */
} options;

static void stop(char const* what, char const* detail) {
  fprintf(stderr, "mpi_perf: %s: %s\n", what, detail);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static int is(char const* a, char const* b) { return strcmp(a, b) == 0; }

static int64_t number(char const* flag, char const* text) {
  char* end = NULL;
  long long const value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || value < 0) stop(flag, "wants a whole number, 0 or more");
  return value;
}

static collective const* find(char const* name) {
  for (size_t i = 0; i < sizeof collectives / sizeof *collectives; ++i)
    if (is(collectives[i].name, name)) return &collectives[i];
  stop(name,
       "is not a collective; say all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce or "
       "barrier");
  return NULL;
}

static void parse_flag(options* o, char const* flag, char const* value) {
  if (is(flag, "--bytes")) o->bytes = value;
  else if (is(flag, "--in-place")) o->in_place = number(flag, value) != 0;
  else if (is(flag, "--iterations")) o->iterations = number(flag, value);
  else if (is(flag, "--batches")) o->batches = number(flag, value);
  else if (is(flag, "--warmup")) o->warmup = number(flag, value);
  else if (is(flag, "--pool")) o->pool_bytes = number(flag, value);
  else if (is(flag, "--root")) o->root = (int)number(flag, value);
  else if (is(flag, "--fresh")) o->fresh = number(flag, value) != 0;
  else if (is(flag, "--check")) o->check = number(flag, value) != 0;
  else stop(flag, "is not a flag of mpi_perf");
}

static options parse(int argc, char** argv) {
  options o = {NULL, "8", 0, 0, 1, 0, 0, 0, 20, method_pool_bytes()};
  if (argc < 2 || argc % 2 != 0) stop("usage", "mpi_perf COLLECTIVE [--flag value]...");
  o.what = find(argv[1]);
  for (int i = 2; i < argc; i += 2) parse_flag(&o, argv[i], argv[i + 1]);
  if (o.what->only_in_place) o.in_place = 1;
  if (o.fresh) o.pool_bytes = 0;
  return o;
}

/* ---- buffers ---- */

static char* allocate(int64_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 4096, (size_t)bytes) != 0)
    stop("out of memory", "use fewer or smaller --bytes");
  memset(memory, 0, (size_t)bytes); /* every page exists before the clock starts */
  return memory;
}

static job open_job(options const* o, int64_t bytes) {
  job j;
  memset(&j, 0, sizeof j);
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.size);
  if (o->root >= j.size) stop("--root", "is not a rank of this run");
  j.root = o->root, j.in_place = o->in_place, j.bytes = bytes;
  int const sharded = o->what->input_sharded || o->what->output_sharded || o->what->transposes;
  int64_t const blocks = sharded ? j.size : 1;
  int64_t const block_bytes = (int64_t)sizeof(float) * blocks;
  j.block_count = o->what->carries_nothing ? 0 : (bytes + block_bytes - 1) / block_bytes;
  if (j.block_count > INT32_MAX) stop("--bytes", "a count in MPI 3 ends at 2^31 - 1 elements");
  j.input_count = o->what->input_sharded ? j.block_count : j.block_count * blocks;
  j.output_count = o->what->output_sharded ? j.block_count : j.block_count * blocks;
  int64_t const whole_stride_bytes = method_stride_bytes(j.block_count * block_bytes);
  j.input_stride_bytes =
      j.in_place ? whole_stride_bytes : method_stride_bytes(j.input_count * (int64_t)sizeof(float));
  j.output_stride_bytes =
      j.in_place ? whole_stride_bytes : method_stride_bytes(j.output_count * (int64_t)sizeof(float));
  int64_t const each_bytes = j.in_place ? whole_stride_bytes : j.input_stride_bytes + j.output_stride_bytes;
  j.buffers = method_buffers(each_bytes, o->pool_bytes);
  j.inputs = allocate(j.buffers * j.input_stride_bytes);
  j.outputs = j.in_place ? j.inputs : allocate(j.buffers * j.output_stride_bytes);
  j.own_input = input_of(&j, 0) + (j.in_place && o->what->input_sharded ? j.rank * j.block_count : 0);
  int const has_input = o->what->reduces || !o->what->rooted || j.rank == j.root;
  j.fresh_count = has_input ? j.input_count : 0;
  return j;
}

static void close_job(job* j) {
  if (j->outputs != j->inputs) free(j->outputs);
  free(j->inputs);
}

/* ---- timing ---- */

typedef struct {
  double min_us, median_us, p99_us, write_us;
} timing;

/* What one of `calls` takes on this rank. */
static double run_batch(batch run, job* j, int64_t calls, method_rotation* turns) {
  MPI_Barrier(MPI_COMM_WORLD);
  double const begin_us = method_now_us();
  run(j, calls, turns);
  return (method_now_us() - begin_us) / (double)calls;
}

static double run_fresh_batch(batch run, job* j, int64_t calls, method_rotation* turns) {
  run(j, 1, turns);
  return run_batch(run, j, calls, turns);
}

static void slowest(double* samples, int64_t count) {
  MPI_Allreduce(MPI_IN_PLACE, samples, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static double* room_for(int64_t samples) {
  double* const found = malloc((size_t)samples * sizeof *found);
  if (found == NULL) stop("out of memory", "use fewer --batches");
  return found;
}

/* Batches of writes and calls in turn with batches of writes alone, which are taken off. */
static double measure_fresh(batch run, job* j, method_plan const* plan, method_rotation* turns,
                            double* samples) {
  double* const writes = room_for(plan->batches);
  for (int64_t b = 0; b < plan->batches; ++b) {
    writes[b] = run_fresh_batch(only_write, j, plan->iterations, turns);
    samples[b] = run_fresh_batch(run, j, plan->iterations, turns);
  }
  slowest(writes, plan->batches);
  slowest(samples, plan->batches);
  double const write_us = method_take_off_writes(samples, writes, plan->batches);
  free(writes);
  return write_us;
}

static timing measure(options const* o, job* j) {
  batch const run = o->fresh ? o->what->run_fresh : o->what->run;
  method_rotation turns = {j->buffers, 0};
  double call_us = run_batch(run, j, method_first_calls(o->warmup, j->bytes), &turns);
  slowest(&call_us, 1);
  method_plan const plan = method_make_plan(j->bytes, j->buffers, call_us, o->iterations, o->batches);
  run_batch(run, j, plan.warmup, &turns);
  double* const samples = room_for(plan.batches);
  double write_us = 0;
  if (o->fresh) {
    write_us = measure_fresh(run, j, &plan, &turns, samples);
  } else {
    for (int64_t b = 0; b < plan.batches; ++b) samples[b] = run_batch(run, j, plan.iterations, &turns);
    slowest(samples, plan.batches);
  }
  qsort(samples, (size_t)plan.batches, sizeof *samples, method_compare_doubles);
  timing const t = {samples[0], method_percentile(samples, plan.batches, 0.5),
                    method_percentile(samples, plan.batches, 0.99), write_us};
  free(samples);
  return t;
}

/* ---- is the result right? ---- */

/* Element `index` of what `rank` put in: in the write numbered `write`, or for a check where that is 0. */
static int given(int64_t write, int64_t index, int rank) {
  return write > 0 ? method_written(write, rank) : method_value(index, rank);
}

static double expected(options const* o, job const* j, int64_t write, int64_t index) {
  int64_t const block = j->block_count;
  if (o->what->transposes) return given(write, j->rank * block + index % block, (int)(index / block));
  if (!o->what->reduces && o->what->rooted) return given(write, index, j->root);
  if (!o->what->reduces) return given(write, index % block, (int)(index / block));
  double sum = 0;
  int64_t const global = o->what->output_sharded ? j->rank * block + index : index;
  for (int r = 0; r < j->size; ++r) sum += given(write, global, r);
  return sum;
}

static int64_t wrong_in_output(options const* o, job const* j, int64_t write) {
  int64_t wrong = 0;
  if (o->what->reduces && o->what->rooted && j->rank != j->root) return 0;
  for (int64_t i = 0; i < j->output_count; ++i)
    wrong += (double)output_of(j, 0)[i] != expected(o, j, write, i);
  return wrong;
}

static int64_t count_wrong(options const* o, job* j) {
  for (int64_t i = 0; i < j->input_count; ++i) j->own_input[i] = (float)method_value(i, j->rank);
  method_rotation first = {j->buffers, 0};
  o->what->run(j, 1, &first);
  return wrong_in_output(o, j, 0);
}

static int64_t wrong_everywhere(options const* o, job* j) {
  int64_t wrong = 0;
  /* The last call that was timed must have seen what was written last. */
  if (o->check && o->fresh) wrong += wrong_in_output(o, j, j->writes);
  if (o->check) wrong += count_wrong(o, j);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return wrong;
}

static void run_size(options const* o, int64_t bytes) {
  job j = open_job(o, bytes);
  timing const t = measure(o, &j);
  int64_t const wrong = wrong_everywhere(o, &j);
  if (j.rank == 0) {
    printf(
        "{\"collective\": \"%s\", \"bytes\": %lld, \"ranks\": %d, \"in_place\": %s, \"buffers\": %lld, "
        "\"min_us\": %.4f, \"median_us\": %.4f, \"p99_us\": %.4f, \"wrong\": %lld",
        o->what->name, (long long)bytes, j.size, j.in_place ? "true" : "false", (long long)j.buffers,
        t.min_us, t.median_us, t.p99_us, (long long)wrong);
    if (o->fresh) printf(", \"write_us\": %.4f", t.write_us);
    printf("}\n");
    fflush(stdout);
  }
  close_job(&j);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  options const o = parse(argc, argv);
  for (char const* at = o.bytes; *at != '\0';) {
    char* end = NULL;
    long long const bytes = strtoll(at, &end, 10);
    if (end == at || bytes < 0 || (*end != ',' && *end != '\0'))
      stop("--bytes", "wants whole numbers, as in 8,1024");
    run_size(&o, bytes);
    at = *end == ',' ? end + 1 : end;
  }
  MPI_Finalize();
  return 0;
}
