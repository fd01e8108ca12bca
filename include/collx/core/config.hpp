// SPDX-License-Identifier: Apache-2.0
// What the compiler offers, under names of ours. Included by everything, includes nothing.
#pragma once

// Said first, before all that an older standard does not know. By the feature: while a standard is on its
// way, compilers give what they have of it numbers of their own.
#if !defined(__cpp_concepts)
#error "collx needs C++20: compile with -std=c++20, or a later one"
#endif

#define COLLX_VERSION_MAJOR 0
#define COLLX_VERSION_MINOR 1
#define COLLX_VERSION_PATCH 0

// Schedules are evaluated on the host and inside kernels: one text, both processors.
#if defined(__CUDACC__)
#define COLLX_HD __host__ __device__
// Before a function of both processors that calls what may be for one of them, such as a user's operator:
// nvcc would warn of it where the other one never calls the function.
#define COLLX_HD_UNCHECKED _Pragma("nv_exec_check_disable")
// For the parts of a kernel: a function that is called keeps its arrays in memory.
#define COLLX_HD_INLINE __host__ __device__ inline __attribute__((always_inline))
#else
#define COLLX_HD
#define COLLX_HD_UNCHECKED
#define COLLX_HD_INLINE inline
#endif

// Arrays are kept in registers by a GPU only where every index is known to the compiler.
#if defined(__CUDA_ARCH__)
#define COLLX_UNROLL _Pragma("unroll")
#define COLLX_NO_UNROLL _Pragma("unroll 1")
#else
#define COLLX_UNROLL
#define COLLX_NO_UNROLL
#endif

// The iterations of the loop that follows do not depend on each other.
#if defined(__clang__)
#define COLLX_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define COLLX_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define COLLX_INDEPENDENT_ITERATIONS
#endif

// Before a loop that goes from vector to vector: clang would make vectors of several of its iterations, which
// it gathers element by element, and take up to 18 times as long. And before one over the elements of a
// vector: GCC would unroll it before it looks for vectors, and then miss some. nvcc knows neither word.
#if defined(__CUDACC__)
#define COLLX_LOOP_OF_VECTORS
#define COLLX_LOOP_TO_VECTOR
#elif defined(__clang__)
#define COLLX_LOOP_OF_VECTORS _Pragma("clang loop vectorize(disable)")
#define COLLX_LOOP_TO_VECTOR
#elif defined(__GNUC__)
#define COLLX_LOOP_OF_VECTORS
#define COLLX_LOOP_TO_VECTOR _Pragma("GCC unroll 1")
#else
#define COLLX_LOOP_OF_VECTORS
#define COLLX_LOOP_TO_VECTOR
#endif

// After a local array was computed, before it is loaded as a vector: it is then stored in memory. Else clang
// before 19 inserts its elements into the vector one by one: AVX2 code for results past the caches took 3.5
// (floats) and 7 times (16-bit integers) as long as the baseline's code for hot ones, and takes 1.8. Newer
// ones and GCC have it in registers, and would take 1.7 times as long so.
#if defined(__clang__) && __clang_major__ < 19
#define COLLX_STORED(array) asm("" : "+m"(array))
#else
#define COLLX_STORED(array) static_cast<void>(0)
#endif

#if defined(__GNUC__) || defined(__clang__)
// For what the functions of COLLX_AVX2 and COLLX_AVX512 are to compile with their vectors.
#define COLLX_VECTOR_INLINE inline __attribute__((always_inline))
// For the path of a small message. Without optimisation it would only be more to compile, once in every place
// that it is called from.
#if defined(__OPTIMIZE__)
#define COLLX_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define COLLX_ALWAYS_INLINE inline
#endif
#define COLLX_NEVER_INLINE __attribute__((noinline))
// For functions that schedules share with kernels, where a call costs more than the code.
#if defined(__CUDACC__)
#define COLLX_HOST_NEVER_INLINE
#else
#define COLLX_HOST_NEVER_INLINE COLLX_NEVER_INLINE
#endif
// Set-up and failures: compiled for size, which also halves what compiling them costs.
#define COLLX_COLD __attribute__((noinline, cold))
// For functions that take a format, their argument number so-and-so, and what it formats from another on.
#define COLLX_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define COLLX_VECTOR_INLINE inline
#define COLLX_ALWAYS_INLINE inline
#define COLLX_NEVER_INLINE
#define COLLX_HOST_NEVER_INLINE
#define COLLX_COLD
#define COLLX_PRINTF(text, first)
#endif

// Without optimisation nothing is gained by knowing, and it takes instructions to say it. Not a cast to bool:
// of what is one already, g++ -Wuseless-cast warns wherever the macro stands.
#if defined(__OPTIMIZE__) && (defined(__GNUC__) || defined(__clang__))
#define COLLX_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define COLLX_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define COLLX_LIKELY(condition) (condition)
#define COLLX_UNLIKELY(condition) (condition)
#endif

// What a compiler may take for granted where it optimises: to compare by it, not to check.
#if defined(__OPTIMIZE__) && (defined(__GNUC__) || defined(__clang__))
#define COLLX_ASSUME(condition) ((condition) ? static_cast<void>(0) : __builtin_unreachable())
#else
#define COLLX_ASSUME(condition) static_cast<void>(0)
#endif

// Whether a sanitizer looks at each access to memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COLLX_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COLLX_SANITIZED true
#endif
#endif
#if !defined(COLLX_SANITIZED)
#define COLLX_SANITIZED false
#endif

// Compile a function for processors with vectors of 256 and of 512 bits; call it only where
// cpu::vectors_in_use says so (device/cpu.hpp). What it inlines is compiled for them too. Without FMA, which
// AVX2 alone does not bring: compilers would round a product and a sum once where the baseline rounds twice.
// Not 512 bits with the address sanitizer of GCC before 14: detect_stack_use_after_return then misaligns
// locals that are aligned to more than 32 bytes (GCC bug 110027), and they crash. Neither without
// optimisation: nothing becomes a vector then, and each loop would be compiled three times. Nor with clang
// before 16, which takes up to 5.6 times as long with 512 bits as with 256 for 8-bit integers, and twice to
// three times for 16-bit ones, float16 and bfloat16; others took 0.6 of the time. A compiler with the second
// has the first.
#if defined(__OPTIMIZE__) && defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#define COLLX_AVX2 __attribute__((target("avx2,f16c")))
#if __clang_major__ >= 16
#define COLLX_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), min_vector_width(512)))
#endif
#else
// The width is said for copies of local arrays, too, which GCC else makes by 16 bytes.
#define COLLX_AVX2 __attribute__((target("avx2,f16c,prefer-vector-width=256")))
#if !(defined(__SANITIZE_ADDRESS__) && __GNUC__ < 14)
#define COLLX_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif
#endif
#endif
